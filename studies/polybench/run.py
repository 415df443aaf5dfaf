#!/usr/bin/env python3
"""PolyBench/C's thirty kernels, scheduled by `kingpost auto`: right, and how fast beside gcc.

    cargo build --release --bin kingpost
    python3 studies/polybench/run.py schedule      # a schedule for each kernel, into schedules/
    python3 studies/polybench/run.py check         # C and OpenCL against the references, small sizes
    python3 studies/polybench/run.py isl           # what isl's scheduler makes alone, into schedules/isl/
    python3 studies/polybench/run.py time          # one thread, medians, interleaved; times.json
    python3 studies/polybench/run.py page          # results/polybench.md of all times
    python3 studies/polybench/run.py all           # all of these, on one thread and on two, and other.py
    python3 studies/polybench/run.py cards         # schedules for cards by the model, into schedules/cards/
    python3 studies/polybench/run.py card-auto     # on a card: schedules by trials there, where these are faster
    python3 studies/polybench/run.py card-check    # these on a card (CARD=cuda) against the interpreter
    python3 studies/polybench/run.py card-time     # and their times
    python3 studies/polybench/run.py card-hand     # those of schedules/cards-hand/ checked and timed in turn with ours

Each command takes names of kernels. `time` needs nothing of the others' but schedules/, so that it can
run alone on a machine that does nothing else. Needs numpy and gcc. Beside ours are timed what Polly makes
(`POLLY=clang-19`) and what Pluto makes (the folder `PLUTO=`, filled by `baselines.sh pluto`), each where
it is right at the small sizes. `THREADS=2` runs ours and theirs on two threads and takes the wall time.
"""

import ctypes
import hashlib
import itertools
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KINGPOST = os.environ.get("KINGPOST", str(ROOT / "target/release/kingpost"))
BUILD = Path(os.environ.get("POLYBENCH_BUILD", "/tmp/polybench"))
RUNS = int(os.environ.get("RUNS", "5"))
COMPILE_LIMIT = os.environ.get("COMPILE_LIMIT", "120")  # seconds
THREADS = int(os.environ.get("THREADS", "1"))
POLLY = os.environ.get("POLLY")
PLUTO = Path(os.environ.get("PLUTO", str(BUILD / "pluto")))
PLAIN = ["-O3", "-march=native"]
OURS = ["-O3", "-march=native", "-std=c11", "-fno-tree-vrp", "-fno-tree-loop-distribution", "-fopenmp-simd",
        "--param=sccvn-max-alias-queries-per-access=50"]
# one thread is timed by the clock of the process: what else the machine does is not counted
OPENMP = ["-fopenmp"] if THREADS > 1 else []
clock = time.perf_counter if THREADS > 1 else time.process_time
os.environ["OMP_NUM_THREADS"] = str(THREADS)
# Polly packs matrices on the stack: three products in a row (3mm) need more than the usual 8 MiB
STACK = resource.getrlimit(resource.RLIMIT_STACK)
resource.setrlimit(resource.RLIMIT_STACK, (STACK[1] if STACK[1] > 0 else 1 << 26, STACK[1]))
TYPES = {"int32_t": np.int32, "int64_t": np.int64, "double": np.float64, "float": np.float32}

# sizes that the interpreter runs, and those that are timed
SMALL = {
    "2mm": dict(ni=9, nj=11, nk=13, nl=7), "3mm": dict(ni=9, nj=11, nk=13, nl=7, nm=5), "adi": dict(tsteps=3, n=14),
    "atax": dict(m=13, n=17), "bicg": dict(m=13, n=17), "cholesky": dict(n=19), "correlation": dict(m=11, n=15),
    "covariance": dict(m=11, n=15), "deriche": dict(w=13, h=17), "doitgen": dict(nr=5, nq=6, np=7),
    "durbin": dict(n=17), "fdtd-2d": dict(tmax=4, nx=13, ny=17), "floyd-warshall": dict(n=17),
    "gemm": dict(ni=13, nj=17, nk=11), "gemver": dict(n=17), "gesummv": dict(n=17), "gramschmidt": dict(m=15, n=11),
    "heat-3d": dict(tsteps=3, n=10), "jacobi-1d": dict(tsteps=5, n=30), "jacobi-2d": dict(tsteps=4, n=14),
    "lu": dict(n=17), "ludcmp": dict(n=17), "mvt": dict(n=17), "nussinov": dict(n=19),
    "seidel-2d": dict(tsteps=3, n=14), "symm": dict(m=11, n=13), "syr2k": dict(n=13, m=11), "syrk": dict(n=13, m=11),
    "trisolv": dict(n=17), "trmm": dict(m=11, n=13),
}
LARGE = {
    "2mm": dict(ni=600, nj=650, nk=700, nl=750), "3mm": dict(ni=500, nj=550, nk=600, nl=650, nm=700),
    "adi": dict(tsteps=20, n=500), "atax": dict(m=5000, n=5200), "bicg": dict(m=5000, n=5200),
    "cholesky": dict(n=1000), "correlation": dict(m=700, n=800), "covariance": dict(m=700, n=800),
    "deriche": dict(w=3000, h=2000), "doitgen": dict(nr=100, nq=100, np=128), "durbin": dict(n=10000),
    "fdtd-2d": dict(tmax=100, nx=1000, ny=1200), "floyd-warshall": dict(n=800), "gemm": dict(ni=800, nj=900, nk=1000),
    "gemver": dict(n=4000), "gesummv": dict(n=4000), "gramschmidt": dict(m=500, n=600),
    "heat-3d": dict(tsteps=40, n=120), "jacobi-1d": dict(tsteps=5000, n=40000), "jacobi-2d": dict(tsteps=100, n=1300),
    "lu": dict(n=1000), "ludcmp": dict(n=1000), "mvt": dict(n=5000), "nussinov": dict(n=1200),
    "seidel-2d": dict(tsteps=20, n=1000), "symm": dict(m=600, n=700), "syr2k": dict(n=700, m=600),
    "syrk": dict(n=900, m=800), "trisolv": dict(n=8000), "trmm": dict(m=700, n=800),
}


def kernel_of(name):
    return HERE / ("kernels" if name in SMALL else "other/kernels") / f"{name}.kingpost"


def text_of(name):
    return kernel_of(name).read_text()


def declared(name):
    """Parameters, arguments (name, type, shape, direction) and global temporaries (name, type, shape)."""
    text = text_of(name)
    params = re.findall(r"^param (\w+)", text, re.M)
    args = re.findall(r"^arg (\w+): (\w+)(?:\[(.*?)\])? (inout|in|out)", text, re.M)
    temps = re.findall(r"^temp (\w+): (\w+)(?:\[(.*?)\])? global", text, re.M)
    return params, args, temps


def scope(sizes):
    """What sizes in a plan are made of."""
    return dict(sizes, max=max, min=min, floor=int, ceil_div=lambda a, b: -(-a // b))


def extent(text, sizes):
    return int(eval(text.strip().replace("/", "//"), {"__builtins__": {}}, scope(sizes)))


def shape_of(text, sizes):
    return tuple(extent(part, sizes) for part in text.split(","))


# random matrices of these have factors that no rounding leaves as they are
FACTORED = ("cholesky", "lu", "ludcmp")


def inputs(name, sizes):
    """Values for which the kernel stays finite."""
    random = np.random.default_rng(0)
    values = {}
    for arg, kind, shape, _ in declared(name)[1]:
        if not shape:
            values[arg] = {"alpha": 1.5, "beta": 1.2}.get(arg, random.random())
        elif kind == "i32":
            values[arg] = random.integers(0, 4 if name == "nussinov" else 100, shape_of(shape, sizes)).astype(np.int32)
        else:
            values[arg] = random.random(shape_of(shape, sizes))
    if name in FACTORED:
        n = sizes["n"]
        a = random.random((n, n)) * 0.1
        values["A"] = (a + a.T) / 2 + np.eye(n) * n * 0.2
    elif name == "nussinov":
        values["T"][:] = 0
    elif name == "durbin":
        values["r"] = 0.4 / (1 + np.arange(sizes["n"]))
    elif name in ("correlation", "covariance"):
        values["fn"] = float(sizes["n"])
    elif name == "deriche":
        values["alpha"] = 0.25
    elif name == "trisolv":
        values["L"] = values["L"] / sizes["n"] + np.eye(sizes["n"])
    elif name == "trmm":
        values["A"] /= sizes["m"]
        values["alpha"] = 0.9
    return values


def compiled(source, flags, compiler="gcc"):
    key = hashlib.sha256("\0".join([source, compiler, *flags]).encode()).hexdigest()[:20]
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"{key}.so"
    if not path.exists():
        path.with_suffix(".c").write_text(source)
        # `timeout` ends the compiler's own children too: heat-3d in Pluto's tiles takes gcc longer than 8 minutes
        command = ["timeout", COMPILE_LIMIT, compiler, *flags, "-shared", "-fPIC", "-w", "-o", str(path), str(path.with_suffix(".c")), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True)
    return ctypes.CDLL(str(path))


class Reference:
    """A C function of the reference's signature."""

    def __init__(self, name, source=None, flags=PLAIN, compiler="gcc"):
        source = source or (HERE / "reference" / f"{name}.c").read_text()
        self.name, self.run_c = name, compiled(source, list(flags), compiler).ref
        self.run_c.restype = None

    def run(self, sizes, values):
        params, args, temps = declared(self.name)
        scratch = {temp: np.zeros(shape_of(shape, sizes)) for temp, _, shape in temps}
        given = [ctypes.c_int(sizes[p]) for p in params]
        for arg, _, shape, _ in args:
            given.append(ctypes.c_void_p(values[arg].ctypes.data) if shape else ctypes.c_double(values[arg]))
        given += [ctypes.c_void_p(scratch[temp].ctypes.data) for temp, _, _ in temps]
        start = clock()
        self.run_c(*given)
        return clock() - start


class Ours:
    """The C code of Kingpost for a kernel after a schedule, or as it is written."""

    def __init__(self, name, schedule=None):
        command = [KINGPOST, "print", str(kernel_of(name)), "--target", "c", "--plan"]
        command += ["--recipe", str(schedule)] if schedule else []
        source = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
        self.plan = re.findall(r"^//   (\w+): (\w+) (.*)$", source, re.M)
        flags = OURS + OPENMP + re.findall(r"^// compile with (.*)$", source, re.M)
        entry = re.search(r"^void (\w+_launch)\(", source, re.M).group(1)
        # the function itself runs the launches of a sequence
        grid = re.search(r"^// grid (.*) of work-groups", source, re.M)
        self.grid = grid.group(1) if grid else "1, 1, 1"
        self.run_c = getattr(compiled(source, flags), entry)

    def run(self, sizes, values):
        kept, pointers = [], []
        for arg, kind, what in self.plan:
            if what.startswith(("parameter", "scalar")):
                of = {"i32": np.int32, "i64": np.int64, "f64": np.float64, "f32": np.float32}[kind]
                box = np.array([sizes[arg] if arg in sizes else values[arg]], dtype=of)
            else:
                scratch = re.match(r"scratch memory of (.*) elements", what)
                array = np.zeros(extent(scratch.group(1), sizes)) if scratch else values[arg]
                box = np.array([array.ctypes.data], dtype=np.uint64)
                kept.append(array)
            kept.append(box)
            pointers.append(box.ctypes.data)
        grid = (ctypes.c_int64 * 3)(*eval(f"({self.grid})".replace("/", "//"), {"__builtins__": {}}, scope(sizes)))
        start = clock()
        self.run_c((ctypes.c_void_p * len(pointers))(*pointers), grid)
        return clock() - start


def copied(values):
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in values.items()}


def error(name, found, wanted):
    """The largest difference of a result, relative to its largest element."""
    worst = 0.0
    for arg, _, shape, direction in declared(name)[1]:
        if direction != "in" and shape:
            a, b = found[arg].astype(float), wanted[arg].astype(float)
            worst = float(np.maximum(worst, np.abs(a - b).max() / (np.abs(b).max() + 1e-300)))  # keeps a NaN
    return worst


SCHEDULES = HERE / "schedules" / ("" if THREADS == 1 else f"threads-{THREADS}")
ISL = HERE / "schedules" / "isl"


def schedule_of(name, folder=SCHEDULES):
    path = folder / f"{name}.txt"
    return path if path.exists() else None


def options(sizes):
    return [word for k, v in sizes.items() for word in ("--param", f"{k}={v}")]


def schedule(names):
    for name in names:
        scheduled(name, values_file(name, small(name, LARGE[name])), LARGE[name], SCHEDULES)


def scheduled(name, values, sizes, folder):
    """A schedule by `kingpost auto` in C, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    start = time.time()
    done = kingpost("auto", kernel_of(name), "--device", "c", "--seed", "1", *options(sizes), "--values", values,
                  "--budget", os.environ.get("BUDGET", "10"))
    if done.returncode:
        print(f"{name:15s} {done.stderr.strip()[:300]}", flush=True)
        return
    (folder / f"{name}.txt").write_text(done.stdout.replace(f"{HERE}/", ""))
    rows = [line for line in done.stdout.split("\n") if "fastest" in line]
    print(f"{name:15s} {time.time() - start:6.1f} s  {' '.join(rows)}", flush=True)


ISL_LIMIT = int(os.environ.get("ISL_LIMIT", "60"))  # seconds


def isl(names):
    """The proposal that is isl's schedule in tiles of 32, with no idea of ours; none where a step of it is refused, or
    where that takes longer than `ISL_LIMIT` seconds."""
    ISL.mkdir(parents=True, exist_ok=True)
    for name in names:
        values, sizes = scalars(name, LARGE[name]), LARGE[name]
        (ISL / f"{name}.txt").unlink(missing_ok=True)
        try:
            done = kingpost("auto", kernel_of(name), "--device", "c", "--untimed", "--why", *options(sizes), "--values", values, timeout=ISL_LIMIT)
        except subprocess.TimeoutExpired:
            print(f"{name:15s} none within {ISL_LIMIT} s", flush=True)
            continue
        lines = [line.removeprefix("# ") for line in done.stdout.split("\n")]
        start = next((k for k, line in enumerate(lines) if re.match(r"(# )?tiled bands: .* predicted$", line)), len(lines))
        own = itertools.takewhile(lambda line: not line.endswith(" cycles predicted"), lines[start + 1:])
        steps = [line for line in own if re.match(r"\w+\(", line)]
        if steps:
            (ISL / f"{name}.txt").write_text("\n".join(steps) + "\n")
        print(f"{name:15s} {str(len(steps)) if steps else 'none: no'} steps", flush=True)


def check(names):
    wrong = 0
    for name in names:
        sizes, worst = SMALL[name], {}
        wanted = inputs(name, sizes)
        Reference(name, flags=["-O2"]).run(sizes, wanted)
        for label, steps in [("written", None), ("scheduled", schedule_of(name))]:
            values = inputs(name, sizes)
            Ours(name, steps).run(sizes, values)
            worst[label] = error(name, values, wanted)
        command = [KINGPOST, "run", str(HERE / "kernels" / f"{name}.kingpost"), "--device", "opencl", "--no-time", "--seed", "1"]
        command += options(sizes) + (["--recipe", str(schedule_of(name))] if schedule_of(name) else [])
        opencl = subprocess.run(command, capture_output=True, text=True, timeout=300)
        bad = not all(found <= 1e-9 for found in worst.values()) or opencl.returncode
        wrong += bool(bad)
        print(f"{name:15s} {worst} opencl {opencl.returncode} {'WRONG ' + opencl.stderr[:300] if bad else ''}", flush=True)
    return 1 if wrong else 0


def baselines(name):
    """What Polly and Pluto make of the reference, each built when it is called."""
    programs = {}
    if POLLY:
        parallel = ["-mllvm", "-polly-parallel", "-lgomp"] if THREADS > 1 else []
        programs["polly"] = lambda: Reference(name, flags=[*PLAIN, "-mllvm", "-polly", *parallel], compiler=POLLY)
    pluto = PLUTO / f"{name}.{'pluto_parallel' if THREADS > 1 else 'pluto'}.c"
    if pluto.exists():
        programs["pluto"] = lambda: Reference(name, source=pluto.read_text(), flags=[*PLAIN, *OPENMP])
    return {label: lambda make=make: verified(name, make()) for label, make in programs.items()}


def verified(name, program):
    """The program, if it agrees with the reference at the small sizes and at five times these.

    Their tiles are 32 wide: the small sizes fill none of them, the larger ones several.
    """
    for scale in (1, 5):
        sizes = {param: scale * value for param, value in SMALL[name].items()}
        wanted = inputs(name, sizes)
        found = copied(wanted)
        Reference(name, flags=["-O2"]).run(sizes, wanted)
        program.run(sizes, found)
        worst = error(name, found, wanted)
        if not worst <= 1e-9:  # a NaN is wrong too
            raise ValueError(f"wrong by {worst:.1e} of the largest element at {sizes}")
    return program


def measure(names):
    path = HERE / ("times.json" if THREADS == 1 else f"times-{THREADS}.json")
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        programs = {"gcc": lambda: Reference(name), "written": lambda: Ours(name), "auto": lambda: Ours(name, schedule_of(name))}
        if THREADS == 1 and schedule_of(name, ISL):
            programs["isl"] = lambda: verified(name, Ours(name, schedule_of(name, ISL)))
        programs.update(baselines(name))
        ready, times = {}, {}
        for label, make in programs.items():
            try:
                ready[label] = make()
            except (subprocess.SubprocessError, OSError, ValueError) as why:
                print(f"{name} {label}: {str(why)[:200]}", file=sys.stderr)
        values = inputs(name, LARGE[name])
        for _ in range(RUNS):
            for label, program in ready.items():
                times.setdefault(label, []).append(program.run(LARGE[name], copied(values)))
        found[name] = {label: statistics.median(all_) for label, all_ in times.items()}
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        gcc = found[name]["gcc"]
        print(f"{name:15s} " + " ".join(f"{k} {gcc / v:.2f}" for k, v in found[name].items()) + f"  ({gcc:.3f} s)", flush=True)
    summary(found)


def mean(found, label):
    ratios = [v["gcc"] / v[label] for v in found.values() if label in v]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else float("nan")


def summary(found):
    ratios = {name: v["gcc"] / v["auto"] for name, v in found.items() if "auto" in v}
    if ratios:
        slowest = min(ratios, key=ratios.get)
        print(f"{len(ratios)} kernels: geometric mean {mean(found, 'auto'):.2f} of gcc, smallest {ratios[slowest]:.2f} ({slowest})")


CARD = os.environ.get("CARD", "cuda")
CARD_RUNS = int(os.environ.get("CARD_RUNS", "1"))  # each is the median of fifteen launches or more
OPERATORS = re.compile(r"\b(?:select|sqrt|exp|pow|min|max)\(|[-+*/]")


def statements(text):
    """Of each statement its name, the loops around it (name, bounds, tags), its text and its condition."""
    found, around = [], []
    for line in text.split("\nschedule\n")[0].split("\n"):
        indent = len(line) - len(line.lstrip())
        around = [loop for loop in around if loop[0] < indent]
        loop = re.match(r" *(?:for (\w+)(?: in (.*?)\.\.(.*?))?|launch (\w+))(?: where .*?)?((?: \{.*\})?)$", line)
        insn = re.match(r" *(\w+): (\S.*?) (\S*=) (.*?)(?: if (.*))?$", line)
        if loop:
            around.append((indent, loop.group(1), loop.group(2), loop.group(3), loop.group(5)))
        elif insn and not re.match(r"(?:param|arg|temp) ", line):
            found.append((insn.group(1), [l[1:] for l in around], insn.group(3), insn.group(4), insn.group(5)))
    return found


def heaviest(name):
    """The statement of a kernel with most operations: by counting them at twice the small sizes."""
    work = {}
    for insn, loops, update, value, condition in statements(text_of(name)):
        bare = re.sub(r"\[[^\]]*\]", "", value)
        operations = len(OPERATORS.findall(bare)) + (update != "=")
        python = lambda e: e.replace("/", "//")
        lines = [f"{'  ' * k}for {i} in range({python(lo)}, {python(hi)}):" for k, (i, lo, hi, _) in enumerate(loops)]
        lines.append("  " * len(loops) + f"count[0] += bool({condition or True})")
        scope = {**{k: 2 * v for k, v in SMALL[name].items()}, "count": [0]}
        exec("\n".join(lines), scope)
        work[insn] = operations * scope["count"][0]
    return max(work, key=work.get)


def card_schedule(name):
    return HERE / "schedules" / "cards" / f"{name}.txt"


def kingpost(*words, timeout=900):
    return subprocess.run([KINGPOST, *map(str, words)], capture_output=True, text=True, timeout=timeout)


def scalars(name, sizes):
    """The scalar arguments as a file for `--values`."""
    return values_file(name, {k: v for k, v in inputs(name, sizes).items() if not isinstance(v, np.ndarray)})


def small(name, sizes):
    """Inputs of less than 100,000 elements, with which durbin's numbers stay finite, and matrices that have factors."""
    given = {arg for arg, _, _, direction in declared(name)[1] if direction != "out"}
    return {k: v.ravel().tolist() if isinstance(v, np.ndarray) else v for k, v in inputs(name, sizes).items()
            if k in given and (not isinstance(v, np.ndarray) or v.size < 100_000 or name in FACTORED)}


def values_file(name, values):
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"{name}.json"
    path.write_text(json.dumps(values))
    return path


def cards(names):
    """Schedules by the model of an H200, the place of the statement with most operations, results in C and
    OpenCL at small sizes. Needs no card."""
    card_schedule("").parent.mkdir(parents=True, exist_ok=True)
    wrong, on_groups = 0, []
    for name in names:
        kernel = HERE / "kernels" / f"{name}.kingpost"
        start = time.time()
        done = kingpost("auto", kernel, "--device", "cuda", "--untimed", *options(LARGE[name]), "--values", scalars(name, LARGE[name]))
        if done.returncode:
            wrong += 1
            print(f"{name:15s} {done.stderr.strip()[:300]}", flush=True)
            continue
        card_schedule(name).write_text(done.stdout.replace(f"{HERE}/", "").replace(f"{BUILD}/", ""))
        took = time.time() - start
        heavy = heaviest(name)
        text = kingpost("print", kernel, "--recipe", card_schedule(name)).stdout
        tags = [" ".join(loop[3] for loop in loops) for insn, loops, *_ in statements(text) if insn == heavy]
        placed = bool(tags) and all("{g." in tag for tag in tags)
        on_groups += [name] if placed else []
        sizes = SMALL[name]
        wanted, values = inputs(name, sizes), inputs(name, sizes)
        Reference(name, flags=["-O2"]).run(sizes, wanted)
        Ours(name, card_schedule(name)).run(sizes, values)
        off = error(name, values, wanted)
        opencl = kingpost("run", kernel, "--device", "opencl", "--no-time", "--seed", "1", *options(sizes), "--recipe", card_schedule(name))
        bad = off > 1e-9 or opencl.returncode
        wrong += bool(bad)
        predicted = re.search(r"^# (.*predicted)$", done.stdout, re.M)
        print(f"{name:15s} {took:5.1f} s  `{heavy}` {'on g.0' if placed else 'NOT on g.0'}  {predicted and predicted.group(1)}  "
              f"C {off:.0e} opencl {opencl.returncode} {'WRONG ' + opencl.stderr.strip()[-300:] if bad else ''}", flush=True)
    print(f"{len(on_groups)} of {len(names)}: the statement with most operations on g.0; {wrong} wrong")
    return 1 if wrong else 0


def card_auto(names):
    """Schedules by trials on the card; each takes the place of the one that is there if it is faster by a twentieth."""
    for name in names:
        start = time.time()
        done = kingpost("auto", HERE / "kernels" / f"{name}.kingpost", "--device", CARD, "--budget", os.environ.get("BUDGET", "10"),
                      "--seed", "1", "--values", values_file(name, small(name, LARGE[name])), *options(LARGE[name]))
        took = time.time() - start
        if done.returncode:
            print(f"{name:15s} {took:5.1f} s {done.stderr.strip()[-300:]}", flush=True)
            continue
        path, before = card_schedule(name), card_seconds(name)
        kept = path.read_text()
        path.write_text(done.stdout.replace(f"{HERE}/", "").replace(f"{BUILD}/", ""))
        after = card_seconds(name)
        if before and not (after and after < 0.95 * before):
            path.write_text(kept)
        print(f"{name:15s} {took:5.1f} s  {after} s, before {before} s", flush=True)


def card_seconds(name, sizes=None, schedule=None):
    """The median time of a card's schedule, in seconds; none where it does not run."""
    done = on_card(name, sizes or LARGE[name], schedule=schedule)
    line = next((l for l in done.stdout.split("\n") if "time (median)" in l), "")
    found = re.search(r"([\d.]+) (s|ms|us|µs|ns)\b", line)
    if done.returncode or not found:
        print(f"{name:15s} {done.stdout[-200:]} {done.stderr.strip()[-300:]}", flush=True)
        return None
    return float(found.group(1)) * {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}[found.group(2)]


def on_card(name, sizes, *more, schedule=None):
    """`kingpost run` of a card's schedule, on values for which the kernel stays finite."""
    values = ["--values", values_file(name, small(name, sizes))] if name in SMALL else []
    command = ["run", kernel_of(name), "--recipe", schedule or card_schedule(name), "--device", CARD]
    return kingpost(*command, "--seed", "1", *values, *options(sizes), *more)


def card_check(names):
    """The cards' schedules against the interpreter: small sizes, and such that groups and tiles are full and not."""
    wrong = 0
    for name in names:
        for factor in (1, 3, 8):
            done = on_card(name, {k: factor * v for k, v in SMALL[name].items()}, "--no-time")
            wrong += bool(done.returncode)
            print(f"{name:15s} x{factor} {'WRONG ' + done.stderr.strip()[-400:] if done.returncode else 'right'}", flush=True)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


def card_time(names):
    """Median times of the cards' schedules as `kingpost run` prints them; card_times.json."""
    path = HERE / "card_times.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        seconds = card_seconds(name)
        if not seconds:
            continue
        predicted = re.search(r"(\S+) s predicted", card_schedule(name).read_text())
        found[name] = {"seconds": seconds, "predicted": predicted and float(predicted.group(1)), "recipe": card_schedule(name).name}
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        print(f"{name:15s} {seconds:.3e} s, predicted {predicted.group(1) if predicted else None} s", flush=True)


def card_hand(names):
    """Our schedules for cards beside those by hand, medians of CARD_RUNS runs in turn; card_hand_times.json."""
    path, hand = HERE / "card_hand_times.json", HERE / "schedules" / "cards-hand"
    found = json.loads(path.read_text()) if path.exists() else {}
    wrong = 0
    for name in [name for name in names if schedule_of(name, hand)]:
        both = {"hand": schedule_of(name, hand), "auto": card_schedule(name)}
        for factor in (1, 8):
            done = on_card(name, {k: factor * v for k, v in SMALL[name].items()}, "--no-time", schedule=both["hand"])
            wrong += bool(done.returncode)
            print(f"{name:15s} x{factor} {'WRONG ' + done.stderr.strip()[-400:] if done.returncode else 'right'}", flush=True)
        found[name] = in_turn(name, LARGE[name], both) or found.get(name, {})
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return 1 if wrong else 0


def in_turn(name, sizes, schedules):
    """The median seconds of schedules on a card, by label; none where one does not run."""
    runs = [{label: card_seconds(name, sizes, schedule) for label, schedule in schedules.items()} for _ in range(CARD_RUNS)]
    if any(seconds is None for run in runs for seconds in run.values()):
        return None
    times = {label: statistics.median(run[label] for run in runs) for label in schedules}
    print(f"{name:15s} " + " ".join(f"{label} {1e3 * v:.3f} ms" for label, v in times.items())
          + f"  hand / auto {times['hand'] / times['auto']:.2f}", flush=True)
    return times


def card_page(_):
    """results/h200/polybench.md of card_times.json and ppcg_times.json."""
    ours = json.loads((HERE / "card_times.json").read_text())
    theirs = json.loads((HERE / "ppcg_times.json").read_text())
    ratios = {name: 1e-3 * theirs[name]["ms"] / ours[name]["seconds"] for name in ours if theirs[name]["right"]}
    earlier = sorted(name for name in ratios if theirs[name].get("earlier"))
    slower = sorted(name for name, ratio in ratios.items() if ratio < 1)
    lines = ["# PolyBench on an H200 by `kingpost auto`", "",
             "Plain texts, schedules of `kingpost auto --device cuda`, and PPCG 0.09 with its default options, nvcc 13.0; double",
             "precision, the sizes of `LARGE` in studies/polybench/run.py, 2026-11-28. Medians of device events; arrays are on the",
             "card. `run.py card-time`, `ppcg.py > ppcg_times.json` on one machine and `run.py card-page` make this page. Schedules are",
             "right in CUDA at two or three small sizes (`run.py card-check`) and at those that are timed, PPCG's against the C references. Where a",
             "schedule says so, it is the fastest of those that `auto` ranks first, timed on such a machine (`run.py card-auto`; 3mm, mvt,",
             "atax, bicg, gemver, gesummv, gemm and the last two tables 2026-11-29).",
             *([f"PPCG's times of {', '.join(earlier)} are of an earlier run on such a machine."] if earlier else []), "",
             "| kernel | Kingpost | PPCG | PPCG / Kingpost |", "|---|---|---|---|"]
    for name in sorted(ratios):
        lines.append(f"| {name} | {1e3 * ours[name]['seconds']:.3f} ms | {theirs[name]['ms']:.3f} ms | {ratios[name]:.2f} |")
    mean_ = float(np.exp(np.mean(np.log(list(ratios.values())))))
    lines += [f"| geometric mean of {len(ratios)} | | | {mean_:.2f} |", "",
              f"Slower than PPCG's: {', '.join(slower) or 'none'}. gramschmidt is left out: with more columns than rows, its last columns are",
              "rounding errors."]
    lines += hand_table("Schedules by hand", "studies/polybench/run.py card-hand", HERE / "card_hand_times.json")
    lines += hand_table("Other programs", "studies/polybench/other.py card-auto card-check card-time", HERE / "other" / "card_times.json")
    (ROOT / "results" / "h200" / "polybench.md").write_text("\n".join(lines) + "\n")


def hand_table(title, command, path):
    """Times of a card by hand and by `auto`, where they were taken."""
    if not path.exists():
        return []
    found = json.loads(path.read_text())
    lines = ["", f"## {title}", "", f"Medians in turn; more than 1 is faster than by hand. `python3 {command}`, then `run.py card-page`.", "",
             "| program | by hand | auto | hand / auto |", "|---|---|---|---|"]
    return lines + [f"| {name} | {1e3 * v['hand']:.3f} ms | {1e3 * v['auto']:.3f} ms | {v['hand'] / v['auto']:.2f} |" for name, v in sorted(found.items()) if v]


def platform():
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return names[0] if names else "an unknown processor"


def times_of(threads):
    path = HERE / ("times.json" if threads == 1 else f"times-{threads}.json")
    return json.loads(path.read_text()) if path.exists() else {}


def table(found, labels):
    """Speeds relative to plain C."""
    labels = [l for l in labels if any(l in v for v in found.values())]
    lines = ["| kernel | plain C | " + " | ".join(labels) + " |", "|---|---|" + "---|" * len(labels)]
    for name in sorted(found):
        v = found[name]
        cells = [f"{v['gcc'] / v[l]:.2f}" if l in v else "–" for l in labels]
        lines.append(f"| {name} | {v['gcc']:.3f} s | " + " | ".join(cells) + " |")
    return [*lines, "| geometric mean | | " + " | ".join(f"{mean(found, l):.2f}" for l in labels) + " |"]


def page(_):
    alone = ["isl is its scheduler's band alone, in tiles of 32, proved and printed by Kingpost (`run.py isl`)."]
    alone = alone if any("isl" in found for found in times_of(1).values()) else []
    gcc = subprocess.run(["gcc", "--version"], capture_output=True, text=True).stdout.split("\n")[0]
    lines = ["# PolyBench by `kingpost auto`", "", f"One thread, speed relative to plain C ({gcc}, `-O3 -march=native`), medians of {RUNS} interleaved runs;",
             f"{platform()}, {time.strftime('%Y-%m-%d')}. Polly of clang 19, Pluto 0.13 with the flags of baselines.sh.", *alone,
             f"`RUNS={RUNS} PLUTO=… POLLY=clang-19 python3 studies/polybench/run.py schedule time page` makes this table.", "", *table(times_of(1), ("written", "auto", "isl", "polly", "pluto"))]
    if times_of(2):
        lines += ["", "## Two threads", "",
                  "Wall time, relative to plain C on one thread. `auto` schedules for two threads; `-polly-parallel`, Pluto `--parallel`.",
                  f"`THREADS=2 RUNS={RUNS} PLUTO=… python3 studies/polybench/run.py schedule time`, then `page`.", "",
                  *table(times_of(2), ("auto", "polly", "pluto"))]
    other = HERE / "other" / "times.json"
    if other.exists():
        found = json.loads(other.read_text())
        lines += ["", "## Other programs", "",
                  "`auto` beside a schedule by hand of the same program (other/hand), both in C on one thread; more than 1 is faster than by",
                  "hand. `python3 studies/polybench/other.py schedule check time`, then `run.py page`.", "", "| program | by hand | auto | hand / auto |", "|---|---|---|---|"]
        lines += [f"| {name} | {1e3 * v['hand']:.2f} ms | {1e3 * v['auto']:.2f} ms | {v['hand'] / v['auto']:.2f} |" for name, v in sorted(found.items())]
    (ROOT / "results" / "polybench.md").write_text("\n".join(lines) + "\n")


def everything(names):
    """The page from nothing: on one thread, on two, and the other programs."""
    here = [sys.executable, str(HERE / "run.py")]
    for threads, commands in (("1", ["schedule", "check", "isl", "time"]), ("2", ["schedule", "check", "time"])):
        subprocess.run([*here, *commands, *names], check=True, env={**os.environ, "THREADS": threads})
    subprocess.run([sys.executable, str(HERE / "other.py"), "schedule", "check", "time"], check=True, env={**os.environ, "THREADS": "1"})
    page(names)


def main():
    commands = {"all": everything, "schedule": schedule, "check": check, "isl": isl, "time": measure, "page": page, "cards": cards, "card-auto": card_auto, "card-check": card_check, "card-time": card_time, "card-hand": card_hand, "card-page": card_page}
    asked = [word for word in sys.argv[1:] if word in commands]
    names = [word for word in sys.argv[1:] if word not in commands] or sorted(SMALL)
    if not asked or any(name not in SMALL for name in names):
        sys.exit(__doc__)
    return max((commands[command](names) or 0) for command in asked)


if __name__ == "__main__":
    sys.exit(main())
