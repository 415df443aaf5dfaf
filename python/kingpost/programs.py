"""Programs made of whole ones, and what programs do, as formulas.

These are no steps of a schedule, because callers see the difference: the result has other arguments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Union

from kingpost import _kingpost
from kingpost._kingpost import CountFormula, Kernel


@dataclass(frozen=True)
class Fused:
    """Kernels in a row as one, and which names of each became others."""

    kernel: Kernel
    names: tuple[dict[str, str], ...]


def _kernel(kernel: Union[Kernel, str]) -> Kernel:
    return Kernel.parse(kernel) if isinstance(kernel, str) else kernel


def fuse_kernels(kernels: Iterable[Union[Kernel, str]], name: Optional[str] = None) -> Fused:
    """Makes one kernel of several that run one after the other, each in launches of its own.

    Parameters and arguments of one name are one; other names that are taken get a number. The steps
    ``fuse_launches`` and ``fuse_loops`` go on from here.

    >>> import kingpost
    >>> twice = "kernel twice\\narg a: f64[4] in\\narg b: f64[4] out\\n\\nfor i in 0..4\\n  s: b[i] = 2.0*a[i]\\n"
    >>> add = "kernel add\\narg b: f64[4] in\\narg c: f64[4] inout\\n\\nfor i in 0..4\\n  s: c[i] += b[i]\\n"
    >>> fused = kingpost.fuse_kernels([twice, add], "both")
    >>> fused.names
    ({}, {'i': 'i_1', 's': 's_1'})
    >>> s = kingpost.Schedule(fused.kernel)
    >>> s.fuse_launches(["twice", "add"])
    ()
    >>> s.fuse("i", "i_1")
    ()
    >>> s.kernel.loops
    ['i']
    """
    first, *rest = map(_kernel, kernels)
    fused = first
    names: list[dict[str, str]] = [{}]
    for kernel in rest:
        fused, before, own = _kingpost.fuse_kernels(fused, kernel, name or first.name)
        # a name that was changed before may change again
        moved = [{old: before.get(new, new) for old, new in one.items()} for one in names]
        kept = [{old: new for old, new in before.items() if old not in one.values()} for one in names]
        names = [{**late, **early} for early, late in zip(moved, kept)] + [dict(own)]
    return Fused(fused, tuple(names))


def to_batched(
    kernel: Union[Kernel, str], batches: Union[int, str], arguments: Iterable[str], iname: str = "batch"
) -> Kernel:
    """The kernel once for each of many data: these arguments get an axis in front.

    ``batches`` is their number, or a parameter's name. The loop ``iname`` over them stands around
    everything. All arguments that are written need the axis.
    """
    return _kingpost.to_batched(_kernel(kernel), batches, list(arguments), iname)


def rename_arguments(kernel: Union[Kernel, str], names: Mapping[str, str]) -> Kernel:
    """The kernel with other names of parameters and arguments, all at once."""
    return _kingpost.rename_arguments(_kernel(kernel), dict(names))


def remove_unused_arguments(kernel: Union[Kernel, str]) -> tuple[Kernel, list[str]]:
    """The kernel without the parameters and arguments that nothing mentions, and their names."""
    return _kingpost.remove_unused_arguments(_kernel(kernel))


@dataclass(frozen=True)
class Statistics:
    """What a kernel does, as formulas in its parameters: each is called with values of them.

    A formula is a sum of polynomials in parameters and in quotients of them that are rounded down.
    ``[n >= 2]*(n - 2)`` counts where the condition holds. Where no closed form was found,
    ``formula.reason`` says why; ``formula.exact`` is false for an upper bound.
    """

    #: Operations on reals.
    flops: CountFormula
    #: Operations by kind and type: ``operations["mul", "f64"]``.
    operations: dict[tuple[str, str], CountFormula]
    #: How often each statement runs.
    instances: dict[str, CountFormula]
    #: Reads of each array.
    reads: dict[str, CountFormula]
    #: Writes of each array.
    writes: dict[str, CountFormula]
    #: Launches of the host.
    launches: CountFormula
    #: Barriers of CUDA code at which the work-items of a group wait, of all work-groups together.
    barriers: CountFormula
    #: The same of sub-groups.
    sub_group_barriers: CountFormula


def statistics(kernel: Union[Kernel, str]) -> Statistics:
    """Operations, instances and accesses of a kernel as formulas in its parameters.

    >>> import kingpost
    >>> stats = kingpost.statistics('''
    ... kernel triangle
    ... param n: i32
    ... arg y: f64[n] inout
    ...
    ... for i in 0..n
    ...   for j in 0..i
    ...     s: y[i] += y[j]
    ... ''')
    >>> print(stats.flops)
    n*(n - 1)/2
    >>> stats.flops(n=1000)
    499500
    """
    flops, operations, instances, reads, writes, waits = _kingpost.statistics(_kernel(kernel))
    by_kind = {(kind, dtype): count for kind, dtype, count in operations}
    return Statistics(flops, by_kind, instances, reads, writes, *waits)
