"""Expressions of Loopy as text."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import loopy as lp
import numpy as np
import pymbolic.primitives as p
from loopy.kernel.array import VectorArrayDimTag
from loopy.symbolic import Reduction, SubArrayRef, get_dependencies
from pymbolic.mapper import Mapper

from kingpost.loopy.internals import callee_of, kernel_called
from kingpost.loopy.names import Names
from kingpost.loopy.refusal import refuse
from kingpost.loopy.types import (
    INTEGERS,
    PARTS,
    REALS,
    WORDS,
    Text,
    cast,
    fields_of,
    join,
    lanes_of,
    numpy_type,
    stored_type,
    together,
    value_type,
)

#: Functions of one, two or three reals that have the same name in both languages.
REAL_FUNCTIONS = frozenset(
    """sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p pow sqrt
    cbrt hypot erf erfc tgamma lgamma fabs floor ceil trunc round fmod fmin fmax fma copysign""".split()
)
#: Functions of reals that complex numbers have, too.
COMPLEX_FUNCTIONS = ("exp", "log", "sqrt", "pow", "sin", "cos")
#: Names that Loopy knows, as C does.
CONSTANTS = {
    "pi": Text(repr(np.pi), "real"),
    "INFINITY": Text("inf", "real"),
    "HUGE_VAL": Text("inf", "real"),
    "INT_MAX": Text(str(2**31 - 1), "literal"),
    "INT_MIN": Text(f"(-{2**31})", "literal"),
    "LONG_MAX": Text(str(2**63 - 1), "literal"),
    "LONG_MIN": Text(f"(-{2**63 - 1} - 1)", "literal"),
}
#: The functions that make vectors, and the types of their lanes.
LANES = {"int": "i32", "uint": "u32", "long": "i64", "ulong": "u64", "float": "f32", "double": "f64"}
VECTORS = {f"make_{name}{lanes}": kind for name, kind in LANES.items() for lanes in (2, 3, 4, 8, 16)}
REDUCTIONS = {
    "SumReductionOperation": "sum",
    "ProductReductionOperation": "product",
    "MaxReductionOperation": "maximum",
    "MinReductionOperation": "minimum",
    "AnyReductionOperation": "any",
    "AllReductionOperation": "all",
}


class NeedsRealised(Exception):
    """A reduction that has no counterpart, or whose loops an instruction is in: Loopy writes it out."""


class Expressions(Mapper[Text, []]):
    """Writes expressions; what a name means is that of the kernel and of the loops around."""

    def __init__(self, program: lp.TranslationUnit, names: Names) -> None:
        super().__init__()
        self.program = program
        self.kernel = program.default_entrypoint
        self.names = names
        #: The loop that runs an iname, inside it.
        self.loops: dict[str, str] = {}
        #: The parameters, with their types.
        self.parameters: dict[str, str] = {}
        #: Whether quotients of integers are meant as C has them: the value is one, too.
        self.truncates = False
        #: The loop over the lanes of an instruction on vectors.
        self.lane: str | None = None
        #: Arguments whose elements lie in C order, without gaps.
        self.dense: set[str] = set()
        #: What a reader of the text would not expect.
        self.notes: set[str] = set()

    def array(self, name: str) -> Any:
        """The declaration of an argument or a temporary."""
        found = self.kernel.temporary_variables.get(name) or self.kernel.arg_dict.get(name)
        if found is None:
            raise refuse("a name without a declaration", f"`{name}`", "needed an argument, a temporary or an iname")
        return found

    def stored(self, variable: Any) -> str:
        """The type in memory of an argument or a temporary."""
        return stored_type(variable.dtype, f"`{variable.name}`")

    # --- names and accesses

    def map_constant(self, value: Any) -> Text:
        if isinstance(value, bool | np.bool_):
            return Text("true" if value else "false", "bool")
        if isinstance(value, np.unsignedinteger) and f"u{8*value.itemsize}" in WORDS:
            return Text(f"u{8*value.itemsize}({int(value)})", f"u{8*value.itemsize}")
        if isinstance(value, int | np.integer):
            return Text(str(int(value)) if value >= 0 else f"({int(value)})", "literal")
        if isinstance(value, complex | np.complexfloating):
            real, imaginary = (self.map_constant(float(part)).text for part in (value.real, value.imag))
            text = f"complex({real}, {imaginary})"
            return Text(f"c64({text})", "c64") if isinstance(value, np.complex64) else Text(text, "complex")
        text = "nan" if np.isnan(value) else "inf" if np.isinf(value) else repr(abs(float(value)))
        if text[0].isdigit() and not set(text) & set(".e"):
            text += ".0"
        if value < 0:
            text = f"(-{text})"
        return Text(f"f32({text})", "f32") if isinstance(value, np.float32) else Text(text, "real")

    def map_nan(self, expr: Any) -> Text:
        return Text("f32(nan)", "f32") if expr.data_type is np.float32 else Text("nan", "real")

    def map_variable(self, expr: p.Variable) -> Text:
        name = expr.name
        if name in self.loops:
            return Text(self.loops[name], "index")
        if name in self.parameters:
            return Text(self.names.of(name), self.parameters[name])
        if name in self.kernel.all_inames():
            raise refuse("an iname outside its loop", f"`{name}`", "needed an instruction in that loop")
        is_declared = name in self.kernel.arg_dict or name in self.kernel.temporary_variables
        if name in CONSTANTS and not is_declared:
            return CONSTANTS[name]
        return self.access(name, ())

    map_tagged_variable = map_variable

    def map_subscript(self, expr: Any) -> Text:
        return self.access(expr.aggregate.name, expr.index_tuple)

    def map_linear_subscript(self, expr: Any) -> Text:
        name = expr.aggregate.name
        shape = self.array(name).shape or ()
        if name not in self.dense:
            raise refuse("linear subscripts", f"`{expr}`", "needed an array in C order, or an index for each axis")
        indices: list[Any] = []
        place = expr.index
        for extent in reversed(shape[1:]):
            indices.insert(0, p.Remainder(place, extent))
            place = p.FloorDiv(place, extent)
        return self.access(name, (place, *indices))

    def map_lookup(self, expr: Any) -> Text:
        name = getattr(expr.aggregate, "aggregate", expr.aggregate).name
        kind = fields_of(self.array(name).dtype, f"`{name}`").get(expr.name)
        if kind is not None:
            texts = [*self.lanes(name), *(self.index(index) for index in getattr(expr.aggregate, "index_tuple", ()))]
            text = self.names.of(f"{name}.{expr.name}") + (f"[{', '.join(texts)}]" if texts else "")
            return Text(text, value_type(stored_type(kind, f"`{name}.{expr.name}`")))
        vector = lanes_of(self.array(name).dtype, f"`{name}`")
        titles: Mapping[str, Any] = numpy_type(self.array(name).dtype, f"`{name}`").fields or {}
        field = next((f for f in vector.fields if titles[expr.name] == titles[f]), None) if vector else None
        if field is None:
            raise refuse("structures as elements", f"`{expr}`", "needed a field of a vector")
        return self.access(name, getattr(expr.aggregate, "index_tuple", ()), field)

    def lane_of(self, name: str) -> str:
        """The lane that an instruction on vectors is for."""
        if self.lane is None:
            raise refuse("vectors in an instruction on scalars", f"`{name}`", "needed a field of it")
        return self.lane

    def access(self, name: str, indices: Sequence[Any], field: str | None = None) -> Text:
        """An element of an array, or a scalar; of a vector the field, or that of the instruction's lane."""
        texts = [*self.lanes(name), *(self.index(self.in_steps(index)) for index in indices)]
        vector = lanes_of(self.array(name).dtype, f"`{name}`")
        if vector is not None:
            texts.append(self.lane_of(name) if field is None else str(vector.fields.index(field)))
        kind = value_type(self.stored(self.array(name)))
        return Text(self.names.of(name) + (f"[{', '.join(texts)}]" if texts else ""), kind)

    def lanes(self, name: str) -> Sequence[str]:
        """The first indices of a private temporary that several loops of work-items share."""
        return ()

    def in_steps(self, index: Any) -> Any:
        """The index without minima and maxima, where these have few values."""
        return index

    def index(self, index: Any) -> str:
        found = self.rec(index).number()
        if found.type in WORDS:
            return f"i64({found.text})"
        if found.type not in INTEGERS:
            raise refuse("an index that is no integer", f"`{index}` of type {found.type}", "needed an integer")
        return found.text

    # --- arithmetic

    def chain(self, operator: str, operands: Sequence[Any]) -> Text:
        total = self.rec(operands[0]).number()
        for operand in operands[1:]:
            one, other, kind = together(total, self.rec(operand))
            total = Text(f"{one}{operator}{other}", kind)
        return Text(f"({total.text})", total.type)

    def map_sum(self, expr: p.Sum) -> Text:
        return self.chain(" + ", expr.children)

    def map_product(self, expr: p.Product) -> Text:
        if len(expr.children) == 2 and p.is_zero(expr.children[0] + 1):
            value = self.rec(expr.children[1]).number()
            # the language has no negative words
            text = f"(0 - {value.text})" if value.type in WORDS else f"(-{value.text})"
            return Text(text, value.type)
        return self.chain("*", expr.children)

    def map_quotient(self, expr: p.Quotient) -> Text:
        above, below = self.rec(expr.numerator), self.rec(expr.denominator)
        one, other, kind = together(above, below)
        is_integer = kind in INTEGERS or kind in WORDS
        if is_integer and self.truncates:
            self.notes.add("quotients of integers are cut toward zero, as in C")
            return Text(f"trunc_div({one}, {other})", kind)
        if is_integer:
            return Text(f"(f64({one})/f64({other}))", "f64")
        return Text(f"({one}/{other})", kind)

    def integers(self, feature: str, expr: Any, *operands: Any) -> tuple[str, str, str]:
        one, other, kind = together(*(self.rec(operand) for operand in operands))
        if kind not in INTEGERS and kind not in WORDS:
            raise refuse(feature, f"`{expr}`", "needed integers")
        return one, other, kind

    def map_floor_div(self, expr: p.FloorDiv) -> Text:
        one, other, kind = self.integers("floor division of reals", expr, expr.numerator, expr.denominator)
        return Text(f"floor_div({one}, {other})", kind)

    def map_remainder(self, expr: p.Remainder) -> Text:
        one, other, kind = together(self.rec(expr.numerator), self.rec(expr.denominator))
        return Text(f"({one} mod {other})", kind)

    def map_power(self, expr: p.Power) -> Text:
        base, exponent = self.rec(expr.base).number(), self.rec(expr.exponent).number()
        if isinstance(expr.exponent, int | np.integer) and 0 < expr.exponent <= 4:
            return Text(f"({'*'.join([base.text] * int(expr.exponent))})", base.type)
        if all(value.type in (*INTEGERS, *WORDS) for value in (base, exponent)):
            # a power of 32 bits is a value of f64, which rounding finds
            if base.type not in ("literal", "index", "i32"):
                needed = "needed a literal exponent from 1 to 4, integers of 32 bits, or reals"
                raise refuse("powers of integers", f"`{expr}` of {base.type} and {exponent.type}", needed)
            return Text(f"i32(floor(pow(f64({base.text}), f64({exponent.text})) + 0.5))", "i32")
        one, other, kind = together(base, exponent.to("f64") if exponent.type == "literal" else exponent)
        other = f"f64({other})" if exponent.type == "literal" else other
        return Text(f"pow({one}, {other})", kind)

    def map_min(self, expr: Any) -> Text:
        return self.nested("min", expr.children)

    def map_max(self, expr: Any) -> Text:
        return self.nested("max", expr.children)

    def nested(self, function: str, operands: Sequence[Any]) -> Text:
        total = self.rec(operands[0]).number()
        for operand in operands[1:]:
            one, other, kind = together(total, self.rec(operand))
            total = Text(f"{function}({one}, {other})", kind)
        return total

    # --- conditions

    def map_comparison(self, expr: p.Comparison) -> Text:
        one, other, _ = together(self.rec(expr.left), self.rec(expr.right))
        return Text(f"({one} {expr.operator} {other})", "bool")

    def map_logical_and(self, expr: p.LogicalAnd) -> Text:
        return Text(f"({' and '.join(self.truth(child) for child in expr.children)})", "bool")

    def map_logical_or(self, expr: p.LogicalOr) -> Text:
        return Text(f"({' or '.join(self.truth(child) for child in expr.children)})", "bool")

    def map_logical_not(self, expr: p.LogicalNot) -> Text:
        return Text(f"(not {self.truth(expr.child)})", "bool")

    def truth(self, expr: Any) -> str:
        return self.rec(expr).truth()

    def map_if(self, expr: p.If) -> Text:
        one, other, kind = together(self.rec(expr.then), self.rec(expr.else_))
        return Text(f"select({self.truth(expr.condition)}, {one}, {other})", kind)

    # --- conversions and functions

    def map_type_annotation(self, expr: Any) -> Text:
        return self.rec(expr.child)

    def map_type_cast(self, expr: Any) -> Text:
        return cast(self.rec(expr.child), stored_type(expr.type, f"the conversion `{expr}`"))

    def map_call(self, expr: p.Call) -> Text:
        kernel = kernel_called(self.program, expr.function)
        if kernel is not None:
            given = [getattr(parameter, "subscript", parameter) for parameter in expr.parameters]
            return self.function(kernel).call([self.rec(value) for value in given])
        name = callee_of(self.program, expr.function)
        if any(isinstance(parameter, SubArrayRef) for parameter in expr.parameters):
            raise refuse("a function on arrays that is not known", f"`{name}`", "needed a callee that can be inlined")
        if name == "dot":
            return self.dot(expr)
        if name in VECTORS:
            return self.of_lanes(expr, VECTORS[name])
        if name in ("indexof", "indexof_vec"):
            return self.place(expr.parameters[0], name == "indexof_vec")
        values = [self.rec(parameter).number() for parameter in expr.parameters]
        if name in ("real", "imag", "conj") or (name in ("abs", "fabs") and values[0].type in PARTS):
            return self.of_complex(name, values[0])
        if name in ("abs", "fabs") and values[0].type not in WORDS:
            value = values[0]
            text = f"max({value.text}, -{value.text})" if value.type in INTEGERS else f"fabs({value.text})"
            return Text(text, value.type)
        if name in ("min", "max"):
            one, other, kind = together(*values)
            return Text(f"{name}({one}, {other})", kind)
        if name == "clamp":
            return self.nested("min", [p.Max(expr.parameters[:2]), expr.parameters[2]])
        if name == "isnan":
            return Text(f"({values[0].text} != {values[0].text})", "bool")
        if name == "rsqrt":
            return Text(f"(1.0/sqrt({values[0].text}))", values[0].type)
        if name.startswith(("bessel_j", "bessel_y")):
            return Text(f"{name[:8]}({values[0].text}, {values[1].text})", "f64")
        return self.real_function(name, values)

    def function(self, kernel: str) -> Any:
        """A callee as a rule; the writer of the kernel declares it."""
        raise NotImplementedError

    def of_lanes(self, expr: p.Call, kind: str) -> Text:
        """The value of the lane that an instruction on vectors is for."""
        lane = self.lane_of(f"{expr}")
        # a literal of `select` has no type of its own
        values = (self.rec(parameter).number() for parameter in expr.parameters)
        texts = [(Text(v.text, "index") if v.type == "literal" else v).to(kind).text for v in values]
        if lane.isdigit():
            return Text(texts[int(lane)], kind)
        found = texts[-1]
        for place, text in reversed(list(enumerate(texts[:-1]))):
            found = f"select({lane} == {place}, {text}, {found})"
        return Text(found, kind)

    def place(self, access: Any, is_of_lanes: bool) -> Text:
        """Where an element lies: in elements, or in lanes of those that are vectors."""
        found = self.array(access.aggregate.name)
        axes = list(zip(found.dim_tags, found.shape, access.index_tuple, strict=True))
        lanes = [(extent, index) for tag, extent, index in axes if isinstance(tag, VectorArrayDimTag)]
        # strides count lanes
        size = lanes[0][0] if lanes and not is_of_lanes else 1
        terms = [tag.stride//size*index for tag, _, index in axes if not isinstance(tag, VectorArrayDimTag)]
        return self.rec(p.Sum((*terms, *(index for _, index in lanes if is_of_lanes))))

    def of_complex(self, name: str, value: Text) -> Text:
        """A part of a number, which a real has, too."""
        if value.type not in PARTS:
            return Text("0.0", "real") if name == "imag" else value
        return Text(f"conj({value.text})", value.type) if name == "conj" else value.part(name)

    def dot(self, expr: p.Call) -> Text:
        """The product of two vectors: the sum of those of their lanes."""
        arrays = [self.array(name) for name in sorted(get_dependencies(expr.parameters)) if name not in self.loops]
        vectors = [lanes for lanes in (lanes_of(array.dtype, f"`{array.name}`") for array in arrays) if lanes]
        if not vectors:
            raise refuse("vectors in an instruction on scalars", f"`{expr}`", "needed vectors")
        outer, terms = self.lane, []
        for lane in range(len(vectors[0].fields)):
            self.lane = str(lane)
            one, other, kind = together(*(self.rec(parameter) for parameter in expr.parameters))
            terms.append(f"{one}*{other}")
        self.lane = outer
        return Text(f"({' + '.join(terms)})", kind)

    def real_function(self, name: str, values: list[Text]) -> Text:
        if name not in REAL_FUNCTIONS:
            several = {"make_tuple": "several results", "segmented": "several results", "sincos": "several results"}
            kind = several.get(name, "a function without a counterpart")
            raise refuse(kind, f"`{name}`", "needed a function of the language, or a callee that can be inlined")
        kinds = {value.type for value in values} - {"literal"}
        if any(kind in PARTS for kind in kinds):
            if name not in COMPLEX_FUNCTIONS:
                raise refuse("a function of complex numbers", f"`{name}`", f"needed {', '.join(COMPLEX_FUNCTIONS)}")
            found = functools.reduce(join, kinds)
            texts = [value.text if value.type in (*PARTS, *REALS) else value.to(PARTS[found]).text for value in values]
            return Text(f"{name}({', '.join(texts)})", found)
        kind = next((kind for kind in ("f64", "f32", "real") if kind in kinds), "f64")
        wanted = "f64" if kind == "real" else kind
        # a literal integer is converted in words: the functions take reals
        texts = [f"{wanted}({v.text})" if v.type in (*INTEGERS, *WORDS) else v.text for v in values]
        return Text(f"{name}({', '.join(texts)})", kind)

    # --- reductions

    def map_reduction(self, expr: Reduction) -> Text:
        if not expr.inames:
            return self.rec(expr.expr)  # of one value, whatever joins more
        operation = type(expr.operation).__name__
        shared = any(name in insn.within_inames for name in expr.inames for insn in self.kernel.instructions)
        if shared or operation not in REDUCTIONS or isinstance(expr.expr, tuple):
            raise NeedsRealised
        return self.reduction(REDUCTIONS[operation], expr)

    def reduction(self, function: str, expr: Reduction) -> Text:
        """A reduction over its loops; the writer of loops knows their bounds."""
        raise NotImplementedError

    # --- bits

    def bits(self, function: str, expr: Any) -> Text:
        total = self.rec(expr.children[0]).number()
        for operand in expr.children[1:]:
            one, other, kind = together(total, self.rec(operand))
            total = Text(f"{function}({one}, {other})", kind)
        return total

    def map_bitwise_and(self, expr: p.BitwiseAnd) -> Text:
        return self.bits("bit_and", expr)

    def map_bitwise_or(self, expr: p.BitwiseOr) -> Text:
        return self.bits("bit_or", expr)

    def map_bitwise_xor(self, expr: p.BitwiseXor) -> Text:
        return self.bits("bit_xor", expr)

    def map_bitwise_not(self, expr: p.BitwiseNot) -> Text:
        value = self.rec(expr.child).number()
        return Text(f"bit_not({value.text})", value.type)

    def shift(self, function: str, expr: Any) -> Text:
        value, count = self.rec(expr.shiftee).number(), self.rec(expr.shift).number()
        kind = "index" if value.type == "literal" else value.type
        return Text(f"{function}({value.text}, {count.text})", kind)

    def map_left_shift(self, expr: p.LeftShift) -> Text:
        return self.shift("shl", expr)

    def map_right_shift(self, expr: p.RightShift) -> Text:
        return self.shift("shr", expr)

    def map_fortran_division(self, expr: Any) -> Text:
        one, other, kind = together(self.rec(expr.numerator), self.rec(expr.denominator))
        if kind in INTEGERS or kind in WORDS:
            return Text(f"trunc_div({one}, {other})", kind)
        return Text(f"({one}/{other})", kind)

    def handle_unsupported_expression(self, expr: Any, *_: Any) -> Text:
        raise refuse(f"expressions `{type(expr).__name__}`", f"`{expr}`", "needed an expression of the language")


def reads(expressions: Sequence[Any], access: Any) -> bool:
    """Whether any of the expressions may read the variable that is written."""
    while not isinstance(access, p.Variable):
        access = access.aggregate
    return any(access.name in get_dependencies(expression) for expression in expressions)
