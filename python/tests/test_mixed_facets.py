"""Integrals over facets between cells of two kinds, against sums over points in physical space by NumPy.

The reference knows facets by their vertices and finds the points of each in both cells by Newton's method: no local
facet, no orientation and no table of the exporter is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("basix.ufl")
pytest.importorskip("scipy")

import basix
import ufl
from conftest import LONG

import kingpost
from kingpost import meshes
from kingpost.meshes import Cells, Mesh

DATA = Path(__file__).resolve().parents[2] / "crates" / "fem" / "tests" / "data"
# sums of some thousand terms in f64, and points that Newton's method finds to rounding, relative to the largest entry
EQUAL = 1e-11
RULE = 6
PENALTY = 30.0


def renumbered(mesh: Mesh, seed: int) -> Mesh:
    """With nodes in another order, so that facets are turned in all ways."""
    number = np.random.default_rng(seed).permutation(len(mesh.positions))
    positions = np.empty_like(mesh.positions)
    positions[number] = mesh.positions
    return Mesh(positions, [Cells(kind, number[of.nodes]) for kind, of in mesh.cells.items()])


def solids() -> Mesh:
    """Prisms next to hexahedra, those next to pyramids, those next to tetrahedra."""
    return renumbered(meshes.read(DATA / "solids_1.msh"), 1)


def joined() -> Mesh:
    """A prism with a tetrahedron and a pyramid on its triangles, and pyramids on two of its squares."""
    x = [
        [0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0.1, 1], [0, 1, 1.2], [0.3, 0.3, 1.8], [1.2, 1.1, 0.6], [0, 0, -1],
        [1, 0, -1], [-0.9, 0.5, 0.4],
    ]  # fmt: skip
    pyramids = [[1, 2, 4, 5, 7], [0, 1, 8, 9, 2], [2, 0, 5, 3, 10]]
    cells = [Cells("tetrahedron", [[6, 4, 3, 5]]), Cells("prism", [[0, 1, 2, 3, 4, 5]]), Cells("pyramid", pyramids)]
    return renumbered(Mesh(x, cells), 2)


def plane() -> Mesh:
    """A square of squares, some of them divided into triangles, with moved vertices."""
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0), indexing="ij"), axis=-1).reshape(-1, 2)
    inner = ((grid > 0) & (grid < 3)).all(axis=1)
    grid[inner] += np.random.default_rng(3).uniform(-0.2, 0.2, grid[inner].shape)
    squares, triangles = [], []
    for i, j in np.ndindex(3, 3):
        a = 4 * i + j
        if (i + j) % 2:
            triangles += [[a, a + 1, a + 5], [a + 4, a, a + 5]]
        else:
            squares.append([a + 5, a + 4, a + 1, a])
    return renumbered(Mesh(grid, [Cells("triangle", triangles), Cells("quadrilateral", squares)]), 4)


def on_card(device: str) -> bool:
    return any(name.split(":")[0] == device for name in kingpost.devices())


class Side:
    """Basis functions and gradients of a cell at points of physical space."""

    def __init__(self, mesh: Mesh, space: meshes.Space, kind: str, cell: int) -> None:
        self.map, self.nodes = mesh._coordinates(kind, 1), mesh.positions[mesh.cells[kind].nodes[cell]]
        self.element, self.dofs = space.elements[kind].basix_element, space.dofs[kind][cell]
        self.middle = basix.geometry(basix.CellType[kind]).mean(axis=0)

    def at_reference(self, points: np.ndarray) -> tuple[np.ndarray, ...]:
        """Positions, Jacobians, values ``[points, dofs]`` and gradients ``[points, dofs, dim]``."""
        geometry, basis = (of.tabulate(1, points)[..., 0] for of in (self.map, self.element))
        jacobians = np.einsum("kpn,nd->pdk", geometry[1:], self.nodes)
        gradients = np.einsum("kpi,pkd->pid", basis[1:], np.linalg.inv(jacobians))
        return geometry[0] @ self.nodes, jacobians, basis[0], gradients

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        points = np.repeat(self.middle[None], len(x), axis=0)
        for _ in range(30):
            found, jacobians, values, gradients = self.at_reference(points)
            if abs(found - x).max() < 1e-14:
                break
            points = points + np.linalg.solve(jacobians, (x - found)[..., None])[..., 0]
        assert abs(found - x).max() < 1e-13
        return values, gradients


def points_of(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points, weights and a normal at each of a line, a triangle or a quadrilateral."""
    kind = {2: "interval", 3: "triangle", 4: "quadrilateral"}[len(corners)]
    points, weights = basix.make_quadrature(basix.CellType[kind], RULE)
    table = basix.create_element(basix.ElementFamily.P, basix.CellType[kind], 1).tabulate(1, points)[..., 0]
    tangents = np.einsum("kpn,nd->kpd", table[1:], corners)
    if len(tangents) == 1:
        normals = np.stack([tangents[0][:, 1], -tangents[0][:, 0]], axis=1)
    else:
        normals = np.cross(*tangents)
    sizes = np.linalg.norm(normals, axis=1)
    return table[0] @ corners, weights * sizes, normals / sizes[:, None]


def by_numpy(mesh: Mesh, space: meshes.Space, coefficient: dict[str, np.ndarray]) -> np.ndarray:
    """The matrix of the symmetric interior penalty method, with Nitsche's terms on the boundary."""
    matrix = np.zeros((space.size, space.size))
    facets: dict[tuple[int, ...], list[tuple[str, int, list[int]]]] = {}
    for kind, of in mesh.cells.items():
        points, weights = basix.make_quadrature(basix.CellType[kind], RULE)
        for cell, nodes in enumerate(of.nodes):
            side = Side(mesh, space, kind, cell)
            _, jacobians, _, gradients = side.at_reference(points)
            scale = coefficient[kind][cell] * weights * abs(np.linalg.det(jacobians))
            matrix[np.ix_(side.dofs, side.dofs)] += np.einsum("p,pid,pjd->ij", scale, gradients, gradients)
            for local in mesh.topology(kind)[mesh.tdim - 1]:
                corners = [int(nodes[v]) for v in local]
                facets.setdefault(tuple(sorted(corners)), []).append((kind, cell, corners))
    for cells in facets.values():
        x, weights, normals = points_of(mesh.positions[cells[0][2]])
        jumps, fluxes, dofs = [], [], []
        for kind, cell, _ in cells:
            side = Side(mesh, space, kind, cell)
            values, gradients = side.at(x)
            # outwards: away from the middle of the cell
            outward = np.sign(np.einsum("pd,pd->p", x - side.nodes.mean(axis=0), normals))
            jumps.append(values * outward[:, None])
            flux = np.einsum("pid,pd->pi", gradients, normals)
            fluxes.append(coefficient[kind][cell] * flux / len(cells))
            dofs.append(side.dofs)
        jump, flux, own = (np.concatenate(parts, axis=-1) for parts in (jumps, fluxes, dofs))
        both = np.einsum("p,pi,pj->ij", weights, jump, flux)
        matrix[np.ix_(own, own)] += PENALTY * np.einsum("p,pi,pj->ij", weights, jump, jump) - both - both.T
    return matrix


def penalty_method(mesh: Mesh, space: meshes.Space, k: Any, u: Any) -> Any:
    """The form of a kind of cells; `u(kind)` is a trial function or a function."""
    alpha = mesh.constant(PENALTY)

    def form(kind: str) -> ufl.Form:
        v, n, c = ufl.TestFunction(space.on(kind)), ufl.FacetNormal(mesh.domain(kind)), k.on(kind)
        w, jump, avg = u(kind), ufl.jump, ufl.avg
        dx, dS, ds = (measure(degree=RULE) for measure in (ufl.dx, ufl.dS, ufl.ds))
        inside = alpha.on(kind) * ufl.inner(jump(w, n), jump(v, n))
        inside -= ufl.inner(avg(c * ufl.grad(w)), jump(v, n)) + ufl.inner(jump(w, n), avg(c * ufl.grad(v)))
        outside = alpha.on(kind) * w * v - c * ufl.dot(ufl.grad(w), n) * v - c * ufl.dot(ufl.grad(v), n) * w
        return c * ufl.inner(ufl.grad(w), ufl.grad(v)) * dx + inside * dS + outside * ds

    return form


# four kinds of cells have kernels of many pairs to compile
CASES = [(plane, 2, "c"), (joined, 1, "opencl"), *([(joined, 2, "opencl"), (solids, 1, "c")] if LONG else [])]


@pytest.mark.parametrize(("make", "degree", "device"), CASES)
def test_the_interior_penalty_method_between_kinds(make: Any, degree: int, device: str) -> None:
    """The matrix, and the action of the form without it, with a coefficient that differs by cell."""
    if not on_card(device):
        pytest.skip(f"skipped: no device for `{device}`")
    mesh = make()
    space = mesh.space("P", degree, discontinuous=True)
    k = mesh.space("DG", 0).function()
    k.array[:] = np.random.default_rng(5).uniform(1, 2, len(k.array))
    coefficient = {kind: k.array[dofs[:, 0]] for kind, dofs in k.space.dofs.items()}
    expected = by_numpy(mesh, space, coefficient)
    compiled = meshes.matrix(mesh, penalty_method(mesh, space, k, lambda kind: ufl.TrialFunction(space.on(kind))), device)
    assert any("-" in name for name in compiled.operators)
    found = compiled.assemble().toarray()
    assert abs(found - expected).max() < EQUAL * abs(expected).max()
    u = space.function()
    u.array[:] = np.random.default_rng(6).uniform(-1, 1, space.size)
    image = meshes.action(mesh, penalty_method(mesh, space, k, u.on), device).assemble()
    assert abs(image - expected @ u.array).max() < EQUAL * abs(expected).max()


def test_derivatives_are_by_both_sides() -> None:
    """The derivative of a residual that is not linear, against differences of it."""
    mesh = plane()
    space = mesh.space("P", 1, discontinuous=True)
    w = space.function()
    rng = np.random.default_rng(7)
    w.array[:], direction = rng.uniform(size=space.size), rng.uniform(size=space.size)

    def residual(kind: str) -> ufl.Form:
        u, v, n = w.on(kind), ufl.TestFunction(space.on(kind)), ufl.FacetNormal(mesh.domain(kind))
        flux = ufl.avg((1 + u**2) * ufl.grad(u))
        return (u("+") ** 3 * u("-") * ufl.avg(v) - ufl.inner(flux, ufl.jump(v, n))) * ufl.dS(degree=6)

    def tangent(kind: str) -> ufl.Form:
        return ufl.derivative(residual(kind), w.on(kind), ufl.TrialFunction(space.on(kind)))

    product = meshes.matrix(mesh, tangent).assemble() @ direction
    assert abs(product).max() > 0.1
    action, middle, step = meshes.action(mesh, residual), w.array.copy(), 1e-5
    ends = []
    for sign in (1, -1):
        w.array[:] = middle + sign * step * direction
        ends.append(action.assemble())
    # differences of second order, whose error is the square of the step, and rounding by it
    assert abs((ends[0] - ends[1]) / (2 * step) - product).max() < 1e-8


def test_what_differs_between_kinds_is_refused() -> None:
    """Other integrals on the other kind, none there, and elements whose degrees of freedom turn."""
    mesh = plane()
    space = mesh.space("P", 1, discontinuous=True)
    u = space.function()
    needed = "found some between a triangle and a quadrilateral, whose forms differ in `dS`; needed the same integral"
    for other in (lambda kind: 2 * ufl.avg(u.on(kind)) * ufl.dS, lambda kind: u.on(kind) * ufl.dx, lambda kind: None):
        with pytest.raises(kingpost.MeshError, match=needed):
            meshes.action(mesh, lambda k, o=other: ufl.avg(u.on(k)) * ufl.dS if k == "triangle" else o(k))
    # one of the facets between kinds is in no group: nothing is integrated there
    vertices = [v.tolist() for v in mesh.vertices("triangle", 1)[0][:1]]
    apart = Mesh(mesh.positions, list(mesh.cells.values()), facets=np.array(vertices), facet_groups={5: [0]})
    v = apart.space("P", 1, discontinuous=True).function()
    v.array += 1
    length = np.linalg.norm(np.diff(mesh.positions[vertices[0]], axis=0))
    found = meshes.action(apart, lambda kind: ufl.avg(v.on(kind)) * ufl.dS(5)).value()
    on_boundary = apart.facet_group(5)[apart.facets(1).numbers].any()
    assert abs(found - (0 if on_boundary else length)) < EQUAL
    surface = mesh.space(lambda kind: basix.ufl.element("RT" if kind == "triangle" else "RTCF", kind, 1))
    s = surface.function()
    with pytest.raises(kingpost.FormError, match="its degrees of freedom are turned; take Lagrange or discontinuous"):
        meshes.action(mesh, lambda kind: ufl.inner(ufl.avg(s.on(kind)), ufl.avg(s.on(kind))) * ufl.dS)
