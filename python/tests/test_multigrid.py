"""Refinement of meshes, interpolation between them, and multigrid: against direct solves, with iterations that meshes do
not change."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("basix.ufl")
pytest.importorskip("scipy")

import basix.ufl
import ufl
from scipy.sparse.linalg import spsolve

import kingpost
from conftest import LONG
from kingpost import meshes, multigrid
from kingpost.meshes import Cells, Mesh
from kingpost.multigrid.transfer import Transfer

DATA = Path(__file__).resolve().parents[2] / "crates" / "fem" / "tests" / "data"
KINDS = ["interval", "triangle", "tetrahedron", "quadrilateral", "hexahedron"]
# residuals end at 1e-11 of the right-hand side, with matrices of conditions up to 1e3
SOLVED = 1e-8
# interpolated polynomials: sums of tens of terms of the order of 1
EQUAL = 1e-12


def box(kind: str, n: int, moved: float = 0.2) -> Mesh:
    """The unit square or cube in n parts along each side, whose inner vertices are moved by a part of a side, with the
    facets where x is 0 in group 7, and the first half of the cells in group 3."""
    dim = {"interval": 1, "triangle": 2, "quadrilateral": 2}.get(kind, 3)
    grid = np.meshgrid(*[np.arange(n + 1)] * dim, indexing="ij")
    x = np.stack([axis.ravel() for axis in grid], axis=1) / n
    inner = ((x > 0) & (x < 1)).all(axis=1)
    x[inner] += moved / n * np.random.default_rng(5).uniform(-1, 1, (inner.sum(), dim))
    at = np.stack([axis.ravel() for axis in np.meshgrid(*[np.arange(n)] * dim, indexing="ij")], axis=1)
    number = lambda p: np.ravel_multi_index(tuple(p.T), (n + 1,) * dim)  # noqa: E731
    if kind in ("quadrilateral", "hexahedron"):
        corners = np.array([[bits >> axis & 1 for axis in range(dim)] for bits in range(2**dim)])
        cells = np.stack([number(at + corner) for corner in corners], axis=1)
    else:
        paths = [[at] for _ in itertools.permutations(range(dim))]
        for path, order in zip(paths, itertools.permutations(range(dim))):
            path.extend(at + np.eye(dim, dtype=int)[list(order[: k + 1])].sum(axis=0) for k in range(dim))
        cells = np.stack([np.stack([number(p) for p in path], axis=1) for path in paths], axis=1).reshape(-1, dim + 1)
    whole = Mesh(x, [Cells(kind, cells)])
    facets = np.concatenate([whole.cells[kind].nodes[:, local] for local in whole.topology(kind)[dim - 1]])
    left = np.unique(np.sort(facets[(x[facets, 0] == 0).all(axis=1)], axis=1), axis=0)
    if kind == "hexahedron":  # the corners of a square as basix has them
        left = np.unique(facets[(x[facets, 0] == 0).all(axis=1)], axis=0)
    padded = np.pad(left, ((0, 0), (0, 4 - left.shape[1])), constant_values=-1)
    first = {3: np.arange(len(cells) // 2)}
    return Mesh(x, [Cells(kind, cells, first)], facets=padded, facet_groups={7: np.arange(len(padded))})


def poisson(V: meshes.Space) -> ufl.Form:
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    x = ufl.SpatialCoordinate(V.mesh.domain())
    return (1 + 10 * x[0] ** 2) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx


def elasticity(V: meshes.Space) -> ufl.Form:
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    strain = lambda w: ufl.sym(ufl.grad(w))  # noqa: E731
    return (2 * ufl.inner(strain(u), strain(v)) + ufl.div(u) * ufl.div(v)) * ufl.dx


def direct(V: meshes.Space, form: ufl.Form, b: np.ndarray, fixed: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The solution by SciPy's direct solver of the assembled matrix; ``fixed`` says which unknowns have their values."""
    A, fixed = meshes.matrix(V.mesh, form).assemble(), fixed.reshape(-1)
    x = np.where(fixed, values.reshape(-1), 0.0)
    free = np.flatnonzero(~fixed)
    x[free] = spsolve(A[free][:, free].tocsc(), (b.reshape(-1) - A @ x)[free])
    return x.reshape(V.shape)


def volume(mesh: Mesh, measure: ufl.Measure) -> float:
    return meshes.action(mesh, lambda kind: mesh.constant(1.0).on(kind) * measure).value()


@pytest.mark.parametrize("kind", KINDS)
def test_refined_cells_fill_their_parents_and_keep_groups(kind: str) -> None:
    mesh = box(kind, 3)
    fine = mesh.refined(2)
    assert fine.parent is not None and fine.parent.parent is mesh
    dim = mesh.tdim
    assert len(fine.cells[kind]) == 4**dim * len(mesh.cells[kind])
    # shared edges and faces are divided once: Euler's formula of a simply connected body
    counts = [fine.n_entities(k) for k in range(dim + 1)]
    assert sum((-1) ** k * n for k, n in enumerate(counts)) == 1
    for measure in (ufl.dx, ufl.dx(3), ufl.ds, ufl.ds(7)):
        if kind == "interval" and measure.integral_type() != "cell":
            continue
        assert abs(volume(fine, measure) - volume(mesh, measure)) < EQUAL * 10, measure
    # a child of a cell lies in it: its volume is that of the parent by a power of two, in simplices
    V = fine.space("DG", 0)
    v = ufl.TestFunction(V.on())
    sizes = meshes.action(fine, v * ufl.dx).assemble()[V.dofs[kind][:, 0]]
    assert (sizes > 0).all()
    W = mesh.space("DG", 0)
    of_parents = meshes.action(mesh, ufl.TestFunction(W.on()) * ufl.dx).assemble()[W.dofs[kind][:, 0]]
    assert np.allclose(sizes.reshape(len(of_parents), -1).sum(axis=1), of_parents, rtol=EQUAL)


def test_tetrahedra_keep_their_shapes() -> None:
    """Bey's rule leads to at most three shapes of a cell."""
    corners = np.array([[0, 0, 0], [1, 0.1, 0], [0.2, 0.9, 0.1], [0.3, 0.2, 1.1]])
    fine = Mesh(corners, [Cells("tetrahedron", np.array([[0, 1, 2, 3]]))]).refined(4)
    x = fine.positions[fine.cells["tetrahedron"].nodes]
    lengths = np.sort([np.linalg.norm(x[:, a] - x[:, b], axis=1) for a, b in itertools.combinations(range(4), 2)], axis=0)
    shapes = np.unique(np.round((lengths / lengths.max(axis=0)).T, 8), axis=0)
    assert len(shapes) <= 3


def test_curved_cells_are_divided_in_their_reference_cell() -> None:
    sphere = meshes.read(DATA / "sphere_2.msh")
    fine = sphere.refined(1)
    assert fine.degree == 2
    exact = ufl.dx(degree=20)
    assert abs(volume(fine, exact) - volume(sphere, exact)) < 1e-9 * volume(sphere, exact)  # of a root, by quadrature


@pytest.mark.parametrize("order", [1, 2])
def test_prisms_beside_hexahedra_are_refined(order: int) -> None:
    """Faces that both kinds share are divided once, and groups are kept."""
    mesh = without_pyramids(order)
    fine = mesh.refined(1)
    assert {kind: len(of) for kind, of in fine.cells.items()} == {kind: 8 * len(of) for kind, of in mesh.cells.items()}
    counts = [[of.n_entities(k) for k in range(4)] for of in (mesh, fine)]
    # Euler's formula, whatever the mesh without its other cells looks like
    assert len({sum((-1) ** k * n for k, n in enumerate(of)) for of in counts}) == 1
    for measure in (ufl.dx, ufl.ds, ufl.ds(3)):
        assert abs(volume(fine, measure) - volume(mesh, measure)) < EQUAL * 10, measure


@pytest.mark.parametrize("degree", [1, 2])
def test_multigrid_on_four_kinds_of_cells(degree: int) -> None:
    mesh = meshes.read(DATA / "solids_1.msh")
    V = mesh.refined(2 if degree == 1 else 1).space("P", degree)

    def form(V: meshes.Space):
        def of(kind: str) -> ufl.Form:
            u, v = ufl.TrialFunction(V.on(kind)), ufl.TestFunction(V.on(kind))
            # UFL estimates degree 0 for P1 on prisms, and one point leaves functions without energy
            return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx(degree=2 * degree)

        return of

    solver = multigrid.Multigrid(V, form, fixed=lambda V: V.dofs_on(3))
    b, fixed = np.random.default_rng(2).standard_normal(V.size), np.zeros(V.size, bool)
    fixed[V.dofs_on(3)] = True
    found = solver.solve(b, relative=1e-11)
    assert abs(found.x - direct(V, form(V), b, fixed, np.zeros(V.size))).max() < SOLVED * abs(found.x).max()
    assert solver.solve(b, relative=1e-8).iterations <= 8


def without_pyramids(order: int) -> Mesh:
    """The prisms and hexahedra of a box, with the facets in which it has an inlet as group 3."""
    solids = meshes.read(DATA / f"solids_{order}.msh")
    kept = [of for of in solids.cells.values() if of.kind in ("prism", "hexahedron")]
    inlet = solids._given_facets[solids._given_groups[3]]
    return Mesh(solids.positions, kept, facets=inlet, facet_groups={3: np.arange(len(inlet))})


def pyramids(n: int) -> Mesh:
    """The unit cube in n parts along each side, each of them six pyramids around its middle, with inner vertices moved."""
    cubes = box("hexahedron", n)
    nodes, x = cubes.cells["hexahedron"].nodes, cubes.positions
    apex = len(x) + np.arange(len(nodes))
    faces = [nodes[:, local] for local in cubes.topology("hexahedron")[2]]
    cells = np.concatenate([np.column_stack([face, apex]) for face in faces])
    whole = np.concatenate([x, x[nodes].mean(axis=1)])
    return Mesh(whole, [Cells("pyramid", cells, {3: np.arange(6)})], facets=cubes._given_facets, facet_groups={7: [0, 1]})


def test_pyramids_are_divided_into_pyramids_and_tetrahedra() -> None:
    """Volumes, areas and groups are kept, and faces fit each other and those of other kinds."""
    for mesh, groups in ((pyramids(2), (ufl.dx(3), ufl.ds(7))), (meshes.read(DATA / "solids_1.msh"), (ufl.dx(2), ufl.ds(3)))):
        fine = mesh.refined(2 if len(mesh.kinds) == 1 else 1)
        if len(mesh.kinds) == 1:
            n = len(mesh.cells["pyramid"])
            assert {kind: len(of) for kind, of in fine.cells.items()} == {"pyramid": 36 * n, "tetrahedron": 56 * n}
        counts = [[of.n_entities(k) for k in range(4)] for of in (mesh, fine)]
        assert len({sum((-1) ** k * n for k, n in enumerate(of)) for of in counts}) == 1
        for measure in (ufl.dx(degree=2), ufl.ds(degree=2), *groups):
            assert abs(volume(fine, measure) - volume(mesh, measure)) < EQUAL * 10, measure
    with pytest.raises(kingpost.MeshError, match="`pyramid` of degree 2: needed straight ones to refine"):
        meshes.read(DATA / "solids_2.msh").refined(1)
    with pytest.raises(kingpost.MeshError, match="times: found -1"):
        box("triangle", 1).refined(-1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_transfers_keep_polynomials_and_are_transposes(kind: str, degree: int) -> None:
    mesh = box(kind, 2, 0.0)
    rng = np.random.default_rng(degree)
    for fine_of, fine_degree in ((mesh.refined(1), degree), (mesh, degree + 1)):
        V, W = mesh.space("P", degree, shape=(2,)), fine_of.space("P", fine_degree, shape=(2,))
        values = lambda x: np.stack([x.sum(axis=0) ** degree, x[0] ** degree - 2.0])  # noqa: E731
        transfer = Transfer(V, W, "c", np.asarray)
        found, everywhere = np.zeros(W.shape), np.ones(W.shape)
        transfer.prolong(V.interpolate(values), found, everywhere)
        assert np.allclose(found, W.interpolate(values), atol=EQUAL * 3**degree)
        e, r = rng.standard_normal(V.shape), rng.standard_normal(W.shape)
        keeps = (rng.random(W.shape) < 0.7).astype(float)
        found, back = np.zeros(W.shape), np.zeros(V.shape)
        transfer.prolong(e, found, keeps)
        transfer.restrict(r, back, keeps)
        assert abs((found * r).sum() - (back * e).sum()) < EQUAL * np.abs(found * r).sum()
        assert not found[keeps == 0].any()


@pytest.mark.parametrize(
    ("kind", "degree"),
    [(kind, degree) for kind in ("triangle", "tetrahedron") for degree in (1, 2, 3, 4) if LONG or kind == "triangle" or degree < 3],
)
def test_iterations_do_not_depend_on_the_mesh(kind: str, degree: int) -> None:
    """At most 10 to 1e-8 on each level, and the solution of a direct solver."""
    coarse = box(kind, 2)
    iterations = []
    for times in range(1, 4 if kind == "triangle" or degree < 3 else 3):
        V = coarse.refined(times).space("P", degree)
        solver = multigrid.Multigrid(V, poisson, fixed=lambda V: V.dofs_on())
        b = np.random.default_rng(times).standard_normal(V.size)
        solution = solver.solve(b, relative=1e-8)
        assert solution.converged
        iterations.append(solution.iterations)
        if V.size > 20_000:
            continue
        fixed = np.zeros(V.size, bool)
        fixed[V.dofs_on()] = True
        expected = direct(V, poisson(V), b, fixed, np.zeros(V.size))
        found = solver.solve(b, relative=1e-11).x
        assert abs(found - expected).max() < SOLVED * abs(expected).max()
    assert max(iterations) <= 10, iterations
    assert max(iterations) - min(iterations) <= 3, iterations


@pytest.mark.parametrize("coarsen", ["mesh", "degree"])
def test_elasticity_with_prescribed_values_in_one_component(coarsen: str) -> None:
    """On both ends of a box, one of which slides; values are not zero."""

    def fixed(V: meshes.Space) -> np.ndarray:
        x = V.interpolate(lambda x: x)[:, 0]
        return np.stack([(x == 0) | (x == 1), x == 0, x == 0], axis=1)

    V = box("tetrahedron", 2).refined(1).space("P", 2, shape=(3,))
    solver = multigrid.Multigrid(V, elasticity, fixed=fixed, coarsen=coarsen)
    b = np.random.default_rng(2).standard_normal(V.shape)
    values = V.interpolate(lambda x: np.stack([0.1 * x[0], 0 * x[0], x[1]]))
    solution = solver.solve(b, values, relative=1e-11)
    expected = direct(V, elasticity(V), b, fixed(V), values)
    assert solution.iterations <= 20
    assert abs(solution.x - expected).max() < SOLVED * abs(expected).max()
    assert np.array_equal(solution.x[fixed(V)], values[fixed(V)])
    assert (len(solver.levels), solver.levels[-1].space.size) == (3, 27)


def test_a_mesh_of_a_file_whose_coarsest_level_is_solved_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kingpost.multigrid.coarsest.DENSE", 10)
    V = box("triangle", 4).refined(1).space("P", 2)
    solver = multigrid.Multigrid(V, poisson, fixed=lambda V: V.dofs_on(7))
    b = np.random.default_rng(2).standard_normal(V.size)
    fixed = np.zeros(V.size, bool)
    fixed[V.dofs_on(7)] = True
    expected = direct(V, poisson(V), b, fixed, np.zeros(V.size))
    assert abs(solver.solve(b, relative=1e-11).x - expected).max() < SOLVED * abs(expected).max()
    with pytest.raises(kingpost.ArgumentError, match="the form is singular on .*, the coarsest level"):
        multigrid.Multigrid(V, poisson)


def test_triangles_and_quadrilaterals_in_one_mesh() -> None:
    whole = box("quadrilateral", 3)
    nodes = whole.cells["quadrilateral"].nodes
    triangles = np.concatenate([nodes[4:, [0, 1, 3]], nodes[4:, [0, 2, 3]]])
    mesh = Mesh(whole.positions, [Cells("quadrilateral", nodes[:4]), Cells("triangle", triangles)])
    V = mesh.refined(2).space(lambda kind: basix.ufl.element("Lagrange", kind, 2))

    def form(V: meshes.Space):
        def of(kind: str) -> ufl.Form:
            u, v = ufl.TrialFunction(V.on(kind)), ufl.TestFunction(V.on(kind))
            return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx

        return of

    solver = multigrid.Multigrid(V, form, fixed=lambda V: V.dofs_on())
    b, fixed = np.random.default_rng(2).standard_normal(V.size), np.zeros(V.size, bool)
    fixed[V.dofs_on()] = True
    found = solver.solve(b, relative=1e-11)
    assert found.iterations <= 12
    assert abs(found.x - direct(V, form(V), b, fixed, np.zeros(V.size))).max() < SOLVED * abs(found.x).max()
    assert solver.solve(b, relative=1e-8, method="gmres").iterations <= 10


@pytest.mark.parametrize("method", ["cg", "gmres"])
def test_a_cycle_preconditions_a_matrix(method: str) -> None:
    V = box("quadrilateral", 4).refined(1).space("Q", 2)
    form = lambda V: poisson(V) + ufl.TrialFunction(V.on()) * ufl.TestFunction(V.on()) * ufl.ds  # noqa: E731
    solver = multigrid.Multigrid(V, form)
    A, b = meshes.matrix(V.mesh, form(V)).assemble(), np.random.default_rng(3).standard_normal(V.size)
    solution = kingpost.solve(A, b, method=method, preconditioner=solver, relative=1e-11)
    assert solution.converged and solution.iterations <= 15
    expected = spsolve(A.tocsc(), b)
    assert abs(solution.x - expected).max() < SOLVED * abs(expected).max()
    # symmetric, as conjugate gradients need it
    r, s = np.random.default_rng(4).standard_normal((2, V.size))
    assert abs(solver(r) @ s - solver(s) @ r) < 1e-12 * np.linalg.norm(solver(r)) * np.linalg.norm(s)


def test_devices_agree() -> None:
    V = box("triangle", 2).refined(2).space("P", 2)
    b = np.random.default_rng(3).standard_normal(V.size)
    found = [
        multigrid.Multigrid(V, poisson, fixed=lambda V: V.dofs_on(), device=device).solve(b, relative=1e-11)
        for device in kingpost.devices()
        if device in ("c", "opencl")
    ]
    for other in found[1:]:
        assert other.iterations == found[0].iterations
        # order of sums in restrictions
        assert abs(other.x - found[0].x).max() < 1e-10 * abs(other.x).max()


def test_what_does_not_fit_is_refused() -> None:
    mesh = box("triangle", 2).refined(1)
    V = mesh.space("P", 1)

    def refused(kind: type[Exception], match: str, space: meshes.Space = V, form=poisson, **options) -> None:
        with pytest.raises(kind, match=match):
            multigrid.Multigrid(space, form, **options)

    refused(kingpost.ArgumentError, "the form is singular on .*, the coarsest level")
    refused(kingpost.ArgumentError, "`coarsen` is 'cells'; needed `mesh` or `degree`", coarsen="cells")
    refused(kingpost.ArgumentError, "`ratio` is 1; needed more than 1", ratio=1.0)
    refused(kingpost.ArgumentError, "`steps` is 0; needed an integer from 1 on", steps=0)
    refused(kingpost.ShapeError, "`fixed` gives the shape", fixed=lambda V: np.zeros(3, bool))
    refused(kingpost.ArgumentError, "`fixed` gives int64 outside", fixed=lambda V: np.array([V.size]))
    refused(kingpost.ArgumentError, "the diagonal of the form is -", form=lambda V: -poisson(V))
    refused(kingpost.MeshError, "needed a continuous Lagrange element", mesh.space("DG", 1))
    refused(kingpost.MeshError, "needed a continuous Lagrange element", mesh.space("N1curl", 1))
    solver = multigrid.Multigrid(V, poisson, fixed=lambda V: V.dofs_on())
    with pytest.raises(kingpost.ArgumentError, match="`method` is 'bicg'; needed one of cg"):
        solver.solve(np.zeros(V.size), method="bicg")
    with pytest.raises(kingpost.ShapeError, match=r"`b` has the shape \[3\]; needed"):
        solver.solve(np.zeros(3))
    with pytest.raises(kingpost.ShapeError, match=r"`values` has the shape \[2\]; needed a number, or"):
        solver.solve(np.zeros(V.size), np.zeros(2))
    with pytest.raises(kingpost.ShapeError, match=r"the residual has the shape \[3\]"):
        solver(np.zeros(3))
    with pytest.raises(kingpost.MeshError, match="transfer: found two meshes"):
        Transfer(box("triangle", 2).space("P", 1), V, "c", np.asarray)
    with pytest.raises(kingpost.MeshError, match="transfer: found 2 and 1 components"):
        Transfer(mesh.space("P", 1, shape=(2,)), V, "c", np.asarray)


VISCOSITY = 0.1


def viscous(V: meshes.Space) -> ufl.Form:
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    return 2 * VISCOSITY * ufl.inner(ufl.sym(ufl.grad(u)), ufl.sym(ufl.grad(v))) * ufl.dx


def divergence(V: meshes.Space, Q: meshes.Space) -> ufl.Form:
    u, q = ufl.TrialFunction(V.on()), ufl.TestFunction(Q.on())
    return -q * ufl.div(u) * ufl.dx


def mass(Q: meshes.Space) -> ufl.Form:
    p, q = ufl.TrialFunction(Q.on()), ufl.TestFunction(Q.on())
    return p * q / VISCOSITY * ufl.dx


def taylor_hood(kind: str, times: int) -> tuple[meshes.Space, meshes.Space]:
    mesh = box(kind, 2).refined(times)
    return mesh.space("P", 2, shape=(mesh.gdim,)), mesh.space("P", 1)


@pytest.mark.parametrize(("kind", "times"), [("triangle", (1, 2, 3)), *([("tetrahedron", (1, 2))] if LONG else [])])
def test_stokes_with_prescribed_velocities_on_a_part_of_the_boundary(kind: str, times: tuple[int, ...]) -> None:
    """Against a direct solver, with as many iterations on each mesh."""
    from scipy.sparse import bmat

    iterations: dict[str, list[int]] = {"minres": [], "gmres": []}
    for n in times:
        V, Q = taylor_hood(kind, n)
        fixed = lambda V: V.dofs_on(7)  # noqa: E731
        solver = multigrid.SaddlePoint(V, Q, viscous, divergence, mass, fixed=fixed)
        rng = np.random.default_rng(n)
        f, g = rng.standard_normal(V.shape), rng.standard_normal(Q.shape)
        values = V.interpolate(lambda x: np.stack([x[1] * (1 - x[1])] * V.block))
        for method, counts in iterations.items():
            found = solver.solve(f, g, values, method=method, relative=1e-8)
            assert found.solution.converged
            counts.append(found.solution.iterations)
        if n > 1:
            continue
        A, B = meshes.matrix(V.mesh, viscous(V)).assemble(), meshes.matrix(V.mesh, divergence(V, Q)).assemble()
        K, right = bmat([[A, B.T], [B, None]]).tocsr(), np.concatenate([f.reshape(-1), g])
        on = np.zeros(V.shape, bool)
        on[fixed(V)] = True
        on = np.concatenate([on.reshape(-1), np.zeros(Q.size, bool)])
        x = np.where(on, np.concatenate([values.reshape(-1), np.zeros(Q.size)]), 0.0)
        x[~on] = spsolve(K[~on][:, ~on].tocsc(), (right - K @ x)[~on])
        for method in iterations:
            found = solver.solve(f, g, values, method=method, relative=1e-12)
            assert abs(found.u.reshape(-1) - x[: V.size * V.block]).max() < SOLVED * abs(x).max()
            assert abs(found.p - x[V.size * V.block :]).max() < SOLVED * abs(x).max()
    assert max(iterations["minres"]) <= 70 and max(iterations["gmres"]) <= 35, iterations
    assert max(iterations["minres"]) <= 1.3 * min(iterations["minres"]), iterations


def test_stokes_in_a_closed_box_has_its_exact_solution() -> None:
    """A quadratic velocity and a linear pressure are found exactly; the pressure up to a constant."""
    V, Q = taylor_hood("triangle", 2)
    x = ufl.SpatialCoordinate(V.mesh.domain())
    velocity = lambda x: np.stack([x[1] ** 2 - x[0] ** 2, 2 * x[0] * x[1]])  # noqa: E731
    # the Laplace operator of it is 0, so that the force is the gradient of the pressure
    force = meshes.action(V.mesh, ufl.inner(ufl.as_vector([3.0, -2.0 + 0 * x[0]]), ufl.TestFunction(V.on())) * ufl.dx).assemble()
    solver = multigrid.SaddlePoint(V, Q, viscous, divergence, mass, fixed=lambda V: V.dofs_on())
    found = solver.solve(force, 0.0, V.interpolate(velocity), relative=1e-12)
    pressure = Q.interpolate(lambda x: 3 * x[0] - 2 * x[1])
    assert found.solution.converged
    assert abs(found.u - V.interpolate(velocity)).max() < SOLVED
    difference = found.p - pressure
    assert abs(difference - difference.mean()).max() < SOLVED * 10


def test_saddle_points_that_do_not_fit_are_refused() -> None:
    V, Q = taylor_hood("triangle", 1)
    with pytest.raises(kingpost.ArgumentError, match="`pressure` is a space on another mesh"):
        multigrid.SaddlePoint(V, taylor_hood("triangle", 1)[1], viscous, divergence, mass)
    solver = multigrid.SaddlePoint(V, Q, viscous, divergence, mass, fixed=lambda V: V.dofs_on(7))
    with pytest.raises(kingpost.ArgumentError, match="`method` is 'cg'; needed `minres` or `gmres`"):
        solver.solve(np.zeros(V.shape), method="cg")
    with pytest.raises(kingpost.ShapeError, match=r"`g` has the shape \[2\]; needed"):
        solver.solve(np.zeros(V.shape), np.zeros(2))


def in_hexahedra(mesh: Mesh) -> Mesh:
    """Each tetrahedron in four hexahedra, as Gmsh's subdivision divides it: vertices have 4 to 24 cells around them."""
    points: dict[tuple[int, ...], int] = {}
    cells = []
    for tetrahedron in mesh.cells["tetrahedron"].nodes.tolist():
        for corner in tetrahedron:
            others = [vertex for vertex in tetrahedron if vertex != corner]
            chosen = [[o for axis, o in enumerate(others) if bits >> axis & 1] for bits in range(8)]
            cells.append([points.setdefault(tuple(sorted([corner, *more])), len(points)) for more in chosen])
    x = np.array([mesh.positions[list(vertices)].mean(axis=0) for vertices in points])
    return Mesh(x, [Cells("hexahedron", np.array(cells))])


@pytest.mark.parametrize("smoother", ["chebyshev", "patches"] if LONG else ["patches"])
@pytest.mark.parametrize("degree", [3, 4] if LONG else [3])
def test_hexahedra_that_no_grid_has(smoother: str, degree: int) -> None:
    """At most 12 iterations to 1e-8, whatever the number of cells around a vertex."""
    coarse, iterations = in_hexahedra(box("tetrahedron", 1)), []
    for times in (0, 1):
        V = coarse.refined(times).space("Q", degree)
        solver = multigrid.Multigrid(V, poisson, fixed=lambda V: V.dofs_on(), smoother=smoother)
        b = np.random.default_rng(times).standard_normal(V.size)
        iterations.append(solver.solve(b, relative=1e-8).iterations)
        fixed = np.zeros(V.size, bool)
        fixed[V.dofs_on()] = True
        if times == 0:
            expected = direct(V, poisson(V), b, fixed, np.zeros(V.size))
            assert abs(solver.solve(b, relative=1e-11).x - expected).max() < SOLVED * abs(expected).max()
    assert max(iterations) <= 12, iterations


@pytest.mark.parametrize(("kind", "shape"), [("triangle", None), ("quadrilateral", (2,)), ("interval", None)])
def test_patches_are_symmetric_and_take_fewer_iterations(kind: str, shape: tuple[int, ...] | None) -> None:
    V = box(kind, 3).refined(1).space("Lagrange", 3, shape=shape)
    form = poisson if shape is None else elasticity
    options = dict(fixed=lambda V: abs(V.interpolate(lambda x: x[:1] if shape is None else x)).reshape(V.shape) < 1e-12)
    patches = multigrid.Multigrid(V, form, smoother="patches", **options)
    plain = multigrid.Multigrid(V, form, steps=2, **options)
    r, s = np.random.default_rng(4).standard_normal((2, *V.shape))
    one, other = (patches(r) * s).sum(), (patches(s) * r).sum()
    assert abs(one - other) < 1e-12 * np.linalg.norm(patches(r)) * np.linalg.norm(s)
    found, expected = (solver.solve(r, relative=1e-11) for solver in (patches, plain))
    assert found.iterations <= plain.solve(r, relative=1e-11).iterations
    assert abs(found.x - expected.x).max() < SOLVED * abs(expected.x).max()


def test_vertices_of_a_cell_have_different_colours() -> None:
    from kingpost.multigrid.smoothers import coloured

    mesh = in_hexahedra(box("tetrahedron", 2))
    dofs = mesh.space("Lagrange", 1).dofs
    colours = coloured(mesh, dofs, int(dofs["hexahedron"].max()) + 1)
    of_cells = np.sort(colours[dofs["hexahedron"]], axis=1)
    assert (of_cells[:, 1:] > of_cells[:, :-1]).all() and of_cells.min() == 0


def test_a_cycle_in_single_precision_preconditions_a_solve_in_double() -> None:
    V = box("tetrahedron", 2).refined(1).space("P", 2)
    b = 1e-30 * np.random.default_rng(3).standard_normal(V.size)  # squares of single precision vanish
    solvers = [multigrid.Multigrid(V, poisson, fixed=lambda V: V.dofs_on(), precision=p) for p in ("f64", "f32")]
    one, other = (solver.solve(b, relative=1e-11) for solver in solvers)
    assert other.converged and other.iterations <= one.iterations + 1
    assert abs(one.x - other.x).max() < SOLVED * abs(one.x).max()
    assert solvers[1].levels[0].x.dtype == np.float32 and other.x.dtype == np.float64
