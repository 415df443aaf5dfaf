"""The arrays of a part of a mesh, from those of the whole mesh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from kingpost.arrays import _about, view
from kingpost.compiled import _number
from kingpost.errors import ArgumentError, FormError, MissingArgument
from kingpost.spaces import Entities, Role, map_name
from kingpost.sparse import _host

if TYPE_CHECKING:
    from kingpost.division import Division

Array = Any


@dataclass(frozen=True)
class OfMesh:
    """A kernel on the whole mesh: what it runs over, and its arguments."""

    over: Entities
    #: The cells of each entity, ``[entities, sides]``.
    cells: Array
    #: Whether it takes a list of them.
    is_listed: bool
    given: dict[str, Any]
    #: The place among the parts of the operator.
    place: int


@dataclass(frozen=True)
class OfPart:
    """What is a part's: the numbers on the whole mesh of its cells and, by space, of its degrees of freedom; of the
    result's first those that it owns, ascending, then the others, ascending."""

    cells: Array
    dofs: dict[int, Array]
    #: The places of those that it owns among the degrees of freedom of the result: the first ones.
    owned: Array


class Local:
    """The arrays of a part, from those of the whole mesh."""

    def __init__(self, division: Division, of_part: OfPart, places: dict[int, Array], like: Optional[Local] = None) -> None:
        import numpy

        self._division, self._of_part, self._places = division, of_part, places
        # arrays of several kernels are one, by what they are made from, and so are those of another form
        self._known: dict[Any, list[tuple[tuple[Array, ...], Array]]] = {}
        if like is not None and numpy.array_equal(like._of_part.cells, of_part.cells):
            self._known.update({key: list(made) for key, made in like._known.items()})
        self._kept: list[Any] = [] if like is None else [like._kept]
        #: The stored entries of a matrix.
        self.n_entries: Optional[int] = None

    def arguments(
        self, kernel: OfMesh, entities: Array, compiled: Any, extra: Mapping[str, Array]
    ) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
        """The arrays, as views, and the numbers of a kernel on some entities; ``extra`` are those of the entities."""
        import numpy

        rows = None if kernel.is_listed else kernel.cells[entities, 0]
        arrays: list[tuple[str, Any]] = []
        numbers: dict[str, Any] = {}
        for argument in compiled.arguments:
            name = argument.name
            if argument.kind == "parameter":
                if name == "n_cells":
                    numbers[name] = len(self._of_part.cells if rows is None else rows)
                continue
            if argument.kind == "number":
                numbers[name] = _number(name, argument_of(kernel.given, name), True)
                continue
            role = self._division._roles.get(name)
            if name in extra:
                arrays.append((name, view(name, numpy.ascontiguousarray(extra[name]))))
                continue
            if role is None:
                raise FormError(f"argument `{name}` belongs to no part of a mesh; several devices take forms of UFL")
            found = numpy.ascontiguousarray(self._array(kernel, entities, rows, name, role))
            arrays.append((name, view(name, found)))
        return arrays, numbers

    def _array(self, kernel: OfMesh, entities: Array, rows: Optional[Array], name: str, role: Role) -> Array:
        import numpy

        division, cells = self._division, self._of_part.cells
        own = cells if rows is None else rows
        match role.kind:
            case "output":
                return self._zeros()
            case "function":
                return self._function(kernel, name, role)
            case "map":
                whole = division._maps[role.place]
                make = lambda: self._places[role.place].take(whole.take(own, axis=0))  # noqa: E731
                # kernels over all cells have rows of their own, and results have what a part owns first
                of = (self._of_part.dofs[role.place], *(() if rows is None else (rows,)))
                return self._once(("map", id(whole), rows is None), of, make, whole)
            case "states":
                return _host(argument_of(kernel.given, name))[own]
            case "entity_cells":
                local = numpy.searchsorted(cells, kernel.cells[entities]).astype("i4")
                return local if kernel.over.kind == "interior_facet" else local[:, 0]
            case "local_facets" | "facet_states":
                return _host(argument_of(kernel.given, name))[entities]
        raise AssertionError(f"`{role}` is no array of a kernel: this is a bug of kingpost")

    def _function(self, kernel: OfMesh, name: str, role: Role) -> Array:
        division = self._division
        entry = division._document["functions"][role.place]
        if entry["role"] != "coordinates":
            return self.field(name, division._values[name])
        positions, space = _host(argument_of(kernel.given, name)), entry["space"]
        check_range(map_name(division._document["spaces"][space]), division._maps[space], name, positions)
        dofs = self._of_part.dofs[space]
        return self._once(("positions", id(positions)), (dofs,), lambda: positions[dofs], positions)

    def _once(self, key: tuple, of: tuple[Array, ...], make: Any, whole: Any = None) -> Array:
        """What is made from arrays, once; ``whole`` is what the key tells by its identity, and is kept for that."""
        import numpy

        made = self._known.setdefault(key, [])
        for before, found in made:
            if all(map(numpy.array_equal, before, of)):
                return found
        made.append((of, numpy.ascontiguousarray(make())))
        self._kept.append(whole)
        return made[-1][1]

    def _zeros(self) -> Array:
        import numpy

        division, space = self._division, self._division._space
        if self.n_entries is not None:
            return numpy.zeros(self.n_entries, division._dtype)
        if space is None:
            return numpy.zeros(1, division._dtype)
        block, n = division._block(space), len(self._of_part.dofs[space])
        return numpy.zeros(n if block == 1 else (n, block), division._dtype)

    def field(self, name: str, values: Array) -> Array:
        """The values of a function on the part's mesh."""
        import numpy

        return numpy.ascontiguousarray(values[self._of_part.dofs[self._division._space_of(name)]])


def places_of(dofs: Array) -> Array:
    """The place of each number in a list."""
    import numpy

    places = numpy.zeros(int(dofs.max(initial=-1)) + 1, "i4")
    places[dofs] = numpy.arange(len(dofs), dtype="i4")
    return places


def argument_of(given: Mapping[str, Any], name: str) -> Any:
    if name in given:
        return given[name]
    raise _about(MissingArgument, name, f"argument `{name}` is missing; give it")


def check_range(name: str, dofs: Array, of: str, values: Array) -> None:
    """Refuses a map that leads outside an array."""
    if dofs.size and dofs.max() >= len(values):
        raise _about(ArgumentError, name, f"argument `{name}` holds {dofs.max()}, and `{of}` has {len(values)} entries; needed less")
