"""Elements on squares and cubes keep their tensor products: as factors in the record, and in kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("ffcx")

import basix
import engine
import kingpost
import oracle
import ufl
from basix.ufl import blocked_element, element, mixed_element, quadrature_element
from conftest import LONG
from kingpost.export import export_form
from kingpost.export.products import grid
from write_samples import domain_of

# basix solves systems of a Vandermonde matrix in three coordinates, so that its tables of Q6 are right to 4e-14
OF_TABLES = 1e-12
GLL = basix.LagrangeVariant.gll_warped


def rule_of(degree: int, name: str) -> Any:
    """As many points along an axis as Qk has nodes, at the nodes or by Gauss."""
    given = {"gll": ("GLL", 2 * degree - 1), "gauss": ("default", 2 * degree)}[name]
    return ufl.dx(metadata=dict(zip(("quadrature_rule", "quadrature_degree"), given, strict=True)))


def forms_of(cell: str, e: Any, rule: Any, geometry: int = 1) -> dict[str, ufl.Form]:
    """Actions on a function of an element, with a coefficient."""
    domain = domain_of(cell, 3 if cell == "hexahedron" else 2, geometry)
    space = ufl.FunctionSpace(domain, e)
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    c = ufl.Coefficient(ufl.FunctionSpace(domain, element("Q", cell, 2)))
    stiffness, mass = ufl.inner(ufl.grad(u), ufl.grad(v)), ufl.inner(u, v)
    return {
        "laplace": stiffness * rule, "mass": mass * rule, "helmholtz": (stiffness + c * mass) * rule,
        "nonlinear": ufl.exp(ufl.inner(u, u)) * c * stiffness * rule,
    }  # fmt: skip


def are_factors(document: Any) -> bool:
    """Whether all tables of more than one row are written as factors."""
    tables = [table["values"] for integral in document["integrals"] for table in integral["tables"]]
    return all(isinstance(table, dict) or len(table) == 1 for table in tables)


def operations(form: ufl.Form | str, **options: int) -> tuple[str, int]:
    """The mapping of the kernel in C that a form gets, and its operations for one cell."""
    (part,) = kingpost.jit(form, device="c", **options).parts
    sizes = {name: 1000 for name in part.compiled.kernel.variables if name.startswith("n_")}
    return part.mapping["strategy"], kingpost.statistics(part.compiled.kernel).flops(**sizes) // 1000


@pytest.mark.parametrize(("cell", "degree", "rule"), [
    ("hexahedron", 3, "gll"), ("hexahedron", 2, "gauss"), ("quadrilateral", 6, "gauss"), ("quadrilateral", 8, "gll"),
])  # fmt: skip
@pytest.mark.parametrize("name", ["laplace", "helmholtz", "nonlinear"])
def test_results_are_those_of_ffcx(cell: str, degree: int, rule: str, name: str) -> None:
    """On deformed cells with random coefficients, by sums axis by axis."""
    form = forms_of(cell, element("Q", cell, degree), rule_of(degree, rule))[name]
    document = export_form(form)
    assert are_factors(document)
    assert oracle.compare(document, form, 3) < OF_TABLES
    outcome = engine.check(document, form, ["c"], 3)["c"]
    assert outcome.difference is not None, outcome.reason
    assert outcome.difference < 1e-13  # sums of 20 terms, axis by axis


@pytest.mark.parametrize(("low", "high"), [(2, 5), (3, 6)] if LONG else [(2, 4)])
def test_hexahedra_have_the_operations_of_bp5(low: int, high: int) -> None:
    """What the kernel computes for a cell grows with the fourth power of the degree."""
    counted = {}
    for degree in (low, high):
        form = forms_of("hexahedron", element("Q", "hexahedron", degree), rule_of(degree, "gll"))["laplace"]
        document = export_form(form)
        assert are_factors(document)
        strategy, counted[degree] = operations(form)
        assert strategy == "factorised_cells"
    assert counted == {degree: operations("bp5", dim=3, degree=degree)[1] for degree in counted}
    # 18 contractions of 2 (k + 1)^4 operations, and what is computed at each of (k + 1)^3 points
    at_points = {degree: flops / (degree + 1) ** 3 - 36 * (degree + 1) for degree, flops in counted.items()}
    assert at_points[high] < 1.1 * at_points[low]
    outcome = engine.check(document, form, ["c"], 5)["c"]
    assert outcome.difference is not None, outcome.reason
    assert outcome.difference < 1e-13  # sums of 7 terms, axis by axis


@pytest.mark.parametrize(("e", "products"), [
    (element("Q", "hexahedron", 2, shape=(3,)), True),
    (element("DQ", "hexahedron", 2), True),
    (element("DQ", "quadrilateral", 5, lagrange_variant=basix.LagrangeVariant.legendre), True),
    (element("Q", "quadrilateral", 4, lagrange_variant=basix.LagrangeVariant.equispaced), True),
    (basix.ufl.wrap_element(basix.create_tp_element(
        basix.ElementFamily.P, basix.CellType.hexahedron, 2, GLL)), True),
    (mixed_element([element("Q", "hexahedron", 2, shape=(3,)), element("Q", "hexahedron", 1)]), True),
    (element("S", "quadrilateral", 3), False),
    (element("DPC", "hexahedron", 2), False),
    (element("RTCF", "quadrilateral", 2), False),
])  # fmt: skip
def test_which_elements_are_products(e: Any, products: bool) -> None:
    """Other elements keep their tables as they are, and their results."""
    cell = e.cell_type.name
    domain = domain_of(cell, 2 if cell == "quadrilateral" else 3)
    space = ufl.FunctionSpace(domain, e)
    form = ufl.inner(ufl.Coefficient(space), ufl.TestFunction(space)) * ufl.dx(degree=4)
    document = export_form(form)
    tables = [t["values"] for t in document["integrals"][0]["tables"] if not t["name"].startswith("p1_c0_d")]
    assert all(isinstance(table, dict) == products for table in tables), [t["name"] for t in document["integrals"][0]["tables"]]
    assert oracle.compare(document, form, 3) < OF_TABLES
    outcome = engine.check(document, form, ["c"], 3)["c"]
    assert outcome.difference is not None, outcome.reason
    assert outcome.difference < 1e-13


def test_quadrature_elements_are_products() -> None:
    """Values at the points of a rule are an identity along each axis."""
    domain = domain_of("hexahedron", 3)
    given = ufl.Coefficient(ufl.FunctionSpace(domain, quadrature_element("hexahedron", degree=5)))
    u, v = (kind(ufl.FunctionSpace(domain, element("Q", "hexahedron", 2))) for kind in (ufl.Coefficient, ufl.TestFunction))
    form = given * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx(metadata={"quadrature_degree": 5})
    document = export_form(form)
    assert are_factors(document)
    assert operations(form)[0] == "factorised_cells"
    outcome = engine.check(document, form, ["c"], 3)["c"]
    assert outcome.difference is not None and outcome.difference < 1e-13, outcome.reason


def test_points_that_are_no_grid_have_tables() -> None:
    """A rule of another order or with a point moved, as users give it, is integrated as before."""
    points, weights = basix.make_quadrature(basix.CellType.quadrilateral, 5)
    moved = points.copy()
    moved[4] += [0.01, 0.02]
    swapped = np.random.default_rng(1).permutation(len(points))
    axes = grid(np.asarray(points))
    assert axes is not None and [len(axis) for axis in axes] == [3, 3]
    for given, of in ((moved, weights), (points[swapped], weights[swapped])):
        assert grid(np.ascontiguousarray(given)) is None
        rule = {"quadrature_rule": "custom", "quadrature_points": given, "quadrature_weights": of}
        form = forms_of("quadrilateral", element("Q", "quadrilateral", 3), ufl.dx(metadata=rule))["helmholtz"]
        document = export_form(form)
        assert not are_factors(document)
        assert oracle.compare(document, form, 3) < OF_TABLES
        outcome = engine.check(document, form, ["c"], 3)["c"]
        assert outcome.difference is not None and outcome.difference < 1e-13, outcome.reason


@pytest.mark.parametrize("cell", ["quadrilateral", "hexahedron"] if LONG else ["quadrilateral"])
def test_parts_of_mixed_elements_are_factorised(cell: str) -> None:
    """Stokes' operator in Taylor–Hood's elements: nodes of each part are in the order of the axes."""
    gdim = 2 if cell == "quadrilateral" else 3
    space = ufl.FunctionSpace(
        domain_of(cell, gdim), mixed_element([element("Q", cell, 2, shape=(gdim,)), element("Q", cell, 1)])
    )
    (u, p), (v, q) = ufl.split(ufl.Coefficient(space)), ufl.TestFunctions(space)
    form = (ufl.inner(ufl.grad(u), ufl.grad(v)) - p * ufl.div(v) - q * ufl.div(u)) * ufl.dx(degree=4)
    assert operations(form)[0] == "factorised_cells"
    document = export_form(form)
    assert oracle.compare(document, form, 3) < OF_TABLES
    outcome = engine.check(document, form, ["c"], 3)["c"]
    assert outcome.difference is not None and outcome.difference < 1e-13, outcome.reason


def test_vectors_on_curved_cells_are_factorised() -> None:
    """Three components on cells of degree 2, all by sums axis by axis."""
    space = blocked_element(element("Q", "hexahedron", 2), shape=(3,))
    form = forms_of("hexahedron", space, ufl.dx(degree=6), geometry=2)["laplace"]
    assert operations(form)[0] == "factorised_cells"
    outcome = engine.check(export_form(form), form, ["c"], 3)["c"]
    assert outcome.difference is not None and outcome.difference < 1e-13, outcome.reason
