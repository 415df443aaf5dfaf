"""Arrays on a CUDA card, by the driver alone: no library of arrays is needed."""

import ctypes

import numpy as np
import pytest

import kingpost
from test_compile import AXPY

PAIRS = """\
kernel pairs
arg x: f64[32, 4] in
arg y: f64[32, 4] inout
for i in 0..32
  for j in 0..4
    s: y[i, j] = 2.0*x[i, j]
"""

pytestmark = pytest.mark.skipif(
    not any(name.startswith("cuda") for name in kingpost.devices()), reason="skipped: no CUDA device"
)


class Card:
    """Memory and streams of the card, in its primary context."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        assert getattr(self.cuda, name)(*args) == 0, name

    def array(self, values, offset=0):
        """A copy on the card, `offset` bytes after the start of a block."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(values.nbytes + offset))
        array = OnCard(self, pointer.value + offset, values)
        data = values.ctypes.data_as(ctypes.c_void_p)
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(array.address), data, ctypes.c_size_t(values.nbytes))
        return array

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)  # does not wait for the default stream
        return stream.value


class OnCard:
    def __init__(self, card, address, like):
        self.card, self.address, self.like = card, address, like
        self.__cuda_array_interface__ = {
            "shape": like.shape,
            "typestr": like.dtype.str,
            "data": (address, False),
            "strides": None,
            "version": 3,
        }

    def host(self):
        out = np.empty_like(self.like)
        data = out.ctypes.data_as(ctypes.c_void_p)
        self.card.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(self.address), ctypes.c_size_t(out.nbytes))
        return out


@pytest.fixture(scope="module")
def card():
    return Card()


@pytest.fixture(scope="module")
def axpy():
    s = kingpost.Schedule(AXPY)
    i_o, i_i = s.split("i", 64)
    s.tag(i_o, "g.0")
    s.tag(i_i, "l.0")
    return kingpost.compile(s, "cuda")


def test_results_are_written_where_they_lie(card, axpy, recwarn):
    x, y = card.array(np.arange(1000.0)), card.array(np.ones(1000))
    axpy(a=2.0, x=x, y=y)
    assert np.array_equal(y.host(), 1 + 2 * np.arange(1000.0))
    assert not [w for w in recwarn if w.category is kingpost.CopyWarning]


def test_a_stream_of_launches_runs_in_order(card, axpy):
    n, stream = 1 << 22, card.stream()
    x, y = card.array(np.ones(n)), card.array(np.zeros(n))
    for k in range(1, 11):
        axpy(a=float(k), x=x, y=y, stream=stream)
    card.call("cuStreamSynchronize", ctypes.c_void_p(stream))
    assert np.array_equal(y.host(), np.full(n, 55.0))


def test_host_arrays_are_copied_with_a_warning(card, axpy):
    x, y = np.ones(100), card.array(np.zeros(100))
    with pytest.warns(kingpost.CopyWarning, match="argument `x` is copied to `cuda:0`"):
        axpy(a=3.0, x=x, y=y)
    assert np.array_equal(y.host(), np.full(100, 3.0))
    with pytest.warns(kingpost.CopyWarning, match="argument `y`"):
        axpy(a=3.0, x=x, y=x.copy())


def test_what_cannot_be_reached_is_refused(card, axpy):
    x, y = card.array(np.ones(8)), card.array(np.zeros(8))
    with pytest.raises(kingpost.DeviceMismatchError, match="argument `x` of `axpy` lies in the memory of a CUDA card"):
        kingpost.compile(AXPY, "c")(a=1.0, x=x, y=np.zeros(8))
    with pytest.raises(kingpost.LayoutError, match="needed a multiple of 8") as caught:
        axpy(a=1.0, x=card.array(np.ones(8), offset=4), y=y)
    assert caught.value.argument == "x"
    with pytest.raises(kingpost.AliasError, match="one buffer for `x` and `y`"):
        axpy(a=1.0, x=y, y=y)


def test_a_slice_starts_where_the_code_may_load(card, axpy):
    x, y = card.array(np.arange(100.0), offset=8), card.array(np.ones(100), offset=8)
    axpy(a=2.0, x=x, y=y)
    assert np.array_equal(y.host(), 1 + 2 * np.arange(100.0))
    s = kingpost.Schedule(PAIRS)
    s.tag("i", "l.0")
    s.vectorise("j")
    pairs = kingpost.compile(s, "cuda")
    x, y = card.array(np.ones((32, 4))), card.array(np.zeros((32, 4)))
    with pytest.raises(kingpost.LayoutError, match="needed a multiple of 16") as caught:
        pairs(x=card.array(np.ones((32, 4)), offset=8), y=y)
    assert caught.value.argument == "x"
    pairs(x=x, y=y)
    assert np.array_equal(y.host(), np.full((32, 4), 2.0))


def test_a_form_runs_on_the_card(card):
    from test_operator import arrays

    op = kingpost.jit("laplace", "cuda", dim=2, degree=1)
    given, expected = arrays(op)
    y = card.array(np.zeros_like(expected))
    op(y, **{name: card.array(value) for name, value in given.items()})
    assert np.allclose(y.host(), expected, rtol=0, atol=1e-13)
    found = op.roofline(y, **{name: card.array(value) for name, value in given.items()})
    assert found.seconds > 0 and found._repr_svg_().startswith("<svg")
