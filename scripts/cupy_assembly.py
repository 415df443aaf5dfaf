#!/usr/bin/env python3
"""Times the assembly of Poisson's matrix with CuPy and cuSPARSE, for a comparison.

The meshes are those of `study-trotter-2023`: the unit cube, n^3 cubes of six tetrahedra around the
diagonal, Lagrange elements of degree 1. Two ways are timed, both by device events, the matrices of
cells among it:

coo-to-csr   rows, columns and values of all cells as coordinates, which cuSPARSE sorts and CuPy adds up
             (`cupyx.scipy.sparse.coo_matrix.tocsr`);
lookup       the pattern and the place of each entry are known; `cupyx.scatter_add` adds with atomics.

Each matrix is compared with the products of the matrices of cells. Prints a line of JSON a way.

With --products, products of cuSPARSE are timed instead (`cusparseSpMV`, 32-bit indices, FP64): with this
matrix, and with random entries for three components a vertex, as `study-trotter-2023 blocks` has them.

    python3 scripts/cupy_assembly.py --divisions 60,100
    python3 scripts/cupy_assembly.py --divisions 40,100 --products
"""
import argparse
import itertools
import json
import statistics

import cupy as cp
import cupyx
import cupyx.scipy.sparse as sparse
from cupyx import cusparse


def mesh(n):
    """Vertices `[(n+1)^3, 3]`, x fastest, and cells `[6 n^3, 4]` of Kuhn's subdivision."""
    axis = cp.arange(n + 1) / n
    z, y, x = cp.meshgrid(axis, axis, axis, indexing="ij")
    vertices = cp.stack([x.ravel(), y.ravel(), z.ravel()], axis=1)
    steps = [1, n + 1, (n + 1) ** 2]
    k, j, i = cp.meshgrid(cp.arange(n), cp.arange(n), cp.arange(n), indexing="ij")
    corner = (i + (n + 1) * (j + (n + 1) * k)).reshape(n * n, n)
    cells = []
    for order in itertools.permutations(range(3)):
        path = [corner]
        for a in order:
            path.append(path[-1] + steps[a])
        cells.append(cp.stack(path, axis=-1))
    # in each row of cubes the tetrahedra of one kind follow each other
    return vertices, cp.stack(cells, axis=1).reshape(-1, 4).astype(cp.int32)


def matrices_of_cells(vertices, cells):
    """The matrices of cells `[cells, 4, 4]`."""
    x = vertices[cells]
    jacobian = x[:, 1:] - x[:, :1]  # rows are edges
    a, b, c = jacobian[:, 0], jacobian[:, 1], jacobian[:, 2]
    normals = cp.stack([cp.cross(b, c), cp.cross(c, a), cp.cross(a, b)], axis=1)
    volume = cp.abs(cp.sum(a * normals[:, 0], axis=1))  # six times that of the cell
    gradients = cp.concatenate([-normals.sum(axis=1, keepdims=True), normals], axis=1)
    return cp.einsum("cia,cja->cij", gradients, gradients) / (6 * volume)[:, None, None]


def median_ms(call, runs=9, warm_up=2):
    """Median, shortest and longest time of `call` by device events."""
    times = []
    for k in range(warm_up + runs):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        call()
        end.record()
        end.synchronize()
        if k >= warm_up:
            times.append(cp.cuda.get_elapsed_time(start, end))
    return statistics.median(times), min(times), max(times)


def products(n):
    vertices, cells = mesh(n)
    vertices_n = len(vertices)
    rows, columns = cp.repeat(cells, 4, axis=1).ravel(), cp.tile(cells, (1, 4)).ravel()
    values = matrices_of_cells(vertices, cells).ravel()
    poisson = sparse.coo_matrix((values, (rows, columns)), shape=(vertices_n, vertices_n)).tocsr()
    elastic = sparse.kron(poisson, cp.ones((3, 3)), format="csr")
    elastic.data = cp.random.default_rng().random(elastic.nnz)
    for name, matrix in [("poisson", poisson), ("hyperelasticity", elastic)]:
        matrix.sort_indices()
        x = cp.random.default_rng().random(matrix.shape[1])
        y = cp.zeros(matrix.shape[0])
        # the sum of a row's products, by a prefix sum: no product of cuSPARSE
        sums = cp.concatenate([cp.zeros(1), cp.cumsum(matrix.data * x[matrix.indices])])
        expected = sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]]
        cusparse.spmv(matrix, x, y)
        error = float(cp.abs(y - expected).max() / cp.abs(expected).max())
        assert error < 1e-7, (name, error)  # the prefix sum loses digits
        many = 20  # the host prepares one while the card computes another
        median, least, most = median_ms(lambda: [cusparse.spmv(matrix, x, y) for _ in range(many)])
        print(json.dumps({
            "divisions": n, "degree": 1, "matrix": name, "unknowns": matrix.shape[0], "entries": matrix.nnz,
            "way": "cusparse-product", "cupy": cp.__version__,
            "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(),
            "median_s": median * 1e-3 / many, "min_s": least * 1e-3 / many, "max_s": most * 1e-3 / many,
            "runs": 9, "product_error": error,
        }), flush=True)


def measure(n):
    vertices, cells = mesh(n)
    unknowns = len(vertices)
    rows = cp.repeat(cells, 4, axis=1).ravel()
    columns = cp.tile(cells, (1, 4)).ravel()

    def coo_to_csr():
        values = matrices_of_cells(vertices, cells).ravel()
        return sparse.coo_matrix((values, (rows, columns)), shape=(unknowns, unknowns)).tocsr()

    keys, places = cp.unique(rows.astype(cp.int64) * unknowns + columns, return_inverse=True)
    places = places.astype(cp.int32)
    entries = cp.empty(len(keys))

    def lookup():
        entries.fill(0)
        cupyx.scatter_add(entries, places, matrices_of_cells(vertices, cells).ravel())
        return entries

    x = cp.random.default_rng().random(unknowns)
    expected = cp.zeros(unknowns)
    cupyx.scatter_add(expected, cells, cp.einsum("cij,cj->ci", matrices_of_cells(vertices, cells), x[cells]))
    row_starts = cp.searchsorted(keys // unknowns, cp.arange(unknowns + 1)).astype(cp.int32)
    pattern = ((keys % unknowns).astype(cp.int32), row_starts)
    found = {
        "coo-to-csr": coo_to_csr() @ x,
        "lookup": sparse.csr_matrix((lookup(), *pattern), shape=(unknowns, unknowns)) @ x,
    }
    for way, call in [("coo-to-csr", coo_to_csr), ("lookup", lookup)]:
        error = float(cp.abs(found[way] - expected).max() / cp.abs(expected).max())
        assert error < 1e-12, (way, error)
        median, least, most = median_ms(call)
        print(json.dumps({
            "divisions": n, "degree": 1, "unknowns": unknowns, "way": way, "cupy": cp.__version__,
            "device": cp.cuda.runtime.getDeviceProperties(0)["name"].decode(), "median_s": median * 1e-3,
            "min_s": least * 1e-3, "max_s": most * 1e-3, "runs": 9, "product_error": error,
            "mdof_s": unknowns / median * 1e-3,
        }), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--divisions", default="60,100", help="divisions of a side, by commas")
    parser.add_argument("--products", action="store_true", help="time products of cuSPARSE instead")
    args = parser.parse_args()
    for n in args.divisions.split(","):
        (products if args.products else measure)(int(n))
