#!/usr/bin/env python3
"""Times generated products of matrices and compares them with cuBLAS, which PyTorch calls.

Each file is what `kingpost print examples/dgemm.kingpost --target cuda --plan` prints: a kernel with
parameters m, n and k in blocks, or one whose size is fixed, with arguments a and b, and a result c, all of f64, f32,
f16 or bf16. Results are poisoned, and then compared with cuBLAS's and, at some rows and columns, with sums in long
double on the host: a kernel is wrong that is farther from those than twice the rounding of a result and of sums of
its terms. Halves are summed in single precision, also by cuBLAS. A sample is a graph of some launches between two
events; cuBLAS is timed right before each, as the card changes its clock under load, and kernels take turns in random
order. CuPy compiles and launches kernels. Prints a line a kernel and size: the best of each in TFLOP/s, and the
median of the ratios.

    kingpost print examples/dgemm.kingpost --target cuda --plan > dgemm.cu
    python3 scripts/products.py dgemm.cu --sizes 1024,2048,4096,8192,16384
"""
import argparse
import concurrent.futures
import math
import pathlib
import random
import re
import statistics

import cupy as cp
import numpy as np
import torch
from printed_kernel import PrintedKernel, seconds

# of a result, and of a sum: units of the last place, relative to the largest entry
TYPES = {
    "f64": (torch.float64, 2**-53, 2**-53),
    "f32": (torch.float32, 2**-24, 2**-24),
    "f16": (torch.float16, 2**-11, 2**-23),
    "bf16": (torch.bfloat16, 2**-8, 2**-23),
}


class Kernel(PrintedKernel):
    """A product, with the rows, columns and terms of its blocks."""

    def __init__(self, path):
        super().__init__(path)
        self.type = self.plan(r"//   a: (\w+) buffer")[0]
        parts = re.findall(r"//   \w+: (\w+) scratch memory of (\d+) elements", self.source)
        self.parts = [torch.empty(int(count), device="cuda", dtype=TYPES[ty][0]) for ty, count in parts]
        rows, terms, fixed = self.plan(r"//   a: \w+ buffer of (?:(\d+)\*m\*(\d+)\*k|(\d+)) elements")
        self.size = math.isqrt(int(fixed)) if fixed else None
        if self.size is None:
            self.rows, self.terms = int(rows), int(terms)
            self.columns = int(self.plan(r"//   c: \w+ buffer of \d+\*m\*(\d+)\*n elements")[0])

    def multiply(self, size, arrays):
        blocks = {} if self.size else {"m": size // self.rows, "n": size // self.columns, "k": size // self.terms}
        self.launch(blocks, (*arrays, *self.parts))


def repeated(launch, times):
    """A graph of some launches, so that short ones wait for the card alone."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), cp.cuda.ExternalStream(stream.cuda_stream):
        launch()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(times):
                launch()
    return graph.replay


def compare(kernels, size, rounds):
    """Times kernels of one type at one size."""
    dtype, unit, of_sums = TYPES[kernels[0].type]
    a, b = (torch.randn(size, size, device="cuda", dtype=torch.float64).to(dtype) for _ in range(2))
    c, product = torch.empty_like(a), torch.empty_like(a)
    cublas = lambda: torch.matmul(a, b, out=product)  # noqa: E731
    cublas()
    some = np.unique(np.linspace(0, size - 1, 9).astype(int))
    on_host = lambda array: array.double().cpu().numpy().astype(np.longdouble)  # noqa: E731
    host = on_host(a[some]) @ on_host(b[:, some])

    def error(result):
        return float(np.abs(on_host(result[some][:, some]) - host).max() / np.abs(host).max())

    errors, times = {}, {kernel.name: [] for kernel in kernels}
    for kernel in kernels:
        c.fill_(float("nan"))
        torch.cuda.synchronize()
        kernel.multiply(size, (a, b, c))
        away = float((c.double() - product.double()).abs().max() / product.double().abs().max())
        errors[kernel.name] = (away, error(c), error(product))
    launches = min(200, max(1, int((3e11 if unit < 2**-20 else 3e12) // size**3)))
    of_cublas = repeated(cublas, launches)
    graphs = {k.name: repeated(lambda k=k: k.multiply(size, (a, b, c)), launches) for k in kernels}
    for _ in range(rounds):
        for kernel in random.sample(kernels, len(kernels)):
            theirs = seconds(of_cublas, 1) / launches
            ours = seconds(graphs[kernel.name], 1) / launches
            times[kernel.name].append((ours, theirs))
    for kernel in kernels:
        ours, theirs = zip(*times[kernel.name])
        ratios = sorted(t / o for o, t in zip(ours, theirs))
        rate = lambda s: 2e-12 * size**3 / min(s)  # noqa: E731
        low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
        away, own, reference = errors[kernel.name]
        wrong = "" if own <= 2 * (unit + size**0.5 * of_sums) and away == away else ", WRONG"
        print(
            f"{kernel.type} {size:6d} {kernel.name:24s} best {rate(ours):5.1f} of {rate(theirs):5.1f} TFLOP/s, "
            f"ratio {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}), "
            f"{kernel.registers} registers, {kernel.spilled} B spilled, "
            f"errors: {away:.1e} to cuBLAS, {own:.1e} and {reference:.1e} to the host{wrong}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    parser.add_argument("--sizes", default="4096", help="rows, columns and terms, joined by commas")
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    with concurrent.futures.ThreadPoolExecutor() as pool:
        kernels = list(pool.map(Kernel, arguments.sources))
    for size in map(int, arguments.sizes.split(",")):
        of_size = [kernel for kernel in kernels if kernel.size in (None, size)]
        for kind in sorted({kernel.type for kernel in of_size}):
            compare([kernel for kernel in of_size if kernel.type == kind], size, arguments.rounds)


if __name__ == "__main__":
    main()
