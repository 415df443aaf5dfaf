"""Several calls as one, which is made once and replayed: on a card a graph of CUDA."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Optional

from kingpost import _kingpost
from kingpost._kingpost import BoundCall
from kingpost.errors import ArgumentError

#: The calls of the function that is being captured in this thread.
_calls: ContextVar[Optional[list[BoundCall]]] = ContextVar("kingpost_capture", default=None)


def capture(function: Callable[[], Any]) -> BoundCall:
    """The calls that a function of no arguments makes, as one: ``call()`` replays them.

    >>> step = kingpost.capture(lambda: (op(y, u=u, **mesh), axpy(a=-dt, x=y, y=u)))
    >>> for _ in range(1000):
    ...     step()

    Calls of compiled kernels, operators and bound calls are taken down while the function runs, with their arguments
    checked, and none of them runs. What the function does besides is done once, and no part of the replay: work of
    other libraries belongs into graphs of theirs, which may have calls of Kingpost in them. The replay reads what the
    arrays hold then. On a card it is a graph of CUDA, on the stream of the first call that has one.
    """
    if not callable(function):
        raise ArgumentError(f"capture: found a `{type(function).__name__}`, needed a function that makes calls")
    if _calls.get() is not None:
        raise ArgumentError("capture: a capture is under way in this thread; end it first")
    calls: list[BoundCall] = []
    token = _calls.set(calls)
    _kingpost.capturing(True)
    try:
        function()
    finally:
        _kingpost.capturing(False)
        _calls.reset(token)
    if not calls:
        raise ArgumentError("capture: the function makes no call; needed at least one of a kernel or an operator")
    return BoundCall.sequence(calls).capture()


def is_capturing() -> bool:
    """Whether calls of this thread are taken down."""
    return _calls.get() is not None


def take(call: BoundCall, stream: Any) -> bool:
    """Takes a call down, if calls of this thread are; whether it did."""
    calls = _calls.get()
    if calls is None:
        return False
    if stream is not None:
        raise ArgumentError("capture: a bound call names a stream; name it where the capture is replayed")
    calls.append(call)
    return True
