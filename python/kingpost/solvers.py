"""Linear systems and Newton's method, solved on a device."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Callable, Optional

from kingpost import _kingpost
from kingpost.arrays import _about
from kingpost.errors import ArgumentError, ShapeError
from kingpost.matrix_free import METHODS, checked, product_of
from kingpost.show import residual_svg
from kingpost.sparse import _beside, _host


@dataclass(frozen=True)
class Solution:
    """What :func:`solve` found, and how it went."""

    #: The solution, an array like the right-hand side.
    x: Any
    #: Whether the residual is small enough; of all columns.
    converged: bool
    #: Why it stopped; of the first column that did not converge, if there is one.
    reason: str
    #: Norms of the residual before the first iteration and after each; of the column with the most.
    residuals: list[float]
    #: Seconds of its kernels by the device's clock.
    seconds: float
    #: Seconds that the preconditioner took to make.
    setup_seconds: float

    @property
    def iterations(self) -> int:
        """The number of iterations."""
        return max(0, len(self.residuals) - 1)

    def __str__(self) -> str:
        end = f", residual {self.residuals[0]:.3g} to {self.residuals[-1]:.3g}" if self.residuals else ""
        return f"{self.reason} after {self.iterations} iterations{end}"

    def _repr_svg_(self) -> Optional[str]:
        return residual_svg(self.residuals, str(self))


def solve(
    matrix: Any,
    b: Any,
    *,
    method: str = "cg",
    preconditioner: Any = "jacobi",
    device: str = "default",
    relative: float = 1e-10,
    absolute: float = 0.0,
    max_iterations: int = 10_000,
    components: int = 1,
    points: Any = None,
) -> Solution:
    """Solves ``matrix x = b`` on a device.

    ``matrix`` is a square one: a :class:`kingpost.Csr`, a sparse matrix of SciPy or CuPy in any format (and
    whatever else has ``tocsr`` or ``to_scipy``), or anything with ``indptr``, ``indices`` and ``data`` by
    rows; each row has an entry on the diagonal. ``b`` is an array ``[n]``, or ``[n, k]`` for k right-hand
    sides, for which the preconditioner is made once. All are computed with in double precision, and copied
    to the device.

    ``method`` is ``cg`` or ``chebyshev`` for symmetric positive definite matrices, ``gmres`` or
    ``bicgstab`` for any. ``preconditioner`` is ``none``, ``jacobi``, ``block-jacobi``, ``chebyshev``,
    ``amg`` (smoothed aggregation) or ``amg-f32`` (the same with matrices in single precision in its
    cycles). The last two and ``block-jacobi`` take ``components`` unknowns that belong together; both
    ``amg`` take the ``points`` ``[n / components, dim]`` of displacements for their rigid motions.

    ``matrix`` may also be a ``LinearOperator`` of SciPy, or a function from a vector to its product, and
    ``preconditioner`` a function or a ``LinearOperator`` that approximates the inverse. The products are then the
    caller's, and ``cg``, ``gmres``, or ``minres`` for symmetric matrices that are not definite, runs on the host. A
    function has no preconditioner unless one is given.

    It stops when the norm of the residual is at most ``relative`` times that of ``b``, or ``absolute``, and
    after ``max_iterations``; with 0 of them, the start of zero is what is judged and returned. Numbers may be
    of any size: system and residuals are scaled by powers of two where squares would vanish.
    That it did not converge is in the result; arrays that do not fit and names that are not known raise
    :class:`ArgumentError`.
    """
    import numpy

    limits = (_size("relative", relative), _size("absolute", absolute), _count("max_iterations", max_iterations))
    components = _count("components", components, 1)
    product, before = product_of(matrix), product_of(preconditioner)
    if product is not None or before is not None:
        return _matrix_free(matrix, b, method, preconditioner, device, limits)
    names = {"method": method, "preconditioner": preconditioner, "device": device}
    for name, value in names.items():
        if not isinstance(value, str):
            raise _about(ArgumentError, name, f"`{name}` is a {type(value).__name__}, needed a name")
    matrix = _by_rows(matrix)
    starts, columns, data = _rows_of(matrix)
    n = len(starts) - 1
    shape = getattr(matrix, "shape", (n, n))
    if tuple(shape) != (n, n):
        raise ShapeError(f"the matrix has the shape {list(shape)} and {n} rows; needed as many columns as rows")
    if n < 1 or starts[0] != 0 or (numpy.diff(starts) < 0).any() or starts[-1] != len(columns):
        raise ArgumentError(
            f"`indptr` of the matrix runs from {starts[0] if len(starts) else 'nothing'} to"
            f" {starts[-1] if len(starts) else 'nothing'}; needed ascending places from 0 to the"
            f" {len(columns)} entries of `indices`"
        )
    if columns.max(initial=0) >= n:
        raise ArgumentError(f"`indices` of the matrix holds column {columns.max()}; needed 0 to {n - 1}")
    if len(data) != len(columns):
        raise ShapeError(f"the matrix has {len(columns)} `indices` and {len(data)} numbers of `data`; needed as many")
    right = _reals(b, "b", flat=False)
    if right.ndim not in (1, 2) or right.shape[0] != n:
        raise ShapeError(f"`b` has the shape {list(right.shape)}; needed [{n}] or [{n}, k]")
    if not (numpy.isfinite(data).all() and numpy.isfinite(right).all()):
        raise ArgumentError("the matrix or `b` holds a number that is infinite or NaN")
    if n % components:
        raise ArgumentError(f"`components` is {components}; needed a divisor of the {n} unknowns")
    at = numpy.zeros((0, 0)) if points is None else _reals(points, "points", flat=False)
    if points is not None and (at.ndim != 2 or at.shape[0] != n // components):
        raise ShapeError(f"`points` has the shape {list(at.shape)}; needed [{n // components}, dim]")
    solved, reports, setup = _kingpost.solve_rows(
        device,
        (starts.tobytes(), columns.tobytes(), data.tobytes()),
        numpy.ascontiguousarray(right.T).tobytes(),
        (method, preconditioner),
        limits,
        (components, at.shape[1], numpy.ascontiguousarray(at).tobytes()),
    )
    x = numpy.frombuffer(solved, "f8").reshape(right.T.shape).T
    if not reports:
        return Solution(_beside(b, x), True, "no right-hand side", [], 0.0, setup)
    worst = next((r for r in reports if not r[1]), reports[0])
    return Solution(
        _beside(b, numpy.ascontiguousarray(x)),
        all(r[1] for r in reports),
        worst[0],
        max((r[2] for r in reports), key=len),
        sum(r[3] for r in reports),
        setup,
    )


def _matrix_free(
    matrix: Any, b: Any, method: Any, preconditioner: Any, device: Any, limits: tuple[float, float, int]
) -> Solution:
    """A system whose matrix or preconditioner is a function."""
    import numpy

    right = _reals(b, "b", flat=False)
    if right.ndim not in (1, 2):
        raise ShapeError(f"`b` has the shape {list(right.shape)}; needed [n] or [n, k]")
    n = len(right)
    product, before = product_of(matrix), product_of(preconditioner)
    if product is None:
        product = _product_of_rows(matrix, n)
    if before is None and preconditioner not in ("none", "jacobi"):
        message = f"`preconditioner` is {preconditioner!r}, and the matrix is a function; needed a function, or `none`"
        raise _about(ArgumentError, "preconditioner", message)
    if method not in METHODS:
        message = f"`method` is {method!r}, and products are functions; needed {', '.join(METHODS)}"
        raise _about(ArgumentError, "method", message)
    if device not in ("default", "c"):
        message = f"`device` is {device!r}, and products are functions, which run on the host; needed `c`"
        raise _about(ArgumentError, "device", message)
    if not numpy.isfinite(right).all():
        raise ArgumentError("`b` holds a number that is infinite or NaN")
    product = checked("matrix", product, n)
    before = (lambda r: r) if before is None else checked("preconditioner", before, n)
    relative, absolute, most = limits
    columns = right.reshape(n, -1).T
    norms = [float(numpy.linalg.norm(column)) for column in columns]
    reports = [
        METHODS[method](product, before, column.copy(), max(relative * norm, absolute), most)
        for column, norm in zip(columns, norms)
    ]
    if not reports:
        return Solution(_beside(b, right), True, "no right-hand side", [], 0.0, 0.0)
    x = numpy.stack([report.x for report in reports], axis=1).reshape(right.shape)
    reasons = [report.reason for report in reports]
    reason = next((one for one in reasons if one != "converged"), "converged")
    residuals = max((report.residuals for report in reports), key=len)
    seconds = sum(report.seconds for report in reports)
    return Solution(_beside(b, numpy.ascontiguousarray(x)), reason == "converged", reason, residuals, seconds, 0.0)


def _product_of_rows(matrix: Any, n: int) -> Callable[[Any], Any]:
    """The product with a matrix by rows, where the preconditioner is a function."""
    import numpy

    starts, columns, data = _rows_of(matrix)
    if len(starts) != n + 1 or len(columns) != len(data) or columns.max(initial=-1) >= n:
        raise ShapeError(f"the matrix has {len(starts) - 1} rows and {len(data)} entries; needed those of {n} unknowns")
    rows = numpy.repeat(numpy.arange(n), numpy.diff(starts))
    return lambda x: numpy.bincount(rows, data * x[columns], minlength=n)


@dataclass(frozen=True)
class NewtonSolution:
    """What :func:`newton` found, and how it went."""

    #: The solution.
    x: Any
    #: Whether the residual is small enough.
    converged: bool
    #: Why it stopped.
    reason: str
    #: Norms of the residual at the start and after each step.
    residuals: list[float]
    #: The part of each step that was taken.
    steps: list[float]
    #: Iterations of each linear system.
    linear_iterations: list[int]

    @property
    def iterations(self) -> int:
        """The number of steps."""
        return len(self.steps)

    def __str__(self) -> str:
        return f"{self.reason} after {self.iterations} steps, residual {self.residuals[0]:.3g} to {self.residuals[-1]:.3g}"

    def _repr_svg_(self) -> Optional[str]:
        return residual_svg(self.residuals, str(self))


def newton(
    residual: Callable[[Any], Any],
    jacobian: Callable[[Any], Any],
    x: Any,
    *,
    fixed: Iterable[int] = (),
    relative: float = 1e-10,
    absolute: float = 1e-12,
    max_iterations: int = 50,
    halvings: int = 10,
    **linear: Any,
) -> NewtonSolution:
    """Newton's method for ``residual(x) = 0`` with a line search.

    ``jacobian(x)`` is a matrix as :func:`solve` takes it, to which ``linear`` goes, such as
    ``method="gmres"``. The unknowns ``fixed`` keep their values: their rows become those of the
    identity, and their columns zero, so that symmetry stays. A step is halved until the residual
    decreases, ``halvings`` times at most.

    It stops when the norm of the residual is at most ``relative`` times that of the start, or
    ``absolute``. Otherwise the reason is in the result: too many steps, no decrease, a number that is
    not finite, or what the linear solver says.
    """
    import numpy

    x = numpy.array(_reals(x, "x"))
    kept = numpy.asarray(list(fixed))
    if kept.size and (kept.dtype.kind not in "iu" or kept.ndim != 1):
        raise _about(ArgumentError, "fixed", f"`fixed` holds {kept.dtype}; needed the numbers of unknowns")
    kept = kept.astype("i8")
    relative, absolute = _size("relative", relative), _size("absolute", absolute)
    max_iterations, halvings = _count("max_iterations", max_iterations), _count("halvings", halvings)
    if kept.size and (kept.min() < 0 or kept.max() >= len(x)):
        named = kept.min() if kept.min() < 0 else kept.max()
        raise ArgumentError(f"`fixed` names unknown {named}; needed 0 to {len(x) - 1}")
    linear = {"relative": 1e-8, **linear}

    def remainder(at: Any) -> Any:
        r = numpy.array(_reals(residual(at), "residual(x)"))
        if r.shape != x.shape:
            raise ShapeError(f"`residual(x)` has {len(r)} numbers; needed {len(x)}")
        r[kept] = 0.0
        return r

    r = remainder(x)
    norms = [_norm(r)]
    steps: list[float] = []
    inner: list[int] = []

    def ended(reason: str) -> NewtonSolution:
        return NewtonSolution(x, reason == "converged", reason, norms, steps, inner)

    limit = max(relative * norms[0], absolute)
    while True:
        if not math.isfinite(norms[-1]):
            return ended("a number is infinite or NaN")
        if norms[-1] <= limit:
            return ended("converged")
        if len(steps) >= max_iterations:
            return ended("too many iterations")
        update = solve(_fixed(jacobian(x), kept, len(x)), -r, **linear)
        inner.append(update.iterations)
        if not update.converged:
            return ended(f"the linear system of step {len(inner)}: {update.reason}")
        part = 1.0
        for _ in range(halvings + 1):
            tried = remainder(x + part * update.x)
            norm = _norm(tried)
            if norm < norms[-1]:
                break
            part /= 2
        else:
            return ended("the residual no longer decreases")
        x, r = x + part * update.x, tried
        norms.append(norm)
        steps.append(part)


@dataclass(frozen=True)
class _Rows:
    indptr: Any
    indices: Any
    data: Any


def _fixed(matrix: Any, kept: Any, n: int) -> _Rows:
    """The matrix with rows of the identity and columns of zeros at some unknowns."""
    import numpy

    starts, columns, data = _rows_of(matrix)
    data = numpy.array(data)
    if kept.size and len(starts) == n + 1 and len(data) == len(columns):
        is_kept = numpy.zeros(n, bool)
        is_kept[kept] = True
        row = numpy.repeat(numpy.arange(n), numpy.diff(starts))
        data[is_kept[row] | is_kept[columns]] = 0.0
        data[is_kept[row] & (row == columns)] = 1.0
    return _Rows(starts, columns, data)


def _rows_of(matrix: Any) -> tuple[Any, Any, Any]:
    """``indptr``, ``indices`` and ``data`` of a matrix by rows, from one in any format."""
    matrix = _by_rows(matrix)
    if missing := [name for name in ("indptr", "indices", "data") if not hasattr(matrix, name)]:
        kind = type(matrix).__name__
        raise ArgumentError(f"the matrix is a {kind} without `{missing[0]}`; needed a sparse one, as `scipy.sparse.csr_matrix`")
    starts, columns, data = _whole(matrix.indptr, "indptr"), _whole(matrix.indices, "indices"), _reals(matrix.data, "data")
    if hasattr(matrix, "tocsr") and len(starts) and len(columns) == len(data) >= starts[-1]:
        # SciPy's may have room for more entries
        columns, data = columns[: starts[-1]], data[: starts[-1]]
    return starts, columns, data


def _by_rows(matrix: Any) -> Any:
    """The matrix by rows, converted by its own library."""
    for convert in ("tocsr", "to_scipy_sparse", "to_scipy"):
        if callable(getattr(matrix, convert, None)):
            found = getattr(matrix, convert)()
            return found if convert == "tocsr" else _by_rows(found)
    # a matrix by columns has the same three arrays, and would be read as its transpose
    if (kind := getattr(matrix, "format", "csr")) != "csr":
        message = f"the matrix has the format `{kind}` and no `tocsr`; needed one by rows, as `scipy.sparse.csr_matrix`"
        raise _about(ArgumentError, "matrix", message)
    return matrix


def _norm(r: Any) -> float:
    """The Euclidean norm, of numbers whose squares may vanish, too."""
    import numpy

    largest = float(numpy.abs(r).max(initial=0.0))
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(numpy.linalg.norm(r / largest))


def _size(name: str, value: Any) -> float:
    """An option that is a size."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise _about(ArgumentError, name, f"`{name}` is a {type(value).__name__}, needed a number") from None
    if not (math.isfinite(found) and found >= 0):
        raise _about(ArgumentError, name, f"`{name}` is {found:g}; needed a finite number from 0 on")
    return found


def _count(name: str, value: Any, least: int = 0) -> int:
    """An option that is a number of things."""
    try:
        found = operator.index(value)
    except TypeError:
        raise _about(ArgumentError, name, f"`{name}` is a {type(value).__name__}, needed an integer") from None
    if not least <= found < 2**63:
        raise _about(ArgumentError, name, f"`{name}` is {found}; needed an integer from {least} on")
    return found


def _whole(array: Any, name: str) -> Any:
    import numpy

    found = _host(array)
    if found.dtype.kind not in "iu":
        raise ArgumentError(f"`{name}` of the matrix holds {found.dtype}; needed integers")
    if found.size and not 0 <= int(found.min()) <= int(found.max()) < 2**31:
        wrong = found.min() if found.min() < 0 else found.max()
        raise ArgumentError(f"`{name}` of the matrix holds {wrong}; needed 0 to 2^31 - 1")
    return numpy.ascontiguousarray(found.ravel(), dtype="i4")


def _reals(array: Any, name: str, flat: bool = True) -> Any:
    import numpy

    found = _host(array)
    if found.dtype.kind not in "fiu":
        raise ArgumentError(f"`{name}` holds {found.dtype}; needed real numbers")
    return numpy.ascontiguousarray(found.ravel() if flat else found, dtype="f8")
