"""Linear systems of operators and preconditioners that are functions, solved on the host.

The methods are those of :func:`kingpost.solve` with the products left to the caller: conjugate gradients (Hestenes
& Stiefel 1952), and GMRES (Saad & Schultz 1986) with a preconditioner on the right, so that its residuals are
those of the system.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

from kingpost.arrays import _about
from kingpost.errors import ArgumentError, ShapeError

#: Vectors that GMRES keeps before it starts again.
RESTART = 50

Product = Callable[[Any], Any]


class Report(NamedTuple):
    """What one right-hand side took."""

    x: Any
    reason: str
    residuals: list[float]
    seconds: float


def product_of(value: Any) -> Optional[Product]:
    """The product of a `LinearOperator` with a vector, or a function; nothing if a value is neither."""
    found = getattr(value, "matvec", None)
    if callable(found) and not hasattr(value, "indptr"):
        return found
    return value if callable(value) and not hasattr(value, "data") else None


def checked(name: str, product: Product, n: int) -> Product:
    """The product, whose results are checked for their size."""
    import numpy

    def of(x: Any) -> Any:
        found = numpy.asarray(product(x))
        if found.dtype.kind not in "fiu":
            raise _about(ArgumentError, name, f"`{name}` gives elements of type {found.dtype}; needed real numbers")
        if found.shape not in ((n,), (n, 1)):
            raise _about(ShapeError, name, f"`{name}` gives an array of shape {list(found.shape)}; needed [{n}]")
        return found.reshape(n).astype("f8", copy=False)

    return of


def cg(apply: Product, before: Product, b: Any, limit: float, max_iterations: int) -> Report:
    """Conjugate gradients from zero."""
    import numpy

    start, x, r = time.perf_counter(), numpy.zeros_like(b), b.copy()
    residuals, rho, p = [float(numpy.linalg.norm(r))], 0.0, numpy.zeros_like(b)
    reason = _ended(residuals, limit, max_iterations)
    while reason is None:
        z = before(r)
        new = float(r @ z)
        if new <= 0.0:
            reason = "the matrix is not positive definite" if math.isfinite(new) else NOT_FINITE
            break
        p = z + (new / rho if rho else 0.0) * p
        rho, q = new, apply(p)
        curvature = float(p @ q)
        if not curvature > 0.0:
            reason = "the matrix is not positive definite" if math.isfinite(curvature) else NOT_FINITE
            break
        x, r = x + rho / curvature * p, r - rho / curvature * q
        residuals.append(float(numpy.linalg.norm(r)))
        reason = _ended(residuals, limit, max_iterations)
    return Report(x, reason, residuals, time.perf_counter() - start)


def gmres(apply: Product, before: Product, b: Any, limit: float, max_iterations: int) -> Report:
    """GMRES from zero, which starts again after :data:`RESTART` vectors."""
    import numpy

    start, x, r = time.perf_counter(), numpy.zeros_like(b), b.copy()
    residuals = [float(numpy.linalg.norm(r))]
    reason = _ended(residuals, limit, max_iterations)
    while reason is None:
        size = float(numpy.linalg.norm(r))
        basis, h = [r / size], numpy.zeros((RESTART + 1, RESTART))
        while True:
            k = len(basis) - 1
            w = apply(before(basis[k]))
            if not numpy.isfinite(w).all():
                return Report(x, NOT_FINITE, residuals, time.perf_counter() - start)
            for i, v in enumerate(basis):
                h[i, k] = v @ w
                w = w - h[i, k] * v
            h[k + 1, k] = numpy.linalg.norm(w)
            right = numpy.zeros(k + 2)
            right[0] = size
            y = numpy.linalg.lstsq(h[: k + 2, : k + 1], right, rcond=None)[0]
            residuals.append(float(numpy.linalg.norm(right - h[: k + 2, : k + 1] @ y)))
            reason = _ended(residuals, limit, max_iterations)
            if reason is not None or k + 1 == RESTART or h[k + 1, k] == 0.0:
                break
            basis.append(w / h[k + 1, k])
        x = x + before(sum(c * v for c, v in zip(y, basis)))
        r = b - apply(x)
        residuals[-1] = float(numpy.linalg.norm(r))
        if reason is None and h[k + 1, k] == 0.0:
            reason = _ended(residuals, limit, max_iterations) or "the residual no longer decreases"
    return Report(x, reason, residuals, time.perf_counter() - start)


NOT_FINITE = "a number is infinite or NaN"
METHODS = {"cg": cg, "gmres": gmres}


def _ended(residuals: list[float], limit: float, max_iterations: int) -> Optional[str]:
    if not math.isfinite(residuals[-1]):
        return NOT_FINITE
    if residuals[-1] <= limit:
        return "converged"
    return "too many iterations" if len(residuals) > max_iterations else None
