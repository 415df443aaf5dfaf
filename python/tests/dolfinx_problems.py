"""Whole programs of users of DOLFINx, solved by the problems of `kingpost.dolfinx` and by DOLFINx's own.

Poisson's, Cahn & Hilliard's, Stokes's and Helmholtz's equations are those of DOLFINx's demos, hyperelasticity that of
its tutorial, each in a few lines: what a user changes is where the problem comes from. `python dolfinx_problems.py`
prints how far solutions are apart, `--times` how long assembly takes.
"""

import functools
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import dolfinx_solver  # noqa: F401 (this build of DOLFINx wants to be loaded first)
import numpy as np
import ufl
from basix.ufl import element, mixed_element
from dolfinx import fem, mesh
from dolfinx.fem import petsc
from mpi4py import MPI
from petsc4py import PETSc
from ufl import dx, grad, inner

import kingpost.dolfinx

COMM = MPI.COMM_WORLD
LU = {
    "ksp_type": "preonly",
    "pc_type": "lu",
    "pc_factor_mat_solver_type": "mumps",
    "ksp_error_if_not_converged": True,
}
NEWTON = {**LU, "snes_type": "newtonls", "snes_linesearch_type": "none", "snes_rtol": 1e-12, "snes_atol": 1e-12}

Problem = Callable[..., Any]
PROGRAMS: dict[str, Callable[..., list[Any]]] = {}


def program(function: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
    PROGRAMS[function.__name__] = function
    return function


def fixed(space: Any, where: Callable[[Any], Any], value: Any) -> Any:
    """Dirichlet conditions on a part of the boundary."""
    dim = space.mesh.topology.dim - 1
    facets = mesh.locate_entities_boundary(space.mesh, dim, where)
    dofs = fem.locate_dofs_topological(space, dim, facets)
    return fem.dirichletbc(value, dofs) if isinstance(value, fem.Function) else fem.dirichletbc(value, dofs, space)


@program
def poisson(linear: Problem, _: Problem, n: int = 32) -> list[Any]:
    m = mesh.create_rectangle(COMM, ((0.0, 0.0), (2.0, 1.0)), (n, n // 2))
    V = fem.functionspace(m, ("Lagrange", 2))
    bc = fixed(V, lambda x: np.isclose(x[0], 0.0) | np.isclose(x[0], 2.0), 0.5)
    u, v, x = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.SpatialCoordinate(m)
    f = 10 * ufl.exp(-((x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2) / 0.02)
    L = inner(f, v) * dx + inner(ufl.sin(5 * x[0]), v) * ufl.ds
    problem = linear(inner(grad(u), grad(v)) * dx, L, bcs=[bc], petsc_options_prefix="poisson_", petsc_options=LU)
    return [problem.solve()]


@program
def hyperelasticity(_: Problem, nonlinear: Problem, n: int = 6) -> list[Any]:
    m = mesh.create_box(COMM, ((0.0, 0.0, 0.0), (2.0, 1.0, 1.0)), (2 * n, n, n))
    V = fem.functionspace(m, ("Lagrange", 1, (3,)))
    u, v = fem.Function(V), ufl.TestFunction(V)
    bcs = [fixed(V, lambda x: np.isclose(x[0], 0.0), np.zeros(3))]
    F = ufl.variable(ufl.Identity(3) + grad(u))
    mu, lambda_ = 1.0e4 / 2.6, 1.0e4 * 0.3 / (1.3 * 0.4)
    J = ufl.det(F)
    psi = mu / 2 * (ufl.tr(F.T * F) - 3) - mu * ufl.ln(J) + lambda_ / 2 * ufl.ln(J) ** 2
    traction = fem.Constant(m, np.zeros(3))
    far = mesh.locate_entities_boundary(m, 2, lambda x: np.isclose(x[0], 2.0))
    ds = ufl.Measure("ds", domain=m, subdomain_data=mesh.meshtags(m, 2, np.sort(far), np.full(len(far), 2, np.int32)))
    body = fem.Constant(m, np.array([0.0, 0.0, -1.0]))
    dx_4 = dx(metadata={"quadrature_degree": 4})
    residual = inner(grad(v), ufl.diff(psi, F)) * dx_4 - inner(v, body) * dx_4 - inner(v, traction) * ds(2)
    problem = nonlinear(residual, u, bcs=bcs, petsc_options_prefix="hyperelasticity_", petsc_options=NEWTON)
    for step in (1, 2):  # the load grows
        traction.value[2] = -20.0 * step
        problem.solve()
        assert problem.solver.getConvergedReason() > 0
    return [u]


@program
def cahn_hilliard(_: Problem, nonlinear: Problem, n: int = 24) -> list[Any]:
    m = mesh.create_unit_square(COMM, n, n)
    P1 = element("Lagrange", m.basix_cell(), 1)
    ME = fem.functionspace(m, mixed_element([P1, P1]))
    (q, v), u, u0, dt = ufl.TestFunctions(ME), fem.Function(ME), fem.Function(ME), 5.0e-06
    u.sub(0).interpolate(lambda x: 0.63 + 0.02 * np.sin(91.0 * x[0]) * np.cos(67.0 * x[1]))
    u.x.scatter_forward()
    (c, mu), (c0, mu0) = ufl.split(u), ufl.split(u0)
    c = ufl.variable(c)
    dfdc = ufl.diff(100 * c**2 * (1 - c) ** 2, c)
    F = inner(c, q) * dx - inner(c0, q) * dx + dt * inner(grad(0.5 * mu0 + 0.5 * mu), grad(q)) * dx
    F += inner(mu, v) * dx - inner(dfdc, v) * dx - 1.0e-02 * inner(grad(c), grad(v)) * dx
    problem = nonlinear(F, u, petsc_options_prefix="cahn_hilliard_", petsc_options=NEWTON)
    for _ in range(3):
        u0.x.array[:] = u.x.array
        problem.solve()
        assert problem.solver.getConvergedReason() > 0
    return [u]


@program
def stokes(linear: Problem, _: Problem, n: int = 16) -> list[Any]:
    m = mesh.create_rectangle(COMM, ((0.0, 0.0), (1.0, 1.0)), (n, n))
    V, Q = fem.functionspace(m, ("Lagrange", 2, (2,))), fem.functionspace(m, ("Lagrange", 1))
    lid = fem.Function(V)
    lid.interpolate(lambda x: np.stack((np.ones(x.shape[1]), np.zeros(x.shape[1]))))
    walls = fixed(V, lambda x: np.isclose(x[0], 0.0) | np.isclose(x[0], 1.0) | np.isclose(x[1], 0.0), np.zeros(2))
    bcs = [walls, fixed(V, lambda x: np.isclose(x[1], 1.0), lid)]
    u, p, v, q = ufl.TrialFunction(V), ufl.TrialFunction(Q), ufl.TestFunction(V), ufl.TestFunction(Q)
    a = [[inner(grad(u), grad(v)) * dx, inner(p, ufl.div(v)) * dx], [inner(ufl.div(u), q) * dx, None]]
    L = [inner(fem.Constant(m, (0.0, 0.0)), v) * dx, ufl.ZeroBaseForm((q,))]
    options = {
        "ksp_type": "minres",
        "ksp_rtol": 1e-13,
        "pc_type": "fieldsplit",
        "pc_fieldsplit_type": "additive",
        "fieldsplit_0_ksp_type": "preonly",
        "fieldsplit_0_pc_type": "gamg",
        "fieldsplit_1_ksp_type": "preonly",
        "fieldsplit_1_pc_type": "jacobi",
    }
    P = [[a[0][0], None], [None, inner(p, q) * dx]]
    problem = linear(a, L, kind="nest", bcs=bcs, P=P, petsc_options_prefix="stokes_", petsc_options=options)
    null = problem.b.duplicate()
    null.getNestSubVecs()[0].set(0.0)
    null.getNestSubVecs()[1].set(1.0)
    null.normalize()
    problem.A.setNullSpace(PETSc.NullSpace().create(vectors=[null]))
    for block in (problem.A.getNestSubMatrix(0, 0), *(problem.P_mat.getNestSubMatrix(k, k) for k in (0, 1))):
        block.setOption(PETSc.Mat.Option.SPD, True)
    found = problem.solve()
    assert problem.solver.getConvergedReason() > 0
    return list(found)


@program
def helmholtz(linear: Problem, _: Problem, n: int = 32) -> list[Any]:
    m, k0 = mesh.create_unit_square(COMM, n, n), 4 * np.pi
    V = fem.functionspace(m, ("Lagrange", 1))
    u, v, normal = ufl.TrialFunction(V), ufl.TestFunction(V), ufl.FacetNormal(m)
    exact, on_sides = fem.Function(fem.functionspace(m, ("Lagrange", 4))), fem.Function(V)
    for function in (exact, on_sides):
        function.interpolate(lambda x: np.cos(k0 * (x[0] + x[1]) / np.sqrt(2)))
    a = inner(grad(u), grad(v)) * dx - k0**2 * inner(u, v) * dx
    L = inner(ufl.dot(normal, grad(exact)), v) * ufl.ds
    bcs = [fixed(V, lambda x: np.isclose(x[0], 0) | np.isclose(x[1], 0), on_sides)]
    problem = linear(a, L, bcs=bcs, u=fem.Function(V), petsc_options_prefix="helmholtz_", petsc_options=LU)
    return [problem.solve()]


@program
def navier_stokes(linear: Problem, nonlinear: Problem, n: int = 8) -> list[Any]:
    """Blocks in one matrix, in which only the first is not zero for a linear start."""
    m = mesh.create_rectangle(COMM, ((0.0, 0.0), (1.0, 1.0)), (n, n), mesh.CellType.quadrilateral)
    V, Q = fem.functionspace(m, ("Lagrange", 2, (2,))), fem.functionspace(m, ("Lagrange", 1))
    lid, u, p = fem.Function(V), fem.Function(V), fem.Function(Q)
    lid.interpolate(lambda x: np.stack((4 * x[0] * (1 - x[0]), np.zeros(x.shape[1]))))
    walls = fixed(V, lambda x: np.isclose(x[0], 0.0) | np.isclose(x[0], 1.0) | np.isclose(x[1], 0.0), np.zeros(2))
    bcs = [walls, fixed(V, lambda x: np.isclose(x[1], 1.0), lid)]
    v, q = ufl.TestFunction(V), ufl.TestFunction(Q)
    momentum = 0.1 * inner(grad(u), grad(v)) * dx + inner(grad(u) * u, v) * dx - inner(p, ufl.div(v)) * dx
    # a little compressible, so that the pressure is known
    mass = inner(ufl.div(u), q) * dx + 1e-3 * inner(p, q) * dx
    options = {"petsc_options_prefix": "navier_stokes_", "petsc_options": NEWTON}
    nonlinear([momentum, mass], [u, p], bcs=bcs, kind="mpi", **options).solve()
    return [u, p]


OURS = kingpost.dolfinx.LinearProblem, kingpost.dolfinx.NonlinearProblem


def theirs() -> tuple[Problem, Problem]:
    """DOLFINx's own, whose tables are not rounded to 1e-9, as they are by default."""
    options = {"form_compiler_options": {"table_rtol": 1e-15, "table_atol": 1e-15}}
    return functools.partial(petsc.LinearProblem, **options), functools.partial(petsc.NonlinearProblem, **options)


def difference(name: str) -> float:
    """The largest difference of solutions, in units of the largest value."""
    worst = 0.0
    for found, expected in zip(PROGRAMS[name](*OURS), PROGRAMS[name](*theirs())):
        owned = found.function_space.dofmap.index_map.size_local * found.function_space.dofmap.index_map_bs
        apart = abs(found.x.array[:owned] - expected.x.array[:owned]).max(initial=0.0)
        largest = abs(expected.x.array[:owned]).max(initial=0.0)
        apart, largest = (COMM.allreduce(x, op=MPI.MAX) for x in (apart, largest))
        worst = max(worst, apart / largest)
    return float(worst)


def made(name: str, linear: Problem, nonlinear: Problem, n: int) -> Any:
    """The problem of a program, after it was solved."""
    kept: list[Any] = []

    def keep(kind: Problem) -> Problem:
        return lambda *given, **more: kept.append(kind(*given, **more)) or kept[-1]

    PROGRAMS[name](keep(linear), keep(nonlinear), n)
    return kept[0]


def assembly(problem: Any) -> Callable[[], None]:
    """What computes the matrix and the right-hand side again, without prescribed values in the latter."""
    if not hasattr(problem, "_a") and not hasattr(problem, "_J"):

        def ours() -> None:
            problem._system.assemble_matrix()
            problem._system.add_linear()

        return ours
    bilinear, linear = (problem.a, problem.L) if hasattr(problem, "_a") else (problem.J, problem.F)
    matrices = [(problem.A, bilinear)] + ([(problem.P_mat, problem.preconditioner)] if problem.P_mat else [])

    def dolfinx_own() -> None:
        for matrix, form in matrices:
            matrix.zeroEntries()
            petsc.assemble_matrix(matrix, form, bcs=getattr(problem, "bcs", []))
            matrix.assemble()
        for part in problem.b.getNestSubVecs() if problem.b.getType() == "nest" else [problem.b]:
            with part.localForm() as local:
                local.set(0.0)
        petsc.assemble_vector(problem.b, linear)

    return dolfinx_own


SIZES = {"poisson": 256, "hyperelasticity": 14, "cahn_hilliard": 160, "stokes": 96, "helmholtz": 320, "navier_stokes": 48}


def times(runs: int = 7) -> None:
    """Seconds of an assembly, of either in turns: the median of those of the slowest process."""
    fast = {"jit_options": {"cffi_extra_compile_args": ["-O3", "-march=native"]}}
    # with tables rounded as by default, which finds more zeros
    own = [functools.partial(kind, **fast) for kind in (petsc.LinearProblem, petsc.NonlinearProblem)]
    for name, n in SIZES.items():
        both = {"kingpost": assembly(made(name, *OURS, n)), "dolfinx": assembly(made(name, *own, n))}
        found: dict[str, list[float]] = {who: [] for who in both}
        for _ in range(runs):
            for who, assemble in both.items():
                COMM.barrier()
                start = time.perf_counter()
                assemble()
                found[who].append(COMM.allreduce(time.perf_counter() - start, op=MPI.MAX))
        if COMM.rank == 0:
            ours, others = (statistics.median(found[who]) for who in both)
            line = {"program": name, "n": n, "processes": COMM.size, "kingpost_s": ours, "dolfinx_s": others}
            print(json.dumps({**line, "times": others / ours}), flush=True)


def main() -> None:
    if "--times" in sys.argv:
        times()
        return
    errors = {}
    for name in PROGRAMS:
        try:
            errors[name] = difference(name)
        except Exception as error:  # noqa: BLE001 (the other processes must not wait for this one)
            print(f"{name} on process {COMM.rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            COMM.Abort(1)
    if COMM.rank == 0:
        print(json.dumps({"processes": COMM.size, "errors": errors}))


if __name__ == "__main__":
    main()
