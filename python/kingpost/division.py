"""Forms on several devices, each of which has a part of the mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional, Union

from kingpost import _kingpost
from kingpost.arrays import _about
from kingpost.choice import Choice, Work
from kingpost.divided_solve import limits_of, solve
from kingpost.errors import (
    ArgumentError,
    DtypeError,
    FormError,
    ReadOnlyError,
    ShapeError,
    UnknownArgument,
)
from kingpost.operator import Operator, _of
from kingpost.part_arrays import Local, OfMesh, OfPart, argument_of, check_range, places_of
from kingpost.partition import bisect, partition
from kingpost.processes import Messages, check, connected, together
from kingpost.solvers import Solution
from kingpost.spaces import Json, map_name, parts, roles
from kingpost.sparse import _host

Array = Any
#: How a mesh is divided: the part of each cell, or the name of a method.
Owners = Union[str, Array]
#: The types of NumPy of those of kernels.
DTYPES = {"f64": "float64", "f32": "float32", "c128": "complex128", "c64": "complex64"}


class Division:
    """A form on a mesh that is divided among devices, each of which keeps its part.

    ``division(y)`` adds the form's result to ``y``; ``division(y, u=u)`` with new values of a function, which later
    calls keep. Each degree of freedom belongs to the first part that has a cell with it, and that part computes all
    cells and facets that add to it. :meth:`solve` solves a system without a matrix. :attr:`choice` says how many
    devices were taken, and why.
    """

    #: How many of the given devices it has, and why.
    choice: Choice

    def __init__(
        self, operators: Sequence[Operator], document: Json, owners: Owners, arguments: Mapping[str, Any], comm: Any = None,
        *, overlap: bool = True, like: Optional[Division] = None,
    ) -> None:  # fmt: skip
        import numpy

        first, self._operators, self._overlap, self._like = operators[0], tuple(operators), overlap, like
        if like is not None:
            owners, comm, arguments = self._taken_from(like, comm, first, arguments)
        self._comm = comm
        if comm is not None:
            check(comm, len(self._operators))
        count = len(self._operators) if comm is None else comm.size
        #: The parts of this process.
        self._own = list(range(count)) if comm is None else [comm.rank]
        self._document = document
        self._roles = roles(document)
        # those of a matrix, which its kernels need not take
        maps = {space[0] for part in first.parts for matrix in part.form.matrices for space in matrix[2]}
        taken = self._taken(first)
        of_kernels = first._named((), {k: v for k, v in arguments.items() if k in taken or k not in maps})
        self._given = given = {k: v for k, v in arguments.items() if k in maps} | of_kernels
        self._output = document["outputs"][0]
        self._check_options()
        #: The type of each array and number that kernels take.
        self._dtypes = {argument.name: argument.dtype for argument in first.arguments}
        self._dtype = numpy.dtype(DTYPES[document["scalar"]])
        if self._output["name"] in given:
            name = self._output["name"]
            raise _about(UnknownArgument, name, f"`{name}` is the result; give it to a call of the division")
        self._maps = self._found_maps(taken | maps, given)
        n_cells = {len(found) for found in self._maps.values()}
        if len(n_cells) != 1:
            raise ShapeError(f"the maps have {sorted(n_cells)} rows; needed one for each cell in all of them")
        self._n_cells = n_cells.pop()
        #: The part of each cell.
        self.owners = self._found_owners(owners, count, given)
        self._kernels = [self._kernel(place, part, given) for place, part in enumerate(first.parts)]
        self._space: Optional[int] = self._output["spaces"][0] if self._output["spaces"] else None
        #: The numbers that each map has.
        self._sizes = {space: int(found.max(initial=-1)) + 1 for space, found in self._maps.items()}
        self._n = 0 if self._space is None else self._sizes[self._space]
        #: The spaces whose degrees of freedom are those of the result.
        self._alike = {
            space for space, found in self._maps.items()
            if self._space is not None and numpy.array_equal(found, self._maps[self._space])
        }  # fmt: skip
        self._dof_owners = numpy.full(self._n, count, "i4")
        for part in reversed(range(count)):
            if self._space is not None:
                of_cells = self._maps[self._space].compress(self.owners == part, axis=0)
                self._dof_owners[of_cells] = part
        self._around = self._owners_around()
        #: The functions of the form that calls may give.
        self.functions = tuple(
            entry["name"] for entry in document["functions"]
            if entry["role"] != "coordinates" and entry["name"] in taken
        )  # fmt: skip
        self._values = {name: self._function(name, given) for name in self.functions}
        chosen = [[self._chosen(kernel, part) for kernel in self._kernels] for part in range(count)]
        with ThreadPoolExecutor() as threads:
            self._parts = list(threads.map(self._of_part, range(count), chosen))
        #: The unknowns of the whole mesh that each part owns.
        self._unknowns = [self._owned_unknowns(of_part) for of_part in self._parts]
        #: Functions whose values on the devices are others.
        self._stale: set[str] = set()
        #: The coarse level of the last solve, which is on the devices: its number, and what it was made of.
        self._coarse: Any = None
        self._engine = self._made(chosen)

    def _made(self, chosen: list[list[Array]]) -> _kingpost.Parts:
        """What is on the devices."""
        #: The entities of each part, and those that read ghosts.
        self._counts: dict[int, tuple[int, int]] = {}
        self._sent: dict[int, int] = {}
        self._patterns: dict[int, Any] = {}
        self._locals: dict[int, Local] = {}
        #: The arrays that the engine copied, which it knows again by where they lie.
        self._views: list[Any] = []
        with ThreadPoolExecutor() as threads:
            lists = threads.map(lambda one, part: self._of_engine(one, part, chosen[part]), self._operators, self._own)
            whole = list(lists)
        devices = [one._device for one in self._operators]
        self._messages, processes = Messages(self._comm), None
        if self._comm is not None:
            self._check_alike()
            processes = connected(self._comm, self._operators[0].parts[0].compiled.device, self._messages)
        shared = None if self._like is None else self._like._engine
        return _kingpost.Parts(devices, self._output["name"], list(self.functions), whole, processes, shared)

    def _check_options(self) -> None:
        """Refuses what does not go together."""

    def _taken_from(
        self, like: Division, comm: Any, first: Operator, arguments: Mapping[str, Any]
    ) -> tuple[Array, Any, dict[str, Any]]:
        """The parts, the processes and the arguments of another division, as far as this form takes them."""
        if not isinstance(like, Division):
            raise _about(ArgumentError, "like", f"`like` is a {type(like).__name__}; needed a division")
        mine, theirs = ([one._device for one in ops] for ops in (self._operators, like._operators))
        if comm is not None:
            raise _about(ArgumentError, "comm", "`comm` is that of the division `like`; leave it out")
        if mine[: len(theirs)] != theirs:
            message = f"the form is compiled for {', '.join(mine)}, and `like` is on {', '.join(theirs)}; needed the same"
            raise _about(ArgumentError, "like", message)
        self._operators = self._operators[: len(theirs)]
        known = self._taken(first) | {part.name for part in first.parts if len(first.parts) > 1} | set(first._constants)
        known |= {space[0] for part in first.parts for matrix in part.form.matrices for space in matrix[2]}
        return like.owners, like._comm, {k: v for k, v in like._given.items() if k in known} | dict(arguments)

    @property
    def exchange(self) -> str:
        """How devices exchange numbers: ``nccl``, or through the memory of the ``host``."""
        return self._engine.exchange

    def _check_alike(self) -> None:
        """Takes the parts of cells of the first process, and refuses other meshes of others."""
        import numpy

        found = self._comm.allgather((self._n_cells, self._n, self.functions))
        if any(one != found[0] for one in found):
            raise ArgumentError(f"processes have meshes of {[one[0] for one in found]} cells; needed the same arrays in each")
        owners = self._comm.bcast(self.owners, root=0)
        if not all(self._comm.allgather(numpy.array_equal(owners, self.owners))):
            raise ArgumentError("processes have other parts of cells; give `owners` as an array, the same in each")

    def work(self) -> Work:
        """What a part computes and sends, its kernels timed on the devices."""
        alike = (place for place, name in enumerate(self.functions) if self._space_of(name) in self._alike)
        alone, launches, at_once = self._engine.work_seconds(next(alike, None))
        entities = sum(all_ for all_, _ in self._counts.values())
        outer = sum(outer for _, outer in self._counts.values())
        inner = 1.0 - outer / entities if entities else 0.0
        return Work(len(self._parts), alone, launches, at_once, inner, max(self._sent.values(), default=0))

    def _all(self, call: Callable[[], tuple[Sequence[Any], Any]], dtype: Any) -> tuple[list[Array], Any]:
        """The numbers of all parts, where a call gives those of this process, and what else it gives."""
        import numpy

        self._messages.begin()
        if self._comm is None:
            found, rest = call()
        else:
            found, rest = together(self._comm, call)
            # bytes are pickled as they are
            found = [raw for of_process in self._comm.allgather([bytes(raw) for raw in found]) for raw in of_process]
        return [numpy.frombuffer(raw, dtype) for raw in found], rest

    def _taken(self, operator: Operator) -> set[str]:
        return {argument.name for argument in operator.arguments}

    def _found_maps(self, names: set[str], given: Mapping[str, Any]) -> dict[int, Array]:
        """The maps of all spaces, by their places."""
        found = {}
        for name in sorted(names):
            role = self._roles.get(name)
            if role is None or role.kind != "map":
                continue
            dofs = _host(argument_of(given, name))
            if dofs.dtype != "int32" or dofs.ndim != 2:
                shape = list(dofs.shape)
                raise _about(DtypeError, name, f"argument `{name}` has {dofs.dtype} of shape {shape}; needed i32 [cells, columns]")
            if dofs.min(initial=0) < 0:
                raise _about(ArgumentError, name, f"argument `{name}` holds {dofs.min()}; needed numbers from 0 on")
            found[role.place] = dofs
        return found

    def _found_owners(self, owners: Owners, count: int, given: Mapping[str, Any]) -> Array:
        import numpy

        if isinstance(owners, str):
            geometry = self._document["functions"][0]["name"]
            name = map_name(self._document["spaces"][0])
            nodes = _host(argument_of(given, name))
            if owners == "metis":
                return partition(nodes, count, self._document["cell"])
            if owners != "bisect":
                raise _about(ArgumentError, "owners", f"`owners` is {owners!r}; needed `bisect`, `metis` or an array")
            positions = _host(argument_of(given, geometry))
            check_range(name, nodes, geometry, positions)
            return bisect(positions.reshape(len(positions), -1)[nodes].mean(axis=1), count)
        found = _host(owners)
        if found.dtype.kind not in "iu" or found.shape != (self._n_cells,):
            message = f"`owners` has {found.dtype} of shape {list(found.shape)}; needed integers [{self._n_cells}]"
            raise _about(ShapeError, "owners", message)
        if self._n_cells and not 0 <= found.min() <= found.max() < count:
            outside = found.min() if found.min() < 0 else found.max()
            message = f"`owners` holds part {outside}; needed 0 to {count - 1}, one a device"
            raise _about(ArgumentError, "owners", message)
        empty = numpy.flatnonzero(numpy.bincount(found, minlength=count) == 0)
        if len(empty):
            raise _about(ArgumentError, "owners", f"`owners` gives no cell to part {empty[0]}; use fewer devices")
        return found.astype("i4")

    def _owners_around(self) -> tuple[Array, Array, Array]:
        """The owner of all degrees of freedom of each cell, -1 where there are several; such cells, with the owners."""
        import numpy

        none = numpy.zeros(0, "i4")
        if self._space is None:
            return none, none, none
        dofs = self._maps[self._space]
        # column by column: rows are short
        first = self._dof_owners.take(dofs[:, 0])
        is_mixed = numpy.zeros(len(dofs), bool)
        for column in range(1, dofs.shape[1]):
            is_mixed |= self._dof_owners.take(dofs[:, column]) != first
        mixed = numpy.flatnonzero(is_mixed)
        first[mixed] = -1
        return first, mixed, self._dof_owners[dofs[mixed]]

    def _kernel(self, place: int, part: Any, given: dict[str, Any]) -> OfMesh:
        import numpy

        own = _of(part, given)
        (over,) = (one for one in parts(self._document) if one.name == part.name)
        listed = [a.name for a in part.compiled.arguments if a.kind == "array" and self._kind(a.name) == "entity_cells"]
        if not listed:
            return OfMesh(over, numpy.arange(self._n_cells)[:, None], False, own, place)
        cells = _host(argument_of(own, listed[0]))
        if cells.dtype != "int32" or cells.ndim not in (1, 2):
            raise _about(DtypeError, listed[0], f"argument `{listed[0]}` has {cells.dtype}; needed the i32 of cells")
        if cells.size and not 0 <= cells.min() <= cells.max() < self._n_cells:
            outside = cells.min() if cells.min() < 0 else cells.max()
            raise _about(ArgumentError, listed[0], f"argument `{listed[0]}` holds cell {outside}; needed 0 to {self._n_cells - 1}")
        return OfMesh(over, cells.reshape(len(cells), -1), True, own, place)

    def _kind(self, name: str) -> str:
        role = self._roles.get(name)
        return "" if role is None else role.kind

    def _function(self, name: str, given: Mapping[str, Any]) -> Array:
        """The values of a function, checked for the numbers that its map has."""
        values, needed = _host(argument_of(given, name)), self._dtypes[name]
        if values.dtype != DTYPES[needed]:
            raise _about(DtypeError, name, f"argument `{name}` has elements of type {values.dtype}; needed {needed}")
        space = self._space_of(name)
        check_range(map_name(self._document["spaces"][space]), self._maps[space], name, values)
        return values

    def _space_of(self, function: str) -> int:
        return next(entry["space"] for entry in self._document["functions"] if entry["name"] == function)

    def _chosen(self, kernel: OfMesh, part: int) -> Array:
        """The entities that a part computes: those that add to what it owns, of a functional those of its cells."""
        import numpy

        if self._space is None or not self._overlap:
            return numpy.flatnonzero(self.owners[kernel.cells[:, 0]] == part)
        alone, mixed, owners = self._around
        of_cells = alone == part
        of_cells[mixed[(owners == part).any(axis=1)]] = True
        if not kernel.is_listed:
            return numpy.flatnonzero(of_cells)
        return numpy.flatnonzero(of_cells[kernel.cells].any(axis=1))

    def _of_part(self, part: int, chosen: list[Array]) -> OfPart:
        import numpy

        # without overlap an owner has its degrees of freedom, whatever cells the kernels run over
        is_own = numpy.zeros(self._n_cells, bool) if self._overlap else self.owners == part
        for kernel, entities in zip(self._kernels, chosen):
            is_own[kernel.cells[entities]] = True
        cells = numpy.flatnonzero(is_own)
        dofs = {}
        for space, found in self._maps.items():
            is_there = numpy.zeros(self._sizes[space], bool)
            is_there[found.take(cells, axis=0)] = True
            dofs[space] = numpy.flatnonzero(is_there)
        if self._space is None:
            return OfPart(cells, dofs, numpy.zeros(0, "i8"))
        # what a part owns comes first: vectors of it are the beginning of those with ghosts
        there = dofs[self._space]
        is_owned = self._dof_owners[there] == part
        dofs |= {space: numpy.concatenate([there[is_owned], there[~is_owned]]) for space in self._alike}
        return OfPart(cells, dofs, numpy.arange(is_owned.sum()))

    def _of_engine(self, operator: Operator, part: int, chosen: list[Array]) -> tuple:
        """What the engine gets of a part."""
        import numpy

        of_part = self._parts[part]
        places = {space: places_of(dofs) for space, dofs in of_part.dofs.items()}
        # of a functional nothing is exchanged
        reads_ghosts = numpy.zeros(self._n_cells, bool) if self._space is None else self._around[0] != part
        like = None if self._like is None else self._like._locals.get(part)
        local = self._locals[part] = Local(self, of_part, places, like)
        pattern = self._pattern(part, places, list(zip(self._kernels, chosen)))
        kernels, counts = [], [0, 0]
        for kernel, entities in zip(self._kernels, chosen):
            is_outer = reads_ghosts[kernel.cells[entities]].any(axis=1)
            for outer in (True, False):
                here = is_outer == outer
                if not here.any():
                    continue
                counts[not outer] += int(here.sum())
                compiled = operator.parts[kernel.place].compiled
                extra = {}
                if pattern is not None:
                    extra = {self._places_name(kernel.place): pattern.positions[kernel.place][here]}
                    local.n_entries = len(pattern.indices)
                arrays, numbers = local.arguments(kernel, entities[here], compiled, extra)
                self._views.extend(arrays)
                kernels.append((compiled._program, outer, [a.lent(name) for name, a in arrays], numbers))
        self._counts[part] = sum(counts), counts[0]
        fields = [local.field(name, self._values[name]).tobytes() for name in self.functions]
        n = 1 if self._space is None else len(of_part.dofs[self._space]) * self._block(self._space)
        layout = None if self._space is None else self._layout(part, self._space)
        sizes = (n * self._dtype.itemsize, n, self._dtype == "float32")
        if pattern is None:
            return kernels, fields, sizes, layout, None
        self._patterns[part] = pattern
        rows = (pattern.indptr.tobytes(), pattern.indices.tobytes(), self._has_rows())
        return kernels, fields, (len(pattern.indices) * self._dtype.itemsize, *sizes[1:]), layout, rows

    def _pattern(self, part: int, places: dict[int, Array], chosen: list[tuple[OfMesh, Array]]) -> Any:
        """The pattern of a part of a matrix; this is none."""
        return None

    def _places_name(self, place: int) -> str:
        raise AssertionError("a form without a matrix has places of entries: this is a bug of kingpost")

    def _has_rows(self) -> bool:
        """Whether devices multiply by rows of a matrix."""
        return False

    def _block(self, space: int) -> int:
        return self._document["spaces"][space]["block"]

    def _spread(self, dofs: Array, space: int) -> Array:
        """The unknowns of degrees of freedom."""
        import numpy

        block = self._block(space)
        if block == 1:
            return dofs.astype("i4")
        return (dofs[:, None] * block + numpy.arange(block)).reshape(-1).astype("i4")

    def _owned_unknowns(self, of_part: OfPart) -> Array:
        return of_part.owned if self._space is None else self._spread(of_part.dofs[self._space][of_part.owned], self._space)

    def _layout(self, part: int, space: int) -> tuple:
        """Which unknowns of a part's mesh it owns, and what it exchanges with the other parts."""
        import numpy

        of_part = self._parts[part]
        dofs = of_part.dofs[space]
        receives, ghosts, first, sends = [], [numpy.zeros(0, "i8")], 0, []
        for peer, of_peer in enumerate(self._parts):
            if peer == part:
                continue
            found = numpy.flatnonzero(self._dof_owners[dofs] == peer)
            if len(found):
                ghosts.append(found)
                receives.append((peer, first, first := first + len(found) * self._block(space)))
            # what the other part lacks, in its order, by the places among those that are owned here
            theirs = of_peer.dofs[space]
            wanted = theirs[self._dof_owners[theirs] == part]
            if len(wanted):
                places = numpy.searchsorted(dofs[of_part.owned], wanted)
                sends.append((peer, self._spread(places, space).tobytes()))
        of_mesh = self._spread(of_part.owned, space), self._spread(numpy.concatenate(ghosts), space)
        # reals for integers; without overlap as many sums come back
        self._sent[part] = sum(2 * len(raw) for _, raw in sends) * (1 if self._overlap else 2)
        return of_mesh[0].tobytes(), of_mesh[1].tobytes(), receives, sends, not self._overlap

    def __call__(self, *outputs: Any, **functions: Any) -> None:
        """Adds the form's result to an array of NumPy, with new values of some functions."""
        import numpy

        name = self._output["name"]
        if len(outputs) + (name in functions) != 1:
            raise FormError(f"{len(outputs)} arrays by position, needed one: the result `{name}`; give inputs by name")
        y = outputs[0] if outputs else functions.pop(name)
        self._check_result(y)
        changed = self._changed(functions)
        found, _ = self._all(lambda: (self._engine.apply(changed), None), self._dtype)
        for of_part, values in zip(self._parts, found):
            if self._space is None:
                y[0] += values[0]
                continue
            # without overlap each part has a share of what belongs to others
            own = of_part.owned if self._overlap else numpy.arange(len(of_part.dofs[self._space]))
            y[of_part.dofs[self._space][own]] += values.reshape(-1, *y.shape[1:])[own]

    def update(self, **functions: Any) -> None:
        """Takes new values of some functions for later calls."""
        self._engine.update(self._changed(functions))

    def _check_result(self, y: Any) -> None:
        import numpy

        name = self._output["name"]
        if not isinstance(y, numpy.ndarray) or y.dtype != self._dtype:
            found, needed = getattr(y, "dtype", type(y).__name__), self._document["scalar"]
            raise _about(DtypeError, name, f"the result `{name}` is of {found}; needed an array of NumPy of {needed}")
        if not y.flags.writeable:
            raise _about(ReadOnlyError, name, f"the result `{name}` is read-only; give a copy")
        block = 1 if self._space is None else self._block(self._space)
        least = 1 if self._space is None else self._n
        if y.ndim != (1 if block == 1 else 2) or len(y) < least or (block > 1 and y.shape[1] != block):
            needed = [least] if block == 1 else [least, block]
            raise _about(ShapeError, name, f"the result `{name}` has the shape {list(y.shape)}; needed {needed}")

    def _changed(self, functions: Mapping[str, Any]) -> list[list[tuple[int, bytes]]]:
        """New values of functions, by part."""
        changed: list[list[tuple[int, bytes]]] = [[] for _ in self._own]
        for name, values in {**{name: self._values[name] for name in self._stale}, **functions}.items():
            if name not in self.functions:
                found = ", ".join(f"`{one}`" for one in self.functions) or "none"
                message = f"`{name}` is no function that a call gives; it has {found}, and all else is that of the division"
                raise _about(UnknownArgument, name, message)
            new = self._function(name, {name: values})
            if new.shape != self._values[name].shape:
                needed = list(self._values[name].shape)
                raise _about(ShapeError, name, f"argument `{name}` has the shape {list(new.shape)}; needed {needed}")
            self._values[name] = new
            for part, changes in zip(self._own, changed):
                changes.append((self.functions.index(name), self._locals[part].field(name, new).tobytes()))
        self._stale.clear()
        return changed

    def solve(
        self,
        b: Any,
        unknown: Optional[str] = None,
        *,
        fixed: Any = (),
        values: Any = 0.0,
        diagonal: Any = None,
        method: str = "cg",
        preconditioner: Any = None,
        relative: float = 1e-10,
        absolute: float = 0.0,
        max_iterations: int = 10_000,
    ) -> Solution:
        """Solves ``A u = b`` where the form is the action ``A u`` on its function ``unknown``, without a matrix.

        ``b`` has the shape of a result. The degrees of freedom ``fixed`` (components of blocks counted one by one) have
        the ``values``, one or an array like ``b``. ``diagonal`` is that of the matrix, by which preconditioners
        divide; ``kingpost.jit(form, matrix="diagonal")`` computes it. ``preconditioner`` is ``jacobi`` (where the
        diagonal is given), ``none``, ``chebyshev``, four steps of Chebyshev's iteration with Jacobi's, or a
        :class:`kingpost.CoarseSpace`, with which it is a cycle of two levels. ``method`` is ``cg``, for
        symmetric positive definite forms, or ``gmres``. Vectors stay on the devices, and cells that need no value of
        another one are computed while these are under way. They are of double precision also where the form is of
        single: the action alone is rounded to it.

        Raises:
            FormError: A functional, a complex form, or one that is not zero where the unknown is.
            ArgumentError: Arrays that do not fit, a preconditioner that is not known or lacks the diagonal.
        """
        limits = limits_of(relative, absolute, max_iterations)
        return solve(self, b, unknown, fixed, values, diagonal, method, preconditioner, limits)

    def __repr__(self) -> str:
        cells = ", ".join(str(int((self.owners == part).sum())) for part in range(len(self._parts)))
        found = f"{type(self).__name__} of {self._n_cells} cells into {cells}, exchange by {self.exchange}"
        return f"<kingpost.{found}, {self.choice}>"
