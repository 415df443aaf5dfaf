"""The form on the space of a level of multigrid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kingpost.capture import capture
from kingpost.errors import ArgumentError, ConvergenceError
from kingpost.meshes import action, diagonal
from kingpost.meshes.forms import DTYPES
from kingpost.meshes.space import Space
from kingpost.multigrid.kernels import vector_kernel

Array = Any
Place = Callable[[Array], Array]
#: What is added to the largest eigenvalue that was found, which is a little below the largest of all.
ABOVE = 1.1
#: Steps of Lanczos' method for it.
LANCZOS = 12


class Level:
    """The form on the space of a level: its action, the inverse of its diagonal, and what a smoother needs.

    The inverse is zero where values are prescribed, so that no step changes them. Numbers are ``f64`` or ``f32``.
    """

    def __init__(
        self, space: Space, form: Callable[[Space], Any], fixed: Array, device: str, place: Place, precision: str = "f64"
    ) -> None:
        self.space, self._device, self.precision = space, device, precision
        dtype = DTYPES[precision]
        self._u = space.function(dtype)
        of_kind = form(space)

        def applied(kind: str) -> Any:
            import ufl

            found = of_kind if isinstance(of_kind, ufl.Form) else of_kind(kind)
            return None if found is None else ufl.action(found, self._u.on(kind))

        self._action = action(space.mesh, applied, device, place=place, scalar=precision)
        found = place(np.zeros(space.shape, dtype))
        diagonal(space.mesh, of_kind, device, place=place, scalar=precision)(found)
        #: Where no value is prescribed.
        self.free = place(~fixed)
        self.inverse = self._inverse(found)
        self.x, self.b, self.r, self.d, self.q = (place(np.zeros(space.shape, dtype)) for _ in range(5))
        self._apply = capture(lambda: self.apply(self.d))
        self.largest = ABOVE * self._largest_eigenvalue(place)

    def _inverse(self, found: Array) -> Array:
        wrong = self.free & ~(found > 0.0)
        if wrong.any():
            at = int(wrong.reshape(-1).argmax())
            value = float(found.reshape(-1)[at])
            where = f"the diagonal of the form is {value:g} at unknown {at} of {self.space!r}"
            raise ArgumentError(f"{where}; needed a positive one, or the unknown among those that are fixed")
        inverse = 0.0 * found
        inverse[self.free] = 1.0 / found[self.free]
        return inverse

    def product(self, x: Array) -> Array:
        """The action on a vector, with the identity where values are prescribed."""
        given = x.reshape(self.d.shape)
        np.multiply(given, self.free, out=self.d)
        return np.where(self.free, self._applied(), given).reshape(x.shape)

    def image(self, x: Array) -> Array:
        """The action on a vector, whatever is prescribed."""
        self.d[...] = x
        return self._applied()

    def _applied(self) -> Array:
        """The image of ``d``; ``q`` is zero afterwards, as all kernels leave it."""
        self._apply()
        found = self.q.copy()
        self.q[...] = 0.0
        return found

    def apply(self, of: Array) -> None:
        """Adds the image of a vector to ``q``."""
        self._u.array = of
        self._action(self.q)

    def run(self, name: str, **given: Any) -> None:
        """Runs a kernel on vectors of this level, by their names."""
        kernel = vector_kernel(name, self.precision, self._device)
        names = [a.name for a in kernel.arguments if a.kind == "array" and a.name not in given]
        kernel(**{name: getattr(self, name).reshape(-1) for name in names}, **given)

    def _largest_eigenvalue(self, place: Place) -> float:
        """Of the form with its diagonal scaled to one, by Lanczos' method (Saad 2003, section 6.6)."""
        scale = self.inverse**0.5
        v = scale * place(np.random.default_rng(1).standard_normal(self.space.shape, self.inverse.dtype))
        size = float((v * v).sum()) ** 0.5
        if size == 0.0:
            return 1.0  # all values are prescribed
        v, before, beta = v / size, 0.0 * v, 0.0
        alphas: list[float] = []
        betas: list[float] = []
        while True:
            w = scale * self.product(scale * v) - beta * before
            alphas.append(float((v * w).sum()))
            w = w - alphas[-1] * v
            beta = float((w * w).sum()) ** 0.5
            # rounding errors of sums of n products: what is left is noise
            if len(alphas) == LANCZOS or not beta > 1e-10 * abs(alphas[0]):
                break
            betas.append(beta)
            v, before = w / beta, v
        found = float(np.linalg.eigvalsh(np.diag(alphas) + np.diag(betas, -1))[-1])
        if not (found > 0.0 and np.isfinite(found)):
            where = f"the largest eigenvalue of the form on {self.space!r}"
            raise ConvergenceError(f"{where} is {found:g}; needed a positive one")
        return found
