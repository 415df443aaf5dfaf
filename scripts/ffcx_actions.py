#!/usr/bin/env python3
"""Times kingpost's C of 30 operator actions and FFCx's C on the same mesh.

Both take a rule of the same degree: kingpost those of Xiao & Gimbutas 2010, FFCx those of basix, which
have 14, 24 and 45 points at degrees 4, 6 and 8 instead of 11, 23 and 44. The table has both numbers,
the page also the mean of ratios scaled by them. FFCx's kernel runs in the cell loop of
DOLFINx's assembler (coordinates and coefficient gathered, tabulated, scattered), compiled in one
unit with the loop by `-O3 -march=native -ffast-math`. The two run in turns on one thread; the time
of each is the minimum of its runs. Then kingpost runs on two threads, which tells something on an idle
machine only; `--one-thread` leaves it out.

The mesh is a cube of tetrahedra: vertices moved, vertices and cells numbered at random.

    scripts/ffcx.sh                # makes .venv with the peer, once
    cargo build --release
    .venv/bin/python scripts/ffcx_actions.py --write results/cpu

What it needs: two cores with nothing else on them (a load below 0.1 before it starts) until all 30 cases are
done, as ratios of some cases taken on a busy machine are not those of the page; a release build with the mappings
that are to be compared; the same processor for all cases.
"""

import argparse
import csv
import ctypes
import datetime
import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time

import basix.ufl
import ffcx
import ffcx.compiler
import ffcx.options
import numpy as np
import ufl

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPERATORS = ["mass", "laplace", "helmholtz", "elasticity", "hyperelasticity"]
# Divisions of a side of the cube by degree, so that all arrays fit into the cache of the second
# level or the third: what is compared is the kernels.
DIVISIONS = {1: 12, 2: 8, 3: 6, 4: 5, 5: 4, 6: 4}
CFLAGS = ["-O3", "-march=native", "-ffast-math", "-fPIC", "-shared", "-std=gnu17"]
TOLERANCE = 1e-10


def quadrature_degree(operator, p):
    """UFL's estimate for the forms of Kulkarni & Klöckner 2025, Appendix A."""
    return {"mass": 2 * p, "helmholtz": 2 * p, "hyperelasticity": 4 * (p - 1)}.get(operator, 2 * (p - 1))


def form(operator, p):
    """The action, its functions by name in the order of FFCx, and its number of components."""
    vector = operator in ("elasticity", "hyperelasticity")
    mesh = ufl.Mesh(basix.ufl.element("Lagrange", "tetrahedron", 1, shape=(3,)))
    variant = basix.LagrangeVariant.equispaced
    shape = {"shape": (3,)} if vector else {}
    element = basix.ufl.element("Lagrange", "tetrahedron", p, lagrange_variant=variant, **shape)
    space = ufl.FunctionSpace(mesh, element)
    test, trial = ufl.TestFunction(space), ufl.TrialFunction(space)
    u = ufl.Coefficient(space)
    dx = ufl.Measure("dx", domain=mesh, metadata={"quadrature_degree": quadrature_degree(operator, p)})
    grad, inner = ufl.grad, ufl.inner
    if operator == "hyperelasticity":
        du, lmbda, mu = ufl.Coefficient(space), ufl.Constant(mesh), ufl.Constant(mesh)
        f = ufl.Identity(3) + grad(u)
        e = ufl.variable((f.T * f - ufl.Identity(3)) / 2)
        psi = lmbda / 2 * ufl.tr(e) ** 2 + mu * ufl.tr(e * e)
        residual = inner(f * ufl.diff(psi, e), grad(test)) * dx
        return ufl.action(ufl.derivative(residual, u, trial), du), ["u", "du"], 3
    integrand = {
        "mass": lambda: inner(trial, test),
        "laplace": lambda: inner(grad(trial), grad(test)),
        "helmholtz": lambda: inner(grad(trial), grad(test)) + inner(trial, test),
        "elasticity": lambda: inner(ufl.sym(grad(trial)), ufl.sym(grad(test))),
    }[operator]()
    return ufl.action(integrand * dx, u), ["u"], 3 if vector else 1


def ffcx_source(operator, p):
    """FFCx's function and the cell loop around it; also the number of points and functions."""
    action, names, components = form(operator, p)
    options = ffcx.options.get_options({"scalar_type": np.float64})
    code = ffcx.compiler.compile_ufl_objects([action], options, namespace="peer")
    code = code[0] if isinstance(code[0], (list, tuple)) else code
    source = next(c for c in code if "void tabulate_tensor" in c)
    name = re.search(r"void (tabulate_tensor_\w+)\(", source).group(1)
    body = re.search(rf"void {name}\(.*?(?=^\w*\s*ufcx_integral)", source, re.S | re.M).group(0)
    points = int(re.search(r"weights_\w+\[(\d+)\]", body).group(1))
    nodes = (p + 1) * (p + 2) * (p + 3) // 6
    local = nodes * components
    gathers = "\n".join(
        f"            for (int i = 0; i < {nodes}; ++i) for (int k = 0; k < {components}; ++k)\n"
        f"                w[{f * local} + {components} * i + k] = f{f}[{components} * d[i] + k];"
        for f in range(len(names))
    )
    arguments = ", ".join(f"const double *restrict f{f}" for f in range(len(names)))
    loop = f"""
void peer_action(int n, double *restrict y, const double *restrict x, const int *restrict vertices,
                 const int *restrict dofs, const double *restrict c, {arguments})
{{
    double w[{local * len(names)}], be[{local}], coordinates[12];
    for (int cell = 0; cell < n; ++cell) {{
        const int *v = vertices + 4 * (long)cell, *d = dofs + {nodes} * (long)cell;
        for (int i = 0; i < 4; ++i) for (int k = 0; k < 3; ++k)
            coordinates[3 * i + k] = x[3 * (long)v[i] + k];
        {{
{gathers}
        }}
        for (int i = 0; i < {local}; ++i) be[i] = 0.0;
        {name}(be, w, c, coordinates, 0, 0, 0);
        for (int i = 0; i < {nodes}; ++i) for (int k = 0; k < {components}; ++k)
            y[{components} * d[i] + k] += be[{components} * i + k];
    }}
}}
"""
    head = "#include <math.h>\n#include <stdint.h>\n#include <stdbool.h>\n#include <stdalign.h>\n\nstatic "
    return head + body + loop, points, names


def mesh_file(path, n, seed):
    """A cube of 6 n^3 tetrahedra as MSH 4.1: vertices moved, vertices and cells numbered at random."""
    random = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    inside = ((grid > 0) & (grid < n)).all(1)
    x = (grid + 0.15 * inside[:, None] * random.uniform(-1, 1, grid.shape)) / n
    corner = lambda o: ((grid[:, 0] + o[0]) * (n + 1) + grid[:, 1] + o[1]) * (n + 1) + grid[:, 2] + o[2]
    base = (grid < n).all(1)
    unit = np.eye(3, dtype=int)
    cells = []
    for a, b in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]:
        path_of = [np.zeros(3, int), unit[a], unit[a] + unit[b], np.ones(3, int)]
        cells.append(np.stack([corner(o)[base] for o in path_of], 1))
    cells = random.permutation(np.concatenate(cells))
    number = random.permutation(len(x))
    moved = np.empty_like(x)
    moved[number] = x
    cells = number[cells]
    flip = np.linalg.det(moved[cells[:, 1:]] - moved[cells[:, :1]]) < 0
    cells[flip] = cells[flip][:, [0, 1, 3, 2]]
    with open(path, "w") as f:
        f.write("$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n0 0 0 1\n1 0 0 0 1 1 1 0 0\n$EndEntities\n")
        f.write(f"$Nodes\n1 {len(x)} 1 {len(x)}\n3 1 0 {len(x)}\n")
        f.writelines(f"{k + 1}\n" for k in range(len(x)))
        f.writelines(f"{a:.17g} {b:.17g} {c:.17g}\n" for a, b, c in moved)
        f.write(f"$EndNodes\n$Elements\n1 {len(cells)} 1 {len(cells)}\n3 1 4 {len(cells)}\n")
        f.writelines(f"{k + 1} {' '.join(str(v + 1) for v in cell)}\n" for k, cell in enumerate(cells))
        f.write("$EndElements\n")


class Kingpost:
    """Kingpost's compiled kernel of an action with its arguments."""

    def __init__(self, binary, operator, p, mesh, directory, mapping, threads):
        cache, arrays = directory / "cache", directory / "arrays"
        command = [binary, "run", operator, "--dim", "3", "--degree", str(p), "--device", "c", "--no-time"]
        command += ["--scheme", "xiao-gimbutas", "--mesh", mesh, "--seed", "1", "--save-inputs"]
        command += ["--save-dir", directory, "--save-arrays", arrays, "--db", directory / "none.jsonl"]
        if mapping:
            command += ["--mapping", mapping]
        environment = dict(os.environ, KINGPOST_CACHE_DIR=str(cache), OMP_NUM_THREADS=str(threads))
        run = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{operator} P{p}: {run.stdout}{run.stderr}")
        self.report = json.loads((directory / "report.json").read_text())
        [library] = cache.glob("*.so")
        entry = f"{operator}_3d_p{p}"
        self.library = ctypes.CDLL(str(library))
        self.launch = getattr(self.library, f"{entry}_launch")
        self.inputs = {f.stem: np.load(f) for f in (arrays / "inputs").glob("*.npy")}
        self.values, self.grid = [], None
        source = (directory / f"{entry}.c").read_text()
        form = [binary, "print", operator, "--dim", "3", "--degree", str(p), "--scheme", "xiao-gimbutas"]
        text = subprocess.run(list(map(str, form)), check=True, capture_output=True, text=True).stdout
        # the mapped kernel may have modes instead
        self.points = int(re.search(r"table weights\w*: f64\[(\d+)\]", text).group(1))
        signature = re.search(rf"void {entry}\((.*?)\n\)?{{", source, re.S).group(1)
        parameters = re.findall(r"(const )?(int32_t|int64_t|double) (\*restrict )?(\w+)", signature)
        self.y = np.zeros_like(self.inputs["y"])
        sizes = {"n_cells": "cell_vertices", "n_vertices": "coords", "n_dofs": "y"}
        pointers = []
        for _, ty, pointer, name in parameters:
            if name.startswith("groups_"):
                continue
            if name in sizes:
                value = getattr(ctypes, f"c_{ty[:-2]}")(len(self.inputs[sizes[name]]))
            elif name == "y":
                value = ctypes.c_void_p(self.y.ctypes.data)
            elif name in self.inputs and pointer:
                value = ctypes.c_void_p(self.inputs[name].ctypes.data)
            elif name in self.inputs:
                value = ctypes.c_double(float(self.inputs[name].ravel()[0]))
            else:
                sys.exit(f"{entry}: argument `{name}` is a table; choose a mapping with tables in the source")
            self.values.append(value)
            pointers.append(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p))
        self.args = (ctypes.c_void_p * len(pointers))(*pointers)
        cells = self.cells_per_group(source)
        groups = -(-len(self.inputs["cell_vertices"]) // cells)
        self.grid = (ctypes.c_int64 * 3)(groups, 1, 1)

    @staticmethod
    def cells_per_group(source):
        """Cells of a work-group, from the stride of the map of vertices."""
        return int(re.search(r"cell_vertices\[(\d+)\*", source).group(1)) // 4

    def call(self):
        self.launch(self.args, self.grid)


class Peer:
    """FFCx's kernel in its loop, on the arrays of `kingpost`."""

    def __init__(self, operator, p, kingpost, directory):
        source, self.points, names = ffcx_source(operator, p)
        path = directory / "peer.c"
        path.write_text(source)
        library = directory / "peer.so"
        subprocess.run([os.environ.get("CC", "cc"), *CFLAGS, "-o", library, path, "-lm"], check=True)
        self.library = ctypes.CDLL(str(library))
        data = kingpost.inputs
        self.y = np.zeros_like(data["y"])
        self.constants = np.array([float(data[k].ravel()[0]) for k in ("lambda", "mu") if k in data] or [0.0])
        arrays = [self.y, data["coords"], data["cell_vertices"], data["dofs"], self.constants]
        arrays += [data[name] for name in names]
        self.arrays = [np.ascontiguousarray(a) for a in arrays]
        self.arguments = [ctypes.c_int(len(data["cell_vertices"]))]
        self.arguments += [ctypes.c_void_p(a.ctypes.data) for a in self.arrays]

    def call(self):
        self.library.peer_action(*self.arguments)


def interleaved(calls, budget):
    """The minimum of the times of each call, seconds, the calls in turns."""
    best = [math.inf] * len(calls)
    start, rounds = time.perf_counter(), 0
    while rounds < 5 or time.perf_counter() - start < budget:
        for k, call in enumerate(calls):
            before = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - before)
        rounds += 1
    return best


STREAM = """
#include <stdint.h>
void stream(int64_t n, double *restrict a, const double *restrict b)
{
    #pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; ++i) a[i] += 2*b[i];
}
void arithmetic(int64_t n, double *restrict a, const double *restrict b)
{
    #pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n/4096; ++i) {
        double s[64];
        for (int k = 0; k < 64; ++k) s[k] = b[i + k];
        for (int j = 0; j < 1024; ++j) for (int k = 0; k < 64; ++k) s[k] = 0.5*s[k] + 1.0;
        for (int k = 0; k < 64; ++k) a[64*i + k] = s[k];
    }
}
"""


def machine(budget):
    """How much faster two threads are than one, in turns: at updates of 128 MiB of memory, and at
    multiplications and additions in registers, of which threads of one core share the units."""
    with tempfile.TemporaryDirectory() as directory:
        source, library = pathlib.Path(directory) / "stream.c", pathlib.Path(directory) / "stream.so"
        source.write_text(STREAM)
        command = [os.environ.get("CC", "cc"), *CFLAGS, "-fopenmp", "-o", library, source]
        subprocess.run(command, check=True)
        kernels, openmp = ctypes.CDLL(str(library)), ctypes.CDLL("libgomp.so.1")
        a, b = np.zeros(1 << 23), np.ones(1 << 23)
        arrays = ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(b.ctypes.data)

        def ratio(kernel, n):
            def call(threads):
                openmp.omp_set_num_threads(threads)
                kernel(ctypes.c_int64(n), *arrays)

            one, two = interleaved([lambda: call(1), lambda: call(2)], budget)
            return one / two

        # a fraction of a millisecond of arithmetic, so that some run is left alone on a shared machine
        return ratio(kernels.stream, len(a)), ratio(kernels.arithmetic, 1 << 18)


def measure(binary, operator, p, mesh, mapping, budget, two_threads):
    """The figures of an action."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        one, two = pathlib.Path(one), pathlib.Path(two)
        kingpost = Kingpost(binary, operator, p, mesh, one, mapping, 1)
        parallel = Kingpost(binary, operator, p, mesh, two, mapping, 2) if two_threads else None
        peer = Peer(operator, p, kingpost, one)
        checked = [kingpost, parallel] if parallel else [kingpost]
        for kernel in [*checked, peer]:
            kernel.call()
        scale = np.abs(peer.y).max()
        error = max(np.abs(kernel.y - peer.y).max() / scale for kernel in checked)
        ours, theirs = interleaved([kingpost.call, peer.call], budget)
        speedup = None
        if parallel:
            ctypes.CDLL("libgomp.so.1").omp_set_num_threads(2)
            single, double = interleaved([kingpost.call, parallel.call], budget)
            speedup = single / double
        return {
            "operator": operator,
            "degree": p,
            "kingpost_points": kingpost.points,
            "ffcx_points": peer.points,
            "cells": len(kingpost.inputs["cell_vertices"]),
            "dofs": len(kingpost.y),
            "mapping": kingpost.report["mapping"].split(" (")[0],
            "kingpost_ms": 1e3 * ours,
            "ffcx_ms": 1e3 * theirs,
            "ratio": theirs / ours,
            "two_threads": speedup,
            "error": float(error),
        }


def write(folder, rows, mean):
    """Writes the table as CSV, and a page that says how it was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "ffcx.csv", "w", newline="") as f:
        writer = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.4g}" if isinstance(v, float) else "" if v is None else v for k, v in r.items()} for r in rows)
    cpu = next(l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    compiler = subprocess.run([os.environ.get("CC", "cc"), "--version"], capture_output=True, text=True)
    degrees = sorted({r["degree"] for r in rows})
    ratio = {(r["operator"], r["degree"]): r["ratio"] for r in rows}
    table = ["| action | " + " | ".join(f"P{p}" for p in degrees) + " |", "|---" * (len(degrees) + 1) + "|"]
    for operator in dict.fromkeys(r["operator"] for r in rows):
        cells = [f"{ratio[operator, p]:.2f}" if (operator, p) in ratio else "" for p in degrees]
        table.append(f"| {operator} | " + " | ".join(cells) + " |")
    speedups = sorted(r["two_threads"] for r in rows if r["two_threads"] is not None)
    threads = "Two threads were not measured."
    if speedups:
        table += ["", "How much faster two threads are than one, minima of runs in turns:", ""]
        table += ["| action | " + " | ".join(f"P{p}" for p in degrees) + " |", "|---" * (len(degrees) + 1) + "|"]
        faster = {(r["operator"], r["degree"]): r["two_threads"] for r in rows}
        for operator in dict.fromkeys(r["operator"] for r in rows):
            cells = [f"{faster[operator, p]:.2f}" if faster.get((operator, p)) else "" for p in degrees]
            table.append(f"| {operator} | " + " | ".join(cells) + " |")
        memory, arithmetic = machine(2.0)
        threads = (
            f"Two threads against one: median {speedups[len(speedups) // 2]:.2f}. The machine itself updates "
            f"128 MiB of memory {memory:.2f} times as fast by two threads as by one, and multiplies and adds in "
            f"registers {arithmetic:.2f} times as fast, which bounds what two threads can gain."
        )
    scaled = [r["ratio"] * r["kingpost_points"] / r["ffcx_points"] for r in rows]
    differ = ", ".join(
        f"{r['operator']} P{r['degree']} ({r['kingpost_points']}, FFCx {r['ffcx_points']})"
        for r in rows
        if r["kingpost_points"] != r["ffcx_points"]
    )
    page = [
        "# C compared with FFCx", "",
        "The time of FFCx's kernel in its cell loop divided by that of kingpost's default mapping, both",
        f"on one thread of {cpu}, {compiler.stdout.splitlines()[0]}, {datetime.date.today()}.",
        f"FFCx {ffcx.__version__}; {' '.join(CFLAGS[:3])}. Minima of interleaved runs on a shared machine.", "",
        *table, "",
        f"{len(rows)} cases: geometric mean {mean:.2f}, minimum {min(ratio.values()):.2f}. Largest relative difference of the",
        f"results: {max(r['error'] for r in rows):.0e}. {threads}", "",
        f"Both take a quadrature rule of the same degree. The numbers of points differ at {differ or 'none'}.",
        f"With each ratio scaled by the numbers of points: geometric mean {geometric_mean(scaled):.2f},",
        f"minimum {min(scaled):.2f}.", "",
        "`ffcx.csv` has the figures. Written by", "",
        f"    scripts/ffcx.sh && .venv/bin/python scripts/ffcx_actions.py {shlex.join(sys.argv[1:])}", "",
    ]
    (folder / "ffcx.md").write_text("\n".join(page))


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def mean_of(rows):
    """The geometric mean of the ratios."""
    return geometric_mean([r["ratio"] for r in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kingpost", default=ROOT / "target/release/kingpost", help="the command line to run")
    parser.add_argument("--operators", nargs="*", default=OPERATORS)
    parser.add_argument("--degrees", nargs="*", type=int, default=list(DIVISIONS))
    parser.add_argument("--mapping", help="a mapping in JSON instead of the default one")
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each comparison")
    parser.add_argument("--one-thread", action="store_true", help="leave two threads out")
    parser.add_argument("--write", type=pathlib.Path, help="folder for ffcx.md and ffcx.csv")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as meshes:
        for p in args.degrees:
            mesh = pathlib.Path(meshes) / f"cube{p}.msh"
            mesh_file(mesh, DIVISIONS[p], seed=p)
            for operator in args.operators:
                row = measure(args.kingpost, operator, p, mesh, args.mapping, args.budget, not args.one_thread)
                rows.append(row)
                if args.write:
                    write(args.write, rows, mean_of(rows))
                print("{operator:16} P{degree} {kingpost_points:4} and {ffcx_points:4} points {kingpost_ms:9.3f} ms {ffcx_ms:9.3f} ms "
                      "{ratio:6.2f} x, 2 threads {two_threads}, error {error:.0e}, {mapping}".format(**row), flush=True)
    print(f"geometric mean {mean_of(rows):.2f}, least {min(r['ratio'] for r in rows):.2f}")
    wrong = [r for r in rows if not r["error"] <= TOLERANCE]
    if wrong:
        sys.exit(f"{len(wrong)} results differ by more than {TOLERANCE}: {wrong}")


if __name__ == "__main__":
    main()
