"""Kernels whose strides are parameters run on views of NumPy's without a copy, and refuse what overlaps."""

import itertools
import warnings

import numpy as np
import pytest

import kingpost

DEVICES = ["c", "opencl"]

TWO = """
kernel scaled

param n: i32
param m: i32
param s: i64
param t: i64
param q: i64
param r: i64
arg x: f64[n, m] in strides(q, r)
arg y: f64[n, m] inout strides(s, t)

for i in 0..n {g.0}
  for j in 0..m
    a: y[i, j] += 3.0*x[i, j]
"""

THREE = """
kernel planes

param n: i32
param m: i32
param k: i32
param s0: i64
param s1: i64
param s2: i64
arg y: f32[n, m, k] inout strides(s0, s1, s2)

for i in 0..n
  for j in 0..m
    for l in 0..k
      a: y[i, j, l] = 2.0*y[i, j, l] + f32(100*i + 10*j + l)
"""

VIEWS = {
    "rows": lambda a: a,
    "fortran": lambda a: np.asfortranarray(a),
    "every_other_row": lambda a: np.repeat(a, 2, axis=0)[::2, :],
    "every_third_column": lambda a: np.repeat(a, 3, axis=1)[:, ::3],
    "columns_of_a_wider_one": lambda a: np.pad(a, ((0, 0), (2, 5)))[:, 2:-5],
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "steps_of_fortran": lambda a: np.asfortranarray(np.repeat(np.repeat(a, 2, axis=0), 2, axis=1))[::2, ::2],
}


@pytest.fixture(scope="module", params=DEVICES)
def scaled(request):
    return kingpost.compile(TWO, request.param)


@pytest.mark.parametrize("written, read", itertools.product(VIEWS, VIEWS))
def test_views_run_without_a_copy(scaled, written, read):
    x, y = np.arange(12.0).reshape(4, 3), np.linspace(-1.0, 1.0, 12).reshape(4, 3)
    view, given = VIEWS[written](y.copy()), VIEWS[read](x)
    base = view if view.base is None else view.base
    outside = base.sum() - view.sum()
    with warnings.catch_warnings():
        warnings.simplefilter("error", kingpost.CopyWarning)
        scaled(x=given, y=view)
    assert np.array_equal(view, y + 3.0*x)
    assert np.isclose(base.sum() - view.sum(), outside)  # 1e-8: sums of at most 48 numbers below 40


@pytest.mark.parametrize("shape", [(1, 3), (4, 1), (1, 1), (0, 3), (4, 0), (1, 0)])
def test_an_axis_without_neighbours_has_any_stride(scaled, shape):
    x, y = np.ones(shape), np.zeros(shape)
    for view in (y, y.T.copy().T, np.lib.stride_tricks.as_strided(y, shape, (0 if shape[0] < 2 else 8*shape[1], 8))):
        view[...] = 0.0
        scaled(x=x, y=view)
        assert np.array_equal(view, 3.0*x)


def test_elements_that_are_only_read_may_share_places(scaled):
    y = np.zeros((4, 3))
    row, windows = np.arange(3.0), np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3)
    for x in (np.broadcast_to(row, (4, 3)), np.broadcast_to(row[:, None], (3, 4)).T, np.broadcast_to(2.0, (4, 3)), windows):
        y[:] = 0.0
        scaled(x=x, y=y)
        assert np.array_equal(y, 3.0*x)


def test_outputs_that_overlap_are_refused(scaled):
    x, room = np.ones((4, 3)), np.zeros(50)
    for strides in [(8, 8), (16, 8), (0, 8), (8, 24), (24, 0)]:
        view = np.lib.stride_tricks.as_strided(room, (4, 3), strides)
        with pytest.raises(kingpost.LayoutError, match=r"strides\(s, t\) of y\[n, m\] keep elements apart.*n = 4.*a copy") as found:
            scaled(x=x, y=view)
        assert found.value.argument == "y"
    with pytest.raises(kingpost.LayoutError, match=r"strides\(s, t\) of y"):
        scaled(x=x, y=np.zeros((4, 3))[::-1])
    with pytest.raises(kingpost.LayoutError, match=r"strides\(q, r\) of x\[n, m\] are not negative"):
        scaled(x=x[:, ::-1], y=np.zeros((4, 3)))
    assert not room.any()


@pytest.mark.parametrize("device", DEVICES)
def test_axes_of_three_dimensions_in_any_order(device):
    planes = kingpost.compile(THREE, device)
    i, j, k = np.ogrid[:2, :3, :4]
    for order in itertools.permutations(range(3)):
        for step in (1, 2):
            big = np.ones([step*n for n in np.array((2, 3, 4))[list(order)]], np.float32)
            view = big[::step, ::step, ::step].transpose(np.argsort(order))
            assert view.shape == (2, 3, 4)
            planes(y=view)
            assert np.array_equal(view, (2 + 100*i + 10*j + k).astype(np.float32))
            assert big.sum() == view.sum() + big.size - view.size
    with pytest.raises(kingpost.LayoutError, match=r"strides\(s0, s1, s2\) of y\[n, m, k\]"):
        planes(y=np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (2, 3, 4), (4, 8, 16)))


def test_products_of_parameters_prove_strides():
    text = THREE.replace("arg y", "param d: i64 = s1*m\narg y").replace(
        "strides(s0, s1, s2)", "strides(s0, s1, 1)\nassume s1 >= k\nassume s0 >= d"
    ).replace("param s2: i64\n", "")
    planes = kingpost.compile(text, "c")
    y = np.ones((4, 5, 6), np.float32)[:2, :3, :4]
    planes(y=y)
    assert y[1, 2, 3] == 125
    with pytest.raises(kingpost.ArgumentError, match="relies on"):
        planes(y=np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (2, 3, 4), (32, 16, 4)))


def test_loopy_takes_strides_from_its_arrays():
    lp = pytest.importorskip("loopy")
    arguments = [
        lp.GlobalArg("x", np.float64, shape="n,m", dim_tags="stride:auto,stride:auto"),
        lp.GlobalArg("y", np.float64, shape="n,m", dim_tags="stride:auto,stride:1"),
        "...",
    ]
    domain = "{[i,j]: 0<=i<n and 0<=j<m}"
    program = kingpost.from_loopy(lp.make_kernel(domain, "y[i,j] = 3*x[i,j]", arguments, lang_version=(2018, 2)))
    assert "arg y: f64[n, m] inout strides(stride_y_0, 1)" in program.text
    x, whole = np.arange(12.0).reshape(3, 4).T, np.zeros((4, 10))
    program.compile("c")(x=x, y=whole[:, 2:5])
    assert np.array_equal(whole[:, 2:5], 3.0*x) and whole.sum() == 3.0*x.sum()
    with pytest.raises(kingpost.LayoutError, match="keep elements apart"):
        program.compile("c")(x=x, y=np.lib.stride_tricks.as_strided(whole, (4, 3), (8, 8)))
