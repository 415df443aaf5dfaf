#!/usr/bin/env python3
"""PPCG's CUDA code of PolyBench's kernels: right on the card, and how fast.

    studies/polybench/baselines.sh ppcg                                   # the sources, into $POLYBENCH_BUILD/ppcg
    PPCG=/tmp/polybench/ppcg python3 studies/polybench/ppcg.py [NAME...]  # JSON of all kernels

Each kernel is checked against the C reference at the small sizes and at five times these, then timed at
the large ones: the median of `RUNS` runs of the whole program between two CUDA events, arrays on the card
already. The host code is PPCG's own, compiled by `NVCC` with `ARCH` (native). A kernel that takes longer
than `LIMIT` seconds is given up, with the runs that it finished. Needs numpy, nvcc and gcc.
"""

import concurrent.futures
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

from run import BUILD, LARGE, RUNS, SMALL, Reference, copied, inputs, verified

PPCG = Path(os.environ.get("PPCG", str(BUILD / "ppcg")))
NVCC = os.environ.get("NVCC", "nvcc").split()
ARCH = os.environ.get("ARCH", "native")
LIMIT = float(os.environ.get("LIMIT", "90"))

# two events around what runs between the first copies to the card and the last ones from it
TIMING = """
static cudaEvent_t polybench_from, polybench_to;
static float polybench_ms;
extern "C" float ms() { return polybench_ms; }
static void polybench_start() {
  cudaEventCreate(&polybench_from); cudaEventCreate(&polybench_to);
  cudaDeviceSynchronize(); cudaEventRecord(polybench_from);
}
static void polybench_stop() {
  cudaEventRecord(polybench_to); cudaEventSynchronize(polybench_to);
  cudaEventElapsedTime(&polybench_ms, polybench_from, polybench_to);
  cudaEventDestroy(polybench_from); cudaEventDestroy(polybench_to);
}
"""
# an array of variable length is no parameter in C++; some statements stay on the host and index it
ROWS = """
template <class T> struct rows {
  T *data; int n;
  T *operator[](int i) const { return data + (long)i * n; }
  operator T *() const { return data; }
};
"""
TO_CARD = re.compile(r"^.*(?:cudaMalloc\(|cudaMemcpyHostToDevice).*\n", re.M)
FROM_CARD = re.compile(r"^(?: *if \(.*\)\n)?.*cudaMemcpyDeviceToHost.*\n", re.M)
LAUNCH = re.compile(r"^.*<<<.*\n", re.M)
SIGNATURE = re.compile(r"\bvoid ref\(([^)]*)\)\s*\{")
ARRAY = re.compile(r"(\w+) (\w+)\[restrict[^\]]*\]((?:\[[^\]]*\])*)")


def plain_signature(found):
    """The head of `ref` with pointers for arrays, and views of its matrices."""
    views = [f"rows<{kind}> {name}{{{name}_, {inner[1:-1]}}};" for kind, name, inner in ARRAY.findall(found[1]) if inner.count("[") == 1]
    given = ARRAY.sub(lambda m: f"{m[1]} *{m[2]}" + "_" * (m[3].count("[") == 1), found[1])
    return f'extern "C" void ref({given}) {{\n' + "\n".join(views)


def timed(host):
    """The host code with the clock around its launches: after the copies to the card, before those from it."""
    launches = list(LAUNCH.finditer(host))
    before = [m for m in TO_CARD.finditer(host) if m.end() <= launches[0].start()]
    after = [m for m in FROM_CARD.finditer(host) if m.start() >= launches[-1].end()]
    copies = len(TO_CARD.findall(host)) + len(FROM_CARD.findall(host))
    if not before or not after or len(before) + len(after) != copies:
        raise ValueError("copies between the launches")
    first, last = before[-1].end(), after[0].start()
    if loops_on_host(host):
        last = host.index("  cudaCheckReturn(cudaFree(", last)
    return f"{host[:first]}polybench_start();\n{host[first:last]}polybench_stop();\n{host[last:]}"


def loops_on_host(host):
    """Whether PPCG leaves loops to the host after the copies from the card: then these count as well."""
    return "for (" in host[list(FROM_CARD.finditer(host))[-1].end():]


def in_one_file(name):
    """Kernels and host code of a kernel in one C++ file, timed and called with plain pointers."""
    kernels = (PPCG / f"{name}_kernel.cu").read_text()
    host = SIGNATURE.sub(plain_signature, timed((PPCG / f"{name}_host.cu").read_text()))
    own = rf'^#include "(?:{re.escape(name)}_kernel\.hu|cuda\.h)"\n'
    return "#include <cstdio>\n#include <cassert>\n" + TIMING + ROWS + re.sub(own, "", kernels + host, flags=re.M)


def library(name):
    return BUILD / f"ppcg-{name}.so"


def build(name):
    """Compiles a kernel; why it did not work, or nothing."""
    source = BUILD / f"ppcg-{name}.cu"
    library(name).unlink(missing_ok=True)
    try:
        source.write_text(in_one_file(name))
        command = [*NVCC, "-O3", f"-arch={ARCH}", "-shared", "-Xcompiler", "-fPIC", "-w", "-o", str(library(name)), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        return done.stderr.strip()[:500] if done.returncode else None
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as why:
        return str(why)[:500]


class OnCard(Reference):
    """PPCG's program, of the reference's signature; runs return milliseconds on the card."""

    def __init__(self, name):
        self.name, code = name, ctypes.CDLL(str(library(name)))
        self.run_c, self.ms = code.ref, code.ms
        self.run_c.restype, self.ms.restype = None, ctypes.c_float

    def run(self, sizes, values):
        super().run(sizes, values)
        return self.ms()


def measured(name):
    """What is known of a kernel, after each run of it, in a process of its own: a fault of the card ends it."""
    program = verified(name, OnCard(name))
    host = loops_on_host((PPCG / f"{name}_host.cu").read_text())
    result, times = {"right": True, "loops_on_host": host}, []
    yield result
    values = inputs(name, LARGE[name])
    for _ in range(RUNS + 1):
        times.append(program.run(LARGE[name], copied(values)))
        runs = times[1:] or times  # the first one warms up
        yield {**result, "ms": statistics.median(runs), "runs": runs}


def in_child(name):
    child = subprocess.Popen([sys.executable, __file__, "--one", name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = child.communicate(timeout=LIMIT)
        why = None if child.returncode == 0 else f"ended with {child.returncode}: {err.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        why = f"longer than {LIMIT:g} s"
    result = json.loads(out.strip().split("\n")[-1]) if out.strip() else {}
    return {**result, "failed": why} if why else result


def main():
    if sys.argv[1:2] == ["--one"]:
        for result in measured(sys.argv[2]):
            print(json.dumps(result), flush=True)
        return
    names = sys.argv[1:] or sorted(SMALL)
    BUILD.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = dict(zip(names, pool.map(build, names)))
    found = {}
    for name in names:
        found[name] = {"failed": refused[name]} if refused[name] else in_child(name)
        print(name, found[name].get("ms", found[name]), file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
