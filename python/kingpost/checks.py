"""Functions on arrays whose calls are checked."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

from kingpost.compiled import Compiled
from kingpost.errors import ArgumentError
from kingpost.operator import Operator

Function = TypeVar("Function")


def checked(function: Function) -> Function:
    """The same function on arrays, each call of which is checked before it runs.

    ``function`` is a :class:`Compiled` kernel, an :class:`Operator`, or what is built on one, as the
    functions of :mod:`kingpost.dolfinx` are. A call then looks at every map that it takes, as
    :meth:`Compiled.check` does, on cards too, and raises :class:`ArgumentError` for an entry that
    leads outside an array. This takes a pass over the maps, and waits for what makes their values.

    With ``KINGPOST_CHECK=1`` in the environment, all calls are checked.
    """
    if isinstance(function, (Compiled, Operator)):
        return function._checked()  # type: ignore[return-value]
    of: Any = getattr(function, "operator", None)
    if isinstance(of, Operator):
        twin: Any = copy.copy(function)
        twin.operator = of._checked()
        return twin
    if hasattr(function, "action"):  # a matrix that is never formed
        twin = copy.copy(function)
        twin.action = checked(twin.action)
        return twin
    raise ArgumentError(
        f"`function` is a {type(function).__name__}; needed what `kingpost.compile` or `kingpost.jit` returns, or what "
        "has one as its `operator`"
    )
