"""Forms as functions of PyTorch: under autograd and ``torch.compile``, with derivatives that are forms.

    >>> import purlin.torch
    >>> residual = purlin.torch.function(form, names={u: "u", kappa: "kappa"})
    >>> y = residual(u=u, kappa=3.0, x=x, x_dofs=cells, p2_dofs=dofs)  # a new tensor

One operator of ``torch.library`` runs all forms; its gradient is the adjoint that UFL derives, which is one of the
same operator, so that gradients of any order are. Kernels run on the current stream of the tensors. Needs PyTorch
2.4 or newer, fenics-ufl and fenics-basix.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import torch
from torch import Tensor

from purlin import gradients
from purlin.gradients import Function, Key

__all__ = ["FormFunction", "function"]

_functions: list[Function] = []
_lock = threading.Lock()


def _number(function: Function) -> int:
    """The number by which the operator knows a form. It is kept: compiled functions of PyTorch may hold it."""
    with _lock:
        if function not in _functions:
            _functions.append(function)
        return _functions.index(function)


class FormFunction(gradients.FormFunction):
    """A form as a function: it takes tensors by name, as :class:`purlin.Operator` does, and returns a new one.

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
        result = torch.ops.purlin.form(list(flat.values()), self._place, keys, list(shape))
        result = result if y is None else result + y.reshape(shape)
        return result[0] if self.function.rank == 0 else result

    def _array(self, value: Any, like: Any = None) -> Tensor:
        if like is None:
            return torch.as_tensor(value)
        return torch.as_tensor(value, dtype=like.dtype, device=like.device)

    def _zeros(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        return like.new_zeros(shape, dtype=torch.int32)


def function(form: Any, *, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> FormFunction:
    """A form of UFL as a function of PyTorch; ``names`` are those of coefficients and constants, as for
    :func:`purlin.jit`, and ``matrix`` is what a bilinear form becomes: ``cells`` or ``sparse``."""
    return FormFunction(form, names, matrix)


def _keys(text: str) -> list[Key]:
    return [(part, name) for part, name in json.loads(text)]


@torch.library.custom_op("purlin::form", mutates_args=())
def _form(values: Sequence[Tensor], place: int, keys: str, shape: Sequence[int]) -> Tensor:
    given = dict(zip(_keys(keys), values))
    x = given["", "x"]
    device = "c" if x.device.type == "cpu" else str(x.device)
    operator = _functions[place].operator(device, gradients.scalar_of(x))
    gradients.wanted(operator, given)
    result = x.new_zeros(list(shape))
    for part in operator.parts:
        arrays = {}
        for argument in part.compiled.arguments:
            name = argument.name
            if argument.kind == "array" and argument.is_written:
                arrays[name] = result
            elif argument.kind == "array":
                array = given[part.name, name] if (part.name, name) in given else given["", name]
                arrays[name] = array.detach().contiguous()
        part.compiled(**arrays)
    return result


@_form.register_fake
def _fake(values: Sequence[Tensor], place: int, keys: str, shape: Sequence[int]) -> Tensor:
    positions = next(value for key, value in zip(_keys(keys), values) if key == ("", "x"))
    return positions.new_empty(list(shape))


def _setup(ctx: Any, inputs: tuple, output: Tensor) -> None:
    values, ctx.place, ctx.keys, _ = inputs
    ctx.save_for_backward(*values)


def _backward(ctx: Any, weights: Tensor) -> tuple:
    values, keys = ctx.saved_tensors, _keys(ctx.keys)
    found: list[Optional[Tensor]] = []
    for (_, name), value in zip(keys, values):
        if not value.requires_grad:
            found.append(None)
            continue
        derived = _functions[ctx.place].adjoint(name)
        if derived is None:
            found.append(torch.zeros_like(value))
            continue
        of, title = derived
        own = json.dumps([*keys, ("", title)])
        found.append(torch.ops.purlin.form([*values, weights.contiguous()], _number(of), own, list(value.shape)))
    return found, None, None, None


_form.register_autograd(_backward, setup_context=_setup)
