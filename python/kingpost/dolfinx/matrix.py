"""Bilinear forms of DOLFINx as assembled matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from kingpost.dolfinx.bilinear import constrained
from kingpost.dolfinx.entities import Batch
from kingpost.dolfinx.linear import Action, one_bilinear
from kingpost.dolfinx.mapping import Array, Place
from kingpost.errors import FormError
from kingpost.sparse import Pattern, patterns, zeros


class Assembled(Action):
    """A bilinear form with Dirichlet conditions, whose matrix is assembled.

    The pattern is built once, here. :meth:`scipy` and :meth:`petsc` compute the entries with
    functions, constants and positions as they are at the call. Rows and columns of constrained
    degrees of freedom are those of ``dolfinx.fem.assemble_matrix(form(a), bcs, diag)``.
    """

    def __init__(
        self,
        form: Any,
        bcs: Sequence[Any] = (),
        device: str = "default",
        *,
        diagonal: float = 1.0,
        place: Optional[Place] = None,
        order_cells: bool = False,
        **options: Any,
    ) -> None:
        one_bilinear(form)
        super().__init__(form, device, place=place, order_cells=order_cells, matrix="sparse", **options)
        test, trial = self._spaces
        self._shape = _local_size(test), _local_size(trial)
        given = {each.part: each.fixed for each in self._all}
        (self._pattern,) = patterns(self.operator, given, self._shape).values()
        self._rows, self._columns = _host(self._pattern.indptr), _host(self._pattern.indices)
        self._mask = self._unconstrained(constrained(test, bcs), constrained(trial, bcs))
        # an owned row is constrained where it is owned
        self._ones = constrained(test, bcs, owned=True) if test == trial and diagonal else np.empty(0, np.int32)
        self._diagonal = diagonal

    @property
    def pattern(self) -> Pattern:
        """The stored entries of this process, rows and columns of ghosts included."""
        return self._pattern

    def _argument_spaces(self, form: Any) -> tuple[Any, ...]:
        self._spaces = tuple(argument.ufl_function_space() for argument in form.arguments())
        return self._spaces

    def _fixed(self, part: str, batch: Batch) -> dict[str, Array]:
        found = super()._fixed(part, batch)
        for name in self._maps(part):
            if name not in found:
                found[name] = self._mapping.fixed(self._roles[name], batch)
        return found

    def _maps(self, part: str) -> list[str]:
        """The numberings of the rows and columns of a part."""
        (found,) = (p for p in self.operator.parts if p.name == part)
        return [name for matrix in found.form.matrices for name, _, _ in matrix[2]]

    def _unconstrained(self, rows: Array, columns: Array) -> Array:
        """1 for entries that keep their values, 0 for those of constrained rows and columns."""
        free_rows, free_columns = np.ones(self._shape[0], bool), np.ones(self._shape[1], bool)
        free_rows[rows] = free_columns[columns] = False
        return np.repeat(free_rows, np.diff(self._rows)) & free_columns[self._columns]

    def _entries(self) -> Array:
        """The entries that this process adds, by the pattern; without the diagonal of constraints."""
        types = {a.name: a.dtype for a in self.operator.arguments}
        name = self._pattern.name
        data = zeros(self._pattern, types[name])
        inputs = self._inputs({})
        for each, part in ((e, p) for e in self._all for p in self.operator.parts if p.name == e.part):
            if each.count == 0:
                continue
            own = {a.name for a in part.compiled.arguments}
            position, places = self._pattern.positions[part.name]
            given = {**inputs, **each.fixed, name: data, position: places}
            part.compiled(**{key: value for key, value in given.items() if key in own})
        return np.where(self._mask, _host(data), 0)

    def scipy(self) -> Any:
        """The matrix as a ``scipy.sparse.csr_matrix``, on one process."""
        from scipy.sparse import csr_matrix

        comm = self._mapping.mesh.comm
        if comm.size > 1:
            raise FormError(f"the mesh is on {comm.size} processes, matrices of SciPy are on one; use `petsc()`")
        data = self._entries()
        if len(self._ones):
            on_diagonal = np.repeat(np.arange(self._shape[0]), np.diff(self._rows)) == self._columns
            data[on_diagonal & np.isin(self._columns, self._ones)] = self._diagonal
        return csr_matrix((data, self._columns.copy(), self._rows.copy()), self._shape)

    def petsc(self, matrix: Any = None) -> Any:
        """The matrix as a ``PETSc.Mat`` of type ``aij``, whose entries may be those of an earlier call."""
        from petsc4py import PETSc

        if matrix is None:
            test, trial = self._spaces
            rows = np.repeat(np.arange(self._shape[0]), np.diff(self._rows))
            rows = np.concatenate([_global(test)[rows], _global(test)[self._ones]])
            columns = np.concatenate([_global(trial)[self._columns], _global(trial)[self._ones]])
            matrix = PETSc.Mat().create(self._mapping.mesh.comm)
            matrix.setSizes([_sizes(test), _sizes(trial)])
            matrix.setType("aij")
            matrix.setPreallocationCOO(rows.astype(PETSc.IntType), columns.astype(PETSc.IntType))
        ones = np.full(len(self._ones), self._diagonal)
        # values of one entry are added up, on the process that owns it
        matrix.setValuesCOO(np.concatenate([self._entries(), ones]).astype(PETSc.ScalarType))
        return matrix

    def __repr__(self) -> str:
        rows, columns = self._shape
        return f"<kingpost.dolfinx.Assembled {rows}x{columns}, {len(self._columns)} entries, by {self.operator!r}>"


def _local_size(space: Any) -> int:
    index_map = space.dofmap.index_map
    return (index_map.size_local + index_map.num_ghosts) * space.dofmap.index_map_bs


def _sizes(space: Any) -> tuple[int, int]:
    """Owned and all degrees of freedom."""
    index_map, block = space.dofmap.index_map, space.dofmap.index_map_bs
    return index_map.size_local * block, index_map.size_global * block


def _global(space: Any) -> Array:
    """The numbers over all processes of local degrees of freedom."""
    index_map, block = space.dofmap.index_map, space.dofmap.index_map_bs
    local = np.arange(index_map.size_local + index_map.num_ghosts, dtype=np.int32)
    return (index_map.local_to_global(local)[:, None] * block + np.arange(block)).reshape(-1)


def _host(array: Any) -> Array:
    if hasattr(array, "cpu"):  # PyTorch
        return array.cpu().numpy()
    return array.get() if hasattr(array, "get") else np.asarray(array)


def matrix(
    form: Any, bcs: Sequence[Any] = (), device: str = "default", *, diagonal: float = 1.0, **options: Any
) -> Assembled:
    """Compiles a bilinear form with Dirichlet conditions, to be assembled.

    ``options`` are those of :func:`kingpost.dolfinx.action`.

    Raises:
        FormError: As :func:`kingpost.dolfinx.action`; a form that is not bilinear.
    """
    return Assembled(form, bcs, device, diagonal=diagonal, **options)
