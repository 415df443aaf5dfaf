"""Forms on meshes of DOLFINx, against its own assembler, on one and on two processes."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

try:
    import dolfinx_cases as d
except ModuleNotFoundError as missing:
    if missing.name not in ("dolfinx_solver", "dolfinx", "petsc4py", "mpi4py", "ufl", "basix"):
        raise
    pytest.skip(
        f"skipped: {missing.name} is missing (scripts/dolfinx-tests.sh has it)", allow_module_level=True
    )

import ufl
from dolfinx import fem

import kingpost
import kingpost.dolfinx
from kingpost.export import dumps, export_form, states

# sums of some hundred products in f64, of which the largest are some ten times the result
TOLERANCE = 1e-12
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
PROCESSES = 2


@pytest.mark.parametrize("name", d.CASES)
def test_on_one_process(name):
    assert d.CASES[name]() < TOLERANCE


@pytest.mark.parametrize("name", d.CASES)
def test_with_cells_in_order(name):
    assert d.in_order(name) < TOLERANCE


@pytest.fixture(scope="module")
def of_two_processes():
    assert MPIEXEC, "DOLFINx has MPI, but there is no mpiexec"
    run = [MPIEXEC, "-n", str(PROCESSES), sys.executable, "dolfinx_cases.py"]
    # a thread a process, so that the processes do not wait for each other's threads
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        run, cwd=Path(__file__).parent, env=env, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", d.CASES)
def test_on_two_processes(name, of_two_processes):
    assert of_two_processes["processes"] == PROCESSES
    assert of_two_processes["errors"][name] < TOLERANCE


def poisson(n=3, degree=2):
    space = fem.functionspace(d.unit("triangle", n), ("P", degree))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    return space, ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + u * v * ufl.ds


@pytest.mark.parametrize("device", ["c", "opencl"])
def test_on_devices(device):
    if not any(name.split(":")[0] == device for name in kingpost.devices()):
        pytest.skip(f"skipped: no device for `{device}`")
    space, form = poisson()
    linear = ufl.action(form, d.filled(space))
    y = fem.Function(space)
    kingpost.dolfinx.action(linear, device).assemble(y)
    assert d.compared(y.x, d.oracle(linear), space) < TOLERANCE


def test_a_tuned_action_is_the_same():
    space, form = poisson()
    form = ufl.action(form, d.filled(space))
    y, action = fem.Function(space), kingpost.dolfinx.action(form)
    trials = action.tune(y)
    assert not y.x.array.any() and any(trial.seconds is not None for trial in trials)
    action.assemble(y)
    assert d.compared(y.x, d.oracle(form), space) < TOLERANCE


def test_a_tuned_operator_is_the_same():
    space, form = poisson()
    operator, x, y = kingpost.dolfinx.operator(form), d.filled(space), fem.Function(space)
    assert any(trial.seconds is not None for trial in operator.tune())
    operator.mult(x, y)
    assert d.compared(y.x, d.oracle(ufl.action(form, x)), space) < TOLERANCE


def test_scipy_solves_with_an_operator():
    linalg = pytest.importorskip("scipy.sparse.linalg", reason="skipped: SciPy is missing")
    space, form = poisson()
    bcs = [d.clamped(space)]
    operator = kingpost.dolfinx.operator(form, bcs).scipy()
    b = d.filled(space).x.array
    x, failed = linalg.cg(operator, b, rtol=1e-13, atol=0)
    matrix = fem.assemble_matrix(d.compiled(form), bcs=bcs).to_dense()
    assert failed == 0
    # the residual's 1e-13, times the condition of the matrix, below 1e3
    assert np.allclose(x, np.linalg.solve(matrix, b), rtol=0, atol=1e-10 * abs(x).max())


@pytest.mark.parametrize(
    ("cell", "family", "degree"),
    [("triangle", "P", 3), ("tetrahedron", "P", 2), ("tetrahedron", "N1curl", 2)],
)
def test_a_sparse_matrix_is_that_of_dolfinx(cell, family, degree):
    sparse = pytest.importorskip("scipy.sparse", reason="skipped: SciPy is missing")
    space = fem.functionspace(d.unit(cell), (family, degree))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    form = (ufl.inner(ufl.grad(u), ufl.grad(v)) + 2 * ufl.inner(u, v)) * ufl.dx
    document, mesh = export_form(form), space.mesh
    geometry, own = document["spaces"]
    mesh.topology.create_entity_permutations()
    given = {
        document["functions"][0]["name"]: mesh.geometry.x,
        f"{geometry['name']}_dofs": mesh.geometry.dofmaps[0],
        f"{own['name']}_dofs": space.dofmap.list,
    }
    if family == "N1curl":
        given[f"{own['name']}_states"] = states(own, cell, mesh.topology.get_cell_permutation_info())
    op = kingpost.jit(dumps(document), matrix="sparse", position_width=3)
    csr = op.assemble(**given)
    expected = fem.assemble_matrix(d.compiled(form)).to_scipy()
    found = sparse.csr_matrix((csr.data, csr.indices, csr.indptr), expected.shape)
    assert abs(found - expected).max() < TOLERANCE * abs(expected).max()


def test_a_matrix_of_a_linear_form_is_refused():
    space, form = poisson()
    with pytest.raises(kingpost.FormError) as error:
        kingpost.dolfinx.operator(ufl.action(form, d.filled(space)))
    assert str(error.value) == (
        "the form has 1 arguments, needed a test and a trial function; "
        "use `kingpost.dolfinx.action` for a linear form"
    )


def test_an_assembled_linear_form_is_refused():
    space, form = poisson()
    with pytest.raises(kingpost.FormError) as error:
        kingpost.dolfinx.matrix(ufl.action(form, d.filled(space)))
    assert str(error.value) == (
        "the form has 1 arguments, needed a test and a trial function; "
        "use `kingpost.dolfinx.action` for a linear form"
    )


def test_forms_that_are_zero_have_results_that_are_zero():
    pytest.importorskip("scipy.sparse", reason="skipped: SciPy is missing")
    mesh = d.unit("triangle")
    space, other = (fem.functionspace(mesh, ("P", degree)) for degree in (1, 2))
    u, k, x, y = d.filled(space), d.filled(other), d.filled(other), d.filled(space)
    zero = ufl.derivative(u * ufl.TestFunction(space) * ufl.dx, k, ufl.TrialFunction(other))
    matrix = kingpost.dolfinx.matrix(zero).scipy()
    assert matrix.shape == (len(y.x.array), len(x.x.array)) and not abs(matrix).max()
    kingpost.dolfinx.operator(zero).mult(x, y)
    assert not y.x.array.any()
    kingpost.dolfinx.action(ufl.derivative(u * u * ufl.dx, k, ufl.TestFunction(other))).assemble(x)
    assert not x.x.array.any()


def test_blocks_are_taken_one_by_one():
    pytest.importorskip("scipy.sparse", reason="skipped: SciPy is missing")
    mesh = d.unit("triangle")
    spaces = [fem.functionspace(mesh, ("P", degree)) for degree in (1, 2)]
    (u, p), (v, q) = (functions(ufl.MixedFunctionSpace(*spaces)) for functions in (ufl.TrialFunctions, ufl.TestFunctions))
    blocks = ufl.extract_blocks(u * v * ufl.dx + 2 * p * v * ufl.dx + p * q * ufl.dx)
    for compiles in (kingpost.dolfinx.matrix, kingpost.dolfinx.operator):
        with pytest.raises(kingpost.FormError, match="found a tuple of forms, needed one bilinear form"):
            compiles(blocks)
    found = kingpost.dolfinx.matrix(blocks[0][1]).scipy()
    expected = fem.assemble_matrix(d.compiled(blocks[0][1])).to_scipy()
    assert abs(found - expected).max() < TOLERANCE * abs(expected).max()


def test_functions_of_a_submesh_are_refused():
    from dolfinx.mesh import create_submesh

    space, _ = poisson()
    part = create_submesh(space.mesh, space.mesh.topology.dim, np.arange(3, dtype=np.int32))[0]
    u = fem.Function(fem.functionspace(part, ("P", 1)))
    with pytest.raises(kingpost.FormError, match="of another mesh than that of its integral; interpolate it"):
        kingpost.dolfinx.action(u * ufl.TestFunction(space) * ufl.dx(space.mesh))


def test_assembled_matrices_follow_their_functions():
    pytest.importorskip("scipy.sparse", reason="skipped: SciPy is missing")
    space, _ = poisson()
    k = d.filled(space, 4)
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    form, bc = k * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, d.clamped(space)
    matrix = kingpost.dolfinx.matrix(form, [bc], diagonal=3.0)
    for _ in range(2):
        expected = fem.assemble_matrix(d.compiled(form), bcs=[bc], diag=3.0).to_scipy()
        assert abs(matrix.scipy() - expected).max() < TOLERANCE * abs(expected).max()
        k.x.array[:] += 1


def test_a_part_of_a_mixed_space_is_refused():
    mesh = d.unit("triangle")
    parts = [d.element("P", "triangle", 2, shape=(2,)), d.element("P", "triangle", 1)]
    w = d.filled(fem.functionspace(mesh, d.mixed_element(parts)))
    v = ufl.TestFunction(fem.functionspace(mesh, ("P", 1)))
    with pytest.raises(kingpost.FormError) as error:
        kingpost.dolfinx.action(ufl.div(w.sub(0)) * v * ufl.dx)
    assert str(error.value) == (
        "the space of `w0` has 12 degrees of freedom a cell in blocks of 1, needed 6 in blocks of 2: "
        "it is a part of another space; `collapse()` it"
    )


def test_the_example_runs(capsys):
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "dolfinx" / "poisson.py"))
    assert " iterations, error " in capsys.readouterr().out
