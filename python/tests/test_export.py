"""The exporter against FFCx, its errors, its names, and what the document promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from basix.ufl import element, mixed_element, quadrature_element, real_element
from conftest import LONG
from oracle import OracleRefusal, compare
from kingpost.export import FormError, UnsupportedForm, dumps, export_form, states
from random_forms import random_form
from tabulated import assemble
from write_samples import GOLDEN, SAMPLES, domain_of, space_elements, write

from meshes import bind, make_mesh

# Sums of up to a few hundred terms in f64, in a different order than FFCx's.
EQUAL = 1e-12


def space_of(cell: str, gdim: int, e: Any, degree: int = 1) -> ufl.FunctionSpace:
    """A space on a mesh of a degree."""
    return ufl.FunctionSpace(domain_of(cell, gdim, degree), e)


def assembled(form: Any, seed: int = 3, **options: Any) -> list[np.ndarray]:
    """Results of a form on a random mesh."""
    document = export_form(form, **options)
    rng = np.random.default_rng(seed)
    mesh = bind(document, make_mesh(document["cell"], rng), space_elements(form), rng)
    return assemble(document, mesh)


def test_demos_equal_ffcx() -> None:
    """Every demo form that is exported and that FFCx compiles; without `KINGPOST_TEST_ALL` some."""
    pytest.importorskip("ffcx")
    import demos

    try:
        paths = list(demos.paths())[:: 1 if LONG else 8]
    except RuntimeError as error:
        pytest.skip(f"skipped: {error}")
    compared = 0
    for package, path in paths:
        if path.stem == "HarmonicMap" or path.stem == "MixedElasticity":
            continue
        for name, form in demos.forms_of(demos.load(path)).items():
            title = f"{package}/{path.stem} {name}"
            try:
                document = export_form(form)
                difference = compare(document, form, 1)
            except FormError:
                assert path.stem in ("ComplexPoisson", "Equation", "StokesEquation"), title
                continue
            assert difference <= EQUAL, title
            compared += 1
    assert compared >= (100 if LONG else 8)


def test_random_forms_equal_ffcx(request: pytest.FixtureRequest) -> None:
    """Random forms; seeds are printed on failure."""
    pytest.importorskip("ffcx")
    first = request.config.getoption("--first-seed")
    count = request.config.getoption("--random-forms")
    compared = 0
    for seed in range(first, first + count):
        drawn = random_form(seed)
        try:
            difference = compare(export_form(drawn.form), drawn.form, seed)
        except OracleRefusal:
            continue
        assert difference <= EQUAL, f"seed {seed}: {drawn.title}: {difference}"
        compared += 1
    assert compared >= 0.8 * count


def surface() -> ufl.Form:
    """A form on a curved surface with its normal."""
    space = space_of("triangle", 3, element("P", "triangle", 2), 2)
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    return (
        ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx
        + ufl.CellNormal(space.ufl_domain())[2] * v * u * ufl.dx
    )


def shape_derivative() -> ufl.Form:
    """The derivative of an energy by the coordinates."""
    space = space_of("triangle", 2, element("P", "triangle", 1))
    domain = space.ufl_domain()
    u = ufl.Coefficient(space)
    move = ufl.TestFunction(ufl.FunctionSpace(domain, element("P", "triangle", 1, shape=(2,))))
    energy = ufl.inner(ufl.grad(u), ufl.grad(u)) * ufl.dx + u**2 * ufl.ds
    return ufl.derivative(energy, ufl.SpatialCoordinate(domain), move)


def biharmonic() -> ufl.Form:
    """Second derivatives on curved cells."""
    space = space_of("quadrilateral", 2, element("P", "quadrilateral", 3), 2)
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    return ufl.inner(ufl.grad(ufl.grad(u)), ufl.grad(ufl.grad(v))) * ufl.dx(degree=4)


def piola_gradients() -> ufl.Form:
    """Gradients of Piola-mapped functions on curved tetrahedra."""
    e = mixed_element([element("RT", "tetrahedron", 1), element("N1curl", "tetrahedron", 1)])
    space = space_of("tetrahedron", 3, e, 2)
    (s, t), w = ufl.TestFunctions(space), ufl.Coefficient(space)
    a, b = ufl.split(w)
    return (ufl.inner(ufl.grad(a), ufl.grad(s)) + ufl.inner(ufl.curl(b), ufl.curl(t))) * ufl.dx(
        degree=3
    )


def real_multiplier() -> ufl.Form:
    """A function that is one number for the whole mesh."""
    domain = domain_of("triangle", 2)
    number = ufl.FunctionSpace(domain, real_element("triangle", ()))
    u = ufl.Coefficient(ufl.FunctionSpace(domain, element("P", "triangle", 2)))
    return (
        u * ufl.TestFunction(number) * ufl.dx
        + ufl.Coefficient(number) * ufl.TestFunction(number) * ufl.ds
    )


def quadrature_state() -> ufl.Form:
    """A coefficient with a value at each quadrature point."""
    domain = domain_of("tetrahedron", 3)
    q = quadrature_element("tetrahedron", (3,), degree=3)
    state = ufl.Coefficient(ufl.FunctionSpace(domain, q))
    v = ufl.TestFunction(ufl.FunctionSpace(domain, element("P", "tetrahedron", 2)))
    return ufl.inner(state, ufl.grad(v)) * ufl.dx


def macro_rule() -> ufl.Form:
    """An element on a subdivided cell, whose rule is subdivided too."""
    space = space_of("triangle", 2, element("iso", "triangle", 2))
    return ufl.TrialFunction(space) * ufl.TestFunction(space) * ufl.dx


def two_subdomains() -> ufl.Form:
    """Measures of several subdomains, and everywhere."""
    space = space_of("triangle", 2, element("P", "triangle", 1))
    v, u = ufl.TestFunction(space), ufl.Coefficient(space)
    inside = u * v * ufl.dx((1, 3), degree=2) + v * ufl.dx(degree=2) + v * ufl.ds(2)
    return inside + u * ufl.avg(v) * ufl.dS


def facet_quantities() -> ufl.Form:
    """Sizes of cells and facets of hexahedra and tetrahedra."""
    space = space_of("tetrahedron", 3, element("DG", "tetrahedron", 1))
    m = space.ufl_domain()
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    h = ufl.avg(ufl.MaxFacetEdgeLength(m)) + ufl.FacetArea(m)("+") + ufl.avg(ufl.Circumradius(m))
    return h * ufl.jump(u) * ufl.jump(v) * ufl.dS + ufl.MinFacetEdgeLength(m) * u * v * ufl.ds


FORMS = [
    surface, shape_derivative, biharmonic, piola_gradients, real_multiplier, quadrature_state,
    macro_rule, two_subdomains, facet_quantities,
]  # fmt: skip


@pytest.mark.parametrize("make", FORMS)
def test_forms_equal_ffcx(make: Any) -> None:
    """Forms that random ones seldom reach."""
    pytest.importorskip("ffcx")
    form = make()
    assert compare(export_form(form), form, 11) <= EQUAL


def test_hexahedron_sizes() -> None:
    """The diameter of a hexahedron, which FFCx has too, in facet integrals."""
    pytest.importorskip("ffcx")
    space = space_of("hexahedron", 3, element("Q", "hexahedron", 1))
    form = ufl.CellDiameter(space.ufl_domain()) * ufl.TestFunction(space) * ufl.ds
    assert compare(export_form(form), form, 2) <= EQUAL


def test_averages_of_cells() -> None:
    """`cell_avg` instead of its function keeps the integral on affine cells."""
    u = ufl.Coefficient(space_of("triangle", 2, element("P", "triangle", 2)))
    plain, mean = assembled(u * ufl.dx)[0], assembled(ufl.cell_avg(u) * ufl.dx)[0]
    assert np.isclose(plain, mean, rtol=1e-13)
    assert not np.isclose(
        assembled(ufl.cell_avg(u) ** 2 * ufl.dx)[0], assembled(u**2 * ufl.dx)[0], rtol=1e-6
    )


def test_block_system_shares_evaluations() -> None:
    """Two residuals in one document equal those of two documents, with fewer evaluations."""
    (momentum, mass), _ = SAMPLES[-1]()
    together = export_form([momentum, mass])
    assert [o["name"] for o in together["outputs"]] == ["y0", "y1"]
    assert len(together["integrals"]) == 1
    apart = [export_form(form) for form in (momentum, mass)]
    count = lambda d: sum(len(i["evaluations"]) for i in d["integrals"])  # noqa: E731
    assert count(together) < sum(count(d) for d in apart)
    both = assembled([momentum, mass])
    assert [result.shape for result in both] == [(50,), (9,)]


def test_tables_are_exact() -> None:
    """Constant tables have one row; gradients of P1 are exactly -1, 0 and 1."""
    space = space_of("tetrahedron", 3, element("P", "tetrahedron", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    (integral,) = export_form((u**2 + 1) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx)[
        "integrals"
    ]
    gradients = [t["values"] for t in integral["tables"] if "_d" in t["name"]]
    assert gradients == [[[-1, 1, 0, 0]], [[-1, 0, 1, 0]], [[-1, 0, 0, 1]]]


def test_bubble_vanishes_in_vertices() -> None:
    """A table of rounding errors is zero, so that nothing is left to integrate."""
    space = space_of("triangle", 2, element("bubble", "triangle", 3))
    vertex = ufl.dx(metadata={"quadrature_rule": "vertex", "quadrature_degree": 1})
    (integral,) = export_form(ufl.TestFunction(space) * vertex)["integrals"]
    # what is left is zero times a coordinate
    assert integral["nodes"] == [["literal", 0.0], ["evaluation", 0], ["multiply", 0, 1]]
    assert [term["factor"] for term in integral["terms"]] == [2]


def test_lagrange_needs_no_transforms() -> None:
    """P4 is numbered by permutations, which DOLFINx's maps hold; N1curl of degree 2 is not."""
    p4 = ufl.Coefficient(space_of("tetrahedron", 3, element("P", "tetrahedron", 4)))
    assert "transforms" not in export_form(p4 * ufl.dx)["spaces"][1]
    curl = ufl.Coefficient(space_of("tetrahedron", 3, element("N1curl", "tetrahedron", 2)))
    entries = export_form(curl[0] * ufl.dx)["spaces"][1]["transforms"]
    assert [e["entity"] for e in entries] == [[1, i] for i in range(6)] + [[2, i] for i in range(4)]
    assert {len(e["matrices"]) for e in entries} == {2, 6}


@pytest.mark.parametrize("family", ["N1curl", "RT", "BDM"])
def test_transforms_equal_basix(family: str) -> None:
    """Matrices chosen by `states` are the transpose of what basix applies to basis functions."""
    e = element(family, "tetrahedron", 2)
    space = export_form(ufl.Coefficient(space_of("tetrahedron", 3, e))[0] * ufl.dx)["spaces"][1]
    rng = np.random.default_rng(0)
    faces = rng.integers(0, 2, (20, 4)) + 2 * rng.integers(0, 3, (20, 4))
    info = (faces << (3 * np.arange(4))).sum(axis=1) + (rng.integers(0, 64, 20) << 12)
    chosen = states(space, "tetrahedron", info)
    for row, bits in zip(chosen, info, strict=True):
        expected = np.eye(e.dim)
        e.basix_element.T_apply(expected.reshape(-1), e.dim, int(bits))
        found = np.eye(e.dim)
        for state, entry in zip(row, space["transforms"], strict=True):
            found[np.ix_(entry["dofs"], entry["dofs"])] = entry["matrices"][state]
        assert np.allclose(found, expected.T, atol=1e-13)


def complex_form() -> ufl.Form:
    """A form with a complex literal."""
    v = ufl.TestFunction(space_of("triangle", 2, element("P", "triangle", 1)))
    return (1 + 2j) * v * ufl.dx


def point_form() -> ufl.Form:
    """A form on points."""
    return ufl.TestFunction(space_of("point", 1, element("DG", "point", 0), 0)) * ufl.dx


def custom_facets() -> ufl.Form:
    """Points of the author's own on facets of two kinds."""
    v = ufl.TestFunction(space_of("prism", 3, element("P", "prism", 1)))
    rule = {"quadrature_rule": "custom", "quadrature_points": [[0.3, 0.3]], "quadrature_weights": [0.5]}
    return v * ufl.ds(metadata=rule)


def vertex_form() -> ufl.Form:
    """An integral over vertices."""
    return ufl.TestFunction(space_of("triangle", 2, element("P", "triangle", 1))) * ufl.dP


def curved_volume() -> ufl.Form:
    """The volume of a curved cell."""
    space = space_of("triangle", 2, element("P", "triangle", 1), 2)
    return ufl.CellVolume(space.ufl_domain()) * ufl.TestFunction(space) * ufl.dx


def mixed_space_arguments() -> ufl.Form:
    """Arguments of a `MixedFunctionSpace`."""
    one = space_of("triangle", 2, element("P", "triangle", 1))
    space = ufl.MixedFunctionSpace(one, one)
    (v, q), (u, _) = ufl.TestFunctions(space), ufl.TrialFunctions(space)
    return (u * v + u * q) * ufl.dx


REFUSED = [
    (point_form, "elements on a `point`; use one of interval, triangle, tetrahedron, "
     "quadrilateral, hexahedron, prism, pyramid"),
    (custom_facets, "custom points on facets of a `prism`, which are of two kinds; give a degree instead"),
    (vertex_form, "integrals of type `vertex` (`dP`); use `dx`, `ds` or `dS`"),
    (curved_volume, "`CellVolume` on cells of `triangle` with a coordinate element of degree 2; "
     "pass it as a coefficient on a discontinuous space of degree 0"),
    (mixed_space_arguments, "several parts of a `MixedFunctionSpace` in one form; export the list "
     "that `ufl.extract_blocks(form)` returns"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_unsupported_forms_are_named(make: Any, message: str) -> None:
    """What is not there is refused with its name and with what to do instead."""
    with pytest.raises(UnsupportedForm) as caught:
        export_form(make())
    assert str(caught.value) == message


def test_blocks_of_a_form() -> None:
    """What a refused form of a `MixedFunctionSpace` is to be replaced by, is exported."""
    blocks = ufl.extract_blocks(mixed_space_arguments())
    document = export_form(blocks)
    assert [output["name"] for output in document["outputs"]] == ["y0", "y2"]
    assert len(document["integrals"]) == 1


def test_wrong_forms_are_named() -> None:
    """Mistakes of a form's author."""
    space = space_of("triangle", 2, element("P", "triangle", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    n = ufl.FacetNormal(space.ufl_domain())
    cases = [
        (ufl.sin(v) * ufl.dx, "`sin` of an argument is not linear in it; use a coefficient"),
        (v * v * ufl.dx, "product: argument 0 stands twice; a form is linear in each of its "
         "arguments; write a coefficient for one of them"),
        (u * v * ufl.dx + u * ufl.dx, "sum: found a term with an argument and one without; all "
         "terms of a form need the same arguments; split the form with `lhs` and `rhs`"),
        (complex_form(), "found `(1+2j)` in a form of real numbers; give `c128` or `c64` as `scalar`"),
        (ufl.dot(ufl.grad(u), n) * v("+") * ufl.dS, None),
        (u == v, None),
    ]  # fmt: skip
    for form, message in cases:
        with pytest.raises(FormError) as caught:
            export_form(form)
        if message is not None:
            assert str(caught.value) == message
    for scalar in ("int32", None, 3):
        with pytest.raises(FormError, match=f"scalar type `{scalar}`; needed one of `f64`, `f32`, `c128`, `c64`"):
            export_form(u * ufl.dx, scalar=scalar)
    for name in ("not a name", "", 3):
        with pytest.raises(FormError, match=f"names: found `{name}`, needed a letter or `_`"):
            export_form(u * v * ufl.dx, names={u: name})


def test_document_is_plain_json() -> None:
    """A document survives a round trip, with no key that the specification does not have."""
    document = export_form(SAMPLES[6]()[0], scalar="f32")
    assert json.loads(dumps(document)) == document
    assert document["scalar"] == "f32"
    assert set(document) == {
        "kingpost_form", "name", "cell", "gdim", "rank", "scalar", "spaces", "functions",
        "constants", "outputs", "integrals",
    }  # fmt: skip


def test_golden_files_are_current(tmp_path: Path) -> None:
    """The files that the Rust reader is tested with are what the exporter writes."""
    write(tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(path.name for path in GOLDEN.iterdir() if path.suffix == ".json")
    for name in names:
        fresh, kept = (json.loads((f / name).read_text()) for f in (tmp_path, GOLDEN))
        assert _close(fresh, kept), name


def _close(a: Any, b: Any) -> bool:
    """Equal, numbers to 1e-12: libraries of other machines round differently."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(_close, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-12 * max(1.0, abs(a))
    return bool(a == b)


def test_command_line(tmp_path: Path) -> None:
    """`python -m kingpost export` takes names from the script's variables."""
    script = tmp_path / "poisson.py"
    script.write_text(
        "import ufl\nfrom basix.ufl import element\n"
        "mesh = ufl.Mesh(element('P', 'triangle', 1, shape=(2,)))\n"
        "space = ufl.FunctionSpace(mesh, element('P', 'triangle', 2))\n"
        "temperature, kappa = ufl.Coefficient(space), ufl.Constant(mesh)\n"
        "v = ufl.TestFunction(space)\n"
        "F = kappa * ufl.inner(ufl.grad(temperature), ufl.grad(v)) * ufl.dx\n"
        "M = temperature * ufl.dx\n"
    )
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "kingpost", "export", str(script)]
    # from elsewhere, so that the installed package runs
    run = lambda *more: subprocess.run(  # noqa: E731
        [*command, *more], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    failed = run()
    assert failed.returncode == 1
    expected = (
        f"error: {script}: found the forms `F`, `M`, needed one; name it with `--form NAME`\n"
    )
    assert failed.stderr == expected
    assert run("--form", "F", "-o", str(out)).returncode == 0
    document = json.loads(out.read_text())
    assert document["name"] == "F"
    assert [f["name"] for f in document["functions"]] == ["x", "temperature"]
    assert [c["name"] for c in document["constants"]] == ["kappa"]


@pytest.mark.parametrize("kind, points", [("tetrahedron", (14, 11)), ("triangle", (6, 6))])
def test_a_scheme_is_that_of_measures_that_name_none(kind: str, points: tuple[int, int]) -> None:
    """Rules of one degree give one result of polynomials; facets that lack the rule keep the default one."""
    space = space_of(kind, 3 if kind == "tetrahedron" else 2, element("P", kind, 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    form = u * v * ufl.dx + u * v * ufl.ds + u * v * ufl.dx(scheme="Gauss-Jacobi", degree=4)
    plain, other = export_form(form), export_form(form, scheme="Xiao-Gimbutas")
    count = lambda document: [len(g["weights"]) for g in document["integrals"] if g["type"] == "cell"]  # noqa: E731
    assert points[0] in count(plain) and points[1] in count(other)
    collapsed = 3 ** (3 if kind == "tetrahedron" else 2)
    assert collapsed in count(plain) and collapsed in count(other), "the rule that a measure names"
    for one, same in zip(assembled(form), assembled(form, scheme="Xiao-Gimbutas"), strict=True):
        assert np.allclose(one, same, rtol=0, atol=EQUAL * abs(one).max())


def test_schemes_that_there_are_not() -> None:
    space = space_of("hexahedron", 3, element("Q", "hexahedron", 1))
    form = ufl.Coefficient(space) * ufl.TestFunction(space) * ufl.ds
    with pytest.raises(FormError, match="quadrature rule `fewest`: basix has no such rule"):
        export_form(form, scheme="fewest")
    on_cells = ufl.Coefficient(space) * ufl.TestFunction(space) * ufl.dx
    with pytest.raises(FormError, match="quadrature rule `Xiao-Gimbutas` of degree 5 on a hexahedron: "):
        export_form(on_cells, scheme="Xiao-Gimbutas")
