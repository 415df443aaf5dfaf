#!/usr/bin/env python3
"""The page of what scripts/ufl_forms.sh measured: scripts/ufl_forms_page.py FOLDER [DATE] >results/h200/ufl_forms.md"""

import datetime
import pathlib
import re
import sys


def cells_of(text: str, key: str) -> list[str]:
    return re.findall(rf"│ {re.escape(key)}\s+([^│]*?)\s*│", text)


def times(text: str) -> str:
    """The times of the kernels of a run."""
    return re.sub(r" of \d+ runs", "", ", ".join(cells_of(text, "time (median)")))


def figure(seconds: str) -> str:
    return f"{1e6 * float(seconds):.2f} µs"


def row(folder: pathlib.Path, name: str, tuned: bool) -> str:
    check, run, tune, named, python = (
        path.read_text() if (path := folder / kind / f"{name}.txt").exists() else ""
        for kind in ("check", "run", "tune", "named", "python")
    )
    mesh = re.search(r"of (\d+) cells", run)
    errors = [float(e) for e in re.findall(r"│ error\s+([\d.e+-]+) of", check + run)]
    kernels = [line.split("\t") for line in python.splitlines()]
    compared = "yes" if errors and max(errors) <= 1.0 else "NO"
    compared = "no value is finite" if "nothing to compare" in check + run else compared
    difference = max((kernel[3] for kernel in kernels), key=float, default="")
    best = (cells_of(tune, "best") or [""])[0]
    measured, bound = (", ".join(figure(kernel[k]) for kernel in kernels) for k in (1, 2))
    mappings = "; ".join(dict.fromkeys(kernel[4].split(" (")[0] for kernel in kernels))
    cells = [f"`{name}`", mesh.group(1) if mesh else "", compared, times(named), times(run), measured, bound]
    return f"| {' | '.join([*cells, difference, mappings, *([times(tune), best] if tuned else [])])} |"


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    date = sys.argv[2] if len(sys.argv) > 2 else datetime.date.today().isoformat()
    card = (folder / "gpu.csv").read_text().splitlines()[1]
    print("# UFL forms on a card\n")
    print(f"{card} (clocks before the run), {date}. Forms from `python/tests/timed_forms.py`, made by")
    print("`scripts/ufl_forms.sh cuda`: each is compared with the interpreter on a small perturbed mesh, then run on a")
    print("large one with the default mapping, numbered by dimension where nodes allow it: by name (*named*), as exported")
    print("(*command line*) and from Python (`python/tests/time_forms.py`, with `by_dimension=True`) on")
    print("the arrays of the command line. *Python* is the time of a run as the command line takes it, *bound* that of a")
    print("bound call on arrays of PyTorch, by events of the card around 60; *difference* is the largest from the result")
    print("of the command line. Several times are those of the kernels of a form, one an integral type.")
    if tuned := any((folder / "tune").glob("*.txt")):
        print("*Tuned* is the time of the best mapping that the tuner found, of the first kernel.")
    head = ["form", "cells", "equals the interpreter", "named", "command line", "Python", "bound", "difference"]
    head += ["mapping from Python", *(["tuned", "best mapping"] if tuned else [])]
    print(f"\n| {' | '.join(head)} |\n|---|---:|---|---:|---:|---:|---:|---:|---|{'---:|---|' if tuned else ''}")
    for path in sorted((folder / "run").glob("*.txt")):
        print(row(folder, path.stem, tuned))


if __name__ == "__main__":
    main()
