"""Parameters, arguments, temporaries and tables."""

from __future__ import annotations

import itertools
import operator
from typing import Any, Optional

import loopy as lp
import numpy as np
import pymbolic.primitives as p
from islpy import dim_type
from loopy.kernel.array import FixedStrideArrayDimTag, SeparateArrayArrayDimTag, VectorArrayDimTag
from loopy.kernel.data import ArrayArg, ImageArg, ValueArg
from loopy.symbolic import WalkMapper, constraint_to_cond_expr, get_dependencies
from pymbolic import evaluate

from kingpost.loopy.internals import visit
from kingpost.loopy.refusal import refuse
from kingpost.loopy.types import fields_of, lanes_of, numpy_type, stored_type, value_type
from kingpost.loopy.writer import Writer, address_space

#: Layouts are compared at these values of the parameters, which no two products of extents share.
SAMPLES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151)
#: Arrays of more axes are in C order or have strides.
MOST_AXES = 6


def is_unknown(value: Any) -> bool:
    """Whether Loopy was told to find something out at the call."""
    return value is None or value is lp.auto


def with_known_shapes(program: lp.TranslationUnit, notes: set[str]) -> lp.TranslationUnit:
    """The program with what a call of Loopy's finds out: extents, strides, offsets and undeclared parameters."""
    kernel = program.default_entrypoint
    arguments: list[Any] = []
    extents: list[Any] = []
    strides: list[str] = []
    ranks = Ranks()
    for insn in kernel.instructions:
        visit(insn, ranks)
    for argument in kernel.args:
        if isinstance(argument, ArrayArg):
            argument = with_known_shape(argument, ranks.found.get(argument.name, 1), extents, notes)
            argument = with_known_strides(argument, strides, notes)
        arguments.append(argument)
    declared = {argument.name for argument in arguments} | set(kernel.temporary_variables) | kernel.all_inames()
    needed = {name for domain in kernel.domains for name in domain.get_var_names(dim_type.param)}
    for argument in arguments:
        if isinstance(argument, ArrayArg) and not is_unknown(argument.shape):
            shape: Any = argument.shape
            needed |= {name for extent in shape if extent is not None for name in get_dependencies(extent)}
    for name in [*sorted(needed - declared - set(extents)), *extents]:
        arguments.append(ValueArg(name, np.int32))
    arguments += [ValueArg(name, np.int64) for name in strides]
    return program.with_kernel(kernel.copy(args=arguments))


class Ranks(WalkMapper):
    """Collects how many indices arrays have."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, int] = {}

    def map_subscript(self, expr: Any) -> None:
        super().map_subscript(expr)
        self.found[expr.aggregate.name] = len(expr.index_tuple)


def with_known_shape(argument: ArrayArg, rank: int, extents: list[str], notes: set[str]) -> ArrayArg:
    if not is_unknown(argument.offset) and argument.offset != 0 or argument.offset is lp.auto:
        # Loopy's caller passes a part of a larger array, which a caller of Kingpost does, too
        notes.add(f"`{argument.name}` starts at its first element, without an offset")
        argument = argument.copy(offset=0)
    if any(isinstance(tag, SeparateArrayArrayDimTag) for tag in argument.dim_tags or ()):
        notes.add(f"`{argument.name}` is one array, in C order: its parts lie along an axis")
        argument = argument.copy(dim_tags=None, dim_names=None)
    shape: Any = argument.shape
    if not is_unknown(shape) and shape and shape[0] is None:
        extents.append(f"len_{argument.name}")
        notes.add(f"the first extent of `{argument.name}` is the parameter `len_{argument.name}`")
        argument = argument.copy(shape=(p.Variable(extents[-1]), *shape[1:]))
    if is_unknown(argument.shape):
        names = [f"len_{argument.name}"] if rank == 1 else [f"extent_{argument.name}_{k}" for k in range(rank)]
        extents += names
        notes.add(f"the shape of `{argument.name}` is {', '.join(f'`{name}`' for name in names)}, in C order")
        return argument.copy(shape=tuple(map(p.Variable, names)), dim_tags=None, dim_names=None)
    return argument


def with_known_strides(argument: ArrayArg, strides: list[str], notes: set[str]) -> ArrayArg:
    """Strides that a call of Loopy's takes from its array are parameters."""
    found = []
    for axis, tag in enumerate(argument.dim_tags or ()):
        if isinstance(tag, FixedStrideArrayDimTag) and tag.stride is lp.auto:
            strides.append(f"stride_{argument.name}_{axis}")
            notes.add(f"the stride of `{argument.name}` along axis {axis} is the parameter `{strides[-1]}`")
            tag = tag.copy(stride=p.Variable(strides[-1]))
        found.append(tag)
    return argument.copy(dim_tags=tuple(found)) if found != list(argument.dim_tags or ()) else argument


class Declarations:
    """The lines above the body."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.kernel = writer.kernel
        self.written = self.kernel.get_written_variables()

    def lines(self) -> tuple[list[str], list[str]]:
        """The declarations, and the values of tables."""
        numbers = [self.number(a) for a in self.kernel.args if isinstance(a, ValueArg)]
        arrays = [line for a in self.kernel.args if not isinstance(a, ValueArg) for line in self.arguments(a)]
        lines, tables = numbers + arrays, []
        for variable in self.kernel.temporary_variables.values():
            if variable.name in self.writer.joined:
                continue
            if variable.initializer is None:
                fields = fields_of(variable.dtype, f"`{variable.name}`")
                parts = [variable.copy(name=f"{variable.name}.{f}", dtype=kind) for f, kind in fields.items()]
                lines += map(self.temporary, parts or [variable])
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
        kind = stored_type(argument.dtype, f"`{argument.name}`")
        return f"arg {name}: {kind if vector else value_type(kind)}{shape} in"

    def arguments(self, argument: Any) -> list[str]:
        """The argument, or one for each field of a structure."""
        if isinstance(argument, ImageArg) or not fields_of(argument.dtype, f"`{argument.name}`"):
            return [self.argument(argument)]
        if self.layout(argument):
            raise refuse("structures as elements", f"`{argument.name}` with strides", "needed C order")
        name, parts = argument.name, fields_of(argument.dtype, f"`{argument.name}`")
        if name in self.written:
            self.written |= {f"{name}.{field}" for field in parts}
        self.writer.notes.add(f"each field of `{name}` is an array")
        return [self.argument(argument.copy(name=f"{name}.{field}", dtype=kind)) for field, kind in parts.items()]

    def argument(self, argument: Any) -> str:
        if isinstance(argument, ImageArg):
            raise refuse("images", f"`{argument.name}`", "needed an array")
        access = "inout" if argument.name in self.written else "in"
        kind = stored_type(argument.dtype, f"`{argument.name}`")
        if access == "in" and not self.shape(argument):
            kind = value_type(kind)  # a number that is passed by value
        layout = self.layout(argument)
        if not layout and lanes_of(argument.dtype, f"`{argument.name}`") is None:
            self.writer.dense.add(argument.name)
        return f"arg {self.writer.names.of(argument.name)}: {kind}{self.shape(argument)} {access}{layout}"

    def temporary(self, variable: Any) -> str:
        name, kind = self.writer.names.of(variable.name), self.writer.stored(variable)
        extents = self.extents(variable)
        space = address_space(variable)
        is_placed = any(tag and tag != "unroll" for tag in self.writer.axes.values())
        if not is_placed:
            # of one work-item: where it lives does not matter
            if space == "private" and not all(extent.isdigit() for extent in extents):
                space = "global"
            elif not extents:
                space = "private"
        axes = self.writer.spread.get(variable.name.split(".")[0], [])
        extents = [*(str(self.writer.extent(axis)) for axis in axes), *extents]
        shape = f"[{', '.join(extents)}]" if extents else ""
        is_shared = variable.base_storage and space != "global" and not self.writer.joined
        storage = f" storage({variable.base_storage})" if is_shared else ""
        return f"temp {name}: {kind}{shape} {space}{storage}"

    def table(self, variable: Any) -> tuple[str, str]:
        if variable.name in self.written:
            found = f"`{variable.name}`"
            raise refuse("temporaries with values that are written", found, "needed one that is only read")
        name, kind = self.writer.names.of(variable.name), self.writer.stored(variable)
        values = np.asarray(variable.initializer).ravel().tolist()
        texts = ", ".join(_entry(value, kind) for value in values)
        return f"table {name}: {kind}{self.shape(variable) or '[1]'}", f"table {name} = [{texts}]"

    # --- shapes and layouts

    def shape(self, variable: Any) -> str:
        extents = self.extents(variable)
        return f"[{', '.join(extents)}]" if extents else ""

    def extents(self, variable: Any) -> list[str]:
        shape: Any = variable.shape if not is_unknown(variable.shape) else (None,)
        if any(extent is None for extent in shape):
            raise refuse("arrays of unknown shape", f"`{variable.name}`", "needed its extents; give `shape=(...)`")
        vector = lanes_of(variable.dtype, f"`{variable.name}`")
        found = [self.writer.rec(extent).text for extent in shape]
        if vector is not None:
            self.writer.notes.add(f"`{variable.name}` has an axis for the {len(vector.fields)} lanes of its vectors")
            found.append(str(len(vector.fields)))
        return found

    def layout(self, argument: Any) -> str:
        """Nothing in C order, else the order of the axes, or the strides."""
        strides = self.strides(argument)
        if strides is None or not argument.shape:
            return ""
        self.extents(argument)  # all are known
        vector = lanes_of(argument.dtype, f"`{argument.name}`")
        shape = list(argument.shape)
        if vector is not None:
            shape.append(len(vector.fields))
            strides = [stride*vector.pitch for stride in strides] + [1]
        names = sorted({name for size in (*strides, *shape) for name in get_dependencies(size)})
        values = dict(zip(names, SAMPLES * (len(names) // len(SAMPLES) + 1)))
        found, extents = ([evaluate(size, values) for size in sizes] for sizes in (strides, shape))
        axes = range(len(shape))
        for order in itertools.permutations(axes) if len(shape) <= MOST_AXES else [tuple(axes)]:
            totals = itertools.accumulate((extents[axis] for axis in reversed(order)), operator.mul, initial=1)
            if all(found[axis] == total for axis, total in zip(reversed(order), totals)):
                return "" if order == tuple(axes) else f" order({', '.join(map(str, order))})"
        return f" strides({', '.join(self.writer.rec(stride).text for stride in strides)})"

    def strides(self, argument: Any) -> Optional[list[Any]]:
        """The strides in scalars: an axis of lanes has stride 1."""
        tags = argument.dim_tags or ()
        return [1 if isinstance(tag, VectorArrayDimTag) else tag.stride for tag in tags] or None


def _entry(value: Any, kind: str) -> str:
    """An entry of a table, as text."""
    if kind == "bool":
        return str(value).lower()
    if kind in ("c64", "c128"):
        return f"complex({complex(value).real!r}, {complex(value).imag!r})"
    return repr((int if kind[0] in "iu" else float)(value))


def parameters(kernel: lp.LoopKernel) -> dict[str, str]:
    """The integers that are passed by value: they never change, so that sets may mention them."""
    found = {}
    written = kernel.get_written_variables()
    for argument in kernel.args:
        if isinstance(argument, ValueArg):
            kind = numpy_type(argument.dtype, f"`{argument.name}`")
            if kind.kind in "iub" and argument.name in written:
                needed = "needed an array of one element"
                raise refuse("arguments by value that are written", f"`{argument.name}`", needed)
            if kind.kind in "iub":
                found[argument.name] = "i64" if kind.name in ("int64", "uint32", "uint64") else "i32"
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
