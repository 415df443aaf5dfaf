"""Matrices, types, and the choice of devices of forms on several devices."""

from __future__ import annotations

import numpy as np
import kingpost
import pytest
import ufl
from basix.ufl import element
from kingpost.choice import ExchangeCosts, Work, choose, exchange_costs, iteration_seconds
from test_division import DEVICES, dense, poisson
from test_operator import square

# sums of some hundred terms in f64, in another order
EQUAL = 1e-13


def matrix_of(csr, shape=None):
    from scipy.sparse import csr_matrix

    return csr_matrix((csr.data, csr.indices, csr.indptr), shape=shape).toarray()


@pytest.mark.parametrize("owners", ["bisect", "scattered"])
def test_matrices_are_those_of_one_device(owners):
    bilinear, u, names, given, n = poisson()
    del names[u]
    if owners == "scattered":
        owners = np.arange(len(given["x_dofs"])) % 3
    one = kingpost.jit(bilinear, "c", names=names, matrix="sparse").assemble(**given)
    op = kingpost.jit(bilinear, devices=DEVICES, names=names, matrix="sparse")
    found = op.assemble(owners, all_devices=True, **given)
    assert np.array_equal(found.indptr, one.indptr) and np.array_equal(found.indices, one.indices)
    assert np.abs(found.data - one.data).max() <= EQUAL * np.abs(one.data).max()
    division = op.divide(owners, all_devices=True, **given)
    # with other values of a function, which are kept
    k = 1 + given["k"]
    changed = matrix_of(kingpost.jit(bilinear, "c", names=names, matrix="sparse").assemble(**given | {"k": k}))
    assert np.abs(matrix_of(division.assemble(k=k)) - changed).max() <= EQUAL * np.abs(changed).max()
    x = np.random.default_rng(1).standard_normal(n)
    assert np.abs(division.product(x) - changed @ x).max() <= EQUAL * np.abs(changed @ x).max() * 10


@pytest.mark.parametrize("preconditioner, method", [("jacobi", "gmres"), ("block-jacobi", "cg"), ("amg", "cg"), ("none", "cg")])
def test_systems_of_matrices_are_solved_as_by_elimination(preconditioner, method):
    bilinear, u, names, given, n = poisson()
    matrix = dense(ufl.action(bilinear, u), names, given, n)
    del names[u]
    division = kingpost.jit(bilinear, devices=DEVICES, names=names, matrix="sparse").divide(all_devices=True, **given)
    b = np.random.default_rng(4).standard_normal(n)
    fixed = np.arange(5, n, 40)
    values = np.where(np.isin(np.arange(n), fixed), np.arange(n) / n, 0.0)
    kept = matrix.copy()
    kept[fixed] = np.eye(n)[fixed]
    expected = np.linalg.solve(kept, np.where(np.isin(np.arange(n), fixed), values, b))
    for _ in range(2):  # what is on the devices is as before
        found = division.solve(b, fixed=fixed, values=values, method=method, preconditioner=preconditioner, relative=1e-13)
        assert found.converged and found.iterations > 3, found
        # a residual of 1e-13 times the condition, below 1e3
        assert np.abs(found.x - expected).max() <= 1e-10 * np.abs(expected).max()
    assert np.abs(matrix_of(division.assemble()) - matrix).max() <= EQUAL * np.abs(matrix).max()


def test_matrices_of_two_spaces_and_of_facets_are_assembled():
    x, cells = square(5)
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    vectors = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1, shape=(2,)))
    constants = ufl.FunctionSpace(mesh, element("DG", "triangle", 0))
    v, q = ufl.TestFunction(vectors), ufl.TrialFunction(constants)
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells, "dp0_dofs": np.arange(len(cells), dtype="i4")[:, None]}
    divergence = q * ufl.div(v) * ufl.dx
    one = kingpost.jit(divergence, "c", matrix="sparse").assemble(**given)
    division = kingpost.jit(divergence, devices=DEVICES, matrix="sparse").divide(all_devices=True, **given)
    found, shape = division.assemble(), (2 * len(x), len(cells))
    assert np.abs(matrix_of(found, shape) - matrix_of(one, shape)).max() <= EQUAL * np.abs(one.data).max()
    with pytest.raises(kingpost.FormError, match="rows and columns of two spaces"):
        division.solve(np.zeros((len(x), 2)))
    # jumps read the cells on both sides of a cut
    p, w = ufl.TrialFunction(constants), ufl.TestFunction(constants)
    jumps = p * w * ufl.dx + ufl.jump(p) * ufl.jump(w) * ufl.dS
    pairs = [(a, b) for a in range(len(cells)) for b in range(a) if len(set(cells[a]) & set(cells[b])) == 2]
    opposite = lambda a, b: next(f for f in range(3) if cells[a][f] not in cells[b])  # noqa: E731
    facets = {"facet_cells": np.array(pairs, "i4"), "local_facets": np.array([(opposite(a, b), opposite(b, a)) for a, b in pairs], "i4")}
    one = kingpost.jit(jumps, "c", matrix="sparse")
    known = {a.name for a in one.arguments}
    facets["facet_states"] = np.zeros(len(pairs), "u1")
    given = {"x": x, "x_dofs": cells, "dp0_dofs": given["dp0_dofs"]}
    given["interior_facets"] = {name: value for name, value in facets.items() if name in known}
    expected = matrix_of(one.assemble(**given))
    found = kingpost.jit(jumps, devices=DEVICES, matrix="sparse").assemble(np.arange(len(cells)) % 3, **given)
    assert np.abs(matrix_of(found) - expected).max() <= EQUAL * np.abs(expected).max()


@pytest.mark.parametrize("scalar", ["f32", "c128", "c64"])
def test_forms_of_other_types_add_up_to_the_whole(scalar):
    x, cells = square(7)
    dtype = {"f32": "f4", "c128": "c16", "c64": "c8"}[scalar]
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1))
    u, v, k = ufl.Coefficient(space), ufl.TestFunction(space), ufl.Constant(mesh)
    bilinear = (ufl.inner(ufl.grad(ufl.TrialFunction(space)), ufl.grad(v)) + k * ufl.inner(ufl.TrialFunction(space), v)) * ufl.dx
    numbers = np.random.default_rng(2).standard_normal((2, len(x)))
    values = (numbers[0] + (1j * numbers[1] if dtype[0] == "c" else 0)).astype(dtype)
    real = "f4" if scalar in ("f32", "c64") else "f8"
    given = {"x": x.astype(real), "x_dofs": cells, "p1_dofs": cells, "k": 2.0 - (0.5j if dtype[0] == "c" else 0.0)}
    tolerance = 1e-5 if real == "f4" else EQUAL  # rounding of some ten terms
    how = {"names": {u: "u", k: "k"}, "scalar": scalar}
    action = ufl.action(bilinear, u)
    one, found = np.zeros(len(x), dtype), np.zeros(len(x), dtype)
    kingpost.jit(action, "c", **how)(one, u=values, **given)
    division = kingpost.jit(action, devices=DEVICES, **how).divide(all_devices=True, u=values, **given)
    division(found)
    assert np.abs(one - found).max() <= tolerance * np.abs(one).max()
    how["names"] = {k: "k"}
    one = kingpost.jit(bilinear, "c", matrix="sparse", **how).assemble(**given)
    found = kingpost.jit(bilinear, devices=DEVICES, matrix="sparse", **how).assemble(all_devices=True, **given)
    assert found.data.dtype == dtype and np.abs(found.data - one.data).max() <= tolerance * np.abs(one.data).max()
    if dtype[0] == "c":
        with pytest.raises(kingpost.FormError, match="several devices solve systems of real forms"):
            division.solve(np.zeros(len(x)))
        return
    b = np.random.default_rng(3).standard_normal(len(x)).astype("f4")
    solution = division.solve(b, relative=1e-5)
    assert solution.converged and solution.x.dtype == "float32", solution
    matrix = matrix_of(one).astype("f8")
    # a residual of 1e-5 times the condition, below 100, and rounding of products
    expected = np.linalg.solve(matrix, b.astype("f8"))
    assert np.abs(solution.x - expected).max() <= 1e-3 * np.abs(expected).max()
    with pytest.raises(kingpost.FormError, match="the matrix is of float32; devices multiply by f64"):
        kingpost.jit(bilinear, devices=DEVICES, matrix="sparse", **how).divide(**given).product(b)


def test_forms_by_name_are_divided():
    x, cells = square(6)
    n = len(x)
    u = np.random.default_rng(5).standard_normal(n)
    one = kingpost.jit("laplace", "c")
    arrays = [a for a in one.arguments if a.kind == "array" and not a.is_written]
    given = {a.name: cells if a.dtype == "i32" else u if a.name == "u" else x for a in arrays}
    expected, found = np.zeros(n), np.zeros(n)
    one(expected, **given)
    kingpost.jit("laplace", devices=DEVICES)(found, all_devices=True, **given)
    assert np.abs(expected - found).max() <= EQUAL * np.abs(expected).max()


def test_forms_share_a_division():
    bilinear, u, names, given, n = poisson()
    b = np.random.default_rng(6).standard_normal(n)
    stiffness = kingpost.jit(ufl.action(bilinear, u), devices=DEVICES, names=names)
    division = stiffness.divide(all_devices=True, u=b, **given)
    v = ufl.TestFunction(u.ufl_function_space())
    other = {u: "f"}
    load = kingpost.jit(u * v * ufl.dx + u * v * ufl.ds, devices=DEVICES, names=other).divide(like=division, f=b)
    assert np.array_equal(load.owners, division.owners) and "like" in str(load.choice)
    one, found = np.zeros(n), np.zeros(n)
    of_mesh = {name: value for name, value in given.items() if name not in ("k", "p1_dofs")}
    kingpost.jit(u * v * ufl.dx + u * v * ufl.ds, "c", names=other)(one, f=b, **of_mesh)
    load(found)
    assert np.abs(one - found).max() <= EQUAL * np.abs(one).max()
    # maps and positions are those of the other division, not copies
    shared, mine = ({id(a) for local in one._locals.values() for made in local._known.values() for _, a in made} for one in (division, load))
    assert mine <= shared
    # a functional with the same arrays, whose parts have other cells
    total, whole = np.zeros(1), np.zeros(1)
    kingpost.jit(u**2 * ufl.dx, devices=DEVICES, names=other).divide(like=division, f=b)(total)
    kingpost.jit(u**2 * ufl.dx, "c", names=other)(whole, f=b, **{k: of_mesh[k] for k in ("x", "x_dofs", "p2_dofs")})
    assert abs(total - whole)[0] <= EQUAL * whole[0]
    fewer = kingpost.jit(u * v * ufl.dx, devices=["c"], names=other)
    with pytest.raises(kingpost.ArgumentError, match="needed the same"):
        fewer.divide(like=division, f=b)
    with pytest.raises(kingpost.ArgumentError, match="`like` is a int"):
        fewer.divide(like=3, f=b)


def test_forms_share_a_division_whose_results_are_of_another_space():
    """The map of P1 is that of the vertices: a part numbers what it owns first, but where P2 is the result."""
    bilinear, u, names, given, n = poisson()
    division = kingpost.jit(ufl.action(bilinear, u), devices=DEVICES, names=names).divide(all_devices=True, u=np.zeros(n), **given)
    (p1,) = {one.ufl_function_space() for one in names if one is not u}
    p, q = ufl.TrialFunction(p1), ufl.TestFunction(p1)
    mass, given = p * q * ufl.dx, {name: given[name] for name in ("x", "x_dofs", "p1_dofs")}
    one = kingpost.jit(mass, "c", matrix="sparse").assemble(**given)
    found = kingpost.jit(mass, devices=DEVICES, matrix="sparse").divide(like=division, **given).assemble()
    assert np.abs(found.data - one.data).max() <= EQUAL * np.abs(one.data).max()


def test_fewer_devices_are_taken_where_more_take_longer():
    costs = ExchangeCosts(launch=1e-6, sum=20e-6, latency=20e-6, byte=1e-11)
    # one device takes 1 ms, all of it hidden but the sums
    large = choose(Work(4, alone=255e-6, launches=5, together=255e-6, inner=0.9, sent=1e6), costs)
    assert (large.taken, list(large.seconds)) == (4, [1, 2, 3, 4])
    assert large.seconds[4] == pytest.approx(299e-6) and large.seconds[1] == pytest.approx(1.005e-3)
    small = choose(Work(4, alone=10e-6, launches=5, together=10e-6, inner=0.8, sent=1e4), costs)
    assert small.taken == 1 and small.seconds[2] == pytest.approx(15e-6 + 4e-6 + 40e-6 + 20.1e-6 - 8e-6)
    assert str(small).startswith("1 of 4 devices: an iteration takes longer on more; `all_devices=True` takes all (25 µs on 1")
    # devices that are one processor
    same = iteration_seconds(Work(2, 1e-3, 0, together=2e-3, inner=1.0, sent=8), costs)
    assert same[2] > same[1] == pytest.approx(2e-3)
    # of a functional nothing is exchanged, and launches are not divided
    assert iteration_seconds(Work(2, 1e-3, 4, 1e-3, 1.0, 0), costs)[2] == pytest.approx(1e-3)


def test_divisions_say_how_many_devices_they_took(monkeypatch):
    bilinear, u, names, given, n = poisson(2)
    op = kingpost.jit(ufl.action(bilinear, u), devices=DEVICES, names=names)
    b = np.random.default_rng(7).standard_normal(n)
    one, found = np.zeros(n), np.zeros(n)
    kingpost.jit(ufl.action(bilinear, u), "c", names=names)(one, u=b, **given)
    costs = exchange_costs(tuple(DEVICES))
    assert min(costs.launch, costs.byte) > 0 and min(costs.sum, costs.latency) >= 0 and max(costs.sum, costs.latency) < 1
    # so slow are none
    monkeypatch.setattr("kingpost.divided.exchange_costs", lambda devices: ExchangeCosts(1e-6, 1.0, 1.0, 1.0))
    division = op.divide(u=b, **given)
    assert division.choice.taken == 1 and division.choice.given == 3, division.choice
    assert set(division.choice.seconds) == {1, 2, 3} and len(np.unique(division.owners)) == 1
    assert "1 of 3 devices: an iteration takes longer on more" in repr(division)
    division(found)
    assert np.abs(one - found).max() <= EQUAL * np.abs(one).max()
    everything = op.divide(all_devices=True, u=b, **given)
    assert everything.choice.taken == 3 and len(np.unique(everything.owners)) == 3
    assert "as `all_devices` says" in repr(everything)
    assert "`owners`" in str(op.divide(np.arange(8) % 3, u=b, **given).choice)
    assert "no others" in str(kingpost.jit(ufl.action(bilinear, u), devices=["c"], names=names).divide(u=b, **given).choice)


def test_what_does_not_fit_a_matrix_is_refused():
    bilinear, u, names, given, n = poisson(3)
    del names[u]
    op = kingpost.jit(bilinear, devices=["c", "c"], names=names, matrix="sparse")
    with pytest.raises(kingpost.FormError, match="the rows of a matrix are whole"):
        op.divide(overlap=False, **given)
    division = op.divide(all_devices=True, **given)
    b = np.ones(n)
    calls = [
        (kingpost.FormError, "`assemble` returns it", lambda: division(b)),
        (kingpost.ArgumentError, "bicgstab.*needed `cg` or `gmres`", lambda: division.solve(b, method="bicgstab")),
        (kingpost.ArgumentError, "chebyshev.*on several devices", lambda: division.solve(b, preconditioner="chebyshev")),
        (kingpost.ArgumentError, "unknown preconditioner `ilu`", lambda: division.solve(b, preconditioner="ilu")),
        (kingpost.ArgumentError, "`components` is 48|`components` is", lambda: division.solve(b, components=n + 1)),
        (kingpost.ShapeError, r"`points` has the shape \[2, 2\]", lambda: division.solve(b, points=np.zeros((2, 2)))),
        (kingpost.ShapeError, r"`b` has the shape \[2\]", lambda: division.solve(b[:2])),
        (kingpost.ShapeError, r"`x` has the shape \[2\]", lambda: division.product(b[:2])),
        (kingpost.UnknownArgument, "`w` is no function", lambda: division.assemble(w=b)),
    ]
    for kind, message, call in calls:
        with pytest.raises(kind, match=message):
            call()
    action = kingpost.jit(ufl.action(bilinear, u), devices=["c"], names=names | {u: "u"})
    with pytest.raises(kingpost.FormError, match="has no sparse matrix"):
        action.assemble(u=b, **given)
