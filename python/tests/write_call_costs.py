"""Writes what a call costs on the host, next to peers: results/h200/calls.md on a card.

    python write_call_costs.py [FILE]

Each row is the median of 21 batches of 200 calls of ``y += a*x`` with 1,000 elements, by the host's clock, without
the waiting at the end of a batch; the batches of all rows take turns. Where other arrays are given at each call, they
are 40 of the same layout, one after the other.

An iteration of conjugate gradients with Jacobi's preconditioner is what 1,760 iterations take more than 160 of them,
divided by 1,600, medians of 9 solves by the host's clock; the matrix is that of five points on a square grid.
"""

import datetime
import importlib
import itertools
import statistics
import sys
import time

import numpy as np

import kingpost

AXPY = """kernel axpy
param n: i32
arg a: f64 in
arg x: f64[n] in
arg y: f64[n] inout

for i in 0..n
  s: y[i] += a*x[i]
"""
N, CALLS, BATCHES = 1000, 200, 21
RAW = "extern \"C\" __global__ void axpy(long long n, double a, const double *x, double *y) {\n" \
      "    long long i = blockIdx.x*128ll + threadIdx.x;\n    if (i < n) y[i] += a*x[i];\n}"


def compiled(device):
    schedule = kingpost.Schedule(AXPY)
    outer, inner = schedule.split("i", 128)
    schedule.tag(outer, "g.0")
    schedule.tag(inner, "l.0")
    return kingpost.compile(schedule, device)


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def host_rows():
    from test_operator import arrays

    plain = kingpost.compile(AXPY, "c")
    x, y = np.ones(N), np.zeros(N)
    others = itertools.cycle([np.zeros(N) for _ in range(40)])
    op = kingpost.jit("laplace", "c", dim=2, degree=1)
    given, expected = arrays(op)
    out = np.zeros_like(expected)
    numbers = itertools.cycle([0.5 * k for k in range(40)])
    bound = plain.bind(1.5, x, y)
    scratch = np.empty(N)

    def numpy():
        np.multiply(x, 1.5, out=scratch)
        np.add(y, scratch, out=y)

    yield "C, a call", lambda: plain(1.5, x, y), None
    yield "C, a call with other arrays each time", lambda: plain(1.5, x, next(others)), None
    yield "C, a call with another number each time", lambda: plain(next(numbers), x, y), None
    yield "C, a bound call", bound, None
    yield "NumPy, two ufuncs", numpy, None
    count = sum(a.kind == "array" for a in op.arguments)
    title = f"C, {{}} of an operator (2-D P1 Laplace, {count} arrays)"
    yield title.format("a call"), lambda: op(out, **given), None
    yield title.format("a bound call"), op.bind(out, **given), None


def card_rows():
    torch, cupy = module("torch"), module("cupy")
    kernel = compiled("cuda")
    if torch is not None:
        x, y = (torch.full((N,), v, dtype=torch.float64, device="cuda") for v in (1.0, 0.0))
        bound = kernel.bind(1.5, x, y)
        wait = torch.cuda.synchronize
        tensors = itertools.cycle([torch.zeros_like(y) for _ in range(40)])
        yield "CUDA, a call on PyTorch's tensors", lambda: kernel(1.5, x, y), wait
        yield "CUDA, a call on other ones each time", lambda: kernel(1.5, x, next(tensors)), wait
        yield "CUDA, a bound call", bound, wait
        yield "`torch.Tensor.add_(x, alpha=a)`", lambda: y.add_(x, alpha=1.5), wait
    if cupy is not None:
        u, v = cupy.ones(N), cupy.zeros(N)
        raw, sizes = cupy.RawKernel(RAW, "axpy"), ((8,), (128,))
        wait = cupy.cuda.Device().synchronize
        blocks = itertools.cycle([cupy.zeros(N) for _ in range(40)])
        yield "CUDA, a call on CuPy's arrays", lambda: kernel(1.5, u, v), wait
        yield "CUDA, a call on other ones each time", lambda: kernel(1.5, u, next(blocks)), wait
        yield "CUDA, a bound call on them", kernel.bind(1.5, u, v), wait
        yield "`cupy.RawKernel`", lambda: raw(*sizes, (np.int64(N), np.float64(1.5), u, v)), wait
    libraries = []
    if torch is not None:
        libraries.append(("PyTorch's tensors", lambda value: torch.from_numpy(value).cuda(), lambda value: value.cpu().numpy(), torch.cuda.synchronize))
    if cupy is not None:
        libraries.append(("CuPy's arrays", cupy.asarray, cupy.asnumpy, cupy.cuda.Device().synchronize))
    for name, there, back, wait in libraries:
        yield from operator_rows(name, there, back, wait)


def operator_rows(name, there, back, wait):
    from test_operator import arrays

    op = kingpost.jit("laplace", "cuda", dim=2, degree=1)
    host, expected = arrays(op)
    on_card = {name: there(value) for name, value in host.items()}
    out = there(np.zeros(len(expected)))
    op(out, **on_card)
    assert np.allclose(back(out), expected, rtol=0, atol=1e-12)
    count = sum(a.kind == "array" for a in op.arguments)
    title = f"CUDA, {{}} of an operator on {name} (2-D P1 Laplace, {count} arrays)"
    yield title.format("a call"), lambda: op(out, **on_card), wait
    yield title.format("a bound call"), op.bind(out, **on_card), wait


def seconds(call, wait):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    end = time.perf_counter()
    if wait is not None:
        wait()
    return (end - start) / CALLS


#: Unknowns, and the sides of the grids whose first ones they are.
SYSTEMS = [(10_000, 100), (46_741, 217)]


def five_points(n, side):
    """The matrix of the first ``n`` points of a grid."""
    rows = np.arange(n)
    neighbours = [(rows, 4.0), (rows - side, -1.0), (rows + side, -1.0)]
    neighbours += [(np.where(rows % side > 0, rows - 1, -1), -1.0), (np.where((rows + 1) % side > 0, rows + 1, -1), -1.0)]
    columns = np.stack([at for at, _ in neighbours], axis=1)
    values = np.broadcast_to([value for _, value in neighbours], columns.shape)
    inside = (columns >= 0) & (columns < n)
    order = np.argsort(np.where(inside, columns, 2**30), axis=1)
    columns, values, inside = (np.take_along_axis(a, order, axis=1) for a in (columns, values, inside))
    starts = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    return starts.astype("i4"), columns[inside].astype("i4"), values[inside]


#: Iterations of the solves whose difference is timed, which is more than what setups differ by.
SHORT, LONG = 160, 1760


class Rows:
    """A matrix by rows, as :func:`kingpost.solve` takes it."""

    def __init__(self, n, side):
        self.indptr, self.indices, self.data = five_points(n, side)
        self.shape = (n, n)


def iteration(solve):
    """Seconds of an iteration by the host's clock."""

    def median(count):
        solve(count)
        times = []
        for _ in range(9):
            start = time.perf_counter()
            solve(count)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    return (median(LONG) - median(SHORT)) / (LONG - SHORT)


def solver_rows(card):
    cupy = module("cupy")
    for n, side in SYSTEMS:
        matrix, b = Rows(n, side), np.ones(n)
        name = f"conjugate gradients, {n:,} unknowns"
        for device in ["c", *([card] if card else [])]:
            found = []

            def solve(count):
                found.append(kingpost.solve(matrix, b, device=device, relative=0.0, max_iterations=count))
                assert found[-1].iterations == count, found[-1]

            seconds = iteration(solve)
            shown = "CUDA" if device == card else "C"
            yield f"{shown}, {name}", seconds
            by_device = statistics.median(s.seconds / s.iterations for s in found if s.iterations == LONG)
            yield f"{shown}, the same by the device's clock", by_device
        if card and cupy is not None:
            from cupyx.scipy.sparse import csr_matrix, diags
            from cupyx.scipy.sparse.linalg import cg

            there = csr_matrix((cupy.asarray(matrix.data), cupy.asarray(matrix.indices), cupy.asarray(matrix.indptr)), shape=(n, n))
            right, inverse = cupy.ones(n), diags(1 / there.diagonal()).tocsr()

            def peer(count):
                cg(there, right, rtol=0.0, atol=0.0, maxiter=count, M=inverse)
                cupy.cuda.Device().synchronize()

            yield f"`cupyx.scipy.sparse.linalg.cg`, {n:,} unknowns", iteration(peer)


def main():
    rows = list(host_rows())
    devices = kingpost.devices()
    card = next((name for name in devices if name.startswith("cuda")), None)
    if card is not None:
        rows += list(card_rows())
    times = [[] for _ in rows]
    for _ in range(BATCHES + 1):  # the first one warms up
        for row, (_, call, wait) in zip(times, rows):
            row.append(seconds(call, wait))
    where = devices["c"] + (f", {devices[card]}" if card is not None else "")
    versions = ", ".join(f"{m.__name__} {m.__version__}" for m in (np, module("torch"), module("cupy")) if m)
    lines = [
        "# What a call costs on the host",
        "",
        f"`python python/tests/write_call_costs.py`, {datetime.date.today()}: {where}; {versions}. " + __doc__.split("\n\n")[2]
        .strip().replace("\n", " ").replace("``", "`"),
        "",
        "| call | µs |",
        "|---|---|",
    ]
    lines += [f"| {name} | {1e6 * statistics.median(found[1:]):.2f} |" for (name, _, _), found in zip(rows, times)]
    lines += ["", " ".join(__doc__.split("\n\n")[3].split()), "", "| an iteration | µs |", "|---|---|"]
    lines += [f"| {name} | {1e6 * took:.2f} |" for name, took in solver_rows(card)]
    text = "\n".join(lines) + "\n"
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text)
    print(text)


if __name__ == "__main__":
    main()
