"""Sparse matrices on divided meshes."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from kingpost import _kingpost
from kingpost.arrays import _about
from kingpost.division import Division
from kingpost.divided_solve import System, limits_of, vector
from kingpost.errors import ArgumentError, FormError, ShapeError
from kingpost.part_arrays import OfMesh
from kingpost.solvers import Solution, _count, _reals
from kingpost.sparse import Csr

Array = Any


class Pattern(NamedTuple):
    """The stored entries of a part: where rows start and their columns, and where those of each kernel's entities stand."""

    indptr: Array
    indices: Array
    #: By place of the kernel, i32 ``[entities, rows, columns]``.
    positions: dict[int, Array]


class DividedMatrix(Division):
    """A sparse matrix on a mesh that is divided among devices, each of which assembles the rows of its part.

    :meth:`assemble` returns it, :meth:`product` multiplies by it and :meth:`solve` solves with it on the devices,
    where each call assembles it with the present values of functions.
    """

    def _check_options(self) -> None:
        if not self._overlap:
            raise FormError("`overlap=False` adds up vectors; the rows of a matrix are whole: leave it out")

    @property
    def _columns(self) -> int:
        return self._output["spaces"][1]

    def _has_rows(self) -> bool:
        """Whether rows and columns are of the same unknowns."""
        import numpy

        rows, columns = self._space, self._columns
        assert rows is not None
        same = rows == columns or numpy.array_equal(self._maps[rows], self._maps[columns])
        return same and self._block(rows) == self._block(columns)

    def _places_name(self, place: int) -> str:
        """The argument of a kernel for the places of entries."""
        (matrix,) = self._operators[0].parts[place].form.matrices
        return matrix[1]

    def _pattern(self, part: int, places: dict[int, Array], chosen: list[tuple[OfMesh, Array]]) -> Pattern:
        """The pattern of a part, to which its kernels add on their entities."""
        import numpy

        of_part, raw, extents, kernels = self._parts[part], [], [], []
        assert self._space is not None
        spaces = (self._space, self._columns)
        local = {space: places[space].take(self._maps[space].take(of_part.cells, axis=0)) for space in spaces}
        for kernel, entities in chosen:
            if not len(entities):
                continue
            cells = numpy.searchsorted(of_part.cells, kernel.cells[entities])
            lists = []
            for space in spaces:
                dofs = local[space][cells.reshape(-1)].reshape(len(cells), -1)
                numbers = dofs[:, :, None] * self._block(space) + numpy.arange(self._block(space))
                lists.append(numpy.ascontiguousarray(numbers.reshape(len(dofs), -1), "i4"))
            rows, columns = lists
            raw.append((rows.shape[1], columns.shape[1], rows.tobytes(), columns.tobytes()))
            extents.append((len(rows), rows.shape[1], columns.shape[1]))
            kernels.append(kernel.place)
        n_rows, n_columns = (len(of_part.dofs[space]) * self._block(space) for space in spaces)
        indptr, indices, found = _kingpost.csr_pattern(n_rows, n_columns, raw)
        if not raw:
            return Pattern(numpy.zeros(n_rows + 1, "i4"), numpy.zeros(0, "i4"), {})
        positions = {
            kernel: numpy.frombuffer(place, "i4").reshape(extent) for kernel, place, extent in zip(kernels, found, extents)
        }
        return Pattern(numpy.frombuffer(indptr, "i4"), numpy.frombuffer(indices, "i4"), positions)

    @cached_property
    def _entries(self) -> tuple[Array, Array, list[tuple[Array, Array]]]:
        """The rows of the whole matrix, and for each part which entries it has of them, and where these stand."""
        import numpy

        assert self._space is not None
        rows, columns, kept = [], [], []
        for part, of_part in enumerate(self._parts):
            pattern = self._of_all_parts[part]
            of_row = numpy.repeat(numpy.arange(len(pattern.indptr) - 1), numpy.diff(pattern.indptr))
            whole = self._spread(of_part.dofs[self._space], self._space)
            is_own = numpy.zeros(len(whole), bool)
            is_own[self._spread(of_part.owned, self._space)] = True
            own = numpy.flatnonzero(is_own[of_row])
            of_row = whole[of_row[own]]
            of_column = self._spread(of_part.dofs[self._columns], self._columns)[pattern.indices[own]]
            # in the order of the whole mesh
            order = numpy.lexsort((of_column, of_row))
            rows.append(of_row[order])
            columns.append(of_column[order])
            kept.append(own[order])
        n = self._n * self._block(self._space)
        counts = numpy.bincount(numpy.concatenate(rows), minlength=n)
        indptr = numpy.concatenate([[0], numpy.cumsum(counts)]).astype("i4")
        indices, places = numpy.empty(indptr[-1], "i4"), []
        for of_row, of_column, own in zip(rows, columns, kept):
            # rows are whole and ascend: an entry has its place from the first of its row on
            first = numpy.searchsorted(of_row, of_row)
            at = indptr[of_row] + (numpy.arange(len(of_row)) - first)
            indices[at] = of_column
            places.append((own, at))
        return indptr, indices, places

    @cached_property
    def _of_all_parts(self) -> list[Pattern]:
        """The patterns of all parts, those of other processes too."""
        mine = [self._patterns[part] for part in self._own]
        if self._comm is None:
            return mine
        return [pattern for (pattern,) in self._comm.allgather(mine)]

    def assemble(self, **functions: Any) -> Csr:
        """The matrix on the host, with new values of some functions, which later calls keep.

        ``scipy.sparse.csr_matrix((csr.data, csr.indices, csr.indptr))``.
        """
        import numpy

        indptr, indices, places = self._entries
        changed = self._changed(functions)
        found, _ = self._all(lambda: (self._engine.apply(changed), None), self._dtype)
        data = numpy.empty(len(indices), self._dtype)
        for (own, at), values in zip(places, found):
            data[at] = values[own]
        return Csr(indptr, indices, data)

    def __call__(self, *outputs: Any, **functions: Any) -> None:
        """Refused: a matrix is assembled."""
        raise FormError("the result is a sparse matrix; `assemble` returns it, `product` multiplies by it")

    def product(self, x: Any, **functions: Any) -> Array:
        """The product with a vector, f64 of the shape of a result, on the devices."""
        import numpy

        self._check_rows()
        given = vector(self, "x", x)
        self.update(**functions)
        own = [given.reshape(-1)[self._unknowns[part]].tobytes() for part in self._own]
        found, _ = self._all(lambda: (self._engine.product(own), None), "f8")
        y = numpy.zeros(given.size)
        for unknowns, values in zip(self._unknowns, found):
            y[unknowns] = values
        return y.reshape(given.shape)

    def _check_rows(self) -> None:
        if not self._has_rows():
            raise FormError("the matrix has rows and columns of two spaces; devices multiply by square ones: use `assemble`")
        if self._dtype != "float64":
            raise FormError(f"the matrix is of {self._dtype}; devices multiply by f64: use `assemble`")

    def solve(  # type: ignore[override]
        self,
        b: Any,
        *,
        fixed: Any = (),
        values: Any = 0.0,
        method: str = "cg",
        preconditioner: str = "jacobi",
        components: int = 0,
        points: Any = None,
        relative: float = 1e-10,
        absolute: float = 0.0,
        max_iterations: int = 10_000,
    ) -> Solution:
        """Solves with the matrix, as it is with the present values of functions.

        ``b`` has the shape of a result. The degrees of freedom ``fixed`` (components of blocks counted one by one) have
        the ``values``, one or an array like ``b``: their rows and columns are those of the identity. ``method`` is
        ``cg``, for symmetric positive definite matrices, or ``gmres``. ``preconditioner`` is ``none``, ``jacobi``,
        ``block-jacobi`` or ``amg`` (smoothed aggregation); the last two are those of the rows and columns of each part
        alone, with ``components`` unknowns that belong together, the block of the space unless they are given. ``amg``
        takes ``points``, f64 ``[degrees of freedom, dim]``, of displacements for their rigid motions.

        Raises:
            FormError: Rows and columns of two spaces, or another type than f64.
            ArgumentError: Arrays and options that do not fit.
        """
        import numpy

        self._check_rows()
        assert self._space is not None
        limits = limits_of(relative, absolute, max_iterations)
        system = System(self, b, fixed, values)
        components = _count("components", components, 0) or self._block(self._space)
        if any(len(own) % components for own in self._unknowns):
            message = f"`components` is {components}; needed a divisor of the unknowns of each part"
            raise _about(ArgumentError, "components", message)
        at = numpy.zeros((0, 0)) if points is None else _reals(points, "points", flat=False)
        if points is not None and (at.ndim != 2 or len(at) < self._n):
            raise _about(ShapeError, "points", f"`points` has the shape {list(at.shape)}; needed [{self._n}, dim]")
        lifted = numpy.zeros(system.shape)
        if system.prescribed.any():
            lifted = self.product(system.prescribed.reshape(system.shape))
        owned = [self._parts[part].dofs[self._space][self._parts[part].owned] for part in self._own]
        others = [numpy.ascontiguousarray(at[dofs] if points is not None else at).tobytes() for dofs in owned]
        systems, freedoms = system.parts(lifted, others), (components, at.shape[1])

        def call() -> tuple:
            found, report, setup = self._engine.solve_rows(systems, (method, preconditioner), limits, freedoms)
            return found, (report, setup)

        found, (report, setup) = self._all(call, "f8")
        return system.solution(found, report, b, setup)
