"""Instructions that several work-items or groups run alike."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import islpy as isl
import loopy as lp
from loopy.kernel.data import AddressSpace
from loopy.symbolic import get_dependencies

from kingpost.loopy.domains import as_set, only, parameters_only


def redundant(kernel: lp.LoopKernel, axes: dict[str, str]) -> dict[str, frozenset[str]]:
    """Of each instruction the inames on axes at all of which it writes one value to one element.

    Once is enough: the value and the element mention none of them, and what other instructions share with it does
    not depend on them.
    """
    return {insn.id: frozenset(alike(kernel, axes, insn)) for insn in kernel.instructions}


def alike(kernel: lp.LoopKernel, axes: dict[str, str], insn: Any) -> list[str]:
    written = set(insn.assignee_var_names())
    temporaries = kernel.temporary_variables
    private = {name for name, value in temporaries.items() if value.address_space == AddressSpace.PRIVATE}
    mentioned = insn.read_dependency_names() | insn.write_dependency_names()
    # private values may be those of the work-item, and indivisible updates count
    if not written or mentioned & private or getattr(insn, "atomicity", ()) or written & insn.read_dependency_names():
        return []
    # each group has local memory of its own
    shared = ("g.", "l.") if all(name in kernel.arg_dict for name in written) else ("l.",)
    parts = (*insn.assignees, *getattr(insn, "predicates", ()), getattr(insn, "expression", 0))
    used = {name for part in parts for name in get_dependencies(part)}
    same = [name for name in sorted(insn.within_inames - used) if axes[name][:2] in shared]
    around = [name for name in sorted(insn.within_inames) if axes[name].startswith("g.") and name not in same]
    others = [name for name in sorted(insn.within_inames) if name not in same and name not in around]
    # loops of this instruction alone run where they do for any work-item
    own = all(kernel.iname_to_insns()[name] == {insn.id} for name in others)
    return [] if not own and depend(kernel, others, same, around) else same


def depend(kernel: lp.LoopKernel, inames: Collection[str], others: Collection[str], around: Collection[str]) -> bool:
    """Whether the values of loops depend on those of others, at one point of the loops around both."""
    if not inames or not others:
        return False
    whole = as_set(kernel.get_inames_domain(frozenset([*inames, *others, *around])))
    both = parameters_only(only(whole, [*inames, *others, *around]))
    one, other = (parameters_only(only(whole, [*names, *around])) for names in (inames, others))
    one, other = isl.align_two(one, other)
    apart, both = isl.align_two(one & other, both)
    return not apart.is_equal(both)
