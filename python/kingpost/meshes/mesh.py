"""Cells of several kinds over shared nodes, and the edges and faces that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional

import numpy as np

from kingpost.errors import MeshError

if TYPE_CHECKING:
    from kingpost.meshes.space import Constant, Space

Array = Any


@dataclass(frozen=True)
class Cells:
    """The cells of one kind."""

    #: Basix's name, such as ``prism``.
    kind: str
    #: Their nodes in basix's order, i32 ``[cells, nodes]``; the vertices come first.
    nodes: Array
    #: The cells of each group, ascending.
    groups: Mapping[int, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class Facets:
    """The facets that have as many cells as a type of integral wants."""

    #: The kind of the cells by its place, the cells and the local facets, each ``[facets, sides]``.
    kinds: Array
    cells: Array
    local: Array
    #: The numbers of the facets among all.
    numbers: Array


class Mesh:
    """A mesh of cells of one or of several kinds.

    ``positions`` are those of the nodes, f64 ``[nodes, dimension of space]``, which is at least that of the cells.
    ``cells`` are those of each kind. ``facets`` are vertices of facets, a row a facet with -1 where there are fewer than
    in others, and ``facet_groups`` the rows of each group. ``names`` are those of groups, with dimension and number.

    Cells are straight, or curved with all nodes of the equispaced Lagrange element of one degree. Facets may be shared
    by any cells; no vertex lies inside an edge or a face.

    Raises:
        MeshError: Arrays that do not fit, cells of several dimensions or degrees, positions that are not finite.
    """

    def __init__(
        self,
        positions: Array,
        cells: Sequence[Cells],
        *,
        facets: Optional[Array] = None,
        facet_groups: Optional[Mapping[int, Array]] = None,
        names: Optional[Mapping[str, tuple[int, int]]] = None,
        parent: Optional[Mesh] = None,
    ) -> None:
        import basix

        self.positions = np.ascontiguousarray(positions, dtype=np.float64)
        self.cells = {of.kind: _checked(of) for of in cells}
        self.names = dict(names or {})
        #: The mesh that :meth:`refined` divided.
        self.parent = parent
        self._given_facets = np.zeros((0, 4), np.int32) if facets is None else np.asarray(facets, np.int32)
        self._given_groups = dict(facet_groups or {})
        if not cells or len(self.cells) < len(cells):
            kinds = ", ".join(of.kind for of in cells) or "none"
            raise MeshError(f"cells: found the kinds {kinds}, needed one or several, each once")
        if self.positions.ndim != 2 or not np.isfinite(self.positions).all():
            raise MeshError(
                f"positions: found the shape {self.positions.shape}, needed finite numbers [nodes, dimension of space]"
            )
        self._types = {kind: basix.CellType[kind] for kind in self.cells}
        dims = {kind: len(self.topology(kind)) - 1 for kind in self.cells}
        if len(set(dims.values())) > 1:
            raise MeshError(f"cells: found the dimensions {dims}, needed one")
        #: The dimension of the cells.
        self.tdim = next(iter(dims.values()))
        #: The dimension of space.
        self.gdim = self.positions.shape[1]
        if not self.tdim <= self.gdim <= 3:
            raise MeshError(f"positions: found {self.gdim} components, needed {self.tdim} to 3 for cells of {dims}")
        degrees = {kind: self._degree(of) for kind, of in self.cells.items()}
        if len(set(degrees.values())) > 1:
            raise MeshError(f"cells: found the degrees {degrees}, needed one; add or drop nodes on edges")
        #: The degree of the maps of cells.
        self.degree = next(iter(degrees.values()))
        self._domains: dict[str, Any] = {}

    def refined(self, times: int = 1) -> Mesh:
        """The mesh with each cell divided evenly, ``times`` times; :attr:`parent` is the one before the last time.

        Edges are halved, triangles, quadrilaterals and their like divided into 4, tetrahedra, hexahedra and prisms into 8,
        and pyramids into 6 pyramids and 4 tetrahedra. Cells and facets are in the groups of those that they are a part of.

        Raises:
            MeshError: Curved pyramids.
        """
        from kingpost.meshes.refinement import refine

        if times < 0:
            raise MeshError(f"times: found {times}, needed 0 or more")
        found = self
        for _ in range(times):
            found = refine(found)
        return found

    def _degree(self, of: Cells) -> int:
        import basix

        if of.nodes.ndim != 2 or not len(of.nodes):
            raise MeshError(f"cells of kind `{of.kind}`: found the shape {of.nodes.shape}, needed [cells, nodes]")
        least, most = int(of.nodes.min()), int(of.nodes.max())
        if least < 0 or most >= len(self.positions):
            raise MeshError(
                f"cells of kind `{of.kind}`: found nodes {least} to {most}, needed places in {len(self.positions)} positions"
            )
        for degree in range(1, 5):
            if of.nodes.shape[1] == self._coordinates(of.kind, degree).dim:
                return degree
        corners = len(basix.geometry(self._types[of.kind]))
        raise MeshError(
            f"cells of kind `{of.kind}`: found {of.nodes.shape[1]} nodes, needed {corners}, or all nodes of degree 2 to 4"
        )

    def _coordinates(self, kind: str, degree: int) -> Any:
        import basix

        variant = basix.LagrangeVariant.equispaced
        return basix.create_element(basix.ElementFamily.P, basix.CellType[kind], degree, variant)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of cells, by basix's names."""
        return tuple(self.cells)

    def the_kind(self, kind: Optional[str]) -> str:
        """A kind of cells, which need not be named where there is one."""
        if kind in self.cells:
            return kind
        if kind is None and len(self.cells) == 1:
            return self.kinds[0]
        raise MeshError(f"found cells of kind {kind!r}, needed one of {', '.join(map(repr, self.kinds))}")

    def topology(self, kind: str) -> list[list[list[int]]]:
        """Basix's sub-entities of the reference cell, by dimension."""
        import basix

        return basix.topology(self._types[kind])

    def domain(self, kind: Optional[str] = None) -> Any:
        """The mesh of UFL of the cells of a kind."""
        import basix
        import basix.ufl
        import ufl

        kind = self.the_kind(kind)
        if kind not in self._domains:
            variant = basix.LagrangeVariant.equispaced
            element = basix.ufl.element("Lagrange", kind, self.degree, variant, shape=(self.gdim,))
            self._domains[kind] = ufl.Mesh(element)
        return self._domains[kind]

    def space(self, element: Any, degree: Optional[int] = None, **options: Any) -> Space:
        """A space of functions: a family of basix with its degree, or a function of the kind that gives an element.

        ``options`` are those of ``basix.ufl.element``, such as ``shape``.
        """
        from kingpost.meshes.space import Space

        return Space(self, element, degree, **options)

    def constant(self, value: Any) -> Constant:
        """A number or an array of numbers that forms on all kinds of cells share."""
        from kingpost.meshes.space import Constant

        return Constant(self, value)

    def vertices(self, kind: str, dim: int) -> list[Array]:
        """The vertices of each local entity of a dimension, ``[cells, vertices]``."""
        return [self.cells[kind].nodes[:, list(local)] for local in self.topology(kind)[dim]]

    def entities(self, dim: int) -> dict[str, Array]:
        """The numbers of the entities of a dimension in the cells of each kind, ``[cells, local entities]``."""
        return self._entities(dim)[0]

    def n_entities(self, dim: int) -> int:
        """How many entities of a dimension there are."""
        return self._entities(dim)[1]

    def _entities(self, dim: int) -> tuple[dict[str, Array], int, Array]:
        """Numbers in cells, how many there are, and the numbers of the facets that were given."""
        if dim not in self._known:
            if dim == self.tdim:
                starts = np.cumsum([0, *(len(of) for of in self.cells.values())])
                numbers = {k: s + np.arange(len(of))[:, None] for (k, of), s in zip(self.cells.items(), starts)}
                self._known[dim] = numbers, int(starts[-1]), np.zeros(0, int)
            else:
                self._known[dim] = self._numbered(dim)
        return self._known[dim]

    @cached_property
    def _known(self) -> dict[int, tuple[dict[str, Array], int, Array]]:
        return {}

    def _numbered(self, dim: int) -> tuple[dict[str, Array], int, Array]:
        local = {kind: self.vertices(kind, dim) for kind in self.cells}
        rows = [_sorted(vertices) for lists in local.values() for vertices in lists]
        given = self._given_facets if dim == self.tdim - 1 else self._given_facets[:0]
        count, inverse = _unique(np.concatenate([*rows, _sorted(given)]))
        ends = np.cumsum([len(r) for r in rows])
        parts = np.split(inverse, ends)
        found, at = {}, 0
        for kind, lists in local.items():
            found[kind] = np.stack(parts[at : at + len(lists)], axis=1)
            at += len(lists)
        own = np.zeros(count, bool)
        own[inverse[: ends[-1]]] = True
        if not own.all():
            missing = self._given_facets[np.flatnonzero(~own[parts[-1]])[0]]
            raise MeshError(f"facets: found the vertices {missing[missing >= 0].tolist()}, needed those of a facet of a cell")
        return found, count, parts[-1]

    def check_groups(self, numbers: Sequence[int], of_cells: bool) -> None:
        """Refuses groups that no cell, or no facet, is in: of any kind, as a group may have cells of some alone."""
        known = set(self._given_groups)
        if of_cells:
            known = {number for of in self.cells.values() for number in of.groups}
        for number in numbers:
            if number not in known:
                needed = ", ".join(map(str, sorted(known))) or "none, as there are no groups"
                raise MeshError(f"found the group {number} of {'cells' if of_cells else 'facets'}, needed one of {needed}")

    def facet_group(self, number: int) -> Array:
        """Whether each facet is in a group."""
        _, count, given = self._entities(self.tdim - 1)
        chosen = np.zeros(count, bool)
        chosen[given[np.asarray(self._given_groups.get(number, []), dtype=int)]] = True
        return chosen

    def chosen_facets(self, groups: Sequence[int]) -> Array:
        """Whether each facet is in one of these groups, or on the boundary if there are none.

        Raises:
            MeshError: A group that no facet is in.
        """
        if not groups:
            numbers, count, _ = self._entities(self.tdim - 1)
            return np.bincount(np.concatenate([n.reshape(-1) for n in numbers.values()]), minlength=count) == 1
        self.check_groups(groups, False)
        return np.logical_or.reduce([self.facet_group(number) for number in groups])

    def facets(self, sides: int) -> Facets:
        """The facets of one cell, or of two.

        Raises:
            MeshError: A facet of more than two cells, which has neither an outer nor two sides.
        """
        numbers, count, _ = self._entities(self.tdim - 1)
        lists = [(np.full(n.shape, k), *np.indices(n.shape), n) for k, n in enumerate(numbers.values())]
        kinds, cells, local, facet = (np.concatenate([part.reshape(-1) for part in parts]) for parts in zip(*lists))
        occurrences = np.bincount(facet, minlength=count)
        if occurrences.max(initial=0) > 2:
            at = np.flatnonzero(facet == np.argmax(occurrences))[0]
            kind = self.kinds[kinds[at]]
            vertices = self.vertices(kind, self.tdim - 1)[local[at]][cells[at]].tolist()
            raise MeshError(
                f"the facet of the vertices {vertices} has {occurrences.max()} cells, needed at most 2 for integrals over "
                "facets; integrate over cells, or split the mesh there"
            )
        order = np.lexsort((local, cells, kinds, facet))
        order = order[occurrences[facet[order]] == sides]
        kinds, cells, local = (part[order].reshape(-1, sides) for part in (kinds, cells, local))
        return Facets(kinds, cells, local, facet[order][::sides])

    def states(self, kind: str, dim: int) -> Array:
        """The orientations of the entities of a dimension in each cell, ``[cells, local entities]``, as basix counts them.

        An edge is reversed or not; a face is turned and mirrored until its first vertex has the lowest number, and
        the second one a lower number than the third.
        """
        return np.stack([orientation(vertices) for vertices in self.vertices(kind, dim)], axis=1)

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(of)} of kind {kind}" for kind, of in self.cells.items())
        return f"<kingpost.meshes.Mesh in {self.gdim} dimensions, {len(self.positions)} nodes, cells: {counts}>"


def _checked(of: Cells) -> Cells:
    """With nodes as kernels take them."""
    nodes = np.asarray(of.nodes)
    if nodes.dtype.kind not in "iu":
        raise MeshError(f"cells of kind `{of.kind}`: found nodes of type `{nodes.dtype}`, needed integers")
    return Cells(of.kind, np.ascontiguousarray(nodes, np.int32), of.groups)


def _sorted(rows: Array) -> Array:
    """Rows of four vertices, ascending; -1 is no vertex."""
    wide = np.full((len(rows), 4), -1, np.int64)
    wide[:, : rows.shape[1]] = rows
    wide.sort(axis=1)
    return wide


def _unique(rows: Array) -> tuple[int, Array]:
    """How many different rows there are, and the number of each, ascending as the rows are."""
    # columns in which there is nothing come first
    used = [column for column in rows.T if column.max(initial=-1) >= 0]
    numbers, count = (used[0] + 1 if used else np.zeros(len(rows), np.int64)), 0
    for column in used[1:] or [np.zeros(len(rows), np.int64)]:
        # a pair of numbers as one, which sorts far faster than rows
        pairs = (numbers << 32) | (column + 1)
        found, numbers = np.unique(pairs, return_inverse=True)
        count, numbers = len(found), numbers.reshape(-1)
    return count, numbers


def orientation(vertices: Array) -> Array:
    """The states of entities by their vertices ``[entities, vertices]``."""
    from kingpost.export.tables import permute_face_points

    states = np.zeros(len(vertices), np.int32)
    corners = vertices.shape[1]
    if corners == 2:
        return (vertices[:, 0] > vertices[:, 1]).astype(np.int32)
    if corners < 2:
        return states
    square = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], float)[:corners]
    lowest = vertices.min(axis=1)
    for state in range(2 * corners):
        x, y = np.rint(permute_face_points(square, corners, state)).astype(int).T
        seen = vertices[:, x + 2 * y]
        states[(seen[:, 0] == lowest) & (seen[:, 1] < seen[:, 2])] = state
    return states
