"""Preconditioners of forms on several devices that need no matrix of the form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from kingpost.arrays import _about
from kingpost.errors import ArgumentError, ShapeError
from kingpost.solvers import _count, _reals, _rows_of, _size

if TYPE_CHECKING:
    from kingpost.divided_solve import System
    from kingpost.division import Division

Array = Any
#: Steps of Chebyshev's iteration, and the ratio of its interval for each of them.
STEPS, RATIO_OF_STEP = 4, 5.0
NAMES = ("none", "jacobi", "chebyshev")


class CoarseSpace:
    """A coarse level for :meth:`kingpost.Division.solve`: the ``preconditioner`` is then a cycle of two levels.

    ``matrix`` is that of the form on a space of few unknowns, such as P1 on the same mesh, ``[m, m]``: a
    :class:`kingpost.Csr` or a sparse matrix of SciPy. ``interpolation``, ``[n, m]``, takes coarse unknowns to those of
    the division. Coarse unknowns from which a prescribed one is interpolated are left out, so that corrections are zero
    there. Each device has all of the coarse level, on which a cycle of algebraic multigrid solves nearly: iterations are
    those of one device. ``components`` are the coarse unknowns that belong together, and ``points``, f64
    ``[m / components, dim]``, those of displacements for their rigid motions.

    Before and after that, ``steps`` of Chebyshev's iteration with Jacobi's reduce what the coarse level lacks:
    eigenvalues from a ``ratio``-th of the largest on, five times the steps unless it is given (Adams et al. 2003).

    Raises:
        ShapeError: Matrices that do not fit each other.
        ArgumentError: Options that mean nothing, numbers that are infinite or NaN.
    """

    def __init__(
        self, matrix: Any, interpolation: Any, *, components: int = 1, points: Any = None, steps: int = STEPS,
        ratio: Optional[float] = None,
    ) -> None:  # fmt: skip
        import numpy

        self._matrix, self._rows = _rows_of(matrix), _rows_of(interpolation)
        self.steps, self.ratio = _steps(steps, ratio)
        #: Coarse unknowns, and those that they are interpolated to.
        self.size, self.fine = len(self._matrix[0]) - 1, len(self._rows[0]) - 1
        names = ("the matrix", self._matrix), ("the interpolation", self._rows)
        for name, (starts, columns, values) in names:
            if len(starts) < 2 or starts[0] != 0 or (numpy.diff(starts) < 0).any() or not starts[-1] == len(columns) == len(values):
                raise ShapeError(f"{name} has rows that do not fit its {len(columns)} columns and {len(values)} numbers")
            if columns.min(initial=0) < 0 or columns.max(initial=0) >= self.size:
                outside = columns.min() if columns.min() < 0 else columns.max()
                raise ShapeError(f"{name} has column {outside}; needed 0 to {self.size - 1}, those of the coarse matrix")
            if not numpy.isfinite(values).all():
                raise ArgumentError(f"{name} holds a number that is infinite or NaN")
        self.components = _count("components", components, 1)
        if self.size % self.components:
            raise _about(ArgumentError, "components", f"`components` is {components}; needed a divisor of {self.size} unknowns")
        at = numpy.zeros((0, 0)) if points is None else _reals(points, "points", flat=False)
        if points is not None and (at.ndim != 2 or len(at) != self.size // self.components):
            needed = f"[{self.size // self.components}, dim]"
            raise _about(ShapeError, "points", f"`points` has the shape {list(at.shape)}; needed {needed}")
        self._points = numpy.ascontiguousarray(at)

    def of_parts(self, division: Division, kept: Array) -> list[tuple]:
        """What the engine gets of it, by part, with some prescribed unknowns."""
        import numpy

        if self.fine != len(kept):
            message = f"the interpolation has {self.fine} rows; needed one for each of the {len(kept)} unknowns"
            raise _about(ShapeError, "preconditioner", message)
        starts, columns, weights = self._rows
        counts = numpy.diff(starts)
        left_out = numpy.zeros(self.size, bool)
        left_out[columns[numpy.repeat(kept, counts) & (weights != 0.0)]] = True
        # rows of prescribed unknowns are interpolated from what is left out
        weights = numpy.where(left_out[columns], 0.0, weights)
        raw, (components, points) = self._without(left_out), (self.components, self._points)
        coarse = tuple(part.tobytes() for part in raw), (components, points.shape[1], points.tobytes())
        found = []
        for part in division._own:
            own = division._unknowns[part]
            of_row = counts[own]
            first = numpy.concatenate([[0], numpy.cumsum(of_row)])
            at = numpy.repeat(starts[own] - first[:-1], of_row) + numpy.arange(first[-1])
            rows = first.astype("i4"), columns[at].astype("i4"), weights[at]
            found.append((coarse, tuple(part.tobytes() for part in rows)))
        return found

    def _without(self, left_out: Array) -> tuple[Array, Array, Array]:
        """The matrix with the identity for some unknowns; columns ascend in a row."""
        import numpy

        starts, columns, values = self._matrix
        rows = numpy.repeat(numpy.arange(self.size), numpy.diff(starts))
        values = numpy.where(left_out[rows] | left_out[columns], numpy.where(rows == columns, 1.0, 0.0), values)
        if not ((rows[1:] > rows[:-1]) | (columns[1:] >= columns[:-1])).all():
            order = numpy.lexsort((columns, rows))
            rows, columns, values = rows[order], columns[order], values[order]
        twice = (rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1])
        if twice.any():
            at = int(numpy.flatnonzero(twice)[0])
            raise ArgumentError(f"the matrix has two entries ({rows[at]}, {columns[at]}); needed one of each, as `tocsr` makes it")
        kept = (values != 0.0) | (rows == columns)
        counts = numpy.bincount(rows[kept], minlength=self.size)
        return numpy.concatenate([[0], numpy.cumsum(counts)]).astype("i4"), columns[kept].astype("i4"), values[kept]

    def __repr__(self) -> str:
        return f"<kingpost.CoarseSpace of {self.size} unknowns for {self.fine}>"


def polynomials(division: Division, preconditioner: Any, diagonal: Any, system: System) -> Optional[list[tuple]]:
    """What the engine gets of a preconditioner, by part; none of one that is a diagonal."""
    import numpy

    is_coarse = isinstance(preconditioner, CoarseSpace)
    if not is_coarse and preconditioner not in (None, *NAMES):
        message = f"`preconditioner` is {preconditioner!r}; needed {', '.join(NAMES)}, or a `kingpost.CoarseSpace`"
        raise _about(ArgumentError, "preconditioner", message)
    if diagonal is None and preconditioner not in (None, "none"):
        message = f"`preconditioner` is {preconditioner!r}, and `diagonal` is missing"
        raise _about(ArgumentError, "diagonal", f'{message}; `kingpost.jit(form, matrix="diagonal")` computes it')
    if diagonal is not None and preconditioner == "none":
        raise _about(ArgumentError, "diagonal", "`preconditioner` is 'none', and a `diagonal` is given; leave one of both out")
    if not is_coarse and preconditioner != "chebyshev":
        return None
    steps, ratio = (preconditioner.steps, preconditioner.ratio) if is_coarse else _steps(STEPS, None)
    # the same of an unknown whichever part has it: a part of each eigenvector, between -1/2 and 1/2
    start = numpy.modf(0.754877666246692760 * numpy.arange(len(system.kept)))[0] - 0.5
    starts = [start[division._unknowns[part]].tobytes() for part in division._own]
    coarse = _levels(division, preconditioner, system.kept) if is_coarse else [None] * len(starts)
    return [(steps, ratio, start, of_part) for start, of_part in zip(starts, coarse)]


def _levels(division: Division, coarse: CoarseSpace, kept: Array) -> list[tuple]:
    """The coarse level by part; those of the solve before are on the devices, and are told by their number alone."""
    import numpy

    known = division._coarse
    if known is not None and known[1] is coarse and numpy.array_equal(known[2], kept):
        return [(known[0], None)] * len(division._own)
    number = 0 if known is None else known[0] + 1
    found = coarse.of_parts(division, kept)
    division._coarse = number, coarse, kept.copy()
    return [(number, of_part) for of_part in found]


def _steps(steps: int, ratio: Optional[float]) -> tuple[int, float]:
    steps = _count("steps", steps, 1)
    found = RATIO_OF_STEP * steps if ratio is None else _size("ratio", ratio)
    if not found > 1.0:
        raise _about(ArgumentError, "ratio", f"`ratio` is {ratio:g}; needed more than 1")
    return steps, found
