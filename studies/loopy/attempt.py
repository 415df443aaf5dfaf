"""One program: imported, run, and compared with what Loopy computes."""

from __future__ import annotations

import dataclasses
import itertools
import re
import time
from typing import Any, Optional

import islpy as isl
import loopy as lp
import numpy as np
from events import Program, types
from loopy.kernel.array import FixedStrideArrayDimTag, VectorArrayDimTag
from loopy.kernel.data import ValueArg
from loopy.types import NumpyType
from oracle import ORACLES, expected
from pymbolic import evaluate

import kingpost
from kingpost.loopy import Imported, from_loopy, internals, prove_loopy
from kingpost.loopy.declarations import with_known_shapes
from kingpost.loopy.types import fields_of, lanes_of

#: Results are equal within this share of the largest one: sums of other order, and contraction.
TOLERANCES = {"float16": 2e-3, "float32": 2e-4, "complex64": 2e-4, "float64": 1e-10, "complex128": 1e-10}
#: Values of parameters to try, the first that satisfies all assumptions.
SIZES = (16, 48, 12, 64, 20, 10, 96, 160, 24, 128, 256, 3, 2, 1, 8, 6, 5, 4)
#: The elements of all arguments together.
LARGEST = 120_000


@dataclasses.dataclass
class Row:
    """What became of a program."""

    id: str
    test: str
    at: str
    scheduled: str
    state: str = ""
    reason: str = ""
    oracle: str = ""
    devices: str = ""
    parameters: str = ""
    conditions: str = ""
    #: Of a scheduled one: whether it is proved, and superfluous barriers.
    proof: str = ""
    superfluous: str = ""
    notes: str = ""
    kingpost_ms: str = ""
    loopy_ms: str = ""


class Odd(Exception):
    """A program that the study cannot call."""


def attempt(entry: Program, devices: list[str]) -> Row:
    row = Row(entry.id, entry.test, entry.at, "yes" if entry.is_scheduled else "")
    try:
        known = types(entry)
        imported = from_loopy(entry.program, types=known)
        proof = prove_loopy(entry.program, types=known) if entry.is_scheduled else None
    except kingpost.ImportRefusal as error:
        incomplete = error.feature == internals.UNKNOWN_FUNCTION and not entry.is_scheduled
        row.state = "incomplete" if incomplete else "refused"
        row.reason = f"{error.feature}: {error}"
        return row
    row.notes = "; ".join(imported.notes)
    row.conditions = "; ".join(imported.conditions)
    if proof is not None:
        refuted = proof.race or proof.outside or proof.undecided
        kind = "proved" if proof else "race" if proof.race else "outside" if proof.outside else "undecided"
        row.proof = kind if proof else f"{kind}: {refuted}"
        row.superfluous = "; ".join(proof.superfluous)
    try:
        start = time.perf_counter()
        kingpost.source(imported.kernel, "opencl")
        row.kingpost_ms = f"{1e3*(time.perf_counter() - start):.1f}"
    except kingpost.Error as error:
        row.state = "leaves its array" if isinstance(error, kingpost.OutsideError) else "no code"
        row.reason = f"{error}"
        return row
    try:
        run(entry, imported, known, devices, row)
    except Odd as error:
        row.state, row.reason = "not called", f"{error}"
    return row


def run(entry: Program, imported: Imported, known: dict[str, Any], devices: list[str], row: Row) -> None:
    program = with_known_shapes(internals.entry(entry.program), set())
    program = program.with_kernel(lp.add_dtypes(program.default_entrypoint, known))
    inlined, _ = internals.inlined(program)
    typed = internals.typed(inlined)
    kernel = typed.default_entrypoint
    parameters = choose(entry, imported, kernel)
    row.parameters = ", ".join(f"{name}={value}" for name, value in parameters.items())
    values = arguments(entry, kernel, parameters)
    program, typed = knowing(program, parameters), knowing(typed, parameters)
    written = sorted(kernel.get_written_variables() & set(kernel.arg_dict))
    by_name = kernel.arg_dict
    # without a device nothing is run: it is what the program does that is asked for
    names = ORACLES if devices else ["NumPy"]
    row.oracle, truth, why = expected(program, typed, values, names)
    row.loopy_ms = generation(program)
    row.oracle = row.oracle or ""
    good = []
    for device in devices:
        given = {key: part for name in values for key, part in parts(by_name[name], values[name], copied).items()}
        try:
            imported.compile(device)(**{imported.names.variables[name]: value for name, value in given.items()})
        except kingpost.Error as error:
            row.state, row.reason = "not run", f"{device}: {type(error).__name__}: {error}"
            return
        if row.oracle:
            wanted = {key: part for name in written for key, part in parts(by_name[name], truth[name], as_is).items()}
            bad = [key for key, part in wanted.items() if not equal(given[key], part, tolerance(kernel))]
            if bad:
                name, evaluated, found = expected(program, typed, values, ["NumPy"])
                fields = (parts(by_name[n], evaluated[n], as_is) for n in written) if name else ()
                known = {key: part for found_parts in fields for key, part in found_parts.items()}
                if known and all(equal(given[key], part, tolerance(kernel)) for key, part in known.items()):
                    # Loopy's code has other results than its expressions
                    why.append(f"{row.oracle}: {', '.join(bad)} of Loopy's code differ from its expressions")
                    row.oracle, truth = name, evaluated
                else:
                    row.state = mistake(found) or "wrong"
                    row.reason = f"{device}: {', '.join(bad)} differ from {row.oracle}; {'; '.join(found)}"
                    return
        good.append(device)
    row.devices = ", ".join(good)
    row.state = "equal" if row.oracle else mistake(why) or "no oracle"
    row.reason = "; ".join(why)


def generation(program: lp.TranslationUnit) -> str:
    """The time that Loopy takes to generate code, if it does."""
    lp.set_caching_enabled(False)
    start = time.perf_counter()
    try:
        lp.generate_code_v2(program)
    except Exception:  # noqa: BLE001 (Loopy fails in any way)
        return ""
    return f"{1e3*(time.perf_counter() - start):.1f}"


def mistake(why: list[str]) -> str:
    """What is wrong with a program as it is written."""
    text = "; ".join(why)
    return "reads undefined" if "Undefined" in text else "leaves its array" if "Outside" in text else ""


def knowing(program: lp.TranslationUnit, parameters: dict[str, int]) -> lp.TranslationUnit:
    """The program that knows the values of its parameters, so that Loopy does not ask whether others fit."""
    kernel = program.default_entrypoint
    known = kernel.assumptions.to_set() if isinstance(kernel.assumptions, isl.BasicSet) else kernel.assumptions
    for name, value in parameters.items():
        if known.find_dim_by_name(isl.dim_type.param, name) < 0:
            known = known.add_dims(isl.dim_type.param, 1)
            known = known.set_dim_name(isl.dim_type.param, known.dim(isl.dim_type.param) - 1, name)
        known = known.fix_val(isl.dim_type.param, known.find_dim_by_name(isl.dim_type.param, name), isl.Val(value))
    pieces = known.get_basic_sets()
    return program.with_kernel(kernel.copy(assumptions=pieces[0])) if len(pieces) == 1 else program


def as_is(value: Any) -> Any:
    return value


def parts(argument: Any, value: Any, take: Any) -> dict[str, Any]:
    """The variable of an argument, or one for each field of a structure."""
    dtype = getattr(value, "dtype", None)
    fields = fields_of(NumpyType(dtype), argument.name) if dtype is not None and dtype.fields else {}
    if not fields:
        return {argument.name: take(lanes(argument, value))}
    return {f"{argument.name}.{field}": take(np.ascontiguousarray(value[field])) for field in fields}


def lanes(argument: Any, value: Any) -> Any:
    """An array of vectors as one with an axis of scalars."""
    if not isinstance(value, np.ndarray | np.void) or not value.dtype.fields:
        return value
    vector = lanes_of(NumpyType(value.dtype), argument.name)
    value = np.ascontiguousarray(value)
    shape = value.shape if np.ndim(value) else ()
    found = value.view(vector.base).reshape(*shape, vector.pitch)[..., : len(vector.fields)]
    return found if getattr(argument, "shape", None) else found.reshape(-1)


def copied(value: Any) -> Any:
    """A copy with the same strides."""
    if not isinstance(value, np.ndarray):
        return value
    return laid_out(value.shape, [stride // value.itemsize for stride in value.strides], value.dtype, value)


def laid_out(shape: tuple[int, ...], strides: Any, dtype: Any, values: np.ndarray) -> np.ndarray:
    size = 1 + sum((extent - 1)*stride for extent, stride in zip(shape, strides)) if 0 not in shape else 0
    flat = np.zeros(size, dtype)
    view = np.lib.stride_tricks.as_strided(flat, shape, [flat.itemsize*stride for stride in strides])
    view[...] = values
    return view


def tolerance(kernel: lp.LoopKernel) -> float:
    """That of the least precise type that a program computes with."""
    variables = [*kernel.args, *kernel.temporary_variables.values()]
    names = set()
    for variable in variables:
        fields = variable.dtype.numpy_dtype.fields if variable.dtype is not None else None
        kinds = [field[0] for field in fields.values()] if fields else [getattr(variable.dtype, "numpy_dtype", None)]
        names |= {kind.name for kind in kinds if kind is not None}
    return max((value for name, value in TOLERANCES.items() if name in names), default=0.0)


def equal(one: Any, other: Any, share: float) -> bool:
    other = np.asarray(other).reshape(np.shape(one))
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc":
        return bool((one == other).all())
    finite = np.isfinite(one) & np.isfinite(other)
    scale = np.abs(other[finite]).max(initial=0.0)
    close = np.abs(one[finite] - other[finite]) <= share*scale
    return bool((np.isfinite(one) == np.isfinite(other)).all() and close.all())


def assumptions(text: str) -> list[str]:
    lines = re.findall(r"^assume (.*)$", text, re.MULTILINE)
    return [line.replace(" mod ", " % ") for line in lines if re.search("[<>=]", line)]


def choose(entry: Program, imported: Imported, kernel: lp.LoopKernel) -> dict[str, int]:
    """Values of the parameters: recorded ones, or a size for all, so that all assumptions hold."""
    names = [a.name for a in kernel.args if isinstance(a, ValueArg) and a.dtype.numpy_dtype.kind in "iu"]
    if not names:
        return {}
    recorded = {}
    for name in names:
        value = entry.values.get(name)
        if isinstance(value, int | np.integer) and value <= 600:
            recorded[name] = int(value)
    for name, value in shapes(entry, kernel).items():
        recorded.setdefault(name, value)
    ours = imported.names.variables
    lines = assumptions(imported.text)
    choices = [{name: recorded.get(name, 16) for name in names}]
    choices += [{name: 1 if "stride" in name else size for name in names} for size in SIZES]
    # arrays of unknown extent are large enough
    unknown = {name: 2048 if name.startswith("len_") else 64 for name in names if name.startswith(("len_", "extent_"))}
    choices = [choice | {name: recorded.get(name, size) for name, size in unknown.items()} for choice in choices]
    if len(names) <= 3:
        few = itertools.product((0, 1, 2, 3, 4, 8, 10, 15, 16, 17, 32, 128), repeat=len(names))
        choices += [dict(zip(names, values)) for values in few]
    else:
        random = np.random.default_rng(1)
        choices += [dict(zip(names, map(int, random.choice(SIZES, len(names))))) for _ in range(5000)]
    context = {"floor_div": lambda a, b: a//b, "max": max, "min": min}
    for choice in choices:
        place = {ours[name]: value for name, value in choice.items() if name in ours}
        if all(eval(line, dict(context), place) for line in lines) and fits(kernel, choice):  # noqa: S307 (our text)
            return choice
    raise Odd(f"no small parameters satisfy {'; '.join(lines)}")


def shapes(entry: Program, kernel: lp.LoopKernel) -> dict[str, int]:
    """Parameters that are an extent of a recorded array."""
    found = {}
    for argument in kernel.args:
        value = entry.values.get(argument.name)
        large = isinstance(value, tuple) and isinstance(value[0], str)
        shape = value.shape if isinstance(value, np.ndarray) else value[2] if large else ()
        for extent, size in zip(getattr(argument, "shape", None) or (), shape):
            if hasattr(extent, "name") and size <= 600:
                found[extent.name] = int(size)
    return found


def fits(kernel: lp.LoopKernel, choice: dict[str, int]) -> bool:
    total = 0
    for argument in kernel.args:
        extents = [int(evaluate(extent, choice)) for extent in getattr(argument, "shape", None) or ()]
        if any(extent < 0 for extent in extents):
            return False
        total += int(np.prod(extents, dtype=np.int64))
    return total <= LARGEST


def arguments(entry: Program, kernel: lp.LoopKernel, parameters: dict[str, int]) -> dict[str, Any]:
    random = np.random.default_rng(5)
    found: dict[str, Any] = {}
    for argument in kernel.args:
        recorded = entry.values.get(argument.name)
        dtype = argument.dtype.numpy_dtype
        if argument.name in parameters:
            found[argument.name] = dtype.type(parameters[argument.name])
        elif isinstance(argument, ValueArg):
            is_number = isinstance(recorded, int | float | complex | np.number)
            scalar = array(argument, None, parameters, random) if dtype.fields else None
            found[argument.name] = dtype.type(recorded if is_number else 0.75) if scalar is None else scalar[()]
        else:
            found[argument.name] = array(argument, recorded, parameters, random)
    return found


def array(argument: Any, recorded: Any, parameters: dict[str, int], random: Any) -> np.ndarray:
    dtype = argument.dtype.numpy_dtype
    shape = tuple(int(evaluate(extent, parameters)) for extent in getattr(argument, "shape", None) or ())
    if isinstance(recorded, np.ndarray) and recorded.shape == shape:
        values = recorded.astype(dtype)
    elif dtype.fields:
        values = np.zeros(shape, dtype)
        vector = lanes_of(NumpyType(dtype), argument.name)
        flat = values.reshape(-1)
        for part in [flat.view(vector.base)] if vector else [flat[field] for field in dtype.names]:
            part[...] = random.integers(1, 9, part.shape) / 8
    elif dtype.kind in "fc":
        values = 0.1 + 0.9*random.random(shape)
        values = (values + 1j*random.random(shape) if dtype.kind == "c" else values).astype(dtype)
    else:
        values = random.integers(0, 2, shape).astype(dtype)
    tags: Optional[Any] = getattr(argument, "dim_tags", None)
    if dtype.fields or not tags or not all(isinstance(tag, FixedStrideArrayDimTag | VectorArrayDimTag) for tag in tags):
        return np.array(values, order="C")
    strides = [1 if isinstance(tag, VectorArrayDimTag) else int(evaluate(tag.stride, parameters)) for tag in tags]
    return laid_out(shape, strides, dtype, values)
