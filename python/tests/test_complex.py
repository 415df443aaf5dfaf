"""Complex forms: the exporter against FFCx's complex mode, the engine against the evaluator and by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import engine
import numpy as np
import kingpost
import pytest
import scipy.sparse
import ufl
from basix.ufl import element
from conftest import LONG
from oracle import OracleRefusal, compare
from kingpost.export import FormError, UnsupportedForm, export_form
from random_forms import random_form
from test_operator import square, stiffness
from write_samples import domain_of

DEVICES = [name for name in ("c", "opencl") if any(d.split(":")[0] == name for d in kingpost.devices())]
# Sums of up to a few hundred terms in f64, in another order.
EQUAL = 1e-12


def space_of(cell: str, e: Any) -> ufl.FunctionSpace:
    return ufl.FunctionSpace(domain_of(cell, {"triangle": 2, "tetrahedron": 3, "hexahedron": 3}[cell]), e)


def helmholtz(cell: str, rank: int) -> ufl.Form:
    """The Helmholtz operator with an impedance boundary, by a complex wave number and a complex impedance."""
    space = space_of(cell, element("P", cell, 2))
    u = ufl.TrialFunction(space) if rank == 2 else ufl.Coefficient(space)
    v, k, z = ufl.TestFunction(space), ufl.Constant(space.ufl_domain()), ufl.Constant(space.ufl_domain())
    inside = ufl.inner(ufl.grad(u), ufl.grad(v)) - k**2 * ufl.inner(u, v)
    return inside * ufl.dx - 1j * k * z * ufl.inner(u, v) * ufl.ds


def mass(cell: str) -> ufl.Form:
    """A mass action with a conjugate."""
    space = space_of(cell, element("P", cell, 2))
    u, v, k = ufl.Coefficient(space), ufl.TestFunction(space), ufl.Constant(space.ufl_domain())
    return k * ufl.inner(ufl.conj(u), v) * ufl.dx


def nonlinear(cell: str) -> ufl.Form:
    """A nonlinear expression of a complex coefficient: Kerr's medium, and functions of complex numbers."""
    space = space_of(cell, element("P", cell, 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    kerr = (1 + abs(u) ** 2) * u + ufl.exp(1j * u) / ufl.sqrt(2 + u)
    kerr += ufl.conditional(ufl.lt(ufl.real(u), ufl.imag(u)), ufl.conj(u), ufl.sin(u) * ufl.cos(u) + ufl.ln(3 + u))
    return ufl.inner(kerr, v) * ufl.dx(degree=4)


def curl_curl(rank: int) -> ufl.Form:
    """Maxwell's equations in Nedelec elements with a complex permittivity of its own space."""
    cell = "tetrahedron"
    space = space_of(cell, element("N1curl", cell, 2))
    epsilon = ufl.Coefficient(ufl.FunctionSpace(space.ufl_domain(), element("DG", cell, 0)))
    u = ufl.TrialFunction(space) if rank == 2 else ufl.Coefficient(space)
    v = ufl.TestFunction(space)
    return (ufl.inner(ufl.curl(u), ufl.curl(v)) - ufl.inner(epsilon * u, v)) * ufl.dx


def power(cell: str) -> ufl.Form:
    """A functional: the square of a norm, a moment, and what an impedance takes from a wave."""
    space = space_of(cell, element("P", cell, 2))
    u, z = ufl.Coefficient(space), ufl.Constant(space.ufl_domain())
    x = ufl.SpatialCoordinate(space.ufl_domain())
    return (ufl.inner(u, u) + x[0] * u) * ufl.dx + ufl.imag(z * abs(u) ** 2) * ufl.ds(degree=2)


def interior(cell: str) -> ufl.Form:
    """Jumps across facets."""
    space = space_of(cell, element("DG", cell, 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    k = ufl.Constant(space.ufl_domain())
    return k * ufl.inner(ufl.jump(u), ufl.jump(v)) * ufl.dS + ufl.inner(ufl.avg(u), ufl.avg(v)) * ufl.dS


def derived(cell: str) -> ufl.Form:
    """A Jacobian by UFL's derivative, of a residual that is holomorphic in its coefficient."""
    space = space_of(cell, element("P", cell, 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    residual = ufl.inner(u**3 + ufl.exp(1j * u), v) * ufl.dx(degree=4)
    return ufl.derivative(residual, u, ufl.TrialFunction(space))


FORMS: dict[str, Callable[[], ufl.Form]] = {
    "helmholtz": lambda: helmholtz("triangle", 1),
    "helmholtz_matrix": lambda: helmholtz("tetrahedron", 2),
    "helmholtz_hexahedra": lambda: helmholtz("hexahedron", 1),
    "mass": lambda: mass("tetrahedron"),
    "nonlinear": lambda: nonlinear("triangle"),
    "curl_curl": lambda: curl_curl(1),
    "curl_curl_matrix": lambda: curl_curl(2),
    "power": lambda: power("triangle"),
    "interior": lambda: interior("triangle"),
    "derived": lambda: derived("triangle"),
}


@pytest.mark.parametrize("name", FORMS)
def test_complex_forms_equal_ffcx(name: str) -> None:
    """The tabulated form has the local tensors of FFCx's complex mode."""
    pytest.importorskip("ffcx")
    form = FORMS[name]()
    assert compare(export_form(form, scalar="c128"), form, 1) <= EQUAL


def test_random_complex_forms_equal_ffcx() -> None:
    """Random forms of complex coefficients; seeds are printed on failure."""
    pytest.importorskip("ffcx")
    compared = 0
    for seed in range(60 if LONG else 8):
        drawn = random_form(seed, is_complex=True)
        try:
            difference = compare(export_form(drawn.form, scalar="c128"), drawn.form, seed)
        except OracleRefusal:
            continue
        assert difference <= EQUAL, f"seed {seed}: {drawn.title}: {difference}"
        compared += 1
    assert compared >= (40 if LONG else 5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", FORMS)
def test_the_engine_computes_complex_forms(name: str, device: str) -> None:
    """The default mapping gives the evaluator's results."""
    form = FORMS[name]()
    found = engine.check(export_form(form, scalar="c128"), form, [device], 2)[device]
    assert found.difference is not None, found.reason
    assert found.difference <= EQUAL


@pytest.mark.parametrize("seed", range(20 if LONG else 4))
def test_random_complex_forms_in_c(seed: int) -> None:
    drawn = random_form(100 + seed, is_complex=True)
    found = engine.check(export_form(drawn.form, scalar="c128"), drawn.form, ["c"], seed)["c"]
    if found.difference is None and "no data" in found.reason:
        return
    assert found.difference is not None, f"{drawn.title}: {found.reason}"
    assert found.difference <= EQUAL, drawn.title


#: Mappings that a tuner does not propose for a processor, or not for these forms.
MAPPINGS: list[dict[str, Any]] = [
    {"strategy": "sequential"},
    {"strategy": "single_cell", "cells": 4},
    {"strategy": "straight_cells", "cells": 4},
    {"strategy": "factorised_cells", "cells": 2},
    {"strategy": "modes", "then": {"strategy": "point_tiles", "cells": 4, "sums": 4}},
    {"strategy": "summed_cells", "cells": 4, "constant_tables": True},
    {"strategy": "loop_lanes", "lanes": 4},
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["mass", "helmholtz_hexahedra", "power", "curl_curl_matrix"])
def test_a_mapping_is_right_or_refused(name: str, device: str) -> None:
    """Of what a tuner tries, and of the rest, at least one is right besides one cell a work-item."""
    form = FORMS[name]()
    document = export_form(form, scalar="c128")
    mesh, expected = engine.problem(document, form, 4)
    parts = engine.kernels(json.dumps(document))
    tried = [*map(json.loads, parts[0].candidates(device)), *MAPPINGS]
    right, refused = [], []
    few = device != "c" or name in ("curl_curl_matrix", "helmholtz_hexahedra")  # what takes long to compile
    for mapping in tried[:: 3 if few and not LONG else 1]:
        try:
            op = kingpost.Operator(parts, device, json.dumps(mapping))
        except (kingpost.MappingError, kingpost.Refusal, kingpost.CodegenError) as error:
            refused.append((mapping, str(error)))
            continue
        found = engine.results_of(document, mesh, op)
        assert engine.difference(document, mesh, expected, found) <= EQUAL, mapping
        right.append(mapping)
    assert len(right) >= 2, refused


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("scalar", ["complex64", "complex128"])
def test_helmholtz_by_hand(device: str, scalar: str) -> None:
    """P1: matrix, diagonal and action are those of NumPy; the action conjugates no coefficient."""
    space = space_of("triangle", element("P", "triangle", 1))
    u, v, k = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.Constant(space.ufl_domain())
    f = ufl.Coefficient(space)
    form = (ufl.inner(ufl.grad(u), ufl.grad(v)) - k**2 * ufl.inner(u, v)) * ufl.dx
    x, cells = square(3)
    number = 1.5 - 0.75j
    area = 0.5 / 9
    local = area / 12 * (np.ones((3, 3)) + np.eye(3))
    matrix = stiffness(x, cells).astype(complex)
    for cell in cells:
        matrix[np.ix_(cell, cell)] -= number**2 * local
    real = np.dtype(scalar).type(0).real.dtype
    given = {"x": x.astype(real), "x_dofs": cells, "p1_dofs": cells, "k": number}
    # of numbers of order 1 in the type
    limit = 20 * float(np.finfo(scalar).eps)

    options = {"scalar": scalar, "names": {k: "k"}}
    csr = kingpost.jit(form, device, matrix="sparse", **options).assemble(**given)
    assert csr.data.dtype == scalar
    found = scipy.sparse.csr_matrix((csr.data, csr.indices, csr.indptr)).toarray()
    assert abs(found - matrix).max() <= limit * abs(matrix).max()

    diagonal = np.zeros(len(x), scalar)
    op = kingpost.jit(form, device, matrix="diagonal", **options)
    op(diagonal, **{name: value for name, value in given.items() if name in {a.name for a in op.arguments}})
    assert abs(diagonal - matrix.diagonal()).max() <= limit * abs(matrix).max()

    rng = np.random.default_rng(7)
    values = (rng.standard_normal(len(x)) + 1j * rng.standard_normal(len(x))).astype(scalar)
    y = np.full(len(x), 1 + 2j, scalar)
    action = kingpost.jit(ufl.action(form, f), device, names={k: "k", f: "f"}, scalar=scalar)
    action(y, f=values, **given)
    assert abs(y - (1 + 2j) - matrix @ values).max() <= limit * abs(matrix).sum(1).max()


def test_what_is_real_stays_real() -> None:
    """Positions, geometry, tables and the factors of a real form take no complex arithmetic."""
    space = space_of("triangle", element("P", "triangle", 2))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    op = kingpost.jit(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, scalar="c128", mapping={"strategy": "sequential"})
    text = str(op.kernel)
    complex_lines = [line for line in text.splitlines() if "c128" in line]
    assert complex_lines == [
        "arg y: c128[n_cells, 6, 6] inout",
        "temp y_cell: c128[6, 6] private",
    ]
    assert "temp row: f64" in text and "arg x: f64[n_x, 2] in" in text


def test_a_constant_with_components_is_complex() -> None:
    space = space_of("triangle", element("P", "triangle", 1))
    v, k = ufl.TestFunction(space), ufl.Constant(space.ufl_domain(), shape=(2,))
    op = kingpost.jit(ufl.inner(k[0] + 1j * k[1], v) * ufl.dx, scalar="c128", names={k: "k"})
    x, cells = square(2)
    y = np.zeros(len(x), complex)
    op(y, k=np.array([1 + 1j, 2.0]), x=x, x_dofs=cells, p1_dofs=cells)
    assert abs(y.sum() - (1 + 3j)) <= 1e-14


def refused() -> list[tuple[ufl.Form, type, str]]:
    space = space_of("triangle", element("P", "triangle", 1))
    u, w, v = ufl.TrialFunction(space), ufl.Coefficient(space), ufl.TestFunction(space)
    linear = "; test functions are conjugated, as `inner(f, v)` does, and trial functions are not"
    return [
        (w * v * ufl.dx, FormError,
         "complex form: Failure to conjugate test function in complex Form" + linear),
        (ufl.conj(u) * ufl.conj(v) * ufl.dx, FormError,
         "complex form: Argument v_1 is spuriously conjugated in complex Form" + linear),
        (ufl.inner(ufl.conditional(ufl.lt(w, 1), w, 0), v) * ufl.dx, FormError,
         "complex form: Ordering undefined for complex values. Compare `real`, `imag` or `abs` of them"),
        (ufl.inner(ufl.tan(w), v) * ufl.dx, UnsupportedForm,
         "`tan(f)` of a complex number, which has `abs`, `cos`, `exp`, `ln`, `sin`, `sqrt`; take `real` of it, or "
         "write it by these"),
        (ufl.inner(ufl.bessel_J(0, w), v) * ufl.dx, UnsupportedForm,
         "of a complex number, which has `abs`"),
    ]  # fmt: skip


@pytest.mark.parametrize("place", range(5))
def test_what_complex_forms_do_not_have_is_named(place: int) -> None:
    form, kind, message = refused()[place]
    with pytest.raises(kind) as caught:
        export_form(form, scalar="c128")
    names = [str(one) for one in form.coefficients()]
    assert message in str(caught.value).replace(names[0] if names else "none", "f")


def test_the_engine_refuses_what_complex_numbers_do_not_have() -> None:
    """A document of another front end is refused as a form, and not as a kernel."""
    space = space_of("triangle", element("P", "triangle", 1))
    w, v = ufl.Coefficient(space), ufl.TestFunction(space)
    document = export_form(ufl.inner(ufl.sin(w), v) * ufl.dx(degree=2), scalar="c128")
    text = json.dumps(document)
    assert '["math", "sin"' in text
    cases = [
        ('["math", "tan"', "c128", "`tan` needs real arguments, found c128; take the real part"),
        ('["math", "sign"', "c128", "needs real operands"),
        ('["math", "real"', "f64", None),
    ]
    for node, scalar, message in cases:
        changed = json.dumps({**document, "scalar": scalar}).replace('["math", "sin"', node)
        if message is None:
            kingpost.jit(changed)
            continue
        with pytest.raises(kingpost.FormError, match=message):
            kingpost.jit(changed)
    literal = '["math", "complex", 0, 0], ["math", "sin"'
    with pytest.raises(kingpost.FormError, match="found a complex number in a form of `f64`, needed real operations"):
        kingpost.jit(json.dumps({**document, "scalar": "f64"}).replace('["math", "sin"', literal, 1))


def test_wrong_numbers_are_refused() -> None:
    space = space_of("triangle", element("P", "triangle", 1))
    w, v, k = ufl.Coefficient(space), ufl.TestFunction(space), ufl.Constant(space.ufl_domain())
    x, cells = square(2)
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells}
    real = kingpost.jit(k * ufl.inner(w, v) * ufl.dx, names={k: "k", w: "w"})
    with pytest.raises(kingpost.errors.DtypeError, match="`k`"):
        real(np.zeros(9), w=np.ones(9), k=1j, **given)
    of_complex = kingpost.jit(k * ufl.inner(w, v) * ufl.dx, names={k: "k", w: "w"}, scalar="c128")
    with pytest.raises(kingpost.errors.DtypeError, match="`w`"):
        of_complex(np.zeros(9, complex), w=np.ones(9), k=1j, **given)
    y = np.zeros(9, complex)
    of_complex(y, w=np.ones(9, complex), k=2.0, **given)  # a real number is a complex one
    assert abs(y.sum() - 2) <= 1e-14
