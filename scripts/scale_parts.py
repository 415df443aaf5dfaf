#!/usr/bin/env python3
"""Times conjugate gradients for Poisson's equation, P2 on tetrahedra, on one device or several.

    python3 scripts/scale_parts.py --devices cuda:0,cuda:1 --cells 107x107x214
    python3 scripts/scale_parts.py --write-form poisson.json    # where UFL is
    python3 scripts/scale_parts.py --devices cuda:0 --cells 107x107x107 --form poisson.json

A box of boxes, six tetrahedra each, is divided in slabs along its third side, one a device. Two numbers of
iterations are timed twice each, and the difference of the shortest times counts: setup and copies fall out. The
action is compared with that of one device, `c`, on a small box first. A line of JSON is printed.
"""

import argparse
import itertools
import json
import pathlib
import time

import numpy as np
import kingpost

ITERATIONS = (96, 288)
#: The corners of the edges of a tetrahedron in basix's order.
EDGES = [(2, 3), (1, 3), (1, 2), (0, 3), (0, 2), (0, 1)]


def form():
    import ufl
    from basix.ufl import element
    from kingpost.export import dumps, export_form

    mesh = ufl.Mesh(element("Lagrange", "tetrahedron", 1, shape=(3,)))
    space = ufl.FunctionSpace(mesh, element("Lagrange", "tetrahedron", 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    return dumps(export_form(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, names={u: "u"}))


def box(counts, parts):
    """The arrays of a box, the part of each cell, and the degrees of freedom where x is 0 or 1. Degrees of freedom
    are numbered as the points of a grid with two intervals a box."""
    fine, coarse = [2 * n + 1 for n in counts], [n + 1 for n in counts]
    number = lambda at, shape: at[0] + shape[0] * (at[1] + shape[1] * at[2])  # noqa: E731
    k, j, i = np.meshgrid(*[np.arange(n, dtype="i4") for n in reversed(counts)], indexing="ij")
    at = np.stack([i.ravel(), j.ravel(), k.ravel()])
    dofs = np.empty((at.shape[1], 6, 10), "i4")
    nodes = np.empty((at.shape[1], 6, 4), "i4")
    for cell, order in enumerate(itertools.permutations(range(3))):
        corners = [np.zeros(3, int)]
        for axis in order:
            corners.append(corners[-1] + np.eye(3, dtype=int)[axis])
        points = [2 * corner for corner in corners] + [corners[a] + corners[b] for a, b in EDGES]
        for column, corner in enumerate(corners):
            nodes[:, cell, column] = number(at, coarse) + number(corner, coarse)
        for column, point in enumerate(points):
            dofs[:, cell, column] = number(2 * at, fine) + number(point, fine)
    # cubes of the first side's length
    z, y, x = np.meshgrid(*[np.arange(n) / counts[0] for n in reversed(coarse)], indexing="ij")
    owners = np.repeat((at[2].astype("i8") * parts // counts[2]).astype("i4"), 6)
    n = int(np.prod(fine))
    along = np.arange(n) % fine[0]
    arrays = {"x": np.stack([x.ravel(), y.ravel(), z.ravel()], axis=1), "x_dofs": nodes.reshape(-1, 4)}
    arrays["p2_dofs"] = dofs.reshape(-1, 10)
    return arrays, owners, n, np.flatnonzero((along == 0) | (along == fine[0] - 1))


def difference(text, devices):
    """The largest difference of an action from that of one device, relative to its largest entry."""
    arrays, owners, n, _ = box((6, 6, 12), len(devices))
    u = np.random.default_rng(1).standard_normal(n)
    one, several = np.zeros(n), np.zeros(n)
    kingpost.jit(text, "c")(one, u=u, **arrays)
    kingpost.jit(text, devices=devices).divide(owners=owners, u=u, **arrays)(several)
    return float(abs(one - several).max() / abs(one).max())


def timed(text, devices, counts):
    arrays, owners, n, fixed = box(counts, len(devices))
    start = time.perf_counter()
    division = kingpost.jit(text, devices=devices).divide(owners=owners, u=np.zeros(n), **arrays)
    divided = time.perf_counter() - start
    b = np.sin(np.arange(n))
    seconds = {count: [] for count in ITERATIONS}
    # cards load and record kernels in the first solve
    for count in (ITERATIONS[0], *ITERATIONS, *ITERATIONS):
        solution = division.solve(b, fixed=fixed, relative=0.0, max_iterations=count)
        assert solution.iterations == count, solution
        seconds[count].append(solution.seconds)
    few, many = (min(seconds[count][-2:]) for count in ITERATIONS)
    per_iteration = (many - few) / (ITERATIONS[1] - ITERATIONS[0])
    return {"unknowns": n, "exchange": division.exchange, "iteration_s": per_iteration, "divide_s": divided}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="c", help="names, with commas between them")
    parser.add_argument("--cells", default="8x8x8", help="boxes along each side")
    parser.add_argument("--form", type=pathlib.Path, help="a file that --write-form wrote, where UFL is missing")
    parser.add_argument("--write-form", type=pathlib.Path, metavar="FILE", help="write the form and end")
    args = parser.parse_args()
    if args.write_form:
        args.write_form.write_text(form())
        return
    text = args.form.read_text() if args.form else form()
    devices, counts = args.devices.split(","), tuple(map(int, args.cells.split("x")))
    found = {"devices": devices, "cells": counts, "difference": difference(text, devices)}
    print(json.dumps(found | timed(text, devices, counts)))


if __name__ == "__main__":
    main()
