"""Parameters, arguments, temporaries and tables."""

from __future__ import annotations

from typing import Any, Optional

import loopy as lp
import numpy as np
import pymbolic.primitives as p
from islpy import dim_type
from loopy.kernel.array import FixedStrideArrayDimTag, SeparateArrayArrayDimTag, VectorArrayDimTag
from loopy.kernel.data import ArrayArg, ImageArg, ValueArg
from loopy.symbolic import constraint_to_cond_expr, get_dependencies
from pymbolic import evaluate

from purlin.loopy.refusal import refuse
from purlin.loopy.types import lanes_of, numpy_type, stored_type
from purlin.loopy.writer import Writer, address_space

#: Layouts are compared at these values of the parameters, which no two products of extents share.
SAMPLES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151)


def is_unknown(value: Any) -> bool:
    """Whether Loopy was told to find something out at the call."""
    return value is None or value is lp.auto


def with_known_shapes(program: lp.TranslationUnit, notes: set[str]) -> lp.TranslationUnit:
    """The program with what a call of Loopy's finds out: extents, strides, offsets and undeclared parameters."""
    kernel = program.default_entrypoint
    arguments, extents = [], []
    for argument in kernel.args:
        if isinstance(argument, ArrayArg):
            argument = with_known_shape(argument, extents, notes)
        arguments.append(argument)
    declared = {argument.name for argument in arguments} | set(kernel.temporary_variables) | kernel.all_inames()
    needed = {name for domain in kernel.domains for name in domain.get_var_names(dim_type.param)}
    for argument in arguments:
        if isinstance(argument, ArrayArg) and not is_unknown(argument.shape):
            needed |= {name for extent in argument.shape if extent is not None for name in get_dependencies(extent)}
    for name in [*sorted(needed - declared - set(extents)), *extents]:
        arguments.append(ValueArg(name, np.int32))
    return program.with_kernel(kernel.copy(args=arguments))


def with_known_shape(argument: ArrayArg, extents: list[str], notes: set[str]) -> ArrayArg:
    if isinstance(argument.offset, p.Variable | str) or argument.offset is lp.auto:
        notes.add(f"`{argument.name}` starts at its first element, without an offset")
        argument = argument.copy(offset=0)
    if not is_unknown(argument.shape) and argument.shape and argument.shape[0] is None:
        extents.append(f"len_{argument.name}")
        notes.add(f"the first extent of `{argument.name}` is the parameter `len_{argument.name}`")
        argument = argument.copy(shape=(p.Variable(extents[-1]), *argument.shape[1:]))
    if is_unknown(argument.shape):
        if len(argument.dim_tags or (None,)) == 1 and argument.shape is None:
            extents.append(f"len_{argument.name}")
            notes.add(f"the extent of `{argument.name}` is the parameter `len_{argument.name}`")
            return argument.copy(shape=(p.Variable(extents[-1]),), dim_tags=None, dim_names=None)
        return argument
    strides = [tag.stride for tag in argument.dim_tags or () if isinstance(tag, FixedStrideArrayDimTag)]
    if any(stride is lp.auto for stride in strides):
        notes.add(f"`{argument.name}` is in C order")
        return argument.copy(dim_tags=None, dim_names=None)
    return argument


class Declarations:
    """The lines above the body."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.kernel = writer.kernel
        self.written = self.kernel.get_written_variables()

    def lines(self) -> tuple[list[str], list[str]]:
        """The declarations, and the values of tables."""
        numbers = [self.number(a) for a in self.kernel.args if isinstance(a, ValueArg)]
        arrays = [self.argument(a) for a in self.kernel.args if not isinstance(a, ValueArg)]
        lines, tables = numbers + arrays, []
        for variable in self.kernel.temporary_variables.values():
            if variable.initializer is None:
                lines.append(self.temporary(variable))
            else:
                line, values = self.table(variable)
                lines.append(line)
                tables.append(values)
        return lines, tables

    def number(self, argument: ValueArg) -> str:
        name = self.writer.names.of(argument.name)
        if argument.name in self.writer.parameters:
            return f"param {name}: {self.writer.parameters[argument.name]}"
        vector = lanes_of(argument.dtype, f"`{argument.name}`")
        shape = f"[{len(vector.fields)}]" if vector else ""
        return f"arg {name}: {stored_type(argument.dtype, f'`{argument.name}`')}{shape} in"

    def argument(self, argument: Any) -> str:
        if isinstance(argument, ImageArg):
            raise refuse("images", f"`{argument.name}`", "needed an array")
        if not is_unknown(argument.offset) and not p.is_zero(argument.offset):
            raise refuse("arrays with an offset", f"`{argument.name}` at {argument.offset}", "needed the offset 0")
        access = "inout" if argument.name in self.written else "in"
        kind = stored_type(argument.dtype, f"`{argument.name}`")
        layout = self.layout(argument)
        return f"arg {self.writer.names.of(argument.name)}: {kind}{self.shape(argument)} {access}{layout}"

    def temporary(self, variable: Any) -> str:
        name, kind = self.writer.names.of(variable.name), self.writer.stored(variable)
        extents = self.extents(variable)
        space = address_space(variable)
        is_placed = any(tag and tag != "unroll" for tag in self.writer.axes.values())
        if space == "private" and not is_placed and not all(extent.isdigit() for extent in extents):
            space = "global"  # of one work-item: where it lives does not matter
        extents = [str(self.writer.extent(axis)) for axis in self.writer.spread.get(variable.name, [])] + extents
        shape = f"[{', '.join(extents)}]" if extents else ""
        storage = f" storage({variable.base_storage})" if variable.base_storage and space != "global" else ""
        return f"temp {name}: {kind}{shape} {space}{storage}"

    def table(self, variable: Any) -> tuple[str, str]:
        if variable.name in self.written:
            found = f"`{variable.name}`"
            raise refuse("temporaries with values that are written", found, "needed one that is only read")
        name, kind = self.writer.names.of(variable.name), self.writer.stored(variable)
        values = np.asarray(variable.initializer).ravel().tolist()
        texts = ", ".join(str(int(v)) if kind[0] == "i" else repr(float(v)) for v in values)
        return f"table {name}: {kind}{self.shape(variable) or '[1]'}", f"table {name} = [{texts}]"

    # --- shapes and layouts

    def shape(self, variable: Any) -> str:
        extents = self.extents(variable)
        return f"[{', '.join(extents)}]" if extents else ""

    def extents(self, variable: Any) -> list[str]:
        shape = variable.shape if not is_unknown(variable.shape) else (None,)
        if any(extent is None for extent in shape):
            raise refuse("arrays of unknown shape", f"`{variable.name}`", "needed its extents; give `shape=(...)`")
        vector = lanes_of(variable.dtype, f"`{variable.name}`")
        found = [self.writer.rec(extent).text for extent in shape]
        if vector is not None:
            self.writer.notes.add(f"`{variable.name}` has an axis for the {len(vector.fields)} lanes of its vectors")
            found.append(str(len(vector.fields)))
        return found

    def layout(self, argument: Any) -> str:
        """Nothing in C order, else the strides."""
        strides = self.strides(argument)
        if strides is None or not argument.shape:
            return ""
        self.extents(argument)  # all are known
        vector = lanes_of(argument.dtype, f"`{argument.name}`")
        shape = list(argument.shape)
        if vector is not None:
            shape.append(len(vector.fields))
            strides = [stride*vector.pitch for stride in strides] + [1]
        dense, total = [], 1
        for extent in reversed(shape):
            dense.insert(0, total)
            total = total * extent
        pairs = list(zip(strides, dense, strict=True))
        names = sorted({name for pair in pairs for side in pair for name in get_dependencies(side)})
        values = dict(zip(names, SAMPLES * (len(names) // len(SAMPLES) + 1)))
        if all(evaluate(one, values) == evaluate(other, values) for one, other in pairs):
            return ""
        return f" strides({', '.join(self.writer.rec(stride).text for stride in strides)})"

    def strides(self, argument: Any) -> Optional[list[Any]]:
        """The strides in scalars: an axis of lanes has stride 1."""
        found: list[Any] = []
        for tag in argument.dim_tags or ():
            if isinstance(tag, SeparateArrayArrayDimTag):
                needed = "needed one array; leave the axis without the tag `sep`"
                raise refuse("separated arrays", f"an axis `sep` of `{argument.name}`", needed)
            found.append(1 if isinstance(tag, VectorArrayDimTag) else tag.stride)
        return found or None


def parameters(kernel: lp.LoopKernel) -> dict[str, str]:
    """The integers that are passed by value: they never change, so that sets may mention them."""
    found = {}
    written = kernel.get_written_variables()
    for argument in kernel.args:
        if isinstance(argument, ValueArg):
            kind = numpy_type(argument.dtype, f"`{argument.name}`")
            if kind.kind in "iu" and argument.name in written:
                needed = "needed an array of one element"
                raise refuse("arguments by value that are written", f"`{argument.name}`", needed)
            if kind.kind in "iu":
                found[argument.name] = "i32" if kind.name in ("int8", "int16", "int32", "uint8", "uint16") else "i64"
    return found


def assumptions(writer: Writer) -> list[str]:
    """What Loopy was told of parameters."""
    pieces = writer.domains.context.compute_divs().get_basic_sets()
    if len(pieces) != 1:
        return []
    return [assumption(writer, constraint_to_cond_expr(constraint)) for constraint in pieces[0].get_constraints()]


def assumption(writer: Writer, condition: Any) -> str:
    text = writer.truth(condition)
    return f"assume {text[1:-1] if text.startswith('(') else text}"
