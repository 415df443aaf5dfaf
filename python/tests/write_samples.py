"""Writes small tabulated forms with data and results: golden files for readers of the format.

    python write_samples.py FOLDER

Each NAME.json has a NAME.check.json with maps, arrays, states, facets and the results of the
evaluator in `tabulated.py` on a perturbed mesh of a few randomly numbered cells. By default the
folder is that of the golden files of the crate that reads tabulated forms.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import ufl
from basix.ufl import element, mixed_element
from kingpost.export import dumps, export_form
from tabulated import Mesh, assemble

from meshes import bind, make_mesh

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parents[1] / "crates" / "forms" / "tests" / "tabulated"


def domain_of(cell: str, gdim: int, degree: int = 1) -> ufl.Mesh:
    """A mesh of cells of a degree."""
    return ufl.Mesh(element("Lagrange", cell, degree, shape=(gdim,)))


def laplace() -> tuple[Any, dict[str, Any]]:
    """The action of the Laplace operator, P2 on triangles."""
    space = ufl.FunctionSpace(domain_of("triangle", 2), element("Lagrange", "triangle", 2))
    u, kappa = ufl.Coefficient(space), ufl.Constant(space.ufl_domain())
    v = ufl.TestFunction(space)
    return kappa * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, {"u": u, "kappa": kappa}


def vector_mass() -> tuple[Any, dict[str, Any]]:
    """The mass action of a vector P3 space on triangles."""
    e = element("Lagrange", "triangle", 3, shape=(2,))
    space = ufl.FunctionSpace(domain_of("triangle", 2), e)
    u = ufl.Coefficient(space)
    return ufl.inner(u, ufl.TestFunction(space)) * ufl.dx, {"u": u}


def hyperelasticity() -> tuple[Any, dict[str, Any]]:
    """The residual of a compressible neo-Hookean solid, P1 on tetrahedra."""
    e = element("Lagrange", "tetrahedron", 1, shape=(3,))
    space = ufl.FunctionSpace(domain_of("tetrahedron", 3), e)
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    mu, lmbda = (ufl.Constant(space.ufl_domain()) for _ in range(2))
    f = ufl.Identity(3) + 0.1 * ufl.grad(u)
    j = ufl.det(f)
    energy = mu / 2 * (ufl.tr(f.T * f) - 3) - mu * ufl.ln(j) + lmbda / 2 * ufl.ln(j) ** 2
    return ufl.derivative(energy * ufl.dx, u, v), {"u": u, "mu": mu, "lmbda": lmbda}


def mixed_poisson() -> tuple[Any, dict[str, Any]]:
    """The residual of the mixed Poisson problem, RT2 and DG1 on triangles."""
    e = mixed_element([element("RT", "triangle", 2), element("DG", "triangle", 1)])
    space = ufl.FunctionSpace(domain_of("triangle", 2), e)
    w = ufl.Coefficient(space)
    (sigma, u), (tau, v) = ufl.split(w), ufl.TestFunctions(space)
    form = ufl.inner(sigma, tau) * ufl.dx - u * ufl.div(tau) * ufl.dx + ufl.div(sigma) * v * ufl.dx
    return form, {"w": w}


def curl_curl() -> tuple[Any, dict[str, Any]]:
    """The curl-curl action, Nedelec's first kind of degree 2 on tetrahedra (face transforms)."""
    e = element("N1curl", "tetrahedron", 2)
    space = ufl.FunctionSpace(domain_of("tetrahedron", 3), e)
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    form = (ufl.inner(ufl.curl(u), ufl.curl(v)) + ufl.inner(u, v)) * ufl.dx
    return form, {"u": u}


def stokes() -> tuple[Any, dict[str, Any]]:
    """The Stokes operator as a matrix, Taylor-Hood on triangles."""
    pair = [element("Lagrange", "triangle", 2, shape=(2,)), element("Lagrange", "triangle", 1)]
    space = ufl.FunctionSpace(domain_of("triangle", 2), mixed_element(pair))
    (u, p), (v, q) = ufl.TrialFunctions(space), ufl.TestFunctions(space)
    form = ufl.inner(ufl.grad(u), ufl.grad(v)) - p * ufl.div(v) - q * ufl.div(u)
    return form * ufl.dx, {}


def interior_penalty() -> tuple[Any, dict[str, Any]]:
    """The interior penalty residual with boundary terms on a subdomain, DG2 on triangles."""
    space = ufl.FunctionSpace(domain_of("triangle", 2), element("DG", "triangle", 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    alpha, n = ufl.Constant(space.ufl_domain()), ufl.FacetNormal(space.ufl_domain())
    h = ufl.CellDiameter(space.ufl_domain())
    flux = ufl.inner(ufl.avg(ufl.grad(u)), ufl.jump(v, n)) * ufl.dS
    back = ufl.inner(ufl.jump(u, n), ufl.avg(ufl.grad(v))) * ufl.dS
    penalty = alpha / ufl.avg(h) * ufl.jump(u) * ufl.jump(v) * ufl.dS
    wall = alpha / h * u * v * ufl.ds(1) - ufl.dot(ufl.grad(u), n) * v * ufl.ds(1)
    inside = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx
    return inside - flux - back + penalty + wall, {"u": u, "alpha": alpha}


def face_penalty() -> tuple[Any, dict[str, Any]]:
    """Jumps across triangles between tetrahedra, whose points are permuted."""
    space = ufl.FunctionSpace(domain_of("tetrahedron", 3), element("Lagrange", "tetrahedron", 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    n = ufl.FacetNormal(space.ufl_domain())
    form = ufl.jump(ufl.grad(u), n) * ufl.jump(ufl.grad(v), n) * ufl.dS
    return form, {"u": u}


def energy() -> tuple[Any, dict[str, Any]]:
    """A functional: an integral over cells and one over the boundary."""
    space = ufl.FunctionSpace(domain_of("quadrilateral", 2, 2), element("Q", "quadrilateral", 2))
    u = ufl.Coefficient(space)
    form = ufl.sqrt(1 + ufl.inner(ufl.grad(u), ufl.grad(u))) * ufl.dx(degree=4) + u**2 * ufl.ds
    return form, {"u": u}


def laplace_matrix() -> tuple[Any, dict[str, Any]]:
    """The Laplace operator as a matrix, P2 on tetrahedra."""
    space = ufl.FunctionSpace(domain_of("tetrahedron", 3), element("Lagrange", "tetrahedron", 2))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, {}


def prism_robin() -> tuple[Any, dict[str, Any]]:
    """The Laplace operator with a term on the boundary, P2 on prisms, whose facets are of two kinds."""
    space = ufl.FunctionSpace(domain_of("prism", 3), element("Lagrange", "prism", 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + u * v * ufl.ds, {"u": u}


def collocated() -> tuple[Any, dict[str, Any]]:
    """A nonlinear operator with a coefficient, Q3 on hexahedra, whose nodes are the points: tables are products."""
    space = ufl.FunctionSpace(domain_of("hexahedron", 3), element("Q", "hexahedron", 3))
    u, c, v = ufl.Coefficient(space), ufl.Coefficient(space), ufl.TestFunction(space)
    dx = ufl.dx(metadata={"quadrature_rule": "GLL", "quadrature_degree": 5})
    return (c * ufl.inner(ufl.grad(u), ufl.grad(v)) + (1 + u**2) * v) * dx, {"u": u, "c": c}


def block_stokes() -> tuple[Any, dict[str, Any]]:
    """Two residuals of one system, sharing what they evaluate."""
    mesh = domain_of("triangle", 2)
    big = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 2, shape=(2,)))
    small = ufl.FunctionSpace(mesh, element("Lagrange", "triangle", 1))
    u, p = ufl.Coefficient(big), ufl.Coefficient(small)
    v, q = ufl.TestFunction(big), ufl.TestFunction(small)
    momentum = (ufl.inner(ufl.grad(u), ufl.grad(v)) - p * ufl.div(v)) * ufl.dx(degree=2)
    return [momentum, q * ufl.div(u) * ufl.dx(degree=2)], {"u": u, "p": p}


SAMPLES = [
    laplace, vector_mass, hyperelasticity, mixed_poisson, curl_curl, stokes, interior_penalty,
    face_penalty, energy, laplace_matrix, prism_robin, collocated, block_stokes,
]  # fmt: skip


def space_elements(form: Any) -> list[Any]:
    """Elements in the order of the document's spaces."""
    forms = form if isinstance(form, list) else [form]
    found: list[Any] = []
    for item in forms:
        found += [c.ufl_element() for c in item.coefficients()]
    for item in forms:
        found += [a.ufl_element() for a in item.arguments()]
    unique = [e for i, e in enumerate(found) if e not in found[:i]]
    return [forms[0].ufl_domains()[0].ufl_coordinate_element(), *unique]


def check_data(form: dict[str, Any], mesh: Mesh, results: list[np.ndarray]) -> dict[str, Any]:
    """Maps, arrays and results by name."""
    spaces = [space["name"] for space in form["spaces"]]
    plain = lambda data: {key: np.asarray(value).tolist() for key, value in data.items()}  # noqa: E731
    return {
        "n_cells": mesh.n_cells,
        "maps": plain(dict(zip(spaces, mesh.maps, strict=True))),
        "states": plain({n: s for n, s in zip(spaces, mesh.states, strict=True) if s.shape[1] > 0}),
        "arrays": plain(
            dict(zip([f["name"] for f in form["functions"]], mesh.arrays, strict=True))
        ),
        "constants": plain(
            dict(zip([c["name"] for c in form["constants"]], mesh.constants, strict=True))
        ),
        "cells": {str(i): cells.tolist() for i, cells in mesh.cells.items()},
        "facets": {kind: plain(data) for kind, data in mesh.facets.items()},
        "results": plain(dict(zip([o["name"] for o in form["outputs"]], results, strict=True))),
    }


def write(folder: Path) -> None:
    """Writes all samples."""
    folder.mkdir(parents=True, exist_ok=True)
    for make in SAMPLES:
        name = make.__name__
        ufl_form, named = make()
        names = {id(thing): title for title, thing in named.items()}
        document = export_form(ufl_form, name=name, names=names)
        rng = np.random.default_rng(7)
        mesh = bind(document, make_mesh(document["cell"], rng), space_elements(ufl_form), rng)
        results = assemble(document, mesh)
        (folder / f"{name}.json").write_text(dumps(document) + "\n")
        check = check_data(document, mesh, results)
        (folder / f"{name}.check.json").write_text(json.dumps(check, allow_nan=False) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else GOLDEN)
