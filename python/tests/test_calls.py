"""Calls that are kept for later ones with the same arguments."""

import gc
import threading
import weakref

import numpy as np
import pytest

import kingpost
from test_compile import AXPY, ROWS
from test_operator import arrays as operands
from test_operator import spaces, square

COPY = """kernel copy
param n: i32
param m: i32
arg x: f64[n, m] in
arg y: f64[n, m] inout
for i in 0..n
  for j in 0..m
    s: y[i, j] = x[i, j]
"""


class Slow:
    """A compiled kernel, with the calls that were not kept."""

    def __init__(self, compiled):
        self.compiled, self.count = compiled, 0
        whole = compiled._run

        def counted(*given):
            self.count += 1
            return whole(*given)

        compiled._run = counted

    def __call__(self, *args, **kwargs):
        before = self.count
        self.compiled(*args, **kwargs)
        return self.count == before


def test_a_second_call_with_the_same_arrays_is_not_checked_again():
    axpy, x, y = Slow(kingpost.compile(AXPY)), np.arange(4.0), np.zeros(4)
    assert [axpy(a=2.0, x=x, y=y) for _ in range(3)] == [False, True, True]
    x += 1.0
    assert axpy(a=2.0, x=x, y=y)
    assert np.array_equal(y, 6 * np.arange(4.0) + 2 * (np.arange(4.0) + 1))
    # names in another order, or positions, are another call
    assert not axpy(a=2.0, y=y, x=x) and axpy(a=2.0, y=y, x=x)
    assert not axpy(2.0, x, y) and axpy(2.0, x, y)


def test_other_addresses_and_numbers_of_a_layout_are_bound_anew():
    axpy = Slow(kingpost.compile(AXPY))
    x, y = np.arange(4.0), np.zeros(4)
    axpy(2.0, x, y)
    for a in (3.0, -1, 3.0):  # an integer is a layout of its own
        other, found = np.random.default_rng(1).random(4), np.ones(4)
        axpy(a, other, found)
        assert np.array_equal(found, 1 + a * other)
    assert axpy.count == 2
    # what has gone and what came to its place: the same layout at the same address is the same call
    for k in range(40):
        given = np.full(4, float(k))
        axpy(1.0, given, y := np.zeros(4))
        assert np.array_equal(y, given)
        del given
    assert axpy.count == 2


def test_what_layouts_decide_is_checked_at_each_call():
    axpy, block = Slow(kingpost.compile(AXPY)), np.zeros(16)
    x, y = np.ones(4), block[:4]
    axpy(1.0, x, y)
    assert axpy(1.0, x, y)
    with pytest.raises(kingpost.ShapeError):
        axpy(1.0, x, block[:5])
    with pytest.raises(kingpost.LayoutError):
        axpy(1.0, x, block[:8:2])
    with pytest.raises(kingpost.DtypeError):
        axpy(1.0, x, y.view(np.int64))
    with pytest.raises(kingpost.AliasError):
        axpy(1.0, y, y)
    with pytest.raises(kingpost.AliasError):
        axpy(1.0, block[1:5], y)
    with pytest.raises(kingpost.DtypeError):
        axpy(1j, x, y)
    y.setflags(write=False)
    with pytest.raises(kingpost.ReadOnlyError):
        axpy(1.0, x, y)
    swapped = x.astype(">f8")
    with pytest.raises(kingpost.DtypeError):
        axpy(1.0, swapped, block[:4])
    bytes_ = np.zeros(40, np.uint8)
    with pytest.raises(kingpost.LayoutError):
        axpy(1.0, x, bytes_[4 - bytes_.ctypes.data % 8:][:32].view(np.float64))
    assert np.array_equal(block[:5], [2.0, 2.0, 2.0, 2.0, 0.0])


def test_parameters_that_are_given_belong_to_the_layout():
    text = AXPY.replace("f64[n] in", "f64[4] in").replace("f64[n] inout", "f64[4] inout")
    part, x, y = Slow(kingpost.compile(text.replace("param n: i32", "param n: i32\nassume n >= 0\nassume n <= 4"))), np.ones(4), np.zeros(4)
    for n in (2, 4, 2, 0, 4):
        part(a=1.0, x=x, y=y, n=n)
    assert y.tolist() == [4.0, 4.0, 2.0, 2.0] and part.count == 3
    with pytest.raises(kingpost.Error):
        part(a=1.0, x=x, y=y, n=5)


def test_strides_of_long_axes_tell_layouts_apart():
    copy, x = kingpost.compile(COPY), np.arange(12.0).reshape(3, 4)
    y = np.zeros((3, 4))
    copy(x, y)
    copy(x, y)
    with pytest.raises(kingpost.LayoutError):
        copy(np.asfortranarray(x), y)
    turned = np.zeros((4, 3))
    copy(np.ascontiguousarray(x.T), turned)
    assert np.array_equal(turned, x.T) and np.array_equal(y, x)


def test_a_kept_call_keeps_no_array():
    axpy, x, y = kingpost.compile(AXPY), np.ones(1000), np.zeros(1000)
    axpy(1.0, x, y)
    axpy(1.0, x, y)
    alive = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [one() for one in alive] == [None, None]


def test_records_arrays_of_one_number_and_lists_are_read_each_time():
    """What a call copies, or reads as a number, is not taken from an address."""
    axpy, x, y, a = Slow(kingpost.compile(AXPY)), np.ones(4), np.zeros(4), np.array(2.0)
    axpy(a, x, y)
    a[...] = 5.0
    axpy(a, x, y)
    assert y.tolist() == [7.0] * 4 and axpy.count == 2


def test_a_check_that_is_asked_for_later_is_made(monkeypatch):
    rows = kingpost.compile(ROWS)
    given = {"map": np.array([0, 1], np.int32), "x": np.ones((2, 3), np.float32), "y": np.zeros(2, np.float32)}
    rows(**given)
    rows(**given)
    monkeypatch.setenv("KINGPOST_CHECK", "1")
    given["map"][1] = 7
    with pytest.raises(kingpost.ArgumentError):
        rows(**given)
    with pytest.raises(kingpost.ArgumentError):
        kingpost.checked(rows)(**given)


def test_captures_take_kept_calls_down():
    axpy, x, y = kingpost.compile(AXPY), np.ones(4), np.zeros(4)
    axpy(1.0, x, y)
    call = kingpost.capture(lambda: axpy(1.0, x, y))
    assert y.tolist() == [1.0] * 4
    call()
    assert y.tolist() == [2.0] * 4


def test_operators_of_several_parts_keep_calls():
    ufl, _, p1, _ = spaces()
    u, v, k = ufl.Coefficient(p1), ufl.TestFunction(p1), ufl.Constant(p1.ufl_domain(), shape=(2,))
    op = kingpost.jit((u * v + ufl.dot(k, ufl.grad(u)) * v) * ufl.dx + 2 * u * v * ufl.ds, names={u: "u", k: "k"})
    x, cells = square(2)
    facets = {"facet_cells": np.array([0], np.int32), "local_facets": np.array([0], np.int32)}
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells, "u": np.linspace(0, 1, 9), "exterior_facets": facets}
    checked = kingpost.checked(op)
    constant = np.array([1.0, 2.0])
    for k_ in ({"k": constant}, {"k": [1.0, 2.0]}, {"k_0": 1.0, "k_1": 2.0}, {"k_0": 3.0, "k_1": 2.0}, {"k": constant}):
        constant[0] += 1.0  # values of constants are no addresses
        for other in (given, given | {"exterior_facets": {**facets, "local_facets": np.array([1], np.int32)}}):
            found, expected = np.zeros(9), np.zeros(9)
            for _ in range(2):
                op(found, **other, **k_)
                checked(expected, **other, **k_)
            assert np.array_equal(found, expected), k_


def test_the_calls_of_an_operator_are_found():
    op = kingpost.jit("laplace", "c", dim=2, degree=1)
    given, expected = operands(op)
    y, calls = np.zeros_like(expected), op._code[1]
    op(y, **given)
    assert calls.run((y,), given, None) and calls.run((y,), given, None)
    # sums of at most 18 products in f64
    assert np.allclose(y, 3 * expected, rtol=0, atol=1e-13)
    assert not calls.run((y,), {**given, "none": 1.0}, None) and not calls.run((), given, None)


def test_operators_made_of_another_one_have_calls_of_their_own():
    op = kingpost.jit("laplace", "c", dim=2, degree=1)
    given, expected = operands(op)
    (name,) = [name for name, value in given.items() if value.ndim == 1]
    y = np.zeros_like(expected)
    op(y, **given)
    op(y, **given)
    several = op.batched(name)
    with pytest.raises(kingpost.ShapeError):
        several(y, **given)
    found = np.zeros((2, *expected.shape))
    for _ in range(2):
        several(found, **given | {name: np.stack([given[name], 2 * given[name]])})
    assert np.allclose(found, np.stack([2 * expected, 4 * expected]), rtol=0, atol=1e-13)
    again = op.__copy__()
    again.tune(y, **given)
    again(y, **given)
    op(y, **given)
    assert np.allclose(y, 4 * expected, rtol=0, atol=1e-13)


def test_threads_find_calls_of_their_own():
    axpy, n = kingpost.compile(AXPY), 64
    found = [np.zeros(n) for _ in range(4)]

    def work(y):
        for k in range(200):
            axpy(float(k % 3), np.ones(n), y)

    threads = [threading.Thread(target=work, args=(y,)) for y in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(y, np.full(n, 199.0)) for y in found)
