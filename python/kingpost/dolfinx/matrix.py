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
    degrees of freedom are those of ``dolfinx.fem.assemble_matrix(form(a), bcs, diag)``. What the
    columns are multiplied by is :meth:`lifting`'s.
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
        self._of_rows = np.repeat(np.arange(self._shape[0], dtype=np.int32), np.diff(self._rows))
        free_rows, free_columns = np.ones(self._shape[0], bool), np.ones(self._shape[1], bool)
        free_rows[constrained(test, bcs)] = free_columns[constrained(trial, bcs)] = False
        in_rows, in_columns = free_rows[self._of_rows], free_columns[self._columns]
        self._zeros = np.flatnonzero(~(in_rows & in_columns))
        self._lifted = np.flatnonzero(in_rows & ~in_columns)
        # an owned row is constrained where it is owned
        self._ones = constrained(test, bcs, owned=True) if test == trial and diagonal else np.empty(0, np.int32)
        self._diagonal = diagonal
        types = {a.name: a.dtype for a in self.operator.arguments}
        self._stored = zeros(self._pattern, types[self._pattern.name])
        self._lifted_data = np.zeros(len(self._lifted))

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

    def _compute(self) -> Array:
        """The entries that this process adds, by the pattern; without the diagonal of constraints."""
        self._stored[:] = 0
        inputs = self._inputs({})
        parts = {part.name: part for part in self.operator.parts}
        for each in self._all:
            if each.count == 0:
                continue
            compiled = parts[each.part].compiled
            own = {a.name for a in compiled.arguments}
            position, places = self._pattern.positions[each.part]
            given = {**inputs, **each.fixed, self._pattern.name: self._stored, position: places}
            compiled(**{key: value for key, value in given.items() if key in own})
        data = _host(self._stored)
        self._lifted_data = data[self._lifted]
        data[self._zeros] = 0
        return data

    def lifting(self, values: Array) -> Array:
        """What the columns of constrained degrees of freedom, with these values, add to the rows of this process.

        ``values`` has all local degrees of freedom of the trial function, ghosts included, and so has the result
        those of the test function; what is added to ghosts is the caller's to send. The entries are those that
        :meth:`scipy` or :meth:`petsc` last computed. Constrained rows are zero.
        """
        terms = self._lifted_data * values[self._columns[self._lifted]]
        return np.bincount(self._of_rows[self._lifted], weights=terms, minlength=self._shape[0])

    @property
    def _on_diagonal(self) -> Array:
        """The places of the diagonal entries of constrained rows."""
        is_one = np.zeros(self._shape[0], bool)
        is_one[self._ones] = True
        return np.flatnonzero((self._of_rows == self._columns) & is_one[self._of_rows])

    def scipy(self) -> Any:
        """The matrix as a ``scipy.sparse.csr_matrix``, on one process."""
        from scipy.sparse import csr_matrix

        comm = self._mapping.mesh.comm
        if comm.size > 1:
            raise FormError(f"the mesh is on {comm.size} processes, matrices of SciPy are on one; use `petsc()`")
        data = self._compute().copy()
        data[self._on_diagonal] = self._diagonal
        return csr_matrix((data, self._columns.copy(), self._rows.copy()), self._shape)

    def petsc(self, matrix: Any = None) -> Any:
        """The matrix as a ``PETSc.Mat`` of type ``aij``, whose entries may be those of an earlier call.

        On one process, and a device that reaches the host's memory, the matrix has its entries where they were
        computed: without a copy, so that each call changes the matrices of all calls before it.
        """
        from petsc4py import PETSc

        comm = self._mapping.mesh.comm
        in_place = comm.size == 1 and isinstance(self._stored, np.ndarray) and self._stored.dtype == PETSc.ScalarType
        if in_place and self._rows.dtype == PETSc.IntType:
            return self._in_place(matrix)
        test, trial = self._spaces
        if matrix is None:
            rows = np.concatenate([_global(test)[self._of_rows], _global(test)[self._ones]])
            columns = np.concatenate([_global(trial)[self._columns], _global(trial)[self._ones]])
            matrix = PETSc.Mat().create(comm)
            matrix.setSizes([_sizes(test), _sizes(trial)])
            matrix.setType("aij")
            matrix.setBlockSizes(test.dofmap.index_map_bs, trial.dofmap.index_map_bs)
            matrix.setPreallocationCOO(rows.astype(PETSc.IntType), columns.astype(PETSc.IntType))
        ones = np.full(len(self._ones), self._diagonal)
        # values of one entry are added up, on the process that owns it
        matrix.setValuesCOO(np.concatenate([self._compute(), ones]).astype(PETSc.ScalarType))
        return matrix

    def _in_place(self, matrix: Any) -> Any:
        """The matrix, or a new one, whose entries are those that are computed."""
        from petsc4py import PETSc

        data = self._compute()
        data[self._on_diagonal] = self._diagonal
        if matrix is None:
            test, trial = self._spaces
            blocks = test.dofmap.index_map_bs, trial.dofmap.index_map_bs
            sizes = [(n, n) for n in self._shape]
            arrays = self._rows, self._columns, data
            matrix = PETSc.Mat().createAIJWithArrays(sizes, arrays, bsize=blocks, comm=self._mapping.mesh.comm)
        matrix.assemble()
        matrix.stateIncrease()
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
