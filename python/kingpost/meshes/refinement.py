"""Uniform refinement: each cell is divided into 2, 4 or 8 of half its size, a pyramid into 6 pyramids and 4 tetrahedra.

Simplices are divided by Bey's rule (Bey 1995): a tetrahedron into four at its vertices and four of the octahedron
between them, with vertices in an order that leads to at most three shapes of cells, however often it is repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from kingpost.errors import MeshError

if TYPE_CHECKING:
    from kingpost.meshes.mesh import Mesh

Array = Any

#: The vertices of the children of a simplex, each the middle of two of its vertices: `11` is vertex 1 itself.
SIMPLICES = {
    "interval": "00 01, 01 11",
    "triangle": "00 01 02, 01 11 12, 02 12 22, 01 02 12",
    "tetrahedron": "00 01 02 03, 01 11 12 13, 02 12 22 23, 03 13 23 33, "
    "01 02 03 13, 01 02 12 13, 02 03 13 23, 02 12 13 23",
}
#: What is left of a pyramid without those at its vertices, likewise: one upside down, and a tetrahedron at each triangle.
PYRAMID = {"pyramid": "04 24 14 34 03", "tetrahedron": "04 14 01 03, 02 24 04 03, 13 14 34 03, 23 34 24 03"}


@lru_cache(maxsize=None)
def children(kind: str) -> dict[str, Array]:
    """The vertices of the children in the reference cell by their kind, ``[children, vertices, dimension]``."""
    import basix

    corners = basix.geometry(basix.CellType[kind])

    def middles(text: str) -> Array:
        pairs = [[[int(v) for v in pair] for pair in child.split()] for child in text.split(", ")]
        return corners[np.array(pairs)].mean(axis=2)

    if kind in SIMPLICES:
        return {kind: middles(SIMPLICES[kind])}
    if kind == "prism":
        triangles, halves = children("triangle")["triangle"], children("interval")["interval"]
        layers = [[[*at, *height] for height in half for at in triangle] for half in halves for triangle in triangles]
        return {kind: np.array(layers)}
    # one at each vertex, half as long
    at_vertices = (corners[:, None] + corners[None]) / 2
    if kind != "pyramid":
        return {kind: at_vertices}
    rest = {child: middles(text) for child, text in PYRAMID.items()}
    return rest | {kind: np.concatenate([at_vertices, rest[kind]])}


def parents(kinds: Iterable[str]) -> dict[str, list[str]]:
    """By the kind of cells of the refined mesh, those of their parents, whose children come one kind after the other."""
    kinds = tuple(kinds)
    found = {kind: [kind] for kind in kinds}
    for kind in kinds:
        for child in children(kind):
            if child != kind:
                found.setdefault(child, []).append(kind)
    return found


def in_child(parent: str, kind: str, points: Array) -> Array:
    """Points of the reference cell of a kind seen from the parent of each child, ``[children, points, dimension]``."""
    import basix

    corners = basix.geometry(basix.CellType[kind])
    along = [int(np.flatnonzero((corners == axis).all(axis=1))[0]) for axis in np.eye(corners.shape[1])]
    found = children(parent)[kind]
    axes = found[:, along] - found[:, :1]
    return found[:, :1] + np.einsum("pd,cdx->cpx", points, axes)


@dataclass(frozen=True)
class _Lattice:
    """The nodes of the children among those of one Lagrange element on the parent."""

    #: By the kind of the children, ``[children, nodes]``.
    nodes: dict[str, Array]
    #: By local facet, the vertices of the facets that it is divided into, ``[facets, vertices]``.
    facets: list[Array]


def _lattice(mesh: Mesh, kind: str) -> _Lattice:
    import basix

    points = mesh._coordinates(kind, 2 * mesh.degree).points

    def place(at: Array) -> Array:
        distances = np.linalg.norm(points[:, None] - at.reshape(-1, at.shape[-1])[None], axis=2)
        return distances.argmin(axis=0).reshape(at.shape[:-1])

    vertices, facets = {child: place(corners) for child, corners in children(kind).items()}, []
    for corners in mesh.topology(kind)[mesh.tdim - 1]:
        base = basix.geometry(basix.CellType[kind])[corners]
        axes = (base[1:] - base[0]).T
        found = []
        for of, children_of in vertices.items():
            for child, local in product(children_of, basix.topology(basix.CellType[of])[mesh.tdim - 1]):
                offsets = (points[child[local]] - base[0]).T
                if np.allclose(axes @ np.linalg.pinv(axes) @ offsets, offsets):
                    found.append(child[local])
        facets.append(np.array(found))
    own = {child: mesh._coordinates(child, mesh.degree).points for child in vertices}
    return _Lattice({child: place(in_child(kind, child, at)) for child, at in own.items()}, facets)


def refine(mesh: Mesh) -> Mesh:
    """Each cell divided once; groups are those of the parents. Cell ``c`` has the children ``c * n .. c * n + n`` of a
    kind; those of parents of other kinds come after them.

    Nodes are numbered as the cells come to them, so that cells side by side have nodes side by side. Curved cells are
    divided in their reference cell, so that each child is the same curved part of its parent.
    """
    from kingpost.meshes.mesh import Cells, Mesh
    from kingpost.meshes.space import Space

    if "pyramid" in mesh.kinds and mesh.degree > 1:
        raise MeshError(
            f"cells of kind `pyramid` of degree {mesh.degree}: needed straight ones to refine; basix has no nodes of "
            f"degree {2 * mesh.degree} on pyramids"
        )
    lattices = {kind: _lattice(mesh, kind) for kind in mesh.kinds}
    space = Space(mesh, lambda kind: _lagrange(kind, 2 * mesh.degree))
    fine = {}
    for kind, of_kinds in parents(mesh.kinds).items():
        own = [space.dofs[parent][:, lattices[parent].nodes[kind]] for parent in of_kinds]
        fine[kind] = np.concatenate([nodes.reshape(-1, nodes.shape[-1]) for nodes in own])
    number = _by_first_touch(list(fine.values()), space.size)
    positions = np.empty((space.size, mesh.gdim))
    for kind, dofs in space.dofs.items():
        map_of = mesh._coordinates(kind, mesh.degree)
        table = map_of.tabulate(0, mesh._coordinates(kind, 2 * mesh.degree).points)[0, :, :, 0]
        positions[number[dofs]] = np.einsum("pn,cnd->cpd", table, mesh.positions[mesh.cells[kind].nodes])
    cells = [Cells(kind, number[nodes], _groups(mesh, kind)) for kind, nodes in fine.items()]
    facets, each = _facets(mesh, lattices, {kind: number[dofs] for kind, dofs in space.dofs.items()})
    facet_groups = _divided(mesh._given_groups, each)
    return Mesh(positions, cells, facets=facets, facet_groups=facet_groups, names=mesh.names, parent=mesh)


def _lagrange(kind: str, degree: int) -> Any:
    import basix
    import basix.ufl

    return basix.ufl.element("Lagrange", kind, degree, basix.LagrangeVariant.equispaced)


def _by_first_touch(lists: list[Array], size: int) -> Array:
    """The number of each node in the order in which cells come to them."""
    flat = np.concatenate([nodes.reshape(-1) for nodes in lists])
    first = np.empty(size, np.int64)
    # of several values for one place the last one stays: that of the first touch
    first[flat[::-1]] = np.arange(len(flat) - 1, -1, -1)
    number = np.empty(size, np.int32)
    number[np.argsort(first)] = np.arange(size, dtype=np.int32)
    return number


def _groups(mesh: Mesh, kind: str) -> dict[int, Array]:
    """The groups of the refined mesh's cells of a kind."""
    found: dict[int, list[Array]] = {}
    start = 0
    for parent in parents(mesh.kinds)[kind]:
        of, each = mesh.cells[parent], len(children(parent)[kind])
        for group, numbers in _divided(of.groups, each).items():
            found.setdefault(group, []).append(start + numbers)
        start += each * len(of)
    return {group: np.concatenate(numbers) for group, numbers in found.items()}


def _divided(groups: Mapping[int, Array], each: int) -> dict[int, Array]:
    """Groups of the parts of entities, each of which has as many."""
    return {
        group: (np.asarray(numbers, int)[:, None] * each + np.arange(each)).reshape(-1)
        for group, numbers in groups.items()
    }


def _facets(mesh: Mesh, lattices: dict[str, _Lattice], dofs: dict[str, Array]) -> tuple[Array, int]:
    """The vertices of the parts of the facets that the mesh was given, in their order, and how many each has."""
    given = mesh._given_facets
    each = 2 ** (mesh.tdim - 1)
    found = np.full((len(given), each, 4), -1, np.int32)
    if not len(given):
        return found.reshape(-1, 4), each
    numbers, count, wanted = mesh._entities(mesh.tdim - 1)
    rows = np.full((count, each, 4), -1, np.int32)
    for kind, of in numbers.items():
        for local, parts in enumerate(lattices[kind].facets):
            # a facet of two cells is divided by both in the same way
            rows[of[:, local], :, : parts.shape[1]] = dofs[kind][:, parts]
    return rows[wanted].reshape(-1, 4), each
