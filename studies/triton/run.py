#!/usr/bin/env python3
"""Softmax and layer norm of rows, beside Triton's kernels, on one card.

    python3 studies/triton/run.py prepare OUT      # needs triton (PyPI), numpy and kingpost; no card
    python3 OUT/run.py time OUT                    # needs numpy and a card alone; prints JSON
    python3 studies/triton/run.py page FILE        # results/h200/triton.md of what `time` printed

`prepare` compiles Triton's kernels for sm_90 and prints Kingpost's source for each number of warps. `time`
compares both with NumPy in double precision, times them in turn in one run, and takes the best number of
warps of each: medians of 25 launches after warm-up, by events, on data that no cache holds.
"""

import ctypes
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
KINGPOST = os.environ.get("KINGPOST", "target/release/kingpost")
KERNELS = {"softmax": ["x", "y"], "layer_norm": ["g", "b", "x", "y"]}
SIZES = {1024: 65536, 2048: 32768, 4096: 16384, 8192: 8192}
WARPS = (4, 8, 16)
ROUNDS = 25


def triton_kernels():
    import triton
    import triton.language as tl

    @triton.jit
    def softmax(x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0).to(tl.int64)*n + tl.arange(0, BLOCK)
        inside = tl.arange(0, BLOCK) < n
        row = tl.load(x + at, mask=inside, other=-float("inf"))
        row = tl.exp(row - tl.max(row, axis=0))
        tl.store(y + at, row/tl.sum(row, axis=0), mask=inside)

    @triton.jit
    def layer_norm(g, b, x, y, n, BLOCK: tl.constexpr):
        j = tl.arange(0, BLOCK)
        at = tl.program_id(0).to(tl.int64)*n + j
        inside = j < n
        row = tl.load(x + at, mask=inside, other=0.0)
        row = tl.where(inside, row - tl.sum(row, axis=0)/n, 0.0)
        scale = 1.0/tl.sqrt(tl.sum(row*row, axis=0)/n + 1e-5)
        out = row*scale*tl.load(g + j, mask=inside) + tl.load(b + j, mask=inside)
        tl.store(y + at, out, mask=inside)

    return triton, {"softmax": softmax, "layer_norm": layer_norm}


def prepare(out):
    triton, jitted = triton_kernels()
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    out.mkdir(parents=True, exist_ok=True)
    made = []
    for name, args in KERNELS.items():
        for n in SIZES:
            for warps in WARPS:
                row = {"kernel": name, "n": n, "warps": warps}
                kinds = {a: "*fp32" for a in args} | {"n": "i32", "BLOCK": "constexpr"}
                aligned = {(k,): [["tt.divisibility", 16]] for k in range(len(args) + 1)}
                source = ASTSource(jitted[name], kinds, {"BLOCK": n}, aligned)
                built = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps})
                file = f"{name}_{n}_{warps}.cubin"
                (out / file).write_bytes(built.asm["cubin"])
                params = len(re.findall(r"\.param ", built.asm["ptx"].split(".entry")[1].split(")")[0]))
                made.append(row | {"by": "triton", "file": file, "local": built.metadata.shared, "scratch": params - len(args) - 1})
                text = (HERE / f"{name}.kingpost").read_text().replace("(n, 4096)", f"(n, {n})")
                (out / "kernel.kingpost").write_text(text)
                command = [KINGPOST, "print", str(out / "kernel.kingpost"), "--target", "cuda", "--hole", f"warps={warps}"]
                file = f"{name}_{n}_{warps}.cu"
                (out / file).write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                made.append(row | {"by": "kingpost", "file": file, "local": 0, "scratch": 0})
    (out / "kernel.kingpost").unlink()
    (out / "list.json").write_text(json.dumps({"triton": triton.__version__, "kernels": made}, indent=1))
    shutil.copy(__file__, out / "run.py")


class Card:
    """The driver's functions, by their names without `cu`."""

    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.call("Init", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("DeviceGet", ctypes.byref(device), 0)
        self.call("DevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("CtxSetCurrent", context)
        name = ctypes.create_string_buffer(100)
        self.call("DeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def call(self, name, *args):
        code = getattr(self.driver, f"cu{name}")(*args)
        if code:
            raise RuntimeError(f"cu{name}: error {code}")

    def array(self, values):
        place = ctypes.c_uint64()
        self.call("MemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(values.nbytes))
        self.call("MemcpyHtoD_v2", place, ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes))
        return place

    def read(self, place, like):
        values = np.empty_like(like)
        self.call("MemcpyDtoH_v2", ctypes.c_void_p(values.ctypes.data), place, ctypes.c_size_t(values.nbytes))
        return values

    def function(self, binary, name):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("ModuleLoadData", ctypes.byref(module), binary)
        self.call("ModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def event(self):
        event = ctypes.c_void_p()
        self.call("EventCreate", ctypes.byref(event), 0)
        return event


def compiled(source):
    """A cubin of CUDA source, by NVRTC with the options of Kingpost's runtime."""
    names = ["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so"]
    for name in names:
        try:
            nvrtc = ctypes.CDLL(name)
            break
        except OSError:
            continue
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None)
    options = (ctypes.c_char_p * 3)(b"--gpu-architecture=sm_90", b"--std=c++17", b"--fmad=true")
    if nvrtc.nvrtcCompileProgram(program, 3, options):
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.value.decode())
    nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
    binary = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetCUBIN(program, binary)
    return binary


def expected(name, arrays):
    x = arrays["x"].astype(np.float64)
    if name == "softmax":
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)
    x -= x.mean(axis=1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * arrays["g"] + arrays["b"]


def measure(out):
    card = Card()
    listed = json.loads((out / "list.json").read_text())
    found = []
    for name, args in KERNELS.items():
        for n, rows in SIZES.items():
            random = np.random.default_rng()
            draw = lambda *shape: random.standard_normal(shape, dtype=np.float32)
            arrays = {"x": draw(rows, n), "g": draw(n), "b": draw(n), "y": np.empty((rows, n), np.float32)}
            wanted = expected(name, {k: v[:512] if k in "xy" else v for k, v in arrays.items()})
            places = {a: card.array(arrays[a]) for a in args}
            runs = [r for r in listed["kernels"] if (r["kernel"], r["n"]) == (name, n)]
            for run in runs:
                binary = (out / run["file"]).read_bytes()
                given = [places[a] for a in args]
                if run["by"] == "kingpost":
                    binary, given = compiled(binary.decode()), [ctypes.c_int32(rows), *given]
                else:
                    given = [*given, ctypes.c_int32(n), *[ctypes.c_uint64(0)] * run["scratch"]]
                run["function"] = card.function(binary, name)
                run["given"], run["times"] = given, []
                run["args"] = (ctypes.c_void_p * len(given))(*[ctypes.cast(ctypes.byref(g), ctypes.c_void_p) for g in given])
            begin, end = card.event(), card.event()

            def launch(run):
                block = (32, run["warps"], 1) if run["by"] == "kingpost" else (32 * run["warps"], 1, 1)
                card.call("LaunchKernel", run["function"], rows, 1, 1, *block, run["local"], None, run["args"], None)

            for run in runs:
                card.call("MemsetD8_v2", places["y"], ctypes.c_ubyte(0xFF), ctypes.c_size_t(arrays["y"].nbytes))
                launch(run)
                values = card.read(places["y"], arrays["y"])
                run["error"] = float(np.abs(values[:512] - wanted).max() / np.abs(wanted).max())
                if not np.isfinite(values).all() or run["error"] > 1e-5:
                    raise RuntimeError(f"wrong: {run['file']}: {run['error']}")
            for round_ in range(ROUNDS + 3):
                for run in runs:
                    card.call("EventRecord", begin, None)
                    launch(run)
                    card.call("EventRecord", end, None)
                    card.call("EventSynchronize", end)
                    ms = ctypes.c_float()
                    card.call("EventElapsedTime", ctypes.byref(ms), begin, end)
                    if round_ >= 3:
                        run["times"].append(ms.value * 1e-3)
            for run in runs:
                row = {k: run[k] for k in ("kernel", "n", "warps", "by", "error")}
                found.append(row | {"rows": rows, "seconds": statistics.median(run["times"])})
            for place in places.values():
                card.call("MemFree_v2", place)
    print(json.dumps({"device": card.name, "date": time.strftime("%Y-%m-%d"), "triton": listed["triton"], "runs": found}, indent=1))


def page(file):
    data = json.loads(file.read_text())
    lines = [
        "# Softmax and layer norm beside Triton",
        "",
        f"{data['device']}, {data['date']}; Triton {data['triton']}. Rows in `f32`, read and written once; medians of {ROUNDS} launches in turn,",
        "by events; the best of 4, 8 and 16 warps a row for each. `python3 studies/triton/run.py page FILE` prints this page.",
        "",
        "| kernel | rows | n | Triton | Kingpost | Triton / Kingpost | GB/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in KERNELS:
        for n, rows in SIZES.items():
            best = {}
            for run in data["runs"]:
                if (run["kernel"], run["n"]) == (name, n):
                    best[run["by"]] = min(best.get(run["by"], 1e9), run["seconds"])
            ours, theirs = best["kingpost"], best["triton"]
            rate = 8 * rows * n / ours / 1e9
            lines.append(f"| {name} | {rows} | {n} | {theirs*1e6:.1f} µs | {ours*1e6:.1f} µs | {theirs/ours:.2f} | {rate:.0f} |")
    (HERE.parent.parent / "results" / "h200" / "triton.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    commands = {"prepare": prepare, "time": measure, "page": page}
    if len(sys.argv) != 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](Path(sys.argv[2]))
