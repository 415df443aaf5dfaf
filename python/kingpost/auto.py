"""Schedules of loop programs that nobody has scheduled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Union

from kingpost._kingpost import Kernel
from kingpost.compiled import compile
from kingpost.schedule import Schedule


@dataclass(frozen=True)
class ScheduleTrial:
    """A schedule that was tried: seconds of a launch, or why there are none."""

    #: What it is made of, as in ``order, registers 4``.
    name: str
    schedule: Schedule
    seconds: Optional[float]
    reason: Optional[str]
    #: The steps as text, with all that was considered as comments.
    text: str


@dataclass(frozen=True)
class AutoSchedule:
    """The fastest schedule that was found, and all that were tried, in the order of the model."""

    #: The steps; ``.recipe`` is their text, to be read, edited and replayed.
    schedule: Schedule
    trials: tuple[ScheduleTrial, ...]

    def __repr__(self) -> str:
        steps = len(self.schedule.recipe.splitlines())
        return f"<kingpost.AutoSchedule of {self.schedule.start.name}: {steps} steps, the fastest of {len(self.trials)}>"


def auto(
    kernel: Union[Kernel, str], device: str = "default", /, *args: Any, budget: int = 10, **kwargs: Any
) -> AutoSchedule:
    """Finds a schedule of a loop program for a device, without a user's step.

    Arguments are those of a call of the compiled kernel (:func:`compile`); parameters follow from the
    shapes of arrays. At most ``budget`` schedules run on copies of these values, with the kernel as it is
    written among them. Each step of theirs is proved, and results are held against the interpreter. What
    is found is legal for all sizes; the given ones only rank.

    >>> import numpy, kingpost
    >>> found = kingpost.auto('''
    ... kernel columns
    ... param n: i32
    ... arg a: f64[n, n] in
    ... arg y: f64[n] inout
    ...
    ... for i in 0..n
    ...   for j in 0..n
    ...     s: y[i] += a[j, i]
    ... ''', "c", a=numpy.ones((60, 60)), y=numpy.zeros(60), budget=3)
    >>> len(found.trials)
    3
    >>> run = kingpost.compile(found.schedule, "c")
    """
    compiled = compile(kernel, device)
    bound = compiled._bind(compiled._fields(args, kwargs).given, None)
    tried, best = compiled._program.auto(bound.arrays, bound.numbers, budget)
    trials = []
    for name, recipe, text, seconds, reason in tried:
        trials.append(ScheduleTrial(name, Schedule(compiled.kernel).run(recipe), seconds, reason, text))
    return AutoSchedule(trials[best].schedule.copy(), tuple(trials))
