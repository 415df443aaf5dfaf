"""What is used of Loopy beyond its documented interface.

The extra `loopy` pins the version, and a test compares the signatures of what stands here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator
from typing import Any

import loopy as lp
import pymbolic.primitives as p
from loopy.diagnostic import LoopyError
from loopy.kernel.creation import apply_single_writer_dependency_heuristic
from loopy.kernel.function_interface import CallableKernel, get_kw_pos_association
from loopy.preprocess import _preprocess_single_kernel, filter_reachable_callables, infer_unknown_types
from loopy.schedule import get_one_linearized_kernel
from loopy.symbolic import ResolvedFunction, WalkMapper
from loopy.translation_unit import resolve_callables

from kingpost.errors import ImportRefusal
from kingpost.loopy.refusal import inside, refuse

#: The version that the importer is written for, and that the extra `loopy` of the package asks for.
VERSION = "2025.2"
#: The feature of a function that nothing defines.
UNKNOWN_FUNCTION = "a function that is not known"


@contextlib.contextmanager
def by_loopy(what: str) -> Iterator[None]:
    """Says of an exception of Loopy's that it is Loopy's."""
    try:
        yield
    except ImportRefusal:
        raise
    except RecursionError:
        raise refuse("Loopy's own refusal", f"no end of {what}", "needed a program that Loopy takes") from None
    except Exception as error:  # noqa: BLE001 (Loopy and isl raise errors of any type on programs they do not take)
        text = " ".join(str(error).split())[:400]
        found = f"{type(error).__name__} in {what}: {text}"
        raise refuse("Loopy's own refusal", found, "needed a program that Loopy takes") from error


def entry(program: lp.TranslationUnit) -> lp.TranslationUnit:
    """The program with its one entry point, and what is called from there."""
    kernels = [str(name) for name, value in program.callables_table.items() if isinstance(value, CallableKernel)]
    if not program.entrypoints and len(kernels) == 1:
        program = program.with_entrypoints(frozenset(kernels))
    if len(program.entrypoints) != 1:
        found = ", ".join(f"`{name}`" for name in sorted(map(str, program.entrypoints))) or "none"
        raise refuse("entry points", f"the entry points {found}", "needed one; name it with `with_entrypoints`")
    with by_loopy("the search for what is called"):
        # rules are called by tagged names, too
        program = filter_reachable_callables(resolve_callables(lp.expand_subst(program)))
    kernel = program.default_entrypoint
    for insn in kernel.instructions:
        walk = Unresolved()
        visit(insn, walk)
        if walk.names:
            with inside(insn.id):
                found = ", ".join(f"`{name}`" for name in sorted(walk.names))
                raise refuse(UNKNOWN_FUNCTION, found, "needed a function of the language, or a callee")
    return program


def visit(insn: lp.InstructionBase, walk: Callable[[Any], None]) -> None:
    """Shows a mapper the expressions of an instruction."""

    def same(expr: Any) -> Any:
        walk(expr)
        return expr

    insn.with_transformed_expressions(same)


class Unresolved(WalkMapper):
    """Collects functions that Loopy does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def map_call(self, expr: p.Call) -> None:
        if not isinstance(expr.function, ResolvedFunction):
            self.names.add(str(expr.function))
        super().map_call(expr)


def inlined(program: lp.TranslationUnit, kept: Collection[str] = ()) -> tuple[lp.TranslationUnit, list[str]]:
    """The program with callees written out, but those that are `kept`, and their names."""
    start = program.default_entrypoint.name
    callees: list[str] = []
    while True:
        table = program.callables_table.items()
        names = [str(name) for name, value in table if isinstance(value, CallableKernel)]
        left = [name for name in names if name not in (start, *kept)]
        if not left:
            return program, callees
        callees.append(left[0])
        # calls with other strides are calls of a copy, which Loopy makes here
        with by_loopy(f"the inlining of `{left[0]}`"):
            program = lp.inline_callable_kernel(program, left[0])


def typed(program: lp.TranslationUnit) -> lp.TranslationUnit:
    """The program with the types that Loopy infers, in which each reduction has loops of its own."""
    with by_loopy("the inference of types"):
        return infer_unknown_types(lp.make_reduction_inames_unique(program), expect_completion=False)


def has_several_results(kernel: lp.LoopKernel) -> bool:
    """Whether a reduction has more than one, such as `argmin`."""
    return any(len(insn.assignees) > 1 and insn.reduction_inames() for insn in kernel.instructions)


def linearised(program: lp.TranslationUnit, realise: bool) -> lp.TranslationUnit:
    """The program with an order of its instructions; with its reductions, unless they are to be realised."""
    with by_loopy("the linearisation"):
        if realise:
            program = infer_unknown_types(lp.preprocess_program(program), expect_completion=False)
        else:
            program = apply_single_writer_dependency_heuristic(program)
            program = program.with_kernel(_preprocess_single_kernel(program.default_entrypoint, True))
        kernel = get_one_linearized_kernel(program.default_entrypoint, program.callables_table)
        return program.with_kernel(kernel)


def callee_of(program: lp.TranslationUnit, function: Any) -> str:
    """The name of a function that an expression calls."""
    inner = getattr(function, "function", function)
    known = program.callables_table.get(inner)
    name = getattr(known, "name", None) or getattr(inner, "name", inner)
    if not isinstance(name, str):
        return type(name).__name__
    # a function that is called with other types has a number
    stem, _, number = name.rpartition("_")
    return stem if number.isdigit() and stem in program.callables_table else name


def kernel_called(program: lp.TranslationUnit, function: Any) -> str | None:
    """The kernel that an expression calls, if it calls one."""
    name = getattr(function, "name", None)
    return name if name is not None and isinstance(program.callables_table.get(name), CallableKernel) else None


def parameters_of(kernel: lp.LoopKernel) -> list[str]:
    """The arguments of a callee that a call has values for, in their order."""
    places = get_kw_pos_association(kernel)[1]
    return [places[place] for place in sorted(place for place in places if place >= 0)]


def reduction_of(program: lp.TranslationUnit, function: Any) -> Any:
    """The operation of several results that a function joins two values of, or nothing."""
    known = program.callables_table.get(getattr(function, "function", function))
    return getattr(getattr(known, "name", None), "reduction_op", None)


__all__ = [
    "VERSION",
    "LoopyError",
    "callee_of",
    "entry",
    "has_several_results",
    "inlined",
    "kernel_called",
    "linearised",
    "parameters_of",
    "reduction_of",
    "typed",
]
