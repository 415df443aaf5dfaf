"""Nonlinear problems with what they take, for tests of roots and their derivatives: nonlinear diffusion and a
neo-Hookean solid, both with boundary conditions, coefficients and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import ufl
from basix.ufl import element
from test_operator import numbers_of_edges, square

X, CELLS = square(3)
P2_DOFS = numbers_of_edges(CELLS)
LEFT = np.flatnonzero(X[:, 0] == 0.0)


class Nonlinear(NamedTuple):
    """A residual, a functional of its root, and what both take; the first argument is the unknown."""

    residual: Any
    functional: Any
    names: dict[Any, str]
    values: dict[str, Any]
    mesh: dict[str, Any]
    fixed: Any
    linear: dict[str, Any]


def drawn(size: Any, seed: int, low: float = 0.3, high: float = 1.0) -> Any:
    return np.random.default_rng(seed).uniform(low, high, size)


def diffusion() -> Nonlinear:
    """Nonlinear diffusion of degree 2, whose Jacobian matrix is not symmetric, with a flux through the boundary."""
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    p1, p2 = (ufl.FunctionSpace(mesh, element("Lagrange", "triangle", k)) for k in (1, 2))
    u, k, v, c = ufl.Coefficient(p2), ufl.Coefficient(p1), ufl.TestFunction(p2), ufl.Constant(mesh)
    residual = (c + k * u**2) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx - ufl.exp(k) * v * ufl.dx
    residual += c**2 * u**3 * v * ufl.ds
    facets = {"facet_cells": np.array([0, 1, 2, 9], np.int32), "local_facets": np.array([2, 2, 0, 1], np.int32)}
    points = np.zeros((P2_DOFS.max() + 1, 2))
    points[P2_DOFS] = np.concatenate([X[CELLS], (X[CELLS[:, [1, 0, 0]]] + X[CELLS[:, [2, 2, 1]]]) / 2], axis=1)
    return Nonlinear(
        residual, (u**2 + c * k * ufl.inner(ufl.grad(u), ufl.grad(u))) * ufl.dx, {u: "u", k: "k", c: "c"},
        {"u": drawn(len(points), 1), "k": drawn(len(X), 2), "c": np.array(0.7)},
        {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS, "p2_dofs": P2_DOFS, "exterior_facets": facets},
        np.flatnonzero(points[:, 0] == 0.0), {"method": "gmres"},
    )  # fmt: skip


def solid() -> Nonlinear:
    """A neo-Hookean solid in plane strain, held on its left, with moduli and a force."""
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1, shape=(2,)))
    scalars = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1))
    u, mu, v = ufl.Coefficient(space), ufl.Coefficient(scalars), ufl.TestFunction(space)
    bulk, force = ufl.Constant(mesh), ufl.Constant(mesh, shape=(2,))
    f = ufl.Identity(2) + ufl.grad(u)
    j = ufl.det(f)
    density = mu / 2 * (ufl.tr(f.T * f) - 2 - 2 * ufl.ln(j)) + bulk / 2 * (j - 1) ** 2
    residual = ufl.derivative(density * ufl.dx(degree=2), u, v) - ufl.inner(force, v) * ufl.dx
    fixed = (2 * LEFT[:, None] + np.arange(2)).ravel()
    start = np.zeros((len(X), 2))
    start[LEFT] = drawn((len(LEFT), 2), 3, -0.05, 0.05)
    return Nonlinear(
        residual, (ufl.inner(u, u) + density) * ufl.dx(degree=2),
        {u: "u", mu: "mu", bulk: "bulk", force: "force"},
        {"u": start, "mu": drawn(len(X), 4), "bulk": np.array(1.3), "force": np.array([0.1, -0.2])},
        {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS, "p1_2_dofs": CELLS}, fixed, {"components": 2},
    )  # fmt: skip


PROBLEMS: dict[str, Callable[[], Nonlinear]] = {"diffusion": diffusion, "solid": solid}
