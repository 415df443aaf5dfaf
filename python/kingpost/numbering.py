"""Numbers of degrees of freedom in the order that transfers on a card prefer."""

from __future__ import annotations

from typing import Any, Sequence

from kingpost.errors import ShapeError
from kingpost.sparse import _beside, _host


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

