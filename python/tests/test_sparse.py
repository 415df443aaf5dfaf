"""Sparse matrices by rows against the evaluator's dense ones, and as SciPy takes them."""

from __future__ import annotations

import json
import sys
import types

import engine
import numpy as np
import kingpost
import pytest
import ufl
from basix.ufl import element, mixed_element
from kingpost import _kingpost
from kingpost.export import export_form
from write_samples import domain_of

# Sums of up to a few hundred terms in f64, in another order.
EQUAL = 1e-12


def forms():
    """Bilinear forms of one and of several parts, blocks, transforms and rectangular matrices."""
    triangle = domain_of("triangle", 2)
    p2 = ufl.FunctionSpace(triangle, element("P", "triangle", 2))
    u, v, c = ufl.TrialFunction(p2), ufl.TestFunction(p2), ufl.Coefficient(p2)
    diffusion = (1 + c**2) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx(degree=4)
    n = ufl.FacetNormal(triangle)
    dg = ufl.FunctionSpace(triangle, element("DG", "triangle", 1))
    p, q = ufl.TrialFunction(dg), ufl.TestFunction(dg)
    jumps = ufl.inner(ufl.jump(p, n), ufl.jump(q, n)) * ufl.dS + p * q * ufl.ds(2) + p * q * ufl.dx
    tetrahedron = domain_of("tetrahedron", 3)
    vector = ufl.FunctionSpace(tetrahedron, element("P", "tetrahedron", 1, shape=(3,)))
    a, b = ufl.TrialFunction(vector), ufl.TestFunction(vector)
    elasticity = ufl.inner(ufl.sym(ufl.grad(a)), ufl.sym(ufl.grad(b))) * ufl.dx
    divergence = ufl.div(a) * ufl.TestFunction(ufl.FunctionSpace(tetrahedron, element("P", "tetrahedron", 2))) * ufl.dx
    curls = ufl.FunctionSpace(tetrahedron, element("N1curl", "tetrahedron", 2))
    e, f = ufl.TrialFunction(curls), ufl.TestFunction(curls)
    curl_curl = (ufl.inner(ufl.curl(e), ufl.curl(f)) + ufl.inner(e, f)) * ufl.dx
    mixed = ufl.FunctionSpace(triangle, mixed_element([element("RT", "triangle", 1), element("DG", "triangle", 0)]))
    (s, w), (t, z) = ufl.TrialFunctions(mixed), ufl.TestFunctions(mixed)
    poisson = (ufl.inner(s, t) + w * ufl.div(t) + ufl.div(s) * z) * ufl.dx
    return {
        "diffusion": diffusion, "jumps": jumps, "elasticity": elasticity, "divergence": divergence,
        "curl_curl": curl_curl, "mixed_poisson": poisson,
    }  # fmt: skip


FORMS = forms()


def assembled(form, device="c", **options):
    """The operator, its matrix as an array, the evaluator's, and the raw matrix."""
    document = export_form(form)
    mesh, (expected,) = engine.problem(document, form, 5)
    op = kingpost.Operator(_kingpost.Form.json(json.dumps(document), None, "sparse"), device, None)
    given = engine.given(document, mesh)
    maps = {f"{space['name']}_dofs" for space in document["spaces"]}
    known = {a.name for a in op.arguments} | maps
    given = {name: value for name, value in given.items() if name in known}
    for part in op.parts:
        lists, _ = engine.listed(document, mesh, part)
        own = {a.name for a in part.compiled.arguments}
        lists = {name: value for name, value in lists.items() if name in own}
        given |= lists if len(op.parts) == 1 else {part.name: lists}
    csr = op.assemble(**given, **options)
    return op, csr, expected, given


def dense(csr, shape):
    """The matrix as an array; stored entries are counted once each."""
    found = np.zeros(shape)
    for row in range(shape[0]):
        columns = csr.indices[csr.indptr[row] : csr.indptr[row + 1]]
        assert np.all(np.diff(columns) > 0)  # ascending, none twice
        found[row, columns] = csr.data[csr.indptr[row] : csr.indptr[row + 1]]
    return found


@pytest.mark.parametrize("name", FORMS)
def test_entries_are_those_of_the_evaluator(name):
    _, csr, expected, _ = assembled(FORMS[name])
    assert len(csr.indptr) == expected.shape[0] + 1
    difference = np.abs(dense(csr, expected.shape) - expected).max()
    assert difference <= EQUAL * np.abs(expected).max()


@pytest.mark.parametrize("device", [d for d in kingpost.devices() if d.split(":")[0] == "opencl"][:1])
def test_opencl_adds_the_same(device):
    _, csr, expected, _ = assembled(FORMS["jumps"], device)
    assert np.abs(dense(csr, expected.shape) - expected).max() <= EQUAL * np.abs(expected).max()


def test_a_pattern_serves_several_assemblies():
    op, first, expected, given = assembled(FORMS["diffusion"])
    patterns = op.patterns(**given)
    (name,) = patterns
    assert patterns[name].shape == expected.shape
    again = op.assemble(patterns, **given)
    assert np.array_equal(again.data, first.data) and again.indices is patterns[name].indices
    coefficient = next(a.name for a in op.arguments if a.name.startswith("w"))
    zero = op.assemble(patterns, **{**given, coefficient: np.zeros_like(given[coefficient])})
    # without the coefficient the form is the Laplacian, whose rows sum to zero
    sums = np.add.reduceat(zero.data, zero.indptr[:-1])
    assert np.abs(sums).max() <= 1e-13 * np.abs(zero.data).max() and np.abs(first.data - zero.data).max() > 0.1


def test_empty_rows_are_kept():
    op, csr, expected, given = assembled(FORMS["diffusion"])
    n = expected.shape[0]
    wide = op.patterns((n + 2, n + 3), **given)
    (pattern,) = wide.values()
    assert pattern.shape == (n + 2, n + 3) and list(pattern.indptr[-3:]) == [len(csr.data)] * 3


def test_scipy_takes_it():
    sparse = pytest.importorskip("scipy.sparse", reason="skipped: SciPy is missing")
    _, csr, expected, _ = assembled(FORMS["mixed_poisson"])
    matrix = sparse.csr_matrix((csr.data, csr.indices, csr.indptr), expected.shape)
    assert matrix.has_canonical_format
    x = np.linspace(-1, 1, expected.shape[1])
    assert np.abs(matrix @ x - expected @ x).max() <= EQUAL * np.abs(expected).sum(axis=1).max()


class OnCard:
    """An array as CuPy has them, which is in fact on the host."""

    __cuda_array_interface__ = {"version": 3}

    def __init__(self, values):
        self.values = values

    def get(self):
        return self.values


def test_patterns_lie_beside_the_maps(monkeypatch):
    cupy = types.ModuleType("cupy")
    cupy.asarray = lambda values: values if isinstance(values, OnCard) else OnCard(values)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    op, csr, _, given = assembled(FORMS["diffusion"])
    moved = {name: OnCard(value) if name.endswith("_dofs") else value for name, value in given.items()}
    (pattern,), (expected,) = op.patterns(**moved).values(), op.patterns(**given).values()
    for found, plain in [(pattern.indptr, csr.indptr), (pattern.indices, csr.indices)]:
        assert isinstance(found, OnCard) and np.array_equal(found.values, plain)
    (name, places), (same, plain) = pattern.positions["cells"], expected.positions["cells"]
    assert name == same and isinstance(places, OnCard) and np.array_equal(places.values, plain)


def test_refusals():
    op, _, _, given = assembled(FORMS["diffusion"])
    document = export_form(FORMS["diffusion"])
    name = f"{document['spaces'][1]['name']}_dofs"
    without = {key: value for key, value in given.items() if key != name}
    with pytest.raises(kingpost.MissingArgument) as missing:
        op.assemble(**without)
    output = document["outputs"][0]["name"]
    assert str(missing.value) == f"argument `{name}` is missing, which the pattern of `{output}` follows from"
    with pytest.raises(kingpost.FormError) as small:
        op.assemble(op.patterns((2, 2), **given), **given)
    assert str(small.value).startswith("`map`: found row ") and "needed 0 to 1" in str(small.value)
    with pytest.raises(kingpost.FormError, match="a pattern of 1099511627776 rows would take"):
        _kingpost.csr_pattern(2**40, 2**40, [])
    with pytest.raises(kingpost.FormError) as rank:
        kingpost.jit(FORMS["diffusion"], matrix="dense")
    assert str(rank.value) == "matrix=`dense`: needed `cells`, `diagonal` or `sparse`"
    with pytest.raises(kingpost.FormError) as named:
        kingpost.jit("laplace", matrix="sparse")
    assert "is for bilinear forms, `laplace` is an action" in str(named.value)
    with pytest.raises(kingpost.FormError) as cells:
        kingpost.jit(FORMS["diffusion"]).assemble(**given)
    assert 'and `matrix="sparse"`' in str(cells.value)
