"""Values of integrands: scalars, and sums that are linear in each argument.

A scalar is the position of a node. A value that depends on arguments is a dictionary from a tuple
of argument fields (test, then trial) to the node that multiplies their tables. Products of values
distribute, so an integrand comes out factorised over its arguments.
"""

from __future__ import annotations

from .errors import FormError
from .graph import Field, Graph

Linear = dict[tuple[Field, ...], int]
Value = int | Linear


class Values:
    """Arithmetic of values on a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def is_zero(self, a: Value) -> bool:
        """Whether `a` is known to be zero."""
        return not a if isinstance(a, dict) else a == self.graph.zero

    def _same_arguments(self, a: Linear, b: Linear) -> None:
        left = tuple(field.source for field in next(iter(a)))
        right = tuple(field.source for field in next(iter(b)))
        if left != right:
            raise FormError(
                f"sum: found terms in the arguments {list(left)} and {list(right)}; all terms of a "
                "form need the same arguments; split the form with `lhs` and `rhs`"
            )

    def add(self, a: Value, b: Value) -> Value:
        """a + b."""
        if self.is_zero(a):
            return b
        if self.is_zero(b):
            return a
        if isinstance(a, int) and isinstance(b, int):
            return self.graph.add(a, b)
        if not (isinstance(a, dict) and isinstance(b, dict)):
            raise FormError(
                "sum: found a term with an argument and one without; all terms of a form need the "
                "same arguments; split the form with `lhs` and `rhs`"
            )
        self._same_arguments(a, b)
        total = dict(a)
        for key, factor in b.items():
            known = total.get(key)
            total[key] = factor if known is None else self.graph.add(known, factor)
        return {key: factor for key, factor in total.items() if factor != self.graph.zero}

    def scale(self, a: Linear, factor: int) -> Linear:
        """`a` times a node; zeros are dropped."""
        zero, multiply = self.graph.zero, self.graph.multiply
        scaled = {key: multiply(value, factor) for key, value in a.items()}
        return {key: value for key, value in scaled.items() if value != zero}

    def negate(self, a: Value) -> Value:
        """-a."""
        if isinstance(a, dict):
            return {key: self.graph.negate(value) for key, value in a.items()}
        return self.graph.negate(a)

    def multiply(self, a: Value, b: Value) -> Value:
        """a b; both may depend on arguments, but not on the same one."""
        if self.is_zero(a) or self.is_zero(b):
            return self.graph.zero
        if isinstance(a, int) and isinstance(b, int):
            return self.graph.multiply(a, b)
        if isinstance(a, int):
            a, b = b, a
        assert isinstance(a, dict)
        if isinstance(b, int):
            return self.scale(a, b)
        return self._product(a, b)

    def _product(self, a: Linear, b: Linear) -> Linear:
        product: Linear = {}
        for left, x in a.items():
            for right, y in b.items():
                key = tuple(sorted(left + right, key=lambda field: field.source))
                if len({field.source for field in key}) < len(key):
                    raise FormError(
                        f"product: argument {key[0].source} stands twice; a form is linear in each "
                        "of its arguments; write a coefficient for one of them"
                    )
                factor = self.graph.multiply(x, y)
                known = product.get(key)
                product[key] = factor if known is None else self.graph.add(known, factor)
        return {key: factor for key, factor in product.items() if factor != self.graph.zero}

    def conj(self, a: Value) -> Value:
        """The conjugate of `a`; basis functions are real."""
        if isinstance(a, dict):
            return {key: self.graph.conj(value) for key, value in a.items()}
        return self.graph.conj(a)

    def divide(self, a: Value, b: int) -> Value:
        """a / b, for linear `a` by the reciprocal of b."""
        if isinstance(a, dict):
            reciprocal = self.graph.divide(self.graph.one, b)
            return self.multiply(a, reciprocal)
        return self.graph.divide(a, b)

    def select(self, condition: int, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`."""
        if isinstance(a, int) and isinstance(b, int):
            return self.graph.select(condition, a, b)
        left = a if isinstance(a, dict) else {}
        right = b if isinstance(b, dict) else {}
        if (not left and not self.is_zero(a)) or (not right and not self.is_zero(b)):
            raise FormError("conditional: one case has an argument and the other has none")
        zero = self.graph.zero
        keys = list(left) + [key for key in right if key not in left]
        chosen = {
            k: self.graph.select(condition, left.get(k, zero), right.get(k, zero)) for k in keys
        }
        return {key: factor for key, factor in chosen.items() if factor != zero}

    def scalar(self, a: Value, operation: str) -> int:
        """`a` as a scalar; an argument under a nonlinear operation is an error."""
        if isinstance(a, dict):
            if not a:
                return self.graph.zero
            raise FormError(f"`{operation}` of an argument is not linear in it; use a coefficient")
        return a
