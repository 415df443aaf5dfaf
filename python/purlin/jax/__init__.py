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

from purlin.arrays import _about
from purlin.errors import DtypeError, FormError, MissingArgument, ShapeError, UnknownArgument
from purlin.gradients import SCALARS, Function
from purlin.jax import ffi

__all__ = ["FormFunction", "function"]

Key = tuple[str, str]


class FormFunction:
    """A form as a function: it takes arrays by name, as :class:`purlin.Operator` does, and returns a new one.

    A functional gives a number, a linear form a vector of its space, a bilinear form the matrices of cells or, with
    ``matrix="sparse"`` and ``pattern=``, the entries of a sparse matrix. Constants are arrays or numbers. ``y=`` is
    what the result is added to; it says the size where no coefficient is of the space of the result.
    """

    def __init__(self, form: Any, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> None:
        self._function = Function.of(form, names, "y", matrix)
        if self._function.rank == 2 and matrix not in ("cells", "sparse"):
            raise FormError(f"matrix=`{matrix}`: needed `cells` or `sparse`")

    @property
    def names(self) -> tuple[str, ...]:
        """The coefficients and constants, by which it can be differentiated."""
        return tuple(self._function.names.values())

    def __call__(self, *, y: Any = None, pattern: Any = None, **given: Any) -> jax.Array:
        """The result for these arrays."""
        ffi.register()
        flat = self._flat(given, pattern)
        if ("", "x") not in flat:
            raise _about(MissingArgument, "x", "argument `x` is missing, the positions")
        dtype = flat["", "x"].dtype
        shape = self._shape(flat, y, pattern)
        keys, values = tuple(flat), tuple(flat.values())
        result = _primitive.bind(*values, function=self._function, keys=keys, shape=shape, dtype=dtype)
        result = result if y is None else result + jnp.asarray(y).reshape(shape)
        return result[0] if self._function.rank == 0 else result

    def patterns(self, **maps: Any) -> dict[str, Any]:
        """The pattern of the sparse matrix, for ``pattern=``, from maps in host memory: as
        :meth:`purlin.Operator.patterns`. It is computed once, outside functions that JAX compiles."""
        host = {name: _host(value) for name, value in maps.items()}
        return self._function.operator("c", "f64").patterns(**host)

    def _flat(self, given: Mapping[str, Any], pattern: Any) -> dict[Key, Any]:
        """The arrays by part and name; those of constants as functions of one number."""
        flat: dict[Key, Any] = {}
        for name, value in given.items():
            parts = value.items() if isinstance(value, Mapping) else [(None, value)]
            for own, array in parts:
                flat[("", name) if own is None else (name, own)] = jnp.asarray(array)
        numbers = self._function.numbers()
        positions = flat.get(("", "x"))
        for name, shape in numbers.items():
            if ("", name) in flat:
                value = flat["", name]
                if value.size != np.prod(shape):
                    needed = self._function.coefficient(name).ufl_shape
                    raise _about(ShapeError, name, f"argument `{name}` has shape {value.shape}, needed {needed}")
                dtype = value.dtype if positions is None else positions.dtype
                flat["", name] = value.reshape(shape).astype(dtype)
        cells = flat.get(("", "x_dofs"))
        if cells is None:
            raise _about(MissingArgument, "x_dofs", "argument `x_dofs` is missing, the map of the positions")
        for one in (*self._function.maps_of_numbers(), "real_dofs", "real_weight_dofs"):
            flat.setdefault(("", one), jnp.zeros((cells.shape[0], 1), jnp.int32))
        for one in (pattern or {}).values():
            for part, (name, places) in one.positions.items():
                flat[part, name] = jnp.asarray(places)
        return flat

    def _shape(self, flat: dict[Key, Any], y: Any, pattern: Any) -> tuple[int, ...]:
        function = self._function
        if function.rank == 0:
            return (1,)
        if function.rank == 2:
            return self._shape_of_matrix(flat, pattern)
        if y is not None:
            return tuple(jnp.shape(y))
        own = function.map_of(function.output)
        same = [name for name in function.names.values() if function.map_of(name) == own and ("", name) in flat]
        if not same:
            message = "argument `y` is missing: no coefficient is of the space of the result; give zeros of its shape"
            raise _about(MissingArgument, "y", message)
        return flat["", same[0]].shape

    def _shape_of_matrix(self, flat: dict[Key, Any], pattern: Any) -> tuple[int, ...]:
        operator = self._function.operator("c", SCALARS[flat["", "x"].dtype.name])
        if self._function.matrix == "sparse":
            if not pattern:
                raise _about(MissingArgument, "pattern", "argument `pattern` is missing: that of `patterns(...)`")
            return next(iter(pattern.values())).indices.shape
        if len(operator.parts) > 1:
            raise FormError("the matrices of cells and facets: found several kinds, needed one; use matrix=`sparse`")
        (part,) = operator.parts
        (result,) = (a for a in part.compiled.arguments if a.is_written)
        listed = next((a.name for a in part.compiled.arguments if a.name in ("listed_cells", "facet_cells")), "x_dofs")
        entities = flat[part.name, listed] if (part.name, listed) in flat else flat["", listed]
        return (entities.shape[0], *map(int, result.shape[1:]))


def function(form: Any, *, names: Optional[Mapping[Any, str]] = None, matrix: str = "cells") -> FormFunction:
    """A form of UFL as a function of JAX; ``names`` are those of coefficients and constants, as for
    :func:`purlin.jit`, and ``matrix`` is what a bilinear form becomes: ``cells`` or ``sparse``."""
    return FormFunction(form, names, matrix)


def _host(value: Any) -> Any:
    return {k: _host(v) for k, v in value.items()} if isinstance(value, Mapping) else np.asarray(value)


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
    if np.dtype(dtype).name not in SCALARS:
        raise _about(DtypeError, "x", f"argument `x` has elements of type {dtype}, needed float64 or float32")
    operator = function.operator(device, SCALARS[np.dtype(dtype).name])
    wanted = _wanted(operator, dict(zip(keys, values)))
    arrays = [value for key, value in zip(keys, values) if key in wanted]
    launch = ffi.Launch(operator, tuple(key for key in keys if key in wanted))
    call = jax.ffi.ffi_call(
        ffi.TARGET, jax.ShapeDtypeStruct(shape, dtype), input_output_aliases={len(arrays): 0}
    )
    # a call adds to the result
    return call(*arrays, jnp.zeros(shape, dtype), launch=np.int64(ffi.number(launch)))


def _wanted(operator: Any, given: dict[Key, Any]) -> set[Key]:
    """The arrays that an operator takes, checked against its arguments."""
    wanted = set()
    for part in operator.parts:
        for argument in part.compiled.arguments:
            if argument.kind != "array" or argument.is_written:
                continue
            name = argument.name
            key = (part.name, name) if (part.name, name) in given else ("", name)
            if key not in given:
                raise _about(MissingArgument, name, f"argument `{name}` is missing: {argument}")
            found = {"float64": "f64", "float32": "f32", "int32": "i32"}.get(given[key].dtype.name)
            if found != argument.dtype:
                message = f"argument `{name}` has elements of type {given[key].dtype}, needed {argument.dtype}"
                raise _about(DtypeError, name, message)
            wanted.add(key)
    return wanted


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
