"""Forms as functions of PyTorch: values, gradients, what `torch.compile` and `torch.library` ask for."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed (pip install torch)")
ufl = pytest.importorskip("ufl")

import kingpost  # noqa: E402
import kingpost.torch  # noqa: E402
from basix.ufl import element  # noqa: E402
from test_operator import numbers_of_edges, square, stiffness  # noqa: E402

X, CELLS = square(3)
P2_DOFS = numbers_of_edges(CELLS)
BOUNDARY = {"facet_cells": np.array([0, 1, 2, 9], np.int32), "local_facets": np.array([2, 2, 0, 1], np.int32)}


def drawn(size: Any, seed: int) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).uniform(0.3, 1.0, size))


def nonlinear():
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    p1, p2 = (ufl.FunctionSpace(mesh, element("Lagrange", "triangle", k)) for k in (1, 2))
    u, k, v = ufl.Coefficient(p2), ufl.Coefficient(p1), ufl.TestFunction(p2)
    c = ufl.Constant(mesh)
    form = (c + u**2) * k * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + c**2 * ufl.exp(k) * u * v * ufl.ds
    return kingpost.torch.function(form, names={u: "u", k: "k", c: "c"})


def arguments() -> dict[str, Any]:
    values = {"u": drawn(P2_DOFS.max() + 1, 1), "k": drawn(len(X), 2), "c": torch.tensor(0.7, dtype=torch.float64)}
    maps = {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS, "p2_dofs": P2_DOFS}
    return maps | {"exterior_facets": BOUNDARY} | values


def test_a_function_has_the_value_of_the_operator():
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    p1 = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1))
    u, v, c = ufl.Coefficient(p1), ufl.TestFunction(p1), ufl.Constant(mesh)
    f = kingpost.torch.function(c * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, names={u: "u", c: "c"})
    values = drawn(len(X), 4)
    expected = 3 * stiffness(X, CELLS) @ values.numpy()
    given = {"x": torch.from_numpy(X), "x_dofs": CELLS, "p1_dofs": CELLS}
    for run in (f, torch.compile(f, backend="aot_eager")):
        found = run(u=values, c=3.0, **given)
        assert np.allclose(found, expected, rtol=0, atol=1e-13)  # sums of at most 18 products in f64
    found = f(y=torch.ones(len(X), dtype=torch.float64), u=values, c=3.0, **given)
    assert np.allclose(found, 1 + expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["u", "k", "c"])
def test_gradients_by_coefficients_and_constants(name: str):
    """Against central differences, and once more: PyTorch's own checks, along random directions."""
    f, given = nonlinear(), arguments()
    point = given.pop(name).requires_grad_()
    function = lambda value: f(**given, **{name: value})  # noqa: E731
    assert torch.autograd.gradcheck(function, (point,), fast_mode=True)
    assert torch.autograd.gradgradcheck(function, (point,), fast_mode=True)


def test_taylors_formula_of_second_order():
    f, given = nonlinear(), arguments()
    point, weights = given.pop("u"), drawn(P2_DOFS.max() + 1, 5)
    energy = lambda u: weights @ f(u=u, **given)  # noqa: E731
    direction = drawn(point.shape, 6) - 0.6
    tracked = point.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(energy(tracked), tracked)
    remainders = [abs(energy(point + h * direction) - energy(point) - h * gradient @ direction).item()
                  for h in (1e-2, 5e-3, 2.5e-3)]  # fmt: skip
    assert min(np.log2(np.array(remainders[:-1]) / remainders[1:])) > 1.9


def test_compiled_functions_have_no_breaks_and_the_operator_keeps_its_promises():
    f, given = nonlinear(), arguments()
    point = given.pop("u").requires_grad_()
    flat = f._flat({**given, "u": point}, None)
    operands = (list(flat.values()), f._place, json.dumps(list(flat)), list(point.shape))
    torch.library.opcheck(torch.ops.kingpost.form.default, operands)
    kept = (operands[1], operands[2], operands[3])
    rest = [value for key, value in flat.items() if key != ("", "u")]
    at = list(flat).index(("", "u"))

    def energy(u):
        values = [*rest[:at], u, *rest[at:]]
        return (torch.ops.kingpost.form(values, *kept) ** 2).sum()

    compiled = torch.compile(energy, fullgraph=True, backend="aot_eager")
    (expected,) = torch.autograd.grad(energy(point), point)
    (found,) = torch.autograd.grad(compiled(point), point)
    assert torch.allclose(found, expected, rtol=1e-13, atol=1e-15)  # atomic updates come in any order


def test_what_is_refused_is_named():
    f, given = nonlinear(), arguments()
    x = torch.from_numpy(X).requires_grad_()
    with pytest.raises(kingpost.FormError, match="derivative by `x`: found no coefficient or constant of this name"):
        f(**given | {"x": x}).sum().backward()
    with pytest.raises(kingpost.errors.MissingArgument, match="argument `p2_dofs` is missing"):
        f(**{name: value for name, value in given.items() if name != "p2_dofs"})
    with pytest.raises(kingpost.errors.DtypeError, match="argument `k` has elements of type float32, needed f64"):
        f(**given | {"k": given["k"].float()})
