"""The document: integrals of several forms on one graph each, written as plain data."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .elements import cell_name, columns, component_access, describe, nodes, transforms
from .geometry import reference_values
from .graph import Field, Graph
from .linear import Linear
from .lower import Lowering, deep_recursion
from .names import POSITIONS, Names, space_name
from .preprocess import Piece, pieces
from .products import GRIDS, Product
from .rules import rule_of_cells
from .scope import Functions, Scope
from .tables import Array, Frames, frame

Json = dict[str, Any]
Numbering = Callable[[Any], Hashable]


class Group:
    """Integrals of equal type, subdomains and rule: one graph, terms of several outputs."""

    def __init__(self, piece: Piece, cell: str, functions: Functions) -> None:
        self.piece = piece
        self.graph = Graph(functions.is_complex)
        own, other = frame(cell, piece.kind, piece.rule.points), None
        if piece.rule.other is not None:
            other = frame(cell_name(functions.domain("-").ufl_coordinate_element()), piece.kind, piece.rule.other)
        self.frames = Frames(own, other)
        self.functions = functions
        self.terms: list[tuple[int, Scope, Linear]] = []
        self._lowerings: dict[int, Lowering] = {}

    def add(self, output: int, arguments: tuple[Any, ...], piece: Piece) -> None:
        """Lowers one integrand."""
        lowering = self._lowerings.get(output)
        if lowering is None:
            scope = Scope(self.graph, self.frames, self.functions, arguments)
            lowering = self._lowerings[output] = Lowering(scope)
        value = lowering.integrand(piece.integrand)
        if piece.scale is not None and not isinstance(piece.scale, int):
            scale = lowering.values.scalar(lowering.integrand(piece.scale), "scale")
            value = lowering.values.multiply(value, scale)
        if lowering.values.is_zero(value):
            return
        linear: Linear = value if isinstance(value, dict) else {(): value}
        self.terms.append((output, lowering.scope, linear))


class TableSet:
    """Tables of one integral; equal ones stand once."""

    def __init__(self, interior: bool, frames: Frames) -> None:
        self.interior, self._frames = interior, frames
        self.tables: list[Json] = []
        self._known: dict[Any, int] = {}
        self._seen: dict[int, tuple[int, Array]] = {}

    def position(self, values: Array, name: str, product: Product | None = None) -> int:
        """The position of a table; equal permutations and equal rows are written once."""
        known = self._seen.get(id(values))
        if known is None:
            # The array is kept, so that its identity stays its own.
            known = self._seen[id(values)] = (self._position(values, name, product), values)
        return known[0]

    def _position(self, values: Array, name: str, product: Product | None) -> int:
        values = self._frames.padded(values)
        permutations = values.shape[0] if self.interior else 1
        if self.interior and bool(np.all(values == values[:1])):
            values, permutations = values[0], 1
        if bool(np.all(values == values[..., :1, :])):
            values = values[..., :1, :]
        largest = float(np.max(np.abs(values))) or 1.0
        # Tables that differ in the 15th digit come from different elements that agree.
        key = (values.shape, np.round(values / largest, 14).tobytes(), round(largest, 13))
        position = self._known.get(key)
        if position is None:
            position = self._known[key] = len(self.tables)
            factors = None if values.shape[-2] == 1 else product
            table: Json = {"name": name, "values": values.tolist() if factors is None else factors.json}
            if permutations > 1:
                table["permutations"] = permutations
            self.tables.append(table)
        return position


class IntegralWriter:
    """Resolves the symbolic nodes of one group and writes its integral."""

    def __init__(self, group: Group, function_names: list[str]) -> None:
        self.group = group
        self.graph = group.graph
        self.terms = group.terms
        self.names = function_names
        self.interior = group.piece.kind == "interior_facet"
        self.tables = TableSet(self.interior, group.frames)
        self.evaluations: list[Json] = []
        self.nodes: list[list[Any]] = []
        self._evaluation: dict[Any, int] = {}
        self._node: dict[Any, int] = {}
        self._place: dict[int, int] = {}
        self._accesses: dict[Any, tuple[tuple[str, Any], ...]] = {}

    def write(self) -> Json | None:
        """The integral, or None if nothing is left of it."""
        self._drop_vanishing()
        merged: dict[Any, int] = {}
        for output, scope, linear in self.terms:
            for key, factor in linear.items():
                if any(not np.any(self._values(scope.argument(f), f)) for f in key):
                    continue
                accesses = tuple(self._argument(scope.argument(f), f) for f in key)
                known = merged.get((output, accesses))
                merged[output, accesses] = (
                    factor if known is None else self.graph.add(known, factor)
                )
        merged = {key: factor for key, factor in merged.items() if factor != self.graph.zero}
        if not merged:
            return None
        self._emit_reachable(list(merged.values()))
        terms = [
            {"output": output, "factor": self._place[factor], "arguments": [dict(a) for a in keys]}
            for (output, keys), factor in merged.items()
        ]
        return self.integral(terms)

    def integral(self, terms: list[Json]) -> Json:
        """The integral of these terms and what they need."""
        rule = self.group.piece.rule
        points, weights = rule.points.tolist(), rule.weights.tolist()
        if rule.weights.ndim == 2:
            # those of each facet are a table, which the graph reads instead
            points, weights = [], [1.0] * rule.weights.shape[1]
        return {
            "type": self.group.piece.kind,
            "subdomains": list(self.group.piece.subdomains),
            "degree": rule.degree,
            "scheme": rule.scheme,
            "points": points,
            "weights": weights,
            "tables": self.tables.tables,
            "evaluations": self.evaluations,
            "nodes": self.nodes,
            "terms": terms,
        }

    def _values(self, element: Any, field: Field) -> Array:
        """The table of a field on `element`."""
        part = component_access(element, field.component)[0]
        frame = self.group.frames.of(field.side)
        if field.rows is not None:
            return frame.rows(field.rows, part.dim)
        return frame.table(part, field.derivatives, field.average)

    def _product(self, element: Any, field: Field) -> Product | None:
        """The factors of that table, if it is a product."""
        if field.rows is not None:
            return None
        part = component_access(element, field.component)[0]
        return self.group.frames.of(field.side).product(part, field.derivatives, field.average)

    def _drop_vanishing(self) -> None:
        """Replaces fields that vanish in all points by zero (a bubble in vertices)."""
        element = self.group.functions.element
        vanishing = {
            position
            for position, node in enumerate(self.graph.nodes)
            if node[0] == "field" and not np.any(self._values(element(node[1]), node[1]))
        }
        if not vanishing:
            return
        self.graph, places = self.graph.without(vanishing)
        self.terms = [
            (output, scope, {key: places[factor] for key, factor in linear.items()})
            for output, scope, linear in self.terms
        ]

    def _access(self, element: Any, field: Field, name: str) -> Json:
        """Table, columns and side of a field on `element`."""
        _, offset, stride, component = component_access(element, field.component)
        values = self._values(element, field)
        access = {
            "table": self.tables.position(values, name, self._product(element, field)),
            "offset": offset,
            "stride": stride,
            "component": component,
        }
        return access | ({"side": field.side} if self.interior else {})

    def _argument(self, element: Any, field: Field) -> tuple[tuple[str, Any], ...]:
        key = (id(element), field)
        access = self._accesses.get(key)
        if access is None:
            name = self._table_name(element, field)
            access = self._accesses[key] = tuple(self._access(element, field, name).items())
        return access

    def _emit_reachable(self, roots: list[int]) -> None:
        """Writes every node that a factor needs, operands first."""
        needed: set[int] = set()
        stack = list(roots)
        while stack:
            a = stack.pop()
            if a not in needed:
                needed.add(a)
                stack.extend(_operands(self.graph.nodes[a]))
        order = sorted(needed)
        if self.group.frames.of(None).type in GRIDS:
            # The position and its derivatives last, so that sums axis by axis hold nine values fewer meanwhile: of Q6,
            # a work-item takes 156 registers on sm_90 instead of 180 (NVRTC 13.0, 2026-11-30).
            order.sort(key=lambda a: not self._is_of_coefficient(self.graph.nodes[a]))
        for a in order:
            self._place[a] = self._emit(self.graph.nodes[a])

    @staticmethod
    def _is_of_coefficient(node: tuple) -> bool:
        return bool(node[0] == "field" and node[1].source != 0)

    def _emit(self, node: tuple) -> int:
        """Appends one node with renumbered operands."""
        written: tuple[Any, ...]
        operation = node[0]
        if operation == "field":
            written = ("evaluation", self._evaluate(node[1]))
        elif operation == "reference":
            _, name, component, side = node
            table = self.tables.position(self._reference_table(name, component, side), name)
            written = ("table", table, side) if self.interior and side else ("table", table)
        elif operation in _LEAVES:
            written = node
        else:
            # The names of a function, or a kind and an order, stand before the operands.
            first = _FIRST_OPERAND.get(operation, 1)
            written = (*node[:first], *[self._place[o] for o in node[first:]])
        position = self._node.get(written)
        if position is None:
            position = self._node[written] = len(self.nodes)
            self.nodes.append(list(written))
        return position

    def _evaluate(self, field: Field) -> int:
        element = self.group.functions.element(field)
        function = self.names[field.source]
        scalar = element.reference_value_size == 1
        name = f"{function}{'' if scalar else field.component}{_suffix(field)}"
        access = self._access(element, field, self._table_name(element, field))
        key = (field.source, *access.values())
        position = self._evaluation.get(key)
        if position is None:
            position = self._evaluation[key] = len(self.evaluations)
            self.evaluations.append({"function": field.source} | access | {"name": name})
        return position

    def _table_name(self, element: Any, field: Field) -> str:
        side = "_other" if field.side == "-" and self.group.functions.twins else ""
        return f"{space_name(element)}_c{field.component}{_suffix(field)}{side}"

    def _reference_table(self, name: str, component: tuple[int, ...], side: str | None) -> Array:
        space = self.group.frames.of(side)
        if name == "cell_coordinate":
            return space.coordinates(component[0])
        if name == "facet_coordinate":
            return space.facet_coordinates(component[0])
        if name == "facet_weight":
            return space.weights(self.group.piece.rule.weights)
        return space.facet_values(reference_values(name, component, space.type))


def _suffix(field: Field) -> str:
    suffix = "".join(f"_d{axis}" * count for axis, count in enumerate(field.derivatives))
    if field.average is not None:
        suffix += f"_{field.average}_avg"
    if field.rows is not None:
        suffix += "_at"
    return suffix


_LEAVES = frozenset(("literal", "constant", "field", "reference", "weight"))
_FIRST_OPERAND = {"math": 2, "compare": 2, "bessel": 3}


def _operands(node: tuple) -> tuple[int, ...]:
    return () if node[0] in _LEAVES else node[_FIRST_OPERAND.get(node[0], 1) :]


def zero_integral(output: int, cell: str, elements: list[Any], functions: Functions) -> Json:
    """Zero over all cells, added to a result to which nothing else is, so that it has an argument.

    The factor is zero times a coordinate: the kernel takes the positions and their map, as those of
    other forms do, and so knows the number of cells.
    """
    rule = rule_of_cells(cell, [component_access(element, 0)[0] for element in elements])
    group = Group(Piece("cell", (), rule, None, None), cell, functions)
    writer = IntegralWriter(group, [POSITIONS])
    zero = (0,) * group.frames.of(None).tdim
    arguments = [
        dict(writer._argument(element, Field(place, 0, zero, None))) for place, element in enumerate(elements)
    ]
    writer._emit(("literal", 0.0))
    writer._place = {0: 0, 1: writer._emit(("field", Field(0, 0, zero, None)))}
    factor = writer._emit(("multiply", 0, 1))
    return writer.integral([{"output": output, "factor": factor, "arguments": arguments}])


class Document:
    """Several forms on one mesh as one tabulated form."""

    def __init__(
        self,
        domain: Any,
        names: Mapping[Any, str] | None,
        outputs: Sequence[str],
        numbering: Numbering | None,
        scalar: str,
        scheme: str,
        twins: Mapping[Any, Any] | None = None,
    ) -> None:
        self.domain = domain
        self.scalar = scalar
        self.scheme = scheme
        self.numbering = numbering or (lambda space: None)
        self.cell = cell_name(domain.ufl_coordinate_element())
        self.functions = Functions(domain, scalar.startswith("c"), twins)
        self.names = Names(names, outputs)
        self.groups: dict[Any, Group] = {}
        self.outputs: list[tuple[str, list[tuple[Any, Hashable]]]] = []

    def add(self, form: Any, output: str) -> None:
        """Lowers a form; its result is the output of that name."""
        arguments = form.arguments()
        position = len(self.outputs)
        self.outputs.append((output, [self._space(argument) for argument in arguments]))
        for coefficient in form.coefficients():
            self.functions.coefficient(coefficient)
        for constant in form.constants():
            self.functions.constant(constant)
        with deep_recursion():
            for piece in pieces(form, self.functions.is_complex, self.scheme, self.functions.twins):
                key = (piece.kind, piece.subdomains, piece.rule.key)
                group = self.groups.get(key)
                if group is None:
                    group = self.groups[key] = Group(piece, self.cell, self.functions)
                group.add(position, arguments, piece)

    def _space(self, function: Any) -> tuple[Any, Hashable]:
        """The elements of a coefficient or argument, and which of its numberings it has."""
        twin = self.functions.twins.get(function, function)
        elements = (function.ufl_element(), *([] if twin is function else [twin.ufl_element()]))
        return elements, self.numbering(function.ufl_function_space())

    def _cell(self) -> str:
        """The cell, or that with more facets of two kinds."""
        for group in self.groups.values():
            return group.frames.cell
        return self.cell

    def write(self, name: str) -> Json:
        """The tabulated form as plain data."""
        self.names.check_used([*self.functions.coefficients[1:], *self.functions.constants])
        function_names = [POSITIONS] + [
            self.names.of(coefficient, f"w{i}")
            for i, coefficient in enumerate(self.functions.coefficients[1:])
        ]
        constants = [
            {"name": self.names.of(c, f"c{i}"), "shape": list(c.ufl_shape)}
            for i, c in enumerate(self.functions.constants)
        ]
        titles = [title for title, _ in self.outputs]
        spaces = Spaces([self.functions.domain(side).ufl_coordinate_element() for side in "+-"], self.names)
        functions = [{"name": function_names[0], "role": "coordinates", "space": 0}]
        for title, function in zip(
            function_names[1:], self.functions.coefficients[1:], strict=True
        ):
            space = spaces.position(*self._space(function))
            functions.append({"name": title, "role": "coefficient", "space": space})
        outputs = [
            {"name": title, "spaces": [spaces.position(*space) for space in own]}
            for title, (_, own) in zip(titles, self.outputs, strict=True)
        ]
        written = (IntegralWriter(g, function_names).write() for g in self.groups.values())
        integrals = [integral for integral in written if integral is not None]
        added_to = {term["output"] for integral in integrals for term in integral["terms"]}
        for place, (_, own) in enumerate(self.outputs):
            if place not in added_to and not self.functions.twins:
                elements = [element for (element, *_), _ in own]
                integrals.append(zero_integral(place, self.cell, elements, self.functions))
        return {
            "kingpost_form": 1,
            "name": name,
            "cell": self._cell(),
            "gdim": self.domain.geometric_dimension,
            "rank": len(self.outputs[0][1]),
            "scalar": self.scalar,
            "spaces": spaces.entries,
            "functions": functions,
            "constants": constants,
            "outputs": outputs,
            "integrals": integrals,
        }


class Spaces:
    """Spaces of a document; the geometry's is the first and is shared with no function."""

    def __init__(self, coordinates: Sequence[Any], names: Names) -> None:
        self.names = names
        own, other = coordinates
        self.entries = [self._entry("x", (own,) if own == other else (own, other), " (geometry)", False)]
        self._known: dict[Any, int] = {}

    def position(self, elements: tuple[Any, ...], numbering: Hashable) -> int:
        """The space of an element, and of another one on the side `-`, and one of its numberings."""
        place = self._known.get((elements, numbering))
        if place is None:
            place = self._known[elements, numbering] = len(self.entries)
            name = self.names.unique(space_name(elements[0]))
            self.entries.append(self._entry(name, elements, "", True))
        return place

    @staticmethod
    def _entry(name: str, elements: tuple[Any, ...], note: str, oriented: bool) -> Json:
        element = elements[0]
        entry: Json = {
            "name": name,
            "columns": max(map(columns, elements)),
            "block": element.block_size,
            "description": " and ".join(map(describe, elements)) + note,
        }
        if len(elements) > 1:
            return entry
        points = nodes(element)
        if points is not None:
            entry["nodes"] = points
        moved = transforms(element) if oriented else []
        return entry | ({"transforms": moved} if moved else {})


def documents(
    forms: Sequence[Any],
    domain: Any,
    outputs: Sequence[str],
    names: Mapping[Any, str] | None,
    numbering: Numbering | None,
    scalar: str,
    scheme: str,
    twins: Mapping[Any, Any] | None = None,
) -> Document:
    """A document of `forms`, one output each."""
    document = Document(domain, names, outputs, numbering, scalar, scheme, twins)
    for form, output in zip(forms, outputs, strict=True):
        document.add(form, output)
    return document
