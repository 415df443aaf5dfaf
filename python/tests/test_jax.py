"""Forms as functions of JAX: values, derivatives against Taylor's formula, batches, what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="skipped: JAX is not installed (pip install jax)")
ufl = pytest.importorskip("ufl")

import jax.numpy as jnp  # noqa: E402
import kingpost  # noqa: E402
import kingpost.jax  # noqa: E402
from basix.ufl import element, mixed_element  # noqa: E402
from test_operator import numbers_of_edges, square, stiffness  # noqa: E402

jax.config.update("jax_enable_x64", True)

X, CELLS = square(3)
P2_DOFS = numbers_of_edges(CELLS)
BOUNDARY = {"facet_cells": np.array([0, 1, 2, 9], np.int32), "local_facets": np.array([2, 2, 0, 1], np.int32)}
GIVEN = {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS, "p2_dofs": P2_DOFS}


def spaces():
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    return mesh, *(ufl.FunctionSpace(mesh, element("Lagrange", "triangle", k)) for k in (1, 2))


def drawn(size: Any, seed: int) -> Any:
    return jnp.asarray(np.random.default_rng(seed).uniform(0.3, 1.0, size))


def orders(function, point, direction) -> list[float]:
    """The orders in which the remainders of Taylor's formula vanish, without and with the derivative; 2 where
    nothing is left but rounding."""
    value, slope = jax.jvp(function, (point,), (direction,))
    found = []
    for correction in (0.0, 1.0):
        remainders = [
            float(jnp.linalg.norm(function(point + h * direction) - value - correction * h * slope))
            for h in (1e-2, 5e-3, 2.5e-3)
        ]
        rounded = max(remainders) <= 1e-13 * float(jnp.linalg.norm(value))
        found.append(2.0 if rounded else min(np.log2(np.array(remainders[:-1]) / remainders[1:])))
    return found


def check(function, point, seed: int) -> None:
    """Taylor's formula, the adjoint against the derivative, and both once more."""
    direction = drawn(point.shape, seed) - 0.6
    first, second = orders(function, point, direction)
    assert 0.9 < first < 1.6 and 1.9 < second, (first, second)
    value, slope = jax.jvp(function, (point,), (direction,))
    weights = drawn(value.shape, seed + 1)
    (gradient,) = jax.vjp(function, point)[1](weights)
    # sums of some hundred products in f64
    assert np.isclose(jnp.vdot(weights, slope), jnp.vdot(gradient, direction), rtol=1e-11, atol=1e-13)


def nonlinear():
    mesh, p1, p2 = spaces()
    u, k, v = ufl.Coefficient(p2), ufl.Coefficient(p1), ufl.TestFunction(p2)
    c = ufl.Constant(mesh)
    b = ufl.Constant(mesh, shape=(2,))
    form = (c + u**2) * k * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + c * ufl.dot(b, ufl.grad(u)) * v * ufl.dx
    form += c**2 * ufl.exp(k) * u * v * ufl.ds
    return kingpost.jax.function(form, names={u: "u", k: "k", c: "c", b: "b"})


def arguments() -> dict[str, Any]:
    values = {"u": drawn(P2_DOFS.max() + 1, 1), "k": drawn(len(X), 2), "c": jnp.asarray(0.7), "b": drawn(2, 3)}
    return GIVEN | {"exterior_facets": BOUNDARY} | values


def test_a_function_has_the_value_of_the_operator():
    mesh, p1, _ = spaces()
    u, v, c = ufl.Coefficient(p1), ufl.TestFunction(p1), ufl.Constant(mesh)
    f = kingpost.jax.function(c * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, names={u: "u", c: "c"})
    values = drawn(len(X), 4)
    expected = 3 * stiffness(X, CELLS) @ np.asarray(values)
    given = {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS}
    for run in (f, jax.jit(f)):
        assert np.allclose(run(u=values, c=3.0, **given), expected, rtol=0, atol=1e-13)
        assert np.allclose(run(y=jnp.ones(len(X)), u=values, c=3.0, **given), 1 + expected, rtol=0, atol=1e-13)
    assert f.names == ("u", "c")
    single = jax.jit(f)(u=values.astype("float32"), c=3.0, **given | {"x": X.astype("float32")})
    assert single.dtype == "float32"
    assert np.allclose(single, expected, rtol=0, atol=1e-5)  # sums of at most 18 products in f32


@pytest.mark.parametrize("name", ["u", "k", "c", "b"])
def test_derivatives_by_coefficients_and_constants(name: str):
    f, given = nonlinear(), arguments()
    point = given.pop(name)
    check(jax.jit(lambda value: f(**given, **{name: value})), point, 5)


def test_second_derivatives_of_a_functional():
    mesh, p1, p2 = spaces()
    u, c = ufl.Coefficient(p2), ufl.Constant(mesh)
    energy = kingpost.jax.function(
        (ufl.exp(c * u) + ufl.inner(ufl.grad(u), ufl.grad(u)) ** 2) * ufl.dx + c * u**3 * ufl.ds,
        names={u: "u", c: "c"},
    )
    given = {"x": X, "x_dofs": CELLS, "p2_dofs": P2_DOFS, "exterior_facets": BOUNDARY}
    values = drawn(P2_DOFS.max() + 1, 6)
    of_u = lambda value: energy(u=value, c=0.8, **given)  # noqa: E731
    assert of_u(values).shape == ()
    gradient = jax.jit(jax.grad(of_u))
    check(gradient, values, 7)  # the product with the Hessian
    hessian = jax.hessian(of_u)(values)
    assert np.allclose(hessian, hessian.T, rtol=0, atol=1e-12 * float(abs(hessian).max()))
    mixed = jax.jacobian(jax.grad(lambda c: energy(u=values, c=c, **given)))(0.8)
    h = 1e-4
    by_c = jax.grad(lambda c: energy(u=values, c=c, **given))
    # the error of a central difference is of second order
    assert np.isclose(mixed, (by_c(0.8 + h) - by_c(0.8 - h)) / (2 * h), rtol=1e-6)


def calls(function, *arguments) -> tuple[int, int]:
    """How many calls of kernels XLA makes, and how many loops."""
    text = jax.jit(function).lower(*arguments).as_text()
    return text.count("@kingpost_form("), text.count("while")


def test_batches_are_one_launch():
    f, given = nonlinear(), arguments()
    u, k, c = given.pop("u"), given.pop("k"), given.pop("c")
    several, other = drawn((3, len(u)), 8), drawn((len(k), 3), 9)
    of = lambda u, k, c: f(u=u, k=k, c=c, **given)  # noqa: E731
    for axes in ((0, None, None), (0, 1, None), (None, None, 0), (None, 1, 0)):
        operands = [all_ if axis is not None else one for axis, one, all_ in
                    zip(axes, (u, k, c), (several, other, drawn(3, 10)))]  # fmt: skip
        batched = jax.vmap(of, in_axes=axes)
        assert calls(batched, *operands) == (1, 0)
        at = lambda n: [v if a is None else jnp.take(v, n, axis=a) for v, a in zip(operands, axes)]  # noqa: B023, E731
        assert np.allclose(batched(*operands), jnp.stack([of(*at(n)) for n in range(3)]), rtol=1e-14, atol=1e-15)
    # batches of batches are one launch, too
    twice = jax.vmap(jax.vmap(of, in_axes=(0, None, None)), in_axes=(None, 1, None))
    assert calls(twice, several, other, c) == (1, 0)
    expected = jnp.stack([jnp.stack([of(u, k, c) for u in several]) for k in other.T])
    assert np.allclose(twice(several, other, c), expected, rtol=1e-14, atol=1e-15)


def test_derivatives_and_batches_in_either_order():
    f, given = nonlinear(), arguments()
    u, k = given.pop("u"), given.pop("k")
    several = drawn((3, len(u)), 8)
    of = lambda u, k: f(u=u, k=k, **given)  # noqa: E731
    # the columns and the rows of a Jacobian are batches of directions
    forward, backward = jax.jacfwd(of)(u, k), jax.jacrev(of)(u, k)
    assert np.allclose(forward, backward, rtol=0, atol=1e-12)
    assert calls(jax.jacrev(of), u, k) == (1, 0), "the products; nobody asks for the value"
    # the derivative of a batch by what is batched, and by what is not
    check(lambda several: jax.vmap(of, in_axes=(0, None))(several, k), several, 11)
    check(lambda k: jax.vmap(of, in_axes=(0, None))(several, k), k, 12)
    energy = lambda u: of(u, k) @ u  # noqa: E731
    hessian = jax.hessian(energy)(u)
    assert np.allclose(hessian, hessian.T, rtol=0, atol=1e-11 * float(abs(hessian).max()))


def test_batches_of_maps_run_one_after_the_other():
    """A map that is batched would let every batch read another mesh, of which the kernel assumes one."""
    f, given = nonlinear(), arguments()
    maps = jnp.stack([P2_DOFS, P2_DOFS.max() - P2_DOFS])
    given.pop("p2_dofs")
    of = lambda p2_dofs: f(p2_dofs=p2_dofs, **given)  # noqa: E731
    found, loops = calls(jax.vmap(of), maps)
    assert found == 1 and loops >= 1
    assert np.allclose(jax.vmap(of)(maps), jnp.stack([of(one) for one in maps]), rtol=1e-14, atol=1e-15)


def test_vectors_interior_facets_and_mixed_elements():
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    both = ufl.FunctionSpace(
        mesh, mixed_element([element("DG", "triangle", 1, shape=(2,)), element("DG", "triangle", 0)])
    )
    w, v, c = ufl.Coefficient(both), ufl.TestFunction(both), ufl.Constant(mesh)
    (u, p), (t, q) = ufl.split(w), ufl.split(v)
    form = (ufl.inner(ufl.dot(u, u) * u, t) + p**2 * q) * ufl.dx
    form += c * ufl.avg(p) ** 2 * ufl.inner(ufl.jump(u), ufl.jump(t)) * ufl.dS
    f = kingpost.jax.function(form, names={w: "w", c: "c"})
    dofs = np.arange(7 * len(CELLS), dtype=np.int32).reshape(-1, 7)
    sides = {
        "facet_cells": np.array([[0, 9], [1, 10]], np.int32), "local_facets": np.array([[1, 2], [1, 2]], np.int32),
        "facet_states": np.array([[0, 0], [0, 0]], np.int32),
    }  # fmt: skip
    given = {"x": X, "x_dofs": CELLS, "mixed_dofs": dofs, "interior_facets": sides}
    values = drawn(dofs.size, 9)
    check(jax.jit(lambda w: f(w=w, c=0.5, **given)), values, 10)
    check(lambda c: f(w=values, c=c, **given), jnp.asarray(0.5), 11)


@pytest.mark.parametrize("matrix", ["cells", "sparse"])
def test_matrices_and_their_derivative(matrix: str):
    _, p1, _ = spaces()
    k, u, v = ufl.Coefficient(p1), ufl.TrialFunction(p1), ufl.TestFunction(p1)
    f = kingpost.jax.function(k**2 * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, names={k: "k"}, matrix=matrix)
    given: dict[str, Any] = {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS}
    if matrix == "sparse":
        given["pattern"] = f.patterns(p1_dofs=CELLS)
    found = jax.jit(lambda k: f(k=k, **given))(jnp.ones(len(X)))
    if matrix == "sparse":
        (pattern,) = given["pattern"].values()
        rows = np.repeat(np.arange(len(X)), np.diff(pattern.indptr))
        dense = np.zeros((len(X), len(X)))
        np.add.at(dense, (rows, pattern.indices), found)
        assert np.allclose(dense, stiffness(X, CELLS), rtol=0, atol=1e-13)
    else:
        assert found.shape == (len(CELLS), 3, 3)
    _, slope = jax.jvp(lambda k: f(k=k, **given), (jnp.ones(len(X)),), (jnp.ones(len(X)),))
    assert np.allclose(slope, 2 * found, rtol=1e-13, atol=1e-13)
    with pytest.raises(kingpost.FormError, match="the adjoint of a matrix's entries: found a bilinear form"):
        jax.grad(lambda k: f(k=k, **given).sum())(jnp.ones(len(X)))


def test_a_derivative_that_is_zero_is_zeros():
    """Of a coefficient that says which of two values is taken."""
    _, p1, _ = spaces()
    k, v = ufl.Coefficient(p1), ufl.TestFunction(p1)
    f = kingpost.jax.function(ufl.conditional(ufl.gt(k, 0), 1.0, 2.0) * v * ufl.dx, names={k: "k"})
    given = {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS}
    value, slope = jax.jvp(lambda k: f(k=k, **given), (jnp.ones(len(X)),), (jnp.ones(len(X)),))
    assert np.isclose(value.sum(), 1.0) and slope.shape == value.shape and not slope.any()


def test_a_solve_is_differentiated_by_its_adjoint():
    """The derivative of the solution of a linear system by a coefficient, by JAX's rule of linear solves."""
    _, p1, _ = spaces()
    k, u, v = ufl.Coefficient(p1), ufl.Coefficient(p1), ufl.TestFunction(p1)
    f = kingpost.jax.function((k * ufl.inner(ufl.grad(u), ufl.grad(v)) + u * v) * ufl.dx, names={k: "k", u: "u"})
    given = {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS}
    b = drawn(len(X), 12)

    def solution(k):
        apply = partial(lambda k, u: f(k=k, u=u, **given), k)
        return jax.lax.custom_linear_solve(
            apply, b, lambda apply, b: jax.scipy.sparse.linalg.cg(apply, b, tol=1e-14)[0], symmetric=True
        )

    check(jax.jit(solution), drawn(len(X), 13), 14)


def test_what_is_refused_is_named():
    f, given = nonlinear(), arguments()
    with pytest.raises(kingpost.FormError, match="derivative by `x`: found no coefficient or constant of this name"):
        jax.jvp(lambda x: f(**given | {"x": x}), (jnp.asarray(X),), (jnp.asarray(X),))
    with pytest.raises(kingpost.errors.MissingArgument, match="argument `p2_dofs` is missing"):
        f(**{name: value for name, value in given.items() if name != "p2_dofs"})
    with pytest.raises(kingpost.errors.DtypeError, match="argument `k` has elements of type float32, needed f64"):
        f(**given | {"k": given["k"].astype("float32")})
    with pytest.raises(kingpost.errors.ShapeError, match="argument `b` has shape \\(3,\\), needed \\(2,\\)"):
        f(**given | {"b": jnp.ones(3)})
    with pytest.raises(jax.errors.JaxRuntimeError, match="ShapeError: .*`p2_dofs`"):  # found by the handler
        jax.block_until_ready(f(**given | {"p2_dofs": P2_DOFS[:5]}))
    with pytest.raises(kingpost.FormError, match="found a `int`, needed a form of UFL"):
        kingpost.jax.function(3)
