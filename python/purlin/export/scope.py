"""What names mean in one integral: functions, arguments, constants, sides and their tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from .elements import Element, component_access
from .graph import Field, Graph
from .tables import Array, Frame


class Functions:
    """The functions and constants of a document, in the order in which they are met."""

    def __init__(self, domain: Any) -> None:
        self.domain = domain
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
    """Fields and their tables in one frame; `arguments` are those of one form."""

    def __init__(
        self, graph: Graph, frame: Frame, functions: Functions, arguments: tuple[Any, ...]
    ) -> None:
        self.graph = graph
        self.frame = frame
        self.functions = functions
        # A form may have a trial function alone: its number is 1, its position 0.
        self.numbers = {argument.number(): i for i, argument in enumerate(arguments)}
        self.arguments: list[Element] = [argument.ufl_element() for argument in arguments]

    def table(self, element: Element, field: Field) -> Array:
        """The table of a field on `element`."""
        part = component_access(element, field.component)[0]
        if field.rows is not None:
            return self.frame.rows(field.rows, part.dim)
        return self.frame.table(part, field.derivatives, field.average)

    def field_node(self, field: Field) -> int:
        """The node of a function's field, zero if its table vanishes."""
        position = self.graph.find("field", field)
        if position is not None:
            return position
        table = self.table(self.functions.elements[field.source], field)
        if not np.any(table):
            return self.graph.zero
        return self.graph.intern("field", field)

    def argument_vanishes(self, field: Field) -> bool:
        """Whether the table of an argument's field is zero."""
        return not np.any(self.table(self.arguments[field.source], field))
