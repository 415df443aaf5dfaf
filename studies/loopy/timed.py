"""Times of generated code: scripts of Loopy's tests by Loopy, imported, and as schedules of Kingpost's, in turn."""

from __future__ import annotations

import csv
import datetime
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import loopy as lp
import numpy as np
import pyopencl as cl
import pyopencl.array as cl_array

import kingpost

ROOT = Path(__file__).resolve().parents[2]
#: The sizes of the scripts, by name.
SIZES = {"axpy": 1 << 22, "transpose": 1024, "product": 256, "stencil": 1024, "bodies": 2048}
#: Rounds, in each of which every program is run once.
ROUNDS = 7
FIELDS = ["script", "size", "loopy_ms", "imported_ms", "schedule_ms", "device", "options", "date"]


def by_loopy(program: lp.TranslationUnit, given: dict[str, Any], queue: cl.CommandQueue) -> Any:
    """Runs Loopy's code and returns the seconds of the device's clock."""
    program = lp.set_options(program, return_dict=True)
    arrays = {n: cl_array.to_device(queue, v) if isinstance(v, np.ndarray) else v for n, v in given.items()}
    executor = program.executor(queue)

    def run() -> float:
        event, _ = executor(queue, **arrays)
        event.wait()
        return 1e-9*(event.profile.end - event.profile.start)

    return run


def times() -> list[dict[str, Any]]:
    """A row for each script: medians of the rounds."""
    sys.path.insert(0, str(ROOT / "python" / "tests"))
    from test_loopy_scripts import SCRIPTS

    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    found = []
    for script in SCRIPTS:
        size = SIZES[script.__name__]
        plain, loopy, steps, given, _ = script(size)
        schedule = kingpost.Schedule(kingpost.from_loopy(plain).kernel)
        steps(schedule)
        runs = [by_loopy(loopy, given, queue)]
        for kernel in (kingpost.from_loopy(loopy).kernel, schedule.kernel):
            compiled = kingpost.compile(kernel, "opencl")
            values = {name: value.copy() for name, value in given.items()}
            runs.append(lambda compiled=compiled, values=values: compiled.seconds(**values))
        rounds = [[run() for run in runs] for _ in range(ROUNDS + 1)][1:]
        medians = [f"{1e3*statistics.median(column):.2f}" for column in zip(*rounds)]
        device = f"{queue.device.name} ({queue.device.platform.version})"
        options, date = os.environ.get("POCL_EXTRA_BUILD_FLAGS", ""), datetime.date.today().isoformat()
        found.append(dict(zip(FIELDS, [script.__name__, size, *medians, device, options, date])))
        print(found[-1], flush=True)
    return found


def write(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(times())
