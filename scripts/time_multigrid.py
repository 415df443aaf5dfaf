#!/usr/bin/env python3
"""Times multigrid on a refined box of tetrahedra, and other preconditioners, without a matrix and with one.

    python3 scripts/time_multigrid.py --device cuda:0 --cells 7 --refine 4 --jacobi
    python3 scripts/time_multigrid.py --device cuda:0 --cells 7 --refine 3 --jacobi --matrix

Poisson's equation with values of zero on the boundary and a random right-hand side, to 1e-8, on boxes of six tetrahedra
whose inner vertices are moved by at most a fifth of a side. `--jacobi` solves by conjugate gradients with the diagonal,
`--matrix` the assembled system with the diagonal and with algebraic multigrid. Results of small meshes are compared with
those of the device `c` first. Each result is a line of JSON; times are the shortest of three, of the wall clock.
"""

import argparse
import itertools
import json
import time

import numpy as np
import ufl

import kingpost
from kingpost import meshes, multigrid
from kingpost.matrix_free import METHODS

RELATIVE = 1e-8


def box(n):
    """The unit cube in n³ boxes of six tetrahedra."""
    at = np.stack([axis.ravel() for axis in np.meshgrid(*[np.arange(n)] * 3, indexing="ij")], axis=1)
    grid = np.meshgrid(*[np.linspace(0, 1, n + 1)] * 3, indexing="ij")
    x = np.stack([axis.ravel() for axis in grid], axis=1)
    inner = ((x > 0) & (x < 1)).all(axis=1)
    x[inner] += 0.2 / n * np.random.default_rng(0).uniform(-1, 1, (inner.sum(), 3))
    cells = []
    for order in itertools.permutations(range(3)):
        corners = [at + np.eye(3, dtype=int)[list(order[:k])].sum(axis=0) for k in range(4)]
        cells.append(np.stack([np.ravel_multi_index(tuple(c.T), (n + 1,) * 3) for c in corners], axis=1))
    return meshes.Mesh(x, [meshes.Cells("tetrahedron", np.stack(cells, axis=1).reshape(-1, 4))])


def form(V):
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx


def boundary(V):
    return V.dofs_on()


def say(**found):
    print(json.dumps(found), flush=True)


def differences(device, place, precisions):
    """The largest difference from the device `c`, relative to the largest value."""
    for degree, precision in itertools.product((1, 2, 3), precisions):
        V = box(2).refined(2).space("P", degree)
        b = np.random.default_rng(1).standard_normal(V.size)
        solvers = [
            multigrid.Multigrid(V, form, fixed=boundary, device="c", precision=precision),
            multigrid.Multigrid(V, form, fixed=boundary, device=device, place=place, precision=precision),
        ]
        one, other = (solver.solve(b, relative=1e-11) for solver in solvers)
        difference = float(abs(one.x - other.x).max() / abs(one.x).max())
        counts = [one.iterations, other.iterations]
        say(degree=degree, precision=precision, unknowns=V.size, iterations=counts, difference=difference)


def times(args, place, wait):
    def shortest(call, runs=3):
        call()
        found = []
        for _ in range(runs):
            wait()
            start = time.perf_counter()
            call()
            wait()
            found.append(time.perf_counter() - start)
        return min(found)

    start = time.perf_counter()
    V = box(args.cells).refined(args.refine).space("P", args.degree)
    say(unknowns=V.size, mesh_s=time.perf_counter() - start)
    b = place(np.random.default_rng(1).standard_normal(V.size))
    for precision, steps in itertools.product(args.precision, args.steps):
        options = {"device": args.device, "place": place, "precision": precision, "steps": steps}
        solver = multigrid.Multigrid(V, form, fixed=boundary, **options)
        solved = solver.solve(b, relative=RELATIVE)
        seconds = shortest(lambda: solver.solve(b, relative=RELATIVE))
        found = {"iterations": solved.iterations, "solve_s": seconds, "unknowns_per_s": V.size / seconds}
        cycle, action = shortest(lambda: solver(b)), shortest(lambda: solver.product(b))
        found |= {"cycle_s": cycle, "product_s": action, "setup_s": solver.setup_seconds}
        say(precision=precision, steps=solver.steps, **found)
    if args.jacobi:
        inverse, free = solver.finest.inverse, solver.finest.free
        right = free * b
        limit = RELATIVE * float((right * right).sum()) ** 0.5
        report = METHODS["cg"](solver.product, lambda r: inverse * r, right, limit, 10_000)
        say(jacobi=report.reason, iterations=len(report.residuals) - 1, solve_s=report.seconds)
    if args.matrix:
        matrix(args, V, b)


def matrix(args, V, b):
    """The same system with its matrix, whose rows and columns on the boundary are those of the identity."""
    A = meshes.matrix(V.mesh, form(V)).assemble()
    fixed = np.zeros(V.size, bool)
    fixed[V.dofs_on()] = True
    row = np.repeat(np.arange(V.size), np.diff(A.indptr))
    data = np.where(fixed[row] | fixed[A.indices], 0.0, A.data)
    data[fixed[row] & (row == A.indices)] = 1.0
    right = np.where(fixed, 0.0, b.get() if hasattr(b, "get") else b)
    for name in ("jacobi", "amg"):
        whole = kingpost.Csr(A.indptr, A.indices, data)
        found = kingpost.solve(whole, right, preconditioner=name, device=args.device, relative=RELATIVE)
        say(matrix=name, iterations=found.iterations, solve_s=found.seconds, setup_s=found.setup_seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="c", help="the name of one")
    parser.add_argument("--cells", type=int, default=2, help="boxes along each side of the coarsest mesh")
    parser.add_argument("--refine", type=int, default=3, help="how often each cell is divided")
    parser.add_argument("--degree", type=int, default=2)
    parser.add_argument("--steps", type=int, nargs="+", default=[None], help="of the smoother; as many as the degree asks for")
    parser.add_argument("--precision", nargs="+", default=["f64", "f32"], help="of the cycle")
    parser.add_argument("--jacobi", action="store_true", help="time conjugate gradients with the diagonal")
    parser.add_argument("--matrix", action="store_true", help="time solves with the assembled matrix")
    args = parser.parse_args()
    place, wait = np.asarray, lambda: None
    if args.device.startswith("cuda"):
        import cupy

        place, wait = cupy.asarray, cupy.cuda.Device().synchronize
    differences(args.device, place, args.precision)
    times(args, place, wait)


if __name__ == "__main__":
    main()
