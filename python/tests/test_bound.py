"""Calls whose arguments are bound once."""

import copy
import gc
import pickle
import sys
import threading
import types
import weakref

import numpy as np
import pytest

import kingpost
from kingpost import arrays
from test_arrays import Card, OldCard
from test_compile import AXPY, DEVICES, ROWS, scheduled
from test_operator import arrays as operands
from test_operator import spaces, square

HOST = [device for device in DEVICES if device != "cuda"]
#: A temporary in global memory between two launches.
STAGES = """kernel stages
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
temp t: f64[n] global

launch first
  for i in 0..n {g.0}
    double: t[i] = 2.0*x[i]
launch second
  for j in 0..n {g.0}
    reverse: y[j] += t[n - 1 - j]
"""


@pytest.mark.parametrize("device", HOST)
def test_what_the_arrays_hold_at_the_call_counts(device):
    x, y = np.arange(1000.0), np.zeros(1000)
    call = scheduled(device).bind(2.0, x, y)
    assert call() is None
    x += 1.0
    call()
    assert np.array_equal(y, 2 * np.arange(1000.0) + 2 * (np.arange(1000.0) + 1))
    assert call.stream is None and repr(call) == "<kingpost.BoundCall of a kernel>"


@pytest.mark.parametrize("device", HOST)
def test_launches_and_their_memory_are_bound(device):
    x, y = np.arange(70.0), np.zeros(70)
    call = kingpost.compile(STAGES, device).bind(x=x, y=y)
    call()
    call()
    assert np.array_equal(y, 4 * x[::-1])


@pytest.mark.parametrize("device", HOST)
def test_arguments_are_checked_when_they_are_bound(device):
    kernel, x = kingpost.compile(AXPY, device), np.ones(4)
    with pytest.raises(kingpost.ShapeError):
        kernel.bind(a=1.0, x=x, y=np.zeros(5))
    with pytest.raises(kingpost.MissingArgument, match="`a`"):
        kernel.bind(x=x, y=np.zeros(4))
    with pytest.raises(kingpost.AliasError):
        kernel.bind(a=1.0, x=x, y=x)
    with pytest.raises(kingpost.ArgumentError, match="x\\[2"):
        kingpost.checked(kingpost.compile(ROWS, device)).bind(
            map=np.array([0, 2], dtype=np.int32), x=np.ones((2, 3), dtype=np.float32), y=np.zeros(2, dtype=np.float32)
        )


def test_a_bound_call_keeps_its_arrays():
    x, y = np.ones(8), np.zeros(8)
    alive = weakref.ref(x)
    call = kingpost.compile(AXPY).bind(a=3.0, x=x, y=y)
    del x
    gc.collect()
    assert alive() is not None
    call()
    assert y.tolist() == [3.0] * 8
    del call
    gc.collect()
    assert alive() is None


def test_the_parts_of_a_form_are_one_call():
    ufl, _, p1, _ = spaces()
    u, v = ufl.Coefficient(p1), ufl.TestFunction(p1)
    op = kingpost.jit(u * v * ufl.dx + 2 * u * v * ufl.ds, names={u: "u"})
    x, cells = square(2)
    facets = {"facet_cells": np.array([0], np.int32), "local_facets": np.array([0], np.int32)}
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells, "u": np.linspace(0, 1, 9), "exterior_facets": facets}
    once, found = np.zeros(9), np.zeros(9)
    op(once, **given)
    call = op.bind(found, **given)
    call()
    assert once.any() and np.array_equal(found, once)
    assert repr(call) == "<kingpost.BoundCall of 2 kernels>"


@pytest.mark.parametrize("device", HOST)
def test_a_bound_operator_adds_what_a_call_adds(device):
    op = kingpost.jit("laplace", device, dim=2, degree=1)
    given, expected = operands(op)
    y = np.zeros_like(expected)
    call = op.bind(y, **given)
    call()
    call()
    assert np.allclose(y, 2 * expected, rtol=0, atol=1e-13)


def test_threads_share_a_bound_call():
    x, y = np.ones(1000), np.zeros(1000)
    call = scheduled("c").bind(1.0, x, y)
    threads = [threading.Thread(target=lambda: [call() for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert y.tolist() == [200.0] * 1000


def test_a_library_tells_its_current_stream(monkeypatch):
    assert arrays.current_stream(np.ones(3)) is None
    assert arrays.current_stream(OldCard(3, stream=7)) == 7
    assert arrays.current_stream(OldCard(3, stream=None)) is None
    assert arrays.current_stream(OldCard(2, stream=7)) is None
    side = types.SimpleNamespace(cuda_stream=0)

    class Tensor(Card):
        is_cuda, device = True, "cuda:0"

    torch = types.ModuleType("torch")
    torch.Tensor = Tensor
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: side)
    monkeypatch.setitem(sys.modules, "torch", torch)
    tensor = Tensor(np.ones(3))
    assert arrays.current_stream(tensor) == arrays.LEGACY
    side.cuda_stream = 94
    assert arrays.current_stream(tensor) == 94
    tensor.is_cuda = False
    assert arrays.current_stream(tensor) is None


class Recorder:
    """What stands for a program of a card, and writes down what it is asked to launch."""

    target, shares, device, keeps = "cuda", (False, True), ("cuda:0", "a card"), False
    arguments = [
        ("x", "array", "f64", ["4"], True, False),
        ("y", "array", "f64", ["4"], True, True),
    ]

    def __init__(self):
        self.launched = []

    def launch(self, given, numbers, stream):
        self.launched.append((stream, [array[-1] for array in given]))


def on(stream):
    return OldCard(3, stream=stream)


@pytest.mark.parametrize(
    ("x", "y", "named", "launched"),
    [
        (on(7), on(7), None, (7, [7, 7])),
        (on(7), on(9), None, (9, [7, 9])),  # the stream of the results; the runtime waits for the other
        (on(7), on(None), None, (7, [7, None])),
        (on(None), on(None), None, (None, [None, None])),
        (OldCard(2), on(9), None, (None, [arrays.UNKNOWN, 9])),  # to the end, after all streams of the card
        (OldCard(2), on(9), 5, (5, [arrays.UNKNOWN, 9])),
    ],
)
def test_a_call_runs_on_the_stream_of_the_results(x, y, named, launched):
    program = Recorder()
    kingpost.Compiled(program)(x=x, y=y, stream=named)
    assert program.launched == [launched]


@pytest.mark.parametrize("device", HOST)
def test_a_captured_call_is_replayed(device):
    x, y = np.arange(1000.0), np.zeros(1000)
    call = scheduled(device).capture(2.0, x, y)
    assert not y.any() and not call.is_graph  # which only cards have
    x += 1.0
    call()
    call()
    assert np.array_equal(y, 4 * (np.arange(1000.0) + 1))


@pytest.mark.parametrize("device", HOST)
def test_a_function_of_several_calls_is_captured(device):
    """Calls of kernels, operators and bound calls, in order, with what the arrays hold at the replay."""
    axpy, op = kingpost.compile(AXPY, device), kingpost.jit("laplace", device, dim=2, degree=1)
    given, expected = operands(op)
    (name,) = [name for name, value in given.items() if value.ndim == 1]
    u, y, total = given[name], np.zeros_like(expected), np.zeros_like(expected)
    scale = axpy.bind(a=-1.0, x=y, y=y.copy())
    ran = []

    def step():
        op(y, **given)
        axpy(a=1.0, x=y, y=total)
        scale()
        ran.append(True)

    call = kingpost.capture(step)
    assert ran == [True] and not y.any() and not total.any()
    assert repr(call) == "<kingpost.BoundCall of 3 kernels>"
    call()
    # sums of at most 18 products in f64
    assert np.allclose(total, expected, rtol=0, atol=1e-13)
    u *= 2.0
    y[:] = 0.0
    call()
    assert np.allclose(total, 3 * expected, rtol=0, atol=1e-13) and ran == [True]
    # after it, calls run again
    axpy(a=1.0, x=y, y=total)
    assert np.allclose(total, 5 * expected, rtol=0, atol=1e-13)


def test_captures_of_threads_are_apart():
    """What another thread calls meanwhile runs."""
    axpy = kingpost.compile(AXPY)
    x, y, other = np.ones(8), np.zeros(8), np.zeros(8)

    def captured():
        axpy(a=1.0, x=x, y=y)
        thread = threading.Thread(target=lambda: (axpy(a=1.0, x=x, y=other), axpy.bind(a=1.0, x=x, y=other)()))
        thread.start()
        thread.join()

    call = kingpost.capture(captured)
    assert other.tolist() == [2.0] * 8 and not y.any()
    call()
    assert y.tolist() == [1.0] * 8


def test_what_is_no_capture_is_refused():
    axpy = kingpost.compile(AXPY)
    with pytest.raises(kingpost.ArgumentError, match="the function makes no call"):
        kingpost.capture(lambda: None)
    with pytest.raises(kingpost.ArgumentError, match="capture: found a `int`, needed a function that makes calls"):
        kingpost.capture(3)
    with pytest.raises(kingpost.ArgumentError, match="a capture is under way in this thread"):
        kingpost.capture(lambda: kingpost.capture(lambda: None))
    y = np.zeros(4)
    with pytest.raises(kingpost.ShapeError):
        kingpost.capture(lambda: axpy(a=1.0, x=np.ones(3), y=y))
    axpy(a=1.0, x=np.ones(4), y=y)  # no capture is under way
    assert y.tolist() == [1.0] * 4


@pytest.mark.parametrize("device", HOST)
def test_what_is_compiled_is_pickled_and_copied(device):
    """A schedule, a kernel and an operator of several parts, checked ones too, compute the same elsewhere."""
    x, y, found = np.arange(1000.0), np.zeros(1000), np.zeros(1000)
    axpy = scheduled(device)
    axpy(2.0, x, y)
    for again in (pickle.loads(pickle.dumps(axpy)), copy.copy(axpy), copy.deepcopy(axpy)):
        found[:] = 0.0
        again(2.0, x, found)
        assert np.array_equal(found, y) and again.source == axpy.source and again.recipe == axpy.recipe
    plain = pickle.loads(pickle.dumps(kingpost.compile(AXPY, device, contraction=False)))
    plain(a=1.0, x=x, y=found)
    assert "axpy" in plain.source

    ufl, _, p1, _ = spaces()
    u, v, k = ufl.Coefficient(p1), ufl.TestFunction(p1), ufl.Constant(p1.ufl_domain(), shape=(2,))
    form = (u * v + ufl.dot(k, ufl.grad(u)) * v) * ufl.dx + 2 * u * v * ufl.ds
    op = kingpost.jit(form, device, names={u: "u", k: "k"}, mapping={"strategy": "single_cell", "cells": 4})
    x, cells = square(2)
    facets = {"facet_cells": np.array([0], np.int32), "local_facets": np.array([0], np.int32)}
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells, "u": np.linspace(0, 1, 9), "k": [1.0, 2.0]}
    given["exterior_facets"] = facets
    expected = np.zeros(9)
    op(expected, **given)
    for again in (pickle.loads(pickle.dumps(op)), copy.copy(op), copy.deepcopy(op)):
        result = np.zeros(9)
        again(result, **given)
        # atomic updates come in any order
        assert np.allclose(result, expected, rtol=0, atol=1e-15)
        assert [part.mapping for part in again.parts] == [part.mapping for part in op.parts]
    careful = pickle.loads(pickle.dumps(kingpost.checked(op)))
    with pytest.raises(kingpost.ArgumentError):
        careful(np.zeros(9), **given | {"p1_dofs": cells + 5})


def test_what_cannot_be_pickled_says_so():
    call = kingpost.compile(AXPY).bind(a=1.0, x=np.ones(4), y=np.zeros(4))
    with pytest.raises(TypeError, match="cannot pickle 'kingpost.BoundCall' object"):
        pickle.dumps(call)
    op = kingpost.Operator([], "c", None)
    with pytest.raises(TypeError, match="an operator of forms in memory cannot be pickled; make it by `kingpost.jit`"):
        pickle.dumps(op)
