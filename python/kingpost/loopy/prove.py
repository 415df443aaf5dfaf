"""Proofs of a schedule of Loopy's: no race, no access outside an array, no barrier too few or too many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

import loopy as lp

from kingpost._kingpost import Program
from kingpost.errors import CodegenError, OutsideError, RaceError
from kingpost.loopy.imported import Imported, Reading
from kingpost.loopy.nest import barriers, intervals


@dataclass(frozen=True)
class Proof:
    """What is proved of a schedule, or what refutes it.

    It is true where the schedule is proved.
    """

    imported: Imported
    #: Two instances that clash, where the schedule has a race.
    race: Optional[RaceError]
    #: The access that leaves its array, where there is one.
    outside: Optional[OutsideError]
    #: Another reason why the kernel is not proved: OpenCL has no code for it.
    undecided: Optional[CodegenError]
    #: Barriers without which the schedule is proved as well: what Loopy calls them, and where they stand.
    superfluous: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.race is None and self.outside is None and self.undecided is None

    def __str__(self) -> str:
        name = self.imported.kernel.name
        for error, what in ((self.race, "a race"), (self.outside, "an access outside its array")):
            if error is not None:
                return f"`{name}` has {what}: {error}"
        if self.undecided is not None:
            return f"`{name}` is not decided: {self.undecided}"
        lines = [f"`{name}` is free of races, and every access is in bounds"]
        if self.imported.conditions:
            lines[0] += f", given {' and '.join(f'`{line}`' for line in self.imported.conditions)}"
        return "\n".join([*lines, *(f"superfluous: {barrier}" for barrier in self.superfluous)])


def prove_loopy(t_unit: lp.TranslationUnit, *, types: Optional[Mapping[str, Any]] = None) -> Proof:
    """Proves a schedule of Loopy's free of races and of accesses outside arrays, with the barriers it has.

    A missing barrier is a race, with two instances that clash. Where a loop has barriers, what follows the last
    one of an iteration is compared with what precedes the first one of the next, too. Barriers within a group
    without which the proof holds are superfluous.

    Raises :class:`kingpost.ImportRefusal` for what cannot be read, as :func:`kingpost.from_loopy` does.
    """
    reading = Reading(t_unit, types)
    imported = reading.imported()
    superfluous: list[str] = []
    with reading.named():
        error = refuted(reading, imported, None)
        if error is None:
            for number, place in enumerate(barriers(reading.kernel)):
                if refuted(reading, imported, number) is None:
                    superfluous.append(place)
    race = error if isinstance(error, RaceError) and is_exact(error, imported) else None
    outside = error if isinstance(error, OutsideError) else None
    undecided = error if race is None and outside is None else None
    return Proof(imported, race, outside, undecided, tuple(superfluous))


def is_exact(error: RaceError, imported: Imported) -> bool:
    """Whether the witness has the element: of an access that is not affine it has the array alone."""
    element = error.witness.element if error.witness is not None else ""
    return "[" in element or f" {element}[" not in imported.text


def refuted(reading: Reading, imported: Imported, without: Optional[int]) -> Optional[CodegenError]:
    """What refutes a schedule, as if one of its barriers was not there."""
    try:
        if without is None:
            Program.generate(imported.kernel, "opencl")
        for tree in intervals(reading.kernel, without):
            # code for a loop over work-items may get a barrier where what it carries goes forward. In one of
            # both directions it goes backward
            for is_reversed in (False, True):
                try:
                    Program.generate(reading.written(tree, is_reversed).kernel, "opencl")
                except CodegenError:
                    # loops with the bounds of what is inside say more of what is written before it is read
                    Program.generate(reading.written(tree, is_reversed, True).kernel, "opencl")
    except CodegenError as error:
        return error
    return None
