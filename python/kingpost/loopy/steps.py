"""Minima and maxima in indices as sums of steps, which are affine."""

from __future__ import annotations

from typing import Any

import islpy as isl
import loopy as lp
import pymbolic.primitives as p
from loopy.symbolic import IdentityMapper, get_dependencies
from pymbolic import evaluate
from pymbolic.mapper import UnsupportedExpressionError
from pymbolic.mapper.evaluator import UnknownVariableError

#: The values of an iname that are told apart.
MOST_VALUES = 64


class InSteps(IdentityMapper):
    """Writes minima and maxima of one iname that has few values as sums of steps.

    With `a <= i < a + n`, the step `floor((i - k)/n) + 1` is 1 from `k` on and 0 before, for `a < k < a + n`, and
    `f(i)` is `f(a)` and the sum of `f(k) - f(k - 1)` times that of `k`. So `chunk_iname` has affine indices.
    """

    def __init__(self, kernel: lp.LoopKernel) -> None:
        super().__init__()
        self.kernel = kernel

    def map_min(self, expr: Any) -> Any:
        names = get_dependencies(expr)
        if len(names) != 1 or not names <= self.kernel.all_inames():
            return expr
        (name,) = names
        try:
            bounds = self.kernel.get_iname_bounds(name, constants_only=True)
        except isl.Error:
            return expr  # nothing but parameters bounds it
        first = int(bounds.lower_bound_pw_aff.min_val().to_python())
        values = range(first, int(bounds.upper_bound_pw_aff.max_val().to_python()) + 1)
        if len(values) > MOST_VALUES:
            return expr
        try:
            found = [evaluate(expr, {name: value}) for value in values]
        except (UnsupportedExpressionError, UnknownVariableError):
            return expr  # it calls something
        if not all(isinstance(value, int) for value in found):
            return expr
        terms: list[Any] = [found[0]]
        for value, before, after in zip(values[1:], found, found[1:]):
            step = p.FloorDiv(p.Variable(name) - value, len(values)) + 1
            terms.append(p.flattened_product((after - before, step)))
        return p.flattened_sum(terms)

    map_max = map_min
