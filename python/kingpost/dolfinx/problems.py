"""Variational problems of DOLFINx, assembled by kernels and solved by PETSc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from kingpost.dolfinx.linear import action
from kingpost.dolfinx.mapping import Array
from kingpost.dolfinx.matrix import Assembled, matrix
from kingpost.errors import FormError

Forms = Any
Functions = Any


class _System:
    """Matrices and vectors of a problem in blocks, one for each unknown, or of one unknown."""

    def __init__(
        self,
        bilinear: Forms,
        linear: Forms,
        unknowns: Optional[Functions],
        bcs: Sequence[Any],
        preconditioner: Optional[Forms],
        kind: Optional[str],
        options: dict[str, Any],
    ) -> None:
        import ufl
        from dolfinx.fem import Function
        from dolfinx.la.petsc import create_vector_wrap
        from petsc4py import PETSc

        self.is_block, self.is_nest = isinstance(bilinear, (list, tuple)), kind == "nest"
        if kind not in (None, "mpi", "nest") or (self.is_nest and not self.is_block):
            found = "blocks" if self.is_block else "one form"
            raise FormError(
                f'found {found} and kind {kind!r}, needed blocks with `kind="nest"`, or `kind="mpi"` or none for one '
                "matrix"
            )
        rows = linear if self.is_block else [linear]
        tests = [one.arguments()[0].ufl_function_space() for one in rows]
        self.bcs = list(bcs)
        self.unknowns = _listed(unknowns) if unknowns is not None else [Function(space) for space in tests]
        # a zero of UFL has a test function and no integrals
        zero = ufl.ZeroBaseForm
        self._linear = [None if isinstance(one, zero) or one.empty() else action(one, **options) for one in rows]
        self._blocks = _assembled(bilinear, self.bcs, options)
        self._preconditioner = None if preconditioner is None else _assembled(preconditioner, self.bcs, options)
        # right-hand sides, and prescribed values; both with ghosts
        self._sides = [Function(space) for space in tests]
        self._values = [Function(u.function_space) for u in self.unknowns]
        self._blocks_of = self._matrices(self._blocks)
        self._preconditioner_of = self._matrices(self._preconditioner)
        self.A, self.P_mat = self._whole(self._blocks_of), self._whole(self._preconditioner_of)
        if self.is_block and not self.is_nest:
            self.b, self.x = self.A.createVecLeft(), self.A.createVecRight()
            return
        self._own = [Function(u.function_space) for u in self.unknowns]
        sides, own = ([create_vector_wrap(f.x) for f in fs] for fs in (self._sides, self._own))
        self.b = PETSc.Vec().createNest(sides) if self.is_nest else sides[0]
        self.x = PETSc.Vec().createNest(own) if self.is_nest else own[0]

    def _matrices(self, blocks: Optional[list[list[Optional[Assembled]]]]) -> Any:
        """The matrix of one form, or a nest of those of blocks."""
        from petsc4py import PETSc

        if blocks is None or not self.is_block:
            return blocks and blocks[0][0].petsc()  # type: ignore[union-attr]
        nest = PETSc.Mat().createNest([[block and block.petsc() for block in row] for row in blocks])
        nest.assemble()
        return nest

    def _whole(self, matrices: Any, whole: Any = None) -> Any:
        """The matrix that a solver takes: blocks without a nest are copied into one."""
        from petsc4py import PETSc

        if matrices is None or self.is_nest or not self.is_block:
            return matrices
        # without a matrix for the result, the nest itself would be converted
        return matrices.convert("aij", PETSc.Mat() if whole is None else whole)

    def assemble_matrix(self) -> None:
        """Computes the entries of both matrices with functions as they are."""
        of = (self._blocks, self._blocks_of, self.A), (self._preconditioner, self._preconditioner_of, self.P_mat)
        for blocks, found, whole in of:
            for i, row in enumerate(blocks or []):
                for j, block in enumerate(row):
                    if block is not None:
                        block.petsc(found.getNestSubMatrix(i, j) if self.is_block else found)
            if found is not None:
                found.assemble()
                self._whole(found, whole)

    def add_linear(self) -> None:
        """Overwrites the right-hand sides by what this process adds to them."""
        for side, linear in zip(self._sides, self._linear):
            side.x.array[:] = 0
            if linear is not None:
                linear(side)

    def lift(self, values: Sequence[Any], sign: float) -> None:
        """Adds the columns of constrained degrees of freedom, multiplied by values, and sends what ghosts got."""
        from dolfinx.la import InsertMode

        for side, row in zip(self._sides, self._blocks):
            for block, value in zip(row, values):
                if block is not None and self.bcs:
                    side.x.array[:] += sign * block.lifting(value.x.array)
            side.x.scatter_reverse(InsertMode.add)

    def prescribed(self) -> list[Any]:
        """Functions with the prescribed values as they are now, which are zero elsewhere."""
        for value in self._values:
            value.x.array[:] = 0
            for bc in self._of(value.function_space):
                bc.set(value.x.array)
        return self._values

    def constrained(self, space: Any) -> Array:
        """The constrained degrees of freedom of a space."""
        from kingpost.dolfinx.bilinear import constrained

        return constrained(space, self.bcs)

    def _of(self, space: Any) -> list[Any]:
        return [bc for bc in self.bcs if space._cpp_object.contains(bc.function_space)]

    def sides(self) -> None:
        """Brings the right-hand sides into the vector of PETSc, where it is another one."""
        if self.is_block and not self.is_nest:
            for side, part in zip(self._sides, self._parts(self.b.array_w)):
                part[:] = side.x.array[: len(part)]

    def _parts(self, array: Array) -> list[Array]:
        """The owned entries of each unknown in those of a vector of PETSc."""
        sizes = [u.x.index_map.size_local * u.x.block_size for u in self.unknowns]
        return np.split(array, np.cumsum(sizes))[: len(sizes)]

    def spread(self, x: Any) -> None:
        """Copies a vector of PETSc into the unknowns, ghosts included."""
        parts = [v.array_r for v in x.getNestSubVecs()] if self.is_nest else self._parts(x.array_r)
        for part, unknown in zip(parts, self.unknowns):
            unknown.x.array[: len(part)] = part
            unknown.x.scatter_forward()

    def gather(self) -> None:
        """Copies the unknowns into the vector of PETSc."""
        parts = [v.array_w for v in self.x.getNestSubVecs()] if self.is_nest else self._parts(self.x.array_w)
        for part, unknown in zip(parts, self.unknowns):
            part[:] = unknown.x.array[: len(part)]

    def solution(self) -> Functions:
        """The unknowns as they were given."""
        return self.unknowns if self.is_block else self.unknowns[0]


def _listed(functions: Functions) -> list[Any]:
    return list(functions) if isinstance(functions, (list, tuple)) else [functions]


def _assembled(forms: Forms, bcs: Sequence[Any], options: dict[str, Any]) -> list[list[Optional[Assembled]]]:
    rows = forms if isinstance(forms, (list, tuple)) else [[forms]]
    return [[None if one is None else matrix(one, bcs, **options) for one in row] for row in rows]


def _configure(solver: Any, system: _System, prefix: str, options: Optional[dict[str, Any]]) -> None:
    """Gives PETSc's objects their prefixes, and the solver its options."""
    from petsc4py import PETSc

    if not prefix:
        raise FormError("`petsc_options_prefix` is empty, needed a name such as `poisson_`")
    solver.setOptionsPrefix(prefix)
    for name, thing in (("A", system.A), ("P_mat", system.P_mat), ("b", system.b), ("x", system.x)):
        if thing is not None:
            thing.setOptionsPrefix(f"{prefix}{name}_")
    known = PETSc.Options()
    known.prefixPush(prefix)
    for name, value in (options or {}).items():
        known[name] = value
    solver.setFromOptions()
    for name in options or {}:
        del known[name]
    known.prefixPop()


def _split_fields(solver: Any, system: _System) -> None:
    """Tells the preconditioner which unknowns are whose, as DOLFINx does."""
    sets = system.A.getNestISs()[0]
    names = [f"{u.name + '_' if u.name != 'f' else ''}{i}" for i, u in enumerate(system.unknowns)]
    solver.getPC().setFieldSplitIS(*zip(names, sets))


class _Problem:
    """What both kinds of problems show of their system."""

    _system: _System
    #: The solver of PETSc.
    solver: Any

    @property
    def A(self) -> Any:
        """The matrix, a ``PETSc.Mat``."""
        return self._system.A

    @property
    def P_mat(self) -> Any:
        """The matrix that the preconditioner is made of, or none."""
        return self._system.P_mat

    @property
    def b(self) -> Any:
        """The right-hand side, a ``PETSc.Vec``."""
        return self._system.b

    @property
    def x(self) -> Any:
        """The solution, a ``PETSc.Vec``."""
        return self._system.x

    @property
    def u(self) -> Functions:
        """The function, or the functions, that are solved for."""
        return self._system.solution()


class LinearProblem(_Problem):
    """As ``dolfinx.fem.petsc.LinearProblem``, assembled by kernels.

    One form or blocks, these in a nest with ``kind="nest"``, else in one matrix. ``bcs`` may be given other values between calls of
    :meth:`solve`, but not other degrees of freedom.
    """

    def __init__(
        self,
        a: Forms,
        L: Forms,
        *,
        petsc_options_prefix: str,
        bcs: Optional[Sequence[Any]] = None,
        u: Optional[Functions] = None,
        P: Optional[Forms] = None,
        kind: Optional[str] = None,
        petsc_options: Optional[dict[str, Any]] = None,
        **options: Any,
    ) -> None:
        from petsc4py import PETSc

        self._system = _System(a, L, u, bcs or [], P, kind, options)
        self.solver = PETSc.KSP().create(self.A.comm)
        self.solver.setOperators(self.A, self.P_mat)
        _configure(self.solver, self._system, petsc_options_prefix, petsc_options)
        if self._system.is_nest:
            _split_fields(self.solver, self._system)

    def solve(self) -> Functions:
        """Assembles with functions, constants and prescribed values as they are, and solves."""
        system = self._system
        system.assemble_matrix()
        system.add_linear()
        values = system.prescribed()
        system.lift(values, -1.0)
        for side, value in zip(system._sides, values):
            fixed = system.constrained(side.function_space)
            side.x.array[fixed] = value.x.array[fixed]
        system.sides()
        self.solver.solve(self.b, self.x)
        system.spread(self.x)
        return system.solution()


class NonlinearProblem(_Problem):
    """As ``dolfinx.fem.petsc.NonlinearProblem``, assembled by kernels: Newton's method of PETSc (``SNES``)."""

    def __init__(
        self,
        F: Forms,
        u: Functions,
        *,
        petsc_options_prefix: str,
        bcs: Optional[Sequence[Any]] = None,
        J: Optional[Forms] = None,
        P: Optional[Forms] = None,
        kind: Optional[str] = None,
        petsc_options: Optional[dict[str, Any]] = None,
        **options: Any,
    ) -> None:
        from petsc4py import PETSc

        if J is None:
            J = _jacobian(F, u)
        self._system = system = _System(J, F, u, bcs or [], P, kind, options)
        self.solver = PETSc.SNES().create(self.A.comm)
        # of the system alone: a solver that knew its problem would keep both
        self.solver.setFunction(_residual, system.b, kargs={"system": system})
        self.solver.setJacobian(_matrices, system.A, system.P_mat, kargs={"system": system})
        _configure(self.solver, system, petsc_options_prefix, petsc_options)
        if system.is_nest and system.P_mat is not None:
            _split_fields(self.solver.getKSP(), system)

    def solve(self) -> Functions:
        """Solves from what the unknowns hold."""
        self._system.gather()
        self.solver.solve(None, self.x)
        self._system.spread(self.x)
        return self._system.solution()


def _residual(_: Any, x: Any, b: Any, system: _System) -> None:
    system.spread(x)
    system.add_linear()
    # what is not yet as prescribed
    missing = system.prescribed()
    for value, unknown in zip(missing, system.unknowns):
        fixed = system.constrained(value.function_space)
        value.x.array[fixed] -= unknown.x.array[fixed]
    largest = max((abs(value.x.array).max(initial=0.0) for value in missing), default=0.0)
    if system.A.comm.tompi4py().allreduce(largest) > 0:
        system.assemble_matrix()
        system.lift(missing, 1.0)
    else:
        system.lift([], 1.0)
    for side, value in zip(system._sides, missing):
        fixed = system.constrained(side.function_space)
        side.x.array[fixed] = -value.x.array[fixed]
    system.sides()
    if b.handle != system.b.handle:
        system.b.copy(b)


def _matrices(_: Any, x: Any, J: Any, P: Any, system: _System) -> None:
    system.spread(x)
    system.assemble_matrix()


def _jacobian(residual: Forms, unknowns: Functions) -> Forms:
    """The derivative of a residual, or of the residuals of several unknowns."""
    import ufl

    if not isinstance(residual, (list, tuple)):
        return ufl.derivative(residual, unknowns, ufl.TrialFunction(unknowns.function_space))
    trials = [ufl.TrialFunction(u.function_space) for u in unknowns]

    def block(form: Any, unknown: Any, trial: Any) -> Optional[Any]:
        found = ufl.algorithms.expand_derivatives(ufl.derivative(form, unknown, trial))
        return None if found.empty() else found

    return [[block(form, u, trial) for u, trial in zip(unknowns, trials)] for form in residual]
