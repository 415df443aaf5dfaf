"""Reference derivatives of values: the chain rule on the graph.

UFL leaves spatial gradients on functions alone. A gradient is the reference gradient of the
pulled-back value times the inverse Jacobian, so that gradients of Piola-mapped functions, second
gradients and curved cells need derivatives of products with the Jacobian: they are taken here.
"""

from __future__ import annotations

from .errors import FormError
from .graph import Field, Graph
from .linear import Linear, Value, Values
from .scope import Scope


class ReferenceDerivative:
    """d/dX_k of nodes and values."""

    def __init__(self, values: Values, scope: Scope) -> None:
        self.values = values
        self.graph: Graph = values.graph
        self.scope = scope
        self._known: dict[tuple[int, int], int] = {}

    def of(self, value: Value, axis: int) -> Value:
        """The derivative of `value` along the reference coordinate `axis`."""
        if isinstance(value, dict):
            return self._linear(value, axis)
        return self.node(value, axis)

    def _linear(self, value: Linear, axis: int) -> Value:
        total: Value = self.graph.zero
        for key, factor in value.items():
            slope = self.node(factor, axis)
            if slope != self.graph.zero:
                total = self.values.add(total, {key: slope})
            for place, field in enumerate(key):
                moved = self._raised(field, axis)
                if not self.scope.argument_vanishes(moved):
                    raised = (*key[:place], moved, *key[place + 1 :])
                    total = self.values.add(total, {raised: factor})
        return total

    @staticmethod
    def _raised(field: Field, axis: int) -> Field:
        if field.average is not None:
            raise FormError("a derivative of an average is zero; leave the term out")
        counts = list(field.derivatives)
        counts[axis] += 1
        return field._replace(derivatives=tuple(counts))

    def node(self, a: int, axis: int) -> int:
        """The derivative of node `a` along the reference coordinate `axis`."""
        known = self._known.get((a, axis))
        if known is None:
            known = self._rule(self.graph.nodes[a], a, axis)
            self._known[a, axis] = known
        return known

    def _rule(self, node: tuple, a: int, axis: int) -> int:
        graph = self.graph
        match node:
            case ("literal" | "constant" | "weight", *_):
                return graph.zero
            case ("field", field):
                if field.rows is not None:
                    return graph.zero
                return self.scope.field_node(self._raised(field, axis))
            case ("reference", name, component, _side):
                moves = name == "cell_coordinate" and component == (axis,)
                return graph.one if moves else graph.zero
            case ("negate", x):
                return graph.negate(self.node(x, axis))
            case ("add", x, y):
                return graph.add(self.node(x, axis), self.node(y, axis))
            case ("subtract", x, y):
                return graph.subtract(self.node(x, axis), self.node(y, axis))
            case ("multiply", x, y):
                return graph.add(
                    graph.multiply(self.node(x, axis), y), graph.multiply(x, self.node(y, axis))
                )
            case ("divide", x, y):
                slope = graph.multiply(a, self.node(y, axis))
                return graph.divide(graph.subtract(self.node(x, axis), slope), y)
            case ("math", "conj" | "real" | "imag" as part, x):
                return graph.math(part, self.node(x, axis))
            case ("math", "sqrt", x):
                return graph.divide(graph.multiply(graph.literal(0.5), self.node(x, axis)), a)
            case ("math", "abs", x) if graph.is_real(x):
                sign = graph.divide(x, a)
                return graph.multiply(sign, self.node(x, axis))
        raise FormError(f"gradient: no rule for the derivative of `{node[0]}` in the geometry")
