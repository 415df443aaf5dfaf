"""Whole programs of DOLFINx with the problems of `kingpost.dolfinx`, on one and on two processes."""

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

try:
    import dolfinx_problems as d
except ModuleNotFoundError as missing:
    if missing.name not in ("dolfinx_solver", "dolfinx", "petsc4py", "mpi4py", "ufl", "basix"):
        raise
    pytest.skip(
        f"skipped: {missing.name} is missing (scripts/dolfinx-tests.sh has it)", allow_module_level=True
    )

import ufl
from dolfinx import fem, mesh

import kingpost.dolfinx
from kingpost.errors import FormError

# solvers stop at rounding errors of residuals, which the conditions of the matrices multiply
TOLERANCE = 1e-10
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


@pytest.mark.parametrize("name", d.PROGRAMS)
def test_on_one_process(name):
    assert d.difference(name) < TOLERANCE


def test_on_two_processes():
    assert MPIEXEC, "DOLFINx has MPI, but there is no mpiexec"
    run = [MPIEXEC, "-n", "2", sys.executable, "dolfinx_problems.py"]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        run, cwd=Path(__file__).parent, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["processes"] == 2 and max(found["errors"].values()) < TOLERANCE, found
    assert found["errors"].keys() == d.PROGRAMS.keys()


def problem(n=4, **more):
    space = fem.functionspace(mesh.create_unit_square(d.COMM, n, n), ("Lagrange", 1))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    value = fem.Constant(space.mesh, 1.0)
    bc = d.fixed(space, lambda x: np.full(x.shape[1], True), value)
    a = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx
    options = {"petsc_options_prefix": "p_", "petsc_options": d.LU, "bcs": [bc]}
    return value, kingpost.dolfinx.LinearProblem(a, value * v * ufl.dx, **{**options, **more})


def test_values_are_read_at_each_solve():
    value, linear = problem()
    entries = linear.A.getValuesCSR()[2].copy()
    # the boundary has the value, and the source is as large
    first = linear.solve().x.array.copy()
    value.value = 3.0
    second = linear.solve().x.array
    assert np.allclose(3 * first, second, rtol=1e-13) and first.min() == pytest.approx(1.0)
    assert np.array_equal(linear.A.getValuesCSR()[2], entries)


def test_matrices_are_not_copied():
    space = fem.functionspace(mesh.create_unit_square(d.COMM, 4, 4), ("Lagrange", 2))
    u, v, k = ufl.TrialFunction(space), ufl.TestFunction(space), fem.Constant(space.mesh, 1.0)
    assembled = kingpost.dolfinx.matrix(k * u * v * ufl.dx)
    first = assembled.petsc()
    before = first.norm()
    k.value = 2.0
    again = assembled.petsc(first)
    assert again.handle == first.handle and first.norm() == pytest.approx(2 * before, rel=1e-14)
    # one array: what is written to it is in the matrix
    assembled._stored[:] = 0
    assert np.array_equal(first.getValuesCSR()[2], np.zeros(len(assembled._stored)))


def test_a_matrix_outlives_what_assembled_it():
    space = fem.functionspace(mesh.create_unit_square(d.COMM, 32, 32), ("Lagrange", 2))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    found = kingpost.dolfinx.matrix(u * v * ufl.dx).petsc()
    before = found.norm()
    gc.collect()
    other = [np.full(int(n), np.nan) for n in (found.getInfo()["nz_used"], space.dofmap.index_map.size_local)]
    assert found.norm() == before and len(other) == 2


def test_refusals_say_what_to_do():
    with pytest.raises(FormError, match="petsc_options_prefix"):
        problem(petsc_options_prefix="")
    with pytest.raises(FormError, match='kind="nest"'):
        problem(kind="nest")
