"""Forms as functions of their coefficients and constants, with the forms that are their derivatives.

A derivative in a direction is UFL's Gateaux derivative. The adjoint of a linear form replaces its test function
by a coefficient, and takes the derivative in a new test function. Both are forms again, so that derivatives of
any order are. Constants are functions of the space of one number: they are differentiated like any other, and a
card reads them where they lie.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Optional

import ufl
from basix.ufl import real_element
from ufl.algorithms import expand_derivatives

from kingpost import export
from kingpost.arrays import _about
from kingpost.errors import DtypeError, FormError, MissingArgument, ShapeError
from kingpost.export.elements import cell_name
from kingpost.export.preprocess import with_degrees
from kingpost.operator import Operator, jit

#: Types of numbers, by NumPy's names.
SCALARS = {"float32": "f32", "float64": "f64"}

#: The part of a form, or nothing for all of them, and the name of an argument.
Key = tuple[str, str]


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
        self._operators: dict[tuple, Operator] = {}

    @classmethod
    def of(cls, form: Any, names: Optional[Mapping[Any, str]], output: str, matrix: str) -> Function:
        """Of a form as its author wrote it, with names as :func:`kingpost.export.export_form` gives them."""
        if not isinstance(form, ufl.Form):
            raise FormError(f"found a `{type(form).__name__}`, needed a form of UFL")
        document = export.export_form(form, names=names, outputs=[output])
        named = [entry["name"] for entry in document["functions"][1:]]
        found: dict[Any, str] = dict(zip(form.coefficients(), named, strict=True))
        (mesh,) = form.ufl_domains()
        cell = cell_name(mesh.ufl_coordinate_element())
        numbers = {}
        constants = form.constants()
        form = with_degrees(form)
        for constant, entry in zip(constants, document["constants"], strict=True):
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

    def jacobian(self, name: str) -> Optional[Function]:
        """The derivative of a linear form by a coefficient, as the form of a sparse matrix; nothing if it is zero."""
        found = self._derive("jacobian", name)
        return found and found[0]

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
        elif kind == "jacobian":
            form = expand_derivatives(ufl.derivative(self.form, by))
            return None if form.empty() else (Function(form, self.names, self.spaces, self._free("matrix"), "sparse"), "")
        else:
            form, other = self._weighted()
            title = f"{self.output}_bar"
            form = ufl.derivative(form, by, ufl.TestFunction(by.ufl_function_space()))
        form = expand_derivatives(form)
        if form.empty():
            return None
        title = self._free(title)
        output = self.output if kind == "tangent" else f"{name}_bar"
        while output in (title, *self.names.values()):
            output += "_"
        return Function(form, {**self.names, other: title}, self.spaces, output, self.matrix), title

    def _free(self, name: str) -> str:
        """A name that no coefficient has."""
        return next(t for t in (name, *(f"{name}{n}" for n in range(2, 99))) if t not in self.names.values())

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

    def operator(self, device: str, scalar: str, batched: tuple[str, ...] = ()) -> Operator:
        """The form compiled for a device, with maps of the names that its spaces have here; of many data at once
        where arguments are `batched`."""
        if batched:
            if (device, scalar, batched) not in self._operators:
                one = self.operator(device, scalar)
                known = [a.name for a in one.arguments]
                of = one.batched(*(name for name in batched if name in known))
                self._operators[device, scalar, batched] = of
            return self._operators[device, scalar, batched]
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


class FormFunction(ABC):
    """A form as a function of arrays of one library: names, shapes, and constants as functions of one number."""

    def __init__(self, form: Any, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> None:
        self.function = Function.of(form, names, "y", matrix)
        if self.function.rank == 2 and matrix not in ("cells", "sparse"):
            raise FormError(f"matrix=`{matrix}`: needed `cells` or `sparse`")

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients and constants, by which it can be differentiated."""
        return tuple(self.function.names.values())

    def patterns(self, **maps: Any) -> dict[str, Any]:
        """The pattern of the sparse matrix, for ``pattern=``, from maps in host memory: as
        :meth:`kingpost.Operator.patterns`. It is computed once, outside functions that a library compiles."""
        return self.function.operator("c", "f64").patterns(**{name: _host(value) for name, value in maps.items()})

    @abstractmethod
    def _array(self, value: Any, like: Any = None) -> Any:
        """An array of the library, with the type and on the device of another one."""

    @abstractmethod
    def _zeros(self, shape: tuple[int, ...], like: Any) -> Any:
        """Zeros of 32-bit integers."""

    def _flat(self, given: Mapping[str, Any], pattern: Any) -> dict[Key, Any]:
        """The arrays by part and name; those of constants as functions of one number."""
        flat: dict[Key, Any] = {}
        for name, value in given.items():
            parts = value.items() if isinstance(value, Mapping) else [(None, value)]
            for own, array in parts:
                flat[("", name) if own is None else (name, own)] = self._array(array)
        for needed, what in (("x", "the positions"), ("x_dofs", "the map of the positions")):
            if ("", needed) not in flat:
                raise _about(MissingArgument, needed, f"argument `{needed}` is missing, {what}")
        x, cells = flat["", "x"], flat["", "x_dofs"]
        for name, shape in self.function.numbers().items():
            if ("", name) in flat:
                value = flat["", name]
                if math.prod(value.shape) != math.prod(shape):
                    own_shape = getattr(self.function.coefficient(name), "ufl_shape", ())
                    found = f"has shape {tuple(value.shape)}, needed {own_shape}"
                    raise _about(ShapeError, name, f"argument `{name}` {found}")
                flat["", name] = self._array(value, x).reshape(shape)
        for one in (*self.function.maps_of_numbers(), "real_dofs", "real_weight_dofs"):
            flat.setdefault(("", one), self._zeros((cells.shape[0], 1), cells))
        for one in (pattern or {}).values():
            for part, (name, places) in one.positions.items():
                flat[part, name] = self._array(places)
        return flat

    def _shape(self, flat: dict[Key, Any], y: Any, pattern: Any) -> tuple[int, ...]:
        """The shape of the result."""
        function = self.function
        if function.rank == 0:
            return (1,)
        if function.rank == 2:
            return self._shape_of_matrix(flat, pattern)
        if y is not None:
            return tuple(self._array(y).shape)
        own = function.map_of(function.output)
        same = [name for name in function.names.values() if function.map_of(name) == own and ("", name) in flat]
        if not same:
            message = "argument `y` is missing: no coefficient is of the space of the result; give zeros of its shape"
            raise _about(MissingArgument, "y", message)
        return tuple(flat["", same[0]].shape)

    def _shape_of_matrix(self, flat: dict[Key, Any], pattern: Any) -> tuple[int, ...]:
        if self.function.matrix == "sparse":
            if not pattern:
                raise _about(MissingArgument, "pattern", "argument `pattern` is missing: that of `patterns(...)`")
            return tuple(next(iter(pattern.values())).indices.shape)
        operator = self.function.operator("c", scalar_of(flat["", "x"]))
        if len(operator.parts) > 1:
            raise FormError("the matrices of cells and facets: found several kinds, needed one; use matrix=`sparse`")
        (part,) = operator.parts
        (result,) = (a for a in part.compiled.arguments if a.is_written)
        listed = next((a.name for a in part.compiled.arguments if a.name in ("listed_cells", "facet_cells")), "x_dofs")
        entities = flat[key_of(flat, part.name, listed)]
        return (entities.shape[0], *map(int, result.shape[1:]))


def _host(value: Any) -> Any:
    import numpy

    return {k: _host(v) for k, v in value.items()} if isinstance(value, Mapping) else numpy.asarray(value)


def type_name(array: Any) -> str:
    """The name of the type of elements, as NumPy has it."""
    return str(array.dtype).rpartition(".")[2]


def scalar_of(positions: Any) -> str:
    """The type of a form's numbers, which is that of its positions."""
    if (found := type_name(positions)) not in SCALARS:
        raise _about(DtypeError, "x", f"argument `x` has elements of type {found}, needed float64 or float32")
    return SCALARS[found]


def key_of(given: Mapping[Key, Any], part: str, name: str) -> Key:
    """Where an argument of a part stands: for the part, or for all of them."""
    return (part, name) if (part, name) in given else ("", name)


def add(operator: Operator, given: Mapping[Key, Any], result: Any) -> None:
    """Adds a form's result to an array."""
    for part in operator.parts:
        arguments = [argument for argument in part.compiled.arguments if argument.kind == "array"]
        part.compiled(**{
            a.name: result if a.is_written else given[key_of(given, part.name, a.name)] for a in arguments
        })  # fmt: skip


def wanted(operator: Operator, given: Mapping[Key, Any]) -> set[Key]:
    """The arrays that an operator takes, checked for their types."""
    found: set[Key] = set()
    for part in operator.parts:
        for argument in part.compiled.arguments:
            if argument.kind != "array" or argument.is_written:
                continue
            name = argument.name
            key = key_of(given, part.name, name)
            if key not in given:
                raise _about(MissingArgument, name, f"argument `{name}` is missing: {argument}")
            dtype = {**SCALARS, "int32": "i32"}.get(type_name(given[key]))
            if dtype != argument.dtype:
                message = f"argument `{name}` has elements of type {type_name(given[key])}, needed {argument.dtype}"
                raise _about(DtypeError, name, message)
            found.add(key)
    return found
