"""Writes results/ufl_kernels.md: the engine's kernels of demo forms and random forms, run and checked.

    python write_ufl_kernels.py [--random N] [--first SEED] [--opencl K] [--kingpost FILE] [--check]

Kernels of the demos run in C and OpenCL, those of random forms in C, and of every K-th in OpenCL.
They are compared with the evaluator, which `write_ufl_forms.py` compares with FFCx. `--kingpost` is a
command line of a release build, whose processor time is taken. With `--check` nothing is written;
the exit status says whether a result differs.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import demos
import engine
from engine import Outcome
from kingpost import Error
from kingpost.export import FormError, dumps, export_form
from random_forms import random_form

PAGE = Path(__file__).resolve().parents[2] / "results" / "ufl_kernels.md"
# Sums of up to a few hundred terms in f64, in another order than the evaluator's.
LIMIT = 1e-12
TITLES = {"c": "C", "opencl": "OpenCL"}


class Row(NamedTuple):
    """One form's line; no devices if there is no document."""

    name: str
    devices: dict[str, Outcome]
    milliseconds: float | None = None
    reason: str = ""


def outcome_of(found: Outcome) -> str:
    """A word for it."""
    if found.difference is None:
        return "refused" if ": " in found.reason else "not compared"
    return "equal" if found.difference <= LIMIT else "DIFFERENT"


def row_of(name: str, form: Any, devices: list[str], seed: int, kingpost: str | None) -> Row:
    """Exports a form, and runs and times its kernels."""
    warnings.simplefilter("ignore")
    try:
        document = export_form(form)
    except FormError as error:
        return Row(name, {}, None, f"not exported: {error}")
    found = engine.check(document, form, devices, seed)
    row = Row(name, found, milliseconds(document, kingpost) if kingpost else None)
    print(row, file=sys.stderr, flush=True)
    return row


def milliseconds(document: dict[str, Any], kingpost: str) -> float | None:
    """Processor time of printing C of all kernels, start and import included; the least of four."""
    try:
        engine.kernels(json.dumps(document))
    except Error:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "form.json"
        path.write_text(dumps(document))
        return min(processor_time(kingpost, path) for _ in range(4))


def processor_time(kingpost: str, path: Path) -> float:
    """Of one run, in milliseconds."""
    command = [kingpost, "print", path, "--all-kernels", "--target", "c"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def demo_row(task: tuple[Path, str, str, str | None]) -> Row:
    """The row of a demo's form; the demo is run in this process, since forms do not travel."""
    path, title, name, kingpost = task
    warnings.simplefilter("ignore")
    return row_of(title, demos.forms_of(demos.load(path))[name], ["c", "opencl"], 1, kingpost)


def demo_tasks(kingpost: str | None) -> list[tuple[Path, str, str, str | None]]:
    """All forms of demos that can be loaded."""
    tasks = []
    for package, path in demos.paths():
        try:
            forms = demos.forms_of(demos.load(path))
        except (ValueError, NotImplementedError, TypeError):
            continue  # results/ufl_forms.md names the reason
        tasks += [(path, f"{package}/{path.stem} `{name}`", name, kingpost) for name in forms]
    return tasks


def random_row(task: tuple[int, int, float]) -> Row | None:
    """The row of a random form; none after the deadline."""
    seed, opencl, deadline = task
    if time.time() > deadline:
        return None
    warnings.simplefilter("ignore")
    drawn = random_form(seed)
    devices = ["c", "opencl"] if opencl and seed % opencl == 0 else ["c"]
    return row_of(f"seed {seed}: {drawn.title}", drawn.form, devices, seed, None)


def processor() -> str:
    """The name of this machine's processor."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")


def table(rows: list[Row]) -> list[str]:
    """Rows as a Markdown table."""
    lines = ["| form | C | OpenCL | import to C, ms | reason |", "|---|---|---|---|---|"]
    for row in rows:
        cells = [row.name]
        for device in TITLES:
            found = row.devices.get(device)
            word = outcome_of(found) if found else ""
            number = "" if found is None or found.difference is None else f"{found.difference:.1e}"
            cells.append(f"{word} {number}".strip())
        said = [row.reason, *(found.reason for found in row.devices.values())]
        cells.append("" if row.milliseconds is None else f"{row.milliseconds:.0f}")
        cells.append("; ".join(dict.fromkeys(r for r in said if r)).replace("|", "\\|"))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def summary(rows: list[Row]) -> list[str]:
    """How many kernels are equal on each device, and the largest difference."""
    lines = []
    for device, title in TITLES.items():
        found = [row.devices[device] for row in rows if device in row.devices]
        if found:
            counts = sorted(Counter(map(outcome_of, found)).items())
            worst = max((o.difference for o in found if o.difference is not None), default=0.0)
            said = ", ".join(f"{n} {word}" for word, n in counts)
            lines.append(f"- {title}: {len(found)} forms, {said}; largest difference {worst:.1e}.")
    return lines


def page(demo: list[Row], drawn: list[Row], first: int) -> str:
    """The page."""
    timed = sorted((row.milliseconds, row.name) for row in demo if row.milliseconds is not None)
    spent = [milliseconds for milliseconds, _ in timed]
    lines = [
        "# Kernels of UFL forms, run and checked", "",
        "Generated by `python/tests/write_ufl_kernels.py`; do not edit.", "",
        "Each form is exported, imported, lowered, mapped by default, printed, compiled and run on",
        "a perturbed, randomly numbered mesh with cells of both orientations. Global results, and",
        "sums of local matrices, are compared with an evaluator of the JSON in NumPy, relative to",
        "the largest entry; [UFL forms](ufl_forms.md) compares that evaluator with FFCx. Data are such",
        "that the evaluator's results move by at most 1e-14 when each input moves by an ulp.", "",
        "## Demos of FFCx 0.11 and UFL 2026.1", "", *summary(demo), "",
    ]  # fmt: skip
    if spent:
        lines += [
            "Times are processor times of `kingpost print FORM.json --all-kernels --target c` of a release",
            f"build, process start and reading included ({processor()}, {date.today()}). Of the least of",
            f"four each: {spent[len(spent) // 2]:.0f} ms in the median, {spent[-1]:.0f} ms at most;",
            f"{sum(t <= 50 for t in spent)} of {len(spent)} forms take at most 50 ms. The slowest are",
            ", ".join(f"{name} ({t:.0f} ms)" for t, name in timed[:-6:-1]) + ".", "",
        ]  # fmt: skip
    lines += [*table(demo), ""]
    if drawn:
        other = [
            row for row in drawn
            if not row.devices or any(outcome_of(o) != "equal" for o in row.devices.values())
        ]  # fmt: skip
        lines += [
            "## Random forms", "",
            f"{len(drawn)} forms of `python/tests/random_forms.py`, seeds from {first} on; those",
            "that are not equal are listed.", "", *summary(drawn), "", *table(other), "",
        ]  # fmt: skip
    return "\n".join(lines).rstrip("\n") + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--random", type=int, default=1000, help="how many random forms")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--opencl", type=int, default=10, help="in OpenCL every K-th random form")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seconds", type=float, default=1e9, help="start no random form later")
    parser.add_argument("--kingpost", help="a command line of a release build, to be timed")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    deadline = time.time() + options.seconds
    with ProcessPoolExecutor(options.jobs) as pool:
        demo = list(pool.map(demo_row, demo_tasks(options.kingpost)))
        seeds = range(options.first, options.first + options.random)
        found = pool.map(random_row, [(seed, options.opencl, deadline) for seed in seeds])
        drawn = [row for row in found if row is not None]
    wrong = [
        row for row in (*demo, *drawn)
        if any(outcome_of(outcome) == "DIFFERENT" for outcome in row.devices.values())
    ]  # fmt: skip
    for row in wrong:
        print(f"different: {row}", file=sys.stderr)
    if not options.check:
        options.page.write_text(page(demo, drawn, options.first))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
