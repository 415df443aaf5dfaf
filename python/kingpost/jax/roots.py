"""Roots of forms under JAX's transformations: what is not the solution of a system is a form, so that derivatives of
any order are."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from kingpost import gradients
from kingpost.gradients import Key
from kingpost.implicit import Problem, nested


class Given(NamedTuple):
    """What a root is a function of."""

    start: jax.Array
    y: jax.Array
    fixed: jax.Array
    rest: dict[Key, jax.Array]


class Solver:
    """The root of a residual, as a function of what the residual takes; :meth:`kingpost.jax.FormFunction.solver`
    makes it."""

    def __init__(self, residual: Any, problem: Problem) -> None:
        self._residual = residual
        self._problem = problem

    def __call__(self, *, y: Any = None, fixed: Any = (), **given: Any) -> jax.Array:
        """The root ``u`` of ``residual(u) + y``, a new array.

        The unknown is given as the start. Its values at the numbers ``fixed`` stay as they are: the root is a
        function of them, and of the start no further.
        """
        rest = self._residual._flat(given, None)
        start = self._problem.start_of(rest)
        del rest["", self._problem.unknown]
        y = jnp.zeros_like(start) if y is None else jnp.asarray(y, start.dtype).reshape(start.shape)
        kept = jnp.asarray(fixed) if len(fixed) else jnp.zeros(0, jnp.int32)
        return _root(self, Given(start, y, kept, rest))

    def remainder(self, u: jax.Array, given: Given) -> jax.Array:
        """What the root is a zero of: the residual, and the difference from the start where unknowns are fixed."""
        is_fixed = jnp.zeros(u.size, bool).at[given.fixed].set(True).reshape(u.shape)
        at = {**given.rest, ("", self._problem.unknown): jnp.where(is_fixed, given.start, u)}
        return jnp.where(is_fixed, u - given.start, self._residual(**nested(at)) + given.y)

    def on_host(self, work: Any, u: jax.Array, given: Given, *more: jax.Array) -> jax.Array:
        """What a method of the problem returns of arrays of NumPy."""

        def call(u: Any, given: Given, *more: Any) -> Any:
            u, given, more = jax.tree.map(np.asarray, (u, given, more))
            return work({**given.rest, ("", self._problem.unknown): u}, given, *more)

        like = jax.ShapeDtypeStruct(u.shape, u.dtype)
        return jax.pure_callback(call, like, u, given, *more, vmap_method="sequential")


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _root(solver: Solver, given: Given) -> jax.Array:
    work = lambda arrays, given: solver._problem.root(arrays, given.y, given.fixed, "c")  # noqa: E731
    return solver.on_host(work, given.start, given)


@partial(_root.defjvp, symbolic_zeros=True)
def _jvp(solver: Solver, primals: tuple, tangents: tuple) -> tuple:
    (given,) = primals
    u = _root(solver, given)
    leaves, tree = jax.tree.flatten(given)
    dots = dict(enumerate(jax.tree.leaves(tangents)))
    # what is not moved is not differentiated by, such as positions
    moved = [k for k, dot in dots.items() if not isinstance(dot, SymbolicZero)]

    def of(values: list[jax.Array]) -> jax.Array:
        now = dict(zip(moved, values))
        return solver.remainder(u, jax.tree.unflatten(tree, [now.get(k, leaf) for k, leaf in enumerate(leaves)]))

    _, right = jax.jvp(of, ([leaves[k] for k in moved],), ([dots[k] for k in moved],))

    def apply(direction: jax.Array) -> jax.Array:
        return jax.jvp(lambda u: solver.remainder(u, given), (u,), (direction,))[1]

    def solved(transposed: bool, _: Any, right: jax.Array) -> jax.Array:
        def work(arrays: Any, given: Given, right: Any) -> Any:
            return solver._problem.linear(arrays, right, given.fixed, "c", transposed)

        return solver.on_host(work, u, given, right)

    found = jax.lax.custom_linear_solve(apply, -right, partial(solved, False), partial(solved, True))
    return u, found
