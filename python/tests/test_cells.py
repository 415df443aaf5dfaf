"""Surfaces, curves, prisms and pyramids: FFCx, the engine, and identities where FFCx has nothing to compare with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ffcx")

import engine
import oracle
import ufl
from basix.ufl import element, mixed_element
from kingpost.export import UnsupportedForm, export_form
from tabulated import assemble
from write_samples import domain_of, space_elements

from meshes import bind, make_mesh

# local tensors of both: sums of at most some hundred products, relative to the largest entry
EQUAL = 2e-14

MANIFOLDS = [
    ("interval", 2, 1), ("interval", 3, 2), ("triangle", 3, 1), ("triangle", 3, 2),
    ("quadrilateral", 3, 1), ("quadrilateral", 3, 2),
]  # fmt: skip
SOLIDS = [("prism", 1, 1), ("prism", 2, 2), ("prism", 1, 3), ("pyramid", 1, 1), ("pyramid", 2, 2)]


def agrees(form: ufl.Form) -> None:
    """Local tensors are FFCx's, and the engine's kernel computes them."""
    document = export_form(form)
    assert oracle.compare(document, form, 3) < EQUAL
    computes(document, form)


def computes(document: Any, form: ufl.Form) -> None:
    """The engine's kernel gives what the evaluator of the document gives."""
    outcome = engine.check(document, form, ["c"], 3)["c"]
    assert outcome.difference is not None, outcome.reason
    assert outcome.difference < EQUAL


@pytest.mark.parametrize(("cell", "gdim", "degree"), MANIFOLDS)
def test_curves_and_surfaces(cell: str, gdim: int, degree: int) -> None:
    """Gradients by the pseudo-inverse, measures by the pseudo-determinant, normals of cells and facets."""
    domain = domain_of(cell, gdim, degree)
    space = ufl.FunctionSpace(domain, element("P", cell, 2))
    u, v, w = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.Coefficient(space)
    p = ufl.Coefficient(ufl.FunctionSpace(domain, element("P", cell, 1, shape=(gdim,))))
    x, n = ufl.SpatialCoordinate(domain), ufl.FacetNormal(domain)
    agrees(w * x[gdim - 1] * ufl.dx)
    agrees((ufl.inner(ufl.grad(u), ufl.grad(v)) + u * v) * ufl.dx)
    action = ufl.inner(ufl.grad(w), ufl.grad(v)) * ufl.dx + ufl.div(p) * v * ufl.dx + ufl.inner(p, n) * v * ufl.ds
    if gdim == domain.topological_dimension + 1:
        action += ufl.inner(p, ufl.CellNormal(domain)) * v * ufl.dx
    agrees(action + ufl.dot(ufl.grad(w)("+"), n("+")) * ufl.avg(v) * ufl.dS)


@pytest.mark.parametrize(("cell", "families"), [("triangle", ("RT", "N1curl")), ("quadrilateral", ("RTCF", "RTCE"))])
def test_vectors_along_a_surface(cell: str, families: tuple[str, str]) -> None:
    """Both Piola maps with a Jacobian that is not square."""
    domain = domain_of(cell, 3)
    for family in families:
        space = ufl.FunctionSpace(domain, element(family, cell, 2))
        agrees(ufl.inner(ufl.TrialFunction(space), ufl.TestFunction(space)) * ufl.dx)
    both = mixed_element([element(families[0], cell, 1), element("DG", cell, 0)])
    space = ufl.FunctionSpace(domain, both)
    (sigma, u), (tau, v) = ufl.split(ufl.Coefficient(space)), ufl.TestFunctions(space)
    agrees((ufl.inner(sigma, tau) + ufl.div(sigma) * v + u * ufl.div(tau)) * ufl.dx)


@pytest.mark.parametrize(("cell", "degree", "order"), SOLIDS)
def test_prisms_and_pyramids(cell: str, degree: int, order: int) -> None:
    """Functionals, actions and matrices over cells and over facets of two kinds."""
    domain = domain_of(cell, 3, degree)
    space = ufl.FunctionSpace(domain, element("P", cell, order))
    u, v, w = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.Coefficient(space)
    p = ufl.Coefficient(ufl.FunctionSpace(domain, element("P", cell, 1, shape=(3,))))
    agrees(w * ufl.SpatialCoordinate(domain)[0] * ufl.dx + w * ufl.ds)
    agrees(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + u * v * ufl.ds)
    agrees((ufl.inner(ufl.grad(w), ufl.grad(v)) + ufl.div(p) * v) * ufl.dx + w * v * ufl.ds)


def integral(form: ufl.Form, seed: int = 5) -> float:
    """A functional by the evaluator, which the engine agrees with."""
    document = export_form(form)
    computes(document, form)
    rng = np.random.default_rng(seed)
    cell = document["cell"]
    mesh = bind(document, make_mesh(cell, rng), space_elements(form), rng)
    return float(assemble(document, mesh)[0])


@pytest.mark.parametrize("cell", ["prism", "pyramid"])
def test_divergence_theorem(cell: str) -> None:
    """FFCx 0.11 has neither normals of these facets nor integrals over interior ones: fluxes add up instead.

    Positions are a field whose divergence is 3, and the flux of a jump is what interior facets have.
    """
    domain = domain_of(cell, 3)
    x, n = ufl.SpatialCoordinate(domain), ufl.FacetNormal(domain)
    volume = integral(ufl.div(x) / 3 * ufl.dx(degree=4, domain=domain))
    flux = integral(ufl.dot(x, n) / 3 * ufl.ds(degree=4))
    assert volume > 0.01
    assert abs(flux - volume) < 1e-13 * volume
    broken = ufl.FunctionSpace(domain, element("DG", cell, 1))
    w = ufl.Coefficient(broken)
    inside = integral(ufl.div(w * x) * ufl.dx(degree=7))
    faces = integral(w * ufl.dot(x, n) * ufl.ds(degree=7) + ufl.jump(w * x, n) * ufl.dS(degree=7))
    # rational functions of pyramids are integrated to what the rule leaves of them
    assert abs(faces - inside) < (1e-13 if cell == "prism" else 1e-6) * abs(inside)


def test_forms_over_interior_facets_of_prisms_are_compiled() -> None:
    """Matrices and actions of jumps, in eight orientations of squares and six of triangles."""
    for cell in ("prism", "pyramid"):
        domain = domain_of(cell, 3)
        space = ufl.FunctionSpace(domain, element("DG", cell, 1))
        u, v, w = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.Coefficient(space)
        n = ufl.FacetNormal(domain)
        for form in (
            ufl.jump(u) * ufl.jump(v) * ufl.dS,
            ufl.inner(ufl.jump(w, n), ufl.avg(ufl.grad(v))) * ufl.dS,
        ):
            computes(export_form(form), form)


def test_averages_over_facets_of_two_kinds_are_refused() -> None:
    """What has one rule for all facets is named."""
    domain = domain_of("prism", 3)
    space = ufl.FunctionSpace(domain, element("P", "prism", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    with pytest.raises(UnsupportedForm, match="`facet_avg` on facets of a `prism`, which are of two kinds; use `avg`"):
        export_form(ufl.facet_avg(u) * v * ufl.ds)
