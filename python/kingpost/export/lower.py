"""Lowering: an integrand after UFL's derivatives to values on a scalar graph.

One traversal takes components of UFL's tensors with all indices bound, pulls functions back, and
writes scalar nodes. Every (expression, component, bound indices, side) is visited once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import ufl.classes as uc
from ufl.pullback import IdentityPullback
from ufl.sobolevspace import H1

from .derivative import ReferenceDerivative
from .errors import FormError, UnsupportedForm
from .geometry import Geometry, lowered
from .graph import Field
from .linear import Value, Values
from .scope import Scope

Component = tuple[int, ...]
Bound = dict[int, int]
_UNBOUND: Bound = {}

_MATH = {
    "Sqrt": "sqrt", "Exp": "exp", "Ln": "ln", "Sin": "sin", "Cos": "cos", "Tan": "tan",
    "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh",
    "Tanh": "tanh", "Erf": "erf", "Abs": "abs", "Atan2": "atan2", "MinValue": "min",
    "MaxValue": "max",
}  # fmt: skip
#: Functions of real numbers that complex numbers have, too.
_OF_COMPLEX = frozenset(("sqrt", "exp", "ln", "sin", "cos", "abs"))
_COMPARE = {"EQ": "eq", "NE": "ne", "LT": "lt", "LE": "le", "GT": "gt", "GE": "ge"}
_LOGIC = {"AndCondition": "and", "OrCondition": "or", "NotCondition": "not"}
_BESSEL = {"BesselJ": "j", "BesselY": "y", "BesselI": "i", "BesselK": "k"}

# Equal on both sides of a facet, so that UFL lets a form leave the side out.
_EITHER_SIDE = (
    uc.SpatialCoordinate, uc.FacetJacobian, uc.FacetJacobianDeterminant, uc.FacetJacobianInverse,
    uc.FacetArea, uc.MinFacetEdgeLength, uc.MaxFacetEdgeLength, uc.FacetOrigin,
)  # fmt: skip
_NO_SIDE = (
    uc.FacetCoordinate, uc.QuadratureWeight, uc.ReferenceCellVolume, uc.ReferenceFacetVolume
)  # fmt: skip


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Lets expressions nest deeper than Python's default of 1000 calls."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 100_000))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


class Lowering:
    """Values of UFL expressions in one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.graph = scope.graph
        self.values = Values(scope.graph)
        self.geometry = Geometry(scope)
        self.reference = ReferenceDerivative(self.values, scope)
        self._known: dict[Any, Value] = {}
        self._handlers: dict[type, Callable[..., Value]] = {}
        # `_known` is keyed by identity, so what was lowered has to stay alive.
        self._alive: list[Any] = []
        self._pulled: dict[Any, Any] = {}
        self._simpler: dict[Any, Any] = {}

    def value(
        self, expression: Any, component: Component = (), bound: Bound = _UNBOUND,
        side: str | None = None,
    ) -> Value:  # fmt: skip
        """The value of one component of `expression` with its free indices bound."""
        free = expression.ufl_free_indices
        if free:
            key = (id(expression), component, side, *[bound[index] for index in free])
        else:
            key = (id(expression), component, side)
        known = self._known.get(key)
        if known is None:
            kind = type(expression)
            if kind not in self._handlers:
                # classes of others derive from UFL's
                names = (f"_{base.__name__}" for base in kind.__mro__)
                self._handlers[kind] = next((getattr(self, n) for n in names if hasattr(self, n)), self._other)
            handler = self._handlers[kind]
            known = self._known[key] = handler(expression, component, bound, side)
        return known

    def integrand(self, expression: Any) -> Value:
        """The value of a whole integrand, which is kept alive for the keys of its parts."""
        self._alive.append(expression)
        return self.value(expression)

    def _scalar(self, expression: Any, bound: Bound, side: str | None, name: str) -> int:
        return self.values.scalar(self.value(expression, (), bound, side), name)

    # Tensors and indices

    def _Indexed(self, e: Any, _: Component, bound: Bound, side: str | None) -> Value:
        tensor, indices = e.ufl_operands
        chosen = tuple(
            [int(i) if isinstance(i, uc.FixedIndex) else bound[i.count()] for i in indices]
        )
        return self.value(tensor, chosen, bound, side)

    def _ComponentTensor(
        self, e: Any, component: Component, bound: Bound, side: str | None
    ) -> Value:
        body, indices = e.ufl_operands
        inner = dict(bound)
        for index, position in zip(indices, component, strict=True):
            inner[index.count()] = position
        return self.value(body, (), inner, side)

    def _ListTensor(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        return self.value(e.ufl_operands[component[0]], component[1:], bound, side)

    def _IndexSum(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        body, indices = e.ufl_operands
        index = indices[0].count()
        total: Value = self.graph.zero
        for position in range(e.dimension()):
            term = self.value(body, component, {**bound, index: position}, side)
            total = self.values.add(total, term)
        return total

    # Algebra

    def _Sum(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        total: Value = self.graph.zero
        for operand in e.ufl_operands:
            total = self.values.add(total, self.value(operand, component, bound, side))
        return total

    def _Product(self, e: Any, _: Component, bound: Bound, side: str | None) -> Value:
        first = self.value(e.ufl_operands[0], (), bound, side)
        if self.values.is_zero(first):
            return self.graph.zero
        return self.values.multiply(first, self.value(e.ufl_operands[1], (), bound, side))

    def _Division(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        over = self._scalar(e.ufl_operands[1], bound, side, "/")
        return self.values.divide(self.value(e.ufl_operands[0], component, bound, side), over)

    def _Power(self, e: Any, _: Component, bound: Bound, side: str | None) -> Value:
        base, exponent = (self._scalar(o, bound, side, "**") for o in e.ufl_operands)
        return self.graph.power(base, exponent)

    def _Conditional(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        condition = self._scalar(e.ufl_operands[0], bound, side, "conditional")
        cases = (self.value(case, component, bound, side) for case in e.ufl_operands[1:])
        return self.values.select(condition, *cases)

    def _Variable(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        return self.value(e.ufl_operands[0], component, bound, side)

    def _Conj(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        return self.values.conj(self.value(e.ufl_operands[0], component, bound, side))

    def _Real(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        if not self.graph.is_complex:
            return self.value(e.ufl_operands[0], component, bound, side)
        name = type(e).__name__.lower()
        value = self.values.scalar(self.value(e.ufl_operands[0], component, bound, side), name)
        return self.graph.math(name, value)

    _Imag = _Real

    def _other(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        name = type(e).__name__
        if isinstance(e, uc.GeometricQuantity):
            return self._geometric(e, component, side)
        if isinstance(e, uc.Coefficient):
            return self._function(e, component, self._coefficient_side(e, side))
        operands = [o for o in e.ufl_operands if not isinstance(o, uc.MultiIndex)]
        if name in _MATH:
            function = _MATH[name]
            values = [self._scalar(o, bound, side, function) for o in operands]
            if function not in _OF_COMPLEX:
                self._check_real(e, *values)
            return self.graph.math(function, *values)
        if name in _COMPARE:
            a, b = (self._scalar(o, bound, side, _COMPARE[name]) for o in operands)
            return self.graph.compare(_COMPARE[name], a, b)
        if name in _LOGIC:
            conditions = (self._scalar(o, bound, side, _LOGIC[name]) for o in operands)
            return self.graph.intern(_LOGIC[name], *conditions)
        if name in _BESSEL:
            argument = self._scalar(operands[1], bound, side, "bessel")
            self._check_real(e, argument)
            return self.graph.intern("bessel", _BESSEL[name], int(operands[0]), argument)
        return self._refuse(e)

    def _check_real(self, e: Any, *operands: int) -> None:
        """Refuses a function that complex numbers do not have."""
        if not all(self.graph.is_real(o) for o in operands):
            known = ", ".join(f"`{name}`" for name in sorted(_OF_COMPLEX))
            raise UnsupportedForm(
                f"`{e}` of a complex number, which has {known}", "take `real` of it, or write it by these"
            )

    def _refuse(self, e: Any) -> Value:
        name = type(e).__name__
        if name in ("ExternalOperator", "Interpolate"):
            raise UnsupportedForm(f"`{name}`", "evaluate it first and pass it as a coefficient")
        raise UnsupportedForm(f"UFL's `{name}`")

    # Literals

    def _ComplexValue(self, e: Any, *_: Any) -> Value:
        parts = (self.graph.literal(part) for part in (e.value().real, e.value().imag))
        return self.graph.intern("math", "complex", *parts)

    def _Zero(self, e: Any, *_: Any) -> Value:
        return self.graph.zero

    def _IntValue(self, e: Any, *_: Any) -> Value:
        return self.graph.literal(float(e))

    _FloatValue = _IntValue

    def _Identity(self, e: Any, component: Component, *_: Any) -> Value:
        return self.graph.one if component[0] == component[1] else self.graph.zero

    def _PermutationSymbol(self, e: Any, component: Component, *_: Any) -> Value:
        if len(set(component)) < len(component):
            return self.graph.zero
        inversions = sum(a > b for a, b in combinations(component, 2))
        return self.graph.literal(-1.0 if inversions % 2 else 1.0)

    def _Constant(self, e: Any, component: Component, *_: Any) -> Value:
        flat = 0
        for size, position in zip(e.ufl_shape, component, strict=True):
            flat = flat * size + position
        return self.graph.intern("constant", self.scope.functions.constant(e), flat)

    # Functions

    def _restricted(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        if self.scope.frame.kind != "interior_facet":
            raise FormError(
                f"restriction `{e}` in an integral of type {self.scope.frame.kind}: only interior "
                "facets have two sides; integrate with `dS`"
            )
        if side is not None:
            raise FormError(f"restriction `{e}` stands in another restriction; keep one")
        return self.value(e.ufl_operands[0], component, bound, e.side())

    _PositiveRestricted = _NegativeRestricted = _restricted

    def _needs_side(self, e: Any, side: str | None) -> None:
        if self.scope.frame.kind == "interior_facet" and side is None:
            raise FormError(f"`{e}` in `dS` has no side; write `('+')` or `('-')`, `avg` or `jump`")

    def _coefficient_side(self, e: Any, side: str | None) -> str | None:
        if side is None and self.scope.frame.kind == "interior_facet" and e.ufl_element() in H1:
            return "+"
        self._needs_side(e, side)
        return side

    def _Argument(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        if side is None and self.scope.frame.kind == "interior_facet" and e.ufl_element().is_real:
            side = "+"  # the one number of the space is that of both sides
        self._needs_side(e, side)
        return self._function(e, component, side)

    def _function(self, e: Any, component: Component, side: str | None) -> Value:
        """The value in physical space: the pull-back of the reference value."""
        element = e.ufl_element()
        if isinstance(element.pullback, IdentityPullback):
            return self._reference_value(e, component, side)
        pulled = self._pulled.get(e)
        if pulled is None:
            pulled = self._pulled[e] = element.pullback.apply(uc.ReferenceValue(e))
        return self.value(pulled, component, _UNBOUND, side)

    def _ReferenceValue(self, e: Any, component: Component, _: Bound, side: str | None) -> Value:
        return self._reference_value(e.ufl_operands[0], component, side)

    def _reference_value(self, f: Any, component: Component, side: str | None) -> Value:
        element = f.ufl_element()
        flat = 0
        for size, position in zip(element.reference_value_shape, component, strict=True):
            flat = flat * size + position
        zero = (0,) * self.scope.frame.tdim
        if isinstance(f, uc.Argument):
            field = Field(self.scope.numbers[f.number()], flat, zero, side)
            return {(field,): self.graph.one}
        side = self._coefficient_side(f, side)
        return self.scope.field_node(Field(self.scope.functions.coefficient(f), flat, zero, side))

    def _average(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        kind = "cell" if isinstance(e, uc.CellAvg) else "facet"
        inner = self.value(e.ufl_operands[0], component, bound, side)
        if isinstance(inner, dict) and all(self.graph.value(f) is not None for f in inner.values()):
            return {
                tuple(f._replace(average=kind) for f in key): factor
                for key, factor in inner.items()
            }
        if isinstance(inner, int) and self.graph.nodes[inner][0] == "field":
            field = self.graph.nodes[inner][1]
            return self.scope.field_node(field._replace(average=kind))
        raise UnsupportedForm(
            f"`{kind}_avg` of something else than a function of identity-mapped components",
            "average the function itself, or project onto a discontinuous space of degree 0",
        )

    _CellAvg = _FacetAvg = _average

    # Gradients and geometry

    def _ReferenceGrad(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        inner = self.value(e.ufl_operands[0], component[:-1], bound, side)
        return self.reference.of(inner, component[-1])

    def _Grad(self, e: Any, component: Component, bound: Bound, side: str | None) -> Value:
        self._needs_side(e, side)
        inner = self.value(e.ufl_operands[0], component[:-1], bound, side)
        total: Value = self.graph.zero
        for axis in range(self.scope.frame.tdim):
            slope = self.reference.of(inner, axis)
            if not self.values.is_zero(slope):
                inverse = self._inverse(axis, component[-1], side)
                total = self.values.add(total, self.values.multiply(slope, inverse))
        return total

    def _inverse(self, k: int, j: int, side: str | None) -> Value:
        if self.geometry.square:
            return self.geometry.inverse(side)[0][k][j]
        quantity = uc.JacobianInverse(self.scope.functions.domain(side))
        return self.value(self._lowered(quantity), (k, j), _UNBOUND, side)

    def _geometric(self, e: Any, component: Component, side: str | None) -> Value:
        if self.scope.frame.kind == "interior_facet" and not isinstance(e, _NO_SIDE):
            if side is None and isinstance(e, _EITHER_SIDE):
                side = "+"
            self._needs_side(e, side)
        node = self.geometry.terminal(e, component, side)
        if node is not None:
            return node
        simpler = self._lowered(e)
        if simpler == e:
            return self._size(e, side)
        return self.value(simpler, component, _UNBOUND, side)

    def _lowered(self, quantity: Any) -> Any:
        simpler = self._simpler.get(quantity)
        if simpler is None:
            simpler = self._simpler[quantity] = lowered(quantity, self.geometry.square)
        return simpler

    def _size(self, e: Any, side: str | None) -> Value:
        raise self.geometry.unsupported(e)
