"""Sets of loops as conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Optional

import islpy as isl
import loopy as lp
from islpy import dim_type
from loopy.symbolic import set_to_cond_expr


def as_set(found: Any) -> isl.Set:
    return found.to_set() if isinstance(found, isl.BasicSet) else found


def parameters_only(found: isl.Set) -> isl.Set:
    """The same set with its loops as parameters, by name."""
    count = found.dim(dim_type.set)
    return found.move_dims(dim_type.param, found.dim(dim_type.param), dim_type.set, 0, count)


def only(found: isl.Set, kept: Collection[str]) -> isl.Set:
    """The set with all but some loops projected out."""
    for position in reversed(range(found.dim(dim_type.set))):
        if found.get_dim_name(dim_type.set, position) not in kept:
            found = found.project_out(dim_type.set, position, 1)
    return found


def equal_sets(one: isl.Set, other: isl.Set) -> bool:
    one, other = isl.align_two(one, other)
    return one.is_equal(other)


class Domains:
    """The domains of a kernel."""

    def __init__(self, kernel: lp.LoopKernel, parameters: Iterable[str], same: Mapping[str, str]) -> None:
        self.kernel = kernel
        #: Inames that another one stands for.
        self.same = same
        context = as_set(kernel.assumptions)
        known = set(parameters)
        for position in reversed(range(context.dim(dim_type.param))):
            if context.get_dim_name(dim_type.param, position) not in known:
                context = context.project_out(dim_type.param, position, 1)
        #: What is assumed of parameters, without what is assumed of data.
        self.context = parameters_only(context)

    def loops(self, inames: Iterable[str], idle: frozenset[str] = frozenset()) -> isl.Set:
        """The domain of loops, of which the others are projected out: some value of an `idle` one is there."""
        kept = frozenset(inames)
        return only(as_set(self.kernel.get_inames_domain(kept | idle)), kept)

    def by_names(self, inames: Iterable[str], idle: frozenset[str] = frozenset()) -> isl.Set:
        """The domain of loops, with parameters for them; one for inames that are the same."""
        found = parameters_only(self.loops(inames, idle))
        for name, other in self.same.items():
            at = found.find_dim_by_name(dim_type.param, name)
            if at < 0:
                continue
            there = found.find_dim_by_name(dim_type.param, other)
            if there < 0:
                found = found.set_dim_name(dim_type.param, at, other)
            else:
                found = found.equate(dim_type.param, at, dim_type.param, there).project_out(dim_type.param, at, 1)
        return found

    def renamed(self, inames: Iterable[str], names: Mapping[str, str]) -> isl.Set:
        """The domain of loops, with other names for some, given the assumptions."""
        found = self.by_names(inames)
        for name, other in names.items():
            at = found.find_dim_by_name(dim_type.param, name)
            found = found if at < 0 else found.set_dim_name(dim_type.param, at, other)
        one, context = isl.align_two(found, self.context)
        return one & context

    def condition(
        self, inames: Sequence[str], known: Iterable[Sequence[str]], idle: frozenset[str] = frozenset()
    ) -> Optional[Any]:
        """What the domain of loops says beyond those of other loops and the assumptions."""
        if not inames and not idle:
            return None
        found = self.by_names(inames, idle)
        for other in [*(self.by_names(names) for names in known if names), self.context]:
            one, two = isl.align_two(found, other)
            found = one.gist(two)
        found = found.coalesce().remove_redundancies().compute_divs()
        if found.is_equal(isl.Set.universe(found.get_space())):
            return None
        return False if found.is_empty() else set_to_cond_expr(found)
