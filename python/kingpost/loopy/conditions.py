"""For which parameters every affine access stays inside its array."""

from __future__ import annotations

from functools import partial
from typing import Any, Optional

import islpy as isl
import loopy as lp
import pymbolic.primitives as p
from islpy import dim_type
from loopy.diagnostic import ExpressionToAffineConversionError
from loopy.symbolic import (
    WalkMapper,
    condition_to_set,
    constraint_to_cond_expr,
    get_dependencies,
    guarded_pwaff_from_expr,
)

from kingpost.loopy.declarations import assumption, is_unknown
from kingpost.loopy.domains import as_set, parameters_only
from kingpost.loopy.internals import visit
from kingpost.loopy.writer import Writer


class Outside(WalkMapper):
    """Collects parameters for which an access leaves its array."""

    def __init__(self, kernel: lp.LoopKernel, parameters: frozenset[str]) -> None:
        super().__init__()
        self.kernel = kernel
        self.parameters = parameters
        self.found: list[tuple[isl.Set, isl.Set]] = []

    def map_subscript(self, expr: Any, domain: isl.Set) -> None:
        super().map_subscript(expr, domain)
        name = expr.aggregate.name
        variable = self.kernel.temporary_variables.get(name) or self.kernel.arg_dict.get(name)
        shape: Any = None if variable is None else variable.shape
        if shape is None or is_unknown(shape) or len(shape) != len(expr.index_tuple):
            return
        for index, extent in zip(expr.index_tuple, shape, strict=True):
            outside = self.outside(domain, index, extent)
            if outside is not None and not outside.is_empty():
                self.found.append((outside.params(), domain.params()))

    def outside(self, domain: isl.Set, index: Any, extent: Any) -> Optional[isl.Set]:
        """The points whose index is below zero, or not below the extent; nothing if they depend on data."""
        known = set(domain.get_var_dict()) & (self.parameters | self.kernel.all_inames())
        missing = self.parameters - known
        for name in sorted(missing & (get_dependencies(index) | get_dependencies(extent))):
            domain = domain.add_dims(dim_type.param, 1)
            domain = domain.set_dim_name(dim_type.param, domain.dim(dim_type.param) - 1, name)
        if extent is None or not (get_dependencies(index) | get_dependencies(extent)) <= known | missing:
            return None
        if not set(domain.get_var_names(dim_type.param)) <= self.parameters:
            return None
        space = domain.get_space()
        try:
            place, end, zero = (guarded_pwaff_from_expr(space, value, frozenset()) for value in (index, extent, 0))
        except ExpressionToAffineConversionError:
            return None
        return domain & (place.lt_set(zero) | place.ge_set(end))

    def map_if(self, expr: p.If, domain: isl.Set) -> None:
        self.rec(expr.condition, domain)
        holds = condition_to_set(domain.get_space(), expr.condition)
        if holds is None:
            self.rec(expr.then, domain)
            self.rec(expr.else_, domain)
        else:
            self.rec(expr.then, domain & holds)
            self.rec(expr.else_, domain - as_set(holds))

    def map_reduction(self, expr: Any, domain: isl.Set) -> None:
        inner = as_set(self.kernel.get_inames_domain(frozenset(map(str, domain.get_var_names(dim_type.set))) | set(expr.inames)))
        self.rec(expr.expr, inner)


def conditions(writer: Writer) -> list[str]:
    """Assumptions under which the accesses stay inside, as far as they are a conjunction."""
    kernel = writer.kernel
    walk = Outside(kernel, frozenset(writer.parameters))
    for insn in kernel.instructions:
        domain = as_set(kernel.get_inames_domain(insn.within_inames))
        for predicate in insn.predicates:
            walk(predicate, domain)
            holds = condition_to_set(domain.get_space(), predicate)
            domain = domain if holds is None else domain & holds
        visit(insn, partial(walk, domain=domain))
    lines: list[str] = []
    for outside, reached in walk.found:
        context = writer.domains.context
        outside, context = isl.align_two(parameters_only(outside), context)
        reached, context = isl.align_two(parameters_only(reached), context)
        reached, outside = isl.align_two(reached, outside)
        inside = (reached & context) - outside
        if inside.is_empty():
            continue  # no parameters help: the kernel is refused with a witness
        pieces = inside.gist(reached & context).coalesce().compute_divs().get_basic_sets()
        if len(pieces) != 1:
            continue
        for constraint in pieces[0].get_constraints():
            line = assumption(writer, constraint_to_cond_expr(constraint))
            if line not in lines:
                lines.append(line)
    return lines
