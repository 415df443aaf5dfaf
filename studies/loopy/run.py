"""Loopy's own tests, run by Kingpost.

    python studies/loopy/run.py record LOOPY --out DIR       runs the tests of a checkout of Loopy, with the plug-in
    python studies/loopy/run.py compare DIR [--only p012]    imports, runs and compares every program of the recording
    python studies/loopy/run.py time                         times five of Loopy's scripts on the OpenCL device
    python studies/loopy/run.py report                       writes the page of the table

Run it by a Python that has Loopy (the version that `kingpost[loopy]` pins), the package `kingpost`, pytest, and for
OpenCL pyopencl. `compare` writes `results/loopy.csv`, `time` `results/loopy_times.csv`, `report`
`results/loopy.md`. Fetches nothing.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import csv
import dataclasses
import multiprocessing
import os
import subprocess
import sys
import threading
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parents[1] / "results"
#: Seconds for one program, of Loopy's and of ours.
LIMIT = 120


def record(options: argparse.Namespace) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    tests = options.loopy.resolve() / "test"
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"RECORD": str(options.out.resolve()), "PYTHONPATH": path, "PYOPENCL_NO_CACHE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "record", "-q", "-p", "no:cacheprovider", *options.pytest, "."]
    subprocess.run(command, cwd=tests, env=environment, check=False)  # some tests fail where Loopy does


def child(entry, devices, queue) -> None:
    from attempt import Row, attempt

    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (until the process ends)
    try:
        queue.put(attempt(entry, devices))
    except Exception as error:  # noqa: BLE001 (a mistake of the study's or the importer's, to be mended)
        trace = "".join(traceback.format_exception(error)[-3:])
        state = "the study fails"
        queue.put(Row(entry.id, entry.test, entry.at, "yes" if entry.is_scheduled else "", state, trace))


def alone(entry, devices):
    """The row of a program from a process of its own, if that lives, and how it ended."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(entry, devices, queue))
    process.start()
    process.join(LIMIT)
    row = None if queue.empty() else queue.get()
    code = process.exitcode
    process.kill()
    return row, code


def attempted(entry, devices):
    """The row of a program: wrong indices and compilers may end the process that runs it."""
    from attempt import Row

    row, code = alone(entry, devices)
    if row is None:
        state = "took too long" if code is None else "ended the process"
        row = Row(entry.id, entry.test, entry.at, "yes" if entry.is_scheduled else "", state, f"exit {code}")
        evaluated, _ = alone(entry, [])
        if evaluated is not None and evaluated.state in ("leaves its array", "reads undefined"):
            row = evaluated
    print(row.id, row.state, row.reason[:150], flush=True)
    return row


def compare(options: argparse.Namespace) -> None:
    import attempt  # noqa: F401 (children inherit what is imported)
    from events import programs

    found, lost = programs(options.recording)
    if options.only:
        found = [entry for entry in found if entry.id in options.only]
    before = {row.id: row for row in read()} if options.keep else {}
    found = [entry for entry in found if entry.id not in before or before[entry.id].state not in options.keep]
    rows = [row for row in before.values() if row.state in options.keep]
    lock = threading.Lock()

    def one(entry) -> None:
        row = attempted(entry, options.devices)
        with lock:
            rows.append(row)
            if not options.only:
                write(sorted(rows, key=lambda row: row.id))

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, found))
    for scheduled in ("", "yes"):
        states = collections.Counter(row.state for row in rows if row.scheduled == scheduled)
        print("scheduled:" if scheduled else "plain:", dict(states.most_common()))
    print(f"{lost} programs hold functions of tests, and were not recorded")


def read():
    from attempt import Row

    if not (RESULTS / "loopy.csv").exists():
        return []
    with (RESULTS / "loopy.csv").open() as file:
        return [Row(**row) for row in csv.DictReader(file)]


def write(rows) -> None:
    with (RESULTS / "loopy.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in dataclasses.fields(rows[0])], lineterminator="\n")
        writer.writeheader()
        writer.writerows(dataclasses.asdict(row) for row in rows)


def report(options: argparse.Namespace) -> None:
    from report import page

    times = RESULTS / "loopy_times.csv"
    with times.open() if times.exists() else contextlib.nullcontext([]) as file:
        (RESULTS / "loopy.md").write_text(page(read(), list(csv.DictReader(file))))


def time(options: argparse.Namespace) -> None:
    from timed import write

    write(RESULTS / "loopy_times.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("record")
    first.add_argument("loopy", type=Path, help="a checkout of Loopy")
    first.add_argument("--out", type=Path, required=True, help="the directory of the recording")
    first.add_argument("pytest", nargs="*", help="further arguments of pytest")
    first.set_defaults(run=record)
    second = commands.add_parser("compare")
    second.add_argument("recording", type=Path)
    second.add_argument("--only", nargs="*", default=[])
    second.add_argument("--keep", nargs="*", default=[], help="keep rows of these states, such as `equal`")
    second.add_argument("--jobs", type=int, default=2)
    second.add_argument("--devices", nargs="*", default=["c", "opencl"])
    second.set_defaults(run=compare)
    commands.add_parser("time").set_defaults(run=time)
    commands.add_parser("report").set_defaults(run=report)
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Loopy prints sets in the order of their hashes, by which programs are told apart and numbered
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})
    options.run(options)


if __name__ == "__main__":
    main()
