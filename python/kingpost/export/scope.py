"""What names mean in one integral: functions, arguments, constants, sides and their tables."""

from __future__ import annotations

from typing import Any

from .elements import Element, component_access
from .graph import Field, Graph
from .tables import Frame


class Functions:
    """The functions and constants of a document, in the order in which they are met."""

    def __init__(self, domain: Any, is_complex: bool) -> None:
        self.domain = domain
        self.is_complex = is_complex
        self.elements: list[Element] = [domain.ufl_coordinate_element()]
        self.coefficients: list[Any] = [None]
        self.constants: list[Any] = []
        self._places: dict[Any, int] = {}

    def coefficient(self, coefficient: Any) -> int:
        """The position of a coefficient; position 0 is x."""
        place = self._places.get(coefficient)
        if place is None:
            place = len(self.coefficients)
            self.coefficients.append(coefficient)
            self.elements.append(coefficient.ufl_element())
            self._places[coefficient] = place
        return place

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
        self, graph: Graph, frame: Frame, functions: Functions, arguments: tuple[Any, ...]
    ) -> None:
        self.graph = graph
        self.frame = frame
        self.functions = functions
        # A form may have a trial function alone: its number is 1, its position 0.
        self.numbers = {argument.number(): i for i, argument in enumerate(arguments)}
        self.arguments: list[Element] = [argument.ufl_element() for argument in arguments]

    def field_node(self, field: Field) -> int:
        """The node of a function's field; zero if the derivative is the zero function.

        A function that vanishes only in the rule's points keeps its node, for its derivatives
        need not vanish there.
        """
        position = self.graph.find("field", field)
        if position is not None:
            return position
        if self._is_zero(self.functions.elements[field.source], field):
            return self.graph.zero
        return self.graph.intern("field", field)

    def argument_vanishes(self, field: Field) -> bool:
        """Whether an argument's field is the zero function."""
        return self._is_zero(self.arguments[field.source], field)

    def _is_zero(self, element: Element, field: Field) -> bool:
        if field.rows is not None or field.average is not None or not any(field.derivatives):
            return False
        part = component_access(element, field.component)[0]
        return self.frame.is_zero_function(part, field.derivatives)
