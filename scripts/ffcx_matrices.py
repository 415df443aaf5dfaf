#!/usr/bin/env python3
"""Times kingpost's C of element matrices and FFCx's C: the experiment of Luporini et al. 2017, §7.

Four bilinear forms (mass, Helmholtz, elasticity, hyperelasticity) times nf = 0 to 3 functions, all of
degree q = 1 to 4, on a cube of 4,374 tetrahedra, exact quadrature, double precision, one thread. Both
take the same rule of basix, and are compiled by the same compiler with the same flags.

*Local assembly* computes the matrices of 64 cells into one buffer, which stays in cache; each is zeroed just before.
*Insertion* computes them and adds them to a CSR matrix of the whole mesh by one table of positions,
which both are given. *Unoptimised* is kingpost's lowered kernel in C, a cell at a time, on as many cells
as take about a second, scaled.

The kernels run in turns; the time of each is the minimum of its runs, as the processor counts it for the
thread, so that other work on the machine counts little. Where all cells take FFCx longer than
`--most` seconds, as many as take that long are measured and compared, and the time is scaled. The
matrix of each of these cells is compared with FFCx's; `kingpost run` compares with the interpreter on a mesh of its own. Operations are counted:
kingpost's by `kingpost stats`, FFCx's by running its C on numbers that count. A form that FFCx or the C
compiler cannot make in 10 minutes and 8 GiB is marked so.

    scripts/luporini_2017.sh       # installs the peer, builds kingpost, and measures all cases, into target/luporini_2017

is the same as

    scripts/ffcx.sh                # makes .venv with the peer, once
    cargo build --release
    .venv/bin/python scripts/ffcx_matrices.py --write target/luporini_2017

Of kingpost's mappings (`--mapping`, several times), each is checked and timed, and the fastest in local assembly
is the one of a case.

Each case is a line of DIR/luporini_2017.jsonl when it is done, and is not measured again; `--forms mass
--lines a.jsonl` measures a part, and `--write DIR a.jsonl b.jsonl` makes the page of several.
"""

import argparse
import csv
import ctypes
import datetime
import functools
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import types

import basix.ufl
import numpy as np
import ufl

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMS = ["mass", "helmholtz", "elasticity", "hyperelasticity"]
CFLAGS = ["-O3", "-march=native", "-ffast-math", "-fPIC", "-shared", "-std=gnu17"]
FLAGS = next((l.split() for l in open("/proc/cpuinfo") if l.startswith("flags")), [])
GROUP = 8 if "avx512f" in FLAGS else 4 if "avx" in FLAGS else 2  # cells of a group: 64-bit reals of a vector
MEMORY = 256 << 10  # bytes that tables of sums may occupy: the second-level cache of Luporini et al. 2017
# What `kingpost run` takes on a processor: the fewest operations where these are `FEWER` times fewer, or else tiles
TILES = json.dumps({"strategy": "point_tiles", "cells": GROUP, "sums": 16 if GROUP == 8 else 8})
FEWEST = json.dumps({"strategy": "fewest_operations", "memory": MEMORY, "then": json.loads(TILES)})
NAMES = {TILES: "tiles", FEWEST: "fewest"}
FEWER = 1.5
PLAIN = '{"strategy":"constant_cells","cells":1}'  # the lowered kernel, tables in the source
DIVISIONS = 9  # 4,374 cells
BATCH = 64  # cells whose matrices share a buffer
TOLERANCE = 1e-12
LIMIT_S, LIMIT_BYTES = 600, 8 << 30


def form(name, q, nf):
    """A form of the experiment, as the authors' firedrake-bench states it (branch `experiments`)."""
    vector = name in ("elasticity", "hyperelasticity")
    mesh = ufl.Mesh(basix.ufl.element("Lagrange", "tetrahedron", 1, shape=(3,)))
    variant = basix.LagrangeVariant.equispaced

    def space(is_vector):
        shape = {"shape": (3,)} if is_vector else {}
        return ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "tetrahedron", q, lagrange_variant=variant, **shape))

    v, u = ufl.TestFunction(space(vector)), ufl.TrialFunction(space(vector))
    f = [ufl.Coefficient(space(name == "hyperelasticity")) for _ in range(nf)]
    grad, inner, dot = ufl.grad, ufl.inner, ufl.dot
    if name == "hyperelasticity":
        w, b = ufl.Coefficient(space(True)), ufl.Coefficient(space(True))
        mu, lmbda = ufl.Constant(mesh), ufl.Constant(mesh)
        i = ufl.Identity(3)
        d = i + grad(w)
        e = ufl.variable((d.T * d - i) / 2)
        psi = lmbda / 2 * ufl.tr(e) ** 2 + mu * ufl.tr(e * e)
        energy = inner(d * ufl.diff(psi, e), grad(v)) - inner(b, v)
        return ufl.derivative(functools.reduce(inner, [ufl.div(g) for g in f] + [energy]) * ufl.dx, w, u)
    integrand = {
        "mass": lambda: dot(v, u),
        "helmholtz": lambda: dot(grad(v), grad(u)) + 1.0 * v * u,
        "elasticity": lambda: 0.25 * inner(grad(v) + grad(v).T, grad(u) + grad(u).T),
    }[name]()
    return functools.reduce(inner, f + [integrand]) * ufl.dx


def exported(name, q, nf):
    """The form as kingpost reads it. The exporter needs no compiled part of the package."""
    if "kingpost" not in sys.modules:
        package = types.ModuleType("kingpost")
        package.__path__ = [str(ROOT / "python" / "kingpost")]
        sys.modules["kingpost"] = package
    from kingpost import export

    return export.dumps(export.export_form(form(name, q, nf), name=name))


def cube(n, seed):
    """Vertices and cells of a cube of 6 n^3 tetrahedra, inner vertices moved, both numbered at random."""
    random = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(*[np.arange(n + 1)] * 3, indexing="ij"), -1).reshape(-1, 3)
    inside = ((grid > 0) & (grid < n)).all(1)
    x = (grid + 0.15 * inside[:, None] * random.uniform(-1, 1, grid.shape)) / n
    at = lambda o: ((grid[:, 0] + o[0]) * (n + 1) + grid[:, 1] + o[1]) * (n + 1) + grid[:, 2] + o[2]
    base, unit, cells = (grid < n).all(1), np.eye(3, dtype=int), []
    for a, b in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]:
        corners = [np.zeros(3, int), unit[a], unit[a] + unit[b], np.ones(3, int)]
        cells.append(np.stack([at(o)[base] for o in corners], 1))
    cells, number = random.permutation(np.concatenate(cells)), random.permutation(len(x))
    moved = np.empty_like(x)
    moved[number] = x
    return moved, number[cells].astype(np.int32)


def nodes(x, cells, q):
    """Degrees of freedom of the cells, numbered by the places of the nodes, and these places."""
    e = basix.create_element(basix.ElementFamily.P, basix.CellType.tetrahedron, q, basix.LagrangeVariant.equispaced)
    p = e.points
    places = np.einsum("nv,cvd->cnd", np.c_[1 - p.sum(1), p], x[cells])
    rounded = np.round(places.reshape(-1, 3) * 2**30).astype(np.int64)
    distinct, numbers = np.unique(rounded, axis=0, return_inverse=True)
    return numbers.reshape(len(cells), -1).astype(np.int32), distinct / 2.0**30


def positions(dofs, block):
    """The place of each entry of each cell's matrix in CSR, and the number of stored entries."""
    n = int(dofs.max()) + 1
    keys = dofs[:, :, None].astype(np.int64) * n + dofs[:, None, :]
    stored, place = np.unique(keys.ravel(), return_inverse=True)
    place = place.reshape(keys.shape)
    row = stored // n
    start = np.searchsorted(row, np.arange(n))
    width = np.bincount(row, minlength=n)
    # row `block*i + a` begins after those of smaller nodes, and is `block` times as wide as that of its node
    first = block * block * start[dofs][:, :, None, None, None]
    wide = (block * width[dofs])[:, :, None, None, None]
    component = np.arange(block)
    place = first + component[:, None, None] * wide + block * (place - start[dofs][:, :, None])[:, :, None, :, None] + component
    local = dofs.shape[1] * block
    return np.ascontiguousarray(place.reshape(len(dofs), local, local).astype(np.int32)), len(stored) * block * block


def compiled(source, path, flags=(), compiler=None):
    """A source as a library."""
    path.write_text(source)
    library = path.with_suffix(".so")
    command = [*(compiler or [os.environ.get("CC", "cc"), *CFLAGS]), *flags, "-o", library, path, "-lm"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True, preexec_fn=limited)
    return ctypes.CDLL(str(library))


@functools.cache
def compiler_version():
    return subprocess.run([os.environ.get("CC", "cc"), "--version"], capture_output=True, text=True).stdout.splitlines()[0]


def kept_library(source):
    """The same, kept in target/ffcx: the compiler takes minutes for the largest."""
    name = hashlib.sha256("\n".join([compiler_version(), *CFLAGS, source]).encode()).hexdigest()[:32]
    folder = ROOT / "target/ffcx"
    library = folder / f"peer_{name}.so"
    if not library.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as directory:
            path = pathlib.Path(directory) / "peer.c"
            compiled(source, path)
            path.with_suffix(".so").rename(library)
    return ctypes.CDLL(str(library))


def children_s():
    """Seconds that the processor counted for the processes that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def limited():
    """Limits a process to seconds of the processor, which other work on the machine does not use up, and bytes."""
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT_S, LIMIT_S))


def print_ffcx(name, q, nf, is_exact):
    """Prints FFCx's function of a form; `is_exact` keeps entries of tables within 1e-9 of 0 and 1."""
    import ffcx.compiler
    import ffcx.options

    exact = {"table_rtol": 1e-15, "table_atol": 1e-15} if is_exact else {}
    options = ffcx.options.get_options({"scalar_type": np.float64} | exact)
    code = ffcx.compiler.compile_ufl_objects([form(name, q, nf)], options, namespace="peer")
    code = code[0] if isinstance(code[0], (list, tuple)) else code
    source = next(c for c in code if "void tabulate_tensor" in c)
    entry = re.search(r"void (tabulate_tensor_\w+)\(", source).group(1)
    body = re.search(rf"void {entry}\(.*?(?=^\w*\s*ufcx_integral)", source, re.S | re.M).group(0)
    print("static " + body.split("\nbool ")[0].replace(entry, "tabulate"))


def peer_source(name, q, nf, is_exact):
    """FFCx's function of a form, and the seconds that it took to make; kept in target/ffcx."""
    import ffcx

    kept = ROOT / "target/ffcx" / f"{ffcx.__version__}_{name}_q{q}_nf{nf}{'_exact' if is_exact else ''}.json"
    if not kept.is_file():
        before = children_s()
        command = [sys.executable, __file__, "--ffcx", name, str(q), str(nf), str(int(is_exact))]
        run = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=limited)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps([run.stdout, children_s() - before]))
    return json.loads(kept.read_text())


HEAD = "#include <math.h>\n#include <stdint.h>\n#include <stdbool.h>\n#include <string.h>\n\n"

# A number that counts the operations it takes part in.
COUNTER = """
#include <cmath>
#include <cstdint>
static int64_t operations;
struct Counted {
    double v;
    Counted() : v(0) {}
    Counted(double x) : v(x) {}
    Counted operator-() const { return -v; }
    Counted &operator+=(const Counted &o) { ++operations; v += o.v; return *this; }
    Counted &operator*=(const Counted &o) { ++operations; v *= o.v; return *this; }
};
#define OPERATOR(op) static inline Counted operator op(const Counted &a, const Counted &b) { ++operations; return a.v op b.v; }
OPERATOR(+) OPERATOR(-) OPERATOR(*) OPERATOR(/)
static inline Counted fabs(const Counted &a) { return std::fabs(a.v); }
static inline Counted pow(const Counted &a, const Counted &b)
{
    operations += b.v > 1 && b.v == (int)b.v ? (int)b.v - 1 : 1;
    return std::pow(a.v, b.v);
}
#define double Counted
#define restrict __restrict__
"""


def operations_of(source, problem, directory):
    """The operations of FFCx's function on one cell."""
    call = """
#undef double
extern "C" int64_t counted(int n, const double *w, const double *c, const double *x, int local)
{
    Counted *a = new Counted[local], *ws = new Counted[n], *cs = new Counted[8], xs[12];
    for (int k = 0; k < n; ++k) ws[k] = w[k];
    for (int k = 0; k < 2; ++k) cs[k] = c[k];
    for (int k = 0; k < 12; ++k) xs[k] = x[k];
    operations = 0;
    tabulate(a, ws, cs, xs, 0, 0, 0);
    return operations;
}
"""
    library = compiled(COUNTER + source + call, directory / "counted.cpp", [], ["c++", "-O1", "-fPIC", "-shared", "-fpermissive", "-w"])
    library.counted.restype = ctypes.c_int64
    p = problem
    w = np.ones(p.dofs.shape[1] * p.width * max(1, len(p.functions)))
    x = np.ascontiguousarray(p.x[p.cells[0]].ravel())
    c = np.ones(2)
    return library.counted(len(w), pointer(w), pointer(c), pointer(x), p.local**2)


def peer_loop(dofs, block, functions):
    """The cell loop of DOLFINx's assembler around FFCx's function."""
    local = dofs * block
    gathers = "\n".join(
        f"        for (int i = 0; i < {dofs}; ++i) for (int k = 0; k < {b}; ++k)\n"
        f"            w[{at} + {b} * i + k] = f{number}[{b} * d[i] + k];"
        for number, (at, b) in enumerate(functions)
    )
    arguments = "".join(f", const double *restrict f{k}" for k in range(len(functions)))
    size = sum(dofs * b for _, b in functions) or 1
    head = f"""
void peer_%s(int n, int first, double *restrict y, const double *restrict x, const int *restrict vertices,
             const int *restrict dofs, const int *restrict place, const double *restrict c{arguments})
{{
    static double w[{size}], buffer[{local * local}];
    double coordinates[12];
    for (int cell = first; cell < first + n; ++cell) {{
        const int *v = vertices + 4 * (long)cell, *d = dofs + {dofs} * (long)cell;
        for (int i = 0; i < 4; ++i) for (int k = 0; k < 3; ++k)
            coordinates[3 * i + k] = x[3 * (long)v[i] + k];
{gathers}
"""
    tail = "\n    }\n}\n"
    cells = f"""        double *a = y + {local * local} * (long)((cell - first) % {BATCH});
        memset(a, 0, {8 * local * local});
        tabulate(a, w, c, coordinates, 0, 0, 0);"""
    sparse = f"""        memset(buffer, 0, sizeof buffer);
        tabulate(buffer, w, c, coordinates, 0, 0, 0);
        for (int i = 0; i < {local * local}; ++i) y[place[{local * local} * (long)cell + i]] += buffer[i];"""
    return head % "cells" + cells + tail + head % "sparse" + sparse + tail


# Calls a kernel of kingpost's on a number of cells: an argument moves on by its stride, in bytes a cell. Matrices of
# cells are zeroed just before a group computes them, as the peer's are, and a batch of them shares a buffer.
DRIVER = """
#include <stdint.h>
#include <string.h>
void driver(void (*launch)(void *const *, const int64_t *), void **args, int n_args, const int64_t *strides,
            int32_t *n_cells, int first, int total, int step, int group, int batch, char **y, int64_t bytes_of_cell)
{
    char *buffer = *y;
    for (int k = 0; k < n_args; ++k) if (strides[k]) *(char **)args[k] += strides[k] * first;
    for (int done = 0; done < total; done += step) {
        int count = total - done < step ? total - done : step;
        *n_cells = count;
        int64_t grid[3] = {(count + group - 1) / group, 1, 1};
        if (bytes_of_cell) {
            *y = buffer + bytes_of_cell * (done % batch);
            memset(*y, 0, bytes_of_cell * count);
        }
        launch(args, grid);
        for (int k = 0; k < n_args; ++k) if (strides[k]) *(char **)args[k] += strides[k] * count;
    }
    *y = buffer;
    for (int k = 0; k < n_args; ++k) if (strides[k]) *(char **)args[k] -= strides[k] * (first + total);
}
"""


@functools.cache
def driver():
    return compiled(DRIVER, pathlib.Path(tempfile.mkdtemp()) / "driver.c").driver


class Problem:
    """A form on the mesh: all arrays that kernels take."""

    def __init__(self, name, q, nf, seed=1):
        self.name, self.q, self.nf = name, q, nf
        self.block = 3 if name in ("elasticity", "hyperelasticity") else 1
        random = np.random.default_rng(seed)
        self.x, self.cells = cube(DIVISIONS, seed)
        self.dofs, places = nodes(self.x, self.cells, q)
        self.n = len(places)
        self.width = 3 if name == "hyperelasticity" else 1
        # functions, and the divergences of vector fields, stay away from 0: no matrix is small compared with its terms
        noise = lambda scale: scale * random.uniform(-1, 1, (self.n, self.width))
        if name == "hyperelasticity":
            functions = [*(places + noise(0.01 / q) for _ in range(nf)), noise(0.01 / q)]  # as UFL counts them
        else:
            functions = [1 + noise(0.3) for _ in range(nf)]
        self.functions = [np.ascontiguousarray(f.ravel()) for f in functions]
        self.constants = np.array([0.7, 0.3]) if name == "hyperelasticity" else np.zeros(1)
        self.local = self.dofs.shape[1] * self.block

    @functools.cached_property
    def positions(self):
        return positions(self.dofs, self.block)


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Peer:
    """FFCx's kernel in its loops."""

    def __init__(self, problem, directory, is_exact=False):
        p = self.problem = problem
        source, self.generation_s = peer_source(p.name, p.q, p.nf, is_exact)
        dofs = p.dofs.shape[1]
        functions = [(k * dofs * p.width, p.width) for k in range(len(p.functions))]
        self.library = kept_library(HEAD + source + peer_loop(dofs, p.block, functions))
        self.source, self.directory = source, directory

    @functools.cached_property
    def operations(self):
        """The operations of a cell; kept in target/ffcx, as compiling what counts takes longer than the rest."""
        name = hashlib.sha256(self.source.encode()).hexdigest()[:32]
        kept = ROOT / "target/ffcx" / f"operations_{name}.json"
        if not kept.is_file():
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(operations_of(self.source, self.problem, self.directory)))
        return json.loads(kept.read_text())

    def call(self, what, y, first=0, count=None):
        """A call that computes what is asked for of a given number of cells."""
        p = self.problem
        place = p.positions[0] if what == "sparse" else np.zeros(1, np.int32)
        entry = getattr(self.library, f"peer_{what}")
        arrays = [y, p.x, p.cells, p.dofs, place, p.constants, *p.functions]
        args = [ctypes.c_int(len(p.cells) - first if count is None else count), ctypes.c_int(first)]
        args += [pointer(a) for a in arrays]
        return lambda keep=arrays: entry(*args)


class Kingpost:
    """Kingpost's kernel of a form, of matrices of cells or a sparse one."""

    def __init__(self, binary, problem, directory, path, what, mapping):
        p = self.problem = problem
        self.what, self.group = what, 1 if mapping == PLAIN else GROUP
        command = [binary, "print", path, "--target", "c", "--matrix", what, "--mapping", mapping]
        before = children_s()
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        self.generation_s = children_s() - before
        if run.returncode:
            sys.exit(f"{p.name} q={p.q} nf={p.nf}: {run.stdout}{run.stderr}")
        self.source = run.stdout
        self.library = compiled(run.stdout, directory / f"{what}_{self.group}.c")
        self.launch = getattr(self.library, f"{p.name}_launch")
        signature = re.search(rf"void {p.name}\((.*?)\n?\)?\n?{{", run.stdout, re.S).group(1)
        parameters = re.findall(r"(?:const )?(int32_t|int64_t|double) (?:const )?(\*restrict )?(\w+)", signature)
        self.parameters = [p for p in parameters if not p[2].startswith("groups_")]

    def call(self, y, first=0, count=None):
        """A call that computes what is asked for of a given number of cells."""
        p = self.problem
        count = len(p.cells) - first if count is None else count
        dofs, strides, kept, pointers, n_cells, result = f"p{p.q}_dofs", [], [], [], None, None
        for ty, star, name in self.parameters:
            arrays = {"y": y, "x": p.x, "x_dofs": p.cells, dofs: p.dofs}
            arrays |= {f"w{k}": f for k, f in enumerate(p.functions)}
            # a form whose spaces are of degree 1 shares the map of the coordinates
            if self.what == "sparse":
                arrays["y_positions"] = p.positions[0]
            if star and name in arrays:
                value = pointer(arrays[name])
                of_cell = {"x_dofs": 16, dofs: 4 * p.dofs.shape[1], "y_positions": 4 * p.local**2}.get(name, 0)
                result = value if name == "y" else result
            elif name == "n_cells":
                value = n_cells = ctypes.c_int32(count)
                of_cell = 0
            else:
                sizes = {"n_x": len(p.x), f"n_p{p.q}": p.n, "n_y": len(y)}
                sizes |= {f"c{k}": c for k, c in enumerate(p.constants)}
                if name not in sizes:
                    sys.exit(f"{p.name}: an argument `{name}`")
                value = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "double": ctypes.c_double}[ty](sizes[name])
                of_cell = 0
            strides.append(of_cell)
            kept.append(value)
            pointers.append(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p))
        args = (ctypes.c_void_p * len(pointers))(*pointers)
        strides = (ctypes.c_int64 * len(strides))(*strides)
        cells = self.what == "cells"
        step = self.group if cells else count
        bytes_of_cell = 8 * p.local**2 if cells else 0

        def call(keep=(y, kept)):
            driver()(
                self.launch, args, len(pointers), strides, ctypes.byref(n_cells), first, count, step, self.group, BATCH,
                ctypes.byref(result), ctypes.c_int64(bytes_of_cell),
            )

        return call


def interleaved(calls, budget, rounds=3):
    """The minimum of the times of each call, seconds of the thread, the calls in turns."""
    best = [math.inf] * len(calls)
    start, done = time.thread_time(), 0
    while done < rounds or time.thread_time() - start < budget:
        for k, call in enumerate(calls):
            before = time.thread_time()
            call()
            best[k] = min(best[k], time.thread_time() - before)
        done += 1
    return best


def matrix_error(kingpost, peer, problem, n):
    """The largest difference of an entry of a cell's matrix, over the largest entry of that matrix."""
    size, worst = problem.local**2, 0.0
    y, z = np.zeros(BATCH * size), np.zeros(BATCH * size)
    for first in range(0, n, BATCH):
        count = min(BATCH, n - first)
        y[:], z[:] = np.nan, np.nan  # the driver and the loop zero what they add to
        kingpost.call(y, first, count)()
        peer.call("cells", z, first, count)()
        a, b = (v[: count * size].reshape(count, size) for v in (y, z))
        error = np.abs(a - b).max(1) / np.abs(b).max(1)
        worst = max(worst, float(error.max())) if np.isfinite(error).all() else math.inf
    return worst


def sparse_error(kingpost, peer, problem, n):
    entries = problem.positions[1]
    y, z = np.zeros(entries), np.zeros(entries)
    kingpost.call(y, 0, n)()
    peer.call("sparse", z, 0, n)()
    return float(np.abs(y - z).max() / np.abs(z).max())


def counted(binary, path, mapping, q):
    """Operations of a cell, by `kingpost stats`."""
    params = [f"--param={name}={value}" for name, value in [("n_cells", GROUP), ("n_x", 64), (f"n_p{q}", 512)]]
    base = [str(binary), "stats", str(path), "--matrix", "cells", "--mapping", mapping]
    text = subprocess.run([*base, *params], capture_output=True, text=True)
    if text.returncode:  # a form without functions has no such parameter
        text = subprocess.run([*base, *params[:2]], check=True, capture_output=True, text=True)
    rows = re.findall(r"│ (add|sub|mul|div)\s+┆\s+f64 ┆\s+([\d,]+)", text.stdout)
    return sum(int(n.replace(",", "")) for _, n in rows) // GROUP


def referenced(binary, path, mapping):
    """Whether `kingpost run` finds its kernel within 1e-12 of the lowered one in the interpreter."""
    command = [binary, "run", path, "--matrix", "cells", "--device", "c", "--cells", "1", "--no-time", "--mapping", mapping]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if run.returncode:
        print(run.stdout, run.stderr)
    return run.returncode == 0


def plain_time(plain, problem, budget):
    """Seconds that all cells take unoptimised: measured on as many batches as take about `budget`."""
    y = np.zeros(BATCH * problem.local**2)
    [one] = interleaved([plain.call(y, 0, BATCH)], 0.0, 2)
    batches = max(1, min(int(budget / one), len(problem.cells) // BATCH))
    cells = len(problem.cells) if batches >= len(problem.cells) // BATCH else BATCH * batches
    [best] = interleaved([plain.call(y, 0, cells)], 0.0, 3)
    return best * len(problem.cells) / cells


def affordable(call, y, problem, most):
    """The number of cells, a multiple of a batch or all, that take a call at most a given number of seconds."""
    n = len(problem.cells)
    [one] = interleaved([call(y, 0, BATCH)], 0.0, 2)
    batches = max(1, int(most / one))
    return n if batches * BATCH >= n else batches * BATCH


def measure(binary, name, q, nf, mappings, budget, most):
    """The figures of a case: those of the fastest of the mappings."""
    p = Problem(name, q, nf)
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        path = directory / f"{name}.json"
        path.write_text(exported(name, q, nf))
        try:
            peer = Peer(p, directory)
        except (subprocess.SubprocessError, MemoryError) as e:
            print(f"{name} q={q} nf={nf}: FFCx: {e}")
            peer = None
        plain = Kingpost(binary, p, directory, path, "cells", PLAIN)
        kernels = []
        for k, mapping in enumerate(mappings):
            folder = directory / str(k)
            folder.mkdir()
            kernels.append([Kingpost(binary, p, folder, path, what, mapping) for what in ("cells", "sparse")])
        y, z = np.zeros(BATCH * p.local**2), np.zeros(p.positions[1])
        theirs = functools.partial(peer.call, "cells") if peer else plain.call
        n = affordable(theirs, y, p, most)
        scale = len(p.cells) / n
        local, inserted = ([pair[k].call(to, 0, n) for pair in kernels] for k, to in ((0, y), (1, z)))
        if peer:
            local.append(peer.call("cells", y, 0, n))
            inserted.append(peer.call("sparse", z, 0, n))
        times, csr_times = interleaved(local, budget) + [None], interleaved(inserted, budget, 2) + [None]
        theirs, theirs_csr = (t[len(mappings)] for t in (times, csr_times))
        ms = lambda seconds: 1e3 * scale * seconds if seconds else None
        rows = []
        for k, (mapping, (cells, sparse)) in enumerate(zip(mappings, kernels)):
            row = {"form": name, "q": q, "nf": nf, "mapping": mapping, "rows": p.local}
            row |= {"kingpost_operations": counted(binary, path, mapping, q)}
            row |= {"ffcx_operations": peer.operations if peer else None}
            row |= {"kingpost_generation_s": cells.generation_s, "ffcx_generation_s": peer.generation_s if peer else None}
            row |= errors_of(peer, p, directory, cells, sparse, n)
            row["is_reference"] = referenced(binary, path, mapping)
            row |= {"kingpost_ms": ms(times[k]), "ffcx_ms": ms(theirs)}
            row["ratio"] = theirs / times[k] if peer else None
            row["plain_ms"] = None
            row |= {"kingpost_csr_ms": ms(csr_times[k]), "ffcx_csr_ms": ms(theirs_csr)}
            row["csr_ratio"] = theirs_csr / csr_times[k] if peer else None
            rows.append(row)
        best = min(rows, key=lambda row: row["kingpost_ms"])
        if set(mappings) == set(NAMES):
            for row in rows:
                name = NAMES[row["mapping"]]
                best |= {f"{name}_operations": row["kingpost_operations"], f"{name}_ms": row["kingpost_ms"]}
        right = all(r["is_reference"] and (not peer or max(r["error"], r["sparse_error"]) <= TOLERANCE) for r in rows)
        if not right:
            sys.exit(f"a mapping is wrong: {json.dumps(rows)}")
        best["plain_ms"] = 1e3 * plain_time(plain, p, min(1.0, 4 * budget))
        return best


def with_default(row):
    """The same with what `kingpost run` takes."""
    if "tiles_ms" not in row:
        return row
    name = "fewest" if row["tiles_operations"] >= FEWER * row["fewest_operations"] else "tiles"
    ratio = row["ffcx_ms"] / row[f"{name}_ms"] if row["ffcx_ms"] else None
    return row | {"default": {n: mapping for mapping, n in NAMES.items()}[name], "default_ratio": ratio}


def errors_of(peer, problem, directory, cells, sparse, n):
    """How far the matrices of a given number of cells are from FFCx's, and whether those of FFCx with exact tables are needed."""
    found = {"cells": n, "error": None, "sparse_error": None, "ffcx_rounds_tables": False}
    if peer is None:
        return found
    both = lambda of: {"error": matrix_error(cells, of, problem, n), "sparse_error": sparse_error(sparse, of, problem, n)}
    found |= both(peer)
    if not max(found["error"], found["sparse_error"]) <= TOLERANCE:
        found |= both(Peer(problem, directory, True)) | {"ffcx_rounds_tables": True}
    return found


def geometric_mean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def picture(form_name, figure, rows):
    """A figure of the document: speed-ups over the unoptimised code, a plot a case, as SVG."""
    qs, nfs = sorted({r["q"] for r in rows}), sorted({r["nf"] for r in rows})
    width, height, left, top = 130, 96, 46, 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width * len(nfs) + 10}" '
        f'height="{top + height * len(qs) + 34}" font-family="sans-serif" font-size="10">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="14" font-size="12">{form_name}: speed-up of local assembly over the lowered kernel '
        f"(figure {figure})</text>",
        f'<text x="{left}" y="30"><tspan fill="#888888">■ FFCx</tspan> <tspan fill="#1f6f8b">■ Kingpost</tspan></text>',
    ]
    top_value = max([r["plain_ms"] / r["kingpost_ms"] for r in rows] + [r["plain_ms"] / r["ffcx_ms"] for r in rows if r["ffcx_ms"]])
    for r in rows:
        x, y = left + width * nfs.index(r["nf"]), top + height * qs.index(r["q"])
        bars = [("#888888", r["plain_ms"] / r["ffcx_ms"] if r["ffcx_ms"] else None), ("#1f6f8b", r["plain_ms"] / r["kingpost_ms"])]
        base = y + height - 16
        out.append(f'<line x1="{x + 4}" y1="{base}" x2="{x + width - 10}" y2="{base}" stroke="black" stroke-width="0.5"/>')
        for k, (colour, value) in enumerate(bars):
            at = x + 22 + 44 * k
            if value is None:
                out.append(f'<text x="{at}" y="{base - 3}">none</text>')
                continue
            size = (height - 36) * value / top_value
            out.append(f'<rect x="{at}" y="{base - size:.1f}" width="28" height="{size:.1f}" fill="{colour}"/>')
            out.append(f'<text x="{at + 14}" y="{base - size - 2:.1f}" text-anchor="middle">{value:.2g}</text>')
    for nf in nfs:
        x = left + width * nfs.index(nf) + width / 2 - 6
        out.append(f'<text x="{x}" y="{top + height * len(qs) + 14}" text-anchor="middle">nf = {nf}</text>')
    for q in qs:
        out.append(f'<text x="6" y="{top + height * qs.index(q) + height / 2}">q = {q}</text>')
    return "\n".join([*out, "</svg>", ""])


def table(rows, key, digits=2):
    """A line for each form and degree, a column for each number of functions."""
    nfs = sorted({r["nf"] for r in rows})
    lines = ["| form | q | " + " | ".join(f"nf {nf}" for nf in nfs) + " |", "|---" * (len(nfs) + 2) + "|"]
    for name in dict.fromkeys(r["form"] for r in rows):
        for q in sorted({r["q"] for r in rows if r["form"] == name}):
            found = {r["nf"]: r for r in rows if (r["form"], r["q"]) == (name, q)}
            cells = [key(found[nf]) if nf in found else "" for nf in nfs]
            lines.append(f"| {name} | {q} | " + " | ".join(cells) + " |")
    return lines


def missing(rows):
    """The cases that were not measured."""
    done = {(r["form"], r["q"], r["nf"]) for r in rows}
    left = [(f, q, nf) for f in FORMS for q in range(1, 5) for nf in range(4) if (f, q, nf) not in done]
    return " (not measured: " + ", ".join(f"{f} q {q} nf {nf}" for f, q, nf in left) + ")" if left else ""


def page(rows, command):
    """The page of the experiment."""
    import ffcx

    cpu = next(l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    ratio = lambda key: lambda r: f"{r[key]:.2f}" if r[key] else "FFCx: none"
    timed = lambda r: f"{ratio('ratio')(r)} {'F' if r['mapping'] == FEWEST else 'T'}"
    count = lambda n: f"{n:,}" if n else "none"
    counts = lambda r: " / ".join(count(r[f"{key}_operations"]) for key in ("fewest", "tiles", "ffcx"))
    peers = [r for r in rows if r["ratio"]]
    means = []
    for name in [*dict.fromkeys(r["form"] for r in rows), None]:
        own = [r for r in peers if name in (r["form"], None)]
        mean = lambda key: f"{geometric_mean([r[key] for r in own]):.2f}"
        fewest = geometric_mean([r["ffcx_operations"] / r["fewest_operations"] for r in own])
        means.append(
            f"| {name or 'all'} | {len(own)} | {mean('ratio')} | {min(r['ratio'] for r in own):.2f} | {mean('default_ratio')} | "
            f"{min(r['default_ratio'] for r in own):.2f} | {mean('csr_ratio')} | "
            f"{geometric_mean([r['plain_ms'] / r['kingpost_ms'] for r in own]):.1f} | {fewest:.1f} |"
        )
    errors = [r["error"] for r in rows if r["error"] is not None]
    slowest = max(rows, key=lambda r: r["kingpost_generation_s"])
    wrong = [r for r in rows if not r["is_reference"]]
    faster = sum(r["mapping"] == FEWEST for r in rows)
    same = sum(r["mapping"] == r["default"] for r in rows)
    figures = "".join(f" [{n}](luporini_2017_{f}.svg)" for n, f in zip(range(7, 11), FORMS) if any(r["form"] == f for r in rows))
    return "\n".join([
        "# Element matrices compared with FFCx", "",
        "The experiment of Luporini et al. 2017, §7: four bilinear forms with nf functions, all of degree q,",
        f"on {6 * DIVISIONS**3:,} tetrahedra, exact quadrature, double precision, one thread of {cpu} with vectors of {8 * GROUP} bytes,",
        f"{compiler_version()}, {datetime.date.today()}. FFCx {ffcx.__version__}; both with {' '.join(CFLAGS[:3])} and the same rule of",
        "basix. Minima of interleaved runs, in seconds that the processor counts for the thread, on a shared machine.",
        f"Of {sum(r['cells'] < 6 * DIVISIONS**3 for r in rows)} large cases, a part of the cells is measured and compared (`cells` in the table of figures), and",
        "the time is scaled.", "",
        "FFCx's time divided by Kingpost's: geometric mean and minimum, of the faster of two mappings and of the one that",
        "`kingpost run` takes; with insertion into CSR; next to them the lowered kernel's time divided by Kingpost's, and FFCx's operations",
        "divided by the fewest.", "",
        "| form | cases | local assembly | minimum | by default | minimum | with insertion | lowered | operations |",
        "|---|---|---|---|---|---|---|---|---|", *means, "",
        f"{len(rows)} of 64 cases{missing(rows)}. The mappings are", "",
        f"- T, tiles of quadrature points, cells in the lanes of vectors: `{TILES}`;",
        f"- F, the fewest operations: `{FEWEST}`.", "",
        f"F is faster in {faster} cases. The default is F where it takes at least {FEWER} times fewer operations, else T: the faster one in {same} of",
        f"{len(rows)} cases. It has the second-level cache of the processor for the {MEMORY >> 10} KiB of Luporini et al. 2017 that bound the tables here.",
        "Of symmetric matrices both compute one triangle.", "",
        "The matrix of each of these cells is compared with FFCx's: the largest difference of an entry, over the",
        f"largest entry of its matrix, is {max(errors):.0e}, needed at most {TOLERANCE:.0e}. `kingpost run` compares with the",
        f"lowered kernel in the interpreter, on a mesh of its own: {len(rows) - len(wrong)} of {len(rows)} within 1e-12.",
        f"FFCx rounds entries of tables within 1e-9 of 0 and 1; in {sum(r['ffcx_rounds_tables'] for r in rows)} cases the matrices are those of FFCx",
        "without that, which is not what is timed.",
        f"The slowest generation of C takes {slowest['kingpost_generation_s']:.2f} s of the processor ({slowest['form']}, q {slowest['q']}, nf {slowest['nf']}).", "",
        "## Times of local assembly", "", "FFCx's time divided by that of the faster mapping.", "", *table(rows, timed), "",
        "## With insertion into CSR", "", "The same; both add by one table of positions.", "", *table(rows, ratio("csr_ratio")), "",
        "## Operations", "",
        "Additions, subtractions, multiplications and divisions of a cell, as the sources state them: F / T / FFCx.",
        "Luporini et al. 2017 give for their code about 2·10^3 for Helmholtz with nf 0 and q 2, 2.3·10^5 for elasticity with nf 2",
        "and q 3, and 3·10^7 for hyperelasticity with nf 0 and q 4.",
        "", *table(rows, counts), "",
        f"Speed-up over the lowered kernel, as the document's figures:{figures}. `luporini_2017.csv` has all figures. Written by", "",
        f"    scripts/luporini_2017.sh {command}", "",
        "It installs FFCx from PyPI, builds Kingpost, and measures all cases into `target/luporini_2017`.", "",
    ])


def write(folder, rows, command):
    """Writes the figures, the page and the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "luporini_2017.csv", "w", newline="") as f:
        writer = csv.DictWriter(f, {key: None for r in rows for key in r}, lineterminator="\n")
        writer.writeheader()
        text = lambda v: f"{v:.4g}" if isinstance(v, float) else "" if v is None else v
        writer.writerows({k: text(v) for k, v in r.items()} for r in rows)
    (folder / "luporini_2017.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    for figure, name in zip(range(7, 11), FORMS):
        own = [r for r in rows if r["form"] == name]
        if own:
            (folder / f"luporini_2017_{name}.svg").write_text(picture(name, figure, own))
    (folder / "luporini_2017.md").write_text(page(rows, command))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kingpost", default=ROOT / "target/release/kingpost", help="the command line to run")
    parser.add_argument("--forms", nargs="*", default=FORMS)
    parser.add_argument("--degrees", nargs="*", type=int, default=[1, 2, 3, 4])
    parser.add_argument("--functions", nargs="*", type=int, default=[0, 1, 2, 3])
    parser.add_argument("--mapping", action="append", help="a mapping of eight cells a group in JSON; several are compared")
    parser.add_argument("--budget", type=float, default=0.5, help="seconds for each comparison, at least")
    parser.add_argument("--most", type=float, default=1.5, help="seconds of FFCx's local assembly")
    parser.add_argument("--lines", type=pathlib.Path, help="file of cases that are done, a line each")
    parser.add_argument("of", nargs="*", type=pathlib.Path, help="more files of cases that are done")
    parser.add_argument("--write", type=pathlib.Path, help="folder for luporini_2017.md, .csv and .svg")
    parser.add_argument("--ffcx", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ffcx:
        name, q, nf, *is_exact = args.ffcx
        return print_ffcx(name, int(q), int(nf), is_exact == ["1"])
    mappings = args.mapping or [TILES, FEWEST]
    lines = args.lines or (args.write and args.write / "luporini_2017.jsonl")
    if lines:
        lines.parent.mkdir(parents=True, exist_ok=True)
    known = [path for path in [lines, *args.of] if path and path.is_file()]
    found = [json.loads(line) for path in known for line in path.read_text().splitlines()]
    done = {(r["form"], r["q"], r["nf"]): r for r in found}
    rows = []
    for name in args.forms:
        for q in args.degrees:
            for nf in args.functions:
                r = done.get((name, q, nf)) or measure(args.kingpost, name, q, nf, mappings, args.budget, args.most)
                rows.append(r)
                if lines and (name, q, nf) not in done:
                    with open(lines, "a") as f:
                        f.write(json.dumps(r) + "\n")
                show = {k: f"{v:.3g}" if isinstance(v, float) else str(v) for k, v in r.items()}
                print("{form:16} q {q} nf {nf} {kingpost_ms:>9} ms {ffcx_ms:>9} ms {ratio:>6} x, lowered {plain_ms:>8} ms, CSR {kingpost_csr_ms:>8} ms "
                      "{csr_ratio:>6} x, operations {kingpost_operations} and {ffcx_operations}, error {error}, {sparse_error}, "
                      "reference {is_reference}, C in {kingpost_generation_s} s".format(**show), flush=True)
    if args.write:
        write(args.write, [with_default(row) for row in rows], f"--budget {args.budget} --most {args.most}")
    print(f"geometric mean {geometric_mean([r['ratio'] for r in rows]):.2f}, with insertion {geometric_mean([r['csr_ratio'] for r in rows]):.2f}")
    wrong = [r for r in rows if not r["is_reference"] or any(r[k] is not None and not r[k] <= TOLERANCE for k in ("error", "sparse_error"))]
    if wrong:
        sys.exit(f"{len(wrong)} results differ by more than {TOLERANCE}: {json.dumps(wrong)}")


if __name__ == "__main__":
    main()
