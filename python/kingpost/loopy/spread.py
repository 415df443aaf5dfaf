"""Private temporaries that several loops over work-items share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import loopy as lp
from islpy import dim_type
from loopy.kernel.data import AddressSpace

from kingpost.loopy.nest import Items, Launch, Loop, Node, Statement, tag_of, walk


def spread(kernel: lp.LoopKernel, nodes: list[Node]) -> dict[str, list[str]]:
    """The axes of work-items that private temporaries need elements for.

    A private temporary of Loopy's is one of each work-item. In a text it would be one of all iterations of a
    loop, so that one that lives across such loops gets an element for each of the iterations.
    """
    private = {
        name
        for name, variable in kernel.temporary_variables.items()
        if variable.address_space == AddressSpace.PRIVATE and variable.initializer is None
    }
    tags = {tag_of(kernel, name) for name in kernel.all_inames()}
    every = frozenset(tag for tag in tags if tag is not None and tag.startswith("l."))
    if any(isinstance(node, Items) for node in walk(nodes)):
        # what bounds mention stays a number
        bounds = {name for domain in kernel.domains for name in domain.get_var_names(dim_type.param)}
        return {name: sorted(every) for name in private - bounds} if every else {}
    touched: dict[str, set[int]] = {}
    writers: dict[str, list[frozenset[str]]] = {}
    for insn, section, axes in sections(nodes, 0, frozenset()):
        for name in insn.read_dependency_names() | insn.write_dependency_names():
            touched.setdefault(name, set()).add(section)
        for name in insn.assignee_var_names():
            writers.setdefault(name, []).append(axes)
    shared = {name: frozenset.intersection(*found) for name, found in writers.items() if len(touched[name]) > 1}
    return {name: sorted(axes) for name, axes in shared.items() if axes and name in private}


def sections(nodes: list[Node], section: int, axes: frozenset[str]) -> Iterator[tuple[Any, int, frozenset[str]]]:
    """Each instruction with the loops over work-items around it."""
    for node in nodes:
        if isinstance(node, Statement):
            yield node.insn, section, axes
        elif isinstance(node, Launch):
            yield from sections(node.body, section, axes)
        elif isinstance(node, Loop):
            is_item = node.tag is not None and node.tag.startswith("l.")
            inner = axes | {str(node.tag)} if is_item else axes
            yield from sections(node.body, node.section if is_item else section, inner)
