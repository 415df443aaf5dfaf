"""Iterations of Table 3 of Cui et al. 2024 with what the publication leaves open: point Gauss-Seidel.

Multigrid in NumPy and SciPy by sparse matrices, apart from the kernels of this project: orders of the
points, steps a cycle, what solves. Counts the iterations to 1e-9 in three dimensions on 4 cells a side
(2 with --levels 1), Q1 to Q8, for f = 1:

    python results/h200/cui_2024_points.py
"""

import itertools
import sys

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

from cui_2024_variants import gmres, lagrange, nodes, side


def prolongation(k, cells):
    p = sparse.lil_matrix((2 * k * cells + 1, k * cells + 1))
    for c, half in itertools.product(range(cells), range(2)):
        rows = slice(k * (2 * c + half), k * (2 * c + half + 1) + 1)
        p[rows, k * c : k * c + k + 1] = lagrange(nodes(k), (nodes(k) + half) / 2)[0]
    p = p.tocsr()[1:-1, 1:-1]
    return sparse.kron(sparse.kron(p, p), p).tocsr()


def orders(k, cells):
    """Orders of the inner nodes, x fastest."""
    line = k * cells - 1
    at = np.stack(np.meshgrid(*[np.arange(1, k * cells)] * 3, indexing="ij")[::-1], axis=-1).reshape(-1, 3)
    numbers = np.arange(line**3)
    # that of this project: the first patch that a node lies inside of, by colour and place in the patch
    odd, place = [], []
    for axis in range(3):
        between = at[:, axis] % (2 * k) == 0
        odd.append(between.astype(int))
        place.append(np.where(between, k, at[:, axis] % (2 * k)))
    keys = [*place, *odd] if cells > 2 else place
    cell = [(at[:, axis] - (at[:, axis] % k == 0)) // k for axis in range(3)]
    return {
        "lexicographic": numbers,
        "patches": np.lexsort([numbers, *keys]),
        "cells": np.lexsort([numbers, *cell]),
        "vertices, edges, faces, cells": np.lexsort([numbers, sum((at % k != 0).T.astype(int))]),
        "random": np.random.default_rng(1).permutation(numbers),
    }


class Level:
    def __init__(self, k, level):
        cells = 2**level
        m, s, load = side(k, cells)
        self.a = (
            sparse.kron(sparse.kron(s, m), m)
            + sparse.kron(sparse.kron(m, s), m)
            + sparse.kron(sparse.kron(m, m), s)
        ).tocsr()
        self.b = np.kron(np.kron(load, load), load)
        self.p = prolongation(k, cells // 2) if level > 1 else None
        self.orders = orders(k, cells)
        self.exact = splu(self.a.tocsc()).solve if level == 1 else None

    def choose(self, name):
        if name == "Jacobi, 0.5":
            diagonal = self.a.diagonal()
            self.step = self.back = lambda r: 0.5 * r / diagonal
            return
        order = self.orders[name]
        permuted = self.a[order][:, order]
        def solver(part):
            lu = splu(part(permuted, format="csc"), permc_spec="NATURAL", diag_pivot_thresh=0.0)
            def solve(r):
                x = np.empty_like(r)
                x[order] = lu.solve(r[order])
                return x
            return solve
        self.step, self.back = solver(sparse.tril), solver(sparse.triu)

    def smooth(self, x, b, back=False):
        return x + (self.back if back else self.step)(b - self.a @ x)


def cycle(levels, x, b, before, after):
    finest, coarser = levels[-1], levels[:-1]
    if not coarser:
        return finest.exact(b)
    for _ in range(before):
        x = finest.smooth(x, b)
    r = finest.p.T @ (b - finest.a @ x)
    x = x + finest.p @ cycle(coarser, 0 * r, r, before, after)
    for back in after:
        x = finest.smooth(x, b, back)
    return x


def stationary(levels, x, b, most=99, **turns):
    for j in range(most):
        x = cycle(levels, x, b, **turns)
        if np.linalg.norm(b - levels[-1].a @ x) <= 1e-9 * np.linalg.norm(b):
            return j + 1
    return most


def full(levels, **turns):
    x = levels[0].exact(levels[0].b)
    for finest in range(1, len(levels)):
        level = levels[finest]
        x = cycle(levels[: finest + 1], level.p @ x, level.b, **turns)
    return stationary(levels, x, levels[-1].b, **turns)


def main():
    top = int(sys.argv[sys.argv.index("--levels") + 1]) if "--levels" in sys.argv else 2
    degrees = [int(k) for k in sys.argv[sys.argv.index("--degrees") + 1].split(",")] if "--degrees" in sys.argv else range(1, 9)
    names = ["lexicographic", "patches", "cells", "vertices, edges, faces, cells", "random", "Jacobi, 0.5"]
    turns = {"one and one": (1, [False]), "one, one backward": (1, [True]), "none, one": (0, [False]), "two and two": (2, [False] * 2)}
    print("| order | steps before and after | k | GMRES, left | right | V-cycles | full multigrid |")
    print("|--|--|--:|--:|--:|--:|--:|")
    for k in degrees:
        levels = [Level(k, level) for level in range(1, top + 1)]
        a, b = levels[-1].a, levels[-1].b
        for name in names:
            for level in levels[1:]:
                level.choose(name)
            for turn, (before, after) in turns.items():
                of = {"before": before, "after": after}
                m = lambda r: cycle(levels, 0 * r, r, **of)
                counts = [gmres(a, m, b, True, 60), gmres(a, m, b, False, 60), stationary(levels, 0 * b, b, **of), full(levels, **of)]
                print(f"| {name} | {turn} | {k} | " + " | ".join(map(str, counts)) + " |", flush=True)


if __name__ == "__main__":
    main()
