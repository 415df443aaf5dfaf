#!/usr/bin/env python3
"""Times generated flash attention and compares it with PyTorch's scaled_dot_product_attention.

Each file is what `kingpost print examples/attention_128.kingpost --target cuda --plan` prints: a kernel with
parameters heads, m and n (blocks of queries, tiles of keys), arguments q, k and v, and a result o, of bf16. One whose
name begins with causal takes the keys up to each query, with half of the operations. Results are poisoned, and then
compared with PyTorch's and, at some rows of the first and last head, with attention in double precision: a kernel is
wrong that is farther from that than twice the rounding of the largest result. A sample is some launches between two
events; PyTorch's default is timed right before each, as the card changes its clock under load, and kernels take turns
in random order. There are 16384 queries in all, of 2048 numbers in heads, unless --heads says how many heads there
are. Prints a line a kernel and length: the best of each in TFLOP/s, and the median of ratios; and a line a backend of
PyTorch's.

    kingpost print examples/attention_128.kingpost --target cuda --plan > attention_128.cu
    python3 scripts/attention.py attention_128.cu --lengths 512,1024,2048,4096,8192,16384
"""
import argparse
import pathlib
import random
import statistics

import numpy as np
import torch
from printed_kernel import PrintedKernel, seconds
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

ROUNDING = 2**-8  # of a number in bf16


class Kernel(PrintedKernel):
    """Attention, with the queries and keys of its blocks."""

    def __init__(self, path):
        super().__init__(path)
        self.queries, self.size = map(int, self.plan(r"//   q: bf16 buffer of heads\*(\d+)\*m\*(\d+) elements"))
        self.keys = int(self.plan(r"//   k: bf16 buffer of heads\*(\d+)\*[mn]\*\d+ elements")[0])
        self.causal = self.name.startswith("causal")

    def attend(self, arrays):
        heads, length, _ = arrays[0].shape[-3:]
        self.launch({"heads": heads, "m": length // self.queries, "n": length // self.keys}, arrays)


def in_double(arrays, causal, head, rows):
    """Some rows of a head."""
    q, k, v = (array[0, head].double() for array in arrays)
    scores = q[rows] @ k.T / q.shape[1] ** 0.5
    if causal:
        later = torch.arange(len(k), device="cuda")[None, :] > rows[:, None]
        scores.masked_fill_(later, -float("inf"))
    return torch.softmax(scores, dim=1) @ v


def compare(kernels, length, heads, rounds):
    """Times kernels of one size of head at one length."""
    size, causal = kernels[0].size, kernels[0].causal
    heads = heads or 16384 // length * (2048 // size)
    arrays = [torch.randn(1, heads, length, size, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    o = torch.empty_like(arrays[0])
    attention = lambda: scaled_dot_product_attention(*arrays, is_causal=causal)  # noqa: E731
    theirs = attention()
    default = SDPBackend(torch._fused_sdp_choice(*arrays, is_causal=causal)).name
    rows = torch.from_numpy(np.unique(np.linspace(0, length - 1, 97).astype(int))).cuda()
    some = {head: in_double(arrays, causal, head, rows) for head in (0, heads - 1)}

    def error(result):
        away = max(float((result[0, head][rows].double() - part).abs().max()) for head, part in some.items())
        return away / max(float(part.abs().max()) for part in some.values())

    operations = 4 * heads * length**2 * size / (2 if causal else 1)
    launches = max(1, int(2e12 // operations))
    rate = lambda s: 1e-12 * operations / s  # noqa: E731
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel([backend]):
            try:
                best = min(seconds(attention, launches) for _ in range(rounds))
                print(f"{size:4d} {length:6d} {heads:5d} PyTorch {backend.name}: best {rate(best):5.1f} TFLOP/s")
            except RuntimeError as reason:
                print(f"{size:4d} {length:6d} {heads:5d} PyTorch {backend.name}: {reason}")
    errors, times = {}, {kernel.name: [] for kernel in kernels}
    for kernel in kernels:
        o.fill_(float("nan"))
        torch.cuda.synchronize()
        kernel.attend((*arrays, o))
        away = float((o.double() - theirs.double()).abs().max() / theirs.double().abs().max())
        errors[kernel.name] = (away, error(o), error(theirs))
    for _ in range(rounds):
        for kernel in random.sample(kernels, len(kernels)):
            by_pytorch = seconds(attention, launches)
            times[kernel.name].append((seconds(lambda: kernel.attend((*arrays, o)), launches), by_pytorch))
    for kernel in kernels:
        ours, peer = zip(*times[kernel.name])
        ratios = sorted(t / o for o, t in zip(ours, peer))
        low, high = ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]
        away, own, reference = errors[kernel.name]
        wrong = "" if own <= 2 * ROUNDING and away == away else ", WRONG"
        print(
            f"{size:4d} {length:6d} {heads:5d} {kernel.name:24s} best {rate(min(ours)):5.1f} of "
            f"{rate(min(peer)):5.1f} TFLOP/s ({default}), "
            f"ratio {statistics.median(ratios):.3f} ({low:.3f} to {high:.3f}), "
            f"{kernel.registers} registers, {kernel.spilled} B spilled, "
            f"errors: {away:.1e} to PyTorch, {own:.1e} and {reference:.1e} to double{wrong}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=pathlib.Path, nargs="+")
    parser.add_argument("--lengths", default="4096", help="of sequences, joined by commas")
    parser.add_argument("--heads", type=int, help="heads of all sequences")
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    kernels = [Kernel(path) for path in arguments.sources]
    for length in map(int, arguments.lengths.split(",")):
        for size, causal in sorted({(kernel.size, kernel.causal) for kernel in kernels}):
            some = [kernel for kernel in kernels if (kernel.size, kernel.causal) == (size, causal)]
            compare(some, length, arguments.heads, arguments.rounds)


if __name__ == "__main__":
    main()
