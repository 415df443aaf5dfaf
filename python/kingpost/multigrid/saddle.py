"""Saddle-point systems of a velocity and a pressure, such as Stokes' equations in Taylor–Hood's elements."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from kingpost.arrays import _about
from kingpost.capture import capture
from kingpost.errors import ArgumentError, ShapeError
from kingpost.matrix_free import METHODS
from kingpost.meshes import action
from kingpost.meshes.space import Space
from kingpost.multigrid.cycle import Multigrid, like
from kingpost.multigrid.level import Level, Place
from kingpost.multigrid.smoothers import chebyshev, smooth
from kingpost.solvers import Solution, _count, _size

Array = Any
#: Chebyshev's iteration for the mass matrix: its eigenvalues by the diagonal are at least a tenth of the largest for
#: continuous elements of low degree (Wathen & Rees 2009).
MASS_STEPS, MASS_RATIO = 4, 10.0


@dataclass(frozen=True)
class SaddleSolution:
    """The velocity and the pressure, and how the solve went."""

    u: Any
    p: Any
    #: Of the whole system; its ``x`` has both, one after the other.
    solution: Solution

    def __str__(self) -> str:
        return str(self.solution)


class SaddlePoint:
    """The system ``a(u, v) + b(v, p) = f(v)``, ``b(u, q) = g(q)``, without a matrix.

    ``a`` gives the form of the velocity on the space of any level, as for :class:`Multigrid`, which has the further
    ``options``. ``b(velocity, pressure)`` gives a bilinear form with the trial function of the velocity and the test
    function of the pressure, such as ``-q * div(u) * dx``, and ``mass`` a form of the pressure that is like the Schur
    complement: its mass matrix divided by the viscosity. ``fixed`` prescribes velocities.

    The preconditioner is a cycle for the velocity, and Chebyshev's iteration with the form of the pressure (Elman et al.
    2014, section 4.2). A solver then takes as many iterations on each mesh where the pair of spaces is stable.

    Raises:
        ArgumentError: As :class:`Multigrid`.
        MeshError: Spaces on two meshes, and as :class:`Multigrid`.
    """

    def __init__(
        self,
        velocity: Space,
        pressure: Space,
        a: Callable[[Space], Any],
        b: Callable[[Space, Space], Any],
        mass: Callable[[Space], Any],
        *,
        fixed: Optional[Callable[[Space], Array]] = None,
        device: str = "default",
        place: Optional[Place] = None,
        **options: Any,
    ) -> None:
        import ufl

        if velocity.mesh is not pressure.mesh:
            raise _about(ArgumentError, "pressure", "`pressure` is a space on another mesh than `velocity`; needed one mesh")
        start = time.perf_counter()
        self._place = place or np.asarray
        self._cycle = Multigrid(velocity, a, fixed=fixed, device=device, place=place, **options)
        self._a = self._cycle.finest
        self._mass = Level(pressure, mass, np.zeros(pressure.shape, bool), device, self._place)
        factors = chebyshev(self._mass.largest, MASS_RATIO, MASS_STEPS)
        self._smoothed = capture(lambda: smooth(self._mass, "begin", factors))
        u, p = velocity.function(), pressure.function()
        u.array, p.array = self._a.d, self._mass.d
        coupling = b(velocity, pressure)
        self._b = action(velocity.mesh, _of_kind(coupling, ufl.action, u), device, place=self._place)
        transpose = lambda form, function: ufl.action(ufl.adjoint(form), function)  # noqa: E731
        self._bt = action(velocity.mesh, _of_kind(coupling, transpose, p), device, place=self._place)
        self._transposed = capture(lambda: self._bt(self._a.q))
        self._coupled = capture(self._couple)
        self.setup_seconds = time.perf_counter() - start

    @property
    def size(self) -> int:
        """The unknowns of velocity and pressure."""
        return int(self._a.b.size + self._mass.b.size)

    def _couple(self) -> None:
        self._a.apply(self._a.d)
        self._bt(self._a.q)
        self._b(self._mass.q)

    def image(self, x: Array) -> Array:
        """The system's product with a vector, whatever is prescribed."""
        u, p = self._a, self._mass
        n = u.b.size
        u.d[...], p.d[...] = x[:n].reshape(u.d.shape), x[n:].reshape(p.d.shape)
        self._coupled()
        found = np.concatenate([u.q.reshape(-1), p.q.reshape(-1)])
        u.q[...], p.q[...] = 0.0, 0.0
        return found

    def product(self, x: Array) -> Array:
        """The product with the identity where velocities are prescribed."""
        free = self._free()
        given = self._place(x)
        return like(x, free * self.image(free * given) + ~free * given)

    def __call__(self, r: Array) -> Array:
        """The preconditioner."""
        given, n = self._place(r), self._a.b.size
        self._mass.b[...] = given[n:].reshape(self._mass.b.shape)
        self._smoothed()
        return like(r, np.concatenate([self._cycle(given[:n]), self._mass.x.reshape(-1)]))

    def triangular(self, r: Array) -> Array:
        """The same with the coupling above the diagonal, which is not symmetric: the pressure first, and the velocity for
        what is left of the residual (Elman et al. 2014, section 9.2)."""
        given, n, (u, p) = self._place(r), self._a.b.size, (self._a, self._mass)
        p.b[...] = given[n:].reshape(p.b.shape)
        self._smoothed()
        p.d[...] = -p.x
        self._transposed()
        left = given[:n] - (u.free * u.q).reshape(-1)
        u.q[...] = 0.0
        return like(r, np.concatenate([self._cycle(left), -p.x.reshape(-1)]))

    def _free(self) -> Array:
        return np.concatenate([self._a.free.reshape(-1), self._mass.free.reshape(-1)])

    def solve(
        self,
        f: Array,
        g: Any = 0.0,
        values: Any = 0.0,
        *,
        method: str = "minres",
        relative: float = 1e-10,
        absolute: float = 0.0,
        max_iterations: int = 1000,
    ) -> SaddleSolution:
        """Solves for a velocity and a pressure.

        ``f`` has the shape of the velocity, ``g`` that of the pressure, or both are zero. Velocities that are fixed get
        the ``values``. ``method`` is ``minres``, or ``gmres`` with :meth:`triangular`, which takes fewer iterations
        and more memory. Where velocities are prescribed on the whole boundary,
        the pressure is found up to a constant, and ``g`` and the values have to conserve mass.
        """
        if method not in ("minres", "gmres"):
            raise _about(ArgumentError, "method", f"`method` is {method!r}; needed `minres` or `gmres`")
        limits = _size("relative", relative), _size("absolute", absolute), _count("max_iterations", max_iterations)
        shapes = self._a.b.shape, self._mass.b.shape
        right = [self._vector("f", f, shapes[0]), self._vector("g", g, shapes[1])]
        start, free = time.perf_counter(), self._free()
        whole = [self._vector("values", values, shapes[0]), self._vector("values", 0.0, shapes[1])]
        prescribed = ~free * np.concatenate(whole)
        b = free * (np.concatenate(right) - self.image(prescribed))
        limit = max(limits[0] * float((b * b).sum()) ** 0.5, limits[1])
        before = self if method == "minres" else self.triangular
        report = METHODS[method](self.product, before, b, limit, limits[2])
        x, n = report.x + prescribed, self._a.b.size
        seconds = time.perf_counter() - start
        converged = report.reason == "converged"
        solution = Solution(like(f, x), converged, report.reason, report.residuals, seconds, self.setup_seconds)
        return SaddleSolution(like(f, x[:n].reshape(shapes[0])), like(f, x[n:].reshape(shapes[1])), solution)

    def _vector(self, name: str, value: Any, shape: tuple[int, ...]) -> Array:
        if not hasattr(value, "shape"):
            return self._place(np.full(shape, float(value))).reshape(-1)
        if tuple(value.shape) != tuple(shape):
            raise _about(ShapeError, name, f"`{name}` has the shape {list(value.shape)}; needed {list(shape)}")
        return self._place(value).reshape(-1)

    def __repr__(self) -> str:
        return f"<kingpost.multigrid.SaddlePoint of {self.size} unknowns, {self._cycle!r}>"


def _of_kind(form: Any, apply: Callable[[Any, Any], Any], function: Any) -> Callable[[str], Any]:
    """The action of a form, or of a function of the kind of cells that gives one."""
    import ufl

    def found(kind: str) -> Any:
        of = form if isinstance(form, ufl.Form) else form(kind)
        return None if of is None else apply(of, function.on(kind))

    return found
