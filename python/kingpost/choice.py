"""How many devices of several pay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kingpost import _kingpost


#: Launches that the marks of an exchange take, in which streams wait for each other. On two H200s nine divisions of 0.3
#: to 40 million unknowns took the faster one of one card and two (2026-11-30, `results/h200/parts.md`).
EXTRA_LAUNCHES = 4


@dataclass(frozen=True)
class ExchangeCosts:
    """What exchanges between devices cost, measured, in seconds."""

    #: Of a kernel that does nothing.
    launch: float
    #: Of a sum over all devices.
    sum: float
    #: Of an exchange of one number with each other device.
    latency: float
    #: Of each further byte that a device sends.
    byte: float


@dataclass(frozen=True)
class Choice:
    """How many of the given devices a division takes, and why.

    ``print(division.choice)`` says it in a line.
    """

    given: int
    taken: int
    reason: str
    #: Seconds of an iteration of conjugate gradients by the number of devices, as far as they were estimated.
    seconds: Mapping[int, float]

    def __str__(self) -> str:
        times = ", ".join(f"{seconds * 1e6:.3g} µs on {n}" for n, seconds in self.seconds.items())
        return f"{self.taken} of {self.given} devices: {self.reason}" + (f" ({times})" if times else "")


@dataclass(frozen=True)
class Work:
    """What a division of ``parts`` parts takes, measured: seconds of an iteration of conjugate gradients on what a part
    owns, without what is exchanged; of forms that solve no system, of their kernels."""

    parts: int
    #: Of one part while the others do nothing, and the kernels that this takes.
    alone: float
    launches: int
    #: Of the longest part while all of them work.
    together: float
    #: The share of entities that need no value of another part.
    inner: float
    #: Bytes that the part which sends most sends in an action.
    sent: float


@lru_cache(maxsize=32)
def exchange_costs(devices: tuple[str, ...]) -> ExchangeCosts:
    """The costs between some devices, measured once in a process."""
    return ExchangeCosts(*_kingpost.exchange_costs(list(devices)))


def iteration_seconds(work: Work, costs: ExchangeCosts) -> dict[int, float]:
    """Estimated seconds of an iteration on each number of devices up to that of the parts.

    Work is divided evenly, but each device launches all kernels. Devices that share a processor slow each other down, by
    what was measured with all of them at work. To that come the marks of the exchange, two sums, and the exchange as
    far as it takes longer than the entities that need none of it.
    """
    found = {}
    launches = min(work.launches * costs.launch, work.alone)
    crowd = max(work.together / work.alone, 1.0) - 1.0 if work.alone > 0.0 else 0.0
    for n in range(1, work.parts + 1):
        others = (n - 1) / (work.parts - 1) if work.parts > 1 else 0.0
        seconds = launches + (work.alone - launches) * work.parts / n * (1.0 + crowd * others)
        if n > 1 and work.sent:
            exchange = costs.latency + costs.byte * work.sent
            hidden = work.inner * (seconds - launches)
            seconds += EXTRA_LAUNCHES * costs.launch + 2 * costs.sum + max(0.0, exchange - hidden)
        found[n] = seconds
    return found


def choose(work: Work, costs: ExchangeCosts) -> Choice:
    """The number of devices with the shortest iteration; of equal ones the least."""
    seconds = iteration_seconds(work, costs)
    taken = min(seconds, key=lambda n: (seconds[n], n))
    if taken == work.parts:
        reason = "an iteration takes longer on fewer"
    else:
        reason = "an iteration takes longer on more; `all_devices=True` takes all"
    return Choice(work.parts, taken, reason, seconds)
