"""Forms as functions of their coefficients and constants, with the forms that are their derivatives.

A derivative in a direction is UFL's Gateaux derivative. The adjoint of a linear form replaces its test function
by a coefficient, and takes the derivative in a new test function. Both are forms again, so that derivatives of
any order are. Constants are functions of the space of one number: they are differentiated like any other, and a
card reads them where they lie.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Optional

import ufl
from basix.ufl import real_element
from ufl.algorithms import expand_derivatives

from purlin import export
from purlin.errors import FormError
from purlin.export.elements import cell_name
from purlin.operator import Operator, jit

#: Types of numbers, by NumPy's names.
SCALARS = {"float32": "f32", "float64": "f64"}


class Function:
    """A form whose coefficients have names; :meth:`tangent` and :meth:`adjoint` are its derivatives.

    Spaces have one name in a form and in all that are derived of it, so that they take the same maps.
    """

    def __init__(self, form: Any, names: dict[Any, str], spaces: dict[Any, str], output: str, matrix: str) -> None:
        self.form = form
        self.names = names
        self.spaces = spaces
        self.output = output
        self.matrix = matrix
        self.rank = len(form.arguments())
        self._derived: dict[tuple[str, str], Any] = {}
        self._operators: dict[tuple[str, str], Operator] = {}

    @classmethod
    def of(cls, form: Any, names: Optional[Mapping[Any, str]], output: str, matrix: str) -> Function:
        """Of a form as its author wrote it, with names as :func:`purlin.export.export_form` gives them."""
        if not isinstance(form, ufl.Form):
            raise FormError(f"found a `{type(form).__name__}`, needed a form of UFL")
        document = export.export_form(form, names=names, outputs=[output])
        named = [entry["name"] for entry in document["functions"][1:]]
        found: dict[Any, str] = dict(zip(form.coefficients(), named, strict=True))
        (mesh,) = form.ufl_domains()
        cell = cell_name(mesh.ufl_coordinate_element())
        numbers = {}
        for constant, entry in zip(form.constants(), document["constants"], strict=True):
            space = ufl.FunctionSpace(mesh, real_element(cell, constant.ufl_shape))
            numbers[constant] = ufl.Coefficient(space)
            found[numbers[constant]] = entry["name"]
        if numbers:
            form = ufl.replace(form, numbers)
        spaces: dict[Any, str] = {}
        function = cls(form, found, spaces, output, matrix)
        spaces.update(_spaces(function._document("f64"), function))
        return function

    def coefficient(self, name: str) -> Optional[Any]:
        """The coefficient of a name."""
        return next((one for one, own in self.names.items() if own == name), None)

    def is_number(self, name: str) -> bool:
        """Whether a name is that of a constant."""
        one = self.coefficient(name)
        return one is not None and one.ufl_element().is_real

    def numbers(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the constants as arrays of functions, by name."""
        return {
            name: (1, math.prod(one.ufl_shape)) if one.ufl_shape else (1,)
            for one, name in self.names.items()
            if self.is_number(name)
        }

    def maps_of_numbers(self) -> list[str]:
        """The names of the maps of constants."""
        return [f"{name}_dofs" for element, name in self.spaces.items() if element.is_real]

    def map_of(self, name: str) -> Optional[str]:
        """The map of a coefficient, or of the result of a linear form (of its output's name)."""
        arguments = self.form.arguments()
        one = arguments[0] if name == self.output and arguments else self.coefficient(name)
        return None if one is None else f"{self.spaces[one.ufl_element()]}_dofs"

    def tangent(self, name: str) -> Optional[tuple[Function, str]]:
        """The derivative by a coefficient, and the name of its direction; nothing if it is zero."""
        return self._derive("tangent", name)

    def adjoint(self, name: str) -> Optional[tuple[Function, str]]:
        """The derivative by a coefficient of the products of the result with weights, a vector of its space, and
        the name of the weights; nothing if it is zero."""
        return self._derive("adjoint", name)

    def _derive(self, kind: str, name: str) -> Optional[tuple[Function, str]]:
        if (kind, name) not in self._derived:
            self._derived[kind, name] = self._new(kind, name)
        return self._derived[kind, name]

    def _new(self, kind: str, name: str) -> Optional[tuple[Function, str]]:
        by = self.coefficient(name)
        if by is None:
            known = ", ".join(f"`{own}`" for own in self.names.values()) or "none"
            raise FormError(
                f"derivative by `{name}`: found no coefficient or constant of this name, needed one of {known}; keep "
                "positions and maps out of what is differentiated"
            )
        if kind == "tangent":
            form, other, title = self.form, ufl.Coefficient(by.ufl_function_space()), f"{name}_dot"
            form = ufl.derivative(form, by, other)
        else:
            form, other = self._weighted()
            title = f"{self.output}_bar"
            form = ufl.derivative(form, by, ufl.TestFunction(by.ufl_function_space()))
        form = expand_derivatives(form)
        if form.empty():
            return None
        title = next(t for t in (title, *(f"{title}{n}" for n in range(2, 99))) if t not in self.names.values())
        output = self.output if kind == "tangent" else f"{name}_bar"
        while output in (title, *self.names.values()):
            output += "_"
        return Function(form, {**self.names, other: title}, self.spaces, output, self.matrix), title

    def _weighted(self) -> tuple[Any, Any]:
        """The sum of the result times weights, as a functional, and the weights."""
        if self.rank == 2:
            raise FormError(
                "the adjoint of a matrix's entries: found a bilinear form, needed a linear one; differentiate its "
                "action on a vector, `ufl.action(form, u)`"
            )
        if self.rank == 1:
            (test,) = self.form.arguments()
            weights = ufl.Coefficient(test.ufl_function_space())
            return ufl.replace(self.form, {test: weights}), weights
        (mesh,) = self.form.ufl_domains()
        cell = cell_name(mesh.ufl_coordinate_element())
        weights = ufl.Coefficient(ufl.FunctionSpace(mesh, real_element(cell, ())))
        self.spaces.setdefault(weights.ufl_element(), "real" if "real" not in self.spaces.values() else "real_weight")
        weighted = []
        for integral in self.form.integrals():
            # either side will do: it is the same number on both
            factor = weights("+") if integral.integral_type() == "interior_facet" else weights
            weighted.append(integral.reconstruct(factor * integral.integrand()))
        return ufl.Form(weighted), weights

    def _document(self, scalar: str) -> dict[str, Any]:
        names = {one: name for one, name in self.names.items() if one in self.form.coefficients()}
        return export.export_form(self.form, scalar=scalar, names=names, outputs=[self.output])

    def operator(self, device: str, scalar: str) -> Operator:
        """The form compiled for a device, with maps of the names that its spaces have here."""
        if (device, scalar) not in self._operators:
            document = self._document(scalar)
            own = {name: element for element, name in _spaces(document, self).items()}
            for space in document["spaces"][1:]:
                space["name"] = self.spaces[own[space["name"]]]
            matrix = self.matrix if self.rank == 2 else "cells"
            self._operators[device, scalar] = jit(json.dumps(document), device, matrix=matrix)
        return self._operators[device, scalar]


def _spaces(document: dict[str, Any], function: Function) -> dict[Any, str]:
    """The names of the spaces of a document, by element."""
    elements = {name: one.ufl_element() for one, name in function.names.items()}
    found = {
        elements[entry["name"]]: document["spaces"][entry["space"]]["name"] for entry in document["functions"][1:]
    }
    arguments = sorted(function.form.arguments(), key=lambda argument: argument.number())
    for argument, space in zip(arguments, document["outputs"][0]["spaces"], strict=True):
        found[argument.ufl_element()] = document["spaces"][space]["name"]
    return found
