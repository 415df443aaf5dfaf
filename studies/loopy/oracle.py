"""What a program computes according to Loopy: its code for OpenCL or C, or its expressions evaluated by NumPy."""

from __future__ import annotations

from typing import Any

import islpy as isl
import loopy as lp
import numpy as np
import pymbolic.primitives as p
from loopy.kernel.instruction import CallInstruction, CInstruction, NoOpInstruction
from loopy.schedule import EnterLoop, LeaveLoop, RunInstruction
from pymbolic.mapper.evaluator import EvaluationMapper

from kingpost.loopy import internals
from kingpost.loopy.expressions import REAL_FUNCTIONS


class Undefined(Exception):
    """A program that reads what nothing has written."""


class Outside(Exception):
    """A program that leaves an array."""


class NoOracle(Exception):
    """A program that no oracle takes."""


def by_opencl(program: lp.TranslationUnit, values: dict[str, Any]) -> dict[str, np.ndarray]:
    import pyopencl as cl
    import pyopencl.array as cl_array

    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    if not isinstance(program.target, lp.PyOpenCLTarget):
        program = program.copy(target=lp.PyOpenCLTarget())
    program = lp.set_options(program, return_dict=True)
    given = {n: cl_array.to_device(queue, v) if isinstance(v, np.ndarray) else v for n, v in values.items()}
    _, results = program.executor(queue)(queue, **given)
    queue.finish()
    arrays = {name: value for name, value in given.items() if hasattr(value, "get")} | dict(results)
    return {name: value.get() if hasattr(value, "get") else np.asarray(value) for name, value in arrays.items()}


def by_c(program: lp.TranslationUnit, values: dict[str, Any]) -> dict[str, np.ndarray]:
    program = lp.set_options(program.copy(target=lp.ExecutableCTarget()), return_dict=True)
    given = {name: np.array(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}
    _, results = program.executor()(**given)
    arrays = {name: value for name, value in given.items() if isinstance(value, np.ndarray)} | dict(results)
    return {name: np.asarray(value) for name, value in arrays.items()}


FUNCTIONS = {
    "fabs": np.abs, "abs": np.abs, "real": np.real, "imag": np.imag, "conj": np.conj, "pow": np.power, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "fmin": np.fmin, "fmax": np.fmax, "min": np.minimum,
    "max": np.maximum, "isnan": np.isnan, "rsqrt": lambda x: 1/np.sqrt(x), "round": np.round,
}


class Evaluation(EvaluationMapper):
    """Evaluates one expression at a point."""

    def __init__(self, run: Evaluated, truncates: bool) -> None:
        super().__init__(run.point)
        self.run = run
        self.truncates = truncates

    def map_variable(self, expr: p.Variable) -> Any:
        if expr.name in self.run.arrays:
            return self.run.load(expr.name, ())
        return super().map_variable(expr)

    map_tagged_variable = map_variable

    def map_subscript(self, expr: p.Subscript) -> Any:
        return self.run.load(expr.aggregate.name, tuple(int(self.rec(i)) for i in expr.index_tuple))

    def map_linear_subscript(self, expr: Any) -> Any:
        return self.run.load(expr.aggregate.name, (int(self.rec(expr.index)),))

    def map_lookup(self, expr: p.Lookup) -> Any:
        return self.rec(expr.aggregate)[expr.name]

    def map_quotient(self, expr: p.Quotient) -> Any:
        one, other = self.rec(expr.numerator), self.rec(expr.denominator)
        if self.truncates and all(isinstance(v, int | np.integer) for v in (one, other)):
            return int(np.trunc(one/other))
        return one/other

    def map_type_annotation(self, expr: Any) -> Any:
        return self.rec(expr.child)

    def map_type_cast(self, expr: Any) -> Any:
        return expr.type.numpy_dtype.type(self.rec(expr.child))

    def map_call(self, expr: p.Call) -> Any:
        name = internals.callee_of(self.run.program, expr.function)
        function = FUNCTIONS.get(name)
        if function is None and name in REAL_FUNCTIONS:
            function = getattr(np, name, None)
        if function is None:
            raise NoOracle(f"the function {name}")
        return function(*map(self.rec, expr.parameters))

    def map_reduction(self, expr: Any) -> Any:
        name = type(expr.operation).__name__.removesuffix("ReductionOperation").lower()
        combine, total = {
            "sum": (lambda a, b: a + b, 0), "product": (lambda a, b: a*b, 1), "max": (max, -np.inf),
            "min": (min, np.inf), "any": (lambda a, b: bool(a or b), False), "all": (lambda a, b: bool(a and b), True),
        }.get(name, (None, None))
        if combine is None:
            raise NoOracle(f"the reduction {name}")
        if not expr.inames:
            return self.rec(expr.expr)
        saved = dict(self.run.point)
        inames = sorted(expr.inames, key=lambda n: (self.run.kernel.get_home_domain_index(n), n))

        def nested(left: list[str], total: Any) -> Any:
            if not left:
                return combine(total, Evaluation(self.run, self.truncates)(expr.expr))
            for value in self.run.span(left[0]):
                self.run.point[left[0]] = value
                total = nested(left[1:], total)
            del self.run.point[left[0]]
            return total

        total = nested(inames, total)
        self.run.point.clear()
        self.run.point.update(saved)
        return total


class Evaluated:
    """Runs a program without concurrency, instruction by instruction, in the order that Loopy gives it."""

    def __init__(self, program: lp.TranslationUnit, values: dict[str, Any]) -> None:
        kernel = program.default_entrypoint
        # without concurrency
        inames = {name: iname.copy(tags=frozenset()) for name, iname in kernel.inames.items()}
        self.program = internals.linearised(program.with_kernel(kernel.copy(inames=inames)), False)
        self.kernel = self.program.default_entrypoint
        self.point: dict[str, Any] = {}
        self.arrays: dict[str, np.ndarray] = {}
        self.written: dict[str, np.ndarray] = {}
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                self.arrays[name] = value.copy()
                self.written[name] = np.ones(value.shape, bool)
            else:
                self.point[name] = value
        for variable in self.kernel.temporary_variables.values():
            shape = tuple(int(EvaluationMapper(self.point)(extent)) for extent in variable.shape or ())
            is_given = variable.initializer is not None
            array = np.array(variable.initializer) if is_given else np.zeros(shape, variable.dtype.numpy_dtype)
            self.arrays[variable.name] = array
            self.written[variable.name] = np.full(array.shape, is_given)

    def load(self, name: str, index: tuple[int, ...]) -> Any:
        array = self.arrays[name]
        if any(not 0 <= i < n for i, n in zip(index, array.shape, strict=True)):
            raise Outside(f"{name}{index}")
        if not self.written[name][index]:
            raise Undefined(f"{name}{index}")
        return array[index]

    def span(self, iname: str) -> range:
        """The values of a loop at the point."""
        domain = self.kernel.get_inames_domain(frozenset([iname]))
        domain = domain.to_set() if isinstance(domain, isl.BasicSet) else domain
        names = domain.get_var_dict()
        for name, (kind, _) in names.items():
            value = self.point.get(name)
            if value is None and name in self.arrays:
                value = self.load(name, ())
            if value is not None and name != iname:
                kind, position = domain.get_var_dict()[name]
                domain = domain.fix_val(kind, position, isl.Val(int(value)))
        keep = domain.get_var_dict()[iname][1]
        count = domain.dim(isl.dim_type.set)
        domain = domain.project_out(isl.dim_type.set, keep + 1, count - keep - 1)
        domain = domain.project_out(isl.dim_type.set, 0, keep)
        if domain.is_empty():
            return range(0)
        low, high = (int(value.to_python()) for value in (domain.dim_min_val(0), domain.dim_max_val(0)))
        inside = [v for v in range(low, high + 1) if not domain.fix_val(isl.dim_type.set, 0, isl.Val(v)).is_empty()]
        return inside  # type: ignore[return-value] (a list of values is as good)

    def result(self) -> dict[str, np.ndarray]:
        items = [i for i in self.kernel.linearization if isinstance(i, EnterLoop | LeaveLoop | RunInstruction)]
        self.steps(items, 0, len(items))
        return self.arrays

    def steps(self, items: list[Any], start: int, end: int) -> None:
        at = start
        while at < end:
            item = items[at]
            if isinstance(item, RunInstruction):
                self.step(self.kernel.id_to_insn[item.insn_id])
                at += 1
                continue
            depth, close = 1, at + 1
            while depth:
                depth += isinstance(items[close], EnterLoop) - isinstance(items[close], LeaveLoop)
                close += 1
            for value in self.span(item.iname):
                self.point[item.iname] = value
                self.steps(items, at + 1, close - 1)
            self.point.pop(item.iname, None)
            at = close

    def step(self, insn: Any) -> None:
        if isinstance(insn, NoOpInstruction):
            return
        if isinstance(insn, CInstruction) or (isinstance(insn, CallInstruction) and len(insn.assignees) != 1):
            raise NoOracle(f"the instruction {insn.id}")
        if not all(Evaluation(self, False)(predicate) for predicate in insn.predicates):
            return
        target = insn.assignees[0]
        field = target.name if isinstance(target, p.Lookup) else ...
        target = target.aggregate if isinstance(target, p.Lookup) else target
        name = target.aggregate.name if isinstance(target, p.Subscript) else target.name
        indices = target.index_tuple if isinstance(target, p.Subscript) else ()
        index = tuple(int(Evaluation(self, False)(i)) for i in indices)
        if any(not 0 <= i < n for i, n in zip(index, self.arrays[name].shape, strict=True)):
            raise Outside(f"{name}{index}")
        value = Evaluation(self, self.arrays[name].dtype.kind in "iu")(insn.expression)
        (self.arrays[name] if field is ... else self.arrays[name][field])[index] = value
        self.written[name][index] = True


def by_numpy(program: lp.TranslationUnit, values: dict[str, Any]) -> dict[str, np.ndarray]:
    with np.errstate(all="ignore"):
        return Evaluated(program, values).result()


ORACLES = {"OpenCL": by_opencl, "C": by_c, "NumPy": by_numpy}


def expected(program: lp.TranslationUnit, typed: lp.TranslationUnit, values: dict[str, Any], names):
    """The results by the first oracle that has any, with the reasons of those before."""
    why = []
    for name in names:
        try:
            return name, ORACLES[name](typed if name == "NumPy" else program, values), why
        except Exception as error:  # noqa: BLE001 (Loopy and compilers fail in any way)
            why.append(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:160]}")
    return None, {}, why


