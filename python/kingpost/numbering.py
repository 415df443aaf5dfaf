"""Orders of cells and numbers of degrees of freedom that transfers on a card prefer."""

from __future__ import annotations

from typing import Any, Sequence

from kingpost.errors import ShapeError
from kingpost.sparse import _beside, _host


def order_cells(cells: Any, window: int = 64) -> Any:
    """An order of cells in which those side by side touch entities that are numbered side by side.

    Within each window of vertices, by the lowest of a cell, cells with the same differences of their vertices'
    numbers follow each other. Of a mesh that is made of rows of equal cells, such as boxes of tetrahedra, 32
    cells that a card works on at once then read and update consecutive entries. Where all cells differ, they
    stay near each other.

    Args:
        cells: The vertices of the cells, i32 ``[cells, vertices]``, numbered locally, of NumPy, CuPy or PyTorch.
        window: Numbers of vertices in a window.

    Returns:
        The old number of each new cell, ``[cells]``, of the same library: ``dofs[order]`` is a map in the new
        order. Numbers that are then given by first touch, as :func:`number_by_dimension` does, follow it.

    Raises:
        ShapeError: No table of vertices, or a window without any.
    """
    import numpy

    given, cells = cells, _host(cells)
    if cells.ndim != 2 or cells.shape[1] == 0:
        raise ShapeError(f"cells: found the shape {tuple(cells.shape)}, needed [cells, vertices]")
    if window < 1:
        raise ShapeError(f"window: found {window}, needed at least 1")
    lowest = cells.min(axis=1)
    # the last key is the first to sort by; ties keep the order that the cells have
    keys = [lowest, *(cells[:, k] - lowest for k in reversed(range(cells.shape[1]))), lowest // window]
    return _beside(given, numpy.lexsort(keys))


def number_by_dimension(dofs: Any, entity_parts: Sequence[int]) -> tuple[Any, Any]:
    """New numbers for a map: edges first, then faces and cells, and vertices last, each by first touch.

    Args:
        dofs: The map, i32 ``[cells, columns]``, of NumPy, CuPy or PyTorch; the results are of the same.
        entity_parts: How many columns are of vertices, edges, faces and the interior, in this order, as
            far as there are any: :attr:`Operator.entity_parts`.

    Returns:
        The map with new numbers, i32 ``[cells, columns]``, and the old number of each new one,
        ``order`` ``[n]``: ``values[order]`` are the values of a function in the new order, and
        ``old[order] = new`` brings a result back. Numbers that no cell has come last.

    Raises:
        ShapeError: Parts that are not those of the columns.
    """
    import numpy

    given, dofs = dofs, _host(dofs)
    if dofs.ndim != 2 or sum(entity_parts) != dofs.shape[1]:
        shape = tuple(dofs.shape)
        raise ShapeError(f"dofs: found the shape {shape}, needed [cells, {sum(entity_parts)}], the sum of the parts")
    starts = [sum(entity_parts[:k]) for k in range(len(entity_parts) + 1)]
    ranges = list(zip(starts[:-1], starts[1:]))
    found = []
    for start, end in [*ranges[1:], ranges[0]]:
        numbers, first = numpy.unique(dofs[:, start:end].ravel(), return_index=True)
        found.append(numbers[numpy.argsort(first)])
    used = numpy.concatenate(found)
    size = int(dofs.max()) + 1 if dofs.size else 0
    rest = numpy.ones(size, dtype=bool)
    rest[used] = False
    order = numpy.concatenate([used, numpy.flatnonzero(rest).astype(used.dtype)])
    new = numpy.empty(size, dtype=dofs.dtype)
    new[order] = numpy.arange(size, dtype=dofs.dtype)
    return _beside(given, new[dofs]), _beside(given, order)

