"""Tables of reference derivatives at the points of a rule, on a cell or on all of its facets."""

from __future__ import annotations

from collections import OrderedDict
from functools import lru_cache
from math import comb
from typing import Any

import basix
import numpy as np

from .elements import Element, scalar_element
from .errors import UnsupportedForm
from .products import Array as Array
from .products import Product, agrees, identity, product

# Basix solves one Vandermonde system an element: its tables carry an error of a few units in the
# 15th digit of their largest entry (7e-15 for the bubble of degree 3 in a vertex).
_SNAP = 5e-14
_CONSTANT = 1e-13

_tabulated: OrderedDict[Any, Array] = OrderedDict()
_TABULATED_ENTRIES = 1024


def clean(values: Array, scale: float = 1.0) -> Array:
    """`values` [..., points, dofs] with exact zeros and ones, and with exactly equal rows.

    Entries below 5e-14 of the largest become 0, those within 5e-14 of +-1 become +-1. Rows that
    differ by less than 1e-13 of the largest become the first row. The largest is at least `scale`:
    a bubble's gradient in the midpoint, and its values in the vertices, are zero.
    """
    if values.size == 0:
        return values
    largest = max(float(np.max(np.abs(values))), scale)
    if values.shape[-2] > 1:
        first = values[..., :1, :]
        if np.max(np.abs(values - first)) <= _CONSTANT * largest:
            values = np.broadcast_to(first, values.shape)
    values = np.where(np.abs(values) <= _SNAP * largest, 0.0, values)
    units = np.round(values)
    near = (np.abs(units) == 1.0) & (np.abs(values - units) <= _SNAP)
    return np.where(near, units, values) + 0.0


def permute_points(points: Array, state: int) -> Array:
    """Points of the reference facet [points, tdim - 1] as a facet in orientation `state` has them.

    `state` is `reflected + 2 * rotations`, as in DOLFINx's facet permutations: the rotations come
    first, then the reflection.
    """
    moved = points.copy()
    if points.shape[1] == 1:
        return 1.0 - moved if state % 2 else moved
    return moved


def permute_face_points(points: Array, corners: int, state: int) -> Array:
    """As `permute_points`, on a triangle (`corners` 3) or a quadrilateral (4)."""
    x, y = points[:, 0], points[:, 1]
    for _ in range(state // 2):
        x, y = y, (1.0 - x - y if corners == 3 else 1.0 - x)
    if state % 2:
        x, y = y, x
    return np.column_stack([x, y])


class Frame:
    """Where tables are taken: the cell type, the kind of integral and the rule's points.

    The points are [points][dim], or those of each facet where facets are of two kinds.

    Tables of a cell integral have shape [points][dofs], of a facet integral
    [facets][points][dofs], of an interior facet integral [permutations][facets][points][dofs].
    """

    def __init__(self, cell: str, kind: str, points: Array) -> None:
        self.cell = cell
        self.kind = kind
        self.points = np.ascontiguousarray(points, dtype=np.float64)
        self.type = basix.CellType[cell]
        self.topology = basix.topology(self.type)
        self.geometry = np.asarray(basix.geometry(self.type))
        self.tdim = len(self.topology) - 1
        self.facets = len(self.topology[self.tdim - 1]) if self.tdim else 0
        self.corners = [len(facet) for facet in self.topology[self.tdim - 1]] if self.tdim else []
        self.permutations = self._permutations()
        self.cell_points, self.lead = self._place()
        self.key = (cell, kind, self.points.tobytes(), self.points.shape)
        self._tables: dict[Any, Array] = {}
        self._products: dict[Any, Product] = {}

    def _permutations(self) -> int:
        if self.kind != "interior_facet" or self.tdim < 2:
            return 1
        return 2 if self.tdim == 2 else 2 * max(self.corners)

    def _permuted(self, state: int, facet: int) -> Array:
        points = self.points if self.points.ndim == 2 else self.points[facet]
        if self.tdim < 3:
            return permute_points(points, state)
        # a triangle of a cell that has quadrilaterals, too, is in fewer states than these
        corners = self.corners[facet]
        return permute_face_points(points, corners, state % (2 * corners))

    def _place(self) -> tuple[Array, tuple[int, ...]]:
        """All points in the cell's coordinates, and the leading shape they stand for."""
        if self.kind == "cell":
            return self.points, (len(self.points),)
        placed = [
            self.on_facet(facet, self._permuted(state, facet))
            for state in range(self.permutations)
            for facet in range(self.facets)
        ]
        lead: tuple[int, ...] = (self.facets, self.points.shape[-2])
        if self.kind == "interior_facet":
            lead = (self.permutations, *lead)
        return np.concatenate(placed), lead

    def on_facet(self, facet: int, points: Array) -> Array:
        """Points of the reference facet [points, tdim - 1] in the cell's coordinates."""
        corners = self.geometry[self.topology[self.tdim - 1][facet]]
        # A quadrilateral's fourth vertex is not an axis of its reference.
        axes = corners[1 : self.tdim] - corners[0]
        return corners[0] + points @ axes

    def table(self, element: Element, derivatives: tuple[int, ...], average: str | None) -> Array:
        """The cleaned table of one scalar element, all leading dimensions kept."""
        key = (repr(element), derivatives, average)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = self._table(element, derivatives, average)
        return table

    def _table(self, element: Element, derivatives: tuple[int, ...], average: str | None) -> Array:
        if average is not None:
            return self._averaged(element, average)
        if element.is_quadrature:
            table = self._quadrature(element, derivatives)
            factors = identity(self.points) if self.kind == "cell" else None
        else:
            order = sum(derivatives)
            table = self._raw(element, order, derivatives)
            factors = self._factors(element, derivatives, table)
            table = clean(table, _scale(element, self.type, order))
        if factors is None:
            return table
        self._products[repr(element), derivatives] = factors
        return factors.table

    def product(self, element: Element, derivatives: tuple[int, ...], average: str | None) -> Product | None:
        """The factors of a table, if it is known as a product."""
        self.table(element, derivatives, average)
        return None if average is not None else self._products.get((repr(element), derivatives))

    def _factors(self, element: Element, derivatives: tuple[int, ...], table: Array) -> Product | None:
        """Tables of one coordinate, cleaned, whose product a table of a cell integral is."""
        plain = scalar_element(element) if self.kind == "cell" else None
        found = None if plain is None else product(plain, derivatives, self.points)
        if found is None or not agrees(found, table):
            return None
        return found._replace(factors=tuple(clean(factor) for factor in found.factors))

    def _raw(self, element: Element, order: int, derivatives: tuple[int, ...]) -> Array:
        key = (repr(element), order, self.key)
        tables = _tabulated.get(key)
        if tables is None:
            tables = np.asarray(element.tabulate(order, self.cell_points), dtype=np.float64)
            _tabulated[key] = tables
            if len(_tabulated) > _TABULATED_ENTRIES:
                _tabulated.popitem(last=False)
        if element.is_real:
            chosen = tables[0] if order == 0 else np.zeros_like(tables[0])
        else:
            chosen = tables[basix.index(*derivatives)]
        return chosen.reshape(*self.lead, -1)

    def _quadrature(self, element: Element, derivatives: tuple[int, ...]) -> Array:
        points = element.custom_quadrature()[0]
        if any(derivatives):
            raise UnsupportedForm(
                "a derivative of a function on a quadrature element",
                "project or interpolate it to a Lagrange space first",
            )
        if points.shape != self.cell_points.shape or not np.allclose(points, self.cell_points):
            raise UnsupportedForm(
                f"a quadrature element of {len(points)} points in a {self.kind} integral of "
                f"{len(self.cell_points)} other points",
                "give the measure the element's rule",
            )
        return np.eye(len(points)).reshape(*self.lead, -1)

    def _averaged(self, element: Element, average: str) -> Array:
        points, weights, entities = _average_rule(self.cell, average, element)
        if average == "facet" and self.kind == "cell":
            raise UnsupportedForm("`facet_avg` in an integral over cells", "use `cell_avg`")
        rows = []
        for entity in range(entities):
            at = points if average == "cell" else self.on_facet(entity, points)
            rows.append(weights @ np.asarray(element.tabulate(0, at))[0] / np.sum(weights))
        table = np.asarray(rows)
        if self.kind != "cell" and average == "cell":
            table = np.repeat(table, self.facets, axis=0)
        shape = (*self.lead, table.shape[-1])
        spread = table[0] if self.kind == "cell" else table[:, None, :]
        return clean(np.broadcast_to(spread, shape))

    def is_zero_function(self, element: Element, derivatives: tuple[int, ...]) -> bool:
        """Whether a derivative of an element's functions is zero in the whole cell."""
        if element.is_quadrature:
            return False
        return _is_zero_function(element, self.type, derivatives)

    def facet_values(self, by_facet: Array) -> Array:
        """A number a facet [facets] as a table without dofs."""
        return np.broadcast_to(by_facet[:, None, None], (*self.lead, 1))

    def weights(self, weights: Array) -> Array:
        """The weights of points on each facet [facets, points] as a table without dofs."""
        return np.broadcast_to(weights[..., None], (*self.lead, 1))

    def coordinates(self, axis: int) -> Array:
        """The reference coordinate `axis` as a table without dofs."""
        return clean(self.cell_points[:, axis].reshape(*self.lead, 1))

    def facet_coordinates(self, axis: int) -> Array:
        """The reference facet's coordinate `axis` as a table without dofs, equal on both sides."""
        return np.broadcast_to(self.points[..., axis : axis + 1], (*self.lead, 1))

    def rows(self, rows: tuple[tuple[tuple[int, float], ...], ...], dofs: int) -> Array:
        """Combinations of degrees of freedom, one for all facets or one a facet, as a table."""
        values = np.zeros((len(rows), dofs))
        for row, entries in enumerate(rows):
            for dof, factor in entries:
                values[row, dof] += factor
        spread = values[0] if len(rows) == 1 else values[:, None, :]
        return np.broadcast_to(spread, (*self.lead, dofs))


@lru_cache(maxsize=512)
def _inside(element: Element, cell: basix.CellType, order: int) -> Array:
    """All derivatives up to an order in six points inside the reference cell."""
    tdim = len(basix.topology(cell)) - 1
    points = np.random.default_rng(1).uniform(0.05, 0.3, (6, tdim))
    return np.asarray(element.tabulate(order, points))


@lru_cache(maxsize=512)
def _scale(element: Element, cell: basix.CellType, order: int) -> float:
    """The largest derivative of an order inside the reference cell."""
    if element.is_real:
        return 1.0
    tdim = len(basix.topology(cell)) - 1
    tables = _inside(element, cell, order)
    return float(np.max(np.abs(tables[-_count(order, tdim) :]), initial=1e-3))


@lru_cache(maxsize=1024)
def _is_zero_function(element: Element, cell: basix.CellType, derivatives: tuple[int, ...]) -> bool:
    """Whether a derivative of all basis functions is zero everywhere, and not only in points."""
    if element.is_real:
        return True
    tables = _inside(element, cell, sum(derivatives))
    # The scale of the values: a derivative of rounding errors is one too.
    bound = _SNAP * max(1.0, *(_scale(element, cell, n) for n in range(sum(derivatives))))
    return bool(np.max(np.abs(tables[basix.index(*derivatives)])) <= bound)


def _count(order: int, tdim: int) -> int:
    """Partial derivatives of an order."""
    return comb(order + tdim - 1, order)


@lru_cache(maxsize=64)
def _frame(cell: str, kind: str, shape: tuple[int, ...], points: bytes) -> Frame:
    return Frame(cell, kind, np.frombuffer(points).reshape(shape))


def frame(cell: str, kind: str, points: Array) -> Frame:
    """The frame of a rule; frames are shared, so that a table is made once."""
    points = np.ascontiguousarray(points, dtype=np.float64)
    return _frame(cell, kind, points.shape, points.tobytes())


class Frames:
    """The frames of both sides of a facet, which differ where its cells are of two kinds."""

    def __init__(self, one: Frame, other: Frame | None = None) -> None:
        self._one, self._other = one, other or one

    def of(self, side: str | None) -> Frame:
        """The frame of a side; without one that of `+`."""
        return self._other if side == "-" else self._one

    @property
    def cell(self) -> str:
        """The cell that has at least as many facets as each of the two."""
        return max((self._one, self._other), key=lambda frame: frame.facets).cell

    def padded(self, table: Array) -> Array:
        """A table of one side in the shape of both: facets that a cell does not have are its first one again."""
        if self._one is self._other:
            return table
        states = max(self._one.permutations, self._other.permutations)
        facets = np.arange(max(self._one.facets, self._other.facets))
        facets[facets >= table.shape[1]] = 0
        return table[np.arange(states) % len(table)][:, facets]


@lru_cache(maxsize=64)
def _average_points(cell: str, average: str, degree: int) -> tuple[Array, Array, int]:
    kind = basix.CellType[cell]
    entities = 1
    if average == "facet":
        facets = basix.cell.subentity_types(kind)[-2]
        if len(set(facets)) > 1:
            raise UnsupportedForm(f"`facet_avg` on facets of a `{cell}`, which are of two kinds", "use `avg`")
        kind, entities = facets[0], len(facets)
    if kind == basix.CellType.point:
        return np.ones((1, 0)), np.ones(1), entities
    points, weights = basix.make_quadrature(kind, degree)
    return np.asarray(points), np.asarray(weights), entities


def _average_rule(cell: str, average: str, element: Element) -> tuple[Array, Array, int]:
    if element.is_quadrature:
        return (*element.custom_quadrature(), 1)
    return _average_points(cell, average, element.embedded_superdegree)
