"""Writes what a call costs on the host, next to peers: results/h200/calls.md on a card.

    python write_call_costs.py [FILE]

Each row is the median of 21 batches of 200 calls of ``y += a*x`` with 1,000 elements, by the host's clock, without
the waiting at the end of a batch; the batches of all rows take turns.
"""

import datetime
import importlib
import statistics
import sys
import time

import numpy as np

import purlin

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
    schedule = purlin.Schedule(AXPY)
    outer, inner = schedule.split("i", 128)
    schedule.tag(outer, "g.0")
    schedule.tag(inner, "l.0")
    return purlin.compile(schedule, device)


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def host_rows():
    plain = purlin.compile(AXPY, "c")
    x, y = np.ones(N), np.zeros(N)
    bound = plain.bind(1.5, x, y)
    scratch = np.empty(N)

    def numpy():
        np.multiply(x, 1.5, out=scratch)
        np.add(y, scratch, out=y)

    yield "C, a call", lambda: plain(1.5, x, y), None
    yield "C, a bound call", bound, None
    yield "NumPy, two ufuncs", numpy, None


def card_rows():
    torch, cupy = module("torch"), module("cupy")
    kernel = compiled("cuda")
    if torch is not None:
        x, y = (torch.full((N,), v, dtype=torch.float64, device="cuda") for v in (1.0, 0.0))
        bound = kernel.bind(1.5, x, y)
        wait = torch.cuda.synchronize
        yield "CUDA, a call on PyTorch's tensors", lambda: kernel(1.5, x, y), wait
        yield "CUDA, a bound call", bound, wait
        yield "`torch.Tensor.add_(x, alpha=a)`", lambda: y.add_(x, alpha=1.5), wait
    if cupy is not None:
        u, v = cupy.ones(N), cupy.zeros(N)
        raw, sizes = cupy.RawKernel(RAW, "axpy"), ((8,), (128,))
        wait = cupy.cuda.Device().synchronize
        yield "CUDA, a call on CuPy's arrays", lambda: kernel(1.5, u, v), wait
        yield "CUDA, a bound call on them", kernel.bind(1.5, u, v), wait
        yield "`cupy.RawKernel`", lambda: raw(*sizes, (np.int64(N), np.float64(1.5), u, v)), wait
    op = purlin.jit("laplace", "cuda", dim=2, degree=1)
    given = {a.name: a for a in op.arguments if a.kind == "array"}
    if torch is not None:
        from test_operator import arrays

        host, expected = arrays(op)
        on_card = {name: torch.from_numpy(value).cuda() for name, value in host.items()}
        out = torch.zeros(len(expected), dtype=torch.float64, device="cuda")
        op(out, **on_card)
        assert np.allclose(out.cpu().numpy(), expected, rtol=0, atol=1e-12)
        title = f"CUDA, {{}} of an operator (2-D P1 Laplace, {len(given)} arrays)"
        yield title.format("a call"), lambda: op(out, **on_card), torch.cuda.synchronize
        yield title.format("a bound call"), op.bind(out, **on_card), torch.cuda.synchronize


def seconds(call, wait):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    end = time.perf_counter()
    if wait is not None:
        wait()
    return (end - start) / CALLS


def main():
    rows = list(host_rows())
    devices = purlin.devices()
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
    text = "\n".join(lines) + "\n"
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w") as file:
            file.write(text)
    print(text)


if __name__ == "__main__":
    main()
