"""A program of Loopy as a kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

import loopy as lp
from loopy.kernel.data import AddressSpace, ImageArg, ValueArg

from kingpost._kingpost import Kernel, Program
from kingpost.compiled import Compiled, compile
from kingpost.errors import CodegenError, ImportRefusal, OutsideError, StorageError, TextError
from kingpost.loopy import internals
from kingpost.loopy.conditions import conditions
from kingpost.loopy.declarations import Declarations, assumptions, parameters, with_known_shapes
from kingpost.loopy.expressions import NeedsRealised
from kingpost.loopy.functions import functions_of_numbers
from kingpost.loopy.names import Names
from kingpost.loopy.nest import Node, is_scheduled, nest, refuse_placements
from kingpost.loopy.refusal import complete, refuse
from kingpost.loopy.spread import spread
from kingpost.loopy.types import fields_of
from kingpost.loopy.writer import Writer

@dataclass(frozen=True)
class Correspondence:
    """What Loopy's names have become."""

    #: Of each iname the loops that run it, in the order of the text.
    loops: dict[str, tuple[str, ...]]
    #: Of each instruction its statements; an instruction that Loopy made has the name that Loopy gave it.
    statements: dict[str, tuple[str, ...]]
    #: Of each argument and temporary its variable.
    variables: dict[str, str]


@dataclass(frozen=True)
class Imported:
    """A program of Loopy as a kernel."""

    kernel: Kernel
    names: Correspondence
    #: What was assumed of parameters, beyond what Loopy was told, so that every access stays in its array.
    conditions: tuple[str, ...]
    #: What a reader of the kernel would not expect.
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text of the kernel."""
        return str(self.kernel)

    def compile(self, device: str = "default", **options: Any) -> Compiled:
        """The kernel as a function on arrays; see :func:`kingpost.compile`."""
        return compile(self.kernel, device, **options)

    def __str__(self) -> str:
        return self.text


class Reading:
    """A program that Loopy has prepared: typed, with callees inlined, in an order."""

    def __init__(self, program: lp.TranslationUnit, types: Optional[Mapping[str, Any]]) -> None:
        self.notes: set[str] = set()
        #: Whether temporaries that share a buffer are one variable.
        self.is_joined = False
        self.name = "the program"
        with self.named():
            if types:
                program = program.with_kernel(lp.add_dtypes(program.default_entrypoint, dict(types)))
            program = internals.entry(program)
            self.name = program.default_entrypoint.name
            program, callees = internals.inlined(with_known_shapes(program, self.notes), functions_of_numbers(program))
            self.notes |= {f"`{callee}` is inlined" for callee in callees}
            self.typed = internals.typed(program)
            kernel = self.typed.default_entrypoint
            refuse_placements(kernel)
            realise = is_scheduled(kernel) or internals.has_several_results(kernel)
            self.program = internals.linearised(self.typed, realise)

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Names the kernel in refusals from within."""
        try:
            yield
        except ImportRefusal as error:
            raise complete(error, self.name) from error.__cause__

    @property
    def kernel(self) -> lp.LoopKernel:
        """The linearised kernel."""
        return self.program.default_entrypoint

    def imported(self) -> Imported:
        """The kernel."""
        with self.named():
            try:
                found = self.written(nest(self.kernel))
            except NeedsRealised:
                self.program = internals.linearised(self.typed, True)
                found = self.written(nest(self.kernel))
            if not overlap(found.kernel):
                return found
            self.is_joined = True
            return self.written(nest(self.kernel))

    def written(self, tree: list[Node], is_reversed: bool = False, is_bounded: bool = False) -> Imported:
        """The kernel with these loops; those over work-items between two barriers reversed, or bounded."""
        shared = joined(self.kernel) if self.is_joined else {}
        writer = Writer(self.program, names_of(self.kernel, shared), parameters(self.kernel))
        writer.joined = shared
        self.notes |= {f"`{name}` is `{other}`, whose buffer it shares" for name, other in shared.items()}
        writer.is_reversed, writer.is_bounded = is_reversed, is_bounded
        writer.spread = spread(self.kernel, tree)
        declared, tables = Declarations(writer).lines()
        assumed = assumptions(writer)
        body = writer.nodes(tree)
        head = f"kernel {writer.names.fresh(self.kernel.name)}"

        def parsed(more: list[str]) -> Kernel:
            known = [*declared, *writer.temporaries, *writer.rules, *assumed, *more]
            lines = [head, "", *known, "", *writer.callees.values(), "", *body, "", *tables, ""]
            return kernel_of("\n".join(lines))

        found: list[str] = []
        kernel = parsed([])
        if not stays_inside(kernel):
            found = conditions(writer)
            kernel = parsed(found)
        names = Correspondence(
            {name: tuple(made) for name, made in writer.made.items()},
            {name: tuple(made) for name, made in writer.instructions.items()},
            writer.names.given(),
        )
        told = assumed_by(parsed([])) if found else []
        derived = tuple(line for line in assumed_by(kernel) if found and line not in told)
        return Imported(kernel, names, derived, tuple(sorted(self.notes | writer.notes)))


def names_of(kernel: lp.LoopKernel, joined: dict[str, str]) -> Names:
    """Names, those of variables first: they stay as they are. Those that are `joined` have one name."""
    names = Names()
    for name, other in joined.items():
        names.join(name, other)
    for variable in [*kernel.args, *kernel.temporary_variables.values()]:
        is_number = isinstance(variable, ValueArg | ImageArg)
        fields = [] if is_number else fields_of(variable.dtype, f"`{variable.name}`")
        for name in [f"{variable.name}.{field}" for field in fields] or [variable.name]:
            names.of(name)
    return names


def kernel_of(text: str) -> Kernel:
    try:
        return Kernel.parse(text)
    except TextError as error:
        lines = text.splitlines()
        message, _, line, _ = error.mistakes[0] if error.mistakes else (str(error), None, 1, 1)
        found = f"`{lines[line - 1].strip()}`" if line <= len(lines) else "a text"
        raise refuse("a text that the language refuses", found, message) from error


def assumed_by(kernel: Kernel) -> list[str]:
    """The assumptions of a kernel, as it prints them."""
    lines = str(kernel).splitlines()
    return [line.removeprefix("assume ") for line in lines if line.startswith("assume ")]


def joined(kernel: lp.LoopKernel) -> dict[str, str]:
    """Of each temporary that shares a buffer with a temporary before it, that one.

    Loopy reads what was last written to the buffer. Where that is a value of another temporary, the two are one.
    """
    found: dict[str, str] = {}
    first: dict[str, Any] = {}
    for name, variable in sorted(kernel.temporary_variables.items()):
        if not variable.base_storage:
            continue
        other = first.setdefault(variable.base_storage, variable)
        kinds = {(v.dtype, v.shape, v.offset, v.dim_tags, v.address_space) for v in (variable, other)}
        if len(kinds) > 1 or variable.address_space != AddressSpace.LOCAL:
            what = f"`{other.name}` and `{name}`, which are read after the other one is written"
            raise refuse("a buffer of several temporaries at once", what, "needed local ones of one type and shape")
        if other is not variable:
            found[name] = other.name
    return found


def overlap(kernel: Kernel) -> bool:
    """Whether a value is needed of a buffer that another temporary has written."""
    if " storage(" not in str(kernel):
        return False
    try:
        Program.generate(kernel, "c")
    except StorageError:
        return True
    except CodegenError:
        return False  # another reason
    return False


def stays_inside(kernel: Kernel) -> bool:
    """Whether no access is found that leaves its array."""
    try:
        Program.generate(kernel, "c")
    except OutsideError:
        return False
    except CodegenError:
        return True  # another reason
    return True
