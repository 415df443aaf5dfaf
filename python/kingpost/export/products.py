"""Tables of elements on squares and cubes as products of tables of one coordinate.

A table of Q6 at 343 points has 117,649 entries, and its factors have 147. The engine finds sums axis by axis in
values that are products to 14 digits; those that basix tabulates in three coordinates are not from Q5 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import basix
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: Cells whose elements may be products.
GRIDS = (basix.CellType.quadrilateral, basix.CellType.hexahedron)
# A product is compared with what basix tabulates, which carries an error of 5e-14 at degree 8.
_TOLERANCE = 1e-10


class Product(NamedTuple):
    """A table by its factors [points][dofs], of which the last counts fastest, and the column of each dof."""

    factors: tuple[Array, ...]
    columns: tuple[int, ...]

    @property
    def table(self) -> Array:
        """The table [points][dofs]."""
        return _outer(self.factors)[:, list(self.columns)]

    @property
    def json(self) -> dict[str, Any]:
        """The `values` of a table."""
        entry: dict[str, Any] = {"factors": [factor.tolist() for factor in self.factors]}
        ordered = self.columns == tuple(range(len(self.columns)))
        return entry if ordered else entry | {"columns": list(self.columns)}


def _outer(factors: Sequence[Array]) -> Array:
    """The product of tables, the last of which counts fastest."""
    whole: Array = np.ones((1, 1))
    for factor in factors:
        whole = np.asarray(np.kron(whole, factor), dtype=np.float64)
    return whole


def grid(points: Array) -> list[Array] | None:
    """Coordinates along each axis of points [points][dim], if they are a grid whose last axis counts fastest."""
    axes, rest = [], points
    for _ in range(points.shape[1]):
        moves = np.flatnonzero(np.abs(np.diff(rest[:, 0])) > 1e-12)
        run = int(moves[0]) + 1 if len(moves) else len(rest)
        axes.append(np.ascontiguousarray(rest[::run, 0]))
        rest = rest[:run, 1:]
    whole = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, points.shape[1])
    return axes if whole.shape == points.shape and np.allclose(whole, points, rtol=0, atol=1e-14) else None


@lru_cache(maxsize=256)
def _line(
    plain: basix.finite_element.FiniteElement,
) -> tuple[basix.finite_element.FiniteElement, tuple[int, ...]] | None:
    """The element of one coordinate whose products are the functions of an element, and the column of each."""
    tdim = len(basix.topology(plain.cell_type)) - 1
    if plain.cell_type not in GRIDS:
        return None
    variants = (plain.lagrange_variant, plain.dpc_variant, plain.discontinuous)
    try:
        line = basix.create_element(plain.family, basix.CellType.interval, plain.degree, *variants)
    except RuntimeError:
        # a family without elements on intervals
        return None
    if line.dim**tdim != plain.dim:
        return None
    points = np.random.default_rng(1).uniform(0.05, 0.95, (8, tdim))
    theirs = np.asarray(plain.tabulate(0, points))[0, :, :, 0]
    along = [np.asarray(line.tabulate(0, points[:, axis : axis + 1]))[0, :, :, 0] for axis in range(tdim)]
    apart = np.zeros((plain.dim, plain.dim))
    for at, own in enumerate(theirs):
        functions = _outer([table[at : at + 1] for table in along])
        np.maximum(apart, np.abs(own[:, None] - functions), out=apart)
    columns = tuple(int(column) for column in apart.argmin(axis=1))
    if len(set(columns)) < plain.dim or apart[range(plain.dim), columns].max() > _TOLERANCE:
        return None
    return line, columns


def product(plain: basix.finite_element.FiniteElement, derivatives: tuple[int, ...], points: Array) -> Product | None:
    """The table of a derivative of an element at points [points][dim] as a product, if it is one."""
    found, axes = _line(plain), grid(points)
    if found is None or axes is None:
        return None
    line, columns = found
    tables = [
        np.asarray(line.tabulate(order, at[:, None]))[order, :, :, 0]
        for order, at in zip(derivatives, axes, strict=True)
    ]
    return Product(tuple(tables), columns)


def identity(points: Array) -> Product | None:
    """The values of a quadrature element at its own points [points][dim] as a product, if they are a grid."""
    axes = grid(points)
    if axes is None:
        return None
    return Product(tuple(np.eye(len(axis)) for axis in axes), tuple(range(len(points))))


def agrees(product: Product, table: Array) -> bool:
    """Whether a product is a table that was computed in another way."""
    largest = max(float(np.max(np.abs(table))), 1.0)
    return bool(np.max(np.abs(product.table - table)) <= _TOLERANCE * largest)
