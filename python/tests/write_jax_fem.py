"""Writes results/cpu/jax_fem.md: residual and tangent product of a neo-Hookean solid compared with JAX-FEM.

    python write_jax_fem.py [FILE] [--rounds N]

On a machine that does other work, `chrt -r 10` before it gives all contestants the processors.

JAX-FEM is installed from PyPI (`pip install --no-deps jax-fem meshio gmsh pyfiglet rich`; its solver's PETSc is not
needed). The material is that of its demo of hyperelasticity. Both take the same mesh, the same rule of quadrature and
the same displacement, in double precision; the results are compared before anything is timed. A row is the median of
all rounds, in which all contestants take turns, and the least time.
"""

import argparse
import ctypes
import datetime
import logging
import os
import platform
import statistics
import sys
import time

import basix.ufl
import jax
import jax.numpy as jnp
import numpy as np
import ufl

import kingpost

jax.config.update("jax_enable_x64", True)

YOUNG, POISSON = 10.0, 0.3
MU, BULK = YOUNG / (2 * (1 + POISSON)), YOUNG / (3 * (1 - 2 * POISSON))

#: Cells of a side, JAX-FEM's name of the element, basix's cell and degree, and the degree of its rule.
CASES = {
    "hexahedra, degree 1": (32, "HEX8", "hexahedron", 1, 2),
    "tetrahedra, degree 1": (20, "TET4", "tetrahedron", 1, 0),
    "tetrahedra, degree 2": (12, "TET10", "tetrahedron", 2, 2),
}


def mesh_of(n, cell, degree):
    """The unit cube: points and cells of the vertices, and the numbering of the unknowns, both as basix has them."""
    axis = np.arange(n + 1)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3) / n
    corner = ((axis[:-1, None, None] * (n + 1) + axis[:-1, None]) * (n + 1) + axis[:-1]).ravel()
    steps = np.array([(i * (n + 1) + j) * (n + 1) + k for i in (0, 1) for j in (0, 1) for k in (0, 1)])
    boxes = corner[:, None] + steps[[0, 4, 2, 6, 1, 5, 3, 7]]  # the first axis runs fastest
    if cell == "hexahedron":
        cells = boxes
    else:
        paths = [(1, 3), (1, 5), (2, 3), (2, 6), (4, 5), (4, 6)]
        cells = np.concatenate([boxes[:, [0, a, b, 7]] for a, b in paths])
        edges = points[cells[:, 1:]] - points[cells[:, :1]]
        turned = np.linalg.det(edges) < 0
        cells[turned, 1], cells[turned, 2] = cells[turned, 2].copy(), cells[turned, 1].copy()
    if degree == 1:
        return points, cells, points, cells
    pairs = np.array([(2, 3), (1, 3), (1, 2), (0, 3), (0, 2), (0, 1)])
    ends = np.sort(cells[:, pairs], axis=2).reshape(-1, 2)
    unique, places = np.unique(ends, axis=0, return_inverse=True)
    dofs = np.concatenate([cells, len(points) + places.reshape(len(cells), 6)], axis=1)
    return points, cells, np.concatenate([points, points[unique].mean(axis=1)]), dofs


def jax_fem_of(nodes, dofs, element):
    """The residual as JAX-FEM computes it."""
    sys.stdout = open(os.devnull, "w")  # it greets
    from jax_fem import logger
    from jax_fem.basis import get_elements
    from jax_fem.generate_mesh import Mesh
    from jax_fem.problem import Problem

    sys.stdout = sys.__stdout__
    logger.setLevel(logging.ERROR)

    class Solid(Problem):
        def get_tensor_map(self):
            def energy(f):
                j = jnp.linalg.det(f)
                return MU / 2 * (j ** (-2 / 3) * jnp.trace(f.T @ f) - 3) + BULK / 2 * (j - 1) ** 2

            stress = jax.grad(energy)
            return lambda gradient: stress(gradient + jnp.eye(3))

    order = get_elements(element)[-1]
    problem = Solid(Mesh(nodes, dofs[:, order], element), vec=3, dim=3, ele_type=element)
    return lambda u: problem.compute_residual([u])[0]


def kingpost_of(points, cells, dofs, cell, degree, rule):
    """The operators of residual and tangent product, and what both take besides."""
    mesh = ufl.Mesh(basix.ufl.element("Lagrange", cell, 1, shape=(3,)))
    space = ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", cell, degree, shape=(3,)))
    u, w, v = ufl.Coefficient(space), ufl.Coefficient(space), ufl.TestFunction(space)
    f = ufl.Identity(3) + ufl.grad(u)
    j = ufl.det(f)
    energy = MU / 2 * (j ** (-2 / 3) * ufl.tr(f.T * f) - 3) + BULK / 2 * (j - 1) ** 2
    residual = ufl.derivative(energy * ufl.dx(degree=rule), u, v)
    tangent = ufl.derivative(residual, u, w)
    rows = lambda numbers: np.ascontiguousarray(numbers, dtype=np.int32)  # noqa: E731
    maps = {"x": points, "x_dofs": rows(cells), f"p{degree}_dofs": rows(dofs)}
    return kingpost.jit(residual, names={u: "u"}), kingpost.jit(tangent, names={u: "u", w: "w"}), maps


def threads(number):
    """How many threads Kingpost's C takes."""
    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(number)


def contestants(case):
    """The size of a case, and its contestants: what is computed, who does it, and the function that does."""
    n, element, cell, degree, rule = CASES[case]
    points, cells, nodes, dofs = mesh_of(n, cell, degree)
    rng = np.random.default_rng(1)
    u, w = (0.1 / n * rng.uniform(-1, 1, nodes.shape) for _ in range(2))
    own = jax_fem_of(nodes, dofs, element)
    whole = jax.jit(own)
    product = jax.jit(lambda u, w: jax.jvp(own, (u,), (w,))[1])
    residual, tangent, maps = kingpost_of(points, cells, dofs, cell, degree, rule)
    at, along = jnp.asarray(u), jnp.asarray(w)
    y = np.zeros_like(u)
    calls = {"residual": residual.bind(y, u=u, **maps), "tangent product": tangent.bind(y, u=u, w=w, **maps)}

    def run(what, number):
        def call():
            threads(number)
            y.fill(0.0)
            calls[what]()
            return y

        return call

    rows = [("residual", "JAX-FEM, as it is called", lambda: own(at).block_until_ready())]
    rows += [("residual", "JAX-FEM, under one `jax.jit`", lambda: whole(at).block_until_ready())]
    rows += [("residual", f"Kingpost, {number} thread{'s' * (number > 1)}", run("residual", number)) for number in (2, 1)]
    rows += [("tangent product", "JAX-FEM, `jax.jvp` under `jax.jit`", lambda: product(at, along).block_until_ready())]
    rows += [("tangent product", f"Kingpost, {number} thread{'s' * (number > 1)}", run("tangent product", number)) for number in (2, 1)]
    words = f"{len(cells):,} cells, {nodes.size:,} unknowns"
    return words, rows, {"residual": residual.mapping_reason, "tangent product": tangent.mapping_reason}


def compared(rows):
    """The largest difference of the results of each quantity, relative to the largest entry.

    Raises:
        AssertionError: They differ by more than rounding.
    """
    found = {}
    for what, _, call in rows:
        value = np.array(call())
        first, worst = found.get(what, (value, 0.0))
        found[what] = (first, max(worst, float(abs(value - first).max() / abs(first).max())))
    for what, (_, difference) in found.items():
        # sums of some hundred products in f64, in another order
        assert difference <= 1e-12, f"{what}: the results differ by {difference:.1e}"
    return {what: difference for what, (_, difference) in found.items()}


def timed(rows, rounds):
    times = [[] for _ in rows]
    for _ in range(rounds):
        for own, (*_, call) in zip(times, rows):
            call()  # threads of the one before stop to wait, and caches are its own
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in times], [min(own) for own in times]


def page(rounds):
    import importlib.metadata

    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("jax-fem", "jax", "fenics-ufl"))
    priority = "" if os.sched_getscheduler(0) == os.SCHED_OTHER else ", all contestants with real-time priority"
    lines = [
        "# Hyperelasticity compared with JAX-FEM", "",
        f"`python python/tests/write_jax_fem.py`, {datetime.date.today()}: {kingpost.devices()['c']}, {os.cpu_count()} cores "
        f"shared with other work{priority}, {platform.python_implementation()} {platform.python_version()}, {versions}.",
        "Residual and tangent product (matrix-free) of a neo-Hookean solid, the material of JAX-FEM's demo, on a unit "
        "cube, in double precision. Mesh, numbering, rule of quadrature and displacement are the same. Kingpost takes the "
        "mapping that `kingpost.jit` takes by default; JAX has as many threads as it likes. Times are those of "
        f"{rounds} rounds, in which all take turns, each after a run that is not counted; the last column is the median of the fastest of JAX-FEM over this one.", "",
    ]  # fmt: skip
    ratios = []
    for case in CASES:
        words, rows, mappings = contestants(case)
        differences = compared(rows)
        medians, least = timed(rows, rounds)
        lines += [f"## {case[0].upper()}{case[1:]}", "", f"{words}. The results differ by at most "
                  f"{max(differences.values()):.1e} of the largest entry.", "",
                  "| | | median, ms | least, ms | JAX-FEM / this |", "|---|---|--:|--:|--:|"]  # fmt: skip
        for (what, who, _), seconds, shortest in zip(rows, medians, least):
            best = min(s for (other, name, _), s in zip(rows, medians) if other == what and name.startswith("JAX"))
            ratio = best / seconds
            if who == "Kingpost, 2 threads":
                ratios.append(ratio)
            lines.append(f"| {what} | {who} | {1e3 * seconds:.2f} | {1e3 * shortest:.2f} | {ratio:.1f} |")
        lines += ["", *(f"- {what}: {words}" for what, words in mappings.items()), ""]
    lines += [f"Least ratio with two threads {min(ratios):.1f}, geometric mean {statistics.geometric_mean(ratios):.1f}."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--rounds", type=int, default=21)
    given = parser.parse_args()
    text = page(given.rounds)
    if given.file:
        with open(given.file, "w") as file:
            file.write(text)
    print(text)


if __name__ == "__main__":
    main()
