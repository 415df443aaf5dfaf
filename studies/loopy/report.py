"""The page of the study."""

from __future__ import annotations

import collections
import datetime
import statistics
from typing import Any

HEAD = f"""# Programs of Loopy

Written by `python studies/loopy/run.py report` on {datetime.date.today().isoformat()}, from rows of
`run.py record LOOPY --out DIR` and `run.py compare DIR`. The first runs the test suite of Loopy (version 2025.2)
with a plug-in that records every program. The second imports each different one by `kingpost.from_loopy`, runs it for
C and OpenCL (pocl), and compares with what Loopy's own code computes for OpenCL, or for C, or where neither runs
(or gives other results than its expressions have) with an evaluation of its expressions by NumPy.
Sums of another order differ by rounding: 2e-4 of the largest result in single precision, 1e-10 in double.
[loopy.csv](loopy.csv) has a row for each program.

A program that calls a function which its test defines later is incomplete, and not counted.
"""

MEANINGS = {
    "equal": "the results are those of the oracle",
    "refused": "an error that says feature and instruction",
    "leaves its array": "as it is written; Kingpost says where",
    "reads undefined": "as it is written",
    "no code": "the kernel is refused: a race, or what code generation lacks",
    "no oracle": "neither Loopy nor NumPy has results",
    "not called": "no small sizes satisfy the assumptions",
    "not run": "a call is refused",
    "took too long": "more than two minutes",
    "ended the process": "an index that depends on data leaves its array",
    "wrong": "other results",
}


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|"*(len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def feature(row: Any) -> str:
    """The feature of a refusal."""
    return row.reason.split(": import of")[0]


def page(rows: list[Any], times: list[dict[str, str]]) -> str:
    complete = [row for row in rows if row.state != "incomplete"]
    plain = [row for row in complete if not row.scheduled]
    scheduled = [row for row in complete if row.scheduled]
    parts = [HEAD, states(plain, scheduled), proofs(scheduled), refusals(plain, scheduled), figures(complete)]
    return "\n".join(parts + [speed(times)] * bool(times))


def speed(times: list[dict[str, str]]) -> str:
    """The times of generated code."""
    lines = [[row["script"], row["size"], row["loopy_ms"], row["imported_ms"], row["schedule_ms"]] for row in times]
    names = ["script", "size", "Loopy's code, ms", "imported, ms", "as a schedule, ms"]
    last = times[-1]
    options = f", with `POCL_EXTRA_BUILD_FLAGS={last['options']}`" if last["options"] else ""
    return (
        f"## Speed of generated code\n\n{table(names, lines)}\n"
        "Scripts of Loopy's tests: Loopy's code for them, that of the imported schedule, and that of the same steps on\n"
        "the imported plain program (`python/tests/test_loopy_scripts.py`). Medians of seven rounds, in each of which\n"
        f"all three run in turn, by the device's clock; {last['device']}{options}, {last['date']}. [Rows](loopy_times.csv)"
        ", written by `python studies/loopy/run.py time`.\n"
    )


def states(plain: list[Any], scheduled: list[Any]) -> str:
    found = [collections.Counter(row.state for row in rows) for rows in (plain, scheduled)]
    names = [name for name in MEANINGS if found[0][name] + found[1][name]] + sorted(
        (set(found[0]) | set(found[1])) - set(MEANINGS)
    )
    lines = [[name, found[0][name], found[1][name]] for name in names]
    meanings = "\n".join(f"- *{name}*: {MEANINGS[name]}" for name in names if name in MEANINGS)
    lines.append(["all", len(plain), len(scheduled)])
    return f"## Results\n\n{table(['', 'as written', 'scheduled'], lines)}\n{meanings}\n"


def proofs(scheduled: list[Any]) -> str:
    kinds = collections.Counter(row.proof.split(":")[0] or "not imported" for row in scheduled)
    lines = [[kind, kinds[kind]] for kind, _ in kinds.most_common()]
    text = f"## Proofs of schedules\n\n{table(['`kingpost.prove_loopy`', 'programs'], lines)}\n"
    text += "Those that are not proved, with two instances that clash or the reason:\n\n"
    for row in scheduled:
        if row.proof and row.proof != "proved":
            text += f"- `{short(row)}` ({row.id}): {row.proof}\n"
    barriers = [row for row in scheduled if row.superfluous]
    if barriers:
        text += "\nBarriers without which the proof holds:\n\n"
        text += "".join(f"- `{short(row)}` ({row.id}): {row.superfluous}\n" for row in barriers)
    return text


def short(row: Any) -> str:
    return row.test.split("::")[-1].split("[")[0]


def refusals(plain: list[Any], scheduled: list[Any]) -> str:
    found = [collections.Counter(feature(row) for row in rows if row.state == "refused") for rows in (plain, scheduled)]
    names = sorted(set(found[0]) | set(found[1]), key=lambda name: (-found[0][name] - found[1][name], name))
    reasons = {feature(row): example(row) for row in reversed(plain + scheduled) if row.state == "refused"}
    lines = [[name, found[0][name], found[1][name], reasons[name]] for name in names]
    return f"## What is refused\n\n{table(['feature', 'as written', 'scheduled', 'for example'], lines)}"


def example(row: Any) -> str:
    """What the message of a refusal says was found and needed, in one cell of a table."""
    text = row.reason.rpartition(": found ")[2].replace("|", "\\|")
    return f"`{short(row)}`: {text if len(text) < 160 else text[:157] + '…'}"


def figures(rows: list[Any]) -> str:
    oracles = collections.Counter(row.oracle for row in rows if row.state == "equal")
    devices = collections.Counter(row.devices for row in rows if row.state == "equal")
    conditions = sum(bool(row.conditions) for row in rows)
    pairs = [(float(row.kingpost_ms), float(row.loopy_ms)) for row in rows if row.kingpost_ms and row.loopy_ms]
    text = "## Figures\n\n"
    text += f"- oracles of equal results: {', '.join(f'{name} {count}' for name, count in oracles.most_common())}\n"
    text += f"- run on: {', '.join(f'{name} ({count})' for name, count in devices.most_common())}\n"
    text += f"- programs with derived conditions of parameters: {conditions}\n"
    if pairs:
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        ratio = statistics.median(loopy / kingpost for kingpost, loopy in pairs)
        text += (
            f"- generation of OpenCL code, median of {len(pairs)} programs: {ours:.1f} ms (a development build, from the\n"
            f"  kernel) and {theirs:.1f} ms for Loopy without its caches; median of the ratios {ratio:.1f}\n"
        )
    return text
