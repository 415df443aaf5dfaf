"""Kernels as functions on arrays."""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any, Optional, Union

from kingpost import _kingpost
from kingpost._kingpost import BoundCall, Kernel
from kingpost.arrays import UNKNOWN, View, _about, current_stream, is_array, refuse_masked, view
from kingpost.capture import is_capturing, take
from kingpost.errors import ArgumentError, CopyWarning, DtypeError, UnknownArgument
from kingpost.schedule import Schedule
from kingpost.show import LANGUAGES, highlighted
from kingpost.structured import Fields


#: The environment variable that, set to anything but ``0``, has each call checked.
CHECK = "KINGPOST_CHECK"


@dataclass(frozen=True)
class Argument:
    """What a compiled kernel takes."""

    name: str
    #: ``parameter``, ``number`` or ``array``.
    kind: str
    #: The name of the type, such as ``f64``, ``u32`` or ``bool``.
    dtype: str
    #: The extents in terms of the parameters.
    shape: tuple[str, ...]
    is_read: bool
    is_written: bool

    def __str__(self) -> str:
        shape = f"[{', '.join(self.shape)}]" if self.kind == "array" else ""
        access = {(True, True): " inout", (False, True): " out"}.get((self.is_read, self.is_written), "")
        return f"{self.name}: {self.dtype}{shape}{access}"


@dataclass(frozen=True)
class Roofline:
    """Times of repeated runs, and the roofline of the device.

    :attr:`flops` and bytes are those of the kernel before any step, so that doing less work never
    looks slower; :attr:`executed_flops` are those of the kernel that ran, and :attr:`fraction` is of
    them. Units: seconds, FLOP, bytes, FLOP/s.
    """

    seconds: float
    shortest: float
    longest: float
    runs: int
    flops: int
    memory_bytes: int
    table_bytes: int
    #: The highest rate by memory and arithmetic alone, of the kernel before any step.
    roof: float
    #: The highest rate with tables from local memory (Kulkarni & Klöckner 2025, section 6).
    table_roof: float
    executed_flops: int
    #: The highest rate by memory and arithmetic alone, of the kernel that ran.
    executed_roof: float
    limit: str
    #: How :attr:`fraction` can be above 1, where it is.
    why_above: Optional[str]
    device: str
    svg: str

    @property
    def flops_per_s(self) -> float:
        """Operations a second, those of the kernel before any step."""
        return self.flops / self.seconds

    @property
    def fraction(self) -> float:
        """Share of :attr:`executed_roof`, of the operations that are executed."""
        return self.executed_flops / self.seconds / self.executed_roof

    def __str__(self) -> str:
        rate = self.executed_flops / self.seconds
        why = f", above 100 %: {self.why_above}" if self.why_above else ""
        text = (
            f"{self.seconds * 1e3:.4g} ms (median of {self.runs}) on {self.device}: "
            f"{rate * 1e-9:.4g} GFLOP/s, {100 * self.fraction:.3g} % of the roofline ({self.limit}){why}"
        )
        if self.executed_flops != self.flops:
            text += f"; {self.flops_per_s * 1e-9:.4g} GFLOP/s as written"
        return text

    def _repr_svg_(self) -> Optional[str]:
        return self.svg or None


@dataclass(frozen=True)
class Bound:
    """The arguments of a call as the engine takes them; ``views`` keep the arrays alive."""

    arrays: list[tuple]
    numbers: dict[str, Union[int, float, complex]]
    views: list[View]
    stream: Optional[int]


class Compiled:
    """A kernel compiled for a device: a function on arrays.

    Arrays are given by name, or by position in the order of :attr:`arguments` without those that
    shapes determine. They may be anything with ``__array_interface__``,
    ``__cuda_array_interface__``, DLPack or the buffer protocol. Results are written in place.
    Parameters follow from shapes, or are given by name.

    Arrays that may not be written (those of JAX never may) are refused as results.

    During a call, nothing else may write to its arrays. Calls release the interpreter's lock; those
    of several threads run one after the other on a device.
    """

    def __init__(
        self, program: _kingpost.Program, schedule: Optional[Schedule] = None, is_checked: bool = False
    ) -> None:
        self._program = program
        self._schedule = schedule
        self._is_checked = is_checked
        #: What it was compiled from, with what options: :func:`compile` says it.
        self._made: tuple = ()
        self.arguments = tuple(
            Argument(name, kind, dtype, tuple(shape), read, written)
            for name, kind, dtype, shape, read, written in program.arguments
        )
        self._positions = [a.name for a in self.arguments if a.kind != "parameter"]
        self._calls = _kingpost.Calls(self._positions)

    @property
    def source(self) -> str:
        """The source that was compiled."""
        return self._program.source

    @property
    def target(self) -> str:
        """Its language: ``c``, ``opencl`` or ``cuda``."""
        return self._program.target

    @property
    def device(self) -> str:
        """The device, as :func:`kingpost.compile` takes it."""
        return self._program.device[0]

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self._program.kernel

    @property
    def schedule(self) -> Optional[Schedule]:
        """The schedule that made it, if it was compiled from one."""
        return self._schedule

    @property
    def recipe(self) -> str:
        """The steps that made it, as text; empty if it was compiled from a kernel."""
        return self._schedule.recipe if self._schedule is not None else ""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the source would not expect.

        Loops tagged ``vector`` that stay scalar, and loops that run on one work-item, with the reason.
        """
        return tuple(self._program.notes)

    @property
    def resources(self) -> Optional[str]:
        """Registers and spills of a CUDA kernel."""
        return self._program.resources

    def steps(self):
        """Each step that made it, with the kernel after it."""
        return self._schedule.steps() if self._schedule is not None else []

    def __call__(self, *args: Any, stream: Any = None, **kwargs: Any) -> None:
        """Runs once.

        On arrays of a card it is put on the current stream of the library of the results, or of the
        first array whose library (PyTorch, CuPy) tells it, and returns early, as operations of that
        library do; what other libraries make on other streams is waited for. Where no library tells
        a stream, the run waits for all of the card's, and the call for the result. So it does on the
        host.

        ``stream`` names another one: an integer, or an object with a handle (CuPy's ``ptr``, PyTorch's
        ``cuda_stream``, the protocol ``__cuda_stream__``). The run then waits for the arrays there,
        except for those of libraries that do not tell their streams. The arrays have to live until
        the stream has come so far.

        In C and CUDA, a call with arrays of NumPy, PyTorch, CuPy or an interface that tells its stream is
        kept, without the arrays: one with the same types, layouts and addresses is launched at once, and of
        one with other addresses or numbers what these decide is checked.

        An argument that is a record takes an array of NumPy's structures, whose fields are copied, or a
        mapping with an array for each field; ``best_value`` and ``best_at`` are arguments, too.
        """
        if not self._calls.run(args, kwargs, stream):
            self._calls.keep(args, kwargs, stream, [(None, self._run(args, kwargs, stream))])

    def _run(self, args: tuple, kwargs: dict[str, Any], stream: Any) -> Optional[BoundCall]:
        """Runs once, with all checks; the bound call, if later calls with arguments of the same layout may be it."""
        if is_capturing():
            take(self.bind(*args, stream=stream, **kwargs), None)
            return None
        fields = self._fields(args, kwargs)
        bound = self._on_stream(fields.given, stream)
        if self._is_kept(fields, bound):
            call = self._program.bind(bound.arrays, bound.numbers, bound.views, bound.stream)
            call()
            return call
        self._program.launch(bound.arrays, bound.numbers, bound.stream)
        fields.put_back()
        return None

    def _is_kept(self, fields: Fields, bound: Bound) -> bool:
        """Whether a call uses its arrays where they lie, and nothing but its arguments decides about it."""
        if not self._program.keeps or self._is_checked or fields.has_copies() or os.environ.get(CHECK, "0") not in ("", "0"):
            return False
        host, cuda = self._program.shares
        return all((host if found.place == "host" else cuda) and 0 not in found.shape for found in bound.views)

    def bind(self, *args: Any, stream: Any = None, **kwargs: Any) -> BoundCall:
        """The call with these arguments, as a function of none: ``call()`` runs it once more.

        Addresses, types, shapes and layouts are checked here, and not again: a call costs about what
        the driver takes. The arrays stay where they are as long as the bound call lives, and what they
        hold when it runs is what it reads. Its stream is found here as by a call, where ``stream`` names
        none; ``call(stream=...)`` names another one.
        """
        fields = self._fields(args, kwargs)
        fields.refuse_copies()
        bound = self._on_stream(fields.given, stream)
        return self._program.bind(bound.arrays, bound.numbers, bound.views, bound.stream)

    def capture(self, *args: Any, stream: Any = None, **kwargs: Any) -> BoundCall:
        """The bound call as a graph of CUDA; on other devices, and of arrays that are copied, a bound call."""
        return self.bind(*args, stream=stream, **kwargs).capture()

    def roofline(self, *args: Any, work: Optional[Kernel] = None, **kwargs: Any) -> Roofline:
        """Times runs with these arguments, of which those that are written are left alone."""
        bound = self._ready(self._fields(args, kwargs).given, None)
        kernel = work or (self._schedule.start if self._schedule is not None else self.kernel)
        times, runs, work_done, roofs, executed, device, svg = self._program.measure(
            bound.arrays, bound.numbers, kernel, kernel.name
        )
        flops, roof, limit, why_above = executed
        return Roofline(*times, runs, *work_done, *roofs, flops, roof, limit, why_above, device, svg)

    def seconds(self, *args: Any, **kwargs: Any) -> float:
        """The median time of runs with these arguments, of which those written are left alone."""
        bound = self._ready(self._fields(args, kwargs).given, None)
        return self._program.seconds(bound.arrays, bound.numbers)

    def check(self, *args: Any, **kwargs: Any) -> str:
        """Checks a call without running it: what a launch takes on trust.

        Kernels are compiled for maps that lead to elements of their arrays, and for what a recipe
        assumes of them. A call does not look: a map that leads elsewhere makes it read and write
        memory that is not its own. This looks at each entry, on the host, and raises
        :class:`ArgumentError` with those at fault. Maps on a card are copied for it. Returns what
        was checked, in words. :func:`kingpost.checked` does it at each call.
        """
        bound = self._bind(self._fields(args, kwargs).given, None)
        return self._program.check(bound.arrays, bound.numbers)

    def _checked(self) -> Compiled:
        """The same, each call of which is checked."""
        twin = Compiled(self._program, self._schedule, True)
        twin._made = self._made
        return twin

    def __copy__(self) -> Compiled:
        return self  # nothing of it changes

    def __deepcopy__(self, _: Any) -> Compiled:
        return self

    def __reduce__(self) -> tuple:
        """Pickled as what it was compiled from, for the same device, where it is compiled again."""
        return _compiled_again, (*self._made, self.device, self._is_checked)

    def _fields(self, args: tuple, kwargs: dict[str, Any]) -> Fields:
        """The arguments by name, those of records as their fields."""
        return Fields(self._named(args, kwargs), {a.name: a.is_written for a in self.arguments})

    def _on_stream(self, given: dict[str, Any], stream: Any) -> Bound:
        """The arguments of a run and its stream: the one that is named, or that of the arrays' library."""
        handle = _stream(stream)
        if handle is not None or self.target != "cuda":
            return self._ready(given, handle)
        current = self._current_stream(given)
        bound = self._ready(given, current)
        # what nobody tells the stream of is waited for on all of them, which a run on a stream does not
        unknown = current is not None and any(found.stream == UNKNOWN for found in bound.views)
        return self._ready(given, None) if unknown else bound

    def _current_stream(self, given: dict[str, Any]) -> Optional[int]:
        results = [a.name for a in self.arguments if a.is_written and a.name in given]
        streams = (current_stream(given[name]) for name in [*results, *given])
        return next((stream for stream in streams if stream is not None), None)

    def _ready(self, given: dict[str, Any], stream: Optional[int]) -> Bound:
        """The arguments of a run, checked where that is asked for."""
        bound = self._bind(given, stream)
        if self._is_checked or os.environ.get(CHECK, "0") not in ("", "0"):
            # a check reads values now, so that it waits for whatever is under way
            now = [found if stream is None else replace(found, stream=UNKNOWN) for found in bound.views]
            arrays = [found.lent(array[0]) for array, found in zip(bound.arrays, now)]
            self._program.check(arrays, bound.numbers)
        return bound

    def _bind(self, given: dict[str, Any], stream: Optional[int]) -> Bound:
        kinds = {a.name: a.kind for a in self.arguments}
        arrays, numbers, views = [], {}, []
        for name, value in given.items():
            is_number = kinds.get(name) in ("parameter", "number")
            if is_number or not is_array(value):
                numbers[name] = _number(name, value, is_number)
                continue
            found = view(name, value, stream)
            views.append(found)
            arrays.append(found.lent(name))
        self._warn_of_copies(given, views)
        return Bound(arrays, numbers, views, stream)

    def _named(self, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._positions):
            names = ", ".join(f"`{name}`" for name in self._positions)
            raise UnknownArgument(
                f"`{self.kernel.name}` takes {len(self._positions)} arguments by position ({names}), "
                f"{len(args)} were given"
            )
        given = dict(zip(self._positions, args))
        for name, value in kwargs.items():
            if name in given:
                message = f"argument `{name}` of `{self.kernel.name}` was given twice; give it once"
                raise _about(ArgumentError, name, message)
            given[name] = value
        return given

    def _warn_of_copies(self, given: dict[str, Any], views: list[View]) -> None:
        host, _ = self._program.shares
        if host:
            return
        for name, found in zip((n for n in given if is_array(given[n])), views):
            if found.place == "host":
                message = f"argument `{name}` is copied to `{self.device}`, because it lies in host memory"
                warnings.warn(message, CopyWarning, stacklevel=_depth())

    def __repr__(self) -> str:
        arguments = ", ".join(map(str, self.arguments))
        return f"<kingpost.Compiled {self.kernel.name}({arguments}) for {self.device}>"

    def _repr_html_(self) -> str:
        return highlighted(self.source, LANGUAGES[self.target])


def _depth() -> int:
    """How many calls of the package are around whoever calls this, as warnings count them."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kingpost":
        frame, depth = frame.f_back, depth + 1
    return depth


def _number(name: str, value: Any, is_number: bool) -> Union[int, float, complex]:
    refuse_masked(name, value)
    number = None
    if _is_complex(value):
        number = complex(value)
    elif _is_numeric(value):
        try:
            number = value.__index__() if hasattr(value, "__index__") else float(value)
        except (TypeError, ValueError, RuntimeError):  # NumPy's arrays have `__index__`, and refuse
            try:
                number = float(value)
            except (TypeError, ValueError, RuntimeError):
                pass
    if isinstance(number, int) and not -(2**63) <= number < 2**64:
        raise _about(ArgumentError, name, f"argument `{name}` is an integer beyond 64 bits, needed a smaller one")
    if number is not None:
        return number
    if is_number and (isinstance(value, TEXTS) or not is_array(value)):
        raise _about(DtypeError, name, f"argument `{name}` is a {type(value).__name__}, needed a number")
    found = view(name, value)  # raises what says what it is, if it is no array either
    raise _about(ArgumentError, name, f"argument `{name}` is an array of shape {found.shape}, needed a number")


#: Python reads a number from them, which a call does not.
TEXTS = (str, bytes, bytearray)


def _is_complex(value: Any) -> bool:
    """Whether a value is one complex number, of Python or NumPy."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return isinstance(value, complex) or kind == "c" and getattr(value, "shape", None) == ()


def _is_numeric(value: Any) -> bool:
    """Whether a value may be a real number: no text, and no array of text, complex numbers or objects."""
    kind = getattr(getattr(value, "dtype", None), "kind", "f")  # only NumPy's types have a kind
    return not isinstance(value, TEXTS) and kind in ("b", "i", "u", "f")


def _stream(stream: Any) -> Optional[int]:
    try:
        return _handle(stream)
    except (TypeError, ValueError, IndexError):
        kind = type(stream).__name__
        message = f"`stream` is a {kind}, needed an integer, or an object with `__cuda_stream__`, `ptr` or `cuda_stream`"
        raise _about(ArgumentError, "stream", message) from None


def _handle(stream: Any) -> Optional[int]:
    if stream is None:
        return None
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    for attribute in ("ptr", "cuda_stream", "handle"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    return int(stream)


def compile(  # noqa: A001 (the name says what it does)
    kernel: Union[Kernel, Schedule, str], device: str = "default", *, contraction: bool = True, trust: bool = False
) -> Compiled:
    """Compiles a kernel, or the kernel of a schedule, for a device.

    ``device`` is ``c``, ``opencl``, ``opencl:1``, ``cuda``, ``cuda:0`` and so on; the default is ``c``, or
    ``opencl`` where there is no C compiler. :func:`kingpost.devices` lists what this machine has. ``contraction=False`` rounds each operation
    separately.

    A kernel, or a step ``declare_callee``, may hold a callee with code, which is compiled and run as its author wrote
    it. Unless Kingpost ships that callee, this raises :class:`kingpost.UntrustedError`; ``trust=True`` allows it.
    """
    schedule = None
    if isinstance(kernel, Schedule):
        schedule, kernel = kernel.copy(), kernel.kernel
    elif isinstance(kernel, str):
        kernel = Kernel.parse(kernel)
    compiled = Compiled(_kingpost.Program(kernel, device, contraction, bool(trust)), schedule)
    compiled._made = (kernel if schedule is None else schedule, contraction, bool(trust))
    return compiled


def _compiled_again(
    made: Union[Kernel, Schedule], contraction: bool, trust: bool, device: str, is_checked: bool
) -> Compiled:
    compiled = compile(made, device, contraction=contraction, trust=trust)
    return compiled._checked() if is_checked else compiled


def source(kernel: Union[Kernel, Schedule, str], target: str) -> str:
    """The source of a kernel for ``c``, ``opencl``, ``cuda`` or ``hip``; no device is needed."""
    if isinstance(kernel, Schedule):
        kernel = kernel.kernel
    elif isinstance(kernel, str):
        kernel = Kernel.parse(kernel)
    return _kingpost.Program.generate(kernel, target)


def devices() -> dict[str, str]:
    """The devices of this machine: what :func:`compile` takes, and the name of the device."""
    return {selector: name for selector, name, is_there in _kingpost.devices() if is_there}
