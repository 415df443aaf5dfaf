"""The programs that a recording of Loopy's tests has, each once."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import islpy as isl
import loopy as lp
import numpy as np
from loopy.kernel.data import ArrayArg, ValueArg
from loopy.kernel.function_interface import CallableKernel
from loopy.symbolic import WalkMapper, get_dependencies

from kingpost.loopy.nest import is_scheduled


@dataclass
class Program:
    """A program, and what tests call it with."""

    program: lp.TranslationUnit
    test: str
    at: str
    is_scheduled: bool
    id: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    #: How often it occurs.
    count: int = 1


def events(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("events_*.pkl")):
        with path.open("rb") as file:
            while True:
                try:
                    yield pickle.load(file)
                except EOFError:
                    break


def kernels(program: lp.TranslationUnit) -> list[lp.LoopKernel]:
    return [value.subkernel for value in program.callables_table.values() if isinstance(value, CallableKernel)]


def programs(folder: Path) -> tuple[list[Program], int]:
    """The programs of a recording, and how many could not be recorded: they hold functions of tests."""
    found: dict[str, Program] = {}
    lost = 0
    values: dict[Optional[str], dict[str, Any]] = {}
    for event in events(folder):
        program = event.get("program")
        if not isinstance(program, lp.TranslationUnit):
            lost += "unpicklable" in event
            continue
        given = {name: value for name, value in event.get("values", {}).items() if value is not None}
        values.setdefault(event["test"], {}).update(given)
        if not program.entrypoints:
            continue  # a callee alone
        scheduled = any(map(is_scheduled, kernels(program)))
        if event["kind"] == "used" and not scheduled:
            continue  # one that was made, or a step to a scheduled one
        text = "\n".join(map(str, kernels(program)))
        key = hashlib.sha1(text.encode()).hexdigest()
        if key in found:
            found[key].count += 1
        else:
            found[key] = Program(program, str(event["test"]), event["at"], scheduled)
            found[key].values = values[event["test"]]
    plain = [entry for entry in found.values() if not entry.is_scheduled]
    placed = [entry for entry in found.values() if entry.is_scheduled]
    for letter, entries in (("p", plain), ("s", placed)):
        for number, entry in enumerate(entries):
            entry.id = f"{letter}{number:03d}"
    return plain + placed, lost


class IndexNames(WalkMapper):
    """Names that indices and operations on bits mention: integers, whatever they are."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def map_subscript(self, expr: Any, *arguments: Any) -> None:
        for index in expr.index_tuple:
            self.names |= get_dependencies(index)
        super().map_subscript(expr, *arguments)

    def map_bitwise(self, expr: Any, *_: Any) -> None:
        self.names |= get_dependencies(expr)

    map_bitwise_and = map_bitwise_or = map_bitwise_xor = map_bitwise_not = map_bitwise
    map_left_shift = map_right_shift = map_bitwise


def types(entry: Program) -> dict[str, np.dtype]:
    """Types for arguments without one: those of the recorded call, integers for indices and extents, else f64."""
    if len(entry.program.entrypoints) != 1:
        return {}  # the import says so
    kernel = entry.program.default_entrypoint
    walk = IndexNames()
    for insn in kernel.instructions:
        insn.with_transformed_expressions(lambda expr: (walk(expr), expr)[1])
    for rule in kernel.substitutions.values():
        walk(rule.expression)
    integers = set(walk.names)
    for domain in kernel.domains:
        integers |= set(domain.get_var_names(isl.dim_type.param))
    for argument in kernel.args:
        if isinstance(argument, ArrayArg) and isinstance(argument.shape, tuple):
            integers |= {name for extent in argument.shape if extent is not None for name in get_dependencies(extent)}
    for insn in reversed(kernel.instructions):
        if any(name in integers for name in insn.assignee_var_names()):
            integers |= insn.read_dependency_names()  # what an index is computed from
    found = {}
    for argument in kernel.args:
        if argument.dtype is not None and argument.dtype is not lp.auto:
            continue
        value = entry.values.get(argument.name)
        if isinstance(value, np.ndarray | np.generic):
            found[argument.name] = value.dtype
        elif isinstance(value, tuple) and isinstance(value[0], str):
            found[argument.name] = np.dtype(value[1])
        elif argument.name in integers or (isinstance(argument, ValueArg) and isinstance(value, int)):
            found[argument.name] = np.dtype(np.int32)
        elif argument.name not in kernel.get_written_variables():
            found[argument.name] = np.dtype(np.float64)
    return found
