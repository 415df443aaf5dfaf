"""Linear systems of operators and preconditioners that are functions, solved on the host.

The methods are those of :func:`kingpost.solve` with the products left to the caller: conjugate gradients (Hestenes
& Stiefel 1952), MINRES (Paige & Saunders 1975) for symmetric matrices that are not definite, and GMRES (Saad & Schultz
1986) with a preconditioner on the right, so that its residuals are those of the system. Vectors are of the library of
``b``, in its place.
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


def minres(apply: Product, before: Product, b: Any, limit: float, max_iterations: int) -> Report:
    """MINRES from zero, with a preconditioner that is symmetric and positive definite (Elman et al. 2014, section 4.1).

    It minimises the norm of the residual that belongs to the preconditioner. Residuals between the first and the last
    are estimates from that, as parts of the first one; where they are small enough, the residual itself is looked at.
    """
    import numpy

    start, x = time.perf_counter(), numpy.zeros_like(b)
    residuals = [float(numpy.linalg.norm(b))]
    reason = _ended(residuals, limit, max_iterations)
    before_last, last, z = numpy.zeros_like(b), b, before(b) if reason is None else b
    w = w_before = numpy.zeros_like(b)
    size, size_before = _energy(last, z) if reason is None else 0.0, 1.0
    eta, first, target = size, size, limit
    c = c_before = 1.0
    s = s_before = 0.0
    while reason is None:
        if not size > 0.0:
            reason = "the preconditioner is not positive definite" if math.isfinite(size) else NOT_FINITE
            break
        z = z / size
        q = apply(z)
        delta = float(q @ z)
        new = q - delta / size * last - size / size_before * before_last
        new_z = before(new)
        new_size = _energy(new, new_z)
        turned = c * delta - c_before * s * size
        length = math.hypot(turned, max(new_size, 0.0))
        if length == 0.0 or not math.isfinite(length):
            reason = NOT_FINITE if length else "the residual no longer decreases"
            break
        new_w = (z - s_before * size * w_before - (s * delta + c_before * c * size) * w) / length
        c_before, s_before, c, s = c, s, turned / length, new_size / length
        x = x + c * eta * new_w
        eta, w_before, w = -s * eta, w, new_w
        before_last, last, z, size_before, size = last, new, new_z, size, new_size
        residuals.append(abs(eta) / first * residuals[0])
        reason = _ended(residuals, target, max_iterations)
        if reason is not None or size == 0.0:
            true = float(numpy.linalg.norm(b - apply(x)))
            # estimates are in another norm: they have to be as much smaller as the residual is too large
            target, residuals[-1] = target * min(1.0, limit / true if true > 0.0 else 1.0) / 2, true
            reason = _ended(residuals, limit, max_iterations)
            if reason is None and size == 0.0:
                reason = "the residual no longer decreases"
    return Report(x, reason, residuals, time.perf_counter() - start)


def _energy(r: Any, z: Any) -> float:
    """The norm of a residual that belongs to the preconditioner, negative where that is not positive definite."""
    product = float(r @ z)
    return math.copysign(math.sqrt(abs(product)), product)


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
                h[i, k] = float(v @ w)
                w = w - h[i, k] * v
            h[k + 1, k] = float(numpy.linalg.norm(w))
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
METHODS = {"cg": cg, "minres": minres, "gmres": gmres}


def _ended(residuals: list[float], limit: float, max_iterations: int) -> Optional[str]:
    if not math.isfinite(residuals[-1]):
        return NOT_FINITE
    if residuals[-1] <= limit:
        return "converged"
    return "too many iterations" if len(residuals) > max_iterations else None
