"""Forms as functions of JAX: under ``jit``, ``vmap`` and ``grad``, with derivatives that are forms.

    >>> import purlin.jax
    >>> residual = purlin.jax.function(form, names={u: "u", kappa: "kappa"})
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

from purlin import gradients
from purlin.gradients import Function, Key
from purlin.jax import ffi

__all__ = ["FormFunction", "function"]

class FormFunction(gradients.FormFunction):
    """A form as a function: it takes arrays by name, as :class:`purlin.Operator` does, and returns a new one.

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
        result = _primitive.bind(*values, function=self.function, keys=keys, shape=shape, dtype=dtype)
        result = result if y is None else result + jnp.asarray(y).reshape(shape)
        return result[0] if self.function.rank == 0 else result

    def _array(self, value: Any, like: Any = None) -> jax.Array:
        return jnp.asarray(value, None if like is None else like.dtype)

    def _zeros(self, shape: tuple[int, ...], like: jax.Array) -> jax.Array:
        return jnp.zeros(shape, jnp.int32)


def function(form: Any, *, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> FormFunction:
    """A form of UFL as a function of JAX; ``names`` are those of coefficients and constants, as for
    :func:`purlin.jit`, and ``matrix`` is what a bilinear form becomes: ``cells`` or ``sparse``."""
    return FormFunction(form, names, matrix)


_primitive = Primitive("purlin_form")


@_primitive.def_abstract_eval
def _abstract(*values: Any, function: Function, keys: tuple[Key, ...], shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.core.ShapedArray(shape, dtype)


@lru_cache(maxsize=512)
def _compiled(params: tuple) -> Any:
    return jax.jit(lambda *values: _primitive.bind(*values, **dict(params)))


@_primitive.def_impl
def _eager(*values: Any, **params: Any) -> jax.Array:
    return _compiled(tuple(params.items()))(*values)


def _foreign(
    *values: Any, function: Function, keys: tuple[Key, ...], shape: tuple[int, ...], dtype: Any, device: str
) -> jax.Array:
    """The call that XLA makes on one of its platforms."""
    operator = function.operator(device, gradients.scalar_of(dict(zip(keys, values))["", "x"]))
    wanted = gradients.wanted(operator, dict(zip(keys, values)))
    arrays = [value for key, value in zip(keys, values) if key in wanted]
    launch = ffi.Launch(operator, tuple(key for key in keys if key in wanted))
    call = jax.ffi.ffi_call(
        ffi.TARGET, jax.ShapeDtypeStruct(shape, dtype), input_output_aliases={len(arrays): 0}
    )
    # a call adds to the result
    return call(*arrays, jnp.zeros(shape, dtype), launch=np.int64(ffi.number(launch)))


def _jvp(primals: tuple, tangents: tuple, *, function: Function, keys: tuple[Key, ...], **rest: Any) -> tuple:
    result = _primitive.bind(*primals, function=function, keys=keys, **rest)
    total = None
    for (_, name), tangent in zip(keys, tangents):
        if isinstance(tangent, ad.Zero) or tangent.dtype == jax.dtypes.float0:
            continue
        if (derived := function.tangent(name)) is None:
            continue
        of, direction = derived
        term = _primitive.bind(*primals, tangent, function=of, keys=(*keys, ("", direction)), **rest)
        total = term if total is None else total + term
    return result, ad.Zero.from_primal_value(result) if total is None else total


def _transpose(
    weights: Any, *values: Any, function: Function, keys: tuple[Key, ...], shape: tuple[int, ...], dtype: Any
) -> list:
    """The products with weights as a function of what the form is linear in, which is not known."""
    known = [(key, value) for key, value in zip(keys, values) if not ad.is_undefined_primal(value)]
    found = []
    for (_, name), value in zip(keys, values):
        if not ad.is_undefined_primal(value):
            found.append(None)
        elif isinstance(weights, ad.Zero) or (derived := function.adjoint(name)) is None:
            found.append(ad.Zero(value.aval))
        else:
            of, title = derived
            own = (*(key for key, _ in known), ("", title))
            operands = (*(array for _, array in known), weights)
            found.append(_primitive.bind(*operands, function=of, keys=own, shape=value.aval.shape, dtype=dtype))
    return found


def _batch(values: tuple, axes: tuple, **params: Any) -> tuple:
    """One call after the other."""
    mapped = [jnp.moveaxis(value, axis, 0) for value, axis in zip(values, axes) if axis is not None]

    def one(slices: list) -> jax.Array:
        left = iter(slices)
        whole = [value if axis is None else next(left) for value, axis in zip(values, axes)]
        return _primitive.bind(*whole, **params)

    return jax.lax.map(one, mapped), 0


ad.primitive_jvps[_primitive] = _jvp
ad.primitive_transposes[_primitive] = _transpose
batching.primitive_batchers[_primitive] = _batch
for _platform, _device in ffi.PLATFORMS.items():
    _rule = mlir.lower_fun(partial(_foreign, device={"cpu": "c"}.get(_device, _device)), multiple_results=False)
    mlir.register_lowering(_primitive, _rule, platform="cpu" if _device == "cpu" else "cuda")
