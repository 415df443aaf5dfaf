"""Iterations of Tables 1 and 2 of Cui et al. 2024 with what the publication leaves open.

Vertex-patch multigrid in NumPy and SciPy, by sparse matrices and dense inverses of patches, apart from
the kernels of this project. Counts the iterations to 1e-9 in two dimensions on 16 cells a side, Q1 to Q8:

    python results/h200/cui_2024_variants.py
"""

import itertools

import numpy as np
import scipy.sparse as sparse

AXES, LEVELS, DEGREES = 2, 4, range(1, 9)


def nodes(k):
    inner = np.polynomial.legendre.Legendre.basis(k).deriv().roots().real if k > 1 else []
    return (np.concatenate([[-1.0], np.sort(inner), [1.0]]) + 1) / 2


def lagrange(at, x):
    values, slopes = np.ones((len(x), len(at))), np.zeros((len(x), len(at)))
    for i, a in enumerate(at):
        others = [b for b in at if b != a]
        p = np.poly1d(others, r=True) / np.prod([a - b for b in others])
        values[:, i], slopes[:, i] = p(x), p.deriv()(x)
    return values, slopes


def side(k, cells):
    """Mass and stiffness matrix and load of a side, boundary left out."""
    x, w = np.polynomial.legendre.leggauss(k + 2)
    values, slopes = lagrange(nodes(k), (x + 1) / 2)
    w, n = w / 2 / cells, k * cells + 1
    mass, stiffness, load = sparse.lil_matrix((n, n)), sparse.lil_matrix((n, n)), np.zeros(n)
    for c in range(cells):
        of = slice(k * c, k * c + k + 1)
        mass[of, of] += values.T @ (w[:, None] * values)
        stiffness[of, of] += slopes.T @ (w[:, None] * slopes) * cells**2
        load[of] += values.T @ w
    return mass.tocsr()[1:-1, 1:-1], stiffness.tocsr()[1:-1, 1:-1], load[1:-1]


def prolongation(k, cells):
    p = sparse.lil_matrix((2 * k * cells + 1, k * cells + 1))
    for c, half in itertools.product(range(cells), range(2)):
        rows = slice(k * (2 * c + half), k * (2 * c + half + 1) + 1)
        p[rows, k * c : k * c + k + 1] = lagrange(nodes(k), (nodes(k) + half) / 2)[0]
    p = p.tocsr()[1:-1, 1:-1]
    return sparse.kron(p, p).tocsr()


class Level:
    def __init__(self, k, level):
        cells = 2**level
        mass, stiffness, load = side(k, cells)
        self.a = (sparse.kron(stiffness, mass) + sparse.kron(mass, stiffness)).tocsr()
        self.b = np.kron(load, load)
        self.p = prolongation(k, cells // 2) if level > 1 else None
        line, width = k * cells - 1, np.arange(2 * k - 1)
        self.colours = []
        for colour in itertools.product((0, 1), repeat=AXES):
            vertices = itertools.product(*[range(1 + bit, cells, 2) for bit in colour])
            patches = [((k * (j - 1) + width)[:, None] * line + k * (i - 1) + width).ravel() for j, i in vertices]
            self.colours.append(np.array(patches) if patches else None)
        first = self.colours[0][0]
        self.inverse = np.linalg.inv(self.a[first][:, first].toarray())

    def smooth(self, x, b, order):
        x = x.copy()
        for colour in order:
            patches = self.colours[colour]
            if patches is not None:
                x[patches] += (b - self.a @ x)[patches] @ self.inverse.T
        return x


def cycle(levels, x, b, before, after):
    finest, coarser = levels[-1], levels[:-1]
    if not coarser:
        return finest.smooth(x, b, range(2**AXES))
    x = finest.smooth(x, b, before)
    r = finest.p.T @ (b - finest.a @ x)
    x = x + finest.p @ cycle(coarser, 0 * r, r, before, after)
    return finest.smooth(x, b, after)


def gmres(a, m, b, left, most=40):
    apply = (lambda v: m(a @ v)) if left else (lambda v: a @ m(v))
    r = m(b) if left else b
    start, v, h = np.linalg.norm(r), [r / np.linalg.norm(r)], np.zeros((most + 1, most))
    for j in range(most):
        w = apply(v[j])
        for i in range(j + 1):
            h[i, j] = w @ v[i]
            w = w - h[i, j] * v[i]
        h[j + 1, j] = np.linalg.norm(w)
        v.append(w / h[j + 1, j])
        e = np.eye(j + 2)[0] * start
        y = np.linalg.lstsq(h[: j + 2, : j + 1], e, rcond=None)[0]
        if np.linalg.norm(e - h[: j + 2, : j + 1] @ y) <= 1e-9 * start:
            return j + 1
    return most


def stationary(levels, x, b, before, after, most=40):
    for j in range(most):
        x = cycle(levels, x, b, before, after)
        if np.linalg.norm(b - levels[-1].a @ x) <= 1e-9 * np.linalg.norm(b):
            return j + 1
    return most


def full(levels, before, after):
    x = levels[0].smooth(0 * levels[0].b, levels[0].b, range(2**AXES))
    for finest in range(1, len(levels)):
        level = levels[finest]
        x = cycle(levels[: finest + 1], level.p @ x, level.b, before, after)
    return stationary(levels, x, levels[-1].b, before, after)


def main():
    orders = {"0123": [0, 1, 2, 3], "3210": [3, 2, 1, 0], "0312": [0, 3, 1, 2], "0132": [0, 1, 3, 2]}
    turns = {"the same": lambda o: (o, o), "backward": lambda o: (o, o[::-1]), "none before": lambda o: ([], o),
             "none after": lambda o: (o, [])}
    hierarchies = [[Level(k, level) for level in range(1, LEVELS + 1)] for k in DEGREES]
    print("| colours | behind the coarser levels | right-hand side | GMRES, left | right | V-cycles | full multigrid |")
    print("|--|--|--|--|--|--|--|")
    for (name, order), (turn, of) in itertools.product(orders.items(), turns.items()):
        before, after = of(order)
        for source in ["f = 1", "ones", "random"]:
            row = [[], [], [], []]
            for levels in hierarchies:
                a, b = levels[-1].a, levels[-1].b
                if source == "ones":
                    b = np.ones_like(b)
                if source == "random":
                    b = np.random.default_rng(1).standard_normal(len(b))
                m = lambda r, levels=levels: cycle(levels, 0 * r, r, before, after)
                row[0].append(gmres(a, m, b, True))
                row[1].append(gmres(a, m, b, False))
                row[2].append(stationary(levels, 0 * b, b, before, after))
                row[3].append(full(levels, before, after) if source == "f = 1" else "–")
            shown = " | ".join(" ".join(map(str, counts)) for counts in row)
            print(f"| {name} | {turn} | {source} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
