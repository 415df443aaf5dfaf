"""Forms as functions of JAX: under ``jit``, ``vmap`` and ``grad``, with derivatives that are forms.

    >>> import kingpost.jax
    >>> residual = kingpost.jax.function(form, names={u: "u", kappa: "kappa"})
    >>> y = residual(u=u, kappa=3.0, x=x, x_dofs=cells, p2_dofs=dofs)  # a new array

A derivative by a coefficient or a constant, of any order, is UFL's: a form that is compiled when it is first
needed. Derivatives by positions are refused. Needs JAX 0.6 or newer, fenics-ufl and fenics-basix.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Optional

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from kingpost import gradients, implicit
from kingpost.errors import Refusal
from kingpost.gradients import Function, Key
from kingpost.implicit import Problem
from kingpost.jax import ffi
from kingpost.jax.roots import Solver

__all__ = ["FormFunction", "Solver", "function"]


class FormFunction(implicit.FormFunction):
    """A form as a function: it takes arrays by name, as :class:`kingpost.Operator` does, and returns a new one.

    A functional gives a number, a linear form a vector of its space, a bilinear form the matrices of cells or, with
    ``matrix="sparse"`` and ``pattern=``, the entries of a sparse matrix. Constants are arrays or numbers. ``y=`` is
    what the result is added to; it says the size where no coefficient is of the space of the result.
    """

    def __call__(self, *, y: Any = None, pattern: Any = None, **given: Any) -> jax.Array:
        """The result for these arrays."""
        ffi.register()
        flat = self._flat(given, pattern)
        shape = self._shape(flat, y, pattern)
        keys, values = tuple(flat), tuple(flat.values())
        dtype = flat["", "x"].dtype
        result = _primitive.bind(*values, function=self.function, keys=keys, shape=shape, dtype=dtype, batched=())
        result = result if y is None else result + jnp.asarray(y).reshape(shape)
        return result[0] if self.function.rank == 0 else result

    def _solver(self, problem: Problem) -> Solver:
        return Solver(self, problem)

    def _array(self, value: Any, like: Any = None) -> jax.Array:
        return jnp.asarray(value, None if like is None else like.dtype)

    def _zeros(self, shape: tuple[int, ...], like: jax.Array) -> jax.Array:
        return jnp.zeros(shape, jnp.int32)


def function(form: Any, *, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> FormFunction:
    """A form of UFL as a function of JAX; ``names`` are those of coefficients and constants, as for
    :func:`kingpost.jit`, and ``matrix`` is what a bilinear form becomes: ``cells`` or ``sparse``."""
    return FormFunction(form, names, matrix)


# its parameters: the form, the keys of its operands, the shape and type of the result, and the keys of the operands
# that have an axis of batches in front; where there are any, the result has one, too
_primitive = Primitive("kingpost_form")


@_primitive.def_abstract_eval
def _abstract(*values: Any, shape: tuple[int, ...], dtype: Any, **rest: Any) -> Any:
    return jax.core.ShapedArray(shape, dtype)


@lru_cache(maxsize=512)
def _compiled(params: tuple) -> Any:
    return jax.jit(lambda *values: _primitive.bind(*values, **dict(params)))


@_primitive.def_impl
def _eager(*values: Any, **params: Any) -> jax.Array:
    return _compiled(tuple(params.items()))(*values)


def _foreign(
    *values: Any, function: Function, keys: tuple[Key, ...], shape: tuple[int, ...], dtype: Any,
    batched: tuple[Key, ...], device: str,
) -> jax.Array:  # fmt: skip
    """The call that XLA makes on one of its platforms."""
    given = dict(zip(keys, values))
    scalar = gradients.scalar_of(given["", "x"])
    try:
        operator = function.operator(device, scalar, tuple(name for _, name in batched))
    except Refusal:  # the kernel has no batches
        one = partial(_foreign, function=function, keys=keys, shape=shape[1:], dtype=dtype, batched=(), device=device)
        moving = {key: given[key] for key in batched}
        return jax.lax.map(lambda own: one(*(given | own).values()), moving)
    wanted = gradients.wanted(operator, given)
    arrays = [value for key, value in given.items() if key in wanted]
    launch = ffi.Launch(operator, tuple(key for key in keys if key in wanted))
    call = jax.ffi.ffi_call(
        ffi.TARGET, jax.ShapeDtypeStruct(shape, dtype), input_output_aliases={len(arrays): 0}
    )
    # a call adds to the result
    return call(*arrays, jnp.zeros(shape, dtype), launch=np.int64(ffi.number(launch)))


def _with(batched: tuple[Key, ...], like: str, name: str) -> tuple[Key, ...]:
    """The keys of batches, with that of a name where another one has them."""
    return (*batched, ("", name)) if ("", like) in batched else batched


def _jvp(
    primals: tuple, tangents: tuple, *, function: Function, keys: tuple[Key, ...], batched: tuple[Key, ...], **rest: Any
) -> tuple:
    result = _primitive.bind(*primals, function=function, keys=keys, batched=batched, **rest)
    total = None
    for (_, name), tangent in zip(keys, tangents):
        if isinstance(tangent, ad.Zero) or tangent.dtype == jax.dtypes.float0:
            continue
        if (derived := function.tangent(name)) is None:
            continue
        of, direction = derived
        own = (*keys, ("", direction))
        term = _primitive.bind(
            *primals, tangent, function=of, keys=own, batched=_with(batched, name, direction), **rest
        )
        total = term if total is None else total + term
    return result, ad.Zero(jax.typeof(result).to_tangent_aval()) if total is None else total


def _transpose(
    weights: Any, *values: Any, function: Function, keys: tuple[Key, ...], shape: tuple[int, ...], dtype: Any,
    batched: tuple[Key, ...],
) -> list:  # fmt: skip
    """The products with weights as a function of what the form is linear in, which is not known."""
    known = [(key, value) for key, value in zip(keys, values) if not ad.is_undefined_primal(value)]
    left = [key for key, _ in known]
    found: list[Any] = []
    for key, value in zip(keys, values):
        if not ad.is_undefined_primal(value):
            found.append(None)
        elif isinstance(weights, ad.Zero) or (derived := function.adjoint(key[1])) is None:
            found.append(ad.Zero(value.aval))
        else:
            of, title = derived
            operands = (*(array for _, array in known), weights)
            own, size = (*left, ("", title)), value.aval.shape
            if not batched:
                found.append(_primitive.bind(*operands, function=of, keys=own, shape=size, dtype=dtype, batched=()))
                continue
            # the weights are as many as the results
            moving = (*(one for one in batched if one in left), ("", title))
            shape_of_all = size if key in batched else (shape[0], *size)
            product = _primitive.bind(
                *operands, function=of, keys=own, shape=shape_of_all, dtype=dtype, batched=moving
            )
            found.append(product if key in batched else product.sum(axis=0))
    return found


def _batch(
    values: tuple, axes: tuple, *, keys: tuple[Key, ...], shape: tuple[int, ...], batched: tuple[Key, ...], **rest: Any
) -> tuple:
    """One launch for all batches of numbers; of maps, and of what one part alone takes, one after the other."""
    in_front = [value if axis is None else jnp.moveaxis(value, axis, 0) for value, axis in zip(values, axes)]
    mapped = tuple(key for key, axis in zip(keys, axes) if axis is not None)
    given = dict(zip(keys, in_front))
    size = given[mapped[0]].shape[0]
    bind = partial(_primitive.bind, keys=keys, **rest)
    if any(part or not jnp.issubdtype(given[part, name].dtype, jnp.floating) for part, name in mapped):
        one = partial(bind, shape=shape, batched=batched)
        return jax.lax.map(lambda own: one(*(given | own).values()), {key: given[key] for key in mapped}), 0
    if not batched:
        return bind(*in_front, shape=(size, *shape), batched=mapped), 0

    # batches of batches are one axis
    def merged(key: Key) -> jax.Array:
        value = given[key]
        if key not in mapped and key not in batched:
            return value
        value = value if key in mapped else jnp.broadcast_to(value, (size, *value.shape))
        value = value if key in batched else jnp.repeat(value[:, None], shape[0], axis=1)
        return value.reshape(size * shape[0], *value.shape[2:])

    both = tuple(key for key in keys if key in mapped or key in batched)
    result = bind(*map(merged, keys), shape=(size * shape[0], *shape[1:]), batched=both)
    return result.reshape(size, *shape), 0


ad.primitive_jvps[_primitive] = _jvp
ad.primitive_transposes[_primitive] = _transpose
batching.primitive_batchers[_primitive] = _batch
for _platform, _device in ffi.PLATFORMS.items():
    _rule = mlir.lower_fun(partial(_foreign, device={"cpu": "c"}.get(_device, _device)), multiple_results=False)
    mlir.register_lowering(_primitive, _rule, platform="cpu" if _device == "cpu" else "cuda")
