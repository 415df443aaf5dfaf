"""Streams of PyTorch, CuPy and JAX on a driver without a card (`fake_cuda.c`), where kernels are NumPy's.

`test_streams.py` runs this file in a process of its own. Classes stand for those of the libraries: their
protocols are those that PyTorch 2.11, CuPy 14 and JAX 0.11 have, with the memory of NumPy's arrays.
"""

import atexit
import contextlib
import ctypes
import sys
import types

import numpy as np
import pytest

import kingpost
from kingpost import dlpack
from test_arrays import Card, Exported, _new
from test_compile import AXPY

driver = ctypes.CDLL("libcuda.so.1")
LISTENER = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_void_p))
heard = []
copied = {"to the card": [], "to the host": []}


@LISTENER
def listen(what, stream, arguments):
    if (copies := copied.get(what.decode())) is not None:
        copies.append(stream)  # the bytes
        return
    heard.append((what.decode(), stream))
    if what == b"axpy":
        n = ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_int32))[0]
        a = ctypes.cast(arguments[1], ctypes.POINTER(ctypes.c_double))[0]
        x, y = (np.ctypeslib.as_array(ctypes.cast(arguments[k], ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))[0], (n,)) for k in (2, 3))
        y += a * x
    if what == b"cg_turn":  # one iteration was enough
        n_sums = ctypes.cast(arguments[0], ctypes.POINTER(ctypes.c_int32))[0]
        seen = ctypes.cast(arguments[5], ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))[0]
        np.ctypeslib.as_array(seen, (3, n_sums))[:] = [[1.0, 1.0] + [0.0] * (n_sums - 2), [1.0] * n_sums, [1.0] * n_sums]


driver.fake_listen(listen)
atexit.register(driver.fake_listen, None)  # what is freed after it is heard by nobody


def copies():
    """The bytes of each copy to the card and to the host since the last time."""
    found = tuple(copied.values())
    copied.update({where: [] for where in copied})
    return found


def since():
    """What the driver heard since the last time, without the waiting for what is thrown away."""
    found, heard[:] = [one for one in heard if one[0] != "wait for all"], []
    return found


class Tensor(Card):
    """`torch.Tensor` on a card: DLPack makes a stream wait for the current one of the library."""

    is_cuda, requires_grad, device = True, False, "cuda:0"
    current = 0
    waits = []

    def __init__(self, values):
        super().__init__(values)
        self.shape, self.dtype = values.shape, FLOAT64

    def data_ptr(self):
        return self.values.ctypes.data

    def stride(self):
        return tuple(n // self.values.itemsize for n in self.values.strides)

    def get_device(self):
        return 0

    def is_neg(self):
        return False

    def __dlpack__(self, *, stream=None, max_version=None):
        if stream != (Tensor.current or 1):
            Tensor.waits.append((stream, Tensor.current))
        return self.capsule(max_version)


FLOAT64 = types.SimpleNamespace(is_complex=False)


#: What a capsule is called, which keeps the address of it.
EXCHANGE = b"dlpack_exchange_api"


class Exchange(ctypes.Structure):
    """`DLPackExchangeAPI` of DLPack 1.3."""

    TENSOR = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(dlpack._Tensor))
    STREAM = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("older", ctypes.c_void_p), ("allocate", ctypes.c_void_p),
        ("managed_of", ctypes.c_void_p), ("object_of", ctypes.c_void_p), ("tensor_of", TENSOR), ("current_stream", STREAM),
    ]  # fmt: skip


class NewTensor(Tensor):
    """The same since PyTorch 2.10, whose class has functions of C; they are asked, and its attributes are not."""

    read = 0

    @property
    def stride(self):
        raise AssertionError("asked in Python")

    @Exchange.TENSOR
    def tensor_of(self, out):
        NewTensor.read += 1
        axes = self.values.ndim
        self.extents = (ctypes.c_int64 * (2 * axes))(*self.values.shape, *(n // self.values.itemsize for n in self.values.strides))
        strides = ctypes.byref(self.extents, 8 * axes)
        out[0] = dlpack._Tensor(
            self.values.ctypes.data, dlpack._Device(2, 0), axes, dlpack._Dtype(2, 64, 1),
            ctypes.cast(self.extents, ctypes.POINTER(ctypes.c_int64)), ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64)), 0,
        )  # fmt: skip
        return 0

    @Exchange.STREAM
    def current_stream(device, card, out):
        assert (device, card) == (2, 0)
        out[0] = Tensor.current or None
        return 0

    tables = [Exchange(1, 3, None, None, None, None, tensor_of, current_stream)]
    tables.append(Exchange(2, 0, ctypes.addressof(tables[0])))  # of a later version, which leads to the one before
    __dlpack_c_exchange_api__ = _new(ctypes.addressof(tables[1]), EXCHANGE, None)


class ndarray:
    """`cupy.ndarray`, whose interface tells the current stream."""

    current = 0

    def __init__(self, values):
        self.values, self.shape, self.strides, self.dtype = values, values.shape, values.strides, values.dtype
        self.data = types.SimpleNamespace(ptr=values.ctypes.data, device_id=0)
        self._c_contiguous = values.flags.c_contiguous

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.shape, "typestr": self.dtype.str, "descr": self.dtype.descr, "version": 3,
            "strides": None if self._c_contiguous else self.strides,
            "data": (self.data.ptr, False), "stream": ndarray.current or 1,
        }  # fmt: skip


class Numba:
    """An array of a class that nobody knows, with the interface alone."""

    def __init__(self, values, stream):
        self.values = values
        self.__cuda_array_interface__ = {
            "shape": values.shape, "typestr": values.dtype.str, "version": 3, "strides": None,
            "data": (values.ctypes.data, False), "stream": stream,
        }  # fmt: skip


def of_jax(values):
    """An array of JAX: DLPack, and an interface without a stream; it is never written."""
    return type("ArrayImpl", (Card,), {"__module__": "jaxlib._jax"})(values)


@pytest.fixture(autouse=True)
def libraries(monkeypatch):
    torch, cupy = types.ModuleType("torch"), types.ModuleType("cupy")
    torch.Tensor, torch._C = Tensor, types.SimpleNamespace(_cuda_getCurrentRawStream=lambda card: Tensor.current)
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=Tensor.current))
    cupy.ndarray = ndarray
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: types.SimpleNamespace(ptr=ndarray.current))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    Tensor.waits.clear()
    Tensor.current = ndarray.current = 0
    since()


@contextlib.contextmanager
def on(library, stream):
    """What `torch.cuda.stream(s)` and `with s` of CuPy do."""
    before, library.current = library.current, stream
    yield
    library.current = before


@pytest.fixture
def axpy():
    return kingpost.compile(AXPY, "cuda")


@pytest.mark.parametrize("library", [Tensor, ndarray])
def test_a_call_runs_on_the_current_stream_of_the_library(library, axpy):
    x, y = library(np.arange(4.0)), library(np.zeros(4))
    for stream, launched in [(0, 1), (0, 1), (71, 71), (71, 71), (72, 72), (0, 1), (71, 71)]:
        with on(library, stream):
            axpy(2.0, x, y)
        assert since() == [("axpy", launched)]
    assert np.array_equal(y.values, 14 * np.arange(4.0)) and not Tensor.waits


@pytest.mark.parametrize("library", [Tensor, ndarray])
def test_a_stream_that_is_named_is_the_one(library, axpy):
    """PyTorch makes it wait for its own stream at each call, CuPy's tells what to wait for."""
    x, y = library(np.arange(4.0)), library(np.zeros(4))
    waits = [("wait", 71), ("wait", 71)] if library is ndarray else []
    for stream in (80, types.SimpleNamespace(ptr=80), types.SimpleNamespace(cuda_stream=80), 80):
        with on(library, 71):
            axpy(2.0, x, y, stream=stream)
            assert since() == [*waits, ("axpy", 80)]
    assert np.array_equal(y.values, 8 * np.arange(4.0))
    assert Tensor.waits == ([(80, 71)] * 8 if library is Tensor else [])
    with on(library, 80):  # it is theirs
        axpy(2.0, x, y, stream=80)
        axpy(2.0, x, y, stream=80)
        assert since() == [("axpy", 80)] * 2


@pytest.mark.parametrize("library", [Tensor, ndarray])
def test_calls_are_kept_for_each_stream(library, axpy):
    slow, whole = [], axpy._run
    axpy._run = lambda *given: slow.append(1) or whole(*given)
    x, y = library(np.arange(4.0)), library(np.zeros(4))
    for stream in (0, 71, 0, 71, 72):
        with on(library, stream):
            axpy(2.0, x, y)
    assert len(slow) == 3
    with on(library, 72):
        axpy(3.0, x, library(np.zeros(4)))  # of the same layout
    assert len(slow) == 3 and since()[-1] == ("axpy", 72)
    with pytest.raises(kingpost.ShapeError):
        axpy(2.0, x, library(np.zeros(5)))
    with pytest.raises(kingpost.AliasError):
        axpy(2.0, y, y)
    y.values[:] = 0.0
    y.requires_grad = True
    if library is Tensor:
        slow.clear()
        axpy(2.0, x, y)  # its library is asked whether it gives the memory
        assert len(slow) == 1


def test_tensors_are_read_by_functions_of_c(axpy):
    sys.modules["torch"].Tensor = NewTensor
    slow, whole = [], axpy._run
    axpy._run = lambda *given: slow.append(1) or whole(*given)
    x, y, z = (NewTensor(np.full(4, v)) for v in (3.0, 0.0, 1.0))
    for out, stream in [(y, 0), (y, 0), (y, 71), (z, 71), (y, 0)]:
        with on(Tensor, stream):
            axpy(2.0, x, out)
        assert since() == [("axpy", stream or 1)]
    assert len(slow) == 2 and NewTensor.read > 8  # one for each stream
    assert y.values.tolist() == [24.0] * 4 and z.values.tolist() == [7.0] * 4
    with pytest.raises(kingpost.ShapeError):
        axpy(2.0, x, NewTensor(np.zeros(5)))
    # of other strides, and what its library does not give, are checked as a whole
    wide = NewTensor(np.zeros(8))
    wide.values, wide.shape = wide.values[::2], (4,)
    y.requires_grad = True
    for out in (wide, y):
        slow.clear()
        axpy(2.0, x, out)
        assert len(slow) == 1


@pytest.mark.parametrize("library", [Tensor, NewTensor])
def test_lazy_negatives_are_refused(library, axpy):
    sys.modules["torch"].Tensor = library
    x, y = library(np.ones(4)), library(np.zeros(4))
    for _ in range(2):
        axpy(2.0, x, y)
    x.is_neg = lambda: True
    with pytest.raises(kingpost.ArgumentError, match="resolve_neg"):
        axpy(2.0, x, y)
    assert y.values.tolist() == [4.0] * 4


def test_arrays_of_cupy_that_do_not_lie_row_by_row_are_told_apart(axpy):
    x, y = ndarray(np.ones(4)), ndarray(np.zeros(4))
    for _ in range(3):
        axpy(2.0, x, y)
    assert since() == [("axpy", 1)] * 3 and y.values.tolist() == [6.0] * 4
    with pytest.raises(kingpost.LayoutError):
        axpy(2.0, x, ndarray(np.zeros(8)[::2]))
    assert since() == []


def test_results_decide_between_libraries(axpy):
    """What another library makes on another stream is waited for."""
    x, y = ndarray(np.arange(4.0)), Tensor(np.zeros(4))
    with on(ndarray, 71), on(Tensor, 72):
        for _ in range(2):
            axpy(2.0, x, y)
            assert since() == [("wait", 71), ("axpy", 72)]
        # the launch is on CuPy's stream, which PyTorch has to be told of at each call
        for _ in range(2):
            axpy(2.0, y, x)
            assert since() == [("axpy", 71)] and Tensor.waits.pop() == (71, 72)


def test_arrays_of_jax_are_ordered_before_the_launch(axpy):
    x, y = of_jax(np.arange(4.0)), Tensor(np.zeros(4))
    for stream in (71, 72, 72):
        with on(Tensor, stream):
            axpy(2.0, x, y)
        assert since() == [("axpy", stream)] and x.asked[-1]["stream"] == stream
    with pytest.raises(kingpost.ReadOnlyError):
        axpy(2.0, y, x)
    # alone it tells no stream: the call runs to the end on the default one
    found = Exported(np.zeros(4), kind=2)
    for _ in range(2):
        axpy(2.0, x, found)
        assert ("axpy", 0) in since() and x.asked[-1]["stream"] == 1
    assert np.array_equal(found.values, 4 * np.arange(4.0))


def test_an_interface_alone_tells_its_stream(axpy):
    x, y = Numba(np.arange(4.0), 71), Numba(np.zeros(4), 72)
    for _ in range(3):
        axpy(2.0, x, y)
        assert since() == [("wait", 71), ("axpy", 72)]
    y.__cuda_array_interface__["stream"] = 71
    axpy(2.0, x, y)
    assert since() == [("axpy", 71)]
    y.__cuda_array_interface__["data"] = (y.values.ctypes.data, True)
    with pytest.raises(kingpost.ReadOnlyError):
        axpy(2.0, x, y)


@pytest.mark.parametrize("library", [Tensor, ndarray])
def test_bound_and_captured_calls_stay_on_their_stream(library, axpy):
    x, y = library(np.arange(4.0)), library(np.zeros(4))
    with on(library, 71):
        call = axpy.bind(2.0, x, y)
        graph = axpy.capture(2.0, x, y)
        both = kingpost.capture(lambda: (axpy(2.0, x, y), call()))
    assert graph.is_graph and since() == []
    call()
    graph()
    both()
    assert since() == [("axpy", 71), ("graph of 1", 71), ("graph of 2", 71)]
    call(stream=80)
    graph(stream=types.SimpleNamespace(ptr=80))
    waits = [("wait", 71)] if library is ndarray else []
    assert since() == [*waits, *waits, ("axpy", 80), *waits, *waits, ("graph of 1", 80)]


def test_an_operator_runs_on_the_current_stream():
    from test_operator import arrays

    op = kingpost.jit("laplace", "cuda", dim=2, degree=1)
    given, expected = arrays(op)
    for library in (Tensor, ndarray):
        y, on_card = library(np.zeros_like(expected)), {name: library(value) for name, value in given.items()}
        for stream in (0, 0, 71, 71):
            with on(library, stream):
                op(y, **on_card)
            assert {launched for _, launched in since()} == {stream or 1}


def diagonal(n):
    """Twice the identity."""
    starts = np.arange(n + 1, dtype=np.int32)
    return types.SimpleNamespace(indptr=starts, indices=starts[:-1], data=np.full(n, 2.0), shape=(n, n))


def test_iterations_of_a_solver_are_a_graph():
    # kernels of the solver do nothing here: its sums are zero, and it ends at the first look
    kingpost.solve(diagonal(300), np.ones(300), device="cuda")
    # 16 iterations of two kernels and one that keeps the sums; more than 9 nodes are told as 9
    assert [what for what, _ in since() if what.startswith("graph")] == ["graph of 9"]


@pytest.mark.parametrize("library", [Tensor, NewTensor, ndarray])
def test_arrays_on_the_card_are_not_copied(library):
    from test_operator import arrays

    sys.modules["cupy" if library is ndarray else "torch"].__dict__["ndarray" if library is ndarray else "Tensor"] = library
    op = kingpost.jit("laplace", "cuda", dim=2, degree=1)
    given, expected = arrays(op)
    y, on_card = library(np.zeros_like(expected)), {name: library(value) for name, value in given.items()}
    copies()  # tables of the kernel
    for _ in range(2):
        op(y, **on_card)
    op.bind(y, **on_card)()
    op.capture(y, **on_card)()
    assert copies() == ([], [])


@pytest.mark.filterwarnings("ignore::kingpost.CopyWarning")
def test_arrays_of_the_host_are_copied_at_each_call(axpy):
    x, y = np.arange(4.0), np.zeros(4)
    copies()
    for _ in range(2):
        axpy(2.0, x, y)
        assert copies() == ([32, 32], [32])  # both to the card, the result back


def test_a_solve_copies_its_matrix_and_vectors_once():
    n = 300
    copies()
    # fewer iterations than a graph has: their kernels are heard of
    found = kingpost.solve(diagonal(n), np.ones(n), device="cuda", max_iterations=8)
    assert found.iterations == 1
    there, back = copies()
    # where rows start, columns, values, places of the diagonal, ones for its inverse, and the right-hand side
    assert sorted(there) == sorted([4 * (n + 1), 4 * n, 8 * n, 4 * n, 8 * n, 8 * n])
    # the solution; the sums of iterations are in memory of the host
    assert back == [8 * n]
