"""The protocols of arrays: what is read-only, and which stream values are made on."""

import ctypes

import numpy as np
import pytest

import kingpost
from kingpost import arrays, dlpack
from test_compile import AXPY, ROWS

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exported:
    """An array with DLPack alone, as a library of these versions exports it: on the host, or, with the
    address of host memory, as if on a card."""

    def __init__(self, values, kind=1, read_only=False, versions=True, major=1):
        self.values, self.kind, self.read_only, self.versions, self.major = values, kind, read_only, versions, major
        self.asked, self.kept = [], []

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, **options):
        self.asked.append(options)
        if not self.versions and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        return self.capsule(options.get("max_version"))

    def capsule(self, version):
        shape = (ctypes.c_int64 * self.values.ndim)(*self.values.shape)
        code = {"f": 2, "i": 0}[self.values.dtype.kind]
        tensor = dlpack._Tensor(
            self.values.ctypes.data, dlpack._Device(self.kind, 0), self.values.ndim,
            dlpack._Dtype(code, 8 * self.values.itemsize, 1), shape, None, 0,
        )  # fmt: skip
        if version is None:
            managed, name = tensor, b"dltensor"
        else:
            managed = dlpack._Versioned(self.major, 3, None, None, int(self.read_only), tensor)
            name = b"dltensor_versioned"
        self.kept += [shape, managed]
        return _new(ctypes.addressof(managed), name, None)


class Card(Exported):
    """A tensor as PyTorch has it: an old interface without a stream, and DLPack, which orders streams."""

    def __init__(self, values, version=2, writable=True, **rest):
        super().__init__(values, kind=2, **rest)
        self.__cuda_array_interface__ = {
            "shape": values.shape, "typestr": values.dtype.str, "version": version,
            "data": (values.ctypes.data, not writable),
        }  # fmt: skip


class OldCard:
    """An array of a card without any word on streams, or with one since version 3."""

    def __init__(self, version, **stream):
        self.__cuda_array_interface__ = {"shape": (4,), "typestr": "<f8", "version": version, "data": (512, False)} | stream


def axpy(y, x=None):
    kingpost.compile(AXPY)(a=2.0, x=np.ones(4) if x is None else x, y=y)


@pytest.mark.parametrize("versions", [True, False])
def test_arrays_of_dlpack_are_used_where_they_lie(versions):
    y = Exported(np.arange(4.0), versions=versions)
    axpy(y, Exported(np.full(4, 0.5), read_only=versions, versions=versions))
    assert y.values.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert y.asked[0] == {"max_version": (1, 0)} and len(y.asked) == (1 if versions else 2)


def test_what_is_read_only_is_no_result():
    y = Exported(np.arange(4.0), read_only=True)
    with pytest.raises(kingpost.ReadOnlyError, match="argument `y` of `axpy` is written, and the array is read-only") as e:
        axpy(y)
    assert e.value.argument == "y" and y.values.tolist() == [0, 1, 2, 3]
    with pytest.raises(kingpost.ArgumentError, match="capsule of DLPack 2.3, asked for 1.x"):
        axpy(Exported(np.arange(4.0), major=2))


def immutable(base, values, **options):
    """An array of a class of JAX's: its capsules and interfaces may not say that it never changes."""
    kind = type("ArrayImpl", (base,), {"__module__": "jaxlib._jax"})
    return kind(values, **options)


@pytest.mark.parametrize("versions", [True, False])
def test_arrays_of_jax_are_inputs_and_never_results(versions):
    x = immutable(Exported, np.ones(4), versions=versions)
    y = np.zeros(4)
    axpy(y, x)
    assert y.tolist() == [2.0] * 4
    with pytest.raises(kingpost.ReadOnlyError, match="`y`"):
        axpy(x)
    assert x.values.tolist() == [1.0] * 4
    assert not arrays.view("y", immutable(Card, np.ones(4))).writable


def test_jax_itself():
    jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
    jax.config.update("jax_enable_x64", True)
    numpy = jax.numpy
    x, y = numpy.arange(4.0), np.ones(4)
    axpy(y, x)
    assert y.tolist() == [1.0, 3.0, 5.0, 7.0]
    rows, found = numpy.asarray([1, 0], dtype="int32"), np.zeros(2, dtype=np.float32)
    kingpost.compile(ROWS)(map=rows, x=numpy.asarray([[1, 2], [3, 4]], dtype="float32"), y=found)
    assert found.tolist() == [7.0, 3.0]
    address = arrays.view("x", x).address
    assert address == x.unsafe_buffer_pointer()  # nothing was copied
    with pytest.raises(kingpost.ReadOnlyError):
        axpy(x)
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_a_buffer_that_is_read_only_is_no_result():
    values = np.ones(4)
    values.setflags(write=False)
    with pytest.raises(kingpost.ReadOnlyError):
        axpy(memoryview(values))


@pytest.mark.parametrize(("stream", "told", "waits"), [(None, 1, None), (0, 1, None), (1, 1, None), (7, 7, None), (2, 1, 1)])
def test_dlpack_orders_the_library_before_the_launch(stream, told, waits):
    """The library is told of the stream that the kernel runs on, by its number in DLPack."""
    for array in (Card(np.ones(4)), Exported(np.ones(4), kind=2), Card(np.ones(4), versions=False)):
        found = arrays.view("x", array, stream)
        assert array.asked[-1]["stream"] == told and found.place == "cuda"
        assert found.stream == waits and found.address == array.values.ctypes.data


def test_the_interface_of_version_3_says_what_to_wait_for():
    for stream in (1, 2, 12345):
        assert arrays.view("x", OldCard(3, stream=stream)).stream == stream
    # no synchronisation is needed, says the protocol
    assert arrays.view("x", OldCard(3)).stream is None
    assert arrays.view("x", OldCard(3, stream=None)).stream is None
    # a number that the protocol forbids, and interfaces without the word: all of the card's streams
    assert arrays.view("x", OldCard(3, stream=0)).stream == arrays.UNKNOWN
    assert arrays.view("x", OldCard(2)).stream == arrays.UNKNOWN
    assert arrays.view("x", OldCard(2), 7).stream == arrays.UNKNOWN


def test_the_strictest_protocol_says_what_may_be_written():
    assert arrays.view("y", Card(np.ones(4))).writable
    assert not arrays.view("y", Card(np.ones(4), writable=False)).writable
    assert not arrays.view("y", Card(np.ones(4), read_only=True)).writable


def test_a_library_that_refuses_its_memory_is_quoted():
    class Leaf:
        @property
        def __cuda_array_interface__(self):
            raise RuntimeError("this tensor requires grad")

    with pytest.raises(kingpost.ArgumentError, match="argument `x` is a Leaf whose .* requires grad") as caught:
        axpy(np.ones(4), Leaf())
    assert caught.value.argument == "x"


def test_maps_and_matrices_may_have_dlpack_alone():
    """What is read on the host: patterns of maps, the arrays of a system, constants with components."""
    from test_operator import square, stiffness

    pytest.importorskip("ufl")
    import ufl
    from basix.ufl import element

    x, cells = square(2)
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1))
    u, v, k = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.Constant(mesh, shape=(2,))
    op = kingpost.jit(ufl.inner(k[1] * ufl.grad(u), ufl.grad(v)) * ufl.dx, matrix="sparse", names={k: "k"})
    plain = op.assemble(x=x, x_dofs=cells, p1_dofs=cells, k=np.array([0.0, 1.0]))
    found = op.assemble(x=Exported(x), x_dofs=Exported(cells), p1_dofs=Exported(cells), k=Exported(np.array([0.0, 1.0])))
    for one, other in zip(plain, found):
        assert (one == other).all()
    assert np.isclose(found.data[0], stiffness(x, cells)[0, 0])
    tridiagonal = kingpost.Csr(*(Exported(a) for a in (np.array([0, 1, 2]), np.array([0, 1]), np.array([2.0, 4.0]))))
    assert np.allclose(kingpost.solve(tridiagonal, Exported(np.ones(2))).x, [0.5, 0.25], rtol=1e-15)
