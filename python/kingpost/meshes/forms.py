"""Forms on meshes: an operator for each kind of cells, over arrays that all of them share."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Callable, Optional, Union

import numpy as np

from kingpost.divided import DividedOperator
from kingpost.errors import FormError, MeshError
from kingpost.export import SCALARS, dumps, export_form
from kingpost.meshes.mesh import Mesh
from kingpost.meshes.space import Space, _Part, _Restricted, _Value
from kingpost.operator import Operator, jit
from kingpost.spaces import Entities, Json, Role, parts, roles
from kingpost.tuning import Trials

Array = Any
Place = Callable[[Array], Array]
#: NumPy's types by those of forms.
DTYPES = {short: name for name, short in SCALARS.items()}
#: Roles of lists, which each part has for itself.
LISTS = ("entity_cells", "local_facets", "facet_states")
#: A form of UFL, or one for each kind of cells.
FormOf = Union[Any, Callable[[str], Any]]


class _OfKind:
    """A form on the cells of one kind, compiled, with what does not change between calls."""

    def __init__(
        self, mesh: Mesh, kind: str, form: Any, device: str, place: Optional[Place], scalar: str, options: dict[str, Any]
    ) -> None:
        self.mesh, self.kind, self._place = mesh, kind, place
        self._placed: dict[Any, Array] = {}
        self.functions = {f"w{k}": _own(f, _Restricted, mesh) for k, f in enumerate(form.coefficients())}
        self.constants = {f"c{k}": _own(c, _Value, mesh) for k, c in enumerate(form.constants())}
        names = {id(thing): name for name, thing in [*self.functions.items(), *self.constants.items()]}
        self.document: Json = export_form(
            form, names=names, scalar=scalar, numbering=lambda space: id(_space(space, mesh))
        )
        self.arguments = [_space(a.ufl_function_space(), mesh) for a in form.arguments()]
        self.operator: Union[Operator, DividedOperator] = jit(dumps(self.document), device, **options)
        first = self.operator.operators[0] if isinstance(self.operator, DividedOperator) else self.operator
        self._parts = first.parts
        self.rank: int = self.document["rank"]
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
        facets, place = self.mesh.facets(sides), self.mesh.kinds.index(self.kind)
        chosen = np.flatnonzero((facets.kinds == place).any(axis=1))
        if over.subdomains:
            groups = [self.mesh.facet_group(number)[facets.numbers[chosen]] for number in over.subdomains]
            chosen = np.concatenate([chosen[group] for group in groups])
        if (alien := facets.kinds[chosen] != place).any():
            other = self.mesh.kinds[facets.kinds[chosen][alien][0]]
            raise MeshError(
                f"an integral over interior facets: found one between a {self.kind} and a {other}, needed cells of one "
                "kind, for which a form is compiled; give the facets between others a group, and take `dS` of the rest"
            )
        cells, local = (part[chosen].astype(np.int32) for part in (facets.cells, facets.local))
        lists = {"entity_cells": cells, "local_facets": local}
        if sides == 2:
            lists["facet_states"] = self.mesh.states(self.kind, self.mesh.tdim - 1)[cells, local].astype(np.int32)
        else:
            lists = {name: part[:, 0] for name, part in lists.items()}
        return {name: np.ascontiguousarray(part) for name, part in lists.items()}, len(cells)

    def shared(self, part: Any) -> dict[str, Any]:
        """The arguments of a part as they are now, without results and lists of entities."""
        # no array says it of integrals over points, whose measure is one
        counts = {"n_cells": len(self.mesh.cells[self.kind])}
        found = {a.name: counts[a.name] for a in part.compiled.arguments if a.name in counts}
        for name, role in self._named(part):
            if role.kind != "output" and role.kind not in LISTS:
                found[name] = self._value(role)
        return found

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
        # the geometry is the first space, and no function shares it
        return self.mesh.cells[self.kind].nodes if place == 0 else self._spaces[place].dofs[self.kind]

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


def _own(thing: Any, kind: type, mesh: Mesh) -> Any:
    if not isinstance(thing, kind) or getattr(thing, "mesh", None) is not mesh:
        needed = "`mesh.constant(value).on(kind)`" if kind is _Value else "`space.function().on(kind)`"
        raise FormError(f"`{thing}` has no values on the mesh; make it by {needed}")
    return thing


def _space(space: Any, mesh: Mesh) -> Space:
    if not isinstance(space, _Part) or space.space.mesh is not mesh:
        raise FormError(f"`{space}` is no space on the mesh; make it by `mesh.space(...).on(kind)`")
    return space.space


class _Compiled:
    """The operators of all kinds of cells."""

    def __init__(
        self, mesh: Mesh, form: FormOf, device: str, options: dict[str, Any], place: Optional[Place] = None,
        scalar: Any = "f64",
    ) -> None:  # fmt: skip
        import ufl

        if isinstance(form, ufl.Form) and len(mesh.kinds) > 1:
            raise FormError(f"found one form, needed a function of the kind of cells: {', '.join(mesh.kinds)}")
        if "devices" in options and len(mesh.kinds) > 1:
            raise FormError(f"found several devices for cells of kinds {', '.join(mesh.kinds)}; needed cells of one kind")
        made = {kind: form if isinstance(form, ufl.Form) else form(kind) for kind in mesh.kinds}
        found = {kind: one for kind, one in made.items() if one is not None}
        for kind, one in found.items():
            if not isinstance(one, ufl.Form):
                raise FormError(f"cells of kind {kind}: found a `{type(one).__name__}`, needed a form of UFL, or None")
        if not found:
            raise FormError("found no form on any kind of cells")
        self.mesh = mesh
        self.of_kinds = {
            kind: _OfKind(mesh, kind, one, device, place, scalar, options) for kind, one in found.items()
        }
        #: The type of results, coefficients and constants.
        self.dtype = np.dtype(DTYPES[next(iter(self.of_kinds.values())).document["scalar"]])
        ranks = {kind: of.rank for kind, of in self.of_kinds.items()}
        if len(set(ranks.values())) > 1:
            raise FormError(f"found forms of ranks {ranks}, needed one")
        self.rank = next(iter(ranks.values()))
        spaces = {tuple(map(id, of.arguments)) for of in self.of_kinds.values()}
        if len(spaces) > 1:
            raise FormError("found test or trial functions of different spaces, needed `on(kind)` of one space")
        #: The spaces of the arguments, that of the test function first.
        self.spaces: Sequence[Space] = next(iter(self.of_kinds.values())).arguments

    @property
    def operators(self) -> Mapping[str, Union[Operator, DividedOperator]]:
        """The operator of each kind of cells: its source, its recipe, its mapping."""
        return {kind: of.operator for kind, of in self.of_kinds.items()}

    @property
    def is_divided(self) -> bool:
        """Whether the form is compiled for several devices."""
        return any(isinstance(of.operator, DividedOperator) for of in self.of_kinds.values())

    def divide(self, **options: Any) -> Any:
        """The form on a mesh that is divided among devices, with functions, constants and positions as they are: a
        :class:`kingpost.Division`. ``options`` are those of :meth:`kingpost.DividedOperator.divide`, such as ``owners``.
        """
        (of,) = self.of_kinds.values()
        return of.divided(**options)


class Action(_Compiled):
    """A functional, a linear form, or the diagonal of a matrix on all kinds of cells. ``action(y)`` adds to ``y``, which
    has the shape of the test function's space (one entry of a functional)."""

    def __call__(self, y: Array) -> None:
        """Adds the result, with functions, constants and positions as they are."""
        needed = self.spaces[0].shape if self.rank else (1,)
        if np.shape(y) != needed:
            raise FormError(f"found a result of shape {np.shape(y)}, needed {needed}")
        if self.is_divided:
            self.divide()(y)
            return
        for of in self.of_kinds.values():
            name = of.document["outputs"][0]["name"]
            for part in of.present():
                part.compiled(**of.shared(part), **of.listed(part), **{name: y})

    def assemble(self) -> Array:
        """The vector of a linear form."""
        if self.rank == 0:
            raise FormError("the form is a functional, needed a linear form; use `value`")
        y = np.zeros(self.spaces[0].shape, self.dtype)
        self(y)
        return y

    def tune(self, y: Array, **options: Any) -> dict[str, Trials]:
        """Tries mappings of each kind's kernels and keeps the fastest, as :meth:`kingpost.Operator.tune`."""
        found = {}
        for kind, of in self.of_kinds.items():
            if isinstance(of.operator, DividedOperator):
                raise FormError("found a form for several devices, needed one for one device, which is tuned")
            if len(of.present()) == len(of.operator.parts):
                given = of.arguments_of(of.present()) | {of.document["outputs"][0]["name"]: y}
                found[kind] = of.operator.tune(**given, **options)
        return found

    def value(self) -> Any:
        """The functional."""
        if self.rank != 0:
            raise FormError("the form is linear, needed a functional; use `assemble`")
        y = np.zeros(1, self.dtype)
        self(y)
        return y.item()


class Matrix(_Compiled):
    """A bilinear form on all kinds of cells."""

    def assemble(self) -> Any:
        """The matrix, a ``scipy.sparse.csr_array``, with functions, constants and positions as they are.

        Rows and columns are components of degrees of freedom, ``block * number + component``.
        """
        from scipy.sparse import csr_array

        rows, columns = (space.size * space.block for space in self.spaces)
        total = csr_array((rows, columns), dtype=self.dtype)
        for of in self.of_kinds.values():
            if not (present := of.present()):
                continue
            if isinstance(of.operator, DividedOperator):
                found = of.divided().assemble()
                return csr_array((found.data, found.indices, found.indptr), shape=(rows, columns))
            operator = copy.copy(of.operator)
            operator.parts = tuple(present)
            given = of.arguments_of(present)
            # those of the matrix are no arguments of kernels, which take the places of its entries
            patterns = operator.patterns((rows, columns), **given | of.maps())
            found = operator.assemble(patterns, **given)
            total = total + csr_array((found.data, found.indices, found.indptr), shape=(rows, columns))
        return total


def action(
    mesh: Mesh, form: FormOf, device: str = "default", *, place: Optional[Place] = None, scalar: Any = "f64",
    **options: Any,
) -> Action:  # fmt: skip
    """Compiles a functional or a linear form: a form of UFL, or a function that gives one for each kind of cells.

    It is made of ``space.on(kind)``, ``function.on(kind)`` and ``constant.on(kind)``; a kind without an integral has
    None. ``scalar`` is the type of coefficients, constants and results, as of :func:`kingpost.export.export_form`;
    positions of single precision are converted. ``options`` are those of :func:`kingpost.jit`. ``place`` moves arrays that do not change between calls to the
    device once (``cupy.asarray``): maps, lists of entities, and positions, which are then those of the first call.

    Raises:
        FormError: A form that cannot be lowered, or of other spaces.
        MeshError: Facets between cells of two kinds in an integral over interior facets.
    """
    found = Action(mesh, form, device, options, place, scalar)
    if found.rank > 1:
        raise FormError("the form is bilinear, needed a functional or a linear form; use `kingpost.meshes.matrix`")
    return found


def diagonal(
    mesh: Mesh, form: FormOf, device: str = "default", *, place: Optional[Place] = None, scalar: Any = "f64",
    **options: Any,
) -> Action:  # fmt: skip
    """Compiles the diagonal of a bilinear form's matrix, which is added to an array of the space's shape; arguments and
    errors as of :func:`action`.
    """
    found = Action(mesh, form, device, {"matrix": "diagonal", **options}, place, scalar)
    if found.rank != 2 or found.spaces[0] is not found.spaces[1]:
        raise FormError(f"the form has {found.rank} arguments, needed a test and a trial function of one space")
    return found


def matrix(mesh: Mesh, form: FormOf, device: str = "default", *, scalar: Any = "f64", **options: Any) -> Matrix:
    """Compiles a bilinear form; arguments and errors as of :func:`action`."""
    found = Matrix(mesh, form, device, {"matrix": "sparse", **options}, scalar=scalar)
    if found.rank != 2:
        raise FormError(f"the form has {found.rank} arguments, needed a test and a trial function; use `action`")
    return found
