"""Functionals and linear forms of DOLFINx as compiled operators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Mapping as ABCMapping
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from kingpost import numbering
from kingpost.dolfinx.entities import Batch, batches, owned_cells, subdomain_data
from kingpost.dolfinx.mapping import Array, Mapping, Numberings, Place, array_of, scalar_type
from kingpost.errors import FormError
from kingpost.operator import Operator, Trial, jit
from kingpost.spaces import parts, roles


@dataclass(frozen=True)
class Launch:
    """A launch of a part of an operator, with the arguments that do not change between calls."""

    part: str
    #: The number of its cells or facets.
    count: int
    fixed: dict[str, Array]


class Action:
    """A functional or a linear form, or a list of them, compiled for a device.

    ``action(y)`` adds what this process integrates over: cells and facets that it owns. So entries
    of ghosts are added to, and are the caller's to send; :meth:`assemble` does that. Functions,
    constants and positions are read at each call.
    """

    #: The compiled operator: its source, its recipe, its mapping.
    operator: Operator

    def __init__(
        self,
        form: Any,
        device: str = "default",
        *,
        place: Optional[Place] = None,
        order_cells: bool = False,
        **options: Any,
    ) -> None:
        from kingpost.export import dumps, export_form

        forms = _checked(form)
        functions = _by_name("w", (f for one in forms for f in one.coefficients()))
        constants = _by_name("c", (c for one in forms for c in one.constants()))
        names = {id(value): name for name, value in [*functions.items(), *constants.items()]}
        titles = ["y"] if len(forms) == 1 else [f"y{k}" for k in range(len(forms))]
        spaces: dict[str, Sequence[Any]] = {name: self._argument_spaces(one) for name, one in zip(titles, forms)}
        of_arguments = [space for found in spaces.values() for space in found]
        mesh = _mesh(forms[0], [*of_arguments, *(f.function_space for f in functions.values())])
        document = export_form(
            forms,
            names=names,
            outputs=titles,
            scalar=scalar_type(mesh, list(functions.values())),
            numbering=Numberings(),
        )
        self._mapping = Mapping(document, mesh, functions, constants, spaces)
        self._data = subdomain_data(forms)
        self._roles = roles(document)
        self._place = place
        self._fixed_positions = None if place is None else place(mesh.geometry.x)
        self.operator = jit(dumps(document), device, position_width=mesh.geometry.x.shape[1], **options)
        nodes = mesh.geometry.dofmaps[0][: owned_cells(mesh)]
        self._order = numbering.order_cells(nodes) if order_cells else None
        self._all, _ = self._launches(None)

    def _argument_spaces(self, form: Any) -> tuple[Any, ...]:
        """The spaces of the arguments of a form, the test function first."""
        arguments = form.arguments()
        if len(arguments) > 1:
            raise FormError(
                "the form is bilinear, needed a functional or a linear form; "
                "use `kingpost.dolfinx.matrix`, `kingpost.dolfinx.operator`, or `ufl.action(a, u)` with a function `u`"
            )
        return tuple(argument.ufl_function_space() for argument in arguments)

    @property
    def rank(self) -> int:
        """0 for functionals, 1 for linear forms."""
        return self._mapping.document["rank"]

    def __call__(
        self, *outputs: Any, values: Optional[ABCMapping[Any, Array]] = None, stream: Any = None
    ) -> None:
        """Adds to ``outputs``, one a form: functions, vectors of DOLFINx, or arrays of local entries.

        ``values`` has arrays of any library that stand for functions; on a CUDA ``stream``, the call
        returns early. A functional adds to an array of one entry.
        """
        self._run(self._all, self._varying(outputs, values or {}), stream)

    def assemble(self, *outputs: Any) -> None:
        """Overwrites functions or vectors of DOLFINx by the assembled result.

        What was added to ghosts is sent to their owners; entries of ghosts are left as they are.
        """
        vectors = [_vector(output) for output in outputs]
        self._check_count(outputs)
        from dolfinx.la import InsertMode

        for vector in vectors:
            vector.array[:] = 0
        self(*outputs)
        for vector in vectors:
            vector.scatter_reverse(InsertMode.add)

    def value(self) -> float:
        """The functional, summed over all processes."""
        if self.rank != 0:
            raise FormError("the form is linear, needed a functional; use `assemble`")
        local = np.zeros(1, dtype=self._mapping.mesh.geometry.x.dtype)
        self(local)
        return self._mapping.mesh.comm.allreduce(local.item())

    def arguments(self, *outputs: Any) -> dict[str, Any]:
        """All arguments of :attr:`operator` as they are now."""
        varying = self._varying(outputs, {})
        by_part = {each.part: self._taken(each.part, varying) | each.fixed for each in self._all}
        return by_part if len(self.operator.parts) > 1 else dict(*by_part.values())

    def tune(self, *outputs: Any, **options: Any) -> list[Trial]:
        """Tries mappings and keeps the fastest that is right, as :meth:`kingpost.Operator.tune`."""
        return self.operator.tune(**self.arguments(*outputs), **options)

    def _launches(self, space: Any) -> tuple[list[Launch], list[Launch]]:
        """All launches with what does not change of their arguments: the late, and the early ones.

        Early launches read no entry of ``space`` that another process owns.
        """
        is_early, mesh = None, self._mapping.mesh
        if space is not None:
            is_early = (space.dofmap.list < space.dofmap.index_map.size_local).all(axis=1)
        late: list[Launch] = []
        early: list[Launch] = []
        for over in parts(self._mapping.document):
            for is_first, batch in batches(mesh, over, self._data.get(over.kind), is_early, self._order):
                launch = Launch(over.name, batch.count, self._fixed(over.name, batch))
                (early if is_first else late).append(launch)
        return late, early

    def _fixed(self, part: str, batch: Batch) -> dict[str, Array]:
        found: dict[str, Any] = {}
        (own,) = (p for p in self.operator.parts if p.name == part)
        if "local_facets" in batch.lists and "n_cells" in {a.name for a in own.compiled.arguments}:
            # no array says it of matrices over points, whose measure is one
            found["n_cells"] = len(self._mapping.mesh.geometry.dofmaps[0])
        # the places of a matrix's entries have no role in a document
        for name in self._names(part):
            array = self._mapping.fixed(self._roles[name], batch) if name in self._roles else None
            if array is not None:
                found[name] = array if self._place is None else self._place(array)
        return found

    def _check_count(self, outputs: tuple) -> None:
        needed = len(self._mapping.document["outputs"])
        if len(outputs) != needed:
            raise FormError(f"{len(outputs)} results, needed {needed}: one a form")

    def _varying(self, outputs: tuple, values: ABCMapping[Any, Array]) -> dict[str, Any]:
        document, mapping = self._mapping.document, self._mapping
        self._check_count(outputs)
        given = {}
        for output, entry in zip(outputs, document["outputs"]):
            array = array_of(output)
            given[entry["name"]] = mapping.blocked(array, entry["spaces"][0]) if entry["spaces"] else array
        return given | self._inputs(values)

    def _inputs(self, values: ABCMapping[Any, Array]) -> dict[str, Any]:
        """Functions, constants and positions as they are now."""
        document, mapping, given = self._mapping.document, self._mapping, {}
        named = self._named(values)
        for name, role in self._roles.items():
            if role.kind in ("function", "constant"):
                given[name] = mapping.varying(role, named)
        if self._fixed_positions is not None:
            given[document["functions"][0]["name"]] = self._fixed_positions
        return given

    def _named(self, values: ABCMapping[Any, Array]) -> dict[str, Array]:
        names = {id(function): name for name, function in self._mapping.functions.items()}
        for function in values:
            if id(function) not in names:
                known = ", ".join(f"`{f}`" for f in self._mapping.functions.values()) or "none"
                raise FormError(
                    f"`values` has `{function}`, which is no function of the form; it has {known}"
                )
        return {names[id(function)]: array for function, array in values.items()}

    def _run(self, launches: list[Launch], varying: dict[str, Any], stream: Any = None) -> None:
        compiled = {part.name: part.compiled for part in self.operator.parts}
        for each in launches:
            if each.count > 0:
                compiled[each.part](stream=stream, **self._taken(each.part, varying), **each.fixed)

    def _taken(self, part: str, given: dict[str, Any]) -> dict[str, Any]:
        return {name: given[name] for name in self._names(part) if name in given}

    def _names(self, part: str) -> list[str]:
        """The arguments of a part, without the parameters, which follow from shapes."""
        (found,) = (p for p in self.operator.parts if p.name == part)
        return [a.name for a in found.compiled.arguments if a.kind != "parameter"]

    def __repr__(self) -> str:
        return f"<kingpost.dolfinx.Action of {self.operator!r}>"


def _vector(output: Any) -> Any:
    """The vector of a function, or a vector of DOLFINx."""
    vector = getattr(output, "x", output)
    if not (hasattr(vector, "array") and hasattr(vector, "scatter_reverse")):
        raise FormError(
            f"`assemble`: found a {type(output).__name__}, needed a function or a vector of DOLFINx, which knows its "
            "ghosts; call the action itself to add to an array of local entries"
        )
    return vector


def one_bilinear(form: Any) -> None:
    """Refuses what is not one bilinear form."""
    from kingpost.export.preprocess import check_form

    if isinstance(form, (list, tuple)):
        raise FormError(
            f"found a {type(form).__name__} of forms, needed one bilinear form; take the blocks one by one, each with "
            "the spaces of its own test and trial function"
        )
    check_form(form)
    arguments = form.arguments()
    if len(arguments) != 2:
        raise FormError(
            f"the form has {len(arguments)} arguments, needed a test and a trial function; "
            "use `kingpost.dolfinx.action` for a linear form"
        )


def _checked(form: Any) -> list[Any]:
    """The forms that have integrals."""
    from kingpost.export.preprocess import check_form

    forms = [one for one in _flat(form) if one is not None]
    for one in forms:
        check_form(one)
    forms = [one for one in forms if not one.empty()]
    if not forms:
        raise FormError("the form is empty: it has no integrals")
    return forms


def _flat(form: Any) -> list[Any]:
    """Forms of nested lists, as `ufl.extract_blocks` makes them."""
    return [f for part in form for f in _flat(part)] if isinstance(form, (list, tuple)) else [form]


def _by_name(letter: str, things: Iterable[Any]) -> dict[str, Any]:
    return {f"{letter}{k}": thing for k, thing in enumerate(dict.fromkeys(things))}


def _mesh(form: Any, spaces: list[Any]) -> Any:
    if spaces:
        return spaces[0].mesh
    from dolfinx.mesh import Mesh

    (domain,) = form.ufl_domains()
    return Mesh(domain.ufl_cargo(), domain)


def action(
    form: Any,
    device: str = "default",
    *,
    place: Optional[Place] = None,
    order_cells: bool = False,
    **options: Any,
) -> Action:
    """Compiles a functional or a linear form of DOLFINx's functions, or a list of them.

    ``options`` are those of :func:`kingpost.jit`. ``place`` moves arrays that do not change between
    calls to the device once (``cupy.asarray``): numberings, orientations, lists of facets, and
    positions. Without it, a device that does not reach host memory gets copies at each call.
    ``order_cells`` is whether kernels take the cells in the order of :func:`kingpost.order_cells`, which copies
    numberings and pays where a mesh was not ordered by DOLFINx. Results are the same up to the order of sums.

    Raises:
        FormError: A form that cannot be lowered, measures without subdomain data, parts of mixed
            spaces that were not collapsed, functions of another scalar type than the geometry.
    """
    return Action(form, device, place=place, order_cells=order_cells, **options)
