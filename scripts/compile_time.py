#!/usr/bin/env python3
"""Processor time of `kingpost.jit` in C compared with FFCx's `compile_forms`, for forms of facets, of H(curl) and
H(div), and of matrices.

Both begin with the form of UFL and end with a loaded library: export, lowering, mapping, code
generation and the C compiler on the one side; UFL's preprocessing, code generation and the C compiler,
with the options that FFCx gives it, on the other. Each runs in a process of its own, after a small form
that loads the packages, with an empty cache. Time is that of the process and of its children, user and
system; the least of the repetitions counts, as the machine may do other things.

With `--mappings` each form is also compiled by the mapping `sequential`. With `--run` the operator is
timed on a mesh, one thread, the least of its runs.

    scripts/ffcx.sh                # makes .venv with the peer, once
    .venv/bin/python scripts/compile_time.py --write results/cpu

`kingpost` is the package that is installed; a wheel of the profile `dist` or `release` is what users have.
"""

import argparse
import csv
import datetime
import json
import math
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def forms():
    """The forms by name; each is made when it is asked for."""
    import ufl
    from basix.ufl import element, mixed_element
    from ufl import avg, curl, derivative, div, dot, dS, ds, dx, grad, inner, jump, sym, tr

    dims = {"triangle": 2, "tetrahedron": 3}

    def space(cell, e):
        return ufl.FunctionSpace(ufl.Mesh(element("P", cell, 1, shape=(dims[cell],))), e)

    def arguments(V, rank):
        return (ufl.Coefficient(V) if rank == 1 else ufl.TrialFunction(V)), ufl.TestFunction(V)

    def advection(cell, degree, rank):
        V = space(cell, element("DG", cell, degree))
        u, v = arguments(V, rank)
        b = ufl.Coefficient(ufl.FunctionSpace(V.ufl_domain(), element("P", cell, 1, shape=(dims[cell],))))
        n = ufl.FacetNormal(V.ufl_domain())
        upwind = (dot(b, n) + abs(dot(b, n))) / 2
        return -u * dot(b, grad(v)) * dx + inner(upwind("+") * u("+") - upwind("-") * u("-"), jump(v)) * dS + upwind * u * v * ds

    def penalty(cell, degree, rank):
        V = space(cell, element("DG", cell, degree))
        u, v = arguments(V, rank)
        n, h = ufl.FacetNormal(V.ufl_domain()), ufl.Circumradius(V.ufl_domain())
        flux = inner(avg(grad(u)), jump(v, n)) + inner(jump(u, n), avg(grad(v)))
        edge = -inner(grad(u), n) * v - u * inner(grad(v), n) + 10 / h * u * v
        return inner(grad(u), grad(v)) * dx - flux * dS + 10 / avg(h) * jump(u) * jump(v) * dS + edge * ds

    def maxwell(degree, rank):
        V = space("tetrahedron", element("N1curl", "tetrahedron", degree))
        u, v = arguments(V, rank)
        return (inner(curl(u), curl(v)) + inner(u, v)) * dx

    def impedance():
        V = space("tetrahedron", element("N1curl", "tetrahedron", 2))
        u, v = arguments(V, 1)
        n = ufl.FacetNormal(V.ufl_domain())
        return inner(curl(u), curl(v)) * dx + inner(ufl.cross(n, u), ufl.cross(n, v)) * ds

    def darcy(rank):
        e = mixed_element([element("RT", "tetrahedron", 2), element("DG", "tetrahedron", 1)])
        w, t = arguments(space("tetrahedron", e), rank)
        (s, u), (tau, v) = ufl.split(w), ufl.split(t)
        return (inner(s, tau) - div(tau) * u - div(s) * v) * dx

    def elasticity(rank):
        V = space("tetrahedron", element("P", "tetrahedron", 2, shape=(3,)))
        u, v = arguments(V, rank)
        mu, lmbda = ufl.Constant(V.ufl_domain()), ufl.Constant(V.ufl_domain())
        return inner(2 * mu * sym(grad(u)) + lmbda * tr(sym(grad(u))) * ufl.Identity(3), sym(grad(v))) * dx

    def hyperelasticity():
        V = space("tetrahedron", element("P", "tetrahedron", 1, shape=(3,)))
        u, du, v = ufl.Coefficient(V), ufl.TrialFunction(V), ufl.TestFunction(V)
        F = ufl.Identity(3) + grad(u)
        J = ufl.det(F)
        psi = (0.5 * (tr(F.T * F) - 3) - ufl.ln(J) + 2.0 * ufl.ln(J) ** 2) * dx(degree=2)
        return derivative(derivative(psi, u, v), u, du)

    def stokes(rank):
        e = mixed_element([element("P", "tetrahedron", 2, shape=(3,)), element("P", "tetrahedron", 1)])
        w, t = arguments(space("tetrahedron", e), rank)
        (u, p), (v, q) = ufl.split(w), ufl.split(t)
        return (inner(grad(u), grad(v)) - p * div(v) + q * div(u)) * dx

    def robin():
        V = space("tetrahedron", element("P", "tetrahedron", 2))
        u, v = arguments(V, 1)
        return inner(grad(u), grad(v)) * dx + u * v * ds

    def laplace(degree):
        V = space("tetrahedron", element("P", "tetrahedron", degree))
        u, v = arguments(V, 2)
        return inner(grad(u), grad(v)) * dx

    return {
        "advection DG2, triangle": lambda: advection("triangle", 2, 1),
        "advection DG2": lambda: advection("tetrahedron", 2, 1),
        "advection DG2, matrix": lambda: advection("tetrahedron", 2, 2),
        "interior penalty DG1, matrix": lambda: penalty("tetrahedron", 1, 2),
        "interior penalty DG2": lambda: penalty("tetrahedron", 2, 1),
        "interior penalty DG2, triangle, matrix": lambda: penalty("triangle", 2, 2),
        "Robin P2": robin,
        "curl-curl N1curl2": lambda: maxwell(2, 1),
        "curl-curl N1curl2, matrix": lambda: maxwell(2, 2),
        "impedance N1curl2": impedance,
        "Darcy RT2 x DG1": lambda: darcy(1),
        "Darcy RT2 x DG1, matrix": lambda: darcy(2),
        "elasticity P2": lambda: elasticity(1),
        "elasticity P2, matrix": lambda: elasticity(2),
        "hyperelasticity P1, matrix": hyperelasticity,
        "Stokes P2 x P1, matrix": lambda: stokes(2),
        "Laplace P3, matrix": lambda: laplace(3),
    }


def processor_seconds():
    """Of this process, and of its children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime


def small_form():
    """What loads all packages."""
    import ufl
    from basix.ufl import element

    V = ufl.FunctionSpace(ufl.Mesh(element("P", "interval", 1, shape=(1,))), element("P", "interval", 1))
    return ufl.Coefficient(V) * ufl.TestFunction(V) * ufl.dx


def peer(name):
    """FFCx: the times of a form."""
    import ffcx.codegeneration.jit as jit

    def compiled(form):
        jit.compile_forms([form], cache_dir=pathlib.Path(tempfile.mkdtemp()))

    compiled(small_form())
    form = forms()[name]()
    before = processor_seconds()
    compiled(form)
    own, children = (b - a for a, b in zip(before, processor_seconds()))
    return {"own": own, "compiler": children}


def ours(name, mapping, cells):
    """Kingpost: the times of a form, what was compiled, and seconds of a run by part."""
    import kingpost

    kingpost.jit(small_form(), "c")
    form = forms()[name]()
    before = processor_seconds()
    op = kingpost.jit(form, "c", mapping=mapping)
    own, children = (b - a for a, b in zip(before, processor_seconds()))
    found = {"own": own, "compiler": children, "lines": op.source.count("\n"), "runs": {}}
    found["mappings"] = {part.name: part.mapping["strategy"] for part in op.parts}
    if cells:
        found["runs"] = runs(form, op, cells)
    return found


def runs(form, op, cells):
    """Least seconds of a run of each part."""
    return runs_of(form, [op], cells)[0]


def runs_of(form, ops, cells):
    """Least seconds of a run of each part of each operator, in turns, on a perturbed mesh with random
    numbers."""
    sys.path.insert(0, str(ROOT / "python" / "tests"))
    import numpy as np
    from engine import given, listed
    from meshes import bind, make_mesh
    from kingpost.export import export_form
    from write_samples import space_elements

    document = export_form(form)
    rng = np.random.default_rng(1)
    counts = (3 * cells,) * 2 if document["gdim"] == 2 else (cells,) * 3
    mesh = bind(document, make_mesh(document["cell"], rng, counts, document["gdim"]), space_elements(form), rng)
    shared = given(document, mesh)
    best = [{} for _ in ops]
    for k in range(len(ops[0].parts)):
        calls = [(op.parts[k], call(document, mesh, op.parts[k], shared, listed)) for op in ops]
        for _ in range(5):
            for found, (part, arguments) in zip(best, calls):
                found[part.name] = min(found.get(part.name, math.inf), part.compiled.seconds(**arguments))
    return best


def call(document, mesh, part, shared, listed):
    """The arguments of a part."""
    arguments = {**shared, **listed(document, mesh, part)[0]}
    own = {a.name: a for a in part.compiled.arguments}
    outputs = {a.name: result(document, mesh, a, arguments) for a in own.values() if a.is_written}
    return {**{k: v for k, v in arguments.items() if k in own}, **outputs}


def result(document, mesh, argument, arguments):
    """An array for a result: its extents are numbers, or those of an array that is given."""
    import numpy as np

    sizes = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            sizes[name] = value.shape[0]
    output = next(o for o in document["outputs"] if o["name"] == argument.name) if any(
        o["name"] == argument.name for o in document["outputs"]) else document["outputs"][0]
    shape = []
    for extent in argument.shape:
        if extent.isdigit():
            shape.append(int(extent))
        elif len(output["spaces"]) == 1:
            shape.append(int(mesh.maps[output["spaces"][0]].max()) + 1)
        elif "facet_cells" in arguments:
            shape.append(len(arguments["facet_cells"]))
        else:
            shape.append(mesh.n_cells)
    return np.zeros(shape)


def child(*arguments):
    """A fresh process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, KINGPOST_CACHE_DIR=cache, OMP_NUM_THREADS="1")
        command = [sys.executable, __file__, "--child", json.dumps(arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=cache)
    if done.returncode:
        sys.exit(f"{arguments}: {done.stdout}{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def total(times):
    return times["own"] + times["compiler"]


def least(repeat, *arguments):
    """The repetition with the least time; runs are the least of all."""
    tried = [child(*arguments) for _ in range(repeat)]
    best = min(tried, key=total)
    if best.get("runs"):
        best["runs"] = {part: min(t["runs"][part] for t in tried) for part in best["runs"]}
    return best


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def measure(args, name):
    """A row of the table."""
    row = {"form": name}
    theirs = least(args.repeat, "peer", name)
    row |= {"ffcx_own_s": theirs["own"], "ffcx_compiler_s": theirs["compiler"]}
    variants = [("", None)] + ([("sequential_", {"strategy": "sequential"})] if args.mappings else [])
    for prefix, mapping in variants:
        found = least(args.repeat, "ours", name, mapping, args.run)
        row |= {f"{prefix}own_s": found["own"], f"{prefix}compiler_s": found["compiler"], f"{prefix}lines": found["lines"]}
        row[f"{prefix}ratio"] = total(found) / total(theirs)
        row[f"{prefix}mappings"] = " ".join(f"{k}:{v}" for k, v in found["mappings"].items())
        row[f"{prefix}runs_ms"] = " ".join(f"{k}:{1e3 * v:.4g}" for k, v in found["runs"].items())
    return row


def shown(value):
    return f"{value:.4g}" if isinstance(value, float) else value


def write(args, rows):
    """The table as CSV, and a page that says how it was measured."""
    args.write.mkdir(parents=True, exist_ok=True)
    before = {}
    if args.before:
        before = {row["form"]: row for row in csv.DictReader(args.before.open())}
    with open(args.write / "compile_time.csv", "w", newline="") as f:
        writer = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: shown(v) for k, v in row.items()} for row in rows)
    cpu = next(l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name"))
    compiler = subprocess.run([os.environ.get("CC", "cc"), "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    table = ["| form | FFCx, s | kingpost: itself | C compiler | ratio |" + (" ratio before |" if before else "")]
    table.append("|---|--:|--:|--:|--:|" + ("--:|" if before else ""))
    for row in rows:
        theirs = row["ffcx_own_s"] + row["ffcx_compiler_s"]
        cells = [row["form"], f"{theirs:.2f}", f"{row['own_s']:.2f}", f"{row['compiler_s']:.2f}", f"{row['ratio']:.2f}"]
        if before:
            cells.append(f"{float(before[row['form']]['ratio']):.2f}" if row["form"] in before else "")
        table.append("| " + " | ".join(cells) + " |")
    ratios = [row["ratio"] for row in rows]
    lines = [
        "# Compile time compared with FFCx", "",
        "Processor time, user and system, from a form of UFL to a loaded library: `kingpost.jit` in C with the default",
        "mapping, and FFCx's `compile_forms` with its default options. Each in a process of its own with an empty",
        f"cache, the least of {args.repeat} repetitions. {cpu}, {os.cpu_count()} cores shared with other work, {compiler},",
        f"{datetime.date.today()}.", "",
        *table, "",
        f"Geometric mean of the ratios {geometric_mean(ratios):.2f}, largest {max(ratios):.2f}."
        + (f" Before: {geometric_mean([float(r['ratio']) for r in before.values()]):.2f} and "
           f"{max(float(r['ratio']) for r in before.values()):.2f}." if before else ""), "",
        "`compile_time.csv` has the figures. Written by", "",
        f"    .venv/bin/python scripts/compile_time.py {shlex.join(sys.argv[1:])}", "",
    ]
    (args.write / "compile_time.md").write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--forms", nargs="*", help="those whose name contains one of these words")
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--mappings", action="store_true", help="compile by `sequential`, too")
    parser.add_argument("--run", type=int, default=0, metavar="N", help="time runs on a cube of N divisions a side, a square of 3 N")
    parser.add_argument("--before", type=pathlib.Path, help="an earlier compile_time.csv to compare with")
    parser.add_argument("--write", type=pathlib.Path, help="folder for compile_time.md and compile_time.csv")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        kind, *rest = json.loads(args.child)
        print(json.dumps({"peer": peer, "ours": ours}[kind](*rest)))
        return
    names = [n for n in forms() if not args.forms or any(word in n for word in args.forms)]
    rows = []
    for name in names:
        rows.append(measure(args, name))
        print(" ".join(f"{k}={shown(v)}" for k, v in rows[-1].items()), flush=True)
        if args.write:
            write(args, rows)
    ratios = [row["ratio"] for row in rows]
    print(f"geometric mean {geometric_mean(ratios):.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
