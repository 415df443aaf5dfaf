#!/usr/bin/env python3
"""The kernels and the conjugate gradients of the DOLFINx benchmark beside those of the study, on one card.

    git clone https://github.com/ukri-bench/benchmark-dolfinx
    python3 studies/dolfinx-benchmark/beside.py prepare benchmark-dolfinx OUT   # no card
    python3 OUT/beside.py time OUT > beside.jsonl                               # CuPy, nvcc and a card alone
    python3 studies/dolfinx-benchmark/beside.py page beside.jsonl               # tables as Markdown

`prepare` writes the study's kernels as CUDA by some mappings, and takes the benchmark's device code from a
checkout. `time` compiles that with nvcc, as its CMake file does, makes the mesh and the map of degrees of freedom
for both, compares the norms with those that the benchmark publishes and every result with the benchmark's, and
times actions and iterations by the wall clock, as the benchmark does.
"""

import concurrent.futures
import ctypes
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEBUG = Path("target/debug")
KINGPOST = os.environ.get("KINGPOST", DEBUG / "kingpost")
STUDY = os.environ.get("STUDY", DEBUG / "study-dolfinx-benchmark")
HEADERS = ["laplacian_gpu.hpp", "geometry_gpu.hpp", "cg.hpp", "util.hpp"]
EMPTY = ["basix/finite-element.h", "basix/interpolation.h", "basix/quadrature.h", "dolfinx/common/MPI.h"]
KAPPA = 2.0
VECTORS = ["clear", "hold", "put_back", "dot", "residual", "direction"]
NVCC = "-std=c++20 -O3 -DNDEBUG -DUSE_CUDA --extended-lambda --expt-relaxed-constexpr -arch=sm_90 -I. -Xcompiler -fPIC"


class Arrays(ctypes.Structure):
    """As in `driver.cu`."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("constants", "geometry", "phi0", "dphi1", "dofmap", "cells")),
        ("n_cells", ctypes.c_int),
        ("markers", ctypes.c_void_p),
        ("is_identity", ctypes.c_int),
    ]


def pointer(array):
    return ctypes.c_void_p(array.data.ptr)


def lines(cells, **more):
    return {"strategy": "factorised_lines", "cells": cells, "literal_tables": False, **more}


def stored(cells, **more):
    return {"strategy": "stored_factors", "then": lines(cells, **more)}


# the first one is the default of the library
MAPPINGS = {
    3: {
        "lines-5": lines(5),
        "stored-2-private": stored(2, factors="private"),
        "stored-4": stored(4),
    },
    6: {
        "lines-1": lines(1),
        "stored-2": stored(2),
        "stored-1-private": stored(1, factors="private"),
    },
}


def prepare(checkout, out):
    out.mkdir(parents=True, exist_ok=True)
    for file in [HERE / "beside.py", HERE / "../../scripts/printed_kernel.py", *(HERE / "theirs").iterdir()]:
        shutil.copy(file, out)
    for header in HEADERS:
        text = subprocess.run(["git", "-C", checkout, "show", f"HEAD:src/{header}"], check=True, capture_output=True)
        (out / header).write_bytes(text.stdout)
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    (out / "commit").write_text(commit.stdout)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        places = range(max(map(len, MAPPINGS.values())))
        cases = [(k, p, bits) for k in places for p in MAPPINGS for bits in (64, 32)]
        list(pool.map(lambda case: sources(out, *case), cases))


def sources(out, place, degree, bits):
    name, mapping = list(MAPPINGS[degree].items())[place]
    folder = out / f"q{degree}-f{bits}"
    work = folder / f"{name}-texts"
    asked = ["--degree", str(degree), "--float", str(bits), "--mapping", json.dumps(mapping), "--sources", str(work)]
    subprocess.run([STUDY, *asked], check=True)
    # the vectors and the load do not depend on the mapping of the operator
    for kernel in ["stiffness", *(["load", *VECTORS] if place == 0 else [])]:
        text = work / f"{kernel}.kingpost"
        args = [KINGPOST, "print", text, "--target", "cuda", "--plan"]
        printed = subprocess.run(args, check=True, capture_output=True, text=True).stdout
        stem = name if kernel == "stiffness" else kernel
        (folder / f"{stem}.cu").write_text(printed)
        (folder / f"{stem}.json").write_text(json.dumps(tables(text.read_text())))
    shutil.rmtree(work)


def tables(text):
    """The values of the tables of a kernel."""
    found = re.findall(r"^table (\w+) = \[([^\]]*)\]", text, re.MULTILINE)
    return {name: [float(x) for x in values.replace("\n", " ").split(",") if x.strip()] for name, values in found}


def compiled(folder):
    """The benchmark's code as a library, by the compiler of this machine."""
    for name in EMPTY:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    nvcc = os.environ.get("NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    subprocess.run([nvcc, *NVCC.split(), "-shared", "driver.cu", "-o", "theirs.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "theirs.so"))


def gauss_lobatto(n):
    """Points in [0, 1] and weights."""
    from numpy.polynomial import legendre

    last = legendre.Legendre.basis(n - 1)
    inner = last.deriv().roots().real
    x = np.concatenate([[-1.0], np.sort(inner), [1.0]])
    return (x + 1) / 2, 1 / (n * (n - 1) * last(x) ** 2)


def basis(nodes, points):
    """Values and derivatives of Lagrange's polynomials of nodes, a row a point."""
    n = len(nodes)
    values, slopes = np.ones((len(points), n)), np.zeros((len(points), n))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        ratio = lambda j: (points - nodes[j]) / (nodes[i] - nodes[j])  # noqa: B023, E731
        values[:, i] = np.prod([ratio(j) for j in others], axis=0)
        for k in others:
            rest = [ratio(j) for j in others if j != k]
            slopes[:, i] += np.prod(rest, axis=0) / (nodes[i] - nodes[k]) if rest else 1 / (nodes[i] - nodes[k])
    return values, slopes


def cells_for(n_dofs, degree):
    """As the benchmark chooses them."""
    nearest = int((n_dofs ** (1 / 3) - 1) / degree + 0.5)
    along = range(max(1, nearest - 5), nearest + 6)
    misfit = lambda cells: abs(math.prod(n * degree + 1 for n in cells) - n_dofs)  # noqa: E731
    return min([(nearest,) * 3, *itertools.product(along, along, along)], key=misfit)


def numbered(cells, degree):
    """The numbers along the axes of the degrees of freedom of each cell, the first axis fastest."""
    places = [degree * cp.arange(n, dtype=cp.int32)[:, None] + cp.arange(degree + 1, dtype=cp.int32) for n in cells]
    x, y, z = places
    along = [n * degree + 1 for n in cells]
    z = z[:, None, None, :, None, None] * cp.int32(along[0] * along[1])
    y = y[None, :, None, None, :, None] * cp.int32(along[0])
    return (z + y + x[None, None, :, None, None, :]).reshape(math.prod(cells), (degree + 1) ** 3)


class Problem:
    """Mesh, map and the benchmark's tables on the card; degrees of freedom on the boundary come last."""

    def __init__(self, theirs, degree, bits, n_dofs, perturbation):
        self.degree, self.bits, self.points = degree, bits, degree + 2
        self.type = cp.float64 if bits == 64 else cp.float32
        self.cells = cells_for(n_dofs, degree)
        self.n_cells = math.prod(self.cells)
        along = [n * degree + 1 for n in self.cells]
        self.n = math.prod(along)
        inner = cp.zeros(along[::-1], dtype=bool)
        inner[1:-1, 1:-1, 1:-1] = True
        inner = inner.ravel()
        self.free = int(inner.sum())
        outer = cp.cumsum(~inner, dtype=cp.int32) + cp.int32(self.free - 1)
        self.places = cp.where(inner, cp.cumsum(inner, dtype=cp.int32) - 1, outer)
        self.dofs = self.places[numbered(self.cells, degree)]
        self.vertices = numbered(self.cells, 1)
        x, y, z = (cp.arange(n + 1) / n for n in self.cells)
        self.coordinates = cp.stack([a.ravel() for a in cp.meshgrid(z, y, x, indexing="ij")[::-1]], axis=1)
        random = 2 * cp.random.default_rng(42).random(len(self.coordinates)) - 1
        self.coordinates[:, 0] += perturbation / self.cells[0] * random
        self.coordinates = self.coordinates.astype(self.type)
        self.theirs(theirs)

    def theirs(self, library):
        q = self.points
        nodes, _ = gauss_lobatto(self.degree + 1)
        points, weights = gauss_lobatto(q)
        phi, _ = basis(nodes, points)
        _, dphi = basis(points, points)
        # reference axes in the order z, y, x, and space likewise, so that maps of cells keep their orientation
        v, d = basis(np.array([0.0, 1.0]), points)
        of_axis = [np.einsum("ai,bj,ck->abcijk", *(d if k == axis else v for k in range(3))) for axis in range(3)]
        on_card = lambda array: cp.asarray(np.ascontiguousarray(array), dtype=self.type)  # noqa: E731
        self.tables = on_card(phi), on_card(dphi)
        geometry = on_card(np.stack(of_axis)), on_card(np.einsum("a,b,c->abc", weights, weights, weights))
        swapped = cp.ascontiguousarray(self.coordinates[:, ::-1])
        self.list = cp.arange(self.n_cells, dtype=cp.int32)
        self.markers = (cp.arange(self.n) >= self.free).astype(cp.int8)
        self.constants = cp.full(self.n_cells, KAPPA, dtype=self.type)
        self.geometry = cp.empty((self.n_cells, 6, q, q, q), dtype=self.type)
        pointers = [pointer(a) for a in (swapped, self.geometry, self.vertices, *geometry, self.list)]
        cp.cuda.Device().synchronize()
        getattr(library, f"geometry_f{self.bits}_{self.degree}_{q}")(*pointers, self.n_cells)
        self.arrays = Arrays(
            *(pointer(a) for a in (self.constants, self.geometry, *self.tables, self.dofs, self.list)),
            self.n_cells,
            pointer(self.markers),
            0,
        )
        self.timed = getattr(library, f"timed_f{self.bits}_{self.degree}_{q}")
        self.timed.restype = ctypes.c_double

    def run_theirs(self, u, repetitions, is_cg):
        """The result, and seconds of a repetition."""
        result = cp.full(self.n, cp.nan, dtype=self.type)
        cp.cuda.Device().synchronize()
        arrays = ctypes.byref(self.arrays), self.n, pointer(u), pointer(result)
        return result, self.timed(*arrays, repetitions, is_cg) / repetitions

    def source(self):
        """The benchmark's source at nodes of a mesh that is not deformed."""
        nodes = cp.asarray(gauss_lobatto(self.degree + 1)[0])
        along = [cp.append(((cp.arange(n)[:, None] + nodes[:-1]) / n).ravel(), 1.0) for n in self.cells]
        x, y = (cp.exp(-((a - 0.5) ** 2) / 0.02) for a in along[:2])
        values = 1000 * y[:, None] * x[None, :]
        values = cp.broadcast_to(values, (len(along[2]), *values.shape)).ravel()
        f = cp.empty(self.n, dtype=self.type)
        f[self.places] = values.astype(self.type)
        return f


class Ours:
    """A kernel of the study with its arrays."""

    def __init__(self, path):
        self.kernel = PrintedKernel(path)
        self.names = re.findall(r"//   (\w+): \w+ (?:buffer|table)", self.kernel.source)
        self.tables = json.loads(path.with_suffix(".json").read_text())

    def on(self, problem):
        """The arrays of a problem, but `u` and `y`."""
        self.problem = problem
        self.arrays = {"coords": problem.coordinates, "cell_vertices": problem.vertices}
        for name, values in self.tables.items():
            is_order = name.endswith("_order")
            self.arrays[name] = cp.asarray(values, dtype=cp.int32 if is_order else problem.type)
            if is_order:
                self.arrays["dofs"] = cp.empty_like(problem.dofs)
                self.arrays["dofs"][:, self.arrays[name]] = problem.dofs
        for name in self.names:
            if factor := re.fullmatch(r"e(\d)_u_d(\d)", name):
                # the benchmark's axes are ours in the opposite order
                a, b = sorted(2 - int(k) for k in factor.groups())
                own = problem.geometry[:, {(0, 0): 0, (0, 1): 1, (0, 2): 2, (1, 1): 3, (1, 2): 4, (2, 2): 5}[a, b]]
                self.arrays[name] = cp.ascontiguousarray(KAPPA * own.transpose(0, 3, 2, 1))
        return self

    def add(self, u, y):
        p = self.problem
        sizes = {"n_cells": p.n_cells, "n_vertices": len(p.coordinates), "n_dofs": p.n}
        self.kernel.launch(sizes, [{**self.arrays, "u": u, "y": y}[name] for name in self.names])


class Vectors:
    """The study's kernels on vectors."""

    def __init__(self, kernels, problem):
        self.kernels, self.problem = kernels, problem
        self.kept = cp.empty(max(1, problem.n - problem.free), dtype=problem.type)

    def __getattr__(self, name):
        ours = self.kernels[name]
        n, free = self.problem.n, self.problem.free
        sizes = {"n": n, "n_owned": free, "n_free": free, "n_dofs": n}
        return lambda arrays, **more: ours.kernel.launch({**sizes, **more}, [arrays[k] for k in ours.names])


def graph_of(stream, body):
    """What a function puts on a stream, which runs nothing of it."""
    stream.begin_capture()
    body()
    return stream.end_capture()


def run_ours(vectors, operator, b, repetitions, is_cg):
    """As the study does it, but all launches at once, in graphs: the result, and seconds of a repetition."""
    run = run_cg if is_cg else run_action
    operator.add(b, cp.zeros_like(b))  # code goes to the card with its first launch
    cp.cuda.Device().synchronize()
    with cp.cuda.Stream(non_blocking=True) as stream:
        return run(vectors, operator, b, repetitions, stream)


def run_action(vectors, operator, b, repetitions, stream):
    u, y = b.copy(), cp.full(b.size, cp.nan, dtype=b.dtype)

    def action():
        vectors.clear({"v": y})
        vectors.hold({"u": u, "kept": vectors.kept})
        operator.add(u, y)
        vectors.put_back({"u": u, "y": y, "kept": vectors.kept})

    graph = graph_of(stream, action)
    stream.synchronize()
    start = time.perf_counter()
    for _ in range(repetitions):
        graph.launch(stream)
        stream.synchronize()  # as the benchmark does after each action
    return y, (time.perf_counter() - start) / repetitions


def run_cg(vectors, operator, b, repetitions, stream):
    r, direction, x, q = b.copy(), b.copy(), cp.zeros_like(b), cp.zeros_like(b)
    rr, pq = (cp.zeros(repetitions + 1) for _ in range(2))
    n_sums = repetitions + 1

    def iterations():
        vectors.dot({"v": r, "w": r, "sums": rr}, n_sums=n_sums, k=0)
        for k in range(repetitions):
            operator.add(direction, q)
            vectors.dot({"v": direction, "w": q, "sums": pq}, n_sums=n_sums, k=k)
            vectors.residual({"pq": pq, "q": q, "r": r, "rr": rr}, n_sums=n_sums, k=k)
            arrays = {"rr": rr, "pq": pq, "r": r, "x": x, "p": direction, "q": q}
            vectors.direction(arrays, n_sums=n_sums, k=k)

    graph = graph_of(stream, iterations)
    stream.synchronize()
    start = time.perf_counter()
    graph.launch(stream)
    stream.synchronize()
    return x, (time.perf_counter() - start) / repetitions


def difference(a, b):
    return float(cp.linalg.norm(a.astype(cp.float64) - b) / cp.linalg.norm(b.astype(cp.float64)))


def check_norms(library, kernels):
    """The benchmark's published norms (`examples/mat_comp-16.json`), of its kernel and of each of ours."""
    p = Problem(library, 3, 64, 100000, 0.0)
    assert p.n == 100048
    b = cp.zeros(p.n)
    kernels["load"].on(p).add(p.source(), b)
    b[p.free :] = 0
    vectors = Vectors(kernels, p)
    found = {"u": b, "theirs": p.run_theirs(b, 1, 0)[0]}
    found |= {name: run_ours(vectors, kernels[name].on(p), b, 1, False)[0] for name in MAPPINGS[3] if name in kernels}
    for name, values in found.items():
        expected = 6.895773850559623e-1 if name == "u" else 1.415025762564184e-1
        off = abs(float(cp.linalg.norm(values)) / expected - 1)
        print(f"norm of {name}: off by {off:.1e}", file=sys.stderr)
        assert off < 1e-12, name


def compare(library, kernels, degree, bits, n_dofs, repetitions, rounds):
    p = Problem(library, degree, bits, n_dofs, 0.2)
    vectors = Vectors(kernels, p)
    b = (2 * cp.random.default_rng(7).random(p.n) - 1).astype(p.type)
    zero = b.copy()
    zero[p.free :] = 0
    theirs = p.run_theirs(b, 1, 0)[0]
    names = [name for name in MAPPINGS[degree] if name in kernels]
    record = {"degree": degree, "float": bits, "cells": p.n_cells, "dofs": p.n, "kappa": KAPPA, "ours": {}}
    times = {(name, cg): [] for name in ["theirs", *names] for cg in (0, 1)}
    operators = {name: kernels[name].on(p) for name in names}
    for name, operator in operators.items():
        error = difference(run_ours(vectors, operator, b, 1, False)[0], theirs)
        solutions = run_ours(vectors, operator, zero, 10, True)[0], p.run_theirs(zero, 10, 1)[0]
        record["ours"][name] = {
            "mapping": MAPPINGS[degree][name],
            "error": error,
            "cg_error": difference(*solutions),
            "registers": operator.kernel.registers,
            "spilled": operator.kernel.spilled,
        }
        assert error < (1e-12 if bits == 64 else 1e-5), (name, error)
    for _ in range(rounds):
        for cg in (0, 1):
            times["theirs", cg].append(p.run_theirs(zero, repetitions, cg)[1])
            for name, operator in operators.items():
                times[name, cg].append(run_ours(vectors, operator, zero, repetitions, cg)[1])
    for operator in operators.values():
        operator.arrays, operator.problem = {}, None
    best = lambda name, cg: min(times[name, cg])  # noqa: E731
    record["theirs"] = {"action_s": best("theirs", 0), "cg_s": best("theirs", 1)}
    for name in names:
        record["ours"][name] |= {"action_s": best(name, 0), "cg_s": best(name, 1)}
    print(json.dumps(record), flush=True)


def measure(folder, sizes, repetitions, rounds):
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        library = pool.submit(compiled, folder)
        paths = sorted(folder.glob("q*/*.cu"))
        ours = dict(zip(paths, pool.map(lambda path: attempt(lambda: Ours(path)), paths)))
        library = library.result()
    print(f"compiled in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    kernels = {}
    for path, kernel in ours.items():
        if kernel:
            kernels.setdefault(path.parent.name, {})[path.stem] = kernel
    properties = cp.cuda.runtime.getDeviceProperties(0)
    device = {"device": properties["name"].decode(), "cuda": cp.cuda.runtime.driverGetVersion()}
    commit = (folder / "commit").read_text().strip()
    print(json.dumps({**device, "date": time.strftime("%Y-%m-%d"), "commit": commit}), flush=True)
    attempt(lambda: check_norms(library, kernels["q3-f64"]))
    for size in sizes:
        for bits in (64, 32):
            for degree in MAPPINGS:
                args = library, kernels[f"q{degree}-f{bits}"], degree, bits, size, repetitions, rounds
                attempt(lambda: compare(*args))
                cp.get_default_memory_pool().free_all_blocks()


def attempt(what):
    """What comes out, or none after saying why."""
    try:
        return what()
    except Exception:
        traceback.print_exc()
        return None


def page(file):
    device, *records = map(json.loads, file.read_text().splitlines())
    print(f"{device['device']}, {device['date']}, the benchmark at commit `{device['commit'][:7]}`\n")
    print("| p | bits | unknowns | | theirs, GDoF/s | default | times | best | times | mapping |")
    print("|--:|--:|--:|---|--:|--:|--:|--:|--:|---|")
    for r in records:
        for what, key in [("action", "action_s"), ("CG", "cg_s")]:
            rate = lambda seconds: r["dofs"] / seconds / 1e9  # noqa: E731
            theirs, ours = r["theirs"][key], r["ours"]
            first = next(iter(ours.values()))[key]
            name = min(ours, key=lambda name: ours[name][key])
            best = ours[name][key]
            print(
                f"| {r['degree']} | {r['float']} | {r['dofs']:.2e} | {what} | {rate(theirs):.2f} | {rate(first):.2f} "
                f"| {theirs / first:.2f} | {rate(best):.2f} | {theirs / best:.2f} | {name} |"
            )


if __name__ == "__main__":
    command, *rest = sys.argv[1:] or ["help"]
    if command == "prepare":
        prepare(Path(rest[0]), Path(rest[1]))
    elif command == "time":
        import cupy as cp
        import numpy as np
        from printed_kernel import PrintedKernel

        numbers = [float(x) for x in rest[1:]]
        measure(Path(rest[0]).resolve(), [int(n) for n in numbers] or [10_000_000, 50_000_000], 50, 3)
    elif command == "page":
        page(Path(rest[0]))
    else:
        sys.exit(__doc__)
