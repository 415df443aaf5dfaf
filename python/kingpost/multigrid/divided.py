"""Two levels on several devices: a form in its own elements, and in elements of degree 1 on the same mesh."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Optional

import numpy as np

from kingpost.arrays import _about
from kingpost.coarse import CoarseSpace
from kingpost.errors import ArgumentError, ShapeError
from kingpost.meshes import action, diagonal, matrix
from kingpost.meshes.space import Space
from kingpost.multigrid.cycle import _mask
from kingpost.multigrid.smoothers import degree, lowered
from kingpost.multigrid.transfer import _rows
from kingpost.solvers import Solution

Array = Any
#: Steps of Chebyshev's iteration for each degree, and the ratio of its interval for the square of the degree: the
#: coarse level has none of what lies between degree 1 and that of the form.
STEPS_OF_DEGREE, RATIO_OF_SQUARE = 2, 5.0


class TwoLevels:
    """A bilinear form on several devices, and solvers for it that need no matrix of it.

    ``form`` gives the form on a space: a form of UFL, or a function of the kind of cells. It is applied on ``space`` by
    the ``devices``, each on its part of the mesh, and assembled in elements of degree 1 on the same mesh, where each
    device solves nearly by a cycle of algebraic multigrid: iterations do not depend on the number of devices. ``fixed``
    gives the degrees of freedom of a space whose values are prescribed, or for each component whether it is (an array of
    ``bool`` of the space's shape). ``options`` are those of :meth:`kingpost.DividedOperator.divide`.

    ``steps`` of Chebyshev's iteration smooth before and after (twice the degree), for eigenvalues from a ``ratio``-th of
    the largest on (five times the square of the degree).

    Raises:
        ArgumentError: A space of degree 1, which has no coarser one: solve with its matrix, ``preconditioner="amg"``.
        FormError: Cells of several kinds.
        MeshError: Elements whose degrees of freedom are no values at points.
    """

    def __init__(
        self,
        space: Space,
        form: Callable[[Space], Any],
        *,
        devices: Sequence[str],
        fixed: Optional[Callable[[Space], Array]] = None,
        steps: Optional[int] = None,
        ratio: Optional[float] = None,
        **options: Any,
    ) -> None:
        import ufl

        start, order = time.perf_counter(), degree(space)
        if order == 1:
            message = f"{space!r} is of degree 1; needed more, or `kingpost.meshes.matrix(mesh, form, devices=…).divide()`"
            raise _about(ArgumentError, "space", f'{message}, whose `solve` takes `preconditioner="amg"`')
        mesh, coarse, self._u = space.mesh, lowered(space)[-1], space.function()
        made = form(space)

        def applied(kind: str) -> Any:
            return ufl.action(made if isinstance(made, ufl.Form) else made(kind), self._u.on(kind))

        operator = action(mesh, applied, devices=devices)
        #: The action of the form on the parts of the mesh.
        self.division = operator.divide(**options)
        (of_kind,) = operator.of_kinds.values()
        self._name = next(name for name, one in of_kind.functions.items() if one.function is self._u)
        self._diagonal = np.zeros(space.shape)
        diagonal(mesh, made, devices=devices).divide(like=self.division)(self._diagonal)
        self._fixed, self._shape = np.flatnonzero(_mask(space, fixed)), space.shape
        whole = matrix(mesh, form(coarse), devices=devices).divide(like=self.division).assemble()
        #: The coarse level.
        self.coarse = CoarseSpace(
            whole,
            interpolation(coarse, space),
            components=coarse.block,
            points=coarse.interpolate(lambda x: x) if coarse.block == mesh.positions.shape[1] > 1 else None,
            steps=STEPS_OF_DEGREE * order if steps is None else steps,
            ratio=RATIO_OF_SQUARE * order**2 if ratio is None else ratio,
        )
        #: Seconds that all of this took.
        self.setup_seconds = time.perf_counter() - start

    def solve(self, b: Array, values: Any = 0.0, **options: Any) -> Solution:
        """Solves the system of the form.

        ``b`` has the shape of the space, and unknowns that are fixed get the ``values``, a number or an array like it.
        ``options`` are the ``method``, ``relative``, ``absolute`` and ``max_iterations`` of
        :meth:`kingpost.Division.solve`. Each call finds the largest eigenvalue, and the first one sets the coarse level
        up: both are in the result's ``setup_seconds`` with what was done once.
        """
        if np.shape(b) != self._shape:
            raise _about(ShapeError, "b", f"`b` has the shape {list(np.shape(b))}; needed {list(self._shape)}")
        given = {"diagonal": self._diagonal, "preconditioner": self.coarse}
        found = self.division.solve(b, self._name, fixed=self._fixed, values=values, **given, **options)
        return replace(found, setup_seconds=found.setup_seconds + self.setup_seconds)

    def __repr__(self) -> str:
        return f"<kingpost.multigrid.TwoLevels of {int(np.prod(self._shape))} and {self.coarse.size} unknowns>"


def interpolation(coarse: Space, fine: Space) -> Any:
    """The interpolation from a space to one that contains it, a ``scipy.sparse.csr_array`` of unknowns, for a
    :class:`kingpost.CoarseSpace`. The spaces are as of :class:`Transfer`.

    Raises:
        MeshError: As of :class:`Transfer`.
    """
    from scipy.sparse import csr_array, eye_array, kron

    found = _rows(coarse, fine)
    row, starts = found["row"], found["row_starts"]
    counts = np.diff(starts)[row]
    indptr = np.concatenate([[0], np.cumsum(counts)])
    at = np.repeat(starts[row] - indptr[:-1], counts) + np.arange(indptr[-1])
    columns = found["map"][np.repeat(found["first"], counts) + found["columns"][at]]
    scalar = csr_array((found["weights"][at], columns, indptr), shape=(fine.size, coarse.size))
    return scalar if fine.block == 1 else csr_array(kron(scalar, eye_array(fine.block), format="csr"))
