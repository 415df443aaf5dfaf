"""Bilinear forms of DOLFINx as matrices of which only the action is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np

from kingpost.dolfinx.linear import Action, one_bilinear
from kingpost.dolfinx.systems import DividedSystem, System
from kingpost.errors import ArgumentError, FormError
from kingpost.operator import Trial
from kingpost.solvers import Solution, _count, _size

Array = Any


class MatrixFree:
    """A bilinear form with Dirichlet conditions, as a linear map.

    It is the matrix of ``dolfinx.fem.assemble_matrix(form(a), bcs, diag)``: rows and columns of
    constrained degrees of freedom are zero, their diagonal is ``diagonal`` if test and trial
    functions are of one space. Nothing of the matrix is stored.
    """

    #: The action of the form on :attr:`argument`.
    action: Action
    #: The function that the form is applied to.
    argument: Any

    def __init__(
        self, form: Any, bcs: Sequence[Any] = (), device: str = "default", *, diagonal: float = 1.0, **options: Any
    ) -> None:
        one_bilinear(form)
        import ufl
        from dolfinx.fem import Function

        test, trial = (argument.ufl_function_space() for argument in form.arguments())
        dtype = trial.mesh.geometry.x.dtype
        self.argument, self._result = Function(trial, dtype=dtype), Function(test, dtype=dtype)
        derived = ufl.algorithms.expand_derivatives(form)
        if derived.integrals():
            applied = ufl.action(derived, self.argument)
        else:  # UFL has no action of what is zero; this is zero once derived, and has the test function
            applied = ufl.derivative(
                ufl.inner(self._result, ufl.TestFunction(test)) * ufl.dx, self.argument, Function(trial, dtype=dtype)
            )
        self.action = Action(applied, device, **options)
        self._comm = test.mesh.comm
        self._rows, self._columns = constrained(test, bcs, owned=True), constrained(trial, bcs, owned=True)
        self._diagonal = diagonal if test == trial else 0.0
        self._fixed = constrained(trial, bcs)
        self._solving: Any = None
        self._system: tuple[Any, Union[System, DividedSystem, None]] = (None, None)
        ghosts = trial.dofmap.index_map.num_ghosts
        # a process without ghosts has nothing to wait for
        self._late, self._early = self.action._launches(trial) if ghosts else (self.action._all, [])

    @property
    def local_shape(self) -> tuple[int, int]:
        """Rows and columns that this process owns."""
        return _owned(self._result), _owned(self.argument)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of all processes."""
        return _all(self._result), _all(self.argument)

    def mult(self, x: Any, y: Any) -> None:
        """Overwrites the owned entries of ``y`` by the product with ``x``: functions, vectors or arrays.

        Owned entries of ``x`` are read; entities that need no ghost are integrated over while its
        ghosts are on their way.
        """
        source, target = _local(x), _local(y)
        own, result = self.argument.x, self._result.x
        rows, columns = self.local_shape
        own.array[:columns] = source[:columns]
        own.array[self._columns] = 0
        result.array[:] = 0
        varying = self.action._varying((self._result,), {})
        finish = _scatter_forward(own)
        self.action._run(self._early, varying)
        finish()
        self.action._run(self._late, varying)
        _scatter_reverse(result)
        target[:rows] = result.array[:rows]
        target[self._rows] = self._diagonal * source[self._rows] if self._diagonal else 0

    def tune(self, **options: Any) -> list[Trial]:
        """Tries mappings and keeps the fastest that is right, as :meth:`kingpost.Operator.tune`."""
        return self.action.tune(self._result, **options)

    def solve(
        self,
        b: Any,
        x: Any,
        *,
        devices: Optional[Sequence[str]] = None,
        owners: Any = "bisect",
        diagonal: Any = None,
        method: str = "cg",
        relative: float = 1e-10,
        absolute: float = 0.0,
        max_iterations: int = 10_000,
    ) -> Solution:
        """Solves for ``x`` on the devices of all processes: functions, vectors of DOLFINx or arrays, as of :meth:`mult`.

        Vectors stay on the devices: from card to card by NCCL, where each process has a card of its own, otherwise by
        MPI, ghosts are exchanged while cells that need none are computed. ``diagonal`` is that of the matrix, by which
        Jacobi's preconditioner divides. ``method`` is ``cg`` or ``gmres``. One process may have several ``devices``, among
        which the mesh is divided by ``owners``, as by :meth:`kingpost.DividedOperator.divide`. The result's ``x`` are the owned entries.

        Raises:
            FormError: Test and trial functions of two spaces, no diagonal of constrained rows, single precision.
            ArgumentError: Arrays and options that do not fit.
        """
        if self.argument.function_space != self._result.function_space or not self._diagonal:
            raise FormError("needed test and trial functions of one space, and a diagonal of constrained rows")
        limits = (_size("relative", relative), _size("absolute", absolute), _count("max_iterations", max_iterations))
        rows, target = self.local_shape[0], _local(x)
        right = np.array(_local(b)[:rows], "f8")
        right[self._rows] /= self._diagonal
        inverse = np.ones(rows) if diagonal is None else np.array(_local(diagonal)[:rows], "f8")
        inverse[self._rows] = 1.0
        if len(right) != rows or len(inverse) != rows or not (np.isfinite(inverse).all() and inverse.all()):
            raise ArgumentError(f"`b` or `diagonal`: needed {rows} owned entries, of a diagonal finite ones that are not 0")
        among = None if devices is None else (tuple(devices), id(owners))
        kept, system = self._system
        if system is None or kept != among or not system.fits(self):
            system = System(self) if devices is None else DividedSystem(self, devices, owners)
            self._system = among, system
        found, (reason, converged, residuals, seconds) = system.solve(
            self, (right, self._fixed, 1.0 / inverse), method, limits
        )
        target[:rows] = found
        vector = getattr(x, "x", x)
        if hasattr(vector, "scatter_forward"):
            vector.scatter_forward()
        return Solution(found, converged, reason, residuals, seconds, 0.0)

    def own_comm(self) -> Any:
        """A communicator for solves alone, so that no other messages are taken for theirs."""
        if self._solving is None:
            self._solving = self._comm.Dup()
        return self._solving

    def petsc(self) -> Any:
        """A ``PETSc.Mat`` of type ``python`` with this action."""
        from petsc4py import PETSc

        rows, columns = zip(self.local_shape, self.shape)
        matrix = PETSc.Mat().createPython((rows, columns), _Context(self), comm=self._comm)
        matrix.setUp()
        return matrix

    def scipy(self) -> Any:
        """A ``scipy.sparse.linalg.LinearOperator`` with this action, on one process."""
        from scipy.sparse.linalg import LinearOperator

        if self._comm.size > 1:
            raise FormError(
                f"the mesh is on {self._comm.size} processes, SciPy's vectors are on one; use `petsc()`"
            )
        return LinearOperator(self.shape, matvec=self._product, dtype=self.argument.x.array.dtype)

    def _product(self, x: Array) -> Array:
        flat = np.ascontiguousarray(x, dtype=self.argument.x.array.dtype).reshape(-1)
        y = np.empty(self.shape[0], dtype=flat.dtype)
        self.mult(flat, y)
        return y

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<kingpost.dolfinx.MatrixFree {rows}x{columns} by {self.action.operator!r}>"


class _Context:
    """The callbacks of PETSc's matrices of type ``python``."""

    def __init__(self, operator: MatrixFree) -> None:
        self._operator = operator

    def mult(self, matrix: Any, x: Any, y: Any) -> None:
        """Overwrites ``y`` by the product."""
        self._operator.mult(x.array_r, y.array_w)


def _owned(function: Any) -> int:
    return function.x.index_map.size_local * function.x.block_size


def _all(function: Any) -> int:
    return function.x.index_map.size_global * function.x.block_size


def _local(vector: Any) -> Array:
    vector = getattr(vector, "x", vector)
    return vector.array if hasattr(vector, "scatter_reverse") else vector


def constrained(space: Any, bcs: Sequence[Any], *, owned: bool = False) -> Array:
    """Constrained degrees of freedom of a space, blocks unrolled: all of this process, or the owned."""
    found = [np.empty(0, dtype=np.int32)]
    for bc in bcs:
        if space._cpp_object.contains(bc.function_space):
            dofs, n_owned = bc.dof_indices()
            found.append(dofs[:n_owned] if owned else dofs)
    return np.unique(np.concatenate(found))


def _scatter_forward(vector: Any) -> Any:
    """Starts to send owned entries to where they are ghosts; the result waits for them."""
    import dolfinx

    # DOLFINx has both halves only through PETSc
    if not dolfinx.has_petsc4py or vector.array.dtype != _petsc_type():
        vector.scatter_forward()
        return lambda: None
    from petsc4py import PETSc

    how = (PETSc.InsertMode.INSERT, PETSc.ScatterMode.FORWARD)
    vector.petsc_vec.ghostUpdateBegin(*how)
    return lambda: vector.petsc_vec.ghostUpdateEnd(*how)


def _petsc_type() -> Any:
    from petsc4py import PETSc

    return np.dtype(PETSc.ScalarType)


def _scatter_reverse(vector: Any) -> None:
    from dolfinx.la import InsertMode

    vector.scatter_reverse(InsertMode.add)


def operator(
    form: Any, bcs: Sequence[Any] = (), device: str = "default", *, diagonal: float = 1.0, **options: Any
) -> MatrixFree:
    """Compiles the action of a bilinear form with Dirichlet conditions.

    ``options`` are those of :func:`kingpost.dolfinx.action`.

    Raises:
        FormError: As :func:`kingpost.dolfinx.action`.
    """
    return MatrixFree(form, bcs, device, diagonal=diagonal, **options)
