"""Preconditioners on several devices, against direct solves and one device."""

from __future__ import annotations

import numpy as np
import kingpost
import pytest
import ufl

pytest.importorskip("scipy")

from conftest import LONG
from kingpost import meshes, multigrid
from test_division import DEVICES, dense, poisson
from test_multigrid import box, direct, elasticity

# residuals end at 1e-11 of the right-hand side, with matrices of conditions up to 1e3
SOLVED = 1e-8


def with_terms(V: meshes.Space) -> ufl.Form:
    """A coefficient, and a term on the facets where x is 0."""
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    x = ufl.SpatialCoordinate(V.mesh.domain())
    return (1 + 10 * x[0] ** 2) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + 3 * ufl.inner(u, v) * ufl.ds(7)


def at_the_right(V: meshes.Space) -> np.ndarray:
    """Whether x is 1 at the point of a degree of freedom; of vectors, for the first component."""
    x = V.interpolate(lambda x: np.broadcast_to(x[0], (V.block, x.shape[1])) if V.block > 1 else x[0])
    found = abs(x - 1) < 1e-12
    if V.block > 1:
        found[:, 1:] &= abs(V.interpolate(lambda x: np.broadcast_to(x[1], (V.block, x.shape[1])))[:, 1:] - 0.5) < 0.3
    return found


@pytest.mark.parametrize(
    "kind, degree, form, block",
    [
        ("triangle", 3, with_terms, 1),
        ("quadrilateral", 4, with_terms, 1),
        ("tetrahedron", 2, with_terms, 1),
        ("triangle", 2, elasticity, 2),
        *([("triangle", 2, with_terms, 1), ("hexahedron", 3, with_terms, 1)] if LONG else []),
    ],
)
def test_iterations_do_not_depend_on_the_number_of_devices(kind, degree, form, block) -> None:
    dim = 3 if kind in ("tetrahedron", "hexahedron") else 2
    V = box(kind, 3 if dim == 3 else 8).space("P", degree, **({"shape": (block,)} if block > 1 else {}))
    fixed = at_the_right(V)
    rng = np.random.default_rng(3)
    b, values = rng.standard_normal(V.shape), rng.standard_normal(V.shape)
    expected = direct(V, form(V), b, fixed, values)
    counts = []
    for parts in (1, 2, 3):
        solver = multigrid.TwoLevels(V, form, devices=DEVICES[:parts], fixed=at_the_right, all_devices=True)
        assert len(np.unique(solver.division.owners)) == parts
        found = solver.solve(b, values, relative=1e-11)
        assert found.converged and found.setup_seconds > solver.setup_seconds
        assert abs(found.x - expected).max() < SOLVED * abs(expected).max()
        counts.append(found.iterations)
    # the same cycle up to the order of sums
    assert max(counts) == min(counts) <= 40, counts


def test_iterations_do_not_depend_on_the_mesh() -> None:
    counts = []
    for n in (8, 16, 32):
        V = box("triangle", n).space("P", 2)
        solver = multigrid.TwoLevels(V, with_terms, devices=DEVICES[:2], fixed=at_the_right, all_devices=True)
        counts.append(solver.solve(np.ones(V.size), relative=1e-8).iterations)
    # a cycle of smoothed aggregation, instead of a solve on the coarse level
    assert max(counts) <= 14, counts


def by_elimination(matrix, b, fixed, values):
    kept = matrix.copy()
    kept[fixed] = np.eye(len(b))[fixed]
    is_fixed = np.isin(np.arange(len(b)), fixed)
    return np.linalg.solve(kept, np.where(is_fixed, values, b))


@pytest.mark.parametrize("method", ["cg", "gmres"])
@pytest.mark.parametrize("overlap", [True, False])
def test_chebyshev_takes_the_iterations_of_one_device(method, overlap) -> None:
    bilinear, u, names, given, n = poisson()
    form, b = ufl.action(bilinear, u), np.random.default_rng(4).standard_normal(n)
    matrix = dense(form, names, given, n)
    fixed, values = np.arange(5, n, 40), np.arange(n) / n
    expected, found = by_elimination(matrix, b, fixed, values), []
    for parts in (1, 2, 3):
        division = kingpost.jit(form, devices=DEVICES[:parts], names=names)
        division = division.divide(all_devices=True, overlap=overlap, u=np.zeros(n), **given)
        of = {"fixed": fixed, "values": values, "diagonal": matrix.diagonal(), "method": method, "relative": 1e-12}
        found.append(division.solve(b, preconditioner="chebyshev", **of))
        assert found[-1].converged and found[-1].setup_seconds > 0.0
        # a residual of 1e-12 times the condition, below 1e3
        assert abs(found[-1].x - expected).max() <= 1e-9 * abs(expected).max()
    counts = [one.iterations for one in found]
    assert max(counts) - min(counts) <= 1, counts  # sums in another order, down to rounding
    plain, jacobi = division.solve(b, **of), division.solve(b, preconditioner="jacobi", **of)
    assert plain.setup_seconds == 0.0 and abs(plain.iterations - jacobi.iterations) <= 1
    assert 2 * max(counts) < plain.iterations, (counts, plain)


def test_systems_in_single_precision_take_a_coarse_space() -> None:
    V = box("triangle", 8).space("P", 2)
    coarse = V.mesh.space("P", 1)
    u, v = V.function("float32"), ufl.TestFunction(V.on())
    form = ufl.inner(ufl.grad(u.on()), ufl.grad(v)) * ufl.dx + u.on() * v * ufl.dx
    P = multigrid.interpolation(coarse, V)
    level = kingpost.CoarseSpace(meshes.matrix(V.mesh, mass_and_stiffness(coarse)).assemble(), P)
    diagonal = meshes.diagonal(V.mesh, mass_and_stiffness(V))
    d = np.zeros(V.size)
    diagonal(d)
    b = np.random.default_rng(5).standard_normal(V.size)
    division = meshes.action(V.mesh, form, scalar="f32", devices=DEVICES).divide(all_devices=True)
    found = division.solve(b, diagonal=d, preconditioner=level, relative=1e-5)
    A = meshes.matrix(V.mesh, mass_and_stiffness(V)).assemble()
    assert found.converged and found.iterations < 12, found
    assert abs(A @ found.x - b).max() < 1e-3 * abs(b).max()
    assert "of 81 unknowns for 289" in repr(level)


def mass_and_stiffness(V: meshes.Space) -> ufl.Form:
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + u * v * ufl.dx


def test_corrections_are_those_of_the_coarse_space() -> None:
    """A right-hand side whose solution is in the coarse space, which the coarse level alone finds."""
    V = box("triangle", 6).space("P", 2)
    coarse = V.mesh.space("P", 1)
    A, P = meshes.matrix(V.mesh, mass_and_stiffness(V)).assemble(), multigrid.interpolation(coarse, V)
    assert abs(P @ np.ones(coarse.size) - 1).max() < 1e-14
    of_coarse = meshes.matrix(V.mesh, mass_and_stiffness(coarse)).assemble()
    assert abs((P.T @ A @ P - of_coarse)).max() < 1e-13
    exact = P @ np.random.default_rng(6).standard_normal(coarse.size)
    u = V.function()
    form = ufl.action(mass_and_stiffness(V), u.on())
    division = meshes.action(V.mesh, form, devices=DEVICES).divide(all_devices=True)
    level = kingpost.CoarseSpace(of_coarse, P, steps=2)
    found = division.solve(A @ exact, diagonal=A.diagonal(), preconditioner=level, relative=1e-11)
    assert found.converged and abs(found.x - exact).max() < SOLVED * abs(exact).max()
    # a level is kept for the next solve, also after one with another; other prescribed unknowns need another one
    division.solve(A @ exact, diagonal=A.diagonal(), preconditioner="chebyshev")
    again = division.solve(A @ exact, diagonal=A.diagonal(), preconditioner=level, relative=1e-11)
    assert again.iterations == found.iterations and abs(again.x - exact).max() < SOLVED * abs(exact).max()
    with pytest.raises(kingpost.ArgumentError, match="no positive eigenvalue"):
        division.solve(A @ exact, diagonal=-A.diagonal(), preconditioner=level)
    for fixed in (np.arange(3), np.zeros(0, int)):
        again = division.solve(A @ exact, fixed=fixed, values=exact, diagonal=A.diagonal(), preconditioner=level, relative=1e-11)
        assert again.converged and abs(again.x - exact).max() < SOLVED * abs(exact).max()


def test_what_does_not_fit_is_refused() -> None:
    V = box("triangle", 4).space("P", 2)
    coarse = V.mesh.space("P", 1)
    A, P = meshes.matrix(V.mesh, mass_and_stiffness(coarse)).assemble(), multigrid.interpolation(coarse, V)
    level = kingpost.CoarseSpace(A, P)
    u = V.function()
    division = meshes.action(V.mesh, ufl.action(mass_and_stiffness(V), u.on()), devices=DEVICES[:2]).divide(all_devices=True)
    b = np.ones(V.size)
    twice = kingpost.Csr(np.array([0, 2], "i4"), np.array([0, 0], "i4"), np.ones(2))
    one = kingpost.Csr(np.array([0, 1], "i4"), np.array([0], "i4"), np.ones(1))
    calls = [
        (kingpost.ArgumentError, "needed none, jacobi, chebyshev, or a `kingpost.CoarseSpace`", lambda: division.solve(b, diagonal=b, preconditioner="amg")),
        (kingpost.ArgumentError, 'and `diagonal` is missing.*matrix="diagonal"', lambda: division.solve(b, preconditioner="chebyshev")),
        (kingpost.ArgumentError, "and `diagonal` is missing", lambda: division.solve(b, preconditioner=level)),
        (kingpost.ArgumentError, "leave one of both out", lambda: division.solve(b, diagonal=b, preconditioner="none")),
        (kingpost.ShapeError, "the interpolation has 1 rows; needed one for each of the 81", lambda: division.solve(b, diagonal=b, preconditioner=kingpost.CoarseSpace(one, one))),
        (kingpost.ArgumentError, r"two entries \(0, 0\)", lambda: kingpost.CoarseSpace(twice, P[:, :1]).of_parts(division, np.zeros(V.size, bool))),
        (kingpost.ShapeError, "the interpolation has column 24; needed 0 to 23", lambda: kingpost.CoarseSpace(A[:24, :24], P)),
        (kingpost.ArgumentError, "`components` is 2; needed a divisor", lambda: kingpost.CoarseSpace(A, P, components=2)),
        (kingpost.ShapeError, r"`points` has the shape \[2, 2\]; needed \[25, dim\]", lambda: kingpost.CoarseSpace(A, P, points=np.zeros((2, 2)))),
        (kingpost.ArgumentError, "`ratio` is 1; needed more than 1", lambda: kingpost.CoarseSpace(A, P, ratio=1)),
        (kingpost.ArgumentError, "infinite or NaN", lambda: kingpost.CoarseSpace(np.nan * A, P)),
        (kingpost.ArgumentError, "is of degree 1; needed more", lambda: multigrid.TwoLevels(coarse, mass_and_stiffness, devices=["c"])),
        (kingpost.ArgumentError, "no positive eigenvalue", lambda: division.solve(b, diagonal=-b, preconditioner=level)),
    ]
    for kind, message, call in calls:
        with pytest.raises(kind, match=message):
            call()
