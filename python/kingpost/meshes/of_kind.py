"""A form on the cells of one kind: compiled, with the arguments of its kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Callable, Optional, Union

import numpy as np

from kingpost.divided import DividedOperator
from kingpost.errors import FormError
from kingpost.export import dumps, export_form
from kingpost.meshes.mesh import Mesh
from kingpost.meshes.space import Space, _Part, _Restricted, _Value
from kingpost.operator import Operator, jit
from kingpost.spaces import Entities, Json, Role, parts, roles

Array = Any
Place = Callable[[Array], Array]
#: Roles of lists, which each part has for itself.
LISTS = ("entity_cells", "local_facets", "facet_states")


class OfKind:
    """A form on the cells of one kind, compiled, with what does not change between calls."""

    def __init__(
        self, mesh: Mesh, kind: str, form: Any, device: str, place: Optional[Place], scalar: str, options: dict[str, Any]
    ) -> None:
        self.mesh, self.kind, self._place = mesh, kind, place
        self._placed: dict[Any, Array] = {}
        self.functions = {f"w{k}": own(f, _Restricted, mesh) for k, f in enumerate(form.coefficients())}
        self.constants = {f"c{k}": own(c, _Value, mesh) for k, c in enumerate(form.constants())}
        names = {id(thing): name for name, thing in [*self.functions.items(), *self.constants.items()]}
        self.document: Json = export_form(
            form, names=names, scalar=scalar, numbering=lambda space: id(space_of(space, mesh)), twins=self._twins(form)
        )
        self.arguments = [space_of(a.ufl_function_space(), mesh) for a in form.arguments()]
        self.rank: int = len(self.arguments)
        self.operator: Union[Operator, DividedOperator] = jit(dumps(self.document), device, **options)
        first = self.operator.operators[0] if isinstance(self.operator, DividedOperator) else self.operator
        self._parts = first.parts
        self._spaces: dict[int, Space] = {}
        for entry in self.document["functions"]:
            if entry["name"] in self.functions:
                self._spaces[entry["space"]] = self.functions[entry["name"]].function.space
        self._spaces.update(zip(self.document["outputs"][0]["spaces"], self.arguments))
        self._roles = roles(self.document)
        #: The lists of entities of each part, and how many there are.
        self.lists = {over.name: self._entities(over) for over in parts(self.document)}

    def _entities(self, over: Entities) -> tuple[dict[str, Array], int]:
        of = self.mesh.cells[self.kind]
        self.mesh.check_groups(over.subdomains, over.kind == "cell")
        if over.kind == "cell":
            if not over.subdomains:
                return {}, len(of)
            # a cell in two groups counts twice: UFL's `dx((1, 2))` is a sum
            none = np.zeros(0, np.int32)
            listed = np.concatenate([of.groups.get(number, none) for number in over.subdomains])
            return {"entity_cells": listed.astype(np.int32)}, len(listed)
        sides = 2 if over.kind == "interior_facet" else 1
        facets = self.mesh.facets(sides)
        chosen = facets_between(self.mesh, self._kinds_of_sides()[:sides], over.subdomains)
        cells, local = (part[chosen].astype(np.int32) for part in (facets.cells, facets.local))
        lists = {"entity_cells": cells, "local_facets": local}
        if sides == 2:
            lists |= self._of_sides(cells, local)
        else:
            lists = {name: part[:, 0] for name, part in lists.items()}
        return {name: np.ascontiguousarray(part, np.int32) for name, part in lists.items()}, len(cells)

    def _kinds_of_sides(self) -> tuple[str, str]:
        return self.kind, self.kind

    def _of_sides(self, cells: Array, local: Array) -> dict[str, Array]:
        """What lists of facets with two sides have besides cells and local facets."""
        return {"facet_states": self.mesh.states(self.kind, self.mesh.tdim - 1)[cells, local]}

    def _twins(self, form: Any) -> Optional[dict[Any, Any]]:
        """What stands on the side `-` of facets, if it is something else."""
        return None

    def shared(self, part: Any) -> dict[str, Any]:
        """The arguments of a part as they are now, without results and lists of entities."""
        # no array says it of integrals over points, whose measure is one
        counts = {"n_cells": self._n_cells()}
        found = {a.name: counts[a.name] for a in part.compiled.arguments if a.name in counts}
        for name, role in self._named(part):
            if role.kind != "output" and role.kind not in LISTS:
                found[name] = self._value(role)
        return found

    def _n_cells(self) -> int:
        return len(self.mesh.cells[self.kind])

    def listed(self, part: Any) -> dict[str, Array]:
        """The lists of entities of a part."""
        lists = self.lists[part.name][0]
        named = ((name, role.kind) for name, role in self._named(part) if role.kind in LISTS)
        return {name: self._fixed((part.name, kind), partial(lists.__getitem__, kind)) for name, kind in named}

    def _fixed(self, key: Any, make: Callable[[], Array]) -> Array:
        """An array that does not change between calls, where it was placed."""
        if self._place is None:
            return make()
        if key not in self._placed:
            self._placed[key] = self._place(make())
        return self._placed[key]

    def arguments_of(self, present: Sequence[Any]) -> dict[str, Any]:
        """The arguments of some parts, as an operator of them takes them."""
        given = {name: value for part in present for name, value in self.shared(part).items()}
        lists = {part.name: self.listed(part) for part in present}
        return given | (lists if len(present) > 1 else lists[present[0].name])

    def maps(self) -> dict[str, Array]:
        """The maps of the spaces of results."""
        places = self.document["outputs"][0]["spaces"]
        return {f"{self.document['spaces'][place]['name']}_dofs": self._map(place) for place in places}

    def _named(self, part: Any) -> Iterator[tuple[str, Role]]:
        for argument in part.compiled.arguments:
            role = self._roles.get(argument.name)
            # parameters have none, and the places of entries of a matrix
            if role is not None:
                yield argument.name, role

    def _value(self, role: Role) -> Any:
        match role.kind:
            case "map":
                return self._fixed(role, lambda: self._map(role.place))
            case "states":
                return self._fixed(role, lambda: self._states(role.place))
            case "function":
                entry = self.document["functions"][role.place]
                is_position = entry["role"] == "coordinates"
                if is_position:
                    return self._fixed(role, self._positions)
                return self.functions[entry["name"]].function.array
            case "constant":
                constant = self.constants[self.document["constants"][role.place]["name"]].constant
                return np.asarray(constant.value).reshape(-1)[role.component].item()
        raise AssertionError(f"`{role}` is no argument of a kernel: this is a bug of kingpost")

    def _positions(self) -> Array:
        is_single = self.document["scalar"] in ("f32", "c64")
        return self.mesh.positions.astype(np.float32) if is_single else self.mesh.positions

    def _map(self, place: int) -> Array:
        return self._map_of(place, self.kind)

    def _map_of(self, place: int, kind: str) -> Array:
        # the geometry is the first space, and no function shares it
        return self.mesh.cells[kind].nodes if place == 0 else self._spaces[place].dofs[kind]

    def _states(self, place: int) -> Array:
        entries = self.document["spaces"][place]["transforms"]
        columns = [self.mesh.states(self.kind, dim)[:, entity] for dim, entity in (e["entity"] for e in entries)]
        return np.ascontiguousarray(np.stack(columns, axis=1), np.int32)

    def present(self) -> list[Any]:
        """The parts that have entities here."""
        return [part for part in self._parts if self.lists[part.name][1]]

    def divided(self, **options: Any) -> Any:
        """The form on the parts of the mesh."""
        if not isinstance(self.operator, DividedOperator):
            raise FormError("found a form that is compiled for one device, needed one for several, by `devices`")
        given = self.arguments_of(self._parts) | (self.maps() if self.operator.is_matrix else {})
        return self.operator.divide(**options, **given)


def own(thing: Any, kind: type, mesh: Mesh) -> Any:
    if not isinstance(thing, kind) or getattr(thing, "mesh", None) is not mesh:
        needed = "`mesh.constant(value).on(kind)`" if kind is _Value else "`space.function().on(kind)`"
        raise FormError(f"`{thing}` has no values on the mesh; make it by {needed}")
    return thing


def space_of(space: Any, mesh: Mesh) -> Space:
    if not isinstance(space, _Part) or space.space.mesh is not mesh:
        raise FormError(f"`{space}` is no space on the mesh; make it by `mesh.space(...).on(kind)`")
    return space.space


def facets_between(mesh: Mesh, kinds: Sequence[str], groups: Sequence[int]) -> Array:
    """The places of facets whose sides are cells of these kinds, as :meth:`Mesh.facets` has them, in groups if there are any."""
    facets = mesh.facets(len(kinds))
    chosen = np.flatnonzero((facets.kinds == [mesh.kinds.index(kind) for kind in kinds]).all(axis=1))
    if not groups:
        return chosen
    # a facet in two groups counts twice, as a cell does
    return np.concatenate([chosen[mesh.facet_group(number)[facets.numbers[chosen]]] for number in groups])
