"""Forms on several devices, against one device."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import division_processes
import engine
import numpy as np
import kingpost
import pytest
import ufl
import write_samples
from basix.ufl import element
from kingpost.export import dumps, export_form
from test_operator import numbers_of_edges, square

DEVICES = ["c", "opencl", "c"] if any(d.startswith("opencl") for d in kingpost.devices()) else ["c"] * 3
# sums of some hundred terms in f64, in another order
EQUAL = 1e-13

SAMPLES = [
    "laplace", "vector_mass", "hyperelasticity", "mixed_poisson", "curl_curl", "interior_penalty", "face_penalty", "energy",
    "prism_robin",
]  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("owners", ["bisect", "metis", "scattered"])
def test_parts_add_up_to_the_whole(name, owners, overlap=True):
    if owners == "metis":
        pytest.importorskip("pymetis", reason="skipped: pymetis is not installed")
    form, _ = getattr(write_samples, name)()
    document = export_form(form)
    mesh, evaluated = engine.problem(document, form, 3)
    one = kingpost.jit(dumps(document), "c")
    several = kingpost.jit(dumps(document), devices=DEVICES[: min(3, mesh.n_cells)])
    if owners == "scattered":
        owners = (np.arange(mesh.n_cells) * 7 % len(several.operators)).astype("i4")

    def call(**arguments):
        several(owners=owners, all_devices=True, overlap=overlap, **arguments)

    twin = type("Twin", (), {"parts": one.parts, "arguments": one.arguments, "__call__": staticmethod(call)})()
    expected = engine.results_of(document, mesh, one)
    found = engine.results_of(document, mesh, twin)
    assert engine.difference(document, mesh, expected, found) <= EQUAL
    assert engine.difference(document, mesh, evaluated, found) <= 1e-12


@pytest.mark.parametrize("name", ["laplace", "interior_penalty", "mixed_poisson", "energy"])
def test_parts_without_overlap_add_up_to_the_whole(name):
    test_parts_add_up_to_the_whole(name, "scattered", overlap=False)


def poisson(n=9, degree=2):
    """The action of Poisson's operator with a coefficient and a term on the left, and its arguments."""
    x, cells = square(n)
    x = x + 0.2 / n * np.random.default_rng(2).uniform(-1, 1, x.shape) * (abs(x - 0.5) < 0.49)
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    p1, space = (ufl.FunctionSpace(mesh, element("Lagrange", "triangle", k)) for k in (1, degree))
    u, k, v = ufl.Coefficient(space), ufl.Coefficient(p1), ufl.TestFunction(space)
    bilinear = (1 + k) * ufl.inner(ufl.grad(ufl.TrialFunction(space)), ufl.grad(v)) * ufl.dx + ufl.TrialFunction(space) * v * ufl.ds
    left = [(c, f) for c, cell in enumerate(cells) for f in range(3) if (square(n)[0][np.delete(cell, f), 0] == 0).all()]
    facets = {"facet_cells": np.array([c for c, _ in left], "i4"), "local_facets": np.array([f for _, f in left], "i4")}
    dofs = numbers_of_edges(cells) if degree == 2 else cells
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells, "k": np.random.default_rng(3).uniform(0, 1, len(x))}
    given |= {f"p{degree}_dofs": dofs, "exterior_facets": facets}
    return bilinear, u, {u: "u", k: "k"}, given, int(dofs.max()) + 1


def dense(form, names, given, n, unknown="u"):
    """The matrix, column by column, on one device."""
    op = kingpost.jit(form, "c", names=names)
    matrix = np.zeros((n, n))
    for column, unit in zip(matrix.T, np.eye(n)):
        y = np.zeros(n)
        op(y, **given, **{unknown: unit})
        column[:] = y
    return matrix


@pytest.mark.parametrize("method", ["cg", "gmres"])
@pytest.mark.parametrize("parts, overlap", [(1, True), (2, True), (3, True), (3, False)])
def test_systems_are_solved_as_by_elimination(method, parts, overlap):
    bilinear, u, names, given, n = poisson()
    form = ufl.action(bilinear, u)
    matrix = dense(form, names, given, n)
    op = kingpost.jit(form, devices=DEVICES[:parts], names=names)
    division = op.divide(all_devices=True, overlap=overlap, u=np.zeros(n), **given)
    b = np.random.default_rng(4).standard_normal(n)
    fixed = np.arange(5, n, 40)
    values = np.where(np.isin(np.arange(n), fixed), np.arange(n) / n, 0.0)
    del names[u]
    op = kingpost.jit(bilinear, devices=DEVICES[:parts], names=names, matrix="diagonal")
    diagonal = np.zeros(n)
    op(diagonal, all_devices=True, **given)
    assert np.allclose(diagonal, matrix.diagonal(), rtol=1e-13, atol=0)
    kept = matrix.copy()
    kept[fixed] = np.eye(n)[fixed]
    expected = np.linalg.solve(kept, np.where(np.isin(np.arange(n), fixed), values, b))
    found = division.solve(b, fixed=fixed, values=values, diagonal=diagonal, method=method, relative=1e-13)
    assert found.converged and found.iterations > 20, found
    # a residual of 1e-13 times the condition, below 1e3
    assert np.abs(found.x - expected).max() <= 1e-10 * np.abs(expected).max()
    # what the division holds of the unknown is as before
    y = np.zeros(n)
    division(y)
    assert not y.any()
    division(y, u=b)
    assert np.abs(y - matrix @ b).max() <= EQUAL * np.abs(y).max()


def test_iterations_are_those_of_one_device():
    bilinear, u, names, given, n = poisson(14)
    form = ufl.action(bilinear, u)
    b = np.random.default_rng(5).standard_normal(n)
    runs = [
        kingpost.jit(form, devices=DEVICES[:parts], names=names).divide(all_devices=True, u=np.zeros(n), **given).solve(b, relative=1e-8)
        for parts in (1, 2, 3)
    ]
    # sums in another order
    counts = [run.iterations for run in runs]
    assert max(counts) - min(counts) <= 1 and all(run.converged for run in runs), counts
    for run in runs[1:]:
        assert np.abs(run.x - runs[0].x).max() <= 1e-9 * np.abs(runs[0].x).max()


def test_actions_without_curvature_are_told():
    """The first direction, of an action that is not positive: a descent of its energy."""
    bilinear, u, names, given, n = poisson(4)
    form = -1.0 * ufl.action(bilinear, u)
    b = np.random.default_rng(9).standard_normal(n)
    for parts in (1, 3):
        op = kingpost.jit(form, devices=DEVICES[:parts], names=names)
        found = op.divide(all_devices=True, u=np.zeros(n), **given).solve(b)
        assert not found.converged and found.iterations == 0 and np.abs(found.x - b).max() <= EQUAL, found


def test_systems_of_vectors_are_solved():
    """Displacements, two components a number."""
    x, cells = square(6)
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1, shape=(2,)))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    form = (ufl.inner(ufl.sym(ufl.grad(u)), ufl.sym(ufl.grad(v))) + ufl.div(u) * ufl.div(v) + ufl.inner(u, v)) * ufl.dx
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells}
    division = kingpost.jit(form, devices=DEVICES, names={u: "u"}).divide(all_devices=True, u=np.zeros((len(x), 2)), **given)
    b = np.random.default_rng(6).standard_normal((len(x), 2))
    found = division.solve(b, relative=1e-13)
    assert found.converged and found.x.shape == b.shape
    y, one = np.zeros_like(b), kingpost.jit(form, "c", names={u: "u"})
    one(y, u=found.x, **given)
    assert np.abs(y - b).max() <= 1e-11 * np.abs(b).max()


def test_discontinuous_elements_are_solved():
    """Jumps over facets whose cells are of two parts."""
    form, named = write_samples.interior_penalty()
    u = named["u"]
    form = form + 60 * u * ufl.TestFunction(u.ufl_function_space()) * ufl.dx
    names = {thing: name for name, thing in named.items()}
    document = export_form(form, names=names)
    mesh, _ = engine.problem(document, form, 1)
    one = kingpost.jit(dumps(document), "c")
    given = dict(engine.given(document, mesh))
    for part in one.parts:
        lists = engine.listed(document, mesh, part)[0]
        own = {a.name for a in part.compiled.arguments}
        given[part.name] = {name: value for name, value in lists.items() if name in own}
    known = {a.name for a in one.arguments} | {part.name for part in one.parts} | {"alpha"}
    given = {name: value for name, value in given.items() if name in known}
    division = kingpost.jit(dumps(document), devices=DEVICES).divide(all_devices=True, **given)
    b = np.random.default_rng(7).standard_normal(len(given["u"]))
    found = division.solve(b, method="gmres", relative=1e-13)
    assert found.converged, found
    y = np.zeros_like(b)
    one(y, **given | {"u": found.x})
    assert np.abs(y - b).max() <= 1e-11 * np.abs(b).max()


def test_parts_may_have_nothing_to_do():
    """Integrals over some cells that are all of one part, of three."""
    x, cells = square(6)
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    listed = np.array([0, 1, 2, 7], "i4")
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells, "listed_cells": listed}
    owners = np.where(np.isin(np.arange(len(cells)), listed), 1, 2 * (np.arange(len(cells)) % 2))
    b, reached = np.zeros(len(x)), np.unique(cells[listed])
    b[reached] = np.random.default_rng(8).standard_normal(len(reached))
    for form, size in ((u * v * ufl.dx(1), len(x)), (u**2 * ufl.dx(1), 1)):
        one, found = np.zeros(size), np.zeros(size)
        kingpost.jit(form, "c", names={u: "u"})(one, u=b, **given)
        division = kingpost.jit(form, devices=DEVICES, names={u: "u"}).divide(owners=owners, u=b, **given)
        division(found)
        assert np.abs(one - found).max() <= EQUAL * np.abs(one).max()
        if size > 1:
            solution = division.solve(one, relative=1e-13)
            # the condition of a mass matrix is below 10
            assert solution.converged and np.abs(solution.x - b).max() <= 1e-11


def test_partitions_are_even():
    pytest.importorskip("pymetis", reason="skipped: pymetis is not installed")
    _, cells = square(16)
    for parts in (1, 2, 4):
        counts = np.bincount(kingpost.partition(cells, parts, "triangle"), minlength=parts)
        assert len(counts) == parts and counts.max() <= 1.1 * len(cells) / parts
    with pytest.raises(kingpost.ArgumentError, match="512 cells make no 600 parts; use fewer devices"):
        kingpost.partition(cells, 600, "triangle")
    with pytest.raises(kingpost.ArgumentError, match="`cell` is 'square'; needed one of interval, triangle"):
        kingpost.partition(cells, 2, "square")


def test_metis_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pymetis", None)
    with pytest.raises(kingpost.Unavailable, match=r"pip install 'kingpost\[metis\]'"):
        kingpost.partition(square(2)[1], 2, "triangle")


def test_what_does_not_fit_is_refused():
    bilinear, u, names, given, n = poisson(3)
    form = ufl.action(bilinear, u)
    refused = [
        (kingpost.ArgumentError, "needed a list of names", {"form": form, "devices": "c"}),
        (kingpost.ArgumentError, "leave one of both out", {"form": form, "devices": ["c"], "device": "c"}),
        (kingpost.FormError, "no form|unknown|`nothing`", {"form": "nothing", "devices": ["c"]}),
        (kingpost.FormError, "the form is bilinear; several devices take its action", {"form": bilinear, "devices": ["c"]}),
        (kingpost.FormError, r"has the results `y0`, `y1`.*divide\(like=division\)", {"form": [form, form], "devices": ["c"]}),
        (kingpost.FormError, "vectors of cells are for one device", {"form": form, "devices": ["c"], "vector": "cells"}),
        (kingpost.Unavailable, "no such device|no device|unknown device|`nothing`", {"form": form, "devices": ["nothing"]}),
    ]
    for kind, message, arguments in refused:
        with pytest.raises(kind, match=message):
            kingpost.jit(**arguments)
    op = kingpost.jit(form, devices=["c", "c"], names=names)
    given["u"] = np.zeros(n)
    cells = len(given["x_dofs"])
    wrong = [
        (kingpost.MissingArgument, "argument `u` is missing", {"u": None}),
        (kingpost.UnknownArgument, "takes no argument `w`", {"w": given["u"]}),
        (kingpost.ShapeError, rf"`owners` has int64 of shape \[2\]; needed integers \[{cells}\]", {"owners": np.zeros(2, int)}),
        (kingpost.ArgumentError, "`owners` holds part 2; needed 0 to 1", {"owners": np.arange(cells) % 3}),
        (kingpost.ArgumentError, "`owners` gives no cell to part 1", {"owners": np.zeros(cells, int)}),
        (kingpost.ArgumentError, "`owners` is 'best'", {"owners": "best"}),
        (kingpost.ArgumentError, "argument `p2_dofs` holds -1", {"p2_dofs": given["p2_dofs"] - 1}),
        (kingpost.ArgumentError, "holds 48, and `u` has 3 entries", {"u": np.zeros(3)}),
        (kingpost.DtypeError, "argument `x_dofs` has int64", {"x_dofs": given["x_dofs"].astype(int)}),
        (kingpost.DtypeError, "argument `u` has elements of type float32", {"u": np.zeros(n, "f4")}),
        (kingpost.ShapeError, "the maps have", {"x_dofs": given["x_dofs"][:-1]}),
        (kingpost.UnknownArgument, "`y` is the result", {"y": np.zeros(n)}),
    ]
    for kind, message, changed in wrong:
        arguments = {name: value for name, value in (given | changed).items() if value is not None}
        with pytest.raises(kind, match=message):
            op.divide(**arguments)
    division = op.divide(**given)
    b = np.ones(n)
    calls = [
        (kingpost.ShapeError, rf"`y` has the shape \[3\]; needed \[{n}\]", lambda: division(np.zeros(3))),
        (kingpost.DtypeError, "needed an array of NumPy of f64", lambda: division(np.zeros(n, "f4"))),
        (kingpost.UnknownArgument, "`x` is no function that a call gives", lambda: division(b, x=given["x"])),
        (kingpost.ShapeError, r"`b` has the shape \[2\]", lambda: division.solve(b[:2])),
        (kingpost.ArgumentError, "`unknown` is 'k'; functions of the result's space are `u`", lambda: division.solve(b, "k")),
        (kingpost.ArgumentError, "`fixed` names unknown -1", lambda: division.solve(b, fixed=[-1])),
        (kingpost.ArgumentError, "`diagonal` holds 0", lambda: division.solve(b, diagonal=0 * b)),
        (kingpost.ArgumentError, "several devices take `cg` and `gmres`", lambda: division.solve(b, method="bicgstab")),
        (kingpost.ArgumentError, "holds a number that is infinite", lambda: division.solve(b * np.nan)),
        (kingpost.ArgumentError, "which no cell of the form has", lambda: division.solve(np.ones(n + 1))),
    ]
    for kind, message, call in calls:
        with pytest.raises(kind, match=message):
            call()
    affine = kingpost.jit(form + ufl.TestFunction(u.ufl_function_space()) * ufl.dx, devices=["c"], names=names)
    with pytest.raises(kingpost.FormError, match="the form is not zero where `u` is"):
        affine.divide(**given).solve(b)


def check_processes(found):
    for of_process in found:
        assert of_process.get("error") is None, of_process
        assert of_process["action"] <= EQUAL and of_process["functional"] <= EQUAL, of_process
        # a residual of 1e-12 times the condition, below 1e3
        assert of_process["converged"] and max(of_process["solutions"]) <= 1e-9, of_process
        assert "processes have other parts of cells" in of_process["refused"], of_process
    assert found[0]["failed"].startswith("AttributeError")
    assert found[1]["failed"] == "DeviceError: process 0 failed; its own error says why"


def test_processes_have_a_part_each():
    found = division_processes.all_of_them(["c"] * division_processes.PROCESSES)
    check_processes(found)
    assert {one["exchange"] for one in found} == {"host"}


def test_processes_of_mpi_have_a_part_each():
    pytest.importorskip("mpi4py", reason="skipped: mpi4py is missing (scripts/dolfinx-tests.sh has it)")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    assert mpiexec, "mpi4py is there, but there is no mpiexec"
    run = [mpiexec, "-n", str(division_processes.PROCESSES), sys.executable, "division_processes.py"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(run, cwd=Path(__file__).parent, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    check_processes(json.loads(done.stdout.splitlines()[-1]))


def test_processes_that_do_not_fit_are_refused():
    bilinear, u, names, given, n = poisson(2)
    form = ufl.action(bilinear, u)
    with pytest.raises(kingpost.ArgumentError, match="`comm` is a int without `rank`"):
        kingpost.jit(form, devices=["c"], names=names).divide(comm=3, u=np.zeros(n), **given)
    alone = division_processes.Pipes(0, [[None]])
    with pytest.raises(kingpost.ArgumentError, match="`comm` has 1 processes, and `devices` 2 devices"):
        kingpost.jit(form, devices=["c", "c"], names=names).divide(comm=alone, u=np.zeros(n), **given)
