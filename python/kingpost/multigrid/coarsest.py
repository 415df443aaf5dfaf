"""The direct solve of the coarsest level."""

from __future__ import annotations

from typing import Any

import numpy as np

from kingpost.errors import ArgumentError
from kingpost.meshes import matrix
from kingpost.meshes.forms import DTYPES
from kingpost.meshes.space import Space
from kingpost.sparse import _beside, _host

Array = Any
#: Unknowns up to which the inverse is kept as a dense matrix, on the device: 32 MiB.
DENSE = 2048
#: Solutions of systems of a larger condition have no digit that is right.
CONDITION = 1e14


class Coarsest:
    """The inverse of a form's matrix: dense and on the device where it is small, else factors on the host."""

    def __init__(self, space: Space, form: Any, fixed: Array, place: Any, precision: str) -> None:
        from scipy.sparse.linalg import splu

        free = np.flatnonzero(~fixed.reshape(-1))
        self._free, self.is_on_host = free, fixed.size > DENSE
        whole = matrix(space.mesh, form).assemble().tocsc()[free][:, free].tocsc()
        if self.is_on_host:
            try:
                self._factors = splu(whole)
            except RuntimeError:
                raise _singular(space) from None
            pivots = abs(self._factors.U.diagonal())
            # rounding leaves something of the pivot that would be zero
            if not pivots.min() * CONDITION > pivots.max():
                raise _singular(space)
            return
        # the kernel multiplies by its transpose
        self.inverse = np.zeros((fixed.size, fixed.size))
        self.inverse[np.ix_(free, free)] = _inverse(whole.toarray(), space).T
        self.inverse = place(self.inverse.astype(DTYPES[precision]))

    def solve(self, level: Any) -> None:
        """Puts the solution for ``b`` of the level into ``x``."""
        if not self.is_on_host:
            level.run("multiply", a=self.inverse)
            return
        x = np.zeros(level.b.size)
        x[self._free] = self._factors.solve(_host(level.b).reshape(-1)[self._free].astype(float))
        level.x[...] = _beside(level.x, x.reshape(level.b.shape))


def _inverse(whole: Array, space: Space) -> Array:
    if not whole.size:
        return whole
    try:
        found = np.linalg.inv(whole)
    except np.linalg.LinAlgError:
        raise _singular(space) from None
    condition = np.linalg.norm(whole, 1) * np.linalg.norm(found, 1)
    if not condition < CONDITION:
        raise _singular(space)
    return found


def _singular(space: Space) -> ArgumentError:
    where = f"the form is singular on {space!r}, the coarsest level"
    return ArgumentError(f"{where}; needed values that are `fixed`, or a term that makes it regular")
