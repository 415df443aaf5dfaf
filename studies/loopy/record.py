"""A plug-in of pytest that records the programs of Loopy's tests, and what they are called with.

`pytest -p record` with this directory on `PYTHONPATH`, and `RECORD` the directory to write to. Each line of a
file `events_*.pkl` is a pickle of a dictionary: `made` is a program as it was made, `used` one that a test
runs, compares or generates code of (after transformations), with the values it is called with.

`auto_test_vs_ref` only records: it would run each program twice, which the study does itself.
"""

import functools
import os
import pickle
import sys
import traceback
from pathlib import Path

import loopy as lp
import loopy.auto_test
import loopy.kernel.creation as creation
import loopy.version
import numpy as np
from loopy.target.c.c_execution import CExecutor
from loopy.target.pyopencl_execution import PyOpenCLExecutor

STATE = {"test": None, "depth": 0}
EVENTS = open(Path(os.environ["RECORD"]) / f"events_{os.getpid()}.pkl", "ab")  # noqa: SIM115 (open as long as pytest runs)
#: Arrays above this are recorded as type and shape, in bytes.
LARGE = 1_000_000


def note(kind, program, **more):
    """Records one event; what cannot be pickled is recorded as such."""
    event = dict(kind=kind, test=STATE["test"], at=place(), **more)
    try:
        data = pickle.dumps(dict(event, program=program))
    except Exception as error:  # noqa: BLE001 (programs hold functions of tests, whose pickling fails in any way)
        data = pickle.dumps(dict(kind=kind, test=STATE["test"], at=event["at"], unpicklable=f"{error}"[:200]))
    EVENTS.write(data)
    EVENTS.flush()


def place():
    """The line of the test."""
    for frame in reversed(traceback.extract_stack()):
        if Path(frame.filename).name.startswith("test"):
            return f"{Path(frame.filename).name}:{frame.lineno}"
    return "?"


def recorded(make, needs_version):
    @functools.wraps(make)
    def wrapped(*arguments, **named):
        if needs_version and "lang_version" not in named:
            # Loopy looks for the version in the frame of its caller, which is this one now
            for symbol in loopy.version.LANGUAGE_VERSION_SYMBOLS:
                if symbol in sys._getframe(1).f_globals:
                    named["lang_version"] = sys._getframe(1).f_globals[symbol]
                    break
        STATE["depth"] += 1
        try:
            program = make(*arguments, **named)
        finally:
            STATE["depth"] -= 1
        if STATE["depth"] == 0:
            note("made", program, maker=make.__name__)
        return program

    return wrapped


def small(value):
    """A value of a call: a number, a small array, or what an array is."""
    if hasattr(value, "get") and hasattr(value, "nbytes"):
        value = value.get() if value.nbytes < LARGE else ("array", str(value.dtype), tuple(value.shape))
    if isinstance(value, np.ndarray) and value.nbytes >= LARGE:
        return ("array", str(value.dtype), tuple(value.shape))
    return value if isinstance(value, int | float | complex | np.number | np.ndarray | tuple) else None


def record_calls(executor):
    call = executor.__call__

    def wrapped(self, *arguments, **named):
        values = {name: small(value) for name, value in named.items()}
        note("used", self.t_unit, by="call", values=values)
        return call(self, *arguments, **named)

    executor.__call__ = wrapped


def compared(reference, context, program=None, *arguments, parameters=None, **named):
    note("used", reference, by="reference", values=parameters or {})
    if program is not None:
        note("used", program, by="compare", values=parameters or {})
    figures = ("elapsed_event", "elapsed_event_marker", "elapsed_wall")
    return {prefix + figure: 1.0 for prefix in ("", "ref_") for figure in figures}


def generated(program, *arguments, **named):
    if STATE["depth"] == 0 and Path(sys._getframe(1).f_code.co_filename).name.startswith("test"):
        note("used", program, by="code", values={})
    return GENERATE(program, *arguments, **named)


for name in ("make_function", "make_kernel"):
    wrapped = recorded(getattr(creation, name), True)
    setattr(creation, name, wrapped)
    setattr(lp, name, wrapped)
for name in ("merge", "make_einsum", "make_copy_kernel", "parse_fortran", "parse_transformed_fortran"):
    setattr(lp, name, recorded(getattr(lp, name), False))
for executor in (PyOpenCLExecutor, CExecutor):
    record_calls(executor)
GENERATE = lp.generate_code_v2
lp.generate_code_v2 = generated
lp.auto_test_vs_ref = compared


def pytest_runtest_setup(item):
    STATE["test"] = item.nodeid


def pytest_runtest_teardown(item, nextitem):
    STATE["test"] = None
