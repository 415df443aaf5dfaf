"""Forms on several devices, each of which has a part of the mesh."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Optional, Union

from kingpost import _kingpost
from kingpost.arrays import _about
from kingpost.compiled import Argument
from kingpost.errors import (
    ArgumentError,
    DtypeError,
    FormError,
    ReadOnlyError,
    ShapeError,
    UnknownArgument,
)
from kingpost.operator import Operator, _of, jit
from kingpost.part_arrays import Local, OfMesh, OfPart, argument_of, check_range, places_of
from kingpost.partition import bisect, partition
from kingpost.processes import Messages, check, connected, together
from kingpost.solvers import Solution, _count, _reals, _size
from kingpost.spaces import Json, parts, roles
from kingpost.sparse import _host

Array = Any
#: How a mesh is divided: the part of each cell, or the name of a method.
Owners = Union[str, Array]


def on_devices(text: str, device: str, names: Sequence[str], options: dict[str, Any]) -> DividedOperator:
    """A form in JSON for several devices, with the options of :func:`kingpost.jit`."""
    if isinstance(names, str) or not names or not all(isinstance(name, str) for name in names):
        raise _about(ArgumentError, "devices", f"`devices` is {names!r}; needed a list of names, as of `kingpost.devices()`")
    if device != "default":
        raise _about(ArgumentError, "device", f"`device` is {device!r}, and `devices` has others; leave one of both out")
    if not text.lstrip().startswith("{"):
        raise FormError(f"`{text}` is for one device; several take forms of UFL, or their JSON")
    document = json.loads(text)
    results = document["outputs"]
    if document["scalar"] != "f64":
        raise FormError(f"the form is of `{document['scalar']}`; several devices take `f64`")
    if len(results) != 1:
        found = ", ".join(f"`{one['name']}`" for one in results)
        raise FormError(f"the form has the results {found}; several devices take one: compile the forms one by one")
    if document["rank"] == 2 and options["matrix"] != "diagonal":
        message = "the form is bilinear; several devices take its action on a function, `ufl.action(form, u)`, or `matrix=\"diagonal\"`"
        raise FormError(message)
    if options["vector"] != "assembled" or options["cell_values"]:
        raise FormError("vectors of cells are for one device; several take those of the mesh: leave `vector` and `cell_values` out")
    # kernels of several devices are proved and compiled side by side
    different = list(dict.fromkeys(names))
    with ThreadPoolExecutor(len(different)) as threads:
        made = dict(zip(different, threads.map(lambda name: jit(text, name, **options), different)))
    return DividedOperator([made[name] for name in names], document)


class DividedOperator:
    """A form compiled for several devices; :func:`kingpost.jit` makes it.

    ``op.divide(x=x, x_dofs=cells, ...)`` divides a mesh among them. ``op(y, x=x, ...)`` does so for one call.
    """

    def __init__(self, operators: Sequence[Operator], document: Json) -> None:
        #: The operator of each device.
        self.operators = tuple(operators)
        self._document = document

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What a call takes, as of :attr:`kingpost.Operator.arguments`."""
        return self.operators[0].arguments

    def divide(self, owners: Owners = "bisect", comm: Any = None, **arguments: Any) -> Division:
        """The form on a mesh that is divided among the devices.

        ``arguments`` are those of a call: maps, positions, lists of facets, functions and constants of the whole mesh.
        ``owners`` is the part of each cell, i32 ``[cells]``, as any partitioner gives it; or ``"metis"``, as
        :func:`kingpost.partition`; or ``"bisect"``: cells are divided by where they are, across the longest side of
        the box around them (Berger & Bokhari 1987).

        With a communicator ``comm``, such as ``mpi4py.MPI.COMM_WORLD``, each process has one part, and calls this
        with one device and the same arrays. So it calls the division, whose results are those of the whole mesh in
        each process.
        """
        return Division(self, owners, arguments, comm)

    def __call__(self, *outputs: Any, owners: Owners = "bisect", **arguments: Any) -> None:
        """Adds the form's result to an array; the mesh is divided at each call."""
        name = self._document["outputs"][0]["name"]
        results = {name: arguments.pop(name)} if name in arguments else {}
        self.divide(owners, **arguments)(*outputs, **results)

    def __repr__(self) -> str:
        devices = ", ".join(one._device for one in self.operators)
        return f"<kingpost.DividedOperator on {devices}: {self.operators[0]!r}>"


class Division:
    """A form on a mesh that is divided among devices, each of which keeps its part.

    ``division(y)`` adds the form's result to ``y``; ``division(y, u=u)`` with new values of a function, which later
    calls keep. Each degree of freedom belongs to the first part that has a cell with it, and that part computes all
    cells and facets that add to it. :meth:`solve` solves a system without a matrix.
    """

    def __init__(self, operator: DividedOperator, owners: Owners, arguments: Mapping[str, Any], comm: Any = None) -> None:
        import numpy

        self._comm = comm
        if comm is not None:
            check(comm, len(operator.operators))
        count = len(operator.operators) if comm is None else comm.size
        #: The parts of this process.
        self._own = list(range(count)) if comm is None else [comm.rank]
        self._document = operator._document
        self._roles = roles(self._document)
        first = operator.operators[0]
        given = first._named((), dict(arguments))
        self._output = self._document["outputs"][0]
        if self._output["name"] in given:
            name = self._output["name"]
            raise _about(UnknownArgument, name, f"`{name}` is the result; give it to a call of the division")
        self._maps = self._found_maps(first, given)
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
        self._dof_owners = numpy.full(self._n, count, "i4")
        for part in reversed(range(count)):
            if self._space is not None:
                of_cells = self._maps[self._space].compress(self.owners == part, axis=0)
                self._dof_owners[of_cells] = part
        self._around = self._owners_around()
        #: The functions of the form that calls may give.
        self.functions = tuple(
            entry["name"] for entry in self._document["functions"]
            if entry["role"] != "coordinates" and entry["name"] in self._taken(first)
        )  # fmt: skip
        self._values = {name: self._function(name, given) for name in self.functions}
        chosen = [[self._chosen(kernel, part) for kernel in self._kernels] for part in range(count)]
        with ThreadPoolExecutor() as threads:
            self._parts = list(threads.map(self._of_part, range(count), chosen))
        #: The unknowns of the whole mesh that each part owns.
        self._unknowns = [self._owned_unknowns(of_part) for of_part in self._parts]
        #: Functions whose values on the devices are others.
        self._stale: set[str] = set()
        # they keep the arrays that the engine copies
        views: list[Any] = []
        with ThreadPoolExecutor() as threads:
            lists = threads.map(lambda one, part: self._given(one, part, chosen[part], views), operator.operators, self._own)
            whole = list(lists)
        devices = [one._device for one in operator.operators]
        self._messages, processes = Messages(comm), None
        if comm is not None:
            self._check_alike()
            processes = connected(comm, operator.operators[0].parts[0].compiled.device, self._messages)
        self._engine = _kingpost.Parts(devices, self._output["name"], list(self.functions), whole, processes)

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

    def _all(self, call: Callable[[], tuple[Sequence[Any], Any]]) -> tuple[list[Array], Any]:
        """The numbers of all parts, where a call gives those of this process, and what else it gives."""
        import numpy

        self._messages.begin()
        if self._comm is None:
            found, rest = call()
        else:
            found, rest = together(self._comm, call)
            # bytes are pickled as they are
            found = [raw for of_process in self._comm.allgather([bytes(raw) for raw in found]) for raw in of_process]
        return [numpy.frombuffer(raw, "f8") for raw in found], rest

    def _taken(self, operator: Operator) -> set[str]:
        return {argument.name for argument in operator.arguments}

    def _found_maps(self, operator: Operator, given: Mapping[str, Any]) -> dict[int, Array]:
        """The maps of all spaces that the kernels take, by their places."""
        found = {}
        for name in self._taken(operator):
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
            name = f"{self._document['spaces'][0]['name']}_dofs"
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
        values = _host(argument_of(given, name))
        if values.dtype != "float64":
            raise _about(DtypeError, name, f"argument `{name}` has elements of type {values.dtype}; needed f64")
        space = self._space_of(name)
        check_range(f"{self._document['spaces'][space]['name']}_dofs", self._maps[space], name, values)
        return values

    def _space_of(self, function: str) -> int:
        return next(entry["space"] for entry in self._document["functions"] if entry["name"] == function)

    def _chosen(self, kernel: OfMesh, part: int) -> Array:
        """The entities that a part computes: those that add to what it owns, of a functional those of its cells."""
        import numpy

        if self._space is None:
            return numpy.flatnonzero(self.owners[kernel.cells[:, 0]] == part)
        alone, mixed, owners = self._around
        of_cells = alone == part
        of_cells[mixed[(owners == part).any(axis=1)]] = True
        if not kernel.is_listed:
            return numpy.flatnonzero(of_cells)
        return numpy.flatnonzero(of_cells[kernel.cells].any(axis=1))

    def _of_part(self, part: int, chosen: list[Array]) -> OfPart:
        import numpy

        is_own = numpy.zeros(self._n_cells, bool)
        for kernel, entities in zip(self._kernels, chosen):
            is_own[kernel.cells[entities]] = True
        cells = numpy.flatnonzero(is_own)
        dofs = {}
        for space, found in self._maps.items():
            is_there = numpy.zeros(self._sizes[space], bool)
            is_there[found.take(cells, axis=0)] = True
            dofs[space] = numpy.flatnonzero(is_there)
        owned = numpy.zeros(0, "i8")
        if self._space is not None:
            owned = numpy.flatnonzero(self._dof_owners[dofs[self._space]] == part)
        return OfPart(cells, dofs, owned)

    def _given(self, operator: Operator, part: int, chosen: list[Array], views: list[Any]) -> tuple:
        """What the engine gets of a part."""
        import numpy

        of_part = self._parts[part]
        places = {space: places_of(dofs) for space, dofs in of_part.dofs.items()}
        # of a functional nothing is exchanged
        reads_ghosts = numpy.zeros(self._n_cells, bool) if self._space is None else self._around[0] != part
        local = Local(self, of_part, places)
        kernels = []
        for kernel, entities in zip(self._kernels, chosen):
            is_outer = reads_ghosts[kernel.cells[entities]].any(axis=1)
            for outer in (True, False):
                own = entities[is_outer == outer]
                if not len(own):
                    continue
                compiled = operator.parts[kernel.place].compiled
                arrays, numbers = local.arguments(kernel, own, compiled)
                views.extend(arrays)
                kernels.append((compiled._program, outer, [a.lent(name) for name, a in arrays], numbers))
        fields = [local.field(name, self._values[name]).tobytes() for name in self.functions]
        size = 1 if self._space is None else len(of_part.dofs[self._space]) * self._block(self._space)
        return kernels, fields, size, None if self._space is None else self._layout(part, self._space)

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
        return of_mesh[0].tobytes(), of_mesh[1].tobytes(), receives, sends, False

    def __call__(self, *outputs: Any, **functions: Any) -> None:
        """Adds the form's result to an array of NumPy, with new values of some functions."""
        import numpy

        name = self._output["name"]
        if len(outputs) + (name in functions) != 1:
            raise FormError(f"{len(outputs)} arrays by position, needed one: the result `{name}`; give inputs by name")
        y = outputs[0] if outputs else functions.pop(name)
        self._check_result(y)
        changed = self._changed(functions)
        found, _ = self._all(lambda: (self._engine.apply(changed), None))
        for part, values in enumerate(found):
            if self._space is None:
                y[0] += values[0]
                continue
            of_part = self._parts[part]
            y[of_part.dofs[self._space][of_part.owned]] += values.reshape(-1, *y.shape[1:])[of_part.owned]

    def update(self, **functions: Any) -> None:
        """Takes new values of some functions for later calls."""
        self._engine.update(self._changed(functions))

    def _check_result(self, y: Any) -> None:
        import numpy

        name = self._output["name"]
        if not isinstance(y, numpy.ndarray) or y.dtype != "float64":
            found = getattr(y, "dtype", type(y).__name__)
            raise _about(DtypeError, name, f"the result `{name}` is of {found}; needed an array of NumPy of f64")
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
                local = Local(self, self._parts[part], {})
                changes.append((self.functions.index(name), local.field(name, new).tobytes()))
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
        relative: float = 1e-10,
        absolute: float = 0.0,
        max_iterations: int = 10_000,
    ) -> Solution:
        """Solves ``A u = b`` where the form is the action ``A u`` on its function ``unknown``, without a matrix.

        ``b`` has the shape of a result. The degrees of freedom ``fixed`` (components of blocks counted one by one) have
        the ``values``, one or an array like ``b``. ``diagonal`` is that of the matrix, by which Jacobi's
        preconditioner divides; ``kingpost.jit(form, matrix="diagonal")`` computes it. ``method`` is ``cg``, for
        symmetric positive definite forms, or ``gmres``. Vectors stay on the devices, and cells that need no value of
        another one are computed while these are under way.

        Raises:
            FormError: A functional, or a form that is not zero where the unknown is.
            ArgumentError: Arrays that do not fit.
        """
        import numpy

        limits = (_size("relative", relative), _size("absolute", absolute), _count("max_iterations", max_iterations))
        if self._space is None:
            raise FormError("the form is a functional; needed a linear form, the action of a bilinear one")
        place = self._unknown(unknown)
        right = self._vector("b", b)
        kept = numpy.zeros(right.size, bool)
        kept[_numbers("fixed", fixed, right.size)] = True
        prescribed = numpy.where(kept, numpy.broadcast_to(_reals(values, "values", flat=False), right.shape).reshape(-1), 0.0)
        inverse = self._inverse(diagonal, right.shape, kept)
        stray = (right.reshape(-1) != 0.0) & ~kept
        for part in range(len(self._parts)):
            stray[self._unknowns[part]] = False
        if stray.any():
            unreached = int(numpy.flatnonzero(stray)[0])
            message = f"`b` is not zero at unknown {unreached}, which no cell of the form has; needed 0, or it among `fixed`"
            raise _about(ArgumentError, "b", message)
        right = (right - self._of_prescribed(place, prescribed, right.shape)).reshape(-1)
        right[kept] = prescribed[kept]
        systems = self._systems(right, kept, inverse)
        found, report = self._all(lambda: self._engine.solve(place, systems, method, limits))
        x = numpy.where(kept, prescribed, 0.0)
        for part, own in enumerate(found):
            x[self._unknowns[part]] = own
        reason, converged, residuals, seconds = report
        return Solution(x.reshape(numpy.shape(b)), converged, reason, residuals, seconds, 0.0)

    def _unknown(self, name: Optional[str]) -> int:
        """The place of the function that a system is solved for."""
        import numpy

        assert self._space is not None
        mine = self._maps[self._space]
        own = [one for one in self.functions if numpy.array_equal(self._maps[self._space_of(one)], mine)]
        known = ", ".join(f"`{one}`" for one in own) or "none"
        if name is None and len(own) != 1:
            raise _about(ArgumentError, "unknown", f"`unknown` is not given, and functions of the result's space are {known}; name one")
        if name is not None and name not in own:
            raise _about(ArgumentError, "unknown", f"`unknown` is {name!r}; functions of the result's space are {known}")
        return self.functions.index(own[0] if name is None else name)

    def _vector(self, name: str, value: Any) -> Array:
        import numpy

        assert self._space is not None
        found = _reals(value, name, flat=False)
        block = self._block(self._space)
        if found.ndim != (1 if block == 1 else 2) or len(found) < self._n or (block > 1 and found.shape[1] != block):
            needed = [self._n] if block == 1 else [self._n, block]
            raise _about(ShapeError, name, f"`{name}` has the shape {list(found.shape)}; needed {needed}")
        if not numpy.isfinite(found).all():
            raise _about(ArgumentError, name, f"`{name}` holds a number that is infinite or NaN")
        return found

    def _inverse(self, diagonal: Any, shape: tuple[int, ...], kept: Array) -> Array:
        import numpy

        if diagonal is None:
            return numpy.ones(kept.shape)
        found = _reals(diagonal, "diagonal", flat=False)
        if found.shape != shape:
            raise _about(ShapeError, "diagonal", f"`diagonal` has the shape {list(found.shape)}; needed {list(shape)}")
        found = numpy.where(kept, 1.0, found.reshape(-1))
        for part in range(len(self._parts)):
            own = found[self._unknowns[part]]
            if not (numpy.isfinite(own) & (own != 0.0)).all():
                raise _about(ArgumentError, "diagonal", "`diagonal` holds 0, or a number that is infinite or NaN")
        return 1.0 / numpy.where(found == 0.0, 1.0, found)

    def _of_prescribed(self, place: int, prescribed: Array, shape: tuple[int, ...]) -> Array:
        """The action on prescribed values; that on zero has to be zero."""
        import numpy

        name = self.functions[place]
        before = self._values[name]
        zero, found = numpy.zeros(shape), numpy.zeros(shape)
        try:
            self(zero, **{name: numpy.zeros(before.shape)})
            if zero.any():
                raise FormError(f"the form is not zero where `{name}` is; needed an action, linear in `{name}`")
            if prescribed.any():
                given = numpy.zeros(before.shape)
                given.reshape(-1)[: prescribed.size] = prescribed[: given.size]
                self(found, **{name: given})
        finally:
            self._values[name] = before
            self._stale.add(name)
        return found

    def _systems(self, right: Array, kept: Array, inverse: Array) -> list[tuple[bytes, bytes, bytes]]:
        import numpy

        assert self._space is not None
        systems = []
        for part in self._own:
            of_part, owned = self._parts[part], self._unknowns[part]
            fixed = numpy.flatnonzero(kept[self._spread(of_part.dofs[self._space], self._space)]).astype("i4")
            systems.append((right[owned].tobytes(), fixed.tobytes(), inverse[owned].tobytes()))
        return systems

    def __repr__(self) -> str:
        cells = ", ".join(str(int((self.owners == part).sum())) for part in range(len(self._parts)))
        return f"<kingpost.Division of {self._n_cells} cells into {cells}, exchange by {self.exchange}>"


def _numbers(name: str, value: Any, n: int) -> Array:
    import numpy

    found = numpy.asarray(value if hasattr(value, "dtype") else list(value))
    if found.size and (found.dtype.kind not in "iu" or found.ndim != 1):
        raise _about(ArgumentError, name, f"`{name}` holds {found.dtype}; needed the numbers of unknowns")
    if found.size and (found.min() < 0 or found.max() >= n):
        outside = found.min() if found.min() < 0 else found.max()
        raise _about(ArgumentError, name, f"`{name}` names unknown {outside}; needed 0 to {n - 1}")
    return found.astype("i8")
