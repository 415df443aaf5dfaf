#!/usr/bin/env python3
"""Quadrature degrees that UFL estimates, for the test `form::tests::degrees_are_those_of_ufl`.

Needs fenics-ufl==2026.1.0 and fenics-basix==0.11.0; prints one line per integrand.
"""

import basix.ufl
import ufl
from ufl import conditional, div, dx, exp, grad, inner, lt, sin, sqrt
from ufl.algorithms import compute_form_data

mesh = ufl.Mesh(basix.ufl.element("Lagrange", "triangle", 1, shape=(2,)))
u = ufl.Coefficient(ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "triangle", 3)))
v = ufl.TestFunction(ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "triangle", 2)))
x = ufl.SpatialCoordinate(mesh)
c = ufl.Constant(mesh)

CASES = [
    u * v,
    inner(grad(u), grad(v)),
    u / (1 + u) * v,
    u**3 * v,
    u ** (-1) * v,
    exp(u) * v,
    sin(x[0]) * v,
    sqrt(c) * v,
    conditional(lt(u, 1), v, x[1] * v),
    x[0] * x[1] * v + u * v,
    div(grad(u)) * v,
    inner(grad(u * u), grad(v)),
]

for integrand in CASES:
    data = compute_form_data(integrand * dx, do_estimate_degrees=True)
    metadata = data.integral_data[0].integrals[0].metadata()
    print(metadata["estimated_polynomial_degree"], integrand)
