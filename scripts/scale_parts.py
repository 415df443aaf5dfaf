#!/usr/bin/env python3
"""Times conjugate gradients for Poisson's equation on one device or several: P2 on tetrahedra, or Q6 on hexahedra with
the nodes as points (bake-off problem 5).

    python3 scripts/scale_parts.py --devices cuda:0,cuda:1 --cells 107x107x214
    python3 scripts/scale_parts.py --devices cuda:0,cuda:1 --cells 36x36x72 --hexahedra
    python3 scripts/scale_parts.py --write-form poisson.json    # where UFL is
    python3 scripts/scale_parts.py --devices cuda:0 --cells 107x107x107 --form poisson.json
    python3 scripts/scale_parts.py --devices cuda:0,cuda:1 --millions 0.3,1,2,5,10,40    # what the model says of each

`--two-levels` solves whole systems by each preconditioner.

A box of boxes, of six tetrahedra or one hexahedron each, is divided in slabs along its third side, one a device;
`--all` times all numbers of the devices, on boxes that grow with them and on the given one; `--millions` times them on
boxes of a number of unknowns, next to what the model by which `divide` decides says. Two numbers of iterations
are timed twice each, and the difference of the shortest times counts: setup and copies fall out. The action is compared
with that of one device, `c`, on a small box first. A line of JSON is printed for each.
"""

import argparse
import itertools
import json
import pathlib
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import kingpost
from kingpost import _kingpost
from kingpost.choice import choose, exchange_costs

#: Both record graphs on cards, which takes some milliseconds more or less.
ITERATIONS = (96, 1056)
#: Unknowns from which on there are fewer of them, and of solves.
MANY, FEW_ITERATIONS = 8_000_000, (64, 320)
DEGREE = 6
#: The mapping of hexahedra: the fastest one on an H200 (results/h200/dolfinx_benchmark.md).
LINES = {"strategy": "factorised_lines", "cells": 1, "literal_tables": False}
#: The corners of the edges of a tetrahedron in basix's order.
EDGES = [(2, 3), (1, 3), (1, 2), (0, 3), (0, 2), (0, 1)]


def form(degree=2, bilinear=False):
    import ufl
    from basix.ufl import element
    from kingpost.export import dumps, export_form

    mesh = ufl.Mesh(element("Lagrange", "tetrahedron", 1, shape=(3,)))
    space = ufl.FunctionSpace(mesh, element("Lagrange", "tetrahedron", degree))
    u, v = ufl.TrialFunction(space) if bilinear else ufl.Coefficient(space), ufl.TestFunction(space)
    return dumps(export_form(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, names={} if bilinear else {u: "u"}))


def number(at, shape):
    """The numbers of points of a grid, the first axis fastest."""
    return at[0] + shape[0] * (at[1] + shape[1] * at[2])


def tetrahedra(at, fine, coarse):
    """The degrees of freedom and the vertices of the six tetrahedra of boxes."""
    dofs = np.empty((at.shape[1], 6, 10), "i4")
    nodes = np.empty((at.shape[1], 6, 4), "i4")

    def fill(cell, order):
        corners = [np.zeros(3, int)]
        for axis in order:
            corners.append(corners[-1] + np.eye(3, dtype=int)[axis])
        points = [2 * corner for corner in corners] + [corners[a] + corners[b] for a, b in EDGES]
        for column, corner in enumerate(corners):
            nodes[:, cell, column] = number(at, coarse) + number(corner, coarse)
        for column, point in enumerate(points):
            dofs[:, cell, column] = number(2 * at, fine) + number(point, fine)

    with ThreadPoolExecutor() as threads:
        list(threads.map(fill, range(6), itertools.permutations(range(3))))
    return dofs, nodes


def hexahedra(at, fine, coarse, spaces):
    """Likewise of hexahedra, whose nodes along an axis have the places of a grid, from the nodes of both spaces."""
    found = []
    for space, shape, step in ((spaces[1], fine, DEGREE), (spaces[0], coarse, 1)):
        nodes = np.array(space["nodes"])
        along = np.unique(nodes.round(12))
        places = np.abs(nodes[:, :, None] - along).argmin(axis=2)
        found.append((number(step * at, shape)[:, None] + number(places.T, shape)).astype("i4")[:, None])
    return found


def box(counts, parts, spaces=None):
    """The arrays of a box, the part of each cell, and the degrees of freedom where x is 0 or 1. Degrees of freedom
    are numbered as the points of a grid with as many intervals a box as the degree; of hexahedra from the `spaces`."""
    degree = 2 if spaces is None else DEGREE
    fine, coarse = [degree * n + 1 for n in counts], [n + 1 for n in counts]
    k, j, i = np.meshgrid(*[np.arange(n, dtype="i4") for n in reversed(counts)], indexing="ij")
    at = np.stack([i.ravel(), j.ravel(), k.ravel()])
    dofs, nodes = tetrahedra(at, fine, coarse) if spaces is None else hexahedra(at, fine, coarse, spaces)
    # cubes of the first side's length
    z, y, x = np.meshgrid(*[np.arange(n) / counts[0] for n in reversed(coarse)], indexing="ij")
    owners = np.repeat((at[2].astype("i8") * parts // counts[2]).astype("i4"), dofs.shape[1])
    n = int(np.prod(fine))
    along = np.arange(n) % fine[0]
    names = ("x", "x_dofs", "p2_dofs") if spaces is None else ("coords", "cell_vertices", "dofs")
    arrays = [np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1), nodes.reshape(-1, nodes.shape[2]), dofs.reshape(-1, dofs.shape[2])]
    return dict(zip(names, arrays)), owners, n, np.flatnonzero((along == 0) | (along == fine[0] - 1))


class Problem:
    """A form for several devices, and boxes for it."""

    def __init__(self, text, mapping, spaces):
        self._form, self._mapping, self._spaces = text, mapping, spaces

    def on(self, devices):
        return kingpost.jit(self._form, devices=devices, mapping=self._mapping)

    def difference(self, devices, overlap):
        """The largest difference of an action from that of one device, relative to its largest entry."""
        arrays, owners, n, _ = box((3, 3, 2 * len(devices)), len(devices), self._spaces)
        u = np.random.default_rng(1).standard_normal(n)
        one, several = np.zeros(n), np.zeros(n)
        kingpost.jit(self._form, "c")(one, u=u, **arrays)
        self.on(devices).divide(owners=owners, overlap=overlap, u=u, **arrays)(several)
        return float(abs(one - several).max() / abs(one).max())

    def timed(self, devices, counts, overlap):
        arrays, owners, n, fixed = box(counts, len(devices), self._spaces)
        start = time.perf_counter()
        division = self.on(devices).divide(owners=owners, overlap=overlap, u=np.zeros(n), **arrays)
        divided = time.perf_counter() - start
        b = np.sin(np.arange(n))
        counts_of = ITERATIONS if n < MANY else FEW_ITERATIONS
        seconds = {count: [] for count in counts_of}
        # cards load kernels in the first solve
        for count in (counts_of[0], *counts_of, *(counts_of if n < MANY else ())):
            solution = division.solve(b, fixed=fixed, relative=0.0, max_iterations=count)
            assert solution.iterations == count, solution
            seconds[count].append(solution.seconds)
        few, many = (min(seconds[count][-2 if n < MANY else -1:]) for count in counts_of)
        per_iteration = (many - few) / (counts_of[1] - counts_of[0])
        work, costs = division.work(), exchange_costs(tuple(devices))
        found = {"devices": devices, "cells": counts, "overlap": overlap, "unknowns": n, "exchange": division.exchange}
        found |= {"iteration_s": per_iteration, "divide_s": divided, "work": vars(work), "costs": vars(costs)}
        return found | {"model": dict(choose(work, costs).seconds)}

    def sizes(self, millions, parts):
        """The boxes of cubes near a number of unknowns, whose third side the parts divide."""
        degree = 2 if self._spaces is None else DEGREE
        for size in millions:
            side = max(1, round(((size * 1e6) ** (1 / 3) - 1) / degree))
            yield (side, side, parts * max(1, round(side / parts)))


def coarse_space(arrays, n, matrix):
    """P1 for P2: values at vertices, and means on edges."""
    dofs, nodes = arrays["p2_dofs"], arrays["x_dofs"]
    columns, weights = np.zeros((n, 2), "i4"), np.zeros((n, 2))
    columns[dofs[:, :4], 0], weights[dofs[:, :4], 0] = nodes, 1.0
    for place, ends in enumerate(EDGES):
        columns[dofs[:, 4 + place]], weights[dofs[:, 4 + place]] = nodes[:, ends], 0.5
    used, starts = weights != 0.0, np.concatenate([[0], np.cumsum((weights != 0.0).sum(axis=1))])
    return kingpost.CoarseSpace(matrix, kingpost.Csr(starts, columns[used], weights[used]))


def preconditioned(problem, devices, counts):
    """Solves to 1e-8 by each preconditioner, the second one of two."""
    arrays, owners, n, fixed = box(counts, len(devices))
    division, diagonal = problem.on(devices).divide(owners=owners, u=np.zeros(n), **arrays), np.zeros(n)
    kingpost.jit(form(2, True), devices=devices, matrix="diagonal").divide(like=division)(diagonal)
    p1 = kingpost.jit(form(1, True), devices=devices, matrix="sparse")
    coarse = coarse_space(arrays, n, p1.divide(like=division, p1_dofs=arrays["x_dofs"]).assemble())
    found = {"devices": devices, "unknowns": n, "coarse": coarse.size}
    for name, one in {"jacobi": "jacobi", "chebyshev": "chebyshev", "two levels": coarse}.items():
        given = {"fixed": fixed, "diagonal": diagonal, "preconditioner": one, "relative": 1e-8}
        first, second = (division.solve(np.ones(n), **given) for _ in range(2))
        found[name] = {"iterations": second.iterations, "seconds": second.seconds, "setup": first.setup_seconds}
        of_jacobi = found.setdefault("x", second.x)
        found[name]["from_jacobi"] = float(abs(second.x - of_jacobi).max() / abs(of_jacobi).max())
    del found["x"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="c", help="names, with commas between them")
    parser.add_argument("--cells", default="8x8x8", help="boxes along each side")
    parser.add_argument("--hexahedra", action="store_true", help="Q6 on hexahedra instead of P2 on tetrahedra")
    parser.add_argument("--no-overlap", action="store_true", help="compute each cell once, and exchange what it adds")
    parser.add_argument("--all", action="store_true", help="all numbers of devices, weak and strong; cells are those of all")
    parser.add_argument("--millions", help="times boxes of a number of million unknowns, with commas between them")
    parser.add_argument("--two-levels", action="store_true", help="whole solves by each preconditioner, with UFL")
    parser.add_argument("--form", type=pathlib.Path, help="a file that --write-form wrote, where UFL is missing")
    parser.add_argument("--write-form", type=pathlib.Path, metavar="FILE", help="write the form and end")
    args = parser.parse_args()
    if args.write_form:
        args.write_form.write_text(form())
        return
    if args.hexahedra:
        text = _kingpost.form_json("bp5", 3, DEGREE)
        problem = Problem(text, LINES, json.loads(text)["spaces"])
    else:
        problem = Problem(args.form.read_text() if args.form else form(), None, None)
    devices, counts = args.devices.split(","), tuple(map(int, args.cells.split("x")))
    overlap = not args.no_overlap
    kind = "Q6 hexahedra" if args.hexahedra else "P2 tetrahedra"
    print(json.dumps({"form": kind, "difference": problem.difference(devices, overlap)}), flush=True)
    if args.two_levels:
        print(json.dumps(preconditioned(problem, devices, counts)), flush=True)
        return
    cases = [(devices, counts)]
    if args.millions:
        boxes = list(problem.sizes(map(float, args.millions.split(",")), len(devices)))
        cases = [(devices[:n], box) for box in boxes for n in range(1, len(devices) + 1)]
    elif args.all:
        numbers = range(1, len(devices))
        cases += [(devices[:n], (*counts[:2], counts[2] * n // len(devices))) for n in numbers]
        cases += [(devices[:n], counts) for n in numbers]
        cases += [(devices, (*counts[:2], counts[2] // len(devices)))]
    for some, size in cases:
        print(json.dumps({"form": kind} | problem.timed(some, size, overlap)), flush=True)


if __name__ == "__main__":
    main()
