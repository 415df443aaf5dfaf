"""Kernels once for each of many data, in one launch."""

from __future__ import annotations

from collections.abc import Iterable

from kingpost.errors import Refusal
from kingpost.programs import to_batched
from kingpost.schedule import Schedule

#: The loop over the data, and the parameter that is their number.
INAME, NUMBER = "batch", "batches"


def in_batches(schedule: Schedule, arguments: Iterable[str], device: str) -> Schedule:
    """The kernel of a schedule once for each of many data: these of its arguments get an axis in front.

    On a card the data are an axis of work-groups of their own, if there is one left, so that they run side by side.
    """
    kernel = schedule.kernel
    batched = Schedule(to_batched(kernel, _free(NUMBER, kernel.variables), arguments, iname := _free(INAME, kernel.loops)))
    for axis in () if device == "c" else ("g.1", "g.2"):
        try:
            batched.tag(iname, axis)
        except Refusal:
            continue  # the kernel has it already
        break
    return batched


def _free(name: str, taken: Iterable[str]) -> str:
    """A name that is not taken."""
    return next(own for own in (name, *(f"{name}_{k}" for k in range(1, 99))) if own not in taken)
