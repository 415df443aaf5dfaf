"""Callees that are functions of numbers: an expression of their arguments, which becomes a rule."""

from __future__ import annotations

from typing import Any

import loopy as lp
import pymbolic.primitives as p
from loopy.kernel.function_interface import CallableKernel
from loopy.kernel.instruction import Assignment
from loopy.symbolic import Reduction, SubArrayRef, WalkMapper, get_dependencies

from kingpost.loopy.expressions import Expressions
from kingpost.loopy.internals import parameters_of
from kingpost.loopy.names import Names
from kingpost.loopy.types import INTEGERS, WORDS, Text, stored_type, value_type


def functions_of_numbers(program: lp.TranslationUnit) -> frozenset[str]:
    """The callees that compute one number from numbers, in one expression, wherever they are called."""
    kernels = {str(name): c.subkernel for name, c in program.callables_table.items() if isinstance(c, CallableKernel)}
    found = {name for name, kernel in kernels.items() if name not in program.entrypoints and is_function(kernel)}
    for kernel in kernels.values():
        for insn in kernel.instructions:
            call = getattr(insn, "expression", None)
            if isinstance(call, p.Call) and is_on_arrays([*call.parameters, *insn.assignees]):
                found.discard(getattr(call.function, "name", None))
    return frozenset(found)


class HasElements(WalkMapper):
    """Whether an expression has elements of arrays, or loops of its own."""

    found = False

    def map_subscript(self, expr: p.Subscript) -> None:
        self.found |= bool(expr.index_tuple)

    def map_reduction(self, expr: Reduction) -> None:
        self.found = True


def is_function(kernel: lp.LoopKernel) -> bool:
    """Whether a kernel is one assignment of an expression of its other arguments."""
    if len(kernel.instructions) != 1 or kernel.temporary_variables or kernel.all_inames():
        return False
    (insn,) = kernel.instructions
    if not isinstance(insn, Assignment) or insn.predicates or insn.atomicity:
        return False
    elements = HasElements()
    for part in (insn.assignee, insn.expression):
        elements(part)
    others = {argument.name for argument in kernel.args} - set(insn.assignee_var_names())
    return not elements.found and get_dependencies(insn.expression) <= others


def is_on_arrays(parts: list[Any]) -> bool:
    """Whether a call passes or returns parts of arrays."""
    return any(isinstance(part, SubArrayRef) and part.swept_inames for part in parts)


class Function(Expressions):
    """A callee as a rule, whose arguments are text."""

    def __init__(self, program: lp.TranslationUnit, kernel: lp.LoopKernel, names: Names) -> None:
        super().__init__(program, names)
        (insn,) = kernel.instructions
        types = {argument.name: argument.dtype for argument in kernel.args}
        kinds = {name: value_type(stored_type(dtype, f"`{name}`")) for name, dtype in types.items()}
        (result,) = insn.assignee_var_names()
        self.type = kinds[result]
        self.values = {name: Text(names.fresh(name), kinds[name]) for name in parameters_of(kernel)}
        self.name = names.fresh(kernel.name)
        self.truncates = self.type in INTEGERS or self.type in WORDS
        self.body = self.rec(insn.expression).to(self.type).text

    def map_variable(self, expr: p.Variable) -> Text:
        return self.values[expr.name] if expr.name in self.values else super().map_variable(expr)

    @property
    def declaration(self) -> str:
        """The rule."""
        return f"rule {self.name}({', '.join(value.text for value in self.values.values())}) := {self.body}"

    def call(self, arguments: list[Text]) -> Text:
        """Its value for some arguments."""
        values = zip(arguments, self.values.values(), strict=True)
        return Text(f"{self.name}({', '.join(given.to(value.type).text for given, value in values)})", self.type)
