"""Programs of other languages, whose packages are optional."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from kingpost.errors import Unavailable

if TYPE_CHECKING:
    from kingpost.loopy import Imported, Proof


def _loopy() -> ModuleType:
    try:
        import loopy
    except ImportError as error:
        message = f"Loopy is needed and cannot be imported ({error}); install it with `pip install 'kingpost[loopy]'`"
        raise Unavailable(message) from error
    if not hasattr(loopy, "TranslationUnit"):
        raise Unavailable("the package `loopy` is another one; install Loopy with `pip install 'kingpost[loopy]'`")
    import kingpost.loopy

    return kingpost.loopy


def from_loopy(t_unit: Any, **options: Any) -> Imported:
    """Reads a program of Loopy; see :func:`kingpost.loopy.from_loopy`."""
    return _loopy().from_loopy(t_unit, **options)


def prove_loopy(t_unit: Any, **options: Any) -> Proof:
    """Proves a schedule of Loopy's free of races and accesses outside arrays; see :func:`kingpost.loopy.prove_loopy`."""
    return _loopy().prove_loopy(t_unit, **options)
