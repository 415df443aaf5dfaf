"""Arrays of any library, as an address with a type, a shape and strides."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass, replace
from typing import Any, Optional

from kingpost import dlpack
from kingpost.errors import ArgumentError, DeviceMismatchError, DtypeError, Error

#: Types of elements by the kind and size that the array interfaces write.
TYPES = {
    "f8": "f64", "f4": "f32", "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
    "u1": "u8", "u2": "u16", "u4": "u32", "u8": "u64", "b1": "bool", "f2": "f16", "bf16": "bf16",
    "c8": "c64", "c16": "c128",
}
#: The same by the letters of :pep:`3118`, which depend on the platform for ``l``.
LONG = 8 * ctypes.sizeof(ctypes.c_long)
FORMATS = {
    "d": "f64", "f": "f32", "b": "i8", "h": "i16", "i": "i32", "q": "i64", "l": f"i{LONG}",
    "B": "u8", "H": "u16", "I": "u32", "Q": "u64", "L": f"u{LONG}", "?": "bool", "e": "f16",
    "Zf": "c64", "Zd": "c128",
}
#: The same by the codes of DLPack: integers with a sign and without, reals, complex numbers, truth
#: values.
CODES = {
    (2, 64): "f64", (2, 32): "f32", (0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64",
    (2, 16): "f16", (4, 16): "bf16", (5, 64): "c64", (5, 128): "c128",
    (1, 8): "u8", (1, 16): "u16", (1, 32): "u32", (1, 64): "u64", (6, 8): "bool",
}


#: Streams by the numbers of the protocols: the legacy default one, on which work without a stream
#: runs, and the default one of the thread.
LEGACY, PER_THREAD = 1, 2
#: No stream of the protocols: nobody says which stream makes the values.
UNKNOWN = 0


@dataclass(frozen=True)
class View:
    """An array as it lies in memory; ``strides`` in bytes are absent if it lies row by row."""

    address: int
    dtype: str
    shape: tuple[int, ...]
    strides: Optional[tuple[int, ...]]
    writable: bool
    place: str
    #: The stream that makes its values, which work has to wait for; :data:`UNKNOWN`: all of the card's.
    stream: Optional[int]
    #: What keeps the memory alive.
    owner: Any

    def lent(self, name: str) -> tuple:
        """What the engine takes."""
        shape, strides = list(self.shape), None if self.strides is None else list(self.strides)
        return (name, self.address, self.dtype, shape, strides, self.writable, self.place, self.stream)


def size_of(dtype: str) -> int:
    """Bytes of an element of a type."""
    return 1 if dtype == "bool" else int(dtype.lstrip("bcfiu")) // 8


def is_array(value: Any) -> bool:
    """Whether a value has one of the protocols of arrays."""
    if any(hasattr(value, p) for p in ("__array_interface__", "__dlpack__")):
        return True
    try:
        if _interface(value, "__cuda_array_interface__") is not None:
            return True
    except RuntimeError:  # PyTorch refuses tensors that require gradients; they are arrays, too
        return True
    return _buffer(value) is not None


def view(name: str, value: Any, stream: Optional[int] = None) -> View:
    """The memory of an array that is given for an argument, for work on ``stream``.

    ``__cuda_array_interface__`` comes first, then ``__array_interface__``, the buffer protocol and
    DLPack. Nothing is copied. :attr:`View.stream` is what the work has to wait for; where DLPack
    tells the library of the array about ``stream``, nothing.
    """
    refuse_masked(name, value)
    try:
        if (interface := _interface(value, "__cuda_array_interface__")) is not None:
            found = _from_cuda(name, value, interface, stream)
        elif (interface := _interface(value, "__array_interface__")) is not None:
            found = _from_interface(name, value, interface, "host")
        elif (buffer := _buffer(value)) is not None:
            found = _from_buffer(name, buffer)
        elif hasattr(value, "__dlpack__"):
            found = _from_dlpack(name, value, stream)
        else:
            message = (
                f"argument `{name}` is a {type(value).__name__}, needed an array; give one with "
                "`__array_interface__`, `__cuda_array_interface__`, DLPack or the buffer protocol"
            )
            raise _about(DtypeError, name, message)
    except Error:
        raise
    except (KeyError, IndexError, TypeError, ValueError) as why:
        message = f"argument `{name}` is a {type(value).__name__} that breaks the protocol of its array: {why!r}"
        raise _about(ArgumentError, name, message) from why
    except (BufferError, RuntimeError, AssertionError) as why:  # as of tensors that require gradients
        message = f"argument `{name}` is a {type(value).__name__} whose library does not give its memory: {why}"
        raise _about(ArgumentError, name, message) from why
    return replace(found, writable=False) if _never_changes(value) else found


def _never_changes(value: Any) -> bool:
    """Whether an array is one of JAX's: equal ones share memory, which old capsules do not say."""
    return any(kind.__module__.partition(".")[0] in ("jax", "jaxlib") for kind in type(value).__mro__)


def current_stream(value: Any) -> Optional[int]:
    """The stream that the library of an array on a card puts its work on now; nothing if it does not tell."""
    torch = sys.modules.get("torch")
    tensor: Any = getattr(torch, "Tensor", ())
    if torch is not None and isinstance(value, tensor):
        return torch.cuda.current_stream(value.device).cuda_stream or LEGACY if value.is_cuda else None
    try:
        interface = _interface(value, "__cuda_array_interface__")
    except RuntimeError:  # the view of it says what is wrong
        return None
    stream = interface.get("stream") if interface is not None and interface.get("version", 0) >= 3 else None
    return stream or None


def refuse_masked(name: str, value: Any) -> None:
    """Refuses an array of NumPy with masked entries, of which no protocol tells."""
    # whoever has such an array has imported the module: importing it here would take its lock, which
    # a child of a fork may find closed
    module = sys.modules.get("numpy.ma")
    kind = getattr(module, "MaskedArray", None)
    if module is None or kind is None or not isinstance(value, kind):
        return
    if masked := int(module.count_masked(value)):
        message = (
            f"argument `{name}` is a masked array with {masked} masked entries, needed all of them; "
            "give `.filled(value)`, or `.data` to take what is under the mask"
        )
        raise _about(ArgumentError, name, message)


def _interface(value: Any, protocol: str) -> Optional[dict]:
    # PyTorch raises for tensors of another device, where `hasattr` is false
    return getattr(value, protocol, None)


def _about(cls, name: str, message: str):
    error = cls(message)
    error.argument = name
    return error


def _wrong_type(name: str, found: str) -> DtypeError:
    needed = ", ".join(sorted(TYPES.values()))
    return _about(DtypeError, name, f"argument `{name}` has elements of type {found}, needed one of {needed}")


def _from_interface(name: str, value: Any, interface: dict, place: str) -> View:
    typestr = interface["typestr"]
    order, kind = typestr[0], typestr[1:]
    native = "<" if sys.byteorder == "little" else ">"
    if kind == "V2" and getattr(getattr(value, "dtype", None), "name", None) == "bfloat16":
        kind = "bf16"  # NumPy has no such type, and that of ml_dtypes has no code
    if kind not in TYPES or order not in (native, "|", "="):
        raise _wrong_type(name, f"`{typestr}`")
    data = interface.get("data")
    if data is None:  # the interface may leave the address to the buffer protocol
        return _from_buffer(name, memoryview(value))
    address, read_only = data
    strides = interface.get("strides")
    strides = None if strides is None else tuple(strides)
    stream = interface.get("stream")
    shape = tuple(interface["shape"])
    if strides is not None and len(strides) != len(shape):
        raise ValueError(f"{len(strides)} strides of {len(shape)} axes")
    return View(int(address or 0), TYPES[kind], shape, strides, not read_only, place, stream, value)


def _from_cuda(name: str, value: Any, interface: dict, stream: Optional[int]) -> View:
    """An array on a card, whose values may still be under way on a stream of its library's."""
    found = _from_interface(name, value, interface, "cuda")
    if interface.get("version", 0) >= 3:  # since then it says which stream to wait for
        return replace(found, stream=UNKNOWN if found.stream == 0 else found.stream)
    if hasattr(value, "__dlpack__"):
        ordered = _from_dlpack(name, value, stream)
        return replace(ordered, writable=ordered.writable and found.writable)
    return replace(found, stream=UNKNOWN)


def _from_dlpack(name: str, value: Any, stream: Optional[int]) -> View:
    kind, _ = value.__dlpack_device__()
    # PyTorch's protocol passes over it, as that of a view of the imaginary parts of conjugates
    if getattr(value, "is_neg", bool)():
        raise BufferError("its elements are the negatives of what it holds; give `.resolve_neg()`")
    waits = None
    if kind in dlpack.HOST:
        tensor, place = dlpack.Tensor(dlpack.capsule(value)), "host"
    elif kind in dlpack.CUDA:
        # the library makes this stream wait for the one that it works on
        order = LEGACY if stream in (None, 0) else stream
        if order == PER_THREAD:  # which PyTorch does not take
            order = waits = LEGACY
        tensor, place = dlpack.Tensor(dlpack.capsule(value, stream=order)), "cuda"
    else:
        message = f"argument `{name}` lies on a device of DLPack's kind {int(kind)}, needed the host or CUDA"
        raise _about(DeviceMismatchError, name, message)
    code = None if tensor.dtype is None else CODES.get(tensor.dtype)
    if code is None or tensor.dtype is None:
        raise _wrong_type(name, f"{tensor.dtype} of DLPack")
    size = tensor.dtype[1] // 8
    strides = None if tensor.strides is None else tuple(s * size for s in tensor.strides)
    return View(tensor.address, code, tensor.shape, strides, not tensor.read_only, place, waits, tensor)


def _buffer(value: Any) -> Optional[memoryview]:
    """The buffer of an array, if it has one; libraries of cards refuse it there."""
    try:
        return memoryview(value)
    except (TypeError, ValueError, BufferError, RuntimeError):
        return None


def _from_buffer(name: str, buffer: memoryview) -> View:
    code = FORMATS.get(buffer.format.lstrip("@=<" if sys.byteorder == "little" else "@=>"))
    if code is None or buffer.itemsize != size_of(code):
        raise _wrong_type(name, f"`{buffer.format}`")
    return View(
        dlpack.address_of(buffer), code, buffer.shape or (), buffer.strides, not buffer.readonly, "host", None, buffer
    )
