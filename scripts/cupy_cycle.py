#!/usr/bin/env python3
"""Times the V-cycle of a hierarchy that `study cycle --write FOLDER` wrote with the products of cuSPARSE.

    python3 scripts/cupy_cycle.py FOLDER
    python3 scripts/cupy_cycle.py FOLDER --format fastest --without-zeros
    python3 scripts/cupy_cycle.py FOLDER --pyamg

The cycle has two steps of Chebyshev's iteration before and after each coarser level, and the inverse of the
coarsest matrix. Vectors between products are updated by one fused kernel of CuPy's a step. The result is compared
with that of Kingpost. CuPy captures no cuSPARSE in a graph, so that the library is called directly: each product
has its description, its memory and what `cusparseSpMV_preprocess` finds, and the whole cycle is one graph. Matrices are
by rows, or in slices of 32 rows (sliced ELL), or in whatever is faster for each product. With
--pyamg the same system is solved by PyAMG on the host: levels, cycles alone and iterations of conjugate gradients,
to 1e-8, and by cycles of the hierarchy of the files. Each run prints a line of JSON.
"""

import argparse
import ctypes
import json
import pathlib

import numpy as np

RELATIVE = 1e-8
REAL, INDEX = 1, 2  # CUDA_R_64F, CUSPARSE_INDEX_32I
ALGORITHMS = {"default": 0, "csr_1": 2, "csr_2": 3}  # cusparseSpMVAlg_t
FORMATS = ("csr", "sliced", "fastest")
SLICE = 32


def read(folder, name, kind):
    return np.fromfile(folder / f"{name}.{kind}", dtype={"i32": "<i4", "f64": "<f8"}[kind])


def rows(folder, name, columns, sparse):
    starts = read(folder, f"{name}_starts", "i32")
    parts = (read(folder, f"{name}_values", "f64"), read(folder, f"{name}_columns", "i32"), starts)
    return sparse.csr_matrix(parts, shape=(len(starts) - 1, columns))


def hierarchy(folder, sparse):
    levels = json.loads((folder / "levels.json").read_text())
    sizes = [level["rows"] for level in levels]
    matrices = [rows(folder, f"a{k}", n, sparse) for k, n in enumerate(sizes)]
    interpolations = [rows(folder, f"p{k}", n, sparse) for k, n in enumerate(sizes[1:])]
    return levels, matrices, interpolations


def factors(least, largest):
    """Of the residual in the first step, of the residual and of the direction in the second (Saad 2003, 12.1)."""
    middle, half = (largest + least) / 2, (largest - least) / 2
    sigma = middle / half
    rho = half / middle
    following = 1 / (2 * sigma - rho)
    return 1 / middle, 2 * following / half, following * rho


def slices(cp, matrix):
    """Where slices of rows start, and columns and values, those of a slice side by side."""
    starts, columns, values = (array.get() for array in (matrix.indptr, matrix.indices, matrix.data))
    rows, lengths = matrix.shape[0], np.diff(starts)
    count = -(-rows // SLICE)
    widths = np.pad(lengths, (0, count * SLICE - rows)).reshape(count, SLICE).max(axis=1)
    first = np.concatenate([[0], np.cumsum(SLICE * widths)])
    row = np.repeat(np.arange(rows), lengths)
    place = first[row // SLICE] + SLICE * (np.arange(len(columns)) - starts[row]) + row % SLICE
    at, entries = np.full(first[-1], -1, np.int32), np.zeros(first[-1])
    at[place], entries[place] = columns, values
    return cp.asarray(first.astype(np.int32)), cp.asarray(at), cp.asarray(entries)


class CuSparse:
    """Products by cusparseSpMV, called without CuPy, which refuses to be captured."""

    def __init__(self, cp, algorithm, form="csr"):
        import cupyx.cusparse  # loads the library

        del cupyx
        loaded = pathlib.Path("/proc/self/maps").read_text().split()
        self.library = ctypes.CDLL(next(path for path in loaded if "libcusparse.so" in path))
        self.cp, self.algorithm, self.form = cp, algorithm, form
        self.handle = ctypes.c_void_p()
        self.call("cusparseCreate", ctypes.byref(self.handle))
        self.one, self.zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
        self.plans = {}

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        assert status == 0, f"{name} returned {status}"

    def on_stream(self, stream):
        self.call("cusparseSetStream", self.handle, ctypes.c_void_p(stream.ptr))

    def fastest(self, matrix, x, y, beta):
        plans = [self.plan(matrix, x, y, beta, form) for form in FORMATS[:2] if self.form in (form, FORMATS[2])]
        if len(plans) == 1:
            return plans[0]
        kept = y.copy()
        run = lambda plan: lambda: self.call("cusparseSpMV", *plan[0])
        times = [median_ms(self.cp, run(plan), 5) for plan in plans]
        y[...] = kept
        return plans[times.index(min(times))]

    def plan(self, matrix, x, y, beta, form):
        described, of_x, of_y = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        at = lambda array: ctypes.c_void_p(array.data.ptr)
        long = ctypes.c_int64
        (rows, columns), entries = matrix.shape, matrix.nnz
        sizes = [long(rows), long(columns), long(entries)]
        if form == "sliced":
            arrays, algorithm = slices(self.cp, matrix), 0
            create, sizes = "cusparseCreateSlicedEll", [*sizes, long(arrays[1].size), long(SLICE)]
        else:
            arrays, algorithm = (matrix.indptr, matrix.indices, matrix.data), self.algorithm
            create = "cusparseCreateCsr"
        lists = [at(a) for a in arrays]
        self.call(create, ctypes.byref(described), *sizes, *lists, INDEX, INDEX, 0, REAL)
        self.call("cusparseCreateDnVec", ctypes.byref(of_x), long(columns), at(x), REAL)
        self.call("cusparseCreateDnVec", ctypes.byref(of_y), long(rows), at(y), REAL)
        factors = [ctypes.byref(self.one), described, of_x, ctypes.byref(self.one if beta else self.zero), of_y]
        arguments = [self.handle, 0, *factors, REAL, algorithm]
        size = ctypes.c_size_t()
        self.call("cusparseSpMV_bufferSize", *arguments, ctypes.byref(size))
        memory = self.cp.empty(max(size.value, 8), self.cp.int8)
        arguments.append(at(memory))
        if form == "csr" and hasattr(self.library, "cusparseSpMV_preprocess"):
            self.call("cusparseSpMV_preprocess", *arguments)
        return arguments, memory, arrays

    def product(self, matrix, x, y, beta):
        """`y = matrix x + beta y`."""
        key = (id(matrix), x.data.ptr, y.data.ptr)
        if key not in self.plans:
            self.plans[key] = self.fastest(matrix, x, y, beta)
        self.call("cusparseSpMV", *self.plans[key][0])


class Cycle:
    """A V-cycle by cuSPARSE."""

    def __init__(self, folder, chosen):
        import cupy as cp
        from cupyx.scipy import sparse
        from scipy import sparse as of_host

        self.cp, self.cusparse = cp, CuSparse(cp, ALGORITHMS[chosen.algorithm], chosen.format)
        levels, matrices, interpolations = hierarchy(folder, of_host)
        for k, p in enumerate(interpolations):
            assert abs(p.T @ (matrices[k] @ p) - matrices[k + 1]).max() <= 1e-10 * abs(matrices[k + 1]).max()
        self.factors = [factors(*level["smoothed"]) for level in levels[:-1]]
        self.inverse = [cp.asarray(read(folder, f"inverse{k}", "f64")) for k in range(len(levels) - 1)]
        self.coarsest = sparse.csr_matrix(of_host.csr_matrix(np.linalg.inv(matrices[-1].toarray())))

        def on_card(matrix):
            rows = matrix.tocsr()
            if chosen.without_zeros:
                rows.eliminate_zeros()
            return sparse.csr_matrix(rows)

        self.a = [on_card(matrix) for matrix in matrices]
        self.p = [on_card(p) for p in interpolations]
        self.r = [on_card(p.T) for p in interpolations]
        vectors = lambda: [cp.zeros(level["rows"]) for level in levels]
        self.b, self.x, self.q, self.d, self.res = vectors(), vectors(), vectors(), vectors(), vectors()
        kernel = lambda what, to, code, name: cp.ElementwiseKernel(what, to, code, name)
        self.start = kernel("float64 inv, float64 b, float64 a", "float64 r, float64 d, float64 x",
                            "r = b; d = a*inv*b; x = d;", "start")
        self.restart = kernel("float64 inv, float64 b, float64 q, float64 a", "float64 r, float64 d, float64 x",
                              "r = b - q; d = a*inv*r; x = x + d;", "restart")
        self.step = kernel("float64 inv, float64 q, float64 a, float64 c", "float64 r, float64 d, float64 x",
                           "r = r - q; d = a*inv*r + c*d; x = x + d;", "step")
        self.subtract = kernel("float64 b, float64 q", "float64 r", "r = b - q;", "subtract")

    def product(self, matrix, x, y, beta):
        self.cusparse.product(matrix, x, y, beta)

    def run(self, k=0):
        if k == len(self.p):
            return self.product(self.coarsest, self.b[k], self.x[k], False)
        (first, a, c), i = self.factors[k], self.inverse[k]
        b, x, q, d, r = self.b[k], self.x[k], self.q[k], self.d[k], self.res[k]
        self.start(i, b, first, r, d, x)
        self.product(self.a[k], d, q, False)
        self.step(i, q, a, c, r, d, x)
        self.product(self.a[k], x, q, False)
        self.subtract(b, q, r)
        self.product(self.r[k], r, self.b[k + 1], False)
        self.run(k + 1)
        self.product(self.p[k], self.x[k + 1], x, True)
        self.product(self.a[k], x, q, False)
        self.restart(i, b, q, first, r, d, x)
        self.product(self.a[k], d, q, False)
        self.step(i, q, a, c, r, d, x)


def median_ms(cp, run, runs=25):
    for _ in range(3):
        run()
    times = []
    for _ in range(runs):
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(begin, end))
    return sorted(times)[len(times) // 2]


def captured(stream, run):
    """What launches a graph of the calls."""
    stream.begin_capture()
    run()
    graph = stream.end_capture()
    return lambda: graph.launch(stream)


def on_card(folder, chosen):
    import cupy as cp

    cycle = Cycle(folder, chosen)
    cycle.b[0][...] = cp.asarray(read(folder, "b", "f64"))
    expected = cp.asarray(read(folder, "cycle", "f64"))
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)
    cycle.cusparse.on_stream(stream)
    with stream:
        cycle.run()
        launched = median_ms(cp, cycle.run)
        graph = captured(stream, cycle.run)
        cycle.x[0].fill(float("nan"))
        in_graph = median_ms(cp, graph)
        error = float(cp.abs(cycle.x[0] - expected).max() / cp.abs(expected).max())
        # sums of entries in another order, over all levels
        assert error <= 1e-9, f"the cycles differ by {error:.1e} of the largest number"
        products = {
            name: median_ms(cp, captured(stream, lambda: cycle.product(matrix, x, y, False)))
            for name, matrix, x, y in [
                ("product", cycle.a[0], cycle.d[0], cycle.q[0]),
                ("restriction", cycle.r[0], cycle.res[0], cycle.b[1]),
            ]
        }
    how = {"algorithm": chosen.algorithm, "format": chosen.format, "without_zeros": chosen.without_zeros}
    found = {**how, "cusparse_cycle_ms": in_graph, "without_graph_ms": launched, "error": error}
    return {**found, **{f"{k}_ms": ms for k, ms in products.items()}}


def own_cycles(folder, sparse):
    """Cycles of the hierarchy of the files alone, by SciPy."""
    levels, matrices, interpolations = hierarchy(folder, sparse)
    inverses = [read(folder, f"inverse{k}", "f64") for k in range(len(interpolations))]

    def smooth(k, b, x, r):
        first, a, c = factors(*levels[k]["smoothed"])
        d = first * inverses[k] * r
        r = r - matrices[k] @ d
        return x + d + a * inverses[k] * r + c * d

    def cycle(k, b):
        if k == len(interpolations):
            return np.linalg.solve(matrices[k].toarray(), b)
        x = smooth(k, b, 0.0, b)
        p = interpolations[k]
        x = x + p @ cycle(k + 1, p.T @ (b - matrices[k] @ x))
        return smooth(k, b, x, b - matrices[k] @ x)

    b = read(folder, "b", "f64")
    x, cycles = np.zeros_like(b), 0
    while np.linalg.norm(b - matrices[0] @ x) > RELATIVE * np.linalg.norm(b):
        x, cycles = x + cycle(0, b - matrices[0] @ x), cycles + 1
    return cycles


def by_pyamg(folder):
    import time

    import pyamg
    from scipy import sparse

    _, matrices, _ = hierarchy(folder, sparse)
    a, b = matrices[0], read(folder, "b", "f64")
    smoother = ("chebyshev", {"degree": 2, "iterations": 1})
    settings = {
        "pyamg": {},
        # the strength and the smoother of Kingpost
        "pyamg_alike": {"strength": ("symmetric", {"theta": 0.08}), "presmoother": smoother, "postsmoother": smoother},
    }
    found = {"own_cycles": own_cycles(folder, sparse)}
    for name, chosen in settings.items():
        begin = time.time()
        solver = pyamg.smoothed_aggregation_solver(a, max_coarse=256, **chosen)
        found[f"{name}_setup_s"] = time.time() - begin
        found[f"{name}_levels"] = [level.A.shape[0] for level in solver.levels]
        for what, accelerated in [("cycles", None), ("iterations", "cg")]:
            residuals = []
            solver.solve(b, tol=RELATIVE, accel=accelerated, residuals=residuals, maxiter=300)
            found[f"{name}_{what}"] = len(residuals) - 1
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--pyamg", action="store_true", help="solve by PyAMG on the host instead")
    parser.add_argument("--algorithm", choices=ALGORITHMS, default="default", help="of cusparseSpMV")
    parser.add_argument("--format", choices=FORMATS, default="csr", help="of the matrices of cuSPARSE")
    parser.add_argument("--without-zeros", action="store_true", help="leave out entries that are zero")
    arguments = parser.parse_args()
    record = by_pyamg(arguments.folder) if arguments.pyamg else on_card(arguments.folder, arguments)
    print(json.dumps({"folder": arguments.folder.name, **record}))


if __name__ == "__main__":
    main()
