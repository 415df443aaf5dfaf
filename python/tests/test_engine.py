"""The engine's kernels of exported forms against the evaluator; `write_ufl_kernels.py` runs more."""

from __future__ import annotations

import engine
import numpy as np
import kingpost
import pytest
import ufl
from basix.ufl import element
from kingpost.export import export_form
from random_forms import random_form
from write_samples import domain_of

DEVICES = [name for name in ("c", "opencl") if any(d.split(":")[0] == name for d in kingpost.devices())]
# Sums of up to a few hundred terms in f64, in another order.
EQUAL = 1e-12

# Together: all ranks, subdomains of cells and facets, a derivative, a quadrature element, a
# curved surface, a line, transforms on both sides of local matrices.
SEEDS = (0, 9, 12, 14, 17)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_forms_in_c(seed: int) -> None:
    """The default mapping gives the evaluator's results."""
    drawn = random_form(seed)
    found = engine.check(export_form(drawn.form), drawn.form, ["c"], seed)["c"]
    assert found.difference is not None, found.reason
    assert found.difference <= EQUAL, drawn.title


@pytest.mark.parametrize("device", DEVICES)
def test_a_nonlinear_form_on_all_entities(device: str) -> None:
    """Cells, tagged exterior and interior facets of one residual."""
    space = ufl.FunctionSpace(domain_of("triangle", 2), element("DG", "triangle", 2))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    form = (
        ufl.exp(u) * v * ufl.dx(degree=4) + u**2 * v * ufl.ds(1)
        + ufl.jump(u) * ufl.jump(v) * ufl.dS + ufl.sin(u) * v * ufl.dx(2, degree=3)
    )  # fmt: skip
    found = engine.check(export_form(form), form, [device], 3)[device]
    assert found.difference is not None, found.reason
    assert found.difference <= EQUAL


def test_a_difference_is_found() -> None:
    """The comparison sees a kernel of another form."""
    space = ufl.FunctionSpace(domain_of("triangle", 2), element("P", "triangle", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    document = export_form(u * v * ufl.dx)
    mesh, expected = engine.problem(document, u * v * ufl.dx, 1)
    op = kingpost.jit(1.001 * u * v * ufl.dx)
    found = engine.difference(document, mesh, expected, engine.results_of(document, mesh, op))
    # every entry is larger by a thousandth
    assert np.isclose(found, 1e-3, rtol=1e-9)


def test_what_the_engine_lacks_is_named() -> None:
    """A refusal is an outcome with its reason."""
    space = ufl.FunctionSpace(domain_of("triangle", 2), element("P", "triangle", 1))
    form = ufl.bessel_I(1, ufl.Coefficient(space)) * ufl.TestFunction(space) * ufl.dx(degree=2)
    found = engine.check(export_form(form), form, ["c"], 1)["c"]
    reason = (
        "FormError: `bessel_I` of order 1: found a modified Bessel function, which neither C nor CUDA has for "
        "every order, needed `bessel_J` or `bessel_Y`; interpolate it into a coefficient"
    )
    assert found == engine.Outcome(None, reason)


def test_bessel_functions_agree_with_the_evaluator() -> None:
    """C has them for every whole order; OpenCL has none, and the refusal names the function."""
    space = ufl.FunctionSpace(domain_of("triangle", 2), element("P", "triangle", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    form = (ufl.bessel_J(3, u) + ufl.bessel_Y(0, 2 + u**2)) * v * ufl.dx(degree=2)
    form += ufl.derivative(ufl.bessel_J(0, u) * ufl.dx(degree=2), u, v)
    outcomes = engine.check(export_form(form), form, ["c", "opencl"], 1)
    assert outcomes["c"].difference is not None, outcomes["c"].reason
    assert outcomes["c"].difference <= EQUAL
    assert "`bessel_" in outcomes["opencl"].reason
    assert "is no function of opencl devices, needed one of c and cuda" in outcomes["opencl"].reason
