"""Scalar types: Loopy's, Kingpost's, and those of expressions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from loopy.types import AtomicNumpyType, NumpyType

from kingpost.loopy.refusal import refuse

#: The type that stores each NumPy type.
STORED = {"bool": "bool", "float16": "f16", "float32": "f32", "float64": "f64"}
STORED |= {"complex64": "c64", "complex128": "c128"}
STORED |= {f"{word}{bits}": f"{word[0]}{bits}" for word in ("int", "uint") for bits in (8, 16, 32, 64)}
#: Types of exact integers: a literal, an index of any width, and the rest.
INTEGERS = ("literal", "index", "i32", "i64")
#: Types of integers modulo a power of two.
WORDS = ("u32", "u64")
#: Types of real expressions: a literal and the rest.
REALS = ("real", "f32", "f64")
#: Types of complex expressions: one of literals and the rest, with the type of their parts.
PARTS = {"complex": "real", "c64": "f32", "c128": "f64"}


class Text(NamedTuple):
    """The text of an expression, in parentheses if it is compound, and its type."""

    text: str
    type: str

    def number(self) -> Text:
        """As a number: a truth value counts as 0 or 1, as in C."""
        return Text(f"select({self.text}, 1, 0)", "index") if self.type == "bool" else self

    def truth(self) -> str:
        """As a condition."""
        if self.type == "bool":
            return self.text
        return f"({self.text} != {'0' if self.type in (*INTEGERS, *WORDS) else '0.0'})"

    def part(self, function: str) -> Text:
        """The real or imaginary part, or the absolute value, of a complex number."""
        return Text(f"{function}({self.text})", PARTS[self.type])

    def to(self, wanted: str) -> Text:
        """Converted as C converts, unless that is silent."""
        if wanted == "bool":
            return Text(self.truth(), "bool")
        value = self.number()
        have = value.type
        silent = wanted == have or (have, wanted) in (("f32", "f64"), ("i32", "i64"), ("u32", "u64"), ("c64", "c128"))
        if wanted in WORDS and have == "literal":
            silent = value.text.isdigit()
        elif have == "literal" or (have == "index" and wanted in INTEGERS):
            silent = True
        if have in PARTS and wanted not in PARTS:
            return value.part("real").to(wanted)
        if silent or (have == "real" and wanted in REALS) or have == "complex":
            return Text(value.text, wanted)
        if wanted in ("index", "literal"):
            return value
        if have in WORDS and wanted in INTEGERS and have[1:] == wanted[1:]:
            return Text(f"bits({value.text})", wanted)
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
    """The lanes of a vector type: a structure of fields of one type; nothing for another type."""
    kind = numpy_type(dtype, what)
    if not kind.fields:
        return None
    fields = sorted((entry[1], name, entry[0]) for name, entry in kind.fields.items() if name in (kind.names or ()))
    base = fields[0][2]
    is_even = all(field == base and offset == place*base.itemsize for place, (offset, _, field) in enumerate(fields))
    if base.fields or not is_even or kind.itemsize % base.itemsize:
        return None
    names = tuple(name for _, name, _ in fields if not name.startswith("padding"))
    return Lanes(base, names, kind.itemsize // base.itemsize)


def fields_of(dtype: Any, what: str) -> dict[str, NumpyType]:
    """The fields of a structure of scalars of several types: each is an array."""
    kind = numpy_type(dtype, what)
    if not kind.fields or lanes_of(dtype, what) is not None:
        return {}
    return {name: NumpyType(kind.fields[name][0]) for name in kind.names or ()}


def stored_type(dtype: Any, what: str) -> str:
    """The type of an element in memory."""
    lanes = lanes_of(dtype, what)
    kind = lanes.base if lanes else numpy_type(dtype, what)
    if kind.name in STORED:
        return STORED[kind.name]
    feature = f"elements of type {kind.name}"
    if kind.fields:
        raise refuse("structures as elements", f"{what} of type `{kind}`", "needed a field of it")
    raise refuse(feature, f"{what} of type `{kind}`", f"needed {', '.join(STORED)}")


def value_type(stored: str) -> str:
    """The type of the value of an element."""
    return {"i8": "i32", "i16": "i32", "u8": "i32", "u16": "i32", "f16": "f32"}.get(stored, stored)


def cast(value: Text, stored: str) -> Text:
    """A value as an element of a type holds it."""
    if stored in ("u8", "u16") and value.number().type not in REALS:
        whole = value.number()
        whole = whole if whole.type in INTEGERS else whole.to(f"i{whole.type[1:]}")
        return Text(f"bit_and({whole.text}, {2 ** int(stored[1:]) - 1})", whole.type).to("i32")
    if stored == "f16":
        return Text(f"f16({Text(value.number().text, 'f64').to('f32').text})", "f32")
    wanted = value_type(stored)
    if wanted in ("i32", "i64", "f32", "f64") and value.number().type not in (wanted, *WORDS):
        return Text(f"{wanted}({value.number().text})", wanted)  # a literal takes the type, too
    return value.to(wanted)


def join(one: str, other: str) -> str:
    """The type of a sum, as C has it: of numbers of two kinds it is complex, real, or a word."""
    kinds = (one, other)
    if any(kind in PARTS for kind in kinds):
        # an integer takes the precision of the other operand, double if that is literals
        integer = "f64" if "complex" in kinds else "literal"
        found = join(*(PARTS.get(kind, kind if kind in (*REALS, "literal") else integer) for kind in kinds))
        return next(kind for kind, part in PARTS.items() if part == found)
    reals = [kind for kind in ("f64", "f32", "real") if kind in kinds]
    if reals:
        is_literal = all(kind in ("real", "literal") for kind in kinds)
        return "f64" if reals[0] == "real" and not is_literal else reals[0]
    if any(kind in WORDS for kind in kinds):
        # a signed integer of 64 bits holds all words of 32
        return "u64" if "u64" in kinds else "i64" if "i64" in kinds else "u32"
    return next(kind for kind in ("i64", "i32", "index", "literal") if kind in kinds)


def together(one: Text, other: Text) -> tuple[str, str, str]:
    """Two operands of one type, and that type."""
    one, other = one.number(), other.number()
    found = join(one.type, other.type)
    if found in PARTS:
        # a real is one without a cast
        one, other = (v if v.type in (*PARTS, *REALS, "literal") else v.to(PARTS[found]) for v in (one, other))
        return one.text, other.text, found
    return one.to(found).text, other.to(found).text, found
