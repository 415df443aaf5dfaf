"""Meshes divided among devices."""

from __future__ import annotations

from typing import Any

from kingpost import _kingpost
from kingpost.arrays import _about
from kingpost.errors import ArgumentError, ShapeError, Unavailable
from kingpost.solvers import _count
from kingpost.sparse import _host

Array = Any

#: The vertices of cells, and those that two cells with a common facet share.
VERTICES = {
    "interval": (2, 1), "triangle": (3, 2), "quadrilateral": (4, 2), "tetrahedron": (4, 3), "hexahedron": (8, 4),
    "prism": (6, 3), "pyramid": (5, 3),
}  # fmt: skip


def partition(cells: Array, parts: int, cell: str) -> Array:
    """The part of each cell by METIS (Karypis & Kumar 1998): parts of one size that share few facets.

    ``cells`` are the vertices of the cells, ``[cells, vertices]``, of which further columns (of curved cells) are left
    out; ``cell`` is the name of their shape as of UFL. It needs the package ``pymetis``.

    Raises:
        Unavailable: ``pymetis`` is not installed.
        ArgumentError: Fewer cells than parts, or a shape that there is not.
    """
    import numpy

    try:
        import pymetis
    except ImportError as error:
        message = f"METIS is needed and cannot be imported ({error}); install it with `pip install 'kingpost[metis]'`"
        raise Unavailable(message) from error
    if cell not in VERTICES:
        raise _about(ArgumentError, "cell", f"`cell` is {cell!r}; needed one of {', '.join(VERTICES)}")
    vertices, shared = VERTICES[cell]
    cells = _host(cells)
    if cells.ndim != 2 or cells.shape[1] < vertices:
        raise _about(ShapeError, "cells", f"`cells` has the shape {list(cells.shape)}; needed [cells, {vertices}]")
    parts = _at_most(parts, len(cells))
    if parts == 1:
        return numpy.zeros(len(cells), "i4")
    # numbers without gaps, which METIS needs
    _, numbered = numpy.unique(cells[:, :vertices], return_inverse=True)
    found = pymetis.part_mesh(
        parts, numbered.reshape(-1, vertices).tolist(), gtype=pymetis.GType.DUAL, ncommon=shared
    )  # fmt: skip
    return numpy.asarray(found.element_part, "i4")


def _at_most(parts: int, n_cells: int) -> int:
    parts = _count("parts", parts, 1)
    if parts > n_cells:
        raise _about(ArgumentError, "parts", f"{n_cells} cells make no {parts} parts; use fewer devices")
    return parts


def bisect(centres: Array, parts: int) -> Array:
    """The part of each point, ``[points, dim]``: recursively across the longest side of the box around them."""
    import numpy

    parts = _at_most(parts, len(centres))
    raw = _kingpost.bisect(numpy.ascontiguousarray(centres, "f8").tobytes(), centres.shape[1], parts)
    return numpy.frombuffer(raw, "i4")
