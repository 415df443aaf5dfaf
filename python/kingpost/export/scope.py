"""What names mean in one integral: functions, arguments, constants, sides and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .across import OTHER
from .elements import Element, component_access
from .graph import Field, Graph
from .tables import Frames


class Functions:
    """The functions and constants of a document, in the order in which they are met."""

    def __init__(self, domain: Any, is_complex: bool, twins: Mapping[Any, Any] | None = None) -> None:
        self.is_complex = is_complex
        #: What stands on the side `-` where its cells are of another kind; see :mod:`.across`.
        self.twins = dict(twins or {})
        self._origins = {twin: origin for origin, twin in self.twins.items()}
        self._domains = {"+": domain, "-": self.twins.get(domain, domain)}
        self.elements: list[Element] = [domain.ufl_coordinate_element()]
        self.coefficients: list[Any] = [None]
        self.constants: list[Any] = []
        self._places: dict[Any, int] = {}

    def coefficient(self, coefficient: Any) -> int:
        """The position of a coefficient; position 0 is x."""
        coefficient = self._origins.get(coefficient, coefficient)
        place = self._places.get(coefficient)
        if place is None:
            place = len(self.coefficients)
            self.coefficients.append(coefficient)
            self.elements.append(coefficient.ufl_element())
            self._places[coefficient] = place
        return place

    def domain(self, side: str | None) -> Any:
        """The mesh of a side."""
        return self._domains[side or "+"]

    def element(self, field: Field) -> Element:
        """The element of a function's field, which may be another one on the side `-`."""
        if field.side != "-" or not self.twins:
            return self.elements[field.source]
        if field.source == 0:
            return self.domain("-").ufl_coordinate_element()
        return self.twins[self.coefficients[field.source]].ufl_element()

    def constant(self, constant: Any) -> int:
        """The position of a constant."""
        place = self._places.get(constant)
        if place is None:
            place = len(self.constants)
            self.constants.append(constant)
            self._places[constant] = place
        return place


class Scope:
    """Fields in one frame; `arguments` are those of one form."""

    def __init__(
        self, graph: Graph, frames: Frames, functions: Functions, arguments: tuple[Any, ...]
    ) -> None:
        self.graph = graph
        self.frames = frames
        self.frame = frames.of(None)
        self.functions = functions
        # A form may have a trial function alone: its number is 1, its position 0.
        self.numbers = {argument.number(): i for i, argument in enumerate(arguments)}
        self.numbers |= {number + OTHER: i for number, i in self.numbers.items()}
        twins = functions.twins
        self._arguments: dict[str, list[Element]] = {
            "+": [argument.ufl_element() for argument in arguments],
            "-": [twins.get(argument, argument).ufl_element() for argument in arguments],
        }

    def argument(self, field: Field) -> Element:
        """The element of an argument's field."""
        return self._arguments[field.side or "+"][field.source]

    def field_node(self, field: Field) -> int:
        """The node of a function's field; zero if the derivative is the zero function.

        A function that vanishes only in the rule's points keeps its node, for its derivatives
        need not vanish there.
        """
        position = self.graph.find("field", field)
        if position is not None:
            return position
        if self._is_zero(self.functions.element(field), field):
            return self.graph.zero
        return self.graph.intern("field", field)

    def argument_vanishes(self, field: Field) -> bool:
        """Whether an argument's field is the zero function."""
        return self._is_zero(self.argument(field), field)

    def _is_zero(self, element: Element, field: Field) -> bool:
        if field.rows is not None or field.average is not None or not any(field.derivatives):
            return False
        part = component_access(element, field.component)[0]
        return self.frames.of(field.side).is_zero_function(part, field.derivatives)
