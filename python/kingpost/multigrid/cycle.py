"""A V-cycle over the levels of a refined mesh, as a preconditioner."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Optional

import numpy as np

from kingpost.arrays import _about
from kingpost.capture import capture
from kingpost.errors import ArgumentError, ConvergenceError, ShapeError
from kingpost.matrix_free import METHODS
from kingpost.meshes import action, diagonal
from kingpost.meshes.space import Space
from kingpost.multigrid.coarsest import Coarsest
from kingpost.multigrid.kernels import vector_kernel
from kingpost.multigrid.transfer import Transfer, nodal
from kingpost.solvers import Solution, _count, _size
from kingpost.sparse import _beside, _host

Array = Any
Place = Callable[[Array], Array]
#: What is added to the largest eigenvalue that was found, which is a little below the largest of all.
ABOVE = 1.1
#: Steps of Lanczos' method for it.
LANCZOS = 12


class Level:
    """The form on the space of a level: its action, the inverse of its diagonal, and what a smoother needs.

    The inverse is zero where values are prescribed, so that no step changes them.
    """

    def __init__(self, space: Space, form: Callable[[Space], Any], fixed: Array, device: str, place: Place) -> None:
        self.space, self._device = space, device
        self._u = space.function()
        of_kind = form(space)

        def applied(kind: str) -> Any:
            import ufl

            found = of_kind if isinstance(of_kind, ufl.Form) else of_kind(kind)
            return None if found is None else ufl.action(found, self._u.on(kind))

        self._action = action(space.mesh, applied, device, place=place)
        found = place(np.zeros(space.shape))
        diagonal(space.mesh, of_kind, device, place=place)(found)
        self.inverse = self._inverse(found, place(fixed))
        self.x, self.b, self.r, self.d, self.q = (place(np.zeros(space.shape)) for _ in range(5))
        self._apply = capture(lambda: self.apply(self.d))
        self.largest = ABOVE * self._largest_eigenvalue(place)

    def _inverse(self, found: Array, fixed: Array) -> Array:
        wrong = ~fixed & ~(found > 0.0)
        if wrong.any():
            at = int(wrong.reshape(-1).argmax())
            value = float(found.reshape(-1)[at])
            where = f"the diagonal of the form is {value:g} at unknown {at} of {self.space!r}"
            raise ArgumentError(f"{where}; needed a positive one, or the unknown among those that are fixed")
        inverse = 0.0 * found
        inverse[~fixed] = 1.0 / found[~fixed]
        return inverse

    def product(self, x: Array) -> Array:
        """The action on a vector, with the identity where values are prescribed."""
        free, given = self.inverse != 0.0, x.reshape(self.d.shape)
        return (free * self.image(free * given) + ~free * given).reshape(x.shape)

    def image(self, x: Array) -> Array:
        """The action on a vector, whatever is prescribed."""
        self.d[...] = x
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
        kernel = vector_kernel(name, self._device)
        names = [a.name for a in kernel.arguments if a.kind == "array" and a.name not in given]
        kernel(**{name: getattr(self, name).reshape(-1) for name in names}, **given)

    def _largest_eigenvalue(self, place: Place) -> float:
        """Of the form with its diagonal scaled to one, by Lanczos' method (Saad 2003, section 6.6)."""
        scale = self.inverse**0.5
        v = scale * place(np.random.default_rng(1).standard_normal(self.space.shape))
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


def chebyshev(largest: float, ratio: float, steps: int) -> list[tuple[float, float]]:
    """Factors of the preconditioned residual and of the last direction in each direction of Chebyshev's iteration, for
    eigenvalues from a ``ratio``-th of the largest on (Saad 2003, Algorithm 12.1)."""
    middle, half = (largest + largest / ratio) / 2, (largest - largest / ratio) / 2
    found, rho = [(1 / middle, 0.0)], half / middle
    while len(found) < steps:
        new = 1 / (2 * middle / half - rho)
        found.append((2 * new / half, new * rho))
        rho = new
    return found


def smooth(level: Level, first: str, factors: list[tuple[float, float]]) -> None:
    """Chebyshev's iteration for ``b`` of a level, from zero (``begin``), or from ``x`` with its image (``begin_again``)."""
    level.run(first, a=factors[0][0])
    for a, c in factors[1:]:
        level.apply(level.d)
        level.run("step", a=a, c=c)


class Multigrid:
    """A V-cycle for a bilinear form on a space, and solvers with it as their preconditioner.

    ``form`` gives the form on the space of any level: a form of UFL, or a function of the kind of cells. Levels are the
    meshes that the mesh of ``space`` was refined from, with the same element, and on the coarsest one the elements of
    half the degree down to 1; with ``coarsen="degree"`` the degree is lowered on the finest mesh instead. ``fixed``
    gives the degrees of freedom of a space whose values are prescribed, or for each component whether it is (an array
    of ``bool`` of the space's shape). ``place`` brings arrays to a card (``cupy.asarray``), where all vectors stay.

    The smoother takes ``steps`` steps of Chebyshev's iteration with Jacobi's before and after each coarse correction (as
    many as the degree, at least 3), for eigenvalues down to a ``ratio``-th of the largest (five times the steps; Adams et
    al. 2003). On the coarsest level the matrix is
    assembled and factorised. A cycle of a symmetric form is symmetric.

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
        steps: Optional[int] = None,
        ratio: Optional[float] = None,
        device: str = "default",
        place: Optional[Place] = None,
    ) -> None:
        start = time.perf_counter()
        self._place = place or np.asarray
        spaces = _spaces(space, coarsen)
        # fewest products with the form in a solve of Poisson's equation by P1 to P4 on tetrahedra and triangles
        self._steps = max(3, _degree(space)) if steps is None else _count("steps", steps, 1)
        self._ratio = 5.0 * self._steps if ratio is None else _size("ratio", ratio)
        if not self._ratio > 1.0:
            raise _about(ArgumentError, "ratio", f"`ratio` is {ratio:g}; needed more than 1")
        masks = [_mask(level, fixed) for level in spaces]
        #: The levels, the finest first; the last one is solved directly.
        self.levels = [Level(of, form, mask, device, self._place) for of, mask in zip(spaces, masks)]
        self._factors = [chebyshev(level.largest, self._ratio, self._steps) for level in self.levels]
        self._transfers = [Transfer(coarse, fine, device, self._place) for fine, coarse in zip(spaces, spaces[1:])]
        self._coarsest = Coarsest(spaces[-1], form(spaces[-1]), masks[-1], device, self._place)
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
        smooth(level, "begin", self._factors[at])
        level.apply(level.d)
        level.run("end")
        coarse.run("clear")
        self._transfers[at].restrict(level.r, coarse.b, level.inverse)

    def _up(self, at: int) -> None:
        level = self.levels[at]
        self._transfers[at].prolong(self.levels[at + 1].x, level.x, level.inverse)
        level.apply(level.x)
        smooth(level, "begin_again", self._factors[at])

    def __call__(self, r: Array) -> Array:
        """One cycle from zero, for a residual; where values are prescribed, the residual itself."""
        finest = self.levels[0]
        if r.size != finest.b.size:
            raise ShapeError(f"the residual has the shape {list(r.shape)}; needed {list(finest.b.shape)}")
        finest.b[...] = self._place(r).reshape(finest.b.shape)
        for call in self._cycle:
            call()
        return like(r, (finest.x + (finest.inverse == 0.0) * finest.b).reshape(r.shape))

    def product(self, x: Array) -> Array:
        """The form applied to a vector, without a matrix; the identity where values are prescribed."""
        return like(x, self.levels[0].product(self._place(x)))

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
        finest = self.levels[0]
        if np.shape(b) != finest.space.shape:
            raise _about(ShapeError, "b", f"`b` has the shape {list(np.shape(b))}; needed {list(finest.space.shape)}")
        start = time.perf_counter()
        fixed = finest.inverse == 0.0
        prescribed = fixed * (self._place(values) if hasattr(values, "shape") else values)
        right = ~fixed * (self._place(b) - finest.image(prescribed))
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
    found = [space]

    def lower() -> None:
        left = _degree(space)
        while left > 1:
            left //= 2
            found.append(_of_degree(space, found[-1].mesh, left))

    if coarsen == "degree":
        lower()
    while (parent := found[-1].mesh.parent) is not None:
        found.append(Space(parent, found[-1].elements.__getitem__))
    if coarsen == "mesh":
        lower()
    return found


def _degree(space: Space) -> int:
    return max(nodal(space, kind).degree for kind in space.mesh.kinds)


def _of_degree(space: Space, mesh: Any, degree: int) -> Space:
    import basix.ufl

    def element(kind: str) -> Any:
        of = space.elements[kind]
        shape = of.reference_value_shape if of.block_size > 1 else None
        return basix.ufl.element("Lagrange", kind, degree, shape=shape)

    return Space(mesh, element)


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
