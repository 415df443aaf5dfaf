"""Iterations of mixed precision at degree 7 if patches were contracted in TF32.

Vertex-patch multigrid in three dimensions in NumPy, apart from the kernels of this project. GMRES in
double precision around a V-cycle from the right, to 1e-9 of the start; factors of the contractions on patches
are rounded to 11 bits and added up in single precision, as the matrix instructions for TF32 do:

    python results/h200/cui_2024_tf32.py
"""

import itertools
import sys

import numpy as np
import scipy.linalg

from cui_2024_variants import gmres, lagrange, nodes


def tf32(x):
    """To the nearest number with 11 bits, ties to even."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x0FFF + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)
    return rounded.view(np.float32)


def double(x):
    return np.asarray(x, dtype=np.float64)


def single(x):
    return np.asarray(x, dtype=np.float32)


def along(matrix, x, axis, by=double):
    """The product along an axis, factors rounded so."""
    return np.moveaxis(np.tensordot(by(matrix), by(x), (1, axis)), 0, axis)


def split(matrix, x, axis):
    """Three products of TF32, so that what is rounded off counts once more."""
    m, y = single(matrix), single(x)
    mh, yh = tf32(m), tf32(y)
    of = lambda a, b: along(a, b, axis, tf32)
    return of(mh, yh) + (of(mh, y - yh) + of(m - mh, yh))


class Level:
    def __init__(self, k, level, kind, by, solve_by):
        self.cells, self.k, self.kind = 2**level, k, kind
        x, w = np.polynomial.legendre.leggauss(k + 2)
        values, slopes = lagrange(nodes(k), (x + 1) / 2)
        mass, stiffness = [t.T @ (w[:, None] / 2 * t) for t in (values, slopes)]
        n, h = k * self.cells + 1, 1 / self.cells
        self.m, self.s = np.zeros((n, n)), np.zeros((n, n))
        self.load = np.zeros(n)
        for c in range(self.cells):
            of = slice(k * c, k * c + k + 1)
            self.m[of, of] += h * mass
            self.s[of, of] += stiffness / h
            self.load[of] += h * (values.T @ w) / 2
        patch = slice(0, 2 * k + 1)
        self.pm, self.ps = self.m[patch, patch].copy(), self.s[patch, patch].copy()
        if self.cells > 2:
            for of in (self.pm, self.ps):
                of[-1, -1] /= 2
        self.lam, self.v = scipy.linalg.eigh(self.ps[1:-1, 1:-1], self.pm[1:-1, 1:-1])
        self.p = np.zeros((n, k * self.cells // 2 + 1))
        for c, half in itertools.product(range(self.cells // 2), range(2)):
            rows = slice(k * (2 * c + half), k * (2 * c + half + 1) + 1)
            self.p[rows, k * c : k * c + k + 1] = lagrange(nodes(k), (nodes(k) + half) / 2)[0]
        self.by, self.solve_by = by, solve_by

    def apply(self, x, by):
        m, s = [lambda y, a, t=t: along(t, y, a, by) for t in (self.m, self.s)]
        y = s(m(m(x, 0), 1), 2) + m(s(m(x, 0), 1) + m(s(x, 0), 1), 2)
        return inner(y)

    def smooth(self, x, b):
        k, first = self.k, np.arange(2 * self.k + 1)
        for colour in itertools.product((0, 1), repeat=3):
            starts = [np.arange(bit, self.cells - 1, 2) for bit in colour]
            if any(len(s) == 0 for s in starts):
                continue
            at = np.stack(np.meshgrid(*starts, indexing="ij"), -1).reshape(-1, 3)
            z, y, w = [k * at[:, a, None] + first for a in range(3)]
            place = (z[:, :, None, None], y[:, None, :, None], w[:, None, None, :])
            inside = tuple(p[tuple(slice(None) if n == 1 else slice(1, -1) for n in p.shape)] for p in place)
            inside = (z[:, 1:-1, None, None], y[:, None, 1:-1, None], w[:, None, None, 1:-1])
            u, f, d = x[place], self.by, self.solve_by
            m, s = self.pm[1:-1], self.ps[1:-1]
            mu, su = f(m, u, 3), f(s, u, 3)
            r = b[inside] - (f(m, f(m, su, 2) + f(s, mu, 2), 1) + f(s, f(m, mu, 2), 1))
            t = d(self.v.T, d(self.v.T, d(self.v.T, r, 1), 2), 3)
            lam = self.lam
            t = t / self.kind(lam[:, None, None] + lam[None, :, None] + lam[None, None, :])
            x[inside] += d(self.v, d(self.v, d(self.v, t, 3), 2), 1)
        return x


def inner(y):
    z = np.zeros_like(y)
    z[1:-1, 1:-1, 1:-1] = y[1:-1, 1:-1, 1:-1]
    return z


def cycle(levels, b):
    top = levels[-1]
    x = top.smooth(np.zeros_like(b), b)
    if len(levels) == 1:
        return x
    r = b - top.apply(x, top.kind)
    for axis in range(3):
        r = along(top.p.T, r, axis, top.kind)
    e = cycle(levels[:-1], inner(r))
    for axis in range(3):
        e = along(top.p, e, axis, top.kind)
    return top.smooth(x + inner(e), b)


def main():
    k, top = (int(x) for x in (sys.argv[1:] or ["7", "3"]))
    in_double = lambda m, x, a: along(m, x, a, double)
    in_single = lambda m, x, a: along(m, x, a, single)
    in_tf32 = lambda m, x, a: along(m, x, a, tf32)
    kinds = {
        "double": (double, in_double, in_double),
        "single": (single, in_single, in_single),
        "TF32": (single, in_tf32, in_tf32),
        "TF32 in the local solver, single in the residual": (single, in_single, in_tf32),
        "TF32, three products each": (single, split, split),
    }
    for name, (kind, by, solve_by) in kinds.items():
        levels = [Level(k, level, kind, by, solve_by) for level in range(1, top + 1)]
        n = k * levels[-1].cells + 1
        load = levels[-1].load
        source = inner(load[:, None, None] * load[None, :, None] * load[None, None, :])
        noise = inner(np.random.default_rng(1).standard_normal((n, n, n)))
        a = Operator(lambda v: levels[-1].apply(v.reshape(n, n, n), double).ravel())
        m = lambda r: double(cycle(levels, kind(r.reshape(n, n, n) / np.abs(r).max()))).ravel() * np.abs(r).max()
        counts = [gmres(a, m, b.ravel(), False, 25) for b in (source, noise)]
        print(f"Q{k}, {levels[-1].cells} cells a side, {name}: {counts[0]} iterations for f = 1, {counts[1]} for noise", flush=True)


class Operator:
    def __init__(self, of):
        self.of = of

    def __matmul__(self, v):
        return self.of(v)


if __name__ == "__main__":
    main()
