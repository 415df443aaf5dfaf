"""Solves the problem of `kingpost solve poisson --multigrid` by algebraic multigrid of PyAMG.

Usage: python3 scripts/poisson_amg.py DIM DEGREE CELLS [sa|rs] [RUNS]

Poisson's equation with a source of 1 on the unit square or cube, Q_k elements with Gauss-Lobatto
nodes, zero at the boundary, to 1e-9 of the residual at the start. Needs NumPy, SciPy and PyAMG.
Prints a line: method, unknowns, entries, setup s, solve s (median), iterations, residual.
"""

import sys
import time

import numpy as np
import pyamg
import scipy.sparse as sp


def lobatto(n):
    """Points of n Gauss-Lobatto nodes on 0..1."""
    inner = np.polynomial.legendre.Legendre.basis(n - 1).deriv().roots() if n > 2 else []
    return 0.5 * (np.concatenate([[-1.0], np.real(inner), [1.0]]) + 1.0)


def cell_matrices(k):
    """Mass matrix, stiffness matrix and integrals of a cell of length 1."""
    nodes = lobatto(k + 1)
    x, w = np.polynomial.legendre.leggauss(k + 1)
    x, w = 0.5 * (x + 1.0), 0.5 * w
    basis = [np.polynomial.Polynomial.fromroots(np.delete(nodes, i)) for i in range(k + 1)]
    basis = [p / p(nodes[i]) for i, p in enumerate(basis)]
    values = np.array([p(x) for p in basis])
    slopes = np.array([p.deriv()(x) for p in basis])
    return values * w @ values.T, slopes * w @ slopes.T, values @ w


def side(cell, k, cells):
    """The matrix of a side of cells, without its ends."""
    n = k * cells + 1
    at = (k * np.arange(cells)[:, None, None], np.arange(k + 1)[None, :, None], np.arange(k + 1)[None, None, :])
    rows, columns = np.broadcast_arrays(at[0] + at[1], at[0] + at[2])
    entries = np.broadcast_to(cell, rows.shape)
    whole = sp.csr_array((entries.ravel(), (rows.ravel(), columns.ravel())), shape=(n, n))
    return whole[1:-1, 1:-1]


def problem(dim, k, cells):
    """The sparse matrix and the right-hand side."""
    h = 1.0 / cells
    mass, stiffness, integrals = cell_matrices(k)
    m, a = side(h * mass, k, cells), side(stiffness / h, k, cells)
    line = np.zeros(k * cells + 1)
    for c in range(cells):
        line[k * c : k * c + k + 1] += h * integrals
    matrix, b = None, np.ones(1)
    for axis in range(dim):
        factors = [a if other == axis else m for other in range(dim)]
        product = factors[0]
        for factor in factors[1:]:
            product = sp.kron(product, factor, format="csr")
        matrix = product if matrix is None else matrix + product
        b = np.kron(b, line[1:-1])
    return sp.csr_matrix(matrix), b


def main():
    dim, k, cells = map(int, sys.argv[1:4])
    method = sys.argv[4] if len(sys.argv) > 4 else "sa"
    runs = int(sys.argv[5]) if len(sys.argv) > 5 else 3
    matrix, b = problem(dim, k, cells)
    setup = {
        "sa": pyamg.smoothed_aggregation_solver,
        "rs": pyamg.ruge_stuben_solver,
    }[method]
    begin = time.perf_counter()
    solver = setup(matrix)
    setup_s = time.perf_counter() - begin
    seconds = []
    for _ in range(runs + 1):
        residuals = []
        begin = time.perf_counter()
        x = solver.solve(b, tol=1e-9, accel="cg", maxiter=500, residuals=residuals)
        seconds.append(time.perf_counter() - begin)
    residual = np.linalg.norm(b - matrix @ x) / np.linalg.norm(b)
    print(
        f"{method} d{dim} Q{k} cells {cells}: {matrix.shape[0]} unknowns, {matrix.nnz} entries, "
        f"setup {setup_s:.3f} s, solve {np.median(seconds[1:]):.3f} s, {len(residuals) - 1} iterations, "
        f"residual {residual:.2e}, centre {x[x.size // 2]:.12f}"
    )


if __name__ == "__main__":
    main()
