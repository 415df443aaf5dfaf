"""The loops of a linearised kernel, with those over work-groups and work-items, which Loopy leaves implicit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Union

import islpy as isl
import loopy as lp
from islpy import dim_type
from loopy.kernel.data import ConcurrentTag, GroupInameTag, IlpBaseTag, LocalInameTag, UnrollTag, VectorizeTag
from loopy.kernel.instruction import BarrierInstruction, NoOpInstruction
from loopy.schedule import Barrier as ScheduledBarrier
from loopy.schedule import CallKernel, EnterLoop, LeaveLoop, ReturnFromKernel, RunInstruction

from kingpost.loopy.domains import as_set, only
from kingpost.loopy.redundant import redundant
from kingpost.loopy.refusal import inside, refuse


@dataclass(frozen=True)
class Statement:
    """An instruction."""

    insn: Any


@dataclass(frozen=True)
class Barrier:
    """A barrier of the work-items of a group, the `number`-th of the kernel."""

    number: int


@dataclass(frozen=True)
class Launch:
    """What one launch runs."""

    name: str
    body: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Loop:
    """A loop. Those over work-items that are opened together have one `section`."""

    iname: str
    tag: str | None
    body: list[Node] = field(default_factory=list)
    section: int = 0


@dataclass(frozen=True)
class Items:
    """What the work-items of a group run between two barriers."""

    body: list[Node]
    section: int


@dataclass(frozen=True)
class Turn:
    """What the `next` iteration of a loop runs, or its `first` or `last` one."""

    iname: str
    which: str
    body: list[Node] = field(default_factory=list)


Node = Union[Statement, Barrier, Launch, Loop, Items, Turn]


def tag_of(kernel: lp.LoopKernel, iname: str) -> str | None:
    """The tag of a loop in Kingpost's words."""
    for tag in kernel.inames[iname].tags:
        if isinstance(tag, GroupInameTag):
            return f"g.{tag.axis}"
        if isinstance(tag, LocalInameTag):
            return f"l.{tag.axis}"
        if isinstance(tag, VectorizeTag):
            return "vector"
        if isinstance(tag, UnrollTag | IlpBaseTag):
            return "unroll"
        if isinstance(tag, ConcurrentTag):
            raise refuse(f"the tag {tag}", f"the iname `{iname}`", "needed an axis `g.n`, `l.n`, `unr`, `ilp` or `vec`")
    return None


def aliases(kernel: lp.LoopKernel) -> dict[str, str]:
    """Inames over work-groups that have the axis and the values of another one: that one."""
    found: dict[str, str] = {}
    seen: list[tuple[str, str, isl.Set]] = []
    for iname in sorted(kernel.all_inames()):
        tag = tag_of(kernel, iname)
        if tag is None or not tag.startswith("g."):
            continue
        values = only(as_set(kernel.get_inames_domain(frozenset([iname]))), [iname])
        values = values.set_dim_name(dim_type.set, 0, "value")
        for other, axis, known in seen:
            if axis == tag and known.get_space().is_equal(values.get_space()) and known.is_equal(values):
                found[iname] = other
                break
        else:
            seen.append((iname, tag, values))
    return found


def refuse_placements(kernel: lp.LoopKernel) -> None:
    """Refuses instructions in two loops over one axis, and work-groups whose number depends on data."""
    same = aliases(kernel)
    for insn in kernel.instructions:
        seen: dict[str, str] = {}
        for iname in sorted(map(str, insn.within_inames)):
            tag = tag_of(kernel, iname) or ""
            if tag[:2] not in ("g.", "l."):
                continue
            other = seen.setdefault(tag, same.get(iname, iname))
            mentioned = kernel.get_inames_domain(frozenset([iname])).get_var_names(dim_type.param)
            data = sorted({name for name in kernel.temporary_variables if name in mentioned}) if tag.startswith("g.") else []
            with inside(insn.id):
                if other not in (iname, same.get(iname)):
                    found = f"the inames `{other}` and `{iname}`, both {tag}"
                    raise refuse("two loops on one axis", found, "needed another axis for one of them")
                if data:
                    found = f"`{iname}` on {tag}, bounded by `{data[0]}`"
                    needed = "needed bounds of parameters; keep the iname sequential, or pass the value"
                    raise refuse("work-groups that depend on data", found, needed)


def is_scheduled(kernel: lp.LoopKernel) -> bool:
    """Whether any iname is mapped to hardware."""
    used = kernel.all_inames()
    return any(isinstance(tag, ConcurrentTag) for name in used for tag in kernel.inames[name].tags)


def nest(kernel: lp.LoopKernel) -> list[Node]:
    """The tree of a kernel."""
    return Nest(kernel).launches(pruned(linear(kernel, None)))


def intervals(kernel: lp.LoopKernel, without: int | None) -> list[list[Node]]:
    """Trees that show what no barrier separates, as if the barrier `without` was not there.

    The first is the kernel. The others are of each loop with barriers what follows the last one of an iteration
    with what precedes the first one of the next, and the same for the iteration where the loop begins and ends.
    """
    root = pruned(linear(kernel, without))
    found: list[list[Node]] = [root]

    def visit(nodes: list[Node], around: list[Loop | Launch]) -> None:
        last: list[Node] = []
        open_end: list[tuple[Loop, list[Node]]] = []
        for node in nodes:
            if isinstance(node, Barrier):
                last, open_end = [], []
                continue
            if not has_barrier(node):
                last.append(node)
                for loop, tail in open_end:
                    found.append(among(around, replace(loop, body=[Turn(loop.iname, "last", [*tail, *last])])))
                continue
            if isinstance(node, Launch):
                visit(node.body, [*around, node])
            if isinstance(node, Loop):
                visit(node.body, [*around, node])
                head, tail = ends(node.body)
                found.append(among(around, replace(node, body=[*tail, Turn(node.iname, "next", head)])))
                if last:
                    found.append(among(around, replace(node, body=[Turn(node.iname, "first", [*last, *head])])))
                open_end = [(node, tail)]
            last = []

    visit(root, [])
    return [Nest(kernel, True).launches(tree) for tree in map(pruned, found) if tree]


def among(around: list[Loop | Launch], node: Node) -> list[Node]:
    """A node alone in the loops around it."""
    for outer in reversed(around):
        node = replace(outer, body=[node])
    return [node]


def ends(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """What precedes the first barrier, and what follows the last one."""
    places = [at for at, node in enumerate(nodes) if has_barrier(node)]
    return nodes[: places[0]], nodes[places[-1] + 1 :]


def has_barrier(node: Node) -> bool:
    return isinstance(node, Barrier) or (not isinstance(node, Statement) and any(map(has_barrier, node.body)))


def barriers(kernel: lp.LoopKernel) -> list[str]:
    """The barriers within groups, and what stands before each."""
    found: list[str] = []
    last = "the start"
    for item in kernel.linearization or ():
        if isinstance(item, RunInstruction):
            last = f"`{item.insn_id}`"
        elif isinstance(item, ScheduledBarrier) and item.synchronization_kind == "local":
            found.append(f"barrier {len(found)}, after {last} ({item.comment})")
    return found


def linear(kernel: lp.LoopKernel, without: int | None) -> list[Node]:
    """The loops and barriers of a linearised kernel."""
    root: list[Node] = []
    stack = [root]
    barriers = 0
    for item in kernel.linearization or ():
        if isinstance(item, EnterLoop):
            loop = Loop(item.iname, tag_of(kernel, item.iname))
            stack[-1].append(loop)
            stack.append(loop.body)
        elif isinstance(item, CallKernel):
            launch = Launch(item.kernel_name)
            stack[-1].append(launch)
            stack.append(launch.body)
        elif isinstance(item, LeaveLoop | ReturnFromKernel):
            stack.pop()
        elif isinstance(item, ScheduledBarrier):
            if item.synchronization_kind == "local":
                if barriers != without:
                    stack[-1].append(Barrier(barriers))
                barriers += 1
        elif isinstance(item, RunInstruction):
            insn = kernel.id_to_insn[item.insn_id]
            if not isinstance(insn, NoOpInstruction | BarrierInstruction):
                stack[-1].append(Statement(insn))
    return root


def pruned(nodes: list[Node]) -> list[Node]:
    """Without loops and launches that run nothing."""
    kept: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop | Launch | Turn):
            body = pruned(node.body)
            if any(True for _ in statements(body)):
                kept.append(replace(node, body=body))
        else:
            kept.append(node)
    return kept


def unlaunched(nodes: list[Node]) -> list[Node]:
    """The nodes in one launch."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Launch):
            found += unlaunched(node.body)
        else:
            found.append(replace(node, body=unlaunched(node.body)) if isinstance(node, Loop) else node)
    return found


def walk(nodes: list[Node]) -> Iterator[Node]:
    """All nodes."""
    for node in nodes:
        yield node
        if not isinstance(node, Statement | Barrier):
            yield from walk(node.body)


def statements(nodes: list[Node]) -> Iterator[Statement]:
    """All statements, in order."""
    for node in nodes:
        if isinstance(node, Statement):
            yield node
        elif not isinstance(node, Barrier):
            yield from statements(node.body)


class Nest:
    """Adds the loops over work-groups and work-items around runs of neighbours that share them."""

    def __init__(self, kernel: lp.LoopKernel, by_barriers: bool = False) -> None:
        self.kernel = kernel
        #: Whether only barriers part the loops over work-items, instead of other inames.
        self.by_barriers = by_barriers
        self.axes = {name: tag_of(kernel, name) or "" for name in kernel.all_inames()}
        self.same = aliases(kernel)
        self.idle = redundant(kernel, self.axes)
        self.sections = 0

    def launches(self, nodes: list[Node]) -> list[Node]:
        """The launches and the host's loops around; a kernel of one launch is that launch.

        Where nothing runs concurrently, everything is in one launch, and may keep private values.
        """
        if not is_scheduled(self.kernel):
            nodes = unlaunched(nodes)
        if len(nodes) == 1 and isinstance(nodes[0], Launch):
            return self.wrapped(nodes[0].body, frozenset())
        if not any(isinstance(node, Launch) for node in nodes) and not any(map(self.has_launch, nodes)):
            return self.wrapped(nodes, frozenset())
        return [self.host(node) for node in nodes if not isinstance(node, Barrier)]

    def has_launch(self, node: Node) -> bool:
        return isinstance(node, Launch) or (isinstance(node, Loop) and any(map(self.has_launch, node.body)))

    def host(self, node: Node) -> Node:
        if isinstance(node, Launch):
            return replace(node, body=self.wrapped(node.body, frozenset()))
        if isinstance(node, Loop):
            return replace(node, body=[self.host(child) for child in node.body if not isinstance(child, Barrier)])
        return node

    def axes_of(self, node: Node) -> frozenset[str]:
        """The inames on axes that everything below a node has."""
        if isinstance(node, Statement):
            inames = node.insn.within_inames - self.idle[node.insn.id]
            on_axes = (name for name in inames if self.axes[name][:2] in ("g.", "l."))
            return frozenset(self.same.get(name, name) for name in on_axes)
        if isinstance(node, Barrier):
            return frozenset()
        below = [self.axes_of(child) for child in node.body if not isinstance(child, Barrier)]
        return frozenset.intersection(*below)

    def parted(self, nodes: list[Node]) -> list[Node]:
        """The nodes of a group in loops over work-items, which only barriers part."""
        found: list[Node] = []
        run: list[Node] = []

        def close() -> None:
            if run:
                self.sections += 1
                found.append(Items(list(run), self.sections))
                run.clear()

        for node in nodes:
            if not has_barrier(node):
                run.append(node)
                continue
            close()
            if isinstance(node, Loop | Turn):
                found.append(replace(node, body=self.parted(node.body)))
        close()
        return found

    def wrapped(self, nodes: list[Node], active: frozenset[str]) -> list[Node]:
        """The nodes in the loops that they share; groups are outermost, and go across barriers."""
        if self.by_barriers and not any(self.groups(node) - active for node in nodes):
            return self.parted(nodes)
        found: list[Node] = []
        at = 0
        while at < len(nodes):
            node = nodes[at]
            if isinstance(node, Barrier):
                at += 1
                continue
            shared = self.shared(node, active)
            is_group = any(self.axes[name].startswith("g.") for name in shared)
            end = at + 1
            while end < len(nodes):
                if isinstance(nodes[end], Barrier):
                    if not is_group:
                        break
                else:
                    both = shared & self.shared(nodes[end], active)
                    if not both:
                        break
                    shared = both
                end += 1
            if shared and not (self.by_barriers and not is_group):
                found.append(self.opened(shared, nodes[at:end], active))
                at = end
                continue
            if isinstance(node, Loop | Launch | Turn):
                node = replace(node, body=self.wrapped(node.body, active))
            found.append(node)
            at += 1
        return found

    def groups(self, node: Node) -> frozenset[str]:
        """The inames over groups that everything below a node has."""
        if isinstance(node, Barrier):
            return frozenset()
        return frozenset(name for name in self.axes_of(node) if self.axes[name].startswith("g."))

    def shared(self, node: Node, active: frozenset[str]) -> frozenset[str]:
        """The loops to open around a node: those over groups first."""
        missing = self.axes_of(node) - active
        return (self.groups(node) - active) or missing

    def opened(self, inames: frozenset[str], nodes: list[Node], active: frozenset[str]) -> Loop:
        """The loops around the nodes, axis 0 innermost."""
        self.sections += 1
        section = self.sections
        body = self.wrapped(nodes, active | inames)
        for iname in sorted(inames, key=lambda name: (self.axes[name], name)):
            tag = self.axes[iname]
            # between barriers it is the work-items of one group that may clash
            body = [Loop(iname, None if self.by_barriers else tag, body, section)]
        loop = body[0]
        assert isinstance(loop, Loop)
        return loop
