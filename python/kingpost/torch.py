"""Forms as functions of PyTorch: under autograd and ``torch.compile``, with derivatives that are forms.

    >>> import kingpost.torch
    >>> residual = kingpost.torch.function(form, names={u: "u", kappa: "kappa"})
    >>> y = residual(u=u, kappa=3.0, x=x, x_dofs=cells, p2_dofs=dofs)  # a new tensor

One operator of ``torch.library`` runs all forms; its gradient is the adjoint that UFL derives, which is one of the
same operator, so that gradients of any order are. Kernels run on the current stream of the tensors. Needs PyTorch
2.4 or newer, fenics-ufl and fenics-basix.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from kingpost import gradients, implicit
from kingpost.gradients import Function, Key
from kingpost.implicit import Problem

__all__ = ["FormFunction", "Solver", "function"]

_functions: list[Function] = []
_lock = threading.Lock()


def _number(function: Function) -> int:
    """The number by which the operator knows a form. It is kept: compiled functions of PyTorch may hold it."""
    with _lock:
        if function not in _functions:
            _functions.append(function)
        return _functions.index(function)


class FormFunction(implicit.FormFunction):
    """A form as a function: it takes tensors by name, as :class:`kingpost.Operator` does, and returns a new one.

    A functional gives a number, a linear form a vector of its space, a bilinear form the matrices of cells or, with
    ``matrix="sparse"`` and ``pattern=``, the entries of a sparse matrix. Constants are tensors or numbers. ``y=`` is
    what the result is added to; it says the size where no coefficient is of the space of the result.
    """

    def __init__(self, form: Any, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> None:
        super().__init__(form, names, matrix)
        self._place = _number(self.function)

    def __call__(self, *, y: Any = None, pattern: Any = None, **given: Any) -> Tensor:
        """The result for these tensors."""
        flat = self._flat(given, pattern)
        shape = self._shape(flat, y, pattern)
        keys = json.dumps(list(flat))
        result = torch.ops.kingpost.form(list(flat.values()), self._place, keys, list(shape))
        result = result if y is None else result + y.reshape(shape)
        return result[0] if self.function.rank == 0 else result

    def _solver(self, problem: Problem) -> Solver:
        return Solver(self, problem)

    def _array(self, value: Any, like: Any = None) -> Tensor:
        if like is None:
            return torch.as_tensor(value)
        return torch.as_tensor(value, dtype=like.dtype, device=like.device)

    def _zeros(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_zeros(shape, dtype=torch.int32)


def function(form: Any, *, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> FormFunction:
    """A form of UFL as a function of PyTorch; ``names`` are those of coefficients and constants, as for
    :func:`kingpost.jit`, and ``matrix`` is what a bilinear form becomes: ``cells`` or ``sparse``."""
    return FormFunction(form, names, matrix)


def _keys(text: str) -> list[Key]:
    return [(part, name) for part, name in json.loads(text)]


@torch.library.custom_op("kingpost::form", mutates_args=())
def _form(values: Sequence[Tensor], place: int, keys: str, shape: Sequence[int]) -> Tensor:
    given = dict(zip(_keys(keys), values))
    x = given["", "x"]
    operator = _functions[place].operator(_device(x), gradients.scalar_of(x))
    taken = {key: given[key].detach().contiguous() for key in gradients.wanted(operator, given)}
    result = x.new_zeros(list(shape))
    gradients.add(operator, taken, result)
    return result


def _device(x: Tensor) -> str:
    return "c" if x.device.type == "cpu" else str(x.device)


@_form.register_fake
def _fake(values: Sequence[Tensor], place: int, keys: str, shape: Sequence[int]) -> Tensor:
    positions = next(value for key, value in zip(_keys(keys), values) if key == ("", "x"))
    return positions.new_empty(list(shape))


def _setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    values, ctx.place, ctx.keys, _ = inputs
    ctx.save_for_backward(*values)


def _products(of: Optional[Function], keys: list[Key], values: Sequence[Tensor], name: str, weights: Tensor) -> Tensor:
    """The gradient by a coefficient of the products of a form's result with weights."""
    like = next(value for key, value in zip(keys, values) if key == ("", name))
    derived = of and of.adjoint(name)
    if not derived:
        return torch.zeros_like(like)
    adjoint, title = derived
    own = json.dumps([*keys, ("", title)])
    return torch.ops.kingpost.form([*values, weights.contiguous()], _number(adjoint), own, list(like.shape))


def _backward(ctx: Any, weights: Tensor) -> tuple:
    values, keys, of = ctx.saved_tensors, _keys(ctx.keys), _functions[ctx.place]
    found = [
        _products(of, keys, values, name, weights) if value.requires_grad else None
        for (_, name), value in zip(keys, values)
    ]
    return found, None, None, None


_form.register_autograd(_backward, setup_context=_setup)


class Solver:
    """The root of a residual, as a function of what the residual takes; :meth:`FormFunction.solver` makes it."""

    def __init__(self, residual: FormFunction, problem: Problem) -> None:
        self._residual = residual
        self._problem = problem

    def __call__(self, *, y: Any = None, fixed: Any = (), **given: Any) -> Tensor:
        """The root ``u`` of ``residual(u) + y``, a new tensor.

        The unknown is given as the start. Its values at the numbers ``fixed`` stay as they are: the root is a
        function of them, and of the start no further.
        """
        flat = self._residual._flat(given, None)
        start = self._problem.start_of(flat)
        y = torch.zeros_like(start) if y is None else self._residual._array(y, start).reshape(start.shape)
        # the unknown last, whose value in the forms is the root's
        del flat["", self._problem.unknown]
        keys = [*flat, ("", self._problem.unknown)]
        kept = torch.as_tensor(fixed, device=start.device)
        return _Root.apply(_System(self._problem, keys, kept), y, start, *flat.values())


class _System(NamedTuple):
    """What the derivatives of a root share: the keys are those of the values, the last one that of the unknown."""

    problem: Problem
    keys: list[Key]
    fixed: Tensor

    def given(self, values: Sequence[Tensor]) -> dict[Key, Tensor]:
        return {key: value.detach().contiguous() for key, value in zip(self.keys, values)}

    def parts(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """A vector where unknowns are free, and where they are fixed, with zeros elsewhere."""
        kept = torch.zeros(value.numel(), dtype=torch.bool, device=value.device)
        kept[self.fixed.long()] = True
        kept = kept.reshape(value.shape)
        return value.masked_fill(kept, 0.0), value.masked_fill(~kept, 0.0)


class _Root(torch.autograd.Function):
    """The root, with the gradient by the adjoint system."""

    @staticmethod
    def forward(ctx: Any, system: _System, y: Tensor, start: Tensor, *values: Tensor) -> Tensor:
        given = system.given([*values, start])
        root = system.problem.root(given, y.detach(), system.fixed, _device(given["", "x"]))
        ctx.system = system
        ctx.save_for_backward(root, *values)
        return root

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple:
        system, (root, *values) = ctx.system, ctx.saved_tensors
        values, of = [*values, root], system.problem.function
        adjoint = _Linear.apply(system, True, weights.contiguous(), *values)
        free, at_fixed = system.parts(adjoint)
        by = lambda name: -_products(of, system.keys, values, name, free)  # noqa: E731
        of_y, of_start, *needed = ctx.needs_input_grad[1:]
        found = [by(name) if need else None for (_, name), need in zip(system.keys, needed)]
        of_fixed = at_fixed + system.parts(by(system.problem.unknown))[1] if of_start else None
        return None, -free if of_y else None, of_fixed, *found


class _Linear(torch.autograd.Function):
    """The solution of a system with the Jacobian matrix or its transpose."""

    @staticmethod
    def forward(ctx: Any, system: _System, transposed: bool, right: Tensor, *values: Tensor) -> Tensor:
        given = system.given(values)
        found = system.problem.linear(given, right.detach(), system.fixed, _device(given["", "x"]), transposed)
        ctx.system, ctx.transposed = system, transposed
        ctx.save_for_backward(found, *values)
        return found

    @staticmethod
    def backward(ctx: Any, weights: Tensor) -> tuple:
        system, (found, *values) = ctx.system, ctx.saved_tensors
        adjoint = _Linear.apply(system, not ctx.transposed, weights.contiguous(), *values)
        # the derivative of the matrix, between the solution and the adjoint one
        left, right = (found, adjoint) if ctx.transposed else (adjoint, found)
        free, direction = system.parts(left)[0], system.parts(right)[0]
        tangent, title = system.problem.function.tangent(system.problem.unknown)
        keys, at = [*system.keys, ("", title)], [*values, direction.contiguous()]
        needed = ctx.needs_input_grad[3:]
        by = [-_products(tangent, keys, at, name, free) if n else None for (_, name), n in zip(system.keys, needed)]
        return None, None, adjoint, *by
