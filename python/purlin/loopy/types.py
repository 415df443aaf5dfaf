"""Scalar types: Loopy's, Purlin's, and those of expressions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from loopy.types import AtomicNumpyType, NumpyType

from purlin.loopy.refusal import refuse

#: The type that stores each NumPy type.
STORED = {"float32": "f32", "float64": "f64", "int16": "i16", "int32": "i32", "int64": "i64"}
#: Types of integer expressions: a literal, an index of any width, and the rest.
INTEGERS = ("literal", "index", "i32", "i64")
#: Types of real expressions: a literal and the rest.
REALS = ("real", "f32", "f64")


class Text(NamedTuple):
    """The text of an expression, in parentheses if it is compound, and its type."""

    text: str
    type: str

    def number(self) -> Text:
        """As a number: a truth value counts as 0 or 1, as in C."""
        return Text(f"select({self.text}, 1, 0)", "literal") if self.type == "bool" else self

    def truth(self) -> str:
        """As a condition."""
        if self.type == "bool":
            return self.text
        return f"({self.text} != {'0' if self.type in INTEGERS else '0.0'})"

    def to(self, wanted: str) -> Text:
        """Converted, unless that is silent."""
        value = self.number()
        have = value.type
        silent = wanted == have or (have, wanted) in (("f32", "f64"), ("i32", "i64"))
        if silent or have == "literal" or (have == "index" and wanted in INTEGERS):
            return Text(value.text, wanted)
        if have == "real" and wanted in REALS:
            return Text(value.text, wanted)
        if wanted in ("index", "literal"):
            return value
        return Text(f"{wanted}({value.text})", wanted)


def numpy_type(dtype: Any, what: str) -> np.dtype:
    """NumPy's type of a type of Loopy's."""
    if not isinstance(dtype, NumpyType | AtomicNumpyType):
        needed = "needed one of NumPy's; give it by `types={...}` or `loopy.add_dtypes`"
        raise refuse("a type that is not known", f"{what} of type `{dtype}`", needed)
    return dtype.dtype


class Lanes(NamedTuple):
    """A vector type as elements of an array."""

    base: np.dtype
    #: The fields, in the order of memory.
    fields: tuple[str, ...]
    #: The elements that a vector takes: OpenCL's vectors of three take four.
    pitch: int


def lanes_of(dtype: Any, what: str) -> Lanes | None:
    """The lanes of a vector type: a structure of fields of one type; nothing for a scalar type."""
    kind = numpy_type(dtype, what)
    if not kind.fields:
        return None
    fields = sorted((entry[1], name, entry[0]) for name, entry in kind.fields.items() if name in (kind.names or ()))
    base = fields[0][2]
    is_even = all(field == base and offset == place*base.itemsize for place, (offset, _, field) in enumerate(fields))
    if base.fields or not is_even or kind.itemsize % base.itemsize:
        needed = "needed fields of one type; give each field an array of its own"
        raise refuse("structures as elements", f"{what} of type `{kind}`", needed)
    names = tuple(name for _, name, _ in fields if not name.startswith("padding"))
    return Lanes(base, names, kind.itemsize // base.itemsize)


def stored_type(dtype: Any, what: str) -> str:
    """The type of an element in memory."""
    lanes = lanes_of(dtype, what)
    kind = lanes.base if lanes else numpy_type(dtype, what)
    if kind.name in STORED:
        return STORED[kind.name]
    if kind.kind == "c":
        feature = "complex numbers"
    elif kind.kind == "u":
        feature = "unsigned integers"
    elif kind.kind == "b":
        feature = "truth values in memory"
    else:
        feature = f"elements of type {kind.name}"
    raise refuse(feature, f"{what} of type `{kind}`", f"needed {', '.join(STORED)}")


def value_type(stored: str) -> str:
    """The type of the value of an element."""
    return "i32" if stored == "i16" else stored


def join(one: str, other: str) -> str | None:
    """The type of a sum, or nothing where one of them must be converted."""
    for first, second in ((one, other), (other, one)):
        if first == "literal":
            return second
    if (one in INTEGERS) != (other in INTEGERS):
        return None
    for first, second in ((one, other), (other, one)):
        if first in ("index", "real"):
            return second
    for widest in ("f64", "f32", "i64"):
        if widest in (one, other):
            return widest
    return "i32"


def together(one: Text, other: Text) -> tuple[str, str, str]:
    """Two operands of one type, and that type: integers become reals where the other one is."""
    one, other = one.number(), other.number()
    found = join(one.type, other.type)
    if found is None:
        real = next(value.type for value in (one, other) if value.type in REALS)
        real = "f64" if real == "real" else real
        one, other = (value.to(real) if value.type in INTEGERS else value for value in (one, other))
        found = join(one.type, other.type)
    return one.text, other.text, str(found)
