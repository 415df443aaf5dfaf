"""Calls of XLA's foreign function interface, by ``ctypes``: the structures of ``xla/ffi/api/c_api.h``, version 0.

XLA hands a handler the addresses of its buffers and, on a card, its stream. The handler launches the kernels of
an operator there; on the host it returns when they are done.
"""

from __future__ import annotations

import ctypes
import re
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import jax

from kingpost.gradients import key_of
from kingpost.operator import Operator

#: The name of the handler, and its platforms by XLA's names.
TARGET = "kingpost_form"
PLATFORMS = {"cpu": "cpu", "CUDA": "cuda"}

_pointer, _size, _int = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_EXECUTE = 3
_FAILED = 13  # XLA_FFI_Error_Code_INTERNAL


class _Base(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("kind", _int), ("next", _pointer)]


class _Version(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("extension", _pointer), ("major", _int), ("minor", _int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("version", _Version), ("traits", ctypes.c_uint32)]


class _MetadataExtension(ctypes.Structure):
    _fields_ = [("base", _Base), ("metadata", ctypes.POINTER(_Metadata))]


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("struct_size", _size), ("extension", _pointer), ("dtype", _int), ("data", _pointer),
        ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]  # fmt: skip


class _Buffers(ctypes.Structure):
    """Arguments, and results."""

    _fields_ = [
        ("struct_size", _size), ("extension", _pointer), ("size", ctypes.c_int64), ("types", _pointer),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    ]  # fmt: skip


class _Scalar(ctypes.Structure):
    _fields_ = [("dtype", _int), ("value", ctypes.POINTER(ctypes.c_int64))]


class _Attributes(ctypes.Structure):
    _fields_ = [
        ("struct_size", _size), ("extension", _pointer), ("size", ctypes.c_int64), ("types", _pointer),
        ("names", _pointer), ("values", ctypes.POINTER(ctypes.POINTER(_Scalar))),
    ]  # fmt: skip


class _Api(ctypes.Structure):
    """The functions up to the last one that is called."""

    _fields_ = [
        ("struct_size", _size), ("extension", _pointer), ("version", _Version), ("internal", _pointer),
        ("error_create", _pointer), ("error_message", _pointer), ("error_destroy", _pointer),
        ("handler_register", _pointer), ("stream_get", _pointer),
    ]  # fmt: skip


class _Frame(ctypes.Structure):
    _fields_ = [
        ("struct_size", _size), ("extension", _pointer), ("api", ctypes.POINTER(_Api)), ("context", _pointer),
        ("stage", _int), ("arguments", _Buffers), ("results", _Buffers), ("attributes", _Attributes),
    ]  # fmt: skip


class _ErrorCreate(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("extension", _pointer), ("message", ctypes.c_char_p), ("code", _int)]


class _StreamGet(ctypes.Structure):
    _fields_ = [("struct_size", _size), ("extension", _pointer), ("context", _pointer), ("stream", _pointer)]


class Launch(NamedTuple):
    """What a call launches: an operator, and the part and the name of each array that XLA hands over."""

    operator: Operator
    keys: tuple[tuple[str, str], ...]


_launches: list[Launch] = []
_numbers: dict[tuple[Any, ...], int] = {}
_lock = threading.Lock()


def number(launch: Launch) -> int:
    """The number by which the handler knows a launch. It is kept: compiled functions of JAX may hold it."""
    with _lock:
        key = (id(launch.operator), launch.keys)
        if key not in _numbers:
            _numbers[key] = len(_launches)
            _launches.append(launch)
        return _numbers[key]


def _lent(name: str, dtype: str, buffer: _Buffer, writable: bool, place: str, stream: Any) -> tuple:
    shape = [buffer.dims[axis] for axis in range(buffer.rank)]
    return (name, buffer.data or 0, dtype, shape, None, writable, place, stream)


def _run(frame: _Frame) -> None:
    launch = _launches[frame.attributes.values[0][0].value[0]]
    given = {key: frame.arguments.buffers[k][0] for k, key in enumerate(launch.keys)}
    result = frame.results.buffers[0][0]
    stream, place = None, "host"
    for part in launch.operator.parts:
        compiled = part.compiled
        if compiled.target == "cuda" and stream is None:
            stream, place = _stream(frame), "cuda"
        arrays = []
        for argument in compiled.arguments:
            if argument.kind == "array":
                key = key_of(given, part.name, argument.name)
                buffer = result if argument.is_written else given[key]
                arrays.append(_lent(argument.name, argument.dtype, buffer, argument.is_written, place, stream))
        compiled._program.launch(arrays, {}, stream)


def _stream(frame: _Frame) -> int:
    asked = _StreamGet(ctypes.sizeof(_StreamGet), None, frame.context, None)
    get = ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_StreamGet))(frame.api[0].stream_get)
    if get(ctypes.byref(asked)):
        raise RuntimeError("XLA has no stream for a kernel of a card")
    return asked.stream or 0


def _error(frame: _Frame, message: str) -> Any:
    asked = _ErrorCreate(ctypes.sizeof(_ErrorCreate), None, message.encode(), _FAILED)
    return ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_ErrorCreate))(frame.api[0].error_create)(ctypes.byref(asked))


@ctypes.CFUNCTYPE(_pointer, ctypes.POINTER(_Frame))
def _handler(pointer: Any) -> Any:
    frame = pointer[0]
    if frame.extension and _Base.from_address(frame.extension).kind == 1:  # the registration asks for the version
        metadata = _MetadataExtension.from_address(frame.extension).metadata[0]
        metadata.version.major, metadata.version.minor = _version()
        return None
    if frame.stage != _EXECUTE:
        return None
    try:
        _run(frame)
    except BaseException as error:  # noqa: BLE001 (nothing may pass through XLA)
        return _error(frame, f"{type(error).__name__}: {error}")
    return None


@lru_cache(maxsize=1)
def _version() -> tuple[int, int]:
    """The version of the interface that this JAX has, by its header."""
    header = (Path(jax.ffi.include_dir()) / "xla" / "ffi" / "api" / "c_api.h").read_text()
    found = [re.search(rf"#define XLA_FFI_API_{part} (\d+)", header) for part in ("MAJOR", "MINOR")]
    major, minor = (int(match.group(1)) if match else -1 for match in found)
    if major != 0:
        raise RuntimeError(f"JAX {jax.__version__} has version {major}.{minor} of XLA's interface, needed 0")
    return major, minor


@lru_cache(maxsize=1)
def register() -> None:
    """Makes the handler known to XLA, once."""
    _version()
    # a library object of its own: `jax.ffi.pycapsule` sets the types of a function that the whole process shares
    new = ctypes.PyDLL(None).PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [_pointer, ctypes.c_char_p, _pointer]
    capsule = new(ctypes.cast(_handler, _pointer), None, None)
    for platform in PLATFORMS:
        jax.ffi.register_ffi_target(TARGET, capsule, platform=platform)
