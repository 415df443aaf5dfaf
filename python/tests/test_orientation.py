"""Transforms, states and facet permutations on randomly numbered meshes.

A conforming function has continuous traces: integrals of squared jumps over interior facets are
zero. They are not if a transform, a state or the orientation of a facet is wrong.
"""

from __future__ import annotations

import numpy as np
import pytest
import ufl
from basix.ufl import element, mixed_element
from kingpost.export import export_form
from tabulated import assemble
from write_samples import domain_of, space_elements

from meshes import bind, make_mesh

CELLS = {"triangle": 2, "tetrahedron": 3, "quadrilateral": 2, "hexahedron": 3, "prism": 3, "pyramid": 3}

SIMPLICES = ("triangle", "tetrahedron")


def jump_of(kind: str, u: ufl.Coefficient, n: ufl.FacetNormal, gdim: int) -> ufl.core.expr.Expr:
    """The squared jump of the trace that a Sobolev space makes continuous."""
    if kind == "value":
        return ufl.inner(ufl.jump(u), ufl.jump(u))
    if kind == "normal":
        return ufl.dot(u("+") - u("-"), n("+")) ** 2
    if kind == "tangent":
        jump = u("+") - u("-")
        along = jump - ufl.dot(jump, n("+")) * n("+")
        return ufl.inner(along, along)
    normal_normal = ufl.dot(n("+"), ufl.dot(u("+") - u("-"), n("+")))
    if kind == "normal-normal":
        return normal_normal**2
    tangents = ufl.Identity(gdim) - ufl.outer(n("+"), n("+"))
    moved = tangents * (u("+") - u("-")) * tangents
    return ufl.inner(moved, moved)


CASES = [
    *[("P", cell, degree, "value") for cell in CELLS for degree in ((1, 2) if cell == "pyramid" else (1, 3))],
    ("P", "tetrahedron", 4, "value"),
    *[(f, c, k, "normal") for f in ("RT", "BDM") for c in SIMPLICES for k in (1, 2, 3)],
    *[(f, c, k, "tangent") for f in ("N1curl", "N2curl") for c in SIMPLICES for k in (1, 2, 3)],
    ("RTCF", "quadrilateral", 2, "normal"), ("RTCE", "quadrilateral", 2, "tangent"),
    ("NCF", "hexahedron", 2, "normal"), ("NCE", "hexahedron", 2, "tangent"),
    ("Regge", "triangle", 1, "tangent-tangent"), ("Regge", "tetrahedron", 1, "tangent-tangent"),
    ("HHJ", "triangle", 1, "normal-normal"), ("HHJ", "tetrahedron", 1, "normal-normal"),
]  # fmt: skip


def assembled(form: ufl.Form, seed: int, spoil: bool = False) -> list[np.ndarray]:
    """Results on a random mesh; with `spoil` all states are zero."""
    document = export_form(form)
    rng = np.random.default_rng(seed)
    counts = (2, 1, 1) if document["cell"] == "hexahedron" else None
    mesh = bind(document, make_mesh(document["cell"], rng, counts), space_elements(form), rng)
    if spoil:
        mesh.states = [0 * states for states in mesh.states]
    return assemble(document, mesh)


@pytest.mark.parametrize(("family", "cell", "degree", "kind"), CASES)
def test_traces_are_continuous(family: str, cell: str, degree: int, kind: str) -> None:
    """No jump for a conforming function, in three numberings; a jump if states are ignored."""
    gdim = CELLS[cell]
    e = element(family, cell, degree)
    space = ufl.FunctionSpace(domain_of(cell, gdim), e)
    u, n = ufl.Coefficient(space), ufl.FacetNormal(space.ufl_domain())
    form = jump_of(kind, u, n, gdim) * ufl.dS(degree=3)
    size = ufl.inner(ufl.avg(u), ufl.avg(u)) * ufl.dS(degree=3)
    for seed in range(3):
        # 1e-20: the square of 1e-10, well above rounding and below any real jump.
        assert assembled(form, seed)[0] <= 1e-20 * assembled(size, seed)[0]
    if export_form(form)["spaces"][1].get("transforms"):
        spoiled = max(float(assembled(form, seed, spoil=True)[0]) for seed in range(3))
        assert spoiled > 1e-3


@pytest.mark.parametrize("cell", CELLS)
def test_points_of_both_sides_agree(cell: str) -> None:
    """x and facet coordinates are the same from both sides at every point."""
    gdim = CELLS[cell]
    domain = domain_of(cell, gdim, 2)
    x = ufl.SpatialCoordinate(domain)
    form = ufl.inner(x("+") - x("-"), x("+") - x("-")) * ufl.dS(degree=3, domain=domain)
    document = export_form(form)
    rng = np.random.default_rng(1)
    counts = (2, 1, 1) if cell == "hexahedron" else None
    mesh = bind(document, make_mesh(cell, rng, counts), [domain.ufl_coordinate_element()], rng)
    assert assemble(document, mesh)[0] <= 1e-28
    mesh.facets["interior_facet"]["facet_states"][:, 0] ^= 1
    assert assemble(document, mesh)[0] > 1e-6


def test_transformed_results_are_adjoint() -> None:
    """A residual of a transformed space is the derivative of the energy that it comes from."""
    e = mixed_element([element("N1curl", "tetrahedron", 2), element("RT", "tetrahedron", 2)])
    space = ufl.FunctionSpace(domain_of("tetrahedron", 3), e)
    w = ufl.Coefficient(space)
    energy = ufl.inner(w, w) * ufl.dx(degree=4)
    value, residual = assembled(energy, 5)[0], assembled(ufl.derivative(energy, w), 5)[0]
    document = export_form(energy)
    rng = np.random.default_rng(5)
    mesh = bind(document, make_mesh("tetrahedron", rng), space_elements(energy), rng)
    # The energy is quadratic: half of its derivative in the direction of w.
    assert np.isclose(residual @ mesh.arrays[1][:, 0], 2 * value, rtol=1e-13)


def test_divergence_theorem() -> None:
    """The integral of a divergence is the flux through the boundary, RT2 on tetrahedra."""
    space = ufl.FunctionSpace(domain_of("tetrahedron", 3), element("RT", "tetrahedron", 2))
    u, n = ufl.Coefficient(space), ufl.FacetNormal(space.ufl_domain())
    inside = assembled(ufl.div(u) * ufl.dx, 2)[0]
    flux = assembled(ufl.dot(u, n) * ufl.ds, 2)[0]
    assert np.isclose(inside, flux, rtol=1e-12)
