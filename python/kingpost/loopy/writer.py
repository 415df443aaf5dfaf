"""The text of a kernel's loops and instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import islpy as isl
import loopy as lp
import pymbolic.primitives as p
from loopy.kernel.data import AddressSpace
from loopy.kernel.instruction import CallInstruction, CInstruction
from loopy.symbolic import Reduction, SubArrayRef, get_dependencies

from kingpost.loopy import random123
from kingpost.loopy.domains import Domains, equal_sets
from kingpost.loopy.expressions import Expressions, reads
from kingpost.loopy.functions import Function
from kingpost.loopy.internals import callee_of, kernel_called, reduction_of
from kingpost.loopy.names import Names
from kingpost.loopy.nest import Barrier, Items, Launch, Loop, Node, Statement, Turn, aliases, statements, tag_of, walk
from kingpost.loopy.redundant import redundant
from kingpost.loopy.refusal import inside, refuse
from kingpost.loopy.steps import InSteps
from kingpost.loopy.types import INTEGERS, WORDS, Lanes, Text, lanes_of, together


def address_space(variable: Any) -> str:
    """The address space of a temporary."""
    spaces = {AddressSpace.LOCAL: "local", AddressSpace.GLOBAL: "global"}
    return spaces.get(variable.address_space, "private")


class Writer(Expressions):
    """Writes loops and instructions."""

    def __init__(self, program: lp.TranslationUnit, names: Names, parameters: dict[str, str]) -> None:
        super().__init__(program, names)
        self.parameters = parameters
        self.same = aliases(self.kernel)
        self.domains = Domains(self.kernel, parameters, self.same)
        #: The inames of the loops around, outermost first, and the loops on axes of work-items.
        self.active: list[str] = []
        self.items: dict[str, str] = {}
        self.axes = {name: tag_of(self.kernel, name) for name in sorted(self.kernel.all_inames())}
        #: The inames at all of which an instruction does the same.
        self.idle = redundant(self.kernel, {name: tag or "" for name, tag in self.axes.items()})
        #: The axes of work-items that each private temporary has elements for.
        self.spread: dict[str, list[str]] = {}
        #: The inames whose domain the loops around keep to, by loop.
        self.known: list[list[str]] = []
        #: Further conditions of the instructions.
        self.further: list[str] = []
        #: Whether such a loop runs from the last work-item to the first one, and what work-item it is at.
        self.is_reversed = False
        #: Whether it has the bounds of what is inside, if these are the same for all instructions.
        self.is_bounded = False
        self.values: dict[str, str] = {}
        #: Whether one loop on an axis stands for all inames there, so that instructions say which they are in.
        self.is_split = False
        #: Declarations of temporaries that the results of one instruction are put in.
        self.temporaries: list[str] = []
        #: The callees that are functions of numbers, and their rules.
        self.functions: dict[str, Function] = {}
        #: The functions with statements that are called, as text.
        self.callees: dict[str, str] = {}
        #: Of temporaries that are the same variable as another one, that one.
        self.joined: dict[str, str] = {}
        #: The inames that some instruction is not run once for all of.
        self.needed = {name for insn in self.kernel.instructions for name in insn.within_inames - self.idle[insn.id]}
        #: The loops of each iname, and the instruction of each id.
        self.made: dict[str, list[str]] = {}
        self.instructions: dict[str, list[str]] = {}

    # --- loops

    def nodes(self, nodes: Sequence[Node], depth: int = 0) -> list[str]:
        lines: list[str] = []
        for node in nodes:
            if isinstance(node, Statement):
                with inside(node.insn.id):
                    lines += ("  " * depth + line for line in self.instruction(node.insn))
            elif isinstance(node, Launch):
                lines.append("  " * depth + f"launch {self.names.fresh(node.name)}")
                lines += self.nodes(node.body, depth + 1)
            elif isinstance(node, Loop):
                lines += self.loop(node, depth)
            elif isinstance(node, Items):
                lines += self.work_items(node, depth)
            elif isinstance(node, Turn):
                lines += self.turn(node, depth)
            else:
                assert isinstance(node, Barrier)  # barriers are derived; they only part loops
        return lines

    def loop(self, node: Loop, depth: int) -> list[str]:
        saved = self.state()
        insns = [statement.insn for statement in statements(node.body)]
        self.enter(frozenset.intersection(*(insn.within_inames - self.idle[insn.id] for insn in insns)))
        header = self.opened(node.iname, any(isinstance(inner, Launch) for inner in walk(node.body)))
        if node.tag and node.tag.startswith("l."):
            self.items[node.tag] = self.loops[node.iname]
        tag = f" {{{node.tag}}}" if node.tag else ""
        if node.tag == "unroll" and not self.has_constant_bounds(node.iname):
            self.notes.add(f"`{node.iname}` is not unrolled: nothing bounds it but parameters")
            tag = ""
        lines = ["  " * depth + f"for {header}{tag}", *self.nodes(node.body, depth + 1)]
        self.restore(saved)
        return lines

    def extent(self, axis: str) -> int:
        """The largest number of iterations of the loops on an axis."""
        found = 1
        for iname in self.kernel.all_inames():
            if self.axes[iname] == axis and iname in self.needed:
                if not self.has_constant_bounds(iname):
                    needed = "needed a constant bound; split it, and tag the inner one"
                    raise refuse("work-items without a bound", f"the iname `{iname}`", needed)
                bounds = self.kernel.get_iname_bounds(iname, constants_only=True)
                found = max(found, int(bounds.upper_bound_pw_aff.max_val().to_python()) + 1)
        return found

    def has_constant_bounds(self, iname: str) -> bool:
        try:
            self.kernel.get_iname_bounds(iname, constants_only=True)
        except isl.Error:
            return False
        return True

    def first(self, iname: str) -> int:
        """The first value of an iname, whatever the parameters."""
        bounds = self.kernel.get_iname_bounds(iname, constants_only=True)
        return int(bounds.lower_bound_pw_aff.min_val().to_python())

    def work_items(self, node: Items, depth: int) -> list[str]:
        """A loop over the work-items of each axis, which stands for all inames there."""
        saved = self.state()
        lines = []
        shared = self.shared_inames(node) if self.is_bounded else []
        for axis in sorted({tag for tag in self.axes.values() if tag and tag.startswith("l.")}, reverse=True):
            item = self.names.fresh(f"item_{axis[-1]}")
            self.items[axis] = item
            extent = self.extent(axis)
            lines.append("  " * depth + f"for {item} in 0..{extent} {{{axis}}}")
            depth += 1
            value = f"({extent - 1} - {item})" if self.is_reversed else item
            # a work-item's number counts from the first value of an iname
            mine = [i for i, tag in self.axes.items() if tag == axis and i in self.needed]
            self.loops |= {i: f"({value} + {self.first(i)})" for i in mine}
            self.values[axis] = value
        self.is_split = True
        if shared:
            bounds = self.domains.condition([*self.active, *shared[0]], self.known)
            if bounds is not None:
                lines[-1] = lines[-1].replace(" {", f" where {self.truth(bounds)} {{")
            self.known += ([*self.active, *inames] for inames in shared)
        lines += self.nodes(node.body, depth)
        self.restore(saved)
        return lines

    def shared_inames(self, node: Items) -> list[list[str]]:
        """The inames of each statement, if all have one on each of the same axes, and these the same values."""
        found: list[list[str]] = []
        for statement in statements(node.body):
            inames = statement.insn.within_inames - self.idle[statement.insn.id]
            mine = sorted((name for name in inames if (self.axes[name] or "").startswith("l.")), key=lambda name: self.axes[name] or "")
            if mine not in found:
                found.append(mine)
        axes = [self.axes[name] or "" for name in found[0]]
        if not axes or len(set(axes)) < len(axes) or any([self.axes[name] for name in mine] != axes for mine in found):
            return []
        if any(self.first(one) != self.first(two) for mine in found for one, two in zip(mine, found[0], strict=True)):
            return []
        values = [self.domains.renamed([*self.active, *mine], dict(zip(mine, axes, strict=True))) for mine in found]
        return found if all(equal_sets(value, values[0]) for value in values) else []

    def turn(self, node: Turn, depth: int) -> list[str]:
        """What an iteration runs if it is the first or last of the loop, or what the next one runs."""
        saved = self.state()
        loop = self.loops[node.iname]
        self.loops[node.iname] = f"({loop} {'-' if node.which == 'first' else '+'} 1)"
        domain = self.domains.condition(self.active, [])
        there = "true" if domain is None else self.truth(domain)
        if node.which == "next":
            self.further = [*self.further, there]
        else:
            self.loops[node.iname] = loop
            self.further = [*self.further, f"(not {there})"]
        lines = self.nodes(node.body, depth)
        self.restore(saved)
        return lines

    def state(self) -> tuple[Any, ...]:
        return dict(self.loops), list(self.active), dict(self.items), list(self.known), self.further, self.is_split

    def restore(self, state: tuple[Any, ...]) -> None:
        self.loops, self.active, self.items, self.known, self.further, self.is_split = state

    def opened(self, iname: str, is_host: bool = False) -> str:
        """Enters a loop; its name and bounds."""
        bounds = self.domains.condition([*self.active, iname], self.known)
        loop = self.names.fresh(iname)
        # the bounds mention the loop
        self.loops[iname] = loop
        if is_host and isinstance(bounds, p.LogicalAnd):
            # the bounds of the host's loops are one range: the rest is a condition of what is inside
            inside = [part for part in bounds.children if iname not in get_dependencies(part)]
            self.further = [*self.further, *map(self.truth, inside)]
            bounds = p.LogicalAnd(tuple(part for part in bounds.children if part not in inside))
        # one of no iterations, or inside such a loop
        text = "in 0..0" if bounds is None or bounds is False else f"where {self.truth(bounds)}"
        self.loops |= {other: loop for other, name in self.same.items() if name == iname}
        self.active.append(iname)
        self.known.append(list(self.active))
        self.made.setdefault(iname, []).append(loop)
        return f"{loop} {text}"

    def reduction(self, function: str, expr: Reduction) -> Text:
        saved = self.state()
        order = sorted(expr.inames, key=lambda name: (self.kernel.get_home_domain_index(name), name))
        loops = [self.opened(iname) for iname in order]
        value = self.rec(expr.expr)
        value = Text(value.truth(), "bool") if function in ("any", "all") else value.number()
        self.restore(saved)
        kind = "index" if value.type == "literal" else value.type
        return Text(f"{function}({', '.join(loops)}: {value.text})", kind)

    def enter(self, inames: frozenset[str]) -> None:
        """Counts inames as entered that another loop stands for, which is on the same axis."""
        self.active += [name for name in sorted(inames) if name in self.loops and name not in self.active]

    # --- instructions

    def lanes(self, name: str) -> list[str]:
        axes = self.spread.get(name, [])
        if any(axis not in self.items for axis in axes):
            found = f"`{name}`, written on {' and '.join(axes)}"
            raise refuse("a private temporary read on other axes", found, "needed the same axes of work-items")
        return [self.items[axis] for axis in axes]

    def predicates(self, insn: Any) -> list[str]:
        """The conditions of an instruction, and what its domain says beyond the loops around."""
        found = [self.truth(predicate) for predicate in sorted(insn.predicates, key=str)]
        idle = self.idle[insn.id]
        if idle:
            self.notes.add(f"`{insn.id}` is run once for all {' and '.join(f'`{name}`' for name in sorted(idle))}")
        left = self.domains.condition(self.active, self.known, idle)
        found += self.further
        if self.is_split and not all(self.is_private(name) for name in insn.assignee_var_names()):
            axes = {self.axes[name] for name in insn.within_inames - idle}
            # Loopy has every work-item write the same there
            found += [f"({self.values[axis]} == 0)" for axis in self.items if axis not in axes]
        return found if left is None else [*found, self.truth(left)]

    def is_private(self, name: str) -> bool:
        variable = self.kernel.temporary_variables.get(name)
        return variable is not None and address_space(variable) == "private"

    def is_private_access(self, access: Any) -> bool:
        while not isinstance(access, p.Variable):
            access = access.aggregate
        return self.is_private(access.name)

    def instruction(self, insn: Any) -> list[str]:
        active = list(self.active)
        self.enter(insn.within_inames - self.idle[insn.id])
        if isinstance(insn, CallInstruction) and len(insn.assignees) > 1:
            generator, _, kind = callee_of(self.program, insn.expression.function).partition("_")
            lines = self.drawn(insn, generator, kind) if generator in random123.NAMES else self.several(insn)
            self.active = active
            return lines
        target, value = self.sides(insn)
        lines, indent = [], ""
        vector = None if isinstance(target, p.Lookup) else self.vector(target)
        if vector is not None:
            self.lane = self.names.fresh("lane")
            lines.append(f"for {self.lane} in 0..{len(vector.fields)} {{unroll}}")
            indent = "  "
        lines.append(indent + self.assignment(insn, target, value))
        self.active, self.lane = active, None
        return lines

    def vector(self, access: Any) -> Lanes | None:
        """The lanes of what is written, if it is a vector."""
        name = getattr(access, "aggregate", access).name
        return lanes_of(self.array(name).dtype, f"`{name}`")

    def assignment(self, insn: Any, target: Any, value: Any) -> str:
        predicates = self.predicates(insn)
        access = self.rec(target)
        # updates may change places, which Loopy's order does not let them
        is_ordered = bool(self.items) and not getattr(insn, "atomicity", ()) and not self.is_private_access(target)
        is_ordered = is_ordered or access.type == "bool"  # whose sum is that of numbers
        operator, value = ("=", value) if is_ordered else update(target, value)
        self.truncates = access.type in INTEGERS or access.type in WORDS
        written = self.rec(value)
        self.truncates = False
        text = written.to(access.type).text
        line = self.statement(insn, f"{access.text} {operator} {text}", predicates)
        return line + (" {atomic}" if getattr(insn, "atomicity", ()) and operator != "=" else "")

    def statement(self, insn: Any, text: str, predicates: list[str]) -> str:
        name = self.names.fresh(insn.id)
        self.instructions.setdefault(insn.id, []).append(name)
        return f"{name}: {text}" + (f" if {' and '.join(predicates)}" if predicates else "")

    def several(self, insn: Any) -> list[str]:
        """The statements of an instruction with several results: all are computed before one is stored."""
        predicates = self.predicates(insn)
        values = self.results(insn.expression)
        accesses = [self.rec(assignee) for assignee in insn.assignees]
        is_read = any(reads([insn.expression], assignee) for assignee in insn.assignees)
        computed, stored = [], []
        for access, value in zip(accesses, values, strict=True):
            text = value.to(access.type).text
            if is_read:
                held = self.held(f"{insn.id}_value", access.type)()
                computed.append(self.statement(insn, f"{held} = {text}", predicates))
                text = held
            stored.append(self.statement(insn, f"{access.text} = {text}", predicates))
        return computed + stored

    def drawn(self, insn: Any, generator: str, kind: str) -> list[str]:
        """The statements of an instruction that draws random numbers, and counts how many."""
        self.callees[generator] = random123.function(generator)
        values, after = (self.elements(assignee) for assignee in insn.assignees)
        before, key = (self.elements(parameter) for parameter in insn.expression.parameters)
        moved = range(4) if after(0) != before(0) else ()
        lines = [self.statement(insn, f"{after(k)} = {before(k)}", []) for k in moved]
        words = []
        for _ in range(2 if kind == "f64" else 1):
            words.append(self.held(f"{insn.id}_drawn", "u32", "4"))
            arguments = f"ctr = {after('0..')}, key = {key('0..')}, drawn = {words[-1]('0..')}"
            lines.append(f"call {generator}({arguments})")
            lines.append(self.statement(insn, f"{after(0)} = {after(0)} + 1", []))
            lines.append(self.statement(insn, f"{after(1)} = {after(1)} + 1", [f"{after(0)} == 0"]))
            lines.append(self.statement(insn, f"{after(2)} = {after(2)} + 1", [f"{after(0)} == 0", f"{after(1)} == 0"]))
        for k in range(4):
            scales = (random123.SCALE, f"{random123.SCALE}*{random123.SCALE}")
            parts = [f"{kind}({word(k)})*{kind}({scale})" for word, scale in zip(words, scales)]
            lines.append(self.statement(insn, f"{values(k)} = {' + '.join(parts) if kind else words[0](k)}", []))
        predicates = self.predicates(insn)
        return [f"if {' and '.join(predicates)}", *(f"  {line}" for line in lines)] if predicates else lines

    def held(self, name: str, kind: str, *shape: str) -> Callable[..., str]:
        """The elements of a new private temporary, which each work-item has."""
        name = self.names.fresh(name)
        items = sorted(self.items) if self.is_split else []
        extents = ", ".join([*(str(self.extent(axis)) for axis in items), *shape])
        self.temporaries.append(f"temp {name}: {kind}{f'[{extents}]' if extents else ''} private")
        return indexed(name, [self.items[axis] for axis in items])

    def elements(self, vector: Any) -> Callable[..., str]:
        """The lanes of a vector, by number."""
        access = vector.aggregate if isinstance(vector, p.Subscript) else vector
        if not isinstance(access, p.Variable):
            raise refuse("a counter or key that is no variable", f"`{vector}`", "needed the name of a vector")
        indices = map(self.index, vector.index_tuple if isinstance(vector, p.Subscript) else ())
        return indexed(self.names.of(access.name), [*self.lanes(access.name), *indices])

    def results(self, call: p.Call) -> list[Text]:
        """The values of a tuple, or of the join of two."""
        if any(isinstance(parameter, SubArrayRef) for parameter in call.parameters):
            needed = "needed a callee that can be inlined"
            raise refuse("a function on arrays that is not known", f"`{call}`", needed)
        values = [self.rec(parameter).number() for parameter in call.parameters]
        operation = reduction_of(self.program, call.function)
        kind = type(operation).__name__
        if callee_of(self.program, call.function) == "make_tuple":
            return values
        if kind in ("ArgMaxReductionOperation", "ArgMinReductionOperation"):
            first, place, second, other = values
            one, two, _ = together(second, first)
            is_second = f"({one} {operation.update_comparison} {two})"
            return [self.chosen(is_second, second, first), self.chosen(is_second, other, place)]
        if kind in ("SegmentedSumReductionOperation", "SegmentedProductReductionOperation"):
            first, flag, second, start = values
            one, two, joined = together(first, second)
            whole = Text(f"({one}{' + ' if 'Sum' in kind else '*'}{two})", joined)
            flags = Text(f"({flag.truth()} or {start.truth()})", "bool")
            return [self.chosen(start.truth(), second, whole), flags]
        raise refuse("several results", f"`{call}`", "needed an instruction with one result")

    def chosen(self, condition: str, one: Text, other: Text) -> Text:
        first, second, kind = together(one, other)
        return Text(f"select({condition}, {first}, {second})", kind)

    def function(self, kernel: str) -> Function:
        if kernel not in self.functions:
            self.functions[kernel] = Function(self.program, self.program[kernel], self.names)
        return self.functions[kernel]

    def in_steps(self, index: Any) -> Any:
        return InSteps(self.kernel)(index)

    @property
    def rules(self) -> list[str]:
        """The declarations of the functions."""
        return [function.declaration for function in self.functions.values()]

    def sides(self, insn: Any) -> tuple[Any, Any]:
        """What is written, and the value."""
        if isinstance(insn, CInstruction):
            raise refuse("inline C code", f"`{insn.code[:60]}`", "needed an assignment")
        if not isinstance(insn, CallInstruction):
            return insn.assignee, insn.expression
        if kernel_called(self.program, insn.expression.function) is not None:
            return getattr(insn.assignees[0], "subscript", insn.assignees[0]), insn.expression
        arrays = any(isinstance(assignee, SubArrayRef) for assignee in insn.assignees)
        if len(insn.assignees) == 1 and isinstance(insn.expression, p.Call) and not arrays:
            return insn.assignees[0], insn.expression
        needed = "needed a callee that can be inlined"
        raise refuse("a function on arrays that is not known", f"`{insn.expression}`", needed)


def indexed(name: str, first: list[str]) -> Callable[..., str]:
    """The elements of an array, or the number, by the indices after the first ones."""

    def element(*last: Any) -> str:
        indices = [*first, *map(str, last)]
        return f"{name}[{', '.join(indices)}]" if indices else name

    return element


def update(target: Any, value: Any) -> tuple[str, Any]:
    """An assignment that combines an element with a value is an update of it."""
    if isinstance(value, p.Sum | p.Product | p.Max | p.Min) and target in value.children:
        rest: list[Any] = list(value.children)
        rest.remove(target)
        if rest and not reads(rest, target):
            operators = {p.Sum: "+=", p.Product: "*=", p.Max: "max=", p.Min: "min="}
            return operators[type(value)], rest[0] if len(rest) == 1 else type(value)(tuple(rest))
    return "=", value
