"""Forks and signals."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from test_compile import DEVICES

HERE = os.path.dirname(__file__)
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="skipped: this system has no fork")

BEGIN = """
import os, signal, sys, threading, time
import numpy as np, kingpost
from test_compile import AXPY, scheduled
def run(kernel, n=1000):
    y = np.zeros(n)
    kernel(a=2.0, x=np.ones(n), y=y)
    assert y.tolist() == [2.0] * n
def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs is killed
        try:
            work()
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
"""


def script(text, threads="2"):
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(text)]
    run = subprocess.run(
        command, env=os.environ | {"OMP_NUM_THREADS": threads}, cwd=HERE, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_a_child_runs_kernels_as_its_parent(threads):
    """libgomp's threads are gone in a child, of which it knows nothing."""
    script(
        """
        kernel = scheduled("c")
        for _ in range(3):
            run(kernel)
        def grandchild():
            run(kernel)
            run(scheduled("c"))          # compiled before
            run(kingpost.compile(AXPY.replace("axpy", "fresh")))  # and in the child
            assert in_child(lambda: [run(kernel) for _ in range(3)]) == 0
            run(kernel)
        assert in_child(grandchild) == 0
        assert in_child(lambda: run(kernel)) == 0
        run(kernel)
        """,
        threads,
    )


def test_a_child_may_be_born_while_kernels_run():
    """No lock of another thread's stays closed in the child."""
    script(
        """
        kernel, stop = scheduled("c"), threading.Event()
        def work():
            while not stop.is_set():
                run(kernel, 20_000)
        threads = [threading.Thread(target=work) for _ in range(3)]
        [t.start() for t in threads]
        codes = [in_child(lambda: run(kernel)) for _ in range(20)]
        stop.set()
        [t.join() for t in threads]
        assert codes == [0] * 20, codes
        """
    )


def test_threads_may_call_a_kernel_for_the_first_time_at_once():
    """What an argument is, objects of Python are asked; other threads go on meanwhile."""
    script(
        """
        signal.alarm(60)  # threads that wait for each other are killed
        class Slow(float):
            @property
            def __cuda_array_interface__(self):
                time.sleep(0.2)
                raise AttributeError
        kernel, right = scheduled("c"), []
        def work():
            y = np.zeros(1000)
            kernel(a=Slow(2.0), x=np.ones(1000), y=y)
            right.append(y.tolist() == [2.0] * 1000)
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert right == [True] * 4, right
        """
    )


def test_a_child_may_be_born_while_a_solve_asks_for_signals():
    """Who asks waits for Python's lock, and a thread that forks has it."""
    script(
        """
        n = 100_000
        matrix = kingpost.Csr(np.arange(n + 1), np.arange(n), 1.0 + np.arange(n))
        stop = threading.Event()
        def work():
            while not stop.is_set():
                kingpost.solve(matrix, np.ones(n), preconditioner="none", relative=1e-15, max_iterations=300)
        threads = [threading.Thread(target=work) for _ in range(2)]
        [t.start() for t in threads]
        for _ in range(40):
            assert in_child(lambda: None) == 0
            time.sleep(0.03)
        stop.set()
        [t.join() for t in threads]
        """
    )


def test_solves_go_on_in_a_child():
    script(
        """
        n = 5000
        matrix = kingpost.Csr(np.arange(n + 1), np.arange(n), np.full(n, 2.0))
        def solve():
            found = kingpost.solve(matrix, np.ones(n), preconditioner="amg")
            assert found.converged and np.allclose(found.x, 0.5)
        solve()
        def twice():
            solve()
            assert in_child(solve) == 0
            solve()
        assert in_child(twice) == 0
        """
    )


def test_forms_are_compiled_and_assembled_in_a_child():
    """Work that is divided among threads on the host is that of the child's."""
    script(
        """
        import ufl
        from basix.ufl import element
        from test_operator import square
        domain = ufl.Mesh(element("P", "triangle", 1, shape=(2,)))
        space = ufl.FunctionSpace(domain, element("P", "triangle", 1))
        u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
        x, cells = square(40)
        def assemble(form):
            matrix = kingpost.jit(form, matrix="sparse").assemble(x=x, x_dofs=cells, p1_dofs=cells)
            return matrix.data.sum()
        mass = u * v * ufl.dx
        assert abs(assemble(mass) - 1.0) < 1e-12
        def child():
            assert abs(assemble(mass) - 1.0) < 1e-12
            assert abs(assemble(2 * mass) - 2.0) < 1e-12
        assert in_child(child) == 0
        """
    )


@pytest.mark.skipif("opencl" not in DEVICES, reason="skipped: no OpenCL device")
def test_drivers_that_a_fork_loses_say_so():
    out = script(
        """
        kernel = scheduled("opencl")
        run(kernel)
        assert in_child(lambda: run(kernel)) == 3
        assert in_child(lambda: run(scheduled("c"))) == 0
        run(kernel)
        """
    )
    assert "DeviceError" in out and "was opened before this process was forked" in out


def interrupted(text, after, signals=(signal.SIGINT,)):
    """What a script prints that gets signals some seconds after its word `ready`, and how long it takes to end."""
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(text)]
    child = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n", child.communicate(timeout=60)
    time.sleep(after)
    start = time.monotonic()
    for number in signals:
        child.send_signal(number)
    out, err = child.communicate(timeout=120)
    return out, err, child.returncode, time.monotonic() - start


#: Seconds in which a signal is served: one, and what a busy machine and the end of the
#: interpreter take.
SOON = 5.0

SOLVE = """
    # far from converging: a residual of zero is what roundings do not allow
    n = 300_000
    starts = np.minimum(np.maximum(3 * np.arange(n + 1) - 1, 0), 3 * n - 2)
    rows = np.repeat(np.arange(n), np.diff(starts))
    columns = np.arange(3 * n - 2) - starts[rows] + np.maximum(rows - 1, 0)
    data = np.where(columns == rows, 2.0 + 1e-9, -1.0)
    matrix = kingpost.Csr(starts, columns, data)
    kingpost.solve(kingpost.Csr(np.arange(3), np.arange(2), np.ones(2)), np.ones(2))
    print("ready", flush=True)
    try:
        {call}
        print("ended", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


@pytest.mark.parametrize("method", ["cg", "bicgstab", "gmres"])
def test_a_solve_is_interrupted(method):
    call = f'kingpost.solve(matrix, np.ones(n), method="{method}", relative=0.0, max_iterations=10**9)'
    out, err, code, seconds = interrupted(SOLVE.format(call=call), 1.0)
    assert (out, code) == ("interrupted\n", 0), (out, err)
    assert seconds < SOON, seconds


def test_handlers_of_other_signals_run_during_a_solve():
    call = (
        'signal.signal(signal.SIGUSR1, lambda *_: print("served", flush=True)); '
        'kingpost.solve(matrix, np.ones(n), relative=0.0, max_iterations=10**9)'
    )
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(SOLVE.format(call=call))]
    child = subprocess.Popen(command, cwd=HERE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    time.sleep(1.0)
    child.send_signal(signal.SIGUSR1)
    assert child.stdout.readline() == "served\n"  # the solve goes on
    time.sleep(0.5)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60)[0] == "interrupted\n"


def test_a_tune_is_interrupted():
    text = """
        from test_operator import arrays
        op = kingpost.jit("mass", "c", degree=1)
        given, expected = arrays(op, 40)
        print("ready", flush=True)
        try:
            while True:
                kingpost.operator._cache.clear()
                op = kingpost.jit("mass", "c", degree=1)
                op.tune(np.zeros_like(expected), **given)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    for after in (0.3, 1.1):
        out, err, code, seconds = interrupted(text, after)
        assert (out, code) == ("interrupted\n", 0), (out, err)
        assert seconds < SOON, seconds


def test_a_compiler_is_ended_by_a_signal(tmp_path):
    """A compiler that takes a minute, which the work does not wait for."""
    slow = tmp_path / "cc"
    slow.write_text("#!/bin/sh\ncase \"$*\" in *--version*) echo slow 1.0 ;; *) exec sleep 60 ;; esac\n")
    slow.chmod(0o755)
    text = f"""
        os.environ["CC"] = {str(slow)!r}
        print("ready", flush=True)
        try:
            kingpost.compile(AXPY)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    out, err, code, seconds = interrupted(text, 1.0)
    assert (out, code) == ("interrupted\n", 0), (out, err)
    assert seconds < SOON, seconds
