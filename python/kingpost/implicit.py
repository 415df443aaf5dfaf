"""Roots of a form in one of its coefficients, and linear systems with its derivative there.

A root ``u`` of ``F(u; m) = 0`` is a function of ``m``, all that the form takes besides. Its derivative in a direction
solves one linear system with the Jacobian matrix ``dF/du``; the gradient of a functional of it solves one with the
transposed matrix, the adjoint system. Unknowns that are fixed keep the values of the start: they have rows and
columns of the identity.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Optional

from kingpost import gradients
from kingpost.arrays import _about
from kingpost.errors import ConvergenceError, FormError, MissingArgument, ShapeError
from kingpost.gradients import Function, Key, add, scalar_of, type_name, wanted
from kingpost.solvers import _fixed, _rows_of, newton, solve
from kingpost.sparse import Csr, Pattern, _beside, _host

#: Of the systems of derivatives, which have no later step that makes up for them.
RELATIVE = 1e-12


class Problem:
    """A residual with its unknown, on arrays of NumPy or of a library on a card."""

    def __init__(
        self, function: Function, unknown: str, relative: Optional[float], absolute: float, max_iterations: int,
        linear: Mapping[str, Any],
    ) -> None:  # fmt: skip
        if function.rank != 1:
            raise FormError(
                f"the root of a form: found one with {function.rank} arguments, needed a residual, which has a test "
                "function; that of an energy is `ufl.derivative(energy, u)`"
            )
        found = function.jacobian(unknown)
        if function.map_of(function.output) != function.map_of(unknown):
            raise FormError(f"the root of a form: found test functions of another space than `{unknown}`, needed the same")
        if found is None:
            raise FormError(f"the root of a form: found a residual without `{unknown}`, needed one that depends on it")
        self.function, self.unknown, self.jacobian = function, unknown, found
        self._relative, self._absolute, self._max_iterations = relative, absolute, max_iterations
        self._linear = dict(linear)
        #: The maps that were given last, and the patterns that follow from them.
        self._known: tuple[dict[Key, Any], dict[str, Pattern]] = ({}, {})

    def start_of(self, flat: Mapping[Key, Any]) -> Any:
        """The start among the arguments."""
        if ("", self.unknown) not in flat:
            message = f"argument `{self.unknown}` is missing: the start, with the values of unknowns that are fixed"
            raise _about(MissingArgument, self.unknown, message)
        return flat["", self.unknown]

    def root(self, given: Mapping[Key, Any], y: Any, fixed: Any, device: str) -> Any:
        """The root of the residual plus `y`, by Newton's method from the unknown that is given.

        Raises:
            ConvergenceError: It was not found.
        """
        start, (jacobian, patterns) = given["", self.unknown], self._assembly(given, device)
        residual = self.function.operator(device, scalar_of(given["", "x"]))
        wanted(residual, given)

        def at(x: Any) -> dict[Key, Any]:
            return {**given, ("", self.unknown): _like(start, x)}

        def remainder(x: Any) -> Any:
            total = _like(start, _host(y))
            add(residual, at(x), total)
            return total

        relative = self._relative
        if relative is None:
            relative = 1e-10 if type_name(start) == "float64" else 1e-5
        found = newton(
            remainder, lambda x: _assembled(jacobian, patterns, at(x)), start, fixed=_host(fixed).ravel(),
            relative=relative, absolute=self._absolute, max_iterations=self._max_iterations, **self._linear,
        )  # fmt: skip
        if not found.converged:
            raise ConvergenceError(f"Newton's method for `{self.unknown}`: {found}")
        return _like(start, found.x)

    def linear(self, given: Mapping[Key, Any], right: Any, fixed: Any, device: str, transposed: bool) -> Any:
        """The solution of a system with the Jacobian matrix at the unknown that is given, or its transpose.

        Raises:
            ConvergenceError: It was not found.
        """
        matrix = _assembled(*self._assembly(given, device), given)
        rows = _fixed(_transposed(matrix) if transposed else matrix, _host(fixed).ravel(), len(matrix.indptr) - 1)
        found = solve(rows, _host(right).ravel(), **{"relative": RELATIVE, **self._linear})
        if not found.converged:
            raise ConvergenceError(f"the linear system of a derivative by `{self.unknown}`: {found}")
        return _like(given["", self.unknown], found.x)

    def _assembly(self, given: Mapping[Key, Any], device: str) -> tuple[Any, dict[str, Pattern]]:
        """The operator of the Jacobian matrix and the pattern, which is made once for maps that stay the same."""
        operator = self.jacobian.operator(device, scalar_of(given["", "x"]))
        maps = {key: _host(value) for key, value in given.items() if type_name(value) == "int32"}
        known, patterns = self._known
        if known.keys() != maps.keys() or any(not _same(maps[key], known[key]) for key in maps):
            size = _host(given["", self.unknown]).size
            patterns = operator.patterns((size, size), **nested(given))
            # a copy: the caller may write the maps later
            self._known = ({key: value.copy() for key, value in maps.items()}, patterns)
        return operator, patterns


class FormFunction(gradients.FormFunction):
    """A form as a function of arrays of one library, of which a residual has roots."""

    def solver(
        self, unknown: str, *, relative: Optional[float] = None, absolute: float = 1e-12, max_iterations: int = 50,
        **linear: Any,
    ) -> Any:  # fmt: skip
        """The root of this residual in one of its coefficients, as a function of all else.

        It is found by :func:`kingpost.newton`, to which the options go; ``relative`` is 1e-10, or 1e-5 in single
        precision, unless it is given. ``linear`` goes to :func:`kingpost.solve`, such as ``method="gmres"`` where the
        Jacobian matrix is not symmetric and positive definite. Derivatives are forms and the solutions of a linear
        system each, for a gradient with the transposed matrix.
        """
        return self._solver(Problem(self.function, unknown, relative, absolute, max_iterations, linear))

    @abstractmethod
    def _solver(self, problem: Problem) -> Any:
        """What calls a solver with arrays of the library."""


def nested(flat: Mapping[Key, Any]) -> dict[str, Any]:
    """Arguments by name, with what one part alone gets under its name."""
    found: dict[str, Any] = {}
    for (part, name), value in flat.items():
        (found.setdefault(part, {}) if part else found)[name] = value
    return found


def _assembled(operator: Any, patterns: dict[str, Pattern], given: Mapping[Key, Any]) -> Csr:
    """The matrix."""
    import numpy

    (pattern,) = patterns.values()
    places = {(part, name): value for part, (name, value) in pattern.positions.items()}
    wanted(operator, {**given, **places})
    data = _beside(given["", "x"], numpy.zeros(pattern.indices.shape, type_name(given["", "x"])))
    add(operator, {**given, **places}, data)
    return Csr(pattern.indptr, pattern.indices, data)


def _transposed(matrix: Csr) -> Csr:
    import numpy

    starts, columns, data = _rows_of(matrix)
    n = len(starts) - 1
    order = numpy.argsort(columns, kind="stable")
    ends = numpy.cumsum(numpy.bincount(columns, minlength=n))
    rows = numpy.repeat(numpy.arange(n), numpy.diff(starts))
    return Csr(numpy.concatenate([[0], ends]), rows[order], data[order])


def _like(array: Any, values: Any) -> Any:
    """Values as an array of the shape, the type and the library of another one, which owns them."""
    import numpy

    shape = tuple(array.shape)
    if values.size != numpy.prod(shape, dtype=int):
        raise ShapeError(f"found {values.size} numbers, needed an array of shape {list(shape)}")
    return _beside(array, numpy.array(values, type_name(array)).reshape(shape))


def _same(a: Any, b: Any) -> bool:
    return a.shape == b.shape and bool((a == b).all())
