"""Variational forms as functions on arrays."""

from __future__ import annotations

import json
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, Union

from purlin import _purlin
from purlin._purlin import Kernel
from purlin.compiled import Argument, Compiled, Roofline, compile
from purlin.errors import FormError, MappingError, Refusal
from purlin.schedule import Schedule, Step

#: Operators that :func:`jit` keeps.
CACHE_SIZE = 128


@dataclass(frozen=True)
class Trial:
    """A mapping that was tried: seconds, or why it was refused."""

    mapping: dict[str, Any]
    seconds: Optional[float]
    reason: Optional[str]


class Operator:
    """A form compiled for a device: a function on arrays.

    ``op(y, u=u, kappa=2.0)`` adds the action to ``y``; positions are those of the results. Names
    are those of :attr:`arguments`, and parameters follow from the shapes of arrays.
    """

    def __init__(self, form: _purlin.Form, device: str, mapping: Optional[str]) -> None:
        self._form = form
        self._device = device
        self._install(mapping)

    def _install(self, mapping: Optional[str]) -> None:
        _, recipe, found, words = self._form.map(self._device, mapping)
        schedule = Schedule(self._form.kernel).run(recipe)
        # one assignment: calls of other threads see the old code or the new one
        self._now = (compile(schedule, self._device), json.loads(found), words)

    @property
    def compiled(self) -> Compiled:
        """The compiled kernel."""
        return self._now[0]

    @property
    def mapping(self) -> dict[str, Any]:
        """How the form is mapped to the device, as ``--mapping`` of the command line takes it."""
        return self._now[1]

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """What a call takes."""
        return self.compiled.arguments

    @property
    def source(self) -> str:
        """The source that was compiled."""
        return self.compiled.source

    @property
    def kernel(self) -> Kernel:
        """The kernel that was compiled."""
        return self.compiled.kernel

    @property
    def recipe(self) -> str:
        """The steps from the form's kernel to it, as text."""
        return self.compiled.recipe

    @property
    def schedule(self) -> Schedule:
        """A schedule with these steps, to go on by hand; :func:`purlin.compile` takes it."""
        schedule = self.compiled.schedule
        assert schedule is not None
        return schedule.copy()

    def steps(self) -> list[Step]:
        """Each step with the kernel after it."""
        return self.compiled.steps()

    def __call__(self, *outputs: Any, stream: Any = None, **kwargs: Any) -> None:
        """Adds the form's result to the arrays ``outputs``; as :meth:`purlin.Compiled.__call__`."""
        self.compiled(stream=stream, **self._named(outputs, kwargs))

    def roofline(self, *outputs: Any, **kwargs: Any) -> Roofline:
        """Times runs with these arguments; the outputs are left alone."""
        return self.compiled.roofline(work=self._form.kernel, **self._named(outputs, kwargs))

    def tune(self, *outputs: Any, tolerance: float = 1e-10, **kwargs: Any) -> list[Trial]:
        """Tries mappings with these arguments and keeps the fastest that is right.

        A mapping is right if its result agrees with that of one cell a work-item, to ``tolerance``
        relative to its largest entry. The outputs are left alone. Needs NumPy.
        """
        given = self._named(outputs, kwargs)
        written = [a.name for a in self.arguments if a.is_written]
        trials, best, expected = [], None, None
        for mapping in self._form.candidates(self._device):
            try:
                _, recipe, _, _ = self._form.map(self._device, mapping)
                compiled = compile(Schedule(self._form.kernel).run(recipe), self._device)
                found = _results(compiled, given, written)
                expected = found if expected is None else expected
                if not _agree(found, expected, tolerance):
                    raise MappingError("its result differs")
                seconds = compiled.seconds(**given)
            except (MappingError, Refusal) as why:
                trials.append(Trial(json.loads(mapping), None, str(why)))
                continue
            trials.append(Trial(json.loads(mapping), seconds, None))
            if best is None or seconds < best[0]:
                best = (seconds, mapping)
        if best is not None:
            self._install(best[1])
        return trials

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
        return {**given, **kwargs}

    def __repr__(self) -> str:
        arguments = ", ".join(str(a) for a in self.arguments if a.kind != "parameter")
        return f"<purlin.Operator {self._form.kernel.name}({arguments}) for {self._device}, {self._now[2]}>"

    def _repr_html_(self) -> str:
        return self.compiled._repr_html_()


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


def jit(
    form: Any,
    device: str = "c",
    *,
    dim: int = 2,
    degree: int = 1,
    mapping: Optional[dict[str, Any]] = None,
    **export: Any,
) -> Operator:
    """Compiles a variational form for a device.

    ``form`` is a form of UFL, the JSON of one (text, or a path that ends in ``.json``), or a name of
    :func:`purlin.forms`, to which ``dim`` and ``degree`` belong. Further arguments go to
    :mod:`purlin.export`. Without ``mapping`` it takes the best one that is known for the device. An
    operator that was made before is taken from memory; if it was tuned, it stays so.
    """
    chosen = None if mapping is None else json.dumps(mapping, sort_keys=True)
    text = _text(form, export)
    key = (text, dim, degree, device, chosen)
    with _lock:
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
    operator = Operator(_form(text, dim, degree), device, chosen)
    with _lock:
        _cache[key] = operator
        while len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
    return operator


def _text(form: Any, export: dict[str, Any]) -> str:
    """A name, or the JSON of the form."""
    if isinstance(form, os.PathLike) or (isinstance(form, str) and form.endswith(".json")):
        return Path(form).read_text()
    if isinstance(form, str):
        return form
    if hasattr(form, "ufl_domains"):
        from purlin import export as exporter

        return exporter.to_json(form, **export)
    raise FormError(
        f"a {type(form).__name__}, needed a form of UFL, its JSON (text or path), or one of {', '.join(_purlin.forms())}"
    )


def _form(text: str, dim: int, degree: int) -> _purlin.Form:
    if text.lstrip().startswith("{"):
        return _purlin.Form.json(text)
    return _purlin.Form.named(text, dim, degree)
