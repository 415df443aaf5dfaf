#!/usr/bin/env python3
"""Times generated kernels that memory bounds, and a copy of as many bytes.

Each file is what `kingpost print FILE.kingpost --target cuda --plan` prints of `stencil_27`, `stencil_7`,
`transpose`, `prefix_one_pass`, or a product of a sparse matrix in rows (`csr_product`, `csr_product_by_lanes`).
Results are poisoned first, and compared with sums on the host, in long double except for matrices; of a stencil the
surface has to keep its poison. A time is the median of 21 launches, each between two events, of a copy as well:
`cudaMemcpyAsync` from the device to the device. Prefix sums are compared with `torch.cumsum` and CUB's scan, and
sparse products with cuSPARSE, as CuPy calls them.

    kingpost print examples/transpose.kingpost --target cuda --plan > transpose.cu
    python3 scripts/memory_bound.py transpose.cu
"""
import argparse
import math
import pathlib
import re
import statistics
import time

import cupy as cp
import numpy as np
from printed_kernel import PrintedKernel

# entries a row, and rows
SPARSE = ((7, 4_000_000), (14, 3_000_000), (27, 2_000_000), (50, 1_000_000), (81, 600_000), (125, 400_000), (200, 250_000))
TYPES = {"f64": np.float64, "f32": np.float32, "i32": np.int32, "u64": np.uint64}


class Kernel(PrintedKernel):
    """A kernel of a source, with the types and lengths of its arrays."""

    def __init__(self, path):
        super().__init__(path)
        arrays = re.findall(r"//   (\w+): (\w+) (?:buffer|scratch memory) of ([^,\n]+) elements", self.source)
        self.types = {name: TYPES[ty] for name, ty, _ in arrays}
        self.lengths = {name: length for name, _, length in arrays}

    def scratch(self, name, parameters):
        return cp.zeros(self.value(self.lengths[name], parameters), self.types[name])

    def __str__(self):
        return f"{self.registers} registers, {self.spilled} B spilled"


def timed(launch, times=21):
    pairs = [(cp.cuda.Event(), cp.cuda.Event()) for _ in range(times)]
    for _ in range(3):
        launch()
    # all are given to the device before it is through with the first: else the host's time to launch counts
    for begin, end in pairs:
        begin.record()
        launch()
        end.record()
    pairs[-1][1].synchronize()
    return statistics.median(cp.cuda.get_elapsed_time(begin, end) for begin, end in pairs)


def copied(a, b):
    return timed(lambda: b.data.copy_from_device_async(a.data, a.nbytes, cp.cuda.Stream.null))


def show(what, kernel, ms, copy, error, bound):
    wrong = "" if error <= bound else " WRONG"
    print(f"{kernel.name:24s} {what:24s} {ms:.4f} ms, {ms / copy:.3f} of a copy, error {error:.1e}{wrong}, {kernel}", flush=True)


def neighbours(u, weights):
    """Sums of the neighbours of inner points, on the host."""
    n = u.shape[0]
    steps = [(c, b, a) for c in range(3) for b in range(3) for a in range(3) if weights[c, b, a]]
    part = lambda c, b, a: u[c : n - 2 + c, b : n - 2 + b, a : n - 2 + a].astype(np.longdouble)  # noqa: E731
    return sum(weights[step] * part(*step) for step in steps)


def stencil(kernel, size):
    dtype = kernel.types["u"]
    weights = np.random.default_rng(0).random((3, 3, 3))
    given = (cp.asarray(weights),)
    if kernel.entry == "stencil_7":
        centre, side = dtype(0.3), dtype(0.7)
        weights = np.zeros((3, 3, 3))
        weights[1, 1, 1] = centre
        for step in ((0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2)):
            weights[step] = side
        given = (centre, side)

    def launch(n, u, v):
        scalars_first = kernel.entry == "stencil_7"
        kernel.launch({"n": n}, given + (u, v) if scalars_first else (u,) + given + (v,))

    error = 0.0
    for n in (3, 5, 66, 99):
        u = np.random.default_rng(n).standard_normal((n,) * 3).astype(dtype)
        v = cp.full((n,) * 3, float("nan"), dtype)
        launch(n, cp.asarray(u), v)
        found = cp.asnumpy(v)
        inner = found[1:-1, 1:-1, 1:-1]
        error = max(error, float(np.abs(inner - neighbours(u, weights)).max()))
        if np.isnan(found).sum() != found.size - inner.size:
            error = math.inf
    u = cp.random.standard_normal((size,) * 3).astype(dtype)
    v = cp.empty_like(u)
    ms, copy = timed(lambda: launch(size, u, v)), copied(u, v)
    show(f"{size}^3 {u.dtype}", kernel, ms, copy, error, 1e-13 if dtype == np.float64 else 1e-5)


def transpose(kernel, n, m):
    dtype = kernel.types["a"]
    error = 0.0
    for rows, columns in ((1, 1), (63, 65), (130, 257), (n, m)):
        a = cp.random.standard_normal((rows, columns)).astype(dtype)
        b = cp.full((columns, rows), float("nan"), dtype)
        launch = lambda: kernel.launch({"n": rows, "m": columns}, (a, b))  # noqa: B023, E731
        launch()
        error = error if bool((b == a.T).all()) else math.inf
    show(f"{n} x {m} {a.dtype}", kernel, timed(launch), copied(a, b), error, 0.0)


def prefix(kernel, n):
    import torch
    from cupy.cuda import cub

    dtype = kernel.types["a"]
    a = (cp.random.random(n) - 0.5).astype(dtype)
    y = cp.empty_like(a)
    sums = np.cumsum(cp.asnumpy(a).astype(np.longdouble))
    bound = 1e-11 if dtype == np.float64 else 1e-3

    def error(found, sums):
        return float(np.abs(cp.asnumpy(found).astype(np.longdouble) - sums).max() / max(1.0, np.abs(sums).max()))

    worst = 0.0
    for short in (1, 7, 8191, 8192, 8193, 8192 * 256 - 1, 8192 * 256 + 1, 8192 * 512 + 17):
        scratch = kernel.scratch("sums", {"n": short})
        for _ in range(3):  # each launch leaves what the next one needs
            z = cp.full(short + 1, float("nan"), dtype)
            kernel.launch({"n": short}, (a, z, scratch))
            worst = max(worst, error(z[:short], sums[:short]) if bool(cp.isnan(z[short])) else math.inf)
    scratch = kernel.scratch("sums", {"n": n})
    launch = lambda: kernel.launch({"n": n}, (a, y, scratch))  # noqa: E731
    y.fill(float("nan"))
    launch()
    worst = max(worst, error(y, sums))
    first = y.copy()
    ms, copy = timed(launch), copied(a, first)
    show(f"{n} {a.dtype}", kernel, ms, copy, worst, bound)
    given, result = torch.from_dlpack(a), torch.from_dlpack(y)
    # by the host's clock: events of CuPy do not order what PyTorch launches
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(21):
        torch.cumsum(given, 0, out=result)
    torch.cuda.synchronize()
    ms = 1e3 * (time.perf_counter() - start) / 21
    print(f"  torch.cumsum {ms:.4f} ms, {ms / copy:.3f} of a copy")
    ms = timed(lambda: cub.device_scan(first, cub.CUPY_CUB_CUMSUM))
    print(f"  CUB in place {ms:.4f} ms, {ms / copy:.3f} of a copy", flush=True)


def products(kernels, width, n):
    import cupyx.cusparse
    import cupyx.scipy.sparse

    random = np.random.default_rng(width)
    # rows of `width` entries or up to a quarter fewer, in columns near the diagonal and in bands, as of a mesh
    lengths = np.minimum(width, random.integers(width - width // 4, width + 1, n))
    starts = np.zeros(n + 1, np.int32)
    starts[1:] = np.cumsum(lengths)
    row = np.repeat(np.arange(n, dtype=np.int64), lengths)
    place = np.arange(starts[-1]) - starts[row]
    band = 1 + math.isqrt(n) // (1 + width // 4)
    columns = row + (place - width // 2) * np.where(place % 3 == 0, 1, band)
    columns = np.clip(columns, 0, n - 1).astype(np.int32)
    values, x = random.standard_normal(len(columns)), random.standard_normal(n)
    expected = np.add.reduceat(values * x[columns], starts[:-1])
    entries = tuple(map(cp.asarray, (values, columns, starts)))
    matrix = cupyx.scipy.sparse.csr_matrix(entries, shape=(n, n))
    # sorts the columns of each row: CuPy gives cuSPARSE no others
    matrix.sum_duplicates()
    on_device, y = cp.asarray(x), cp.empty(n)
    params = {"n": n, "n_columns": n, "n_entries": matrix.nnz}
    for kernel in kernels:
        launch = lambda: kernel.launch(params, (matrix.indptr, matrix.indices, matrix.data, on_device, y))  # noqa: B023, E731
        y.fill(float("nan"))
        launch()
        error = float(np.abs(cp.asnumpy(y) - expected).max() / np.abs(expected).max())
        theirs = timed(lambda: cupyx.cusparse.spmv(matrix, on_device, y=y))
        ms = timed(launch)
        wrong = "" if error < 1e-13 else " WRONG"
        print(f"{kernel.name:24s} {width:3d} entries a row {ms:.4f} ms, cuSPARSE {theirs:.4f} ms, ratio {theirs / ms:.2f}, error {error:.1e}{wrong}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    kernels = list(map(Kernel, parser.parse_args().sources))
    for kernel in kernels:
        if kernel.entry.startswith("stencil"):
            stencil(kernel, 512)
        elif kernel.entry == "transpose":
            for n, m in ((8000, 8200), (16384, 16384)):
                transpose(kernel, n, m)
        elif kernel.entry == "prefix_one_pass":
            prefix(kernel, 2**28)
    sparse = [kernel for kernel in kernels if kernel.entry.startswith("csr_product")]
    for width, n in SPARSE if sparse else ():
        products(sparse, width, n)


if __name__ == "__main__":
    main()
