"""Spaces on cells of several kinds: degrees of freedom of shared entities are shared, whatever the kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Optional

import basix.ufl
import numpy as np
import ufl

from kingpost.errors import MeshError
from kingpost.export.elements import Element, _leaves, columns, permutations, transforms

if TYPE_CHECKING:
    from kingpost.meshes.mesh import Mesh

Array = Any


class _Part(ufl.FunctionSpace):
    """The space on the cells of one kind."""

    def __init__(self, space: Space, kind: str) -> None:
        super().__init__(space.mesh.domain(kind), space.elements[kind])
        self.space = space


class Space:
    """A space of functions on a mesh, with an element for each kind of cells; see :meth:`Mesh.space`."""

    def __init__(self, mesh: Mesh, element: Any, degree: Optional[int] = None, **options: Any) -> None:
        self.mesh = mesh

        def of(kind: str) -> Element:
            if callable(element):
                return element(kind)
            if degree is None:
                raise MeshError(f"found the family {element!r} without a degree, needed both, or a function of the kind")
            return basix.ufl.element(element, kind, degree, **options)

        self.elements = {kind: of(kind) for kind in mesh.kinds}
        blocks = {kind: e.block_size for kind, e in self.elements.items()}
        if len(set(blocks.values())) > 1:
            raise MeshError(f"elements: found {blocks} components of a degree of freedom, needed one number")
        #: Components of each degree of freedom.
        self.block: int = next(iter(blocks.values()))
        #: The map of each kind, i32 ``[cells, columns]``, and the number of degrees of freedom.
        self.dofs, self.size = _numbered(mesh, self.elements)
        self._parts: dict[str, _Part] = {}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of an array of degrees of freedom."""
        return (self.size,) if self.block == 1 else (self.size, self.block)

    def on(self, kind: Optional[str] = None) -> Any:
        """The function space of UFL on the cells of a kind, for its test and trial functions."""
        kind = self.mesh.the_kind(kind)
        if kind not in self._parts:
            self._parts[kind] = _Part(self, kind)
        return self._parts[kind]

    def function(self, dtype: Any = np.float64) -> Function:
        """A function of the space, zero at first, with degrees of freedom of a type."""
        return Function(self, dtype)

    def dofs_on(self, *groups: int, part: Optional[int] = None) -> Array:
        """The degrees of freedom on the facets of some groups, or on the whole boundary, ascending.

        ``part`` is one of a mixed element's. In spaces with components they are rows of :attr:`Function.array`.
        """
        found = [np.zeros(0, np.int32)]
        mask = self.mesh.chosen_facets(groups)
        for kind, numbers in self.mesh.entities(self.mesh.tdim - 1).items():
            for local, columns_of in enumerate(self._closures(kind, part)):
                cells = np.flatnonzero(mask[numbers[:, local]])
                found.append(self.dofs[kind][np.ix_(cells, columns_of)].reshape(-1))
        return np.unique(np.concatenate(found))

    def _closures(self, kind: str, part: Optional[int]) -> list[Array]:
        """The columns on each local facet."""
        element, wanted = self.elements[kind], range(columns(self.elements[kind]))
        if part is not None:
            if not element.is_mixed or not 0 <= part < len(element.sub_elements):
                raise MeshError(f"part: found {part} of `{element}`, needed the place of an element of a mixed one")
            sizes = [e.dim for e in element.sub_elements]
            wanted = range(sum(sizes[:part]), sum(sizes[: part + 1]))
        found = []
        for local in range(len(self.mesh.topology(kind)[self.mesh.tdim - 1])):
            own = [np.zeros(0, int)]
            for leaf, place in _leaves(element):
                if place.size and place[0] in wanted and not leaf.is_quadrature and not leaf.is_real:
                    own.append(place[leaf.basix_element.entity_closure_dofs[self.mesh.tdim - 1][local]])
            found.append(np.concatenate(own))
        return found

    def interpolate(self, values: Any) -> Array:
        """The degrees of freedom of a function of positions, ``values(x)`` with ``x`` ``[dimension, points]``.

        Raises:
            MeshError: Degrees of freedom that are no values at points.
        """
        found = np.full(self.shape, np.nan)
        for kind, element in self.elements.items():
            plain = element._sub_element if element.block_size > 1 else element
            own = getattr(plain, "basix_element", None)
            if own is None or not own.interpolation_is_identity or own.value_size > 1:
                raise MeshError(f"`{element}`: needed degrees of freedom that are values at points; project instead")
            x = self.mesh.positions[self.mesh.cells[kind].nodes]
            map_of = self.mesh._coordinates(kind, self.mesh.degree)
            points = np.einsum("pn,cnd->dcp", map_of.tabulate(0, own.points)[0, :, :, 0], x)
            at = np.asarray(values(points.reshape(len(points), -1)), float)
            found[self.dofs[kind].reshape(-1)] = at.T.reshape(-1, self.block) if self.block > 1 else at.reshape(-1)
        return found

    def __repr__(self) -> str:
        return f"<kingpost.meshes.Space of {self.size} degrees of freedom, blocks of {self.block}>"


class Function:
    """A function of a space: :attr:`array` has its degrees of freedom, which all kinds of cells share."""

    def __init__(self, space: Space, dtype: Any = np.float64) -> None:
        self.space = space
        self.array: Array = np.zeros(space.shape, dtype)
        self._parts: dict[str, Any] = {}

    def at_nodes(self) -> Array:
        """The values at the nodes of the mesh, ``[nodes]`` or ``[nodes, components]``.

        Raises:
            MeshError: A function that jumps, or of values that are mapped to cells, mixed, or oriented.
        """
        mesh = self.space.mesh
        values = np.full((len(mesh.positions), self.space.block), np.nan)
        for kind, element in self.space.elements.items():
            plain = element._sub_element if element.block_size > 1 else element
            own = getattr(plain, "basix_element", None)
            if own is None or own.discontinuous or own.value_size > 1 or transforms(element):
                raise MeshError(f"`{element}`: needed a continuous Lagrange element; interpolate or project to one")
            points = mesh._coordinates(kind, mesh.degree).points
            table = own.tabulate(0, points)[0, :, :, 0]
            dofs = np.reshape(self.array, (self.space.size, -1))[self.space.dofs[kind]]
            values[mesh.cells[kind].nodes] = np.einsum("pn,cnb->cpb", table, dofs)
        return values[:, 0] if self.space.block == 1 else values

    def on(self, kind: Optional[str] = None) -> Any:
        """The function on the cells of a kind, in forms of UFL."""
        kind = self.space.mesh.the_kind(kind)
        if kind not in self._parts:
            self._parts[kind] = _Restricted(self, kind)
        return self._parts[kind]


class _Restricted(ufl.Coefficient):
    def __init__(self, function: Function, kind: str) -> None:
        super().__init__(function.space.on(kind))
        self.function, self.mesh = function, function.space.mesh


class Constant:
    """Numbers that may change between calls: :attr:`value`."""

    def __init__(self, mesh: Mesh, value: Any) -> None:
        self.mesh, self.value = mesh, value
        self._parts: dict[str, Any] = {}

    def on(self, kind: Optional[str] = None) -> Any:
        """The constant on the cells of a kind, in forms of UFL."""
        kind = self.mesh.the_kind(kind)
        if kind not in self._parts:
            self._parts[kind] = _Value(self, kind)
        return self._parts[kind]


class _Value(ufl.Constant):
    def __init__(self, constant: Constant, kind: str) -> None:
        super().__init__(constant.mesh.domain(kind), shape=np.shape(constant.value))
        self.constant, self.mesh = constant, constant.mesh


def _numbered(mesh: Mesh, elements: dict[str, Element]) -> tuple[dict[str, Array], int]:
    """The map of each kind, and how many numbers there are.

    Numbers go by the elements that an element is made of, and in each by dimension.
    """
    maps = {kind: np.full((len(mesh.cells[kind]), columns(e)), -1, np.int64) for kind, e in elements.items()}
    start = 0
    # elements that are mixed alike have their parts in one order
    for leaves in _together(elements):
        for dim in range(mesh.tdim + 1):
            start += _of_dimension(mesh, dim, leaves, maps, start)
        start += _real(leaves, maps, start)
    if start > np.iinfo(np.int32).max:
        raise MeshError(f"found {start} degrees of freedom, needed at most {np.iinfo(np.int32).max}; use fewer cells")
    return {kind: np.ascontiguousarray(found, np.int32) for kind, found in maps.items()}, start


def _together(elements: dict[str, Element]) -> Iterator[dict[str, tuple[Element, Array]]]:
    lists = {kind: list(_leaves(element)) for kind, element in elements.items()}
    counts = {kind: len(found) for kind, found in lists.items()}
    if len(set(counts.values())) > 1:
        raise MeshError(f"elements: found {counts} parts, needed as many on each kind of cells")
    for leaves in zip(*lists.values()):
        yield dict(zip(lists, leaves))


def _of_dimension(
    mesh: Mesh, dim: int, leaves: dict[str, tuple[Element, Array]], maps: dict[str, Array], start: int
) -> int:
    """Numbers the degrees of freedom on entities of a dimension; returns how many there are."""
    own = {
        kind: _entity_dofs(leaf, dim, mesh.tdim, len(mesh.topology(kind)[dim]))
        for kind, (leaf, _) in leaves.items()
        if not leaf.is_real
    }
    if not any(dofs for lists in own.values() for dofs in lists):
        return 0
    counts, numbers = np.full(mesh.n_entities(dim), -1), mesh.entities(dim)
    for kind, lists in own.items():
        for local, dofs in enumerate(lists):
            at = numbers[kind][:, local]
            if clash := set(np.unique(counts[at]).tolist()) - {-1, len(dofs)}:
                raise MeshError(
                    f"elements: found {len(dofs)} degrees of freedom on an entity of dimension {dim} of a {kind} and "
                    f"{clash.pop()} on that of another cell, needed elements that agree where cells meet"
                )
            counts[at] = len(dofs)
    counts = np.maximum(counts, 0)
    first = start + np.cumsum(counts) - counts
    for kind, lists in own.items():
        leaf, place = leaves[kind]
        for local, dofs in enumerate(lists):
            if not len(dofs):
                continue
            order = np.arange(len(dofs))[None]
            if 0 < dim < mesh.tdim and not leaf.is_quadrature:
                of_state = permutations(leaf.basix_element, dim, local)
                if of_state is not None:
                    order = of_state[mesh.states(kind, dim)[:, local]]
            maps[kind][:, place[dofs]] = first[numbers[kind][:, local]][:, None] + order
    return int(counts.sum())


def _entity_dofs(leaf: Element, dim: int, tdim: int, n: int) -> list[list[int]]:
    if leaf.is_quadrature:
        return [list(range(leaf.dim))] if dim == tdim else [[]] * n
    return leaf.basix_element.entity_dofs[dim]


def _real(leaves: dict[str, tuple[Element, Array]], maps: dict[str, Array], start: int) -> int:
    """One number for all cells."""
    real = [(kind, own) for kind, (leaf, own) in leaves.items() if leaf.is_real]
    for kind, own in real:
        maps[kind][:, own] = start
    return int(bool(real))
