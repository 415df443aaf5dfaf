"""Meshes of files with cells of several kinds, surfaces and curves: exact integrals, conformity, convergence, meshio."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("basix.ufl")
pytest.importorskip("scipy")

import basix
import basix.ufl
import ufl
from scipy.sparse.linalg import spsolve

import kingpost
from conftest import LONG
from kingpost import meshes
from kingpost.meshes import Cells, Mesh
from kingpost.meshes.files import CELLS, _places

DATA = Path(__file__).resolve().parents[2] / "crates" / "fem" / "tests" / "data"
# sums of some thousand terms in f64, relative to the result
EQUAL = 1e-12


@pytest.fixture(scope="module", params=[1, 2] if LONG else [1])
def solids(request: pytest.FixtureRequest) -> Mesh:
    """Prisms, hexahedra, pyramids and tetrahedra in the box [0, 3] x [0, 1] x [0, 1]."""
    return meshes.read(DATA / f"solids_{request.param}.msh")


def volume(mesh: Mesh, measure: ufl.Measure = ufl.dx) -> float:
    return meshes.action(mesh, lambda kind: mesh.constant(1.0).on(kind) * measure).value()


def test_a_box_of_four_kinds_of_cells(solids: Mesh) -> None:
    """Volumes and areas of groups, of polynomials, and that facets between kinds are none of the boundary."""
    assert set(solids.kinds) == {"prism", "hexahedron", "pyramid", "tetrahedron"}
    assert (solids.tdim, solids.gdim) == (3, 3)
    assert solids.names == {"everything": (3, 1), "last box": (3, 2), "inlet": (2, 3)}
    assert abs(volume(solids) - 3) < EQUAL
    assert abs(volume(solids, ufl.dx(1)) - 3) < EQUAL
    assert abs(volume(solids, ufl.dx(2)) - 1) < EQUAL
    assert abs(volume(solids, ufl.dx((1, 2))) - 4) < EQUAL, "as the sum over both groups"
    assert abs(volume(solids, ufl.ds) - 14) < EQUAL
    assert abs(volume(solids, ufl.ds(3)) - 1) < EQUAL
    assert abs(volume(solids, ufl.ds(4)) - 2) < EQUAL, "the inlet with the other orientation, and the base"

    def moment(kind: str) -> ufl.Form:
        x = ufl.SpatialCoordinate(solids.domain(kind))
        return x[0] ** 2 * x[1] * ufl.dx(degree=4) + ufl.dot(x, ufl.FacetNormal(solids.domain(kind))) * ufl.ds

    # the flux of the position is its divergence, 3, times the volume
    assert abs(meshes.action(solids, moment).value() - (9 / 2 + 9)) < EQUAL * 10


def test_partitions_and_groups_are_kept() -> None:
    """The file in two parts is the same mesh."""
    parts, whole = meshes.read(DATA / "solids_parts.msh"), meshes.read(DATA / "solids_2.msh")
    assert parts.names == whole.names
    for measure in (ufl.dx, ufl.dx(2), ufl.ds(3), ufl.ds(4)):
        assert abs(volume(parts, measure) - volume(whole, measure)) < EQUAL
    for suffix in ("22", "41_binary", "parts_22_binary", "parts_41"):
        square = meshes.read(DATA / f"groups_{suffix}.msh")
        assert (square.tdim, square.gdim) == (2, 2)
        sizes = [volume(square, m) for m in (ufl.dx(7), ufl.dx(8), ufl.ds(11), ufl.ds(12), ufl.ds)]
        assert np.allclose(sizes, [1, 1, 2, 2, 4], rtol=EQUAL), suffix


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_a_function_is_one_across_kinds_of_cells(degree: int) -> None:
    """Polynomials are found exactly in all cells: degrees of freedom of shared vertices, edges and faces are one."""
    solids = meshes.read(DATA / "solids_1.msh")
    if degree == 3:
        # basix has no pyramids of degree 3
        kept = [of for of in solids.cells.values() if of.kind in ("prism", "hexahedron")]
        solids = Mesh(solids.positions, kept)
    space = solids.space("P", degree)
    f = lambda x: (0.3 * x[0] - 0.7 * x[1] + 0.2 * x[2] + 0.1) ** degree  # noqa: E731
    u = space.function()
    u.array = space.interpolate(f)
    assert np.isfinite(u.array[np.unique(np.concatenate([d.reshape(-1) for d in space.dofs.values()]))]).all()
    assert np.array_equal(np.unique(np.concatenate([d.reshape(-1) for d in space.dofs.values()])), np.arange(space.size))

    def error(kind: str) -> ufl.Form:
        return (u.on(kind) - f(ufl.SpatialCoordinate(solids.domain(kind)))) ** 2 * ufl.dx(degree=2 * degree)

    assert meshes.action(solids, error).value() < 1e-26
    # each node of another cell is that of a point
    assert space.size == len(np.unique(np.round(_points(solids, space), 9), axis=0))


def _points(mesh: Mesh, space: meshes.Space) -> np.ndarray:
    """The position of each degree of freedom, by NumPy alone."""
    return np.stack([space.interpolate(lambda x, axis=axis: x[axis]) for axis in range(mesh.gdim)], axis=1)


def poisson(mesh: Mesh, degree: int, exact: str) -> float:
    """The error of a Poisson problem with boundary values, in L2."""
    space = mesh.space("P", degree)
    value = {"quadratic": lambda x: x[0] ** 2 - 0.5 * x[1] ** 2 + 2 * x[0] * x[2]}[exact]

    def a(kind: str) -> ufl.Form:
        u, v = ufl.TrialFunction(space.on(kind)), ufl.TestFunction(space.on(kind))
        return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + u * v * ufl.ds

    def rhs(kind: str) -> ufl.Form:
        v, x = ufl.TestFunction(space.on(kind)), ufl.SpatialCoordinate(mesh.domain(kind))
        n = ufl.FacetNormal(mesh.domain(kind))
        u = value(x)
        return -ufl.div(ufl.grad(u)) * v * ufl.dx + (ufl.dot(ufl.grad(u), n) + u) * v * ufl.ds

    found = space.function()
    matrix = meshes.matrix(mesh, a).assemble()
    assert abs(matrix - matrix.T).max() < EQUAL * abs(matrix).max()
    found.array = spsolve(matrix.tocsc(), meshes.action(mesh, rhs).assemble())

    def error(kind: str) -> ufl.Form:
        return (found.on(kind) - value(ufl.SpatialCoordinate(mesh.domain(kind)))) ** 2 * ufl.dx

    # the action of the bilinear form on the solution is the right-hand side, without the matrix
    residual = meshes.action(mesh, lambda kind: ufl.action(a(kind), found.on(kind)) - rhs(kind)).assemble()
    assert abs(residual).max() < EQUAL * 10
    return float(np.sqrt(meshes.action(mesh, error).value()))


def test_poisson_on_four_kinds_of_cells() -> None:
    """A quadratic solution is found to rounding, by Robin conditions on the whole boundary."""
    assert poisson(meshes.read(DATA / "solids_2.msh"), 2, "quadratic") < 1e-12


def test_a_sphere() -> None:
    """Area, normals, and an eigenfunction of the Laplace–Beltrami operator on curved triangles in space."""
    sphere = meshes.read(DATA / "sphere_2.msh")
    assert (sphere.tdim, sphere.gdim, sphere.degree) == (2, 3, 2)
    # quadratic triangles of a sphere: errors of order four, the edges are 0.7 long
    assert abs(volume(sphere) / (4 * np.pi) - 1) < 2e-3
    domain = sphere.domain()
    x, n = ufl.SpatialCoordinate(domain), ufl.CellNormal(domain)
    outward = ufl.sign(ufl.dot(x, n))
    enclosed = meshes.action(sphere, outward * ufl.dot(x, n) / 3 * ufl.dx(degree=6)).value()
    assert abs(enclosed / (4 / 3 * np.pi) - 1) < 2e-3
    assert meshes.action(sphere, x[0] ** 2 * ufl.ds).value() == 0, "a sphere has no boundary"
    space = sphere.space("P", 2)
    u, v = ufl.TrialFunction(space.on()), ufl.TestFunction(space.on())
    # integrands are rational: one rule for all
    dx = ufl.dx(degree=8)
    stiffness = meshes.matrix(sphere, ufl.inner(ufl.grad(u), ufl.grad(v)) * dx).assemble()
    mass = meshes.matrix(sphere, u * v * dx).assemble()
    z = space.interpolate(lambda p: p[2])
    # z is an eigenfunction of the eigenvalue 2
    quotient = (z @ stiffness @ z) / (z @ mass @ z)
    assert abs(quotient - 2) < 5e-3
    w = space.function()
    w.array = z
    residual = meshes.action(sphere, (ufl.inner(ufl.grad(w.on()), ufl.grad(v)) - 2 * w.on() * v) * dx).assemble()
    assert abs(residual - (stiffness @ z - 2 * (mass @ z))).max() < EQUAL
    assert abs(residual).max() < 0.05 * abs(mass @ z).max()


def test_a_helix() -> None:
    """A curve in space: its length, and a function along it, on curved lines of degree 2."""
    t = np.linspace(0, 2 * np.pi, 41)
    positions = np.stack([np.cos(t), np.sin(t), 0.5 * t], axis=1)
    nodes = np.stack([np.arange(0, 40, 2), np.arange(2, 41, 2), np.arange(1, 41, 2)], axis=1).astype(np.int32)
    helix = Mesh(positions, [Cells("interval", nodes)], facets=np.array([[0], [40]]), facet_groups={1: [0], 2: [1]})
    length = 2 * np.pi * np.sqrt(1.25)
    assert abs(volume(helix) / length - 1) < 1e-5
    assert [volume(helix, m) for m in (ufl.ds, ufl.ds(1), ufl.ds(2))] == [2.0, 1.0, 1.0]
    height = helix.space("P", 2)
    z = height.function()
    z.array = height.interpolate(lambda x: x[2])
    slope = meshes.action(helix, ufl.inner(ufl.grad(z.on()), ufl.grad(z.on())) * ufl.dx).value()
    # dz/ds is 1 / sqrt(5) along the curve
    assert abs(slope / (length / 5) - 1) < 1e-4


def test_jumps_between_cells_of_one_kind_and_of_two(solids: Mesh) -> None:
    """What flows out of all cells is what jumps at facets, whatever kinds meet there, and the flux of the boundary."""
    v = solids.space("P", 1, discontinuous=True).function()
    v.array = np.random.default_rng(3).uniform(size=len(v.array))

    def inside(kind: str) -> ufl.Form:
        return ufl.div(v.on(kind) * ufl.SpatialCoordinate(solids.domain(kind))) * ufl.dx(degree=10)

    def outside(kind: str) -> ufl.Form:
        x, n = ufl.SpatialCoordinate(solids.domain(kind)), ufl.FacetNormal(solids.domain(kind))
        return ufl.dot(x, n) * v.on(kind) * ufl.ds(degree=6) + ufl.jump(v.on(kind) * x, n) * ufl.dS(degree=6)

    expected, fluxes = meshes.action(solids, inside).value(), meshes.action(solids, outside)
    assert {name for name in fluxes.operators if "-" in name} == {
        "prism-hexahedron", "hexahedron-pyramid", "tetrahedron-pyramid",
    }  # fmt: skip
    # rational functions of pyramids are integrated to what the rule leaves of them
    assert abs(fluxes.value() - expected) < 1e-11 * abs(expected)


@pytest.mark.parametrize("device", ["c", "opencl"])
def test_arrays_are_placed_once(device: str) -> None:
    """What does not change goes to the device once; functions and constants are read at each call."""
    if not any(name.split(":")[0] == device for name in kingpost.devices()):
        pytest.skip(f"skipped: no device for `{device}`")
    solids, placed = meshes.read(DATA / "solids_1.msh"), []

    def place(array: np.ndarray) -> np.ndarray:
        placed.append(array)
        return array.copy()

    u, k = solids.space("P", 1).function(), solids.constant(2.0)
    u.array += 1
    integrand = lambda kind: k.on(kind) * u.on(kind) * (ufl.dx + ufl.ds(3))  # noqa: E731
    action = meshes.action(solids, integrand, device, place=place)
    assert abs(action.value() - 8) < EQUAL * 8
    count = len(placed)
    assert count > 0
    k.value, u.array = 3.0, 2 * u.array
    assert abs(action.value() - 24) < EQUAL * 24
    assert len(placed) == count


@pytest.mark.parametrize("scalar", ["f32", "c128"])
def test_other_types_of_numbers(scalar: str) -> None:
    """Single precision, and complex numbers, on all kinds of cells."""
    solids = meshes.read(DATA / "solids_1.msh")
    dtype, equal = {"f32": (np.float32, 1e-5), "c128": (np.complex128, EQUAL)}[scalar]
    space = solids.space("P", 1)
    u, k = space.function(dtype), solids.constant(2.0 if scalar == "f32" else 2.0 + 1.0j)
    u.array += 1

    def load(kind: str) -> ufl.Form:
        return k.on(kind) * ufl.inner(u.on(kind), ufl.TestFunction(space.on(kind))) * ufl.dx

    found = meshes.action(solids, load, scalar=scalar).assemble()
    assert found.dtype == dtype
    assert abs(found.sum() - 3 * k.value) < equal * 10

    def mass(kind: str) -> ufl.Form:
        return k.on(kind) * ufl.inner(ufl.TrialFunction(space.on(kind)), ufl.TestFunction(space.on(kind))) * ufl.dx

    product = meshes.matrix(solids, mass, scalar=scalar).assemble() @ u.array
    assert product.dtype == dtype
    assert abs(product - found).max() < equal
    with pytest.raises(kingpost.DtypeError):
        u.array = np.ones(space.size, np.int32)
        meshes.action(solids, load, scalar=scalar).assemble()


def test_mappings_are_tried_for_each_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuned action has the same result."""
    monkeypatch.setenv("KINGPOST_CACHE_DIR", str(tmp_path))
    solids = meshes.read(DATA / "solids_1.msh")
    solids = Mesh(solids.positions, [solids.cells[kind] for kind in ("prism", "pyramid")])
    space = solids.space("P", 1)
    u = space.function()
    u.array[:] = np.random.default_rng(5).uniform(size=space.size)
    gradient = lambda kind: ufl.inner(ufl.grad(u.on(kind)), ufl.grad(ufl.TestFunction(space.on(kind)))) * ufl.dx  # noqa: E731
    action = meshes.action(solids, gradient, "c")
    expected = action.assemble()
    trials = action.tune(np.zeros(space.size))
    assert set(trials) == set(solids.kinds)
    assert abs(action.assemble() - expected).max() < EQUAL * abs(expected).max()


def test_boundary_values_and_files_of_results(tmp_path: Path) -> None:
    """A Dirichlet problem with an exact linear solution, written to VTU and read again."""
    meshio = pytest.importorskip("meshio")
    solids = meshes.read(DATA / "solids_1.msh")
    space = solids.space("P", 1)
    exact = space.interpolate(lambda x: 1 + x[0] - 2 * x[1] + 0.5 * x[2])
    solution = space.function()
    fixed = space.dofs_on()
    points = _points(solids, space)
    on_boundary = (np.isclose(points, 0) | np.isclose(points, [3, 1, 1])).any(axis=1)
    assert np.array_equal(fixed, np.flatnonzero(on_boundary))
    assert np.array_equal(space.dofs_on(3), np.flatnonzero(np.isclose(points[:, 0], 0)))
    solution.array[fixed] = exact[fixed]

    def a(kind: str) -> ufl.Form:
        u, v = ufl.TrialFunction(space.on(kind)), ufl.TestFunction(space.on(kind))
        return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx

    stiffness = meshes.matrix(solids, a).assemble()
    free = np.setdiff1d(np.arange(space.size), fixed)
    assert len(free) > 0
    solution.array[free] = spsolve(stiffness[free][:, free].tocsc(), -(stiffness @ solution.array)[free])
    assert abs(solution.array - exact).max() < 1e-12
    with pytest.raises(kingpost.MeshError, match="found the group 9 of facets, needed one of 3, 4"):
        space.dofs_on(9)
    vectors = solids.space("P", 2, shape=(3,)).function()
    vectors.array = vectors.space.interpolate(lambda x: np.stack([x[0], x[1] * x[2], x[2]]))
    path = tmp_path / "solution.vtu"
    meshes.write(path, solids, u=solution, v=vectors)
    found = meshio.read(path)
    x = found.points
    assert abs(found.point_data["u"] - (1 + x[:, 0] - 2 * x[:, 1] + 0.5 * x[:, 2])).max() < 1e-12
    assert abs(found.point_data["v"] - np.stack([x[:, 0], x[:, 1] * x[:, 2], x[:, 2]], axis=1)).max() < 1e-12
    again = meshes.read(path)
    # the lowest group of each cell: all are in the first one
    assert abs(volume(again, ufl.dx(1)) - 3) < EQUAL
    for suffix in ("vtu", "xdmf"):
        curved = meshes.read(DATA / "sphere_2.msh")
        z = curved.space("P", 2).function()
        z.array = z.space.interpolate(lambda x: x[2])
        meshes.write(tmp_path / f"sphere.{suffix}", curved, z=z)
        other = meshio.read(tmp_path / f"sphere.{suffix}")
        assert abs(other.point_data["z"].reshape(-1) - other.points[:, 2]).max() < 1e-12
    pyramids = meshes.read(DATA / "solids_2.msh")
    with pytest.raises(kingpost.MeshError, match="cells of kind .* of degree 2: VTK has them to degree 2, and no such"):
        meshes.write(path, pyramids)
    with pytest.raises(kingpost.MeshError, match="needed a continuous Lagrange element"):
        meshes.write(path, solids, w=solids.space("P", 1, discontinuous=True).function())


def test_vectors_constants_and_mixed_spaces(solids: Mesh) -> None:
    """Blocks, constants that change between calls, and two parts of one space on all kinds of cells."""
    vectors = solids.space("P", 1, shape=(3,))
    assert vectors.shape == (vectors.size, 3)
    u, k = vectors.function(), solids.constant(2.0)
    u.array = vectors.interpolate(lambda x: np.stack([x[0], 2 * x[1], x[2] - x[0]]))
    action = meshes.action(solids, lambda kind: k.on(kind) * ufl.div(u.on(kind)) * ufl.dx)
    assert abs(action.value() - 2 * 4 * 3) < EQUAL * 24
    k.value = 0.5
    assert abs(action.value() - 0.5 * 4 * 3) < EQUAL * 24

    def pair(kind: str) -> basix.ufl._ElementBase:
        return basix.ufl.mixed_element([basix.ufl.element("P", kind, 2), basix.ufl.element("P", kind, 1)])

    both = solids.space(pair)
    assert both.size == solids.space("P", 2).size + solids.space("P", 1).size

    def load(kind: str) -> ufl.Form:
        p, q = ufl.TestFunctions(both.on(kind))
        return (p + 3 * q) * ufl.dx

    # the functions of each part add up to one
    assert abs(meshes.action(solids, load).assemble().sum() - 4 * 3) < EQUAL * 12


FILES = ["solids_1", "sphere_2", "groups_41"]
# meshio reads no XDMF of cells of second order together with other ones
CURVED = ["sector_hexahedron_2_41", "sector_tetrahedron_2_41", "sector_quadrangle_2_41"]
PAIRS = [*((name, suffix) for suffix in ("msh", "vtu") for name in (*FILES, *CURVED)), *((n, "xdmf") for n in FILES)]


@pytest.mark.parametrize(("name", "suffix"), PAIRS)
def test_meshio_gives_the_same_mesh(name: str, suffix: str, tmp_path: Path) -> None:
    """Gmsh's files by meshio's own reader, and through VTU and XDMF, against the engine's reader."""
    meshio = pytest.importorskip("meshio")
    known = meshes.read(DATA / f"{name}.msh")
    other = meshio.read(DATA / f"{name}.msh")
    if suffix == "msh":
        found = meshes.from_meshio(other)
    else:
        del other.cell_data["gmsh:geometrical"]
        other.cell_sets = {}
        path = tmp_path / f"{name}.{suffix}"
        # without HDF5, for which meshio needs a library
        other.write(path, **({"data_format": "XML"} if suffix == "xdmf" else {}))
        found = meshes.read(path, gdim=known.gdim, tags="gmsh:physical")
    assert set(found.kinds) == set(known.kinds)
    for kind in known.kinds:
        a, b = (m.positions[m.cells[kind].nodes] for m in (found, known))
        assert a.shape == b.shape
        # texts of meshio have some fifteen digits
        assert np.allclose(a, b, rtol=0, atol=1e-14), kind
    groups = [number for number in (3, 11, 12) if number in known._given_groups]
    if name != "groups_41":  # whose groups overlap: meshio keeps one of them
        for number in groups:
            assert abs(volume(found, ufl.ds(number)) / volume(known, ufl.ds(number)) - 1) < EQUAL
        assert groups or name == "sphere_2"


def test_nodes_of_vtk() -> None:
    """Each of basix's nodes is another one of VTK's."""
    for name in CELLS:
        places = _places(name)
        assert sorted(places) == list(range(len(places))), name


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Formats that need another package, and one that nobody knows."""
    mesh = meshes.read(DATA / "solids_1.msh")
    meshes.write(tmp_path / "mesh.xdmf", mesh)
    with pytest.raises(kingpost.MeshError, match="mesh.what: meshio cannot write it"):
        meshes.write(tmp_path / "mesh.what", mesh)
    monkeypatch.setitem(sys.modules, "h5py", None)
    for use in (lambda: meshes.read(tmp_path / "mesh.xdmf"), lambda: meshes.write(tmp_path / "mesh.xdmf", mesh)):
        with pytest.raises(kingpost.Unavailable, match=r"`mesh.xdmf`: .*h5py.* `pip install 'kingpost\[meshes\]'`"):
            use()


def test_forms_on_several_devices() -> None:
    """Actions, functionals, matrices and solves on parts of a sphere, with a function on it."""
    sphere = meshes.read(DATA / "sphere_2.msh")
    V = sphere.space("P", 2)
    f, devices = V.function(), ["c", "opencl", "c"]
    f.array = V.interpolate(lambda x: x[0] + x[1] ** 2)
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    bilinear = (ufl.inner(ufl.grad(u), ufl.grad(v)) + u * v) * ufl.dx
    on = lambda make, form: (make(sphere, form, "c"), make(sphere, form, devices=devices))  # noqa: E731
    for form in (f.on() * v * ufl.dx, ufl.action(bilinear, f.on())):
        one, several = (of.assemble() for of in on(meshes.action, form))
        assert abs(one - several).max() < EQUAL * abs(one).max()
    one, several = (of.value() for of in on(meshes.action, f.on() ** 2 * ufl.dx))
    assert abs(one - several) < EQUAL * abs(one)
    whole, divided = on(meshes.matrix, bilinear)
    A, B = whole.assemble(), divided.assemble()
    assert abs(A - B).max() < EQUAL * abs(A).max()
    b = A @ f.array
    solution = divided.divide(all_devices=True).solve(b, relative=1e-12)
    assert solution.converged and abs(solution.x - f.array).max() < 1e-9 * abs(f.array).max()
    with pytest.raises(kingpost.FormError, match="found a form that is compiled for one device"):
        whole.divide()
    with pytest.raises(kingpost.FormError, match="found a form for several devices, needed one for one device"):
        meshes.action(sphere, f.on() * v * ufl.dx, devices=devices).tune(np.zeros(V.size))
    solids = meshes.read(DATA / "solids_1.msh")
    with pytest.raises(kingpost.FormError, match="found several devices for cells of kinds prism, .* needed cells of one"):
        meshes.action(solids, lambda kind: solids.constant(1.0).on(kind) * ufl.dx, devices=devices)


def test_what_is_no_mesh_is_refused(tmp_path: Path) -> None:
    """Files and arrays that do not fit, by what to do."""
    triangle = np.array([[0, 1, 2]], np.int32)
    x = np.array([[0.0, 0], [1, 0], [0, 1], [1, 1], [2, 2]])
    cases = [
        (lambda: Mesh(x, []), "cells: found the kinds none, needed one or several"),
        (lambda: Mesh(x, [Cells("triangle", triangle + 3)]), "found nodes 3 to 5, needed places in 5 positions"),
        (lambda: Mesh(x, [Cells("triangle", np.array([[0, 1, 2, 3]]))]), "found 4 nodes, needed 3, or all nodes"),
        (lambda: Mesh(np.full((3, 2), np.nan), [Cells("triangle", triangle)]), "needed finite numbers"),
        (lambda: Mesh(x, [Cells("tetrahedron", np.array([[0, 1, 2, 3]]))]), "found 2 components, needed 3 to 3"),
        (
            lambda: Mesh(x, [Cells("triangle", triangle), Cells("interval", np.array([[0, 1]]))]),
            "found the dimensions {'triangle': 2, 'interval': 1}, needed one",
        ),
        (
            lambda: Mesh(x, [Cells("triangle", triangle)], facets=np.array([[0, 3]]), facet_groups={1: [0]}).facets(1),
            r"facets: found the vertices \[0, 3\], needed those of a facet of a cell",
        ),
        (
            lambda: Mesh(x, [Cells("triangle", np.array([[0, 1, 2], [0, 1, 3], [1, 0, 4]]))]).facets(1),
            r"the facet of the vertices \[.*\] has 3 cells, needed at most 2",
        ),
        (lambda: meshes.read(DATA / "solids_1.msh", gdim=2), "gdim: found 2, needed 3 to 3"),
        (lambda: meshes.read(tmp_path / "no.msh"), "no.msh"),
        (lambda: meshes.read(tmp_path / "no.vtu"), "no.vtu: no such file"),
        (lambda: Mesh(x, [Cells("triangle", triangle / 2)]), "found nodes of type `float64`, needed integers"),
    ]
    for make, message in cases:
        with pytest.raises(kingpost.MeshError, match=message):
            make()
    solids = meshes.read(DATA / "solids_1.msh")
    unlike = {"prism": 2, "hexahedron": 1, "pyramid": 1, "tetrahedron": 1}
    with pytest.raises(kingpost.MeshError, match="degrees of freedom on an entity of dimension 1 of a .* needed elements"):
        solids.space(lambda kind: basix.ufl.element("P", kind, unlike[kind]))
    for measure, message in (
        (ufl.dx(7), "found the group 7 of cells, needed one of 1, 2"),
        (ufl.ds(1), "found the group 1 of facets, needed one of 3, 4"),
    ):
        with pytest.raises(kingpost.MeshError, match=message):
            volume(solids, measure)
    alien = ufl.Coefficient(ufl.FunctionSpace(solids.domain("prism"), basix.ufl.element("P", "prism", 1)))
    with pytest.raises(kingpost.FormError, match="has no values on the mesh; make it by `space.function"):
        meshes.action(solids, lambda kind: alien * ufl.dx if kind == "prism" else None)
    with pytest.raises(kingpost.FormError, match="found one form, needed a function of the kind of cells"):
        meshes.action(solids, alien * ufl.dx)
