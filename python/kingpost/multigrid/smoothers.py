"""What reduces the errors that a coarser level does not see: Chebyshev's iteration, and patches around vertices."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from kingpost.meshes.mesh import Mesh
from kingpost.meshes.space import Space
from kingpost.multigrid.level import Level, Place
from kingpost.multigrid.transfer import Transfer, nodal

Array = Any
#: Steps of Chebyshev's iteration on each level of a patch, and the part of its eigenvalues that they reduce.
PATCH_STEPS, PATCH_RATIO = 2, 6.0


class Smoother(Protocol):
    """Improves ``x`` of a level for its ``b``."""

    def before(self) -> None:
        """From zero; the residual goes to ``r``."""

    def after(self) -> None:
        """From what ``x`` holds."""


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


class Chebyshev:
    """Chebyshev's iteration with Jacobi's on all unknowns (Adams et al. 2003)."""

    def __init__(self, level: Level, steps: int, ratio: float) -> None:
        self._level, self._factors = level, chebyshev(level.largest, ratio, steps)

    def before(self) -> None:
        """See :class:`Smoother`."""
        smooth(self._level, "begin", self._factors)
        self._level.apply(self._level.d)
        self._level.run("end")

    def after(self) -> None:
        """See :class:`Smoother`."""
        self._level.apply(self._level.x)
        smooth(self._level, "begin_again", self._factors)


class Patches:
    """Patches of the cells around each vertex, one after the other, each by a cycle over degrees (Wichrowski 2025).

    The unknowns of a patch are those on entities with its vertex. Patches without a common cell have one colour and
    run at once, as their unknowns do not meet in the form: a colour is the system of all unknowns in its patches. One
    cycle solves it roughly: Chebyshev's iteration in each degree, half of the one before, down to 1, where the vertex is
    the only unknown of its patch, so that its diagonal is the matrix. Actions are those of the whole mesh.
    """

    def __init__(
        self, level: Level, form: Callable[[Space], Any], mask: Callable[[Space], Array], device: str, place: Place
    ) -> None:
        spaces, mesh = lowered(level.space), level.space.mesh
        whole = [level, *(Level(of, form, mask(of), device, place, level.precision) for of in spaces[1:])]
        self._level = level
        self._transfers = [
            Transfer(coarse, fine, device, place, level.precision) for fine, coarse in zip(spaces, spaces[1:])
        ]
        self._factors = [chebyshev(of.largest, PATCH_RATIO, PATCH_STEPS) for of in whole]
        on_vertices = mesh.space("Lagrange", 1)
        colours = coloured(mesh, on_vertices.dofs, on_vertices.size)
        # a vertex has one unknown, or several that depend on each other
        last = whole[-1].largest
        self._last = [(1.0, 0.0)] if level.space.block == 1 else chebyshev(last, PATCH_RATIO, 2 * PATCH_STEPS)
        #: The levels of each colour: those of all unknowns, without those of other patches.
        self.colours = [
            [_within(of, place(_in_patches(of.space, on_vertices.dofs, colours == colour))) for of in whole]
            for colour in range(int(colours.max()) + 1)
        ]

    def before(self) -> None:
        """See :class:`Smoother`."""
        self._level.run("clear", b=self._level.x.reshape(-1))
        for levels in self.colours:
            self._solve(levels)
        self._level.apply(self._level.x)
        self._level.run("rest")

    def after(self) -> None:
        """See :class:`Smoother`."""
        for levels in reversed(self.colours):
            self._solve(levels)

    def _solve(self, levels: list[Level]) -> None:
        """A cycle for the unknowns of a colour, from what ``x`` holds."""
        last = len(levels) - 1
        for at, level in enumerate(levels[:-1]):
            if at == 0:
                level.apply(level.x)
            smooth(level, "begin_again" if at == 0 else "begin", self._factors[at])
            level.apply(level.d)
            level.run("end")
            levels[at + 1].run("clear")
            self._transfers[at].restrict(level.r, levels[at + 1].b, level.inverse)
        smooth(levels[last], "begin", self._last)
        for at in reversed(range(last)):
            level = levels[at]
            self._transfers[at].prolong(levels[at + 1].x, level.x, level.inverse)
            level.apply(level.x)
            smooth(level, "begin_again", self._factors[at])


def _within(level: Level, inside: Array) -> Level:
    """A level whose other unknowns stay as they are."""
    found = copy.copy(level)
    found.inverse = level.inverse * inside.astype(level.inverse.dtype)
    return found


def lowered(space: Space) -> list[Space]:
    """The space, and those of half its degree down to 1 on the same mesh."""
    found, left = [space], degree(space)
    while left > 1:
        left //= 2
        found.append(Space(space.mesh, lambda kind, left=left: _element(space, kind, left)))
    return found


def degree(space: Space) -> int:
    """The largest degree of the elements of a space."""
    return max(nodal(space, kind).degree for kind in space.mesh.kinds)


def _element(space: Space, kind: str, degree: int) -> Any:
    import basix.ufl

    of = space.elements[kind]
    shape = of.reference_value_shape if of.block_size > 1 else None
    return basix.ufl.element("Lagrange", kind, degree, shape=shape)


def coloured(mesh: Mesh, vertices: dict[str, Array], count: int) -> Array:
    """The colour of each vertex: those of a cell have different ones. Each vertex takes the first that is free."""
    around: list[set[int]] = [set() for _ in range(count)]
    for kind in mesh.kinds:
        for cell in vertices[kind].tolist():
            for vertex in cell:
                around[vertex].update(cell)
    colours = [-1] * count
    for vertex, others in enumerate(around):
        taken = {colours[other] for other in others}
        colours[vertex] = next(colour for colour in range(len(taken) + 1) if colour not in taken)
    return np.array(colours)


def _in_patches(space: Space, vertices: dict[str, Array], chosen: Array) -> Array:
    """Which unknowns are on an entity with one of the chosen vertices: 1 or 0, of the shape of the space."""
    inside = np.zeros(space.size)
    for kind, dofs in space.dofs.items():
        topology, own = space.mesh.topology(kind), nodal(space, kind).entity_dofs
        has = np.zeros((dofs.shape[1], vertices[kind].shape[1]), bool)
        for entities, of_entities in zip(topology, own):
            for corners, columns in zip(entities, of_entities):
                has[np.ix_(columns, corners)] = True
        inside[dofs[chosen[vertices[kind]] @ has.T]] = 1.0
    return inside if space.block == 1 else np.repeat(inside[:, None], space.block, axis=1)
