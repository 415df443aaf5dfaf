"""What is refused while a program of Loopy is read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kingpost.errors import ImportRefusal


def refuse(feature: str, found: str, needed: str) -> ImportRefusal:
    """An error that says what was found and what to do; the instruction is added on the way out."""
    error = ImportRefusal(f"found {found}, {needed}")
    error.feature = feature
    return error


@contextlib.contextmanager
def inside(instruction: str) -> Iterator[None]:
    """Names the instruction in refusals from within."""
    try:
        yield
    except ImportRefusal as error:
        if error.instruction is None:
            error.instruction = instruction
        raise


def complete(error: ImportRefusal, kernel: str) -> ImportRefusal:
    """The error with the operation, the kernel and the instruction in its message."""
    error.kernel_name = kernel
    place = f"instruction `{error.instruction}` of `{kernel}`" if error.instruction else f"`{kernel}`"
    error.args = (f"import of {place}: {error.feature}: {error.args[0]}",)
    return error
