"""Kernels without types: compiled for those of the arrays they are called with."""

from __future__ import annotations

from typing import Any

from kingpost._kingpost import Kernel
from kingpost.arrays import is_array, size_of, view
from kingpost.compiled import Compiled, compile


class Generic:
    """A kernel whose arguments need no types: a function on arrays by name.

    A call compiles the kernel for the types of its arrays, once for each choice of types. An argument
    with a type keeps it. Of numbers, those with a type of NumPy have that. Other reals and complex numbers
    take the widest real type of the arrays, where that of ``c64`` is ``f32``; other integers are ``i64``.
    Parameters without a type are ``i32``.

    >>> import numpy, kingpost
    >>> axpy = kingpost.generic('''
    ... kernel axpy
    ... param n
    ... arg a in
    ... arg x[n] in
    ... arg y[n] inout
    ...
    ... for i in 0..n
    ...   let scaled = a*x[i]
    ...   y[i] += scaled
    ... ''')
    >>> y = numpy.ones(3, "float32")
    >>> axpy(a=2.0, x=numpy.ones(3, "float32"), y=y)
    >>> y.tolist()
    [3.0, 3.0, 3.0]
    """

    def __init__(self, text: str, device: str = "default", *, contraction: bool = True, trust: bool = False) -> None:
        self._text, self._device = text, device
        self._options = {"contraction": contraction, "trust": trust}
        self._compiled: dict[tuple, Compiled] = {}

    def kernel(self, **arguments: Any) -> Kernel:
        """The kernel with the types of these arguments."""
        return Kernel.parse(self._text, _types(arguments))

    def compiled(self, **arguments: Any) -> Compiled:
        """The function for the types of these arguments."""
        types = _types(arguments)
        key = tuple(sorted(types.items()))
        if key not in self._compiled:
            self._compiled[key] = compile(Kernel.parse(self._text, types), self._device, **self._options)
        return self._compiled[key]

    def __call__(self, *, stream: Any = None, **arguments: Any) -> None:
        """Runs once, as a call of :class:`Compiled` does."""
        self.compiled(**arguments)(stream=stream, **arguments)


def generic(text: str, device: str = "default", *, contraction: bool = True, trust: bool = False) -> Generic:
    """A kernel without types, for a device: see :class:`Generic`; the options are those of :func:`compile`."""
    return Generic(text, device, contraction=contraction, trust=trust)


def _types(arguments: dict[str, Any]) -> dict[str, str]:
    numbers = {name: value for name, value in arguments.items() if isinstance(value, (int, float, complex))}
    arrays = {name: value for name, value in arguments.items() if name not in numbers and is_array(value)}
    types = {name: view(name, value).dtype for name, value in arrays.items()}
    reals = [_REAL.get(dtype, dtype) for dtype in types.values()]
    real = max((dtype for dtype in reals if dtype in ("f32", "f64")), key=size_of, default="f64")
    return {**types, **{name: _of_number(value, real) for name, value in numbers.items()}}


#: The types of the parts of complex numbers.
_REAL = {"c64": "f32", "c128": "f64"}


def _of_number(value: Any, real: str) -> str:
    """The type of a number without one, by the type of reals."""
    if isinstance(value, complex):
        return next(dtype for dtype, part in _REAL.items() if part == real)
    return real if isinstance(value, float) else "i64"
