"""The scalar graph: hash-consed nodes with light simplification.

A node is a tuple whose first entry is its operation; operands are positions of earlier nodes, so a
graph is always in topological order. Two equal nodes are one. `field` and `reference` nodes stay
symbolic (component, reference derivative, side) until the document is written, because a
reference derivative of a node needs to know what a table stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Field(NamedTuple):
    """A reference value or reference derivative of one scalar component of a function.

    `source` is a function's position (x is a function too) or, in an argument, the number of the
    argument. `component` is flat and of the reference value. `derivatives` counts the derivatives
    by each reference coordinate. `rows` replaces the table by fixed combinations of degrees of
    freedom, one for all facets or one a facet: vertices, edge vectors, values at another point.
    """

    source: int
    component: int
    derivatives: tuple[int, ...]
    side: str | None
    average: str | None = None
    rows: tuple[tuple[tuple[int, float], ...], ...] | None = None


Node = tuple
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


class Graph:
    """Nodes in topological order; every method returns the position of a node."""

    def __init__(self, is_complex: bool = False) -> None:
        self.nodes: list[Node] = []
        #: Whether coefficients and constants are complex; positions, tables and weights are real.
        self.is_complex = is_complex
        self._real: dict[int, bool] = {}
        self._index: dict[Node, int] = {}
        self.zero = self.literal(0.0)
        self.one = self.literal(1.0)
        self.minus = self.literal(-1.0)

    def intern(self, *node: object) -> int:
        """Returns the position of `node`, appending it if it is new."""
        position = self._index.get(node)
        if position is None:
            position = len(self.nodes)
            self.nodes.append(node)
            self._index[node] = position
        return position

    def find(self, *node: object) -> int | None:
        """The position of `node` if it is there."""
        return self._index.get(node)

    def literal(self, value: float) -> int:
        """A number; -0.0 is 0.0."""
        return self.intern("literal", float(value) + 0.0)

    def value(self, a: int) -> float | None:
        """The number that node `a` is, or None."""
        node = self.nodes[a]
        return node[1] if node[0] == "literal" else None

    def is_real(self, a: int) -> bool:
        """Whether node `a` is known to be real."""
        if not self.is_complex:
            return True
        known = self._real.get(a)
        if known is None:
            match self.nodes[a]:
                case ("literal" | "weight" | "reference" | "bessel" | "compare" | "and" | "or" | "not", *_):
                    known = True
                case ("constant", *_) | ("math", "complex" | "conj", *_):
                    known = False
                case ("field", field):
                    known = field.source == 0
                case ("math", "abs" | "real" | "imag", _):
                    known = True
                case node:
                    operands = node[2:] if node[0] in ("math", "select") else node[1:]
                    known = all(self.is_real(o) for o in operands)
            self._real[a] = known
        return known

    def conj(self, a: int) -> int:
        """The conjugate of a, of factors that are complex alone."""
        if self.is_real(a):
            return a
        match self.nodes[a]:
            case ("math", "conj", x):
                return x
            case ("negate", x):
                return self.negate(self.conj(x))
            case ("multiply", x, y) if self.is_real(x) or self.is_real(y):
                return self.multiply(self.conj(x), self.conj(y))
        return self.intern("math", "conj", a)

    def real(self, a: int) -> int:
        """The real part of a."""
        return a if self.is_real(a) else self.intern("math", "real", a)

    def imag(self, a: int) -> int:
        """The imaginary part of a."""
        return self.zero if self.is_real(a) else self.intern("math", "imag", a)

    def negate(self, a: int) -> int:
        """-a."""
        node = self.nodes[a]
        if node[0] == "literal":
            return self.literal(-node[1])
        if node[0] == "negate":
            return node[1]
        if node[0] == "subtract":
            return self.intern("subtract", node[2], node[1])
        return self.intern("negate", a)

    def add(self, a: int, b: int) -> int:
        """a + b."""
        if a == self.zero:
            return b
        if b == self.zero:
            return a
        x, y = self.nodes[a], self.nodes[b]
        if x[0] == "literal" and y[0] == "literal":
            return self.literal(x[1] + y[1])
        if y[0] == "negate":
            return self.subtract(a, y[1])
        if x[0] == "negate":
            return self.subtract(b, x[1])
        return self.intern("add", *((a, b) if a <= b else (b, a)))

    def subtract(self, a: int, b: int) -> int:
        """a - b."""
        if b == self.zero:
            return a
        if a == b:
            return self.zero
        if a == self.zero:
            return self.negate(b)
        x, y = self.nodes[a], self.nodes[b]
        if x[0] == "literal" and y[0] == "literal":
            return self.literal(x[1] - y[1])
        if y[0] == "negate":
            return self.add(a, y[1])
        return self.intern("subtract", a, b)

    def multiply(self, a: int, b: int) -> int:
        """a b, with signs moved outwards."""
        if a > b:
            a, b = b, a
        if a <= self.one:
            # 0 and 1 are the first two nodes.
            return self.zero if a == self.zero else b
        if a == self.minus:
            return self.negate(b)
        known = self._index.get(("multiply", a, b))
        if known is not None:
            return known
        x, y = self.nodes[a], self.nodes[b]
        if x[0] == "literal" and y[0] == "literal":
            return self.literal(x[1] * y[1])
        if b == self.minus:
            return self.negate(a)
        if x[0] == "negate":
            return self.negate(self.multiply(x[1], b))
        if y[0] == "negate":
            return self.negate(self.multiply(a, y[1]))
        return self.intern("multiply", a, b)

    def divide(self, a: int, b: int) -> int:
        """a / b."""
        y = self.nodes[b]
        if a == self.zero and y[0] != "literal":
            return self.zero
        if y[0] == "literal" and y[1] != 0.0:
            x = self.nodes[a]
            if x[0] == "literal":
                return self.literal(x[1] / y[1])
            if y[1] in (1.0, -1.0) or abs(y[1]) in (0.125, 0.25, 0.5, 2.0, 4.0, 8.0):
                return self.multiply(a, self.literal(1.0 / y[1]))
        return self.intern("divide", a, b)

    def power(self, a: int, b: int) -> int:
        """a to the power b; small integer powers become products."""
        exponent = self.value(b)
        base = self.value(a)
        if exponent is not None:
            if base is not None and (base > 0.0 or (exponent.is_integer() and exponent >= 0)):
                return self.literal(base**exponent)
            if exponent == 0.0:
                return self.one
            if exponent.is_integer() and 1 <= abs(exponent) <= 4:
                return self._integer_power(a, int(exponent))
            if exponent == 0.5:
                return self.math("sqrt", a)
        return self.intern("power", a, b)

    def _integer_power(self, a: int, exponent: int) -> int:
        square = self.multiply(a, a) if abs(exponent) > 1 else a
        product = {1: a, 2: square}.get(abs(exponent))
        if product is None:
            product = self.multiply(square, a if abs(exponent) == 3 else square)
        return product if exponent > 0 else self.divide(self.one, product)

    def math(self, name: str, *operands: int) -> int:
        """A function; `min` and `max` of one thing are that thing."""
        if name in ("conj", "real", "imag"):
            return getattr(self, name)(*operands)
        if name in ("min", "max"):
            if operands[0] == operands[1]:
                return operands[0]
            operands = tuple(sorted(operands))
        if name == "abs":
            value, node = self.value(operands[0]), self.nodes[operands[0]]
            if value is not None:
                return self.literal(abs(value))
            if node[0] == "negate":
                return self.math("abs", node[1])
            if node[0] == "math" and node[1] in ("abs", "sqrt", "exp") and self.is_real(operands[0]):
                return operands[0]
        if name == "sqrt" and (value := self.value(operands[0])) is not None and value >= 0.0:
            return self.literal(value**0.5)
        return self.intern("math", name, *operands)

    def compare(self, relation: str, a: int, b: int) -> int:
        """A condition."""
        x, y = self.value(a), self.value(b)
        if x is not None and y is not None:
            known = self.one if COMPARISONS[relation](x, y) else self.zero
            return self.intern("compare", "ne", known, self.zero)
        return self.intern("compare", relation, a, b)

    def select(self, condition: int, a: int, b: int) -> int:
        """`a` where `condition` holds, else `b`."""
        if a == b:
            return a
        node = self.nodes[condition]
        if node[0] == "compare":
            x, y = self.value(node[2]), self.value(node[3])
            if x is not None and y is not None:
                return a if COMPARISONS[node[1]](x, y) else b
        if node[0] == "not":
            return self.select(node[1], b, a)
        return self.intern("select", condition, a, b)

    def without(self, vanishing: set[int]) -> tuple[Graph, list[int]]:
        """The graph with some nodes replaced by zero, simplified, and the new places of all."""
        result = Graph(self.is_complex)
        places: list[int] = []
        for position, node in enumerate(self.nodes):
            if position in vanishing:
                places.append(result.zero)
                continue
            match node:
                case ("field" | "reference" | "literal" | "constant" | "weight", *_):
                    places.append(result.intern(*node))
                case ("math" | "compare", name, *operands):
                    method = result.math if node[0] == "math" else result.compare
                    places.append(method(name, *(places[o] for o in operands)))
                case ("bessel", kind, order, operand):
                    places.append(result.intern("bessel", kind, order, places[operand]))
                case ("and" | "or" | "not", *operands):
                    places.append(result.intern(node[0], *(places[o] for o in operands)))
                case (operation, *operands):
                    method = getattr(result, operation)
                    places.append(method(*(places[o] for o in operands)))
        return result, places
