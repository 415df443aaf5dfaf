"""Compiled kernels on arrays of several kinds."""

import array
import doctest
import sys
import threading
import warnings

import numpy as np
import pytest

import kingpost

AXPY = """kernel axpy
param n: i32
arg a: f64 in
arg x: f64[n] in
arg y: f64[n] inout

for i in 0..n
  s: y[i] += a*x[i]
"""

ROWS = """kernel rows
param n: i32
param m: i32
arg x: f32[n, m] in
arg map: i32[n] in
arg y: f32[n] out

for i in 0..n
  z: y[i] = 0.0
  for j in 0..m
    s: y[i] += x[map[i], j]
"""

DEVICES = [name for name in ("c", "opencl", "cuda") if any(d.split(":")[0] == name for d in kingpost.devices())]


def scheduled(device):
    s = kingpost.Schedule(AXPY)
    i_o, i_i = s.split("i", 64)
    s.tag(i_o, "g.0")
    s.tag(i_i, "l.0")
    return kingpost.compile(s, device)


COPY = """kernel copy
param n: i32
arg x: f64[n, 32] in
arg y: f64[n, 32] out
temp t: f64[32] local

for g in 0..n {g.0}
  for l in 0..32
    copy: t[l] = x[g, l]
  for i in 0..32 {l.0}
    use: y[g, i] = t[31 - i]
"""


@pytest.mark.parametrize("device", DEVICES)
def test_what_nobody_expects_is_noted(device):
    (note,) = kingpost.compile(kingpost.Kernel.parse(COPY), device).notes
    assert note.startswith("`l` runs on one work-item of a group, at index 0 of l.0: `copy`")
    assert scheduled(device).notes == ()


@pytest.mark.parametrize("device", DEVICES)
def test_results_are_written_in_place(device):
    axpy = scheduled(device)
    x, y = np.arange(1000.0) / 8, np.arange(1000.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kingpost.CopyWarning)
        assert axpy(a=2.5, x=x, y=y) is None
        axpy(1, x, y)
    assert np.array_equal(y, (np.arange(1000.0) + 2.5 * x) + x)


@pytest.mark.parametrize("device", [d for d in DEVICES if d != "cuda"])
def test_nothing_is_copied_on_the_host(device):
    axpy = scheduled(device)
    x, y = np.ones(10), np.zeros(10)
    with warnings.catch_warnings():
        warnings.simplefilter("error", kingpost.CopyWarning)
        axpy(a=1.0, x=x, y=y)
    assert y.sum() == 10


def test_a_compiled_kernel_says_what_it_is():
    axpy = scheduled("c")
    assert axpy.target == "c" and axpy.device == "c"
    assert "axpy_launch" in axpy.source
    assert axpy.recipe.splitlines()[0] == "split_iname(i, factor: 64)"
    assert axpy.kernel == axpy.steps()[-1].kernel
    assert [str(a) for a in axpy.arguments] == ["n: i32", "a: f64", "x: f64[n]", "y: f64[n] inout"]
    assert repr(axpy) == "<kingpost.Compiled axpy(n: i32, a: f64, x: f64[n], y: f64[n] inout) for c>"
    assert "axpy" in axpy._repr_html_()
    assert "__global__" in kingpost.source(AXPY, "cuda")
    with pytest.raises(kingpost.Unavailable, match="no target `metal`; there are `cuda`, `hip`, `opencl`, `c`"):
        kingpost.source(AXPY, "metal")
    with pytest.raises(kingpost.Unavailable, match="no device `metal`; there are: "):
        kingpost.compile(AXPY, "metal")


class OnlyInterface:
    """An array that has nothing but `__array_interface__`."""

    def __init__(self, values):
        self.__array_interface__ = values.__array_interface__
        self.values = values


class OnlyDlpack:
    """An array that has nothing but DLPack."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **kwargs):
        return self.values.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


@pytest.mark.parametrize("wrap", [OnlyInterface, OnlyDlpack, memoryview])
def test_arrays_by_each_protocol(wrap):
    x, y = np.arange(7.0), np.ones(7)
    kingpost.compile(AXPY)(a=3.0, x=wrap(x), y=wrap(y))
    assert np.array_equal(y, 1 + 3 * x)


def test_arrays_without_numpy():
    x, y = array.array("d", [1, 2, 3]), array.array("d", [0, 0, 0])
    kingpost.compile(AXPY)(a=2.0, x=x, y=y)
    assert y.tolist() == [2, 4, 6]


def test_several_parameters_follow_from_shapes():
    rows = kingpost.compile(ROWS)
    x, order = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([3, 2, 1, 0], dtype=np.int32)
    y = np.empty(4, dtype=np.float32)
    rows(x=x, map=order, y=y)
    assert np.array_equal(y, x.sum(axis=1)[::-1])
    rows(x=x, map=order, y=y, n=4, m=3)
    assert np.array_equal(y, x.sum(axis=1)[::-1])


def test_empty_arrays_do_nothing():
    kingpost.compile(AXPY)(a=1.0, x=np.empty(0), y=np.empty(0))


def fails(error, message, argument, **changed):
    given = {"a": 1.0, "x": np.ones(4), "y": np.ones(4), **changed}
    given = {name: value for name, value in given.items() if value is not None}
    with pytest.raises(error) as caught:
        kingpost.compile(AXPY)(**given)
    assert str(caught.value) == message
    assert caught.value.argument == argument
    assert isinstance(caught.value, kingpost.ArgumentError)


def test_wrong_arrays_name_their_argument():
    fails(
        kingpost.DtypeError,
        "argument `x` of `axpy` has elements of type f32, needed f64",
        "x",
        x=np.ones(4, dtype=np.float32),
    )
    fails(
        kingpost.DtypeError,
        "argument `x` has elements of type `<c32`, needed one of bf16, bool, c128, c64, f16, f32, f64, i16, i32, i64, i8, u16, u32, u64, u8",
        "x",
        x=np.ones(4, dtype=np.clongdouble),
    )
    fails(
        kingpost.ShapeError,
        "argument `y` of `axpy` has shape (5,), needed (4,) (n = 4, as `x` says)",
        "y",
        y=np.ones(5),
    )
    fails(
        kingpost.ShapeError,
        "argument `x` of `axpy` has shape (2, 2), needed (n,)",
        "x",
        x=np.ones((2, 2)),
    )
    fails(
        kingpost.LayoutError,
        "argument `x` of `axpy` has strides [16] in bytes, needed [8]; pass a contiguous copy",
        "x",
        x=np.ones(8)[::2],
    )
    fixed = np.ones(4)
    fixed.flags.writeable = False
    fails(
        kingpost.ReadOnlyError,
        "argument `y` of `axpy` is written, and the array is read-only; pass a writable array",
        "y",
        y=fixed,
    )
    fails(kingpost.DtypeError, "argument `y` of `axpy` is a number, needed an array of f64 and shape [n]", "y", y=1.0)
    fails(kingpost.ArgumentError, "argument `a` is an array of shape (2,), needed a number", "a", a=np.ones(2))


def test_read_only_inputs_are_taken():
    x, y = np.ones(4), np.zeros(4)
    x.flags.writeable = False
    kingpost.compile(AXPY)(a=1.0, x=x, y=y)
    assert y.sum() == 4


def test_wrong_names_and_numbers():
    fails(
        kingpost.MissingArgument,
        "`axpy` needs argument `a`, a number of type f64; give a=",
        "a",
        a=None,
    )
    fails(
        kingpost.UnknownArgument,
        "`axpy` takes no argument `alpha`; it takes `n`, `a`, `x`, `y`",
        "alpha",
        alpha=2.0,
    )
    fails(
        kingpost.ShapeError,
        "argument `x` of `axpy` has shape (4,), needed (3,) (n = 3 as given)",
        "x",
        n=3,
    )
    with pytest.raises(kingpost.ArgumentError, match="argument `a` of `axpy` was given twice; give it once"):
        kingpost.compile(AXPY)(1.0, a=2.0, x=np.ones(1), y=np.ones(1))
    with pytest.raises(kingpost.UnknownArgument, match=r"takes 3 arguments by position \(`a`, `x`, `y`\), 4 were"):
        kingpost.compile(AXPY)(1.0, np.ones(1), np.ones(1), 7)
    with pytest.raises(kingpost.MissingArgument, match="parameter `m` of `rows` has no value") as caught:
        kingpost.compile(ROWS)(map=np.zeros(2, dtype=np.int32), y=np.zeros(2, dtype=np.float32))
    assert caught.value.argument == "m"


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
@pytest.mark.parametrize("wrap", [lambda a: a, memoryview, OnlyDlpack], ids=["numpy", "buffer", "dlpack"])
def test_arrays_of_every_integer_type(device, dtype, wrap):
    name = dtype if dtype == "bool" else dtype.replace("uint", "u").replace("int", "i")
    if name in ("u32", "u64"):
        text, result = "x[i] + 1", lambda x: x + np.ones(1, dtype=dtype)
    elif name == "bool":
        text, result = "not x[i]", np.logical_not
    else:
        text, result = "x[i] - x[0]", lambda x: x - x[0]
    source = f"kernel k\nparam n: i32\narg x: {name}[n] in\narg y: {name}[n] inout\nfor i in 0..n {{g.0}}\n  y[i] = {text}\n"
    x = np.array([0, 1, 0, 1] if name == "bool" else [3, 9, 120, 3]).astype(dtype)
    if name in ("u32", "u64"):
        x[0] = np.iinfo(dtype).max
    y = np.zeros(4, dtype=dtype)
    kingpost.compile(source, device)(x=wrap(x), y=y)
    assert y.tolist() == result(x).tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_arrays_of_halves(device):
    source = "kernel k\nparam n: i32\narg x: f32[n] in\narg y: f16[n] inout\nfor i in 0..n {g.0}\n  y[i] += x[i]\n"
    x = np.array([0.1, 70000.0, -1e-9, 1.0 + 2.0**-11], dtype=np.float32)
    y = np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float16)
    expected = (y.astype(np.float32) + x).astype(np.float16)
    kingpost.compile(source, device)(x=x, y=y)
    assert y.tobytes() == expected.tobytes()


def test_upper_halves_by_dlpack():
    torch = pytest.importorskip("torch")
    source = "kernel k\nparam n: i32\narg y: bf16[n] inout\nfor i in 0..n\n  y[i] += 0.1\n"
    y = torch.tensor([1.0, 256.0, -3.0], dtype=torch.bfloat16)
    expected = (y.float() + torch.tensor(0.1)).bfloat16()
    kingpost.compile(source)(y=y)
    assert torch.equal(y, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("wrap", [lambda a: a, memoryview, OnlyDlpack], ids=["numpy", "buffer", "dlpack"])
def test_arrays_of_complex_numbers(device, dtype, wrap):
    name, real = ("c64", "float32") if dtype == "complex64" else ("c128", "float64")
    # on both sides of the cut of the root, which the sign of a zero tells
    x = np.array([1 + 2j, complex(-4.0, 0.0), complex(-4.0, -0.0), -3 + 4j], dtype=dtype)
    source = (
        f"kernel k\nparam n: i32\narg a: {name} in\narg x: {name}[n] in\narg y: {name}[n, 4] out\n"
        f"arg d: {name}[1] inout\nfor i in 0..n {{g.0}}\n  y[i, 0] = x[i]*a\n  y[i, 1] = x[i]/a\n"
        "  y[i, 2] = sqrt(x[i])\n  y[i, 3] = exp(conj(x[i]))\nd[0] += sum(k in 0..n: conj(x[k])*x[k])\n"
    )
    y, d, a = np.zeros((4, 4), dtype=dtype), np.ones(1, dtype=dtype), 0.5 - 1j
    kingpost.compile(source, device)(a=np.dtype(dtype).type(a), x=wrap(x), y=y, d=d)
    expected = np.stack([x * a, x / a, np.sqrt(x), np.exp(np.conj(x))], axis=1)
    tolerance = 8 * np.finfo(real).eps * np.abs(expected).max()
    assert np.abs(y - expected).max() <= tolerance
    assert np.abs(d[0] - (1 + np.vdot(x, x))) <= 64 * np.finfo(real).eps * 60


def test_complex_numbers_are_no_reals():
    source = "kernel k\narg a: f64 in\narg z: c64 in\narg y: c64[1] out\ny[0] = z + f32(a)\n"
    y = np.zeros(1, dtype=np.complex64)
    compiled = kingpost.compile(source)
    compiled(a=2, z=1, y=y)
    assert y[0] == 3
    compiled(a=2, z=1.5 - 0.5j, y=y)
    assert y[0] == 3.5 - 0.5j
    with pytest.raises(kingpost.DtypeError, match=r"argument `a` of `k` is complex\(1, 2\), needed a number of type f64"):
        compiled(a=1 + 2j, z=1, y=y)


def test_words_are_numbers_without_a_sign():
    source = "kernel k\narg a: u64 in\narg b: u32 in\narg y: u64[1] inout\ny[0] = a + b\n"
    y = np.zeros(1, dtype=np.uint64)
    kingpost.compile(source)(a=2**64 - 1, b=2**32 - 1, y=y)
    assert y[0] == 2**32 - 2
    with pytest.raises(kingpost.DtypeError, match="argument `b` of `k` is -1, needed a number of type u32"):
        kingpost.compile(source)(a=0, b=-1, y=y)


def test_arrays_that_overlap_are_refused():
    both = np.ones(6)
    with pytest.raises(kingpost.AliasError, match="got one buffer for `x` and `y` and writes `y`"):
        kingpost.compile(AXPY)(a=1.0, x=both[:4], y=both[2:])
    kingpost.compile(AXPY)(a=1.0, x=both[:3], y=both[3:])
    assert both.tolist() == [1, 1, 1, 2, 2, 2]


def test_what_is_no_array_or_number_names_its_argument():
    fails(kingpost.DtypeError, "argument `a` is a str, needed a number", "a", a="q")
    fails(kingpost.ArgumentError, "argument `a` is an integer beyond 64 bits, needed a smaller one", "a", a=10**40)

    for text in ("2", b"2", np.str_("2")):
        kind = type(text).__name__
        fails(kingpost.DtypeError, f"argument `a` is a {kind}, needed a number", "a", a=text)
    fails(kingpost.DtypeError, "argument `a` of `axpy` is complex(1, 0), needed a number of type f64", "a", a=np.complex128(1))
    value = np.array("2")
    message = f"has elements of type `{value.dtype.str}`, needed one of bf16, bool, c128, c64, f16, f32, f64, i16, i32, i64, i8, u16, u32, u64, u8"
    fails(kingpost.DtypeError, f"argument `a` {message}", "a", a=value)
    masked = "needed all of them; give `.filled(value)`, or `.data` to take what is under the mask"
    fails(kingpost.ArgumentError, f"argument `a` is a masked array with 1 masked entries, {masked}", "a", a=np.ma.masked)
    partly = np.ma.array(np.ones(4), mask=[0, 1, 1, 0])
    fails(kingpost.ArgumentError, f"argument `x` is a masked array with 2 masked entries, {masked}", "x", x=partly)
    whole, y = np.ma.array(np.ones(4)), np.zeros(4)
    kingpost.compile(AXPY)(a=np.array(2.0), x=whole, y=y)
    assert y.tolist() == [2] * 4

    class Broken:
        def __init__(self, interface):
            self.__array_interface__ = interface

    real = {"typestr": "<f8", "shape": (4,), "version": 3}
    wrong = ({}, "nonsense", {**real, "data": 3}, {**real, "data": ("here", False)})
    for interface in (*wrong, {**real, "data": (8, False), "strides": ()}):
        with pytest.raises(kingpost.ArgumentError, match="argument `x` is a Broken that breaks the protocol") as caught:
            kingpost.compile(AXPY)(a=1.0, x=Broken(interface), y=np.ones(4))
        assert caught.value.argument == "x"
    with pytest.raises(kingpost.ArgumentError, match="`stream` is a str, needed an integer"):
        kingpost.compile(AXPY)(a=1.0, x=np.ones(2), y=np.ones(2), stream="first")


def test_maps_are_checked_when_asked():
    rows = kingpost.compile(ROWS)
    x, y = np.ones((2, 3), dtype=np.float32), np.full(2, 7, dtype=np.float32)
    given = {"x": x, "y": y}
    assert "accesses inside their arrays" in rows.check(map=np.array([0, 1], dtype=np.int32), **given)
    for wrong in (2, -1):
        with pytest.raises(kingpost.ArgumentError, match=f"x\\[{wrong}"):
            rows.check(map=np.array([0, wrong], dtype=np.int32), **given)
    assert y.tolist() == [7, 7]  # nothing ran
    op = kingpost.jit("laplace", dim=2, degree=1)
    cells = np.array([[0, 1, 2]], dtype=np.int32)
    mesh = {"coords": np.array([[0.0, 0], [1, 0], [0, 1]]), "cell_vertices": cells, "u": np.ones(3)}
    assert "accesses inside their arrays" in op.check(np.zeros(3), dofs=cells, **mesh)
    with pytest.raises(kingpost.ArgumentError, match="dofs"):
        op.check(np.zeros(3), dofs=cells + 1, **mesh)


def test_a_stream_needs_cuda():
    with pytest.raises(kingpost.DeviceError, match="has no streams; leave out the stream"):
        kingpost.compile(AXPY)(a=1.0, x=np.ones(2), y=np.ones(2), stream=7)


@pytest.mark.parametrize("device", DEVICES)
def test_calls_of_several_threads_at_once(device):
    axpy = scheduled(device)
    ys = [np.zeros(257) for _ in range(8)]
    failures = []

    def work(k):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for _ in range(25):
                    axpy(a=float(k), x=np.ones(257), y=ys[k])
                s = kingpost.Schedule(AXPY)
                s.split("i", k + 2)
                assert s.recipe == f"split_iname(i, factor: {k + 2})\n"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures
    assert [y.tolist() for y in ys] == [[25.0 * k] * 257 for k in range(8)]


def test_other_threads_run_during_a_call():
    slow = kingpost.compile(
        "kernel slow\nparam n: i32\narg y: f64[1] inout\n\nfor i in 0..n\n  s: y[0] = sin(y[0]) + 1.0\n"
    )
    ticks, done = 0, threading.Event()
    thread = threading.Thread(target=lambda: (slow(y=np.zeros(1), n=30_000_000), done.set()))
    thread.start()
    while not done.wait(0.001):
        ticks += 1
    thread.join()
    assert ticks > 5


def test_a_roofline_counts_the_kernel_before_any_step():
    axpy = scheduled("c")
    y = np.ones(4096)
    found = axpy.roofline(a=1.0, x=np.ones(4096), y=y)
    assert (found.flops, found.memory_bytes) == (2 * 4096, 3 * 8 * 4096)
    assert y.sum() == 4096, "outputs are left alone"
    assert found.seconds > 0 and 0 < found.flops_per_s and found.limit == "memory bandwidth"
    assert found._repr_svg_().startswith("<svg")
    assert "% of the roofline (memory bandwidth)" in str(found)
    assert found.executed_flops == found.flops and found.executed_roof == found.roof
    assert (found.fraction > 1) == (found.why_above is not None) == ("above 100 %" in str(found))


OWN = """callee own
  arg a: f64 in
  arg c: f64 inout

  s: c += a*a
  code c (
    "{c} += {a}*{a};"
  )
"""


def test_code_of_others_is_run_where_it_is_trusted():
    kernel = "kernel sums\nparam n: i32\narg x: f64[n] in\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] += x[i]*x[i]\n"
    s = kingpost.Schedule(kernel)
    s.declare_callee(OWN)
    s.replace_with_intrinsic(["s"], "own")
    assert "+=" in kingpost.source(s, "c")
    with pytest.raises(kingpost.UntrustedError, match="callee `own`.*trust=True"):
        kingpost.compile(s)
    x, y = np.arange(3.0), np.ones(3)
    kingpost.compile(s, trust=True)(x=x, y=y)
    assert np.array_equal(y, 1 + x * x)


GENERIC = """kernel axpy
param n
arg a in
arg x[n] in
arg y[n] inout

for i in 0..n
  let scaled = a*x[i]
  y[i] += scaled
"""


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_kernel_without_types_takes_those_of_its_arrays(dtype):
    axpy = kingpost.generic(GENERIC)
    x, y = np.arange(5, dtype=dtype), np.ones(5, dtype)
    axpy(a=2.0, x=x, y=y)
    assert y.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    name = {"float32": "f32", "float64": "f64"}[dtype]
    compiled = axpy.compiled(a=2.0, x=x, y=y)
    assert {a.dtype for a in compiled.arguments if a.kind != "parameter"} == {name}
    assert axpy.compiled(a=1, x=x.astype("int64"), y=y.astype("int64")) is not compiled
    assert axpy.compiled(a=3.0, x=y, y=x) is compiled
    assert f"temp scaled: {name} private" in str(compiled.kernel)


@pytest.mark.parametrize("dtype, real", [("complex64", "f32"), ("complex128", "f64")])
def test_numbers_beside_complex_arrays_have_the_type_of_their_parts(dtype, real):
    axpy = kingpost.generic(GENERIC)
    x, y = np.arange(3).astype(dtype)*1j, np.ones(3, dtype)
    axpy(a=0.5, x=x, y=y)
    assert y.tolist() == [1, 1 + 0.5j, 1 + 1j]
    assert f"arg a: {real} in" in str(axpy.kernel(a=0.5, x=x, y=y))
    axpy(a=2j, x=x, y=y)
    assert y.tolist() == [1, -1 + 0.5j, -3 + 1j]
    assert f"arg a: {dict(complex64='c64', complex128='c128')[dtype]} in" in str(axpy.kernel(a=2j, x=x, y=y))


def test_a_kernel_without_types_says_which_argument_has_none():
    axpy = kingpost.generic(GENERIC)
    with pytest.raises(kingpost.TextError, match="argument `y` has no type"):
        axpy(a=2.0, x=np.ones(3))
    with pytest.raises(kingpost.TextError, match="expected `:` and a type"):
        kingpost.Kernel.parse(GENERIC)
    with pytest.raises(kingpost.DtypeError, match="`float` is no type"):
        kingpost.Kernel.parse(GENERIC, {"a": "float"})


def test_a_text_may_have_several_kernels():
    kernels = kingpost.Kernel.parse_all(AXPY + ROWS)
    assert [kernel.name for kernel in kernels] == ["axpy", "rows"]
    assert kernels[0] == kingpost.Kernel.parse(AXPY)


def test_blocks_and_bounds_in_arrays():
    rows = kingpost.compile("""kernel rows
param n: i32
param nnz: i32
arg `in`: i32[n + 1] in
arg x: f64[nnz] in
arg `out`: f64[n] inout

for i in 0..n
  if `out`[i] < 0.5
    `out`[i] = 0.0
    for k in `in`[i]..`in`[i + 1] while x[k] != 0.0
      `out`[i] += x[k]
  else
    `out`[i] /= 4.0
""")
    starts = np.array([0, 3, 3, 7], "int32")
    x = np.array([1.0, 2.0, 0.0, 4.0, 5.0, 0.0, 7.0])
    out = np.array([0.0, 1.0, 0.25])
    rows(**{"in": starts, "x": x, "out": out})
    assert out.tolist() == [3.0, 0.25, 9.0]


def test_the_example_of_generic():
    assert doctest.testmod(sys.modules["kingpost.generic"]).failed == 0


COMPUTED = """
kernel computed

param n: i32
param m: i32
param d: i64 = n + m
arg x: f64[n*m] in
arg y: f64[?, 2] in
arg z: f64[d, extent(y, 0)] out

for i in 0..d
  for j in 0..extent(y, 0)
    z[i, j] = y[j, 1]
    z[i, j] += x[i] if i < n*m
"""


@pytest.mark.parametrize("device", ["c", "opencl"])
def test_parameters_that_are_computed_and_extents_that_arrays_say(device):
    code = kingpost.compile(COMPUTED, device)
    x, y = np.arange(12.0), np.arange(10.0).reshape(5, 2)
    z = np.empty((7, 5))
    code(x=x, y=y, z=z, n=3, m=4)
    assert np.array_equal(z, y[:, 1] + x[:7, None])
    # one of the terms follows from the sum
    z = np.empty((7, 5))
    code(x=x, y=y, z=z, n=3)
    assert np.array_equal(z, y[:, 1] + x[:7, None])
    code(x=x[:0], y=y[:0], z=np.empty((3, 0)), n=3)
    with pytest.raises(kingpost.ArgumentError, match="`d` is given as 8, and it is computed as `n [+] m` = 7"):
        code(x=x, y=y, z=z, n=3, m=4, d=8)
    with pytest.raises(kingpost.ShapeError, match=r"`x` of `computed` has shape \(12,\), needed \(15,\)"):
        code(x=x, y=y, z=np.empty((8, 5)), n=3)
    with pytest.raises(kingpost.ShapeError, match=r"`z` of `computed` has shape \(7, 5\), needed \(7, 4\)"):
        code(x=x, y=y[:4], z=z, n=3)
    with pytest.raises(kingpost.MissingArgument, match="parameter `n` of `computed` has no value"):
        code(x=x, y=y, z=z)
    assert [a.name for a in code.arguments] == ["n", "m", "d", "x", "y", "z", "n_m", "y_extent_0"]


def test_strides_that_arrays_say():
    code = kingpost.compile(
        """
        kernel doubled

        param n: i32
        param m: i32
        param s: i64
        arg x: f64[n, m] inout strides(s, 1)
        assume s >= m

        for i in 0..n
          for j in 0..m
            x[i, j] *= 2
        """.replace("\n        ", "\n"),
        "c",
    )
    whole = np.ones((4, 10))
    code(x=whole[:, 2:5])
    assert np.array_equal(whole, [[1, 1, 2, 2, 2, 1, 1, 1, 1, 1]] * 4)
    code(x=whole)
    assert whole.sum() == 4*(3*4 + 7*2)
    with pytest.raises(kingpost.LayoutError, match="strides"):
        code(x=np.ones((3, 10)).T)
    with pytest.raises(kingpost.ArgumentError, match="relies on"):
        code(x=whole[::-1, :3])
    with pytest.raises(kingpost.LayoutError, match="strides"):
        code(x=whole[:, :3], s=9)


PRIVATE = """
kernel reversed

param n: i32
param m: i32
arg x: f64[n, m] inout
temp t: f64[m] private
assume m <= 16

for i in 0..n {g.0}
  for j in 0..m
    t[j] = x[i, m - 1 - j]
  for k in 0..m
    x[i, k] = t[k]
"""


@pytest.mark.parametrize("device", ["c", "opencl"])
def test_private_arrays_have_the_extent_that_is_assumed(device):
    code = kingpost.compile(PRIVATE, device)
    for shape in [(3, 16), (2, 1), (3, 0), (0, 5)]:
        x = np.random.default_rng(7).random(shape)
        expected = x[:, ::-1].copy()
        code(x=x)
        assert np.array_equal(x, expected)
    with pytest.raises(kingpost.ArgumentError, match="relies on .*16.* miss by 1"):
        code(x=np.zeros((2, 17)))
