"""Variational forms as functions on arrays."""

from __future__ import annotations

import copy
import difflib
import inspect
import json
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, Optional, Sequence, Union, overload

from kingpost import _kingpost, tuning
from kingpost._kingpost import BoundCall, Kernel
from kingpost.arrays import _about, refuse_masked
from kingpost.batches import in_batches
from kingpost.compiled import Argument, Compiled, Roofline, compile, devices
from kingpost.errors import (
    ArgumentError,
    CodegenError,
    DeviceError,
    DtypeError,
    FormError,
    MappingError,
    Refusal,
    ShapeError,
    UnknownArgument,
)
from kingpost.schedule import Schedule, Step
from kingpost.show import explorer
from kingpost.sparse import Csr, Pattern, _host, patterns, zeros
from kingpost.tuning import Trial, Trials

if TYPE_CHECKING:
    from kingpost.divided import DividedOperator

#: Operators that :func:`jit` keeps.
CACHE_SIZE = 128

#: Where ``kingpost tune`` of the command line writes its trials.
TRIALS = "tune-output/trials.jsonl"


@dataclass(frozen=True)
class Part:
    """A kernel of a form, compiled: one a kind of entity and part of the mesh."""

    form: _kingpost.Form
    compiled: Compiled
    #: How it is mapped to the device, as ``--mapping`` of the command line takes it.
    mapping: dict[str, Any]
    #: The mapping in words, and where it is known from.
    words: str
    #: What it runs over, and the number of its part of the mesh: ``cells``, ``exterior_facets_1``.
    name: str


class Operator:
    """A form compiled for a device: a function on arrays.

    ``op(y, u=u, kappa=2.0)`` adds the result to ``y``; positions are those of the results. Names
    are those of :attr:`arguments`, and parameters follow from the shapes of arrays. A constant ``K``
    with components is given as an array, or as the numbers ``K_0``, ``K_1``, … A form with
    integrals over several kinds of entities has several :attr:`parts`, which run in sequence. What only
    one of them gets stands in a dictionary under its name:
    ``op(y, u=u, interior_facets={"facet_cells": ...})``.
    """

    def __init__(
        self,
        forms: list[_kingpost.Form],
        device: str,
        mapping: Optional[str],
        trials: Optional[Path] = None,
        by_dimension: bool = False,
        form_hash: str = "",
    ) -> None:
        self._device = device
        self._form_hash = form_hash
        self._trials = trials
        self._by_dimension = by_dimension
        self._constants = _constants(forms)
        self._is_checked = False
        #: The arguments that have an axis of batches, the results included.
        self._batched: tuple[str, ...] = ()
        #: The text of the form and how it was lowered: :func:`jit` says it.
        self._lowered: tuple = ()
        self.parts = tuple(self._part(form, mapping) for form in forms)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The kernels of the form, which run in sequence."""
        return self._code[0]

    @parts.setter
    def parts(self, parts: tuple[Part, ...]) -> None:
        written = {a.name: None for part in parts for a in part.compiled.arguments if a.is_written}
        # one assignment: calls of other threads see the old code with its kept calls, or the new one
        self._code = parts, _kingpost.Calls(list(written))

    def _part(self, form: _kingpost.Form, mapping: Optional[str]) -> Part:
        kept = None
        if mapping is None:
            kept = tuning.kept(self._form_hash, form.name, self._device_name())
        try:
            engine, found, words = form.map(
                self._device, kept.mapping if kept else mapping, self._trials, self._by_dimension
            )
            words = f"{words} ({kept.source})" if kept else words
        except MappingError:
            if kept is None:
                raise
            # kept by another version
            engine, found, words = form.map(self._device, None, self._trials, self._by_dimension)
        return Part(form, self._compiled(Schedule._of(engine)), json.loads(found), words, form.name)

    def _compiled(self, schedule: Schedule) -> Compiled:
        """The kernel of a schedule, in batches and checked where this operator is."""
        if own := [name for name in self._batched if name in schedule.kernel.variables]:
            schedule = in_batches(schedule, own, self._device)
        compiled = compile(schedule, self._device)
        return compiled._checked() if self._is_checked else compiled

    def batched(self, *arguments: str) -> Operator:
        """The operator once for each of many data, in one launch a part: these arguments and the results get an axis
        in front, ``[batches, ...]``, and a call adds to each result what it makes of its data.

        >>> several = op.batched("u")
        >>> several(y, u=u, x=x, x_dofs=cells, p1_dofs=cells)  # y[k, :] += op(u[k, :])
        """
        known = [a.name for a in self.arguments if a.kind == "array"]
        for name in arguments:
            if name not in known:
                found = ", ".join(f"`{one}`" for one in known)
                raise _about(UnknownArgument, name, f"the form takes no array `{name}`; it takes {found}")
        if self._batched:
            raise FormError("the operator is one for batches already; take that of one datum")
        twin = copy.copy(self)
        written = (a.name for a in self.arguments if a.is_written)
        twin._batched = tuple(dict.fromkeys((*arguments, *written)))
        twin._form_hash = tuning.form_hash(self._form_hash, *twin._batched)
        twin.parts = tuple(
            replace(part, compiled=twin._compiled(_schedule_of(part.compiled).copy())) for part in self.parts
        )
        return twin

    def _checked(self) -> Operator:
        """The same, each call of which is checked."""
        twin = copy.copy(self)
        twin._is_checked = True
        twin.parts = tuple(replace(part, compiled=part.compiled._checked()) for part in self.parts)
        return twin

    def __copy__(self) -> Operator:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, _: Any) -> Operator:
        return copy.copy(self)

    def __reduce__(self) -> tuple:
        """Pickled as the form and the mapping of each part, for the same device, where it is compiled again."""
        if not self._lowered:
            raise TypeError("an operator of forms in memory cannot be pickled; make it by `kingpost.jit`")
        mappings = [json.dumps(part.mapping) for part in self.parts]
        made = (self._device, self._by_dimension, self._form_hash, self._is_checked, self._batched)
        return _operator_again, (self._lowered, mappings, *made)

    def _only(self) -> Part:
        if len(self.parts) == 1:
            return self.parts[0]
        names = ", ".join(f"`{part.form.kernel.name}`" for part in self.parts)
        raise FormError(f"the form has {len(self.parts)} kernels ({names}); take them from `parts`")

    @property
    def compiled(self) -> Compiled:
        """The compiled kernel of a form that has one."""
        return self._only().compiled

    @property
    def mapping(self) -> dict[str, Any]:
        """The mapping of a form that has one kernel."""
        return self._only().mapping

    @property
    def mapping_reason(self) -> str:
        """The mapping of a form that has one kernel in words, and where it is known from."""
        return self._only().words

    @property
    def entity_parts(self) -> Optional[tuple[int, ...]]:
        """How many degrees of freedom of a cell are on vertices, edges, faces and in the interior, as far as
        there are any: what :func:`kingpost.number_by_dimension` takes. None where the form does not say so.
        """
        parts = self._only().form.entity_parts
        return None if parts is None else tuple(parts)

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What a call takes: the arguments of all parts."""
        found = {a.name: a for part in self.parts for a in part.compiled.arguments}
        return tuple(found.values())

    @property
    def source(self) -> str:
        """The source that was compiled, of all parts."""
        return "\n".join(part.compiled.source for part in self.parts)

    @property
    def kernel(self) -> Kernel:
        """The kernel that was compiled, of a form that has one."""
        return self.compiled.kernel

    @property
    def recipe(self) -> str:
        """The steps to it as text; they start from the kernel :attr:`Schedule.start` of :attr:`schedule`.

        A mapping may lower the form again, such as ``orbits`` and ``rules``; the first line then says so, and
        the command line takes the text with the form: ``kingpost steps laplace --recipe mine.txt``.
        """
        return self.compiled.recipe

    @property
    def schedule(self) -> Schedule:
        """A schedule with these steps, to go on by hand; :func:`kingpost.compile` takes it."""
        return _schedule_of(self.compiled).copy()

    def steps(self) -> list[Step]:
        """Each step with the kernel after it, of all parts."""
        return [step for part in self.parts for step in part.compiled.steps()]

    def __call__(self, *outputs: Any, stream: Any = None, **kwargs: Any) -> None:
        """Adds the form's result to the arrays ``outputs``; as :meth:`kingpost.Compiled.__call__`."""
        parts, calls = self._code
        if calls.run(outputs, kwargs, stream):
            return
        given, several = self._named(outputs, kwargs), len(parts) > 1
        ran = [(part.name if several else None, part.compiled._run((), _of(part, given), stream)) for part in parts]
        calls.keep(outputs, kwargs, stream, ran)

    def bind(self, *outputs: Any, stream: Any = None, **kwargs: Any) -> BoundCall:
        """The call with these arguments, as a function of none; as :meth:`kingpost.Compiled.bind`."""
        given = self._named(outputs, kwargs)
        calls = [part.compiled.bind(stream=stream, **_of(part, given)) for part in self.parts]
        return calls[0] if len(calls) == 1 else BoundCall.sequence(calls)

    def capture(self, *outputs: Any, stream: Any = None, **kwargs: Any) -> BoundCall:
        """The bound call of all parts as one graph of CUDA; as :meth:`kingpost.Compiled.capture`."""
        return self.bind(*outputs, stream=stream, **kwargs).capture()

    def check(self, *outputs: Any, **kwargs: Any) -> str:
        """Checks a call without running it, as :meth:`kingpost.Compiled.check`; a line for each part."""
        given = self._named(outputs, kwargs)
        return "\n".join(part.compiled.check(**_of(part, given)) for part in self.parts)

    def patterns(self, shape: Optional[tuple[int, int]] = None, **kwargs: Any) -> dict[str, Pattern]:
        """The patterns of the form's sparse matrices, by name, from the maps of its spaces.

        ``shape`` is that of the matrices, if rows or columns may end in empty ones.
        """
        return patterns(self, kwargs, shape)

    def assemble(
        self, patterns: Optional[dict[str, Pattern]] = None, stream: Any = None, **kwargs: Any
    ) -> Any:
        """The form's sparse matrix, a :class:`Csr`, or those of a form with several by name.

        It takes what a call takes besides the matrices, and the maps of their spaces.
        :meth:`patterns` are built here, unless those of an earlier call are given, which saves the
        time on meshes that stay as they are. Arrays are of the library of the maps, in the same
        place.
        """
        found = self.patterns(**kwargs) if patterns is None else patterns
        types = {a.name: a.dtype for a in self.arguments}
        data = {name: zeros(pattern, types[name]) for name, pattern in found.items()}
        own = {a.name for a in self.arguments} | {part.name for part in self.parts}
        maps = {space[0] for part in self.parts for matrix in part.form.matrices for space in matrix[2]}
        given = {name: value for name, value in kwargs.items() if name in own or name not in maps}
        given = {**self._named((), given), **data}
        for part in self.parts:
            places = [p.positions[part.name] for p in found.values() if part.name in p.positions]
            part.compiled(stream=stream, **{**_of(part, given), **dict(places)})
        matrices = {name: Csr(p.indptr, p.indices, data[name]) for name, p in found.items()}
        return next(iter(matrices.values())) if len(matrices) == 1 else matrices

    def roofline(self, *outputs: Any, **kwargs: Any) -> Roofline:
        """Times runs with these arguments, of a form that has one kernel; outputs are left alone."""
        part = self._only()
        # what a form does; of batches, what they start from
        work = None if self._batched else part.form.kernel
        return part.compiled.roofline(work=work, **self._named(outputs, kwargs))

    def tune(
        self,
        *outputs: Any,
        tolerance: Optional[float] = None,
        progress: Union[bool, Callable[[str], None], None] = None,
        **kwargs: Any,
    ) -> Trials:
        """Tries mappings with these arguments and keeps the fastest that is right, part by part.

        A mapping is right if its result agrees with that of one cell a work-item, to ``tolerance``
        relative to its largest entry (1e-10, or 1e-4 in single precision). The outputs are left alone. Needs
        NumPy. ``progress`` is whether a line of a terminal says how far it is, or a function of such lines; by
        default where there is a terminal. The mapping is kept for later processes (:mod:`kingpost.tuning`).
        """
        given = self._named(outputs, kwargs)
        trials, report = Trials(), tuning.reporter(progress)
        self.parts = tuple(
            self._tuned(part, _of(part, given), tolerance, trials, report) for part in self.parts
        )
        return trials

    def _device_name(self) -> str:
        names = devices()
        return names.get(self._device, self._device)

    def _tuned(
        self,
        part: Part,
        given: dict[str, Any],
        tolerance: Optional[float],
        trials: Trials,
        report: Callable[[str], None],
    ) -> Part:
        written = [a.name for a in part.compiled.arguments if a.is_written]
        if tolerance is None:
            tolerance = 1e-4 if any(a.dtype == "f32" for a in part.compiled.arguments) else 1e-10
        best, expected = None, None
        candidates = part.form.candidates(self._device)
        for done, mapping in enumerate(candidates):
            report(tuning.progress_line(done, len(candidates), best and (best[0], best[1].words)))
            plain = json.loads(mapping)
            try:
                tried = self._part(part.form, mapping)
                found = _results(tried.compiled, given, written)
                expected = found if expected is None else expected
                if not _agree(found, expected, tolerance):
                    raise MappingError("its result differs")
                seconds = tried.compiled.seconds(**given)
            except (MappingError, Refusal, CodegenError, DeviceError) as why:
                trials.append(Trial(plain, None, str(why), mapping))
                continue
            trials.append(Trial(plain, seconds, None, tried.words))
            if best is None or seconds < best[0]:
                best = (seconds, tried)
        if best is None:
            return part
        seconds, fastest = best
        report(f"tuned: {fastest.words}\n")
        sizes = _sizes(part.compiled, given)
        tuning.keep(self._form_hash, part.name, self._device_name(), sizes, fastest.mapping, seconds)
        return fastest

    def _named(self, outputs: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        written = [a.name for a in self.arguments if a.is_written]
        if len(outputs) > len(written):
            names = ", ".join(f"`{name}`" for name in written)
            raise FormError(
                f"{len(outputs)} arrays by position, needed at most {len(written)}: the results {names}; "
                "give inputs by name"
            )
        given = dict(zip(written, outputs))
        if twice := given.keys() & kwargs.keys():
            raise FormError(f"argument `{min(twice)}` was given twice; give it once")
        parts = [part.name for part in self.parts] if len(self.parts) > 1 else []
        known = [*(a.name for a in self.arguments), *self._constants, *parts]
        if unknown := [name for name in kwargs if name not in known]:
            near = difflib.get_close_matches(unknown[0], known, 1)
            help_ = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(f'`{n}`' for n in known)}"
            error = UnknownArgument(f"the form takes no argument `{unknown[0]}`; {help_}")
            error.argument = unknown[0]
            raise error
        given = _spread({**given, **kwargs}, self._constants, {a.name for a in self.arguments})
        own = {part.name: {a.name for a in part.compiled.arguments} for part in self.parts}
        return given | {
            name: _spread(given[name], self._constants, own[name])
            for name in parts
            if isinstance(given.get(name), Mapping)
        }

    def __repr__(self) -> str:
        arguments = ", ".join(str(a) for a in self.arguments if a.kind != "parameter")
        names = "+".join(part.form.kernel.name for part in self.parts)
        words = "; ".join(part.words for part in self.parts)
        return f"<kingpost.Operator {names}({arguments}) for {self._device}, {words}>"

    def _repr_html_(self) -> str:
        return "".join(
            (explorer(part.compiled.schedule) if part.compiled.schedule else "") + part.compiled._repr_html_()
            for part in self.parts
        )


@dataclass(frozen=True)
class Constant:
    """A constant of a form that has components, row by row, and the arguments that they are."""

    shape: tuple[int, ...]
    arguments: tuple[str, ...]


def _constants(forms: list[_kingpost.Form]) -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    for form in forms:
        for name, shape, arguments in form.constants:
            found[name] = Constant(tuple(shape), tuple(arguments))
    return found


def _spread(given: Mapping[str, Any], constants: dict[str, Constant], own: set[str]) -> dict[str, Any]:
    """Arguments with each array of a constant as the numbers that are ``own``."""
    spread = dict(given)
    for name in constants.keys() & given.keys():
        values = _components(name, spread.pop(name), constants[name].shape)
        for argument, value in zip(constants[name].arguments, values):
            if argument in given:
                message = f"argument `{argument}` was given twice: as itself, and in `{name}`; give it once"
                raise _about(ArgumentError, argument, message)
            if argument in own:
                spread[argument] = value
    return spread


def _components(name: str, value: Any, shape: tuple[int, ...]) -> list[Any]:
    """The components of a constant, row by row."""
    import numpy

    refuse_masked(name, value)
    try:
        array = _host(value)
    except (TypeError, ValueError):  # lists whose parts differ in length
        array = numpy.asarray(None)
    if array.dtype.kind not in "biufc":
        message = f"argument `{name}` is a {type(value).__name__}, needed an array of numbers of shape {shape}"
        raise _about(DtypeError, name, message)
    if array.shape != shape:
        raise _about(ShapeError, name, f"argument `{name}` has shape {array.shape}, needed {shape}")
    return array.ravel().tolist()


def _schedule_of(compiled: Compiled) -> Schedule:
    """The schedule of a kernel of an operator, which is made by one."""
    schedule = compiled.schedule
    assert schedule is not None
    return schedule


def _of(part: Part, given: dict[str, Any]) -> dict[str, Any]:
    """The arguments that a part takes."""
    own = {a.name for a in part.compiled.arguments}
    return {**{name: value for name, value in given.items() if name in own}, **given.get(part.name, {})}


def _sizes(compiled: Compiled, given: dict[str, Any]) -> dict[str, int]:
    """The parameters that are extents of arrays."""
    found: dict[str, int] = {}
    parameters = {a.name for a in compiled.arguments if a.kind == "parameter"}
    for argument in compiled.arguments:
        for extent, size in zip(argument.shape, getattr(given.get(argument.name), "shape", ())):
            if extent in parameters:
                found[extent] = int(size)
    return dict(sorted(found.items()))


def _results(compiled: Compiled, given: dict[str, Any], written: list[str]) -> list[Any]:
    import numpy

    fresh = {name: _like(given[name]) for name in written}
    compiled(**{**given, **fresh})
    host = [value.get() if hasattr(value, "get") else value for value in fresh.values()]
    return [numpy.asarray(value.cpu() if hasattr(value, "cpu") else value) for value in host]


def _like(array: Any) -> Any:
    """An array of zeros of the same library, type, shape and place."""
    import numpy

    if hasattr(array, "new_zeros"):  # PyTorch
        return array.new_zeros(array.shape)
    if hasattr(array, "__cuda_array_interface__"):
        import cupy

        return cupy.zeros_like(cupy.asarray(array))
    return numpy.zeros_like(numpy.asarray(array))


def _agree(found: list[Any], expected: list[Any], tolerance: float) -> bool:
    return all(
        abs(a - b).max(initial=0.0) <= tolerance * abs(b).max(initial=0.0) for a, b in zip(found, expected)
    )


_cache: OrderedDict[tuple, Operator] = OrderedDict()
_lock = threading.Lock()


@overload
def jit(form: Any, *, devices: Sequence[str], **options: Any) -> DividedOperator: ...


@overload
def jit(
    form: Any,
    device: str = "default",
    *,
    dim: int = 2,
    degree: int = 1,
    mapping: Optional[dict[str, Any]] = None,
    position_width: Optional[int] = None,
    matrix: str = "cells",
    vector: str = "assembled",
    cell_values: Iterable[str] = (),
    trials: Union[str, os.PathLike, None] = None,
    by_dimension: bool = False,
    **export: Any,
) -> Operator: ...


def jit(
    form: Any,
    device: str = "default",
    *,
    devices: Optional[Sequence[str]] = None,
    dim: int = 2,
    degree: int = 1,
    mapping: Optional[dict[str, Any]] = None,
    position_width: Optional[int] = None,
    matrix: str = "cells",
    vector: str = "assembled",
    cell_values: Iterable[str] = (),
    trials: Union[str, os.PathLike, None] = None,
    by_dimension: bool = False,
    **export: Any,
) -> Any:
    """Compiles a variational form for a device, or for several.

    ``form`` is a form of UFL or (nested) lists of them, as ``ufl.extract_blocks`` returns them, the JSON of one
    (text, or a path that ends in ``.json``), or a name of :func:`kingpost.forms`, to which ``dim`` and ``degree``
    belong: an operator on Lagrange elements of simplices, or a bake-off problem on squares and cubes. Further arguments go to :func:`kingpost.export.export_form`, such as ``scalar="complex128"`` for a complex
    form. ``position_width`` is the number of components of a position, if it is more than space has dimensions.
    ``matrix`` is what a bilinear form becomes: the matrices of ``cells``, the ``diagonal`` of the assembled matrix, or a ``sparse`` matrix, which
    :meth:`Operator.assemble` returns. ``vector`` is what a linear form becomes: an ``assembled`` vector, to which a
    call adds, or the vectors of ``cells`` (of facets, for integrals over facets), ``[cells, columns]``, which a call
    overwrites. What a form that is zero adds is zero. The coefficients that ``cell_values`` names are given in the
    same way, ``[cells, columns, components]``, and need no map. An operator that was made before is taken from
    memory; if it was tuned, it stays so.

    Without ``mapping`` it takes the one that :meth:`Operator.tune` found for it on the device, in whatever process
    (:mod:`kingpost.tuning`), or else the best one that is known: of the trials of
    ``kingpost tune`` in the file ``trials`` (``tune-output/trials.jsonl`` unless it is given), of what is
    shipped for the device's architecture, or of the cost model. :attr:`Operator.mapping_reason` says
    which, and why. ``by_dimension`` says that degrees of freedom are numbered as
    :func:`kingpost.number_by_dimension` does, for which there are faster mappings; others stay right.

    With ``devices``, a list of names, the result is a :class:`kingpost.DividedOperator`, which divides the mesh among
    them: of an action, a functional, a sparse matrix or the diagonal of one, of a form with one result.
    """
    if devices is not None:
        from kingpost.divided import on_devices

        _check_options(form, export)
        options: dict[str, Any] = {"dim": dim, "degree": degree, "mapping": mapping, "position_width": position_width}
        options |= {"matrix": matrix, "vector": vector, "cell_values": cell_values, "trials": trials}
        options["by_dimension"] = by_dimension
        return on_devices(_text(form, export), device, devices, options)
    chosen = None if mapping is None else json.dumps(mapping, sort_keys=True)
    _check_options(form, export)
    text = _text(form, export)
    path = None if trials is None else Path(trials)
    result = (position_width, matrix, vector, tuple(sorted(set(cell_values))))
    key = (text, dim, degree, device, chosen, by_dimension, *result, _state(path or Path(TRIALS)))
    with _lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
    operator = Operator(_forms(text, dim, degree, *result), device, chosen, path, by_dimension, tuning.form_hash(text, dim, degree, *result))
    operator._lowered = (text, dim, degree, *result)
    with _lock:
        _cache[key] = operator
        while len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
    return operator


def _operator_again(
    lowered: tuple, mappings: list[str], device: str, by_dimension: bool, form_hash: str, is_checked: bool,
    batched: tuple[str, ...],
) -> Operator:  # fmt: skip
    operator = Operator([], device, None, None, by_dimension, form_hash)
    operator._batched = batched
    forms = _forms(*lowered)
    operator._lowered, operator._constants = lowered, _constants(forms)
    operator.parts = tuple(operator._part(form, mapping) for form, mapping in zip(forms, mappings))
    return operator._checked() if is_checked else operator


def _state(trials: Path) -> Optional[tuple]:
    """What tells a file of trials from a later one; nothing if it is not there."""
    try:
        found = trials.stat()
    except OSError:
        return None
    return (str(trials.resolve()), found.st_mtime_ns, found.st_size)


#: The options of :func:`kingpost.export.export_form`, whose module needs UFL.
EXPORT_OPTIONS = ("name", "scalar", "names", "outputs", "numbering", "scheme")


def _check_options(form: Any, export: dict[str, Any]) -> None:
    """Refuses options that there are not, and those of UFL's forms for a form that is none of them."""
    own = [name for name in inspect.signature(jit).parameters if name not in ("form", "export")]
    known = [*own, *EXPORT_OPTIONS]
    for name in export:
        if name not in EXPORT_OPTIONS:
            near = difflib.get_close_matches(name, known, 1)
            help_ = f"did you mean `{near[0]}`?" if near else f"it has {', '.join(f'`{n}`' for n in known)}"
            raise _about(UnknownArgument, name, f"`jit` has no option `{name}`; {help_}")
        if isinstance(form, (str, os.PathLike)):
            message = f"option `{name}` is for forms of UFL, found the text, path or name of a form; leave it out"
            raise _about(UnknownArgument, name, message)


def _text(form: Any, export: dict[str, Any]) -> str:
    """A name, or the JSON of the form."""
    if isinstance(form, os.PathLike) or (isinstance(form, str) and form.endswith(".json")):
        return Path(form).read_text()
    if isinstance(form, str):
        return form
    parts = [part for part in _flat(form) if part is not None]
    if parts and all(type(part).__module__.split(".")[0] == "ufl" for part in parts):
        from kingpost import export as exporter

        return exporter.dumps(exporter.export_form(form, **export))
    raise FormError(
        f"a {type(form).__name__}, needed a form of UFL, its JSON (text or path), or one of {', '.join(_kingpost.forms())}"
    )


def _flat(form: Any) -> list[Any]:
    """Forms of nested lists, as ``ufl.extract_blocks`` makes them."""
    return [part for item in form for part in _flat(item)] if isinstance(form, (list, tuple)) else [form]


def _forms(
    text: str,
    dim: int,
    degree: int,
    position_width: Optional[int],
    matrix: str,
    vector: str,
    cell_values: tuple[str, ...],
) -> list[_kingpost.Form]:
    if text.lstrip().startswith("{"):
        return _kingpost.Form.json(text, position_width, matrix, vector, list(cell_values))
    if matrix != "cells":
        raise FormError(f"matrix=`{matrix}` is for bilinear forms, `{text}` is an action; give a form of UFL")
    if vector != "assembled" or cell_values:
        raise FormError(f"`{text}` has vectors of the mesh alone; for those of cells give a form of UFL")
    for name, value in (("dim", dim), ("degree", degree)):
        if not hasattr(value, "__index__") or value < 0:
            raise FormError(f"{name} is {value!r}, needed a positive integer")
    if text in _kingpost.tabulated_forms():
        return _kingpost.Form.json(_kingpost.form_json(text, dim, degree), position_width, matrix, vector, list(cell_values))
    return [_kingpost.Form.named(text, dim, degree)]
