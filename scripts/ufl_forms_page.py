#!/usr/bin/env python3
"""The page of what scripts/ufl_forms.sh measured: scripts/ufl_forms_page.py FOLDER [DATE] >results/h200/ufl_forms.md"""

import datetime
import pathlib
import re
import sys


def cells_of(text: str, key: str) -> list[str]:
    return re.findall(rf"│ {re.escape(key)}\s+([^│]*?)\s*│", text)


def row(folder: pathlib.Path, name: str) -> str:
    check, run, tune = ((folder / kind / f"{name}.txt").read_text() for kind in ("check", "run", "tune"))
    mesh = re.search(r"of (\d+) cells", run)
    errors = [float(e) for e in re.findall(r"│ error\s+([\d.e+-]+) of", check)]
    compared = "yes" if errors and max(errors) <= 1.0 else "NO"
    times = [re.sub(r" of \d+ runs", "", ", ".join(cells_of(t, "time (median)"))) for t in (run, tune)]
    best = (cells_of(tune, "best") or [""])[0]
    return f"| `{name}` | {mesh.group(1) if mesh else ''} | {compared} | {times[0]} | {times[1]} | {best} |"


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    date = sys.argv[2] if len(sys.argv) > 2 else datetime.date.today().isoformat()
    card = (folder / "gpu.csv").read_text().splitlines()[1]
    print("# UFL forms on a card\n")
    print(f"{card} (clocks before the run), {date}. Forms from `python/tests/timed_forms.py`, made by")
    print("`scripts/ufl_forms.sh cuda 6`: each is compared with the interpreter on a small perturbed mesh, then run on a")
    print("large one with the default mapping, then tuned for 6 s.")
    print("Several times are those of the kernels of a form, one an integral type; the tuner takes the first.\n")
    print("| form | cells | equals the interpreter | default | tuned | best mapping |")
    print("|---|---:|---|---:|---:|---|")
    for path in sorted((folder / "run").glob("*.txt")):
        print(row(folder, path.stem))


if __name__ == "__main__":
    main()
