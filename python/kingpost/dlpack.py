"""DLPack and the buffer protocol by ``ctypes``: addresses of arrays without a copy.

The structures are those of ``dlpack.h``: of version 1, whose capsules are called
``dltensor_versioned`` and say what is read-only, and of those before, which are called ``dltensor``.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional

#: Kinds of devices whose memory the host reaches: the CPU, and pinned memory of CUDA and ROCm.
HOST = (1, 3, 11)
#: Kinds of devices of CUDA: its own memory, and managed memory.
CUDA = (2, 13)


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("id", ctypes.c_int)]


class _Dtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Dtype),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    """A managed tensor of version 1."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


class _Buffer(ctypes.Structure):
    """``Py_buffer`` of the stable ABI."""

    _fields_ = [
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_named = ctypes.pythonapi.PyCapsule_IsValid
_is_named.restype = ctypes.c_int
_is_named.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = [ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.argtypes = [ctypes.POINTER(_Buffer)]
_release.restype = None

#: The version that is asked for: the first whose capsules have flags.
VERSION = (1, 0)
#: Of the flags: the tensor may not be written.
_READ_ONLY = 1
_FULL_READ_ONLY = 0x011C  # PyBUF_FULL_RO: strides, format and suboffsets as they are


class Tensor:
    """A tensor of a capsule, which it keeps: the memory lives as long as this object.

    The capsule is not renamed, so that its own destructor frees the tensor.
    """

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule
        #: Whether the library says that it may not be written; nothing if its capsule cannot say.
        self.read_only: Optional[bool] = None
        if _is_named(capsule, b"dltensor_versioned"):
            managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
            if managed.major != VERSION[0]:
                raise ValueError(f"a capsule of DLPack {managed.major}.{managed.minor}, asked for {VERSION[0]}.x")
            tensor = managed.tensor
            self.read_only = bool(managed.flags & _READ_ONLY)
        else:
            tensor = _Tensor.from_address(_pointer(capsule, b"dltensor"))
        n = tensor.ndim
        self.address: int = (tensor.data or 0) + tensor.byte_offset
        self.dtype = (tensor.dtype.code, tensor.dtype.bits) if tensor.dtype.lanes == 1 else None
        self.shape: tuple[int, ...] = tuple(tensor.shape[:n])
        self.strides: Optional[tuple[int, ...]] = tuple(tensor.strides[:n]) if tensor.strides else None


def capsule(value: Any, **options: Any) -> Any:
    """The capsule of an array: one of :data:`VERSION` where its library knows of versions."""
    try:
        return value.__dlpack__(max_version=VERSION, **options)
    except TypeError:  # the signature of the protocol before version 1
        return value.__dlpack__(**options)


def address_of(buffer: memoryview) -> int:
    """The address of the first element. The memory view keeps it."""
    found = _Buffer()
    _get_buffer(buffer, ctypes.byref(found), _FULL_READ_ONLY)
    try:
        return found.buf or 0
    finally:
        _release(ctypes.byref(found))
