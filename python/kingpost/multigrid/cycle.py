"""A V-cycle over the levels of a refined mesh, as a preconditioner."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from kingpost.arrays import _about
from kingpost.capture import capture
from kingpost.errors import ArgumentError, ShapeError
from kingpost.matrix_free import METHODS
from kingpost.meshes.space import Space
from kingpost.multigrid.coarsest import Coarsest
from kingpost.multigrid.level import Level, Place
from kingpost.multigrid.smoothers import Chebyshev, Patches, Smoother, degree, lowered
from kingpost.multigrid.transfer import Transfer
from kingpost.solvers import Solution, _count, _size
from kingpost.sparse import _beside, _host

Array = Any
#: Names of what smooths.
SMOOTHERS = ("chebyshev", "patches")


class Multigrid:
    """A V-cycle for a bilinear form on a space, and solvers with it as their preconditioner.

    ``form`` gives the form on the space of any level: a form of UFL, or a function of the kind of cells. Levels are the
    meshes that the mesh of ``space`` was refined from, with the same element, and on the coarsest one the elements of
    half the degree down to 1; with ``coarsen="degree"`` the degree is lowered on the finest mesh instead. ``fixed``
    gives the degrees of freedom of a space whose values are prescribed, or for each component whether it is (an array
    of ``bool`` of the space's shape). ``place`` brings arrays to a card (``cupy.asarray``), where all vectors stay.

    The ``smoother`` runs before and after each coarse correction. ``chebyshev`` takes ``steps`` steps of Chebyshev's
    iteration with Jacobi's (as many as the degree, at least 4), for eigenvalues down to a ``ratio``-th of the largest
    (five times the steps; Adams et al. 2003). ``patches`` solves around each vertex by a cycle over degrees, one colour
    of vertices after the other (Wichrowski 2025): fewer iterations on cells that are flat, each of them much longer. On
    the coarsest level the matrix is assembled and factorised. A cycle of a symmetric form is symmetric.

    ``precision="f32"`` is that of the cycle; solvers around it compute in double precision. Its form has no functions
    of double precision.

    ``solver(r)`` is one cycle, and :func:`kingpost.solve` takes it as a ``preconditioner``.

    Raises:
        ArgumentError: A form that is not positive on the diagonal or singular on the coarsest level.
        MeshError: Elements whose degrees of freedom are no values at points.
    """

    def __init__(
        self,
        space: Space,
        form: Callable[[Space], Any],
        *,
        fixed: Optional[Callable[[Space], Array]] = None,
        coarsen: str = "mesh",
        smoother: str = "chebyshev",
        precision: str = "f64",
        steps: Optional[int] = None,
        ratio: Optional[float] = None,
        device: str = "default",
        place: Optional[Place] = None,
    ) -> None:
        start = time.perf_counter()
        self._place = place or np.asarray
        if smoother not in SMOOTHERS:
            raise _about(ArgumentError, "smoother", f"`smoother` is {smoother!r}; needed one of {', '.join(SMOOTHERS)}")
        if precision not in ("f64", "f32"):
            raise _about(ArgumentError, "precision", f"`precision` is {precision!r}; needed `f64` or `f32`")
        spaces = _spaces(space, coarsen)
        # near the fewest products with the form in solves by P1 to P4, and at most ten iterations on many levels
        self.steps = max(4, degree(space)) if steps is None else _count("steps", steps, 1)
        self._ratio = 5.0 * self.steps if ratio is None else _size("ratio", ratio)
        if not self._ratio > 1.0:
            raise _about(ArgumentError, "ratio", f"`ratio` is {ratio:g}; needed more than 1")
        mask = lambda of: _mask(of, fixed)  # noqa: E731
        masks = [mask(of) for of in spaces]
        #: The levels, the finest first; the last one is solved directly.
        self.levels = [Level(of, form, on, device, self._place, precision) for of, on in zip(spaces, masks)]
        #: The finest level in double precision, in which systems are solved.
        self.finest = self.levels[0]
        if precision == "f32":
            self.finest = Level(space, form, masks[0], device, self._place)
        self._smoothers: list[Smoother] = [
            Patches(level, form, mask, device, self._place)
            if smoother == "patches" and degree(level.space) > 1
            else Chebyshev(level, self.steps, self._ratio)
            for level in self.levels[:-1]
        ]
        self._transfers = [
            Transfer(coarse, fine, device, self._place, precision) for fine, coarse in zip(spaces, spaces[1:])
        ]
        self._coarsest = Coarsest(spaces[-1], form(spaces[-1]), masks[-1], self._place, precision)
        self._cycle = self._captured()
        #: Seconds that all of this took.
        self.setup_seconds = time.perf_counter() - start

    def _captured(self) -> list[Callable[[], Any]]:
        """The calls of a cycle: all of it is one where nothing of it runs on the host."""
        last = self.levels[-1]

        def down() -> None:
            for at in range(len(self._transfers)):
                self._down(at)

        def up() -> None:
            for at in reversed(range(len(self._transfers))):
                self._up(at)

        def whole() -> None:
            down()
            self._coarsest.solve(last)
            up()

        if not self._coarsest.is_on_host:
            return [capture(whole)]
        on_host = lambda: self._coarsest.solve(last)  # noqa: E731
        return [capture(down), on_host, capture(up)] if self._transfers else [on_host]

    def _down(self, at: int) -> None:
        level, coarse = self.levels[at], self.levels[at + 1]
        self._smoothers[at].before()
        coarse.run("clear")
        self._transfers[at].restrict(level.r, coarse.b, level.inverse)

    def _up(self, at: int) -> None:
        level = self.levels[at]
        self._transfers[at].prolong(self.levels[at + 1].x, level.x, level.inverse)
        self._smoothers[at].after()

    def __call__(self, r: Array) -> Array:
        """One cycle from zero, for a residual; where values are prescribed, the residual itself."""
        given, first, shape = self._place(r), self.levels[0], self.finest.b.shape
        if given.size != self.finest.b.size:
            raise _about(ShapeError, "r", f"the residual has the shape {list(given.shape)}; needed {list(shape)}")
        given = given.reshape(shape)
        # the smallest numbers of single precision are larger than residuals may be
        size = 1.0 if self.finest is first else float(abs(given).max()) or 1.0
        first.b[...] = given if size == 1.0 else given / size
        for call in self._cycle:
            call()
        found = first.x if size == 1.0 else size * first.x
        return like(r, np.where(self.finest.free, found, given).reshape(np.shape(r)))

    def product(self, x: Array) -> Array:
        """The form applied to a vector, without a matrix; the identity where values are prescribed."""
        return like(x, self.finest.product(self._place(x)))

    def solve(
        self,
        b: Array,
        values: Any = 0.0,
        *,
        method: str = "cg",
        relative: float = 1e-10,
        absolute: float = 0.0,
        max_iterations: int = 1000,
    ) -> Solution:
        """Solves the system of the form, preconditioned by a cycle.

        ``b`` has the shape of the space, and unknowns that are fixed get the ``values``, a number or an array like it.
        ``method`` is ``cg``, for symmetric positive definite forms, ``minres`` or ``gmres``. What stops it is as of
        :func:`kingpost.solve`, and so is the result, whose ``x`` is an array like ``b``.
        """
        if method not in METHODS:
            raise _about(ArgumentError, "method", f"`method` is {method!r}; needed one of {', '.join(METHODS)}")
        relative, absolute = _size("relative", relative), _size("absolute", absolute)
        finest = self.finest
        needed = finest.space.shape
        if np.shape(b) != needed:
            raise _about(ShapeError, "b", f"`b` has the shape {list(np.shape(b))}; needed {list(needed)}")
        if np.shape(values) not in ((), needed):
            message = f"`values` has the shape {list(np.shape(values))}; needed a number, or {list(needed)}"
            raise _about(ShapeError, "values", message)
        start = time.perf_counter()
        prescribed = ~finest.free * (self._place(values) if np.shape(values) else values)
        right = finest.free * (self._place(b) - finest.image(prescribed))
        limit = max(relative * float((right * right).sum()) ** 0.5, absolute)
        most = _count("max_iterations", max_iterations)
        report = METHODS[method](self.product, self, right.reshape(-1), limit, most)
        x = like(b, report.x.reshape(right.shape) + prescribed)
        seconds = time.perf_counter() - start
        return Solution(x, report.reason == "converged", report.reason, report.residuals, seconds, self.setup_seconds)

    def __repr__(self) -> str:
        sizes = ", ".join(str(level.b.size) for level in self.levels)
        return f"<kingpost.multigrid.Multigrid of {sizes} unknowns>"


def _spaces(space: Space, coarsen: str) -> list[Space]:
    """The spaces of all levels, the finest first."""
    if coarsen not in ("mesh", "degree"):
        raise _about(ArgumentError, "coarsen", f"`coarsen` is {coarsen!r}; needed `mesh` or `degree`")
    found = lowered(space) if coarsen == "degree" else [space]
    while (parent := found[-1].mesh.parent) is not None:
        found.append(Space(parent, found[-1].elements.__getitem__))
    return found if coarsen == "degree" else [*found[:-1], *lowered(found[-1])]


def _mask(space: Space, fixed: Optional[Callable[[Space], Array]]) -> Array:
    """Whether the value of each unknown is prescribed."""
    found = np.zeros(space.shape, bool)
    if fixed is None:
        return found
    given = np.asarray(fixed(space))
    if given.dtype == bool:
        if given.shape != space.shape:
            raise _about(ShapeError, "fixed", f"`fixed` gives the shape {list(given.shape)}; needed {list(space.shape)}")
        return given
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= space.size):
        message = f"`fixed` gives {given.dtype} outside the {space.size} degrees of freedom; needed their numbers"
        raise _about(ArgumentError, "fixed", message)
    found[given.astype(int)] = True
    return found


def like(given: Array, found: Array) -> Array:
    """A result where what was given lies."""
    return found if type(found) is type(given) else _beside(given, _host(found))
