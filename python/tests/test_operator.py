"""Forms as functions on arrays."""

import json
from pathlib import Path

import numpy as np
import pytest

import purlin

DEVICES = [name for name in ("c", "opencl") if any(d.split(":")[0] == name for d in purlin.devices())]


def square(n):
    """A unit square in 2 n² triangles: vertices and cells, with P1's numbering."""
    x = np.array([(i / n, j / n) for j in range(n + 1) for i in range(n + 1)])
    corner = np.array([j * (n + 1) + i for j in range(n) for i in range(n)])
    lower = np.stack([corner, corner + 1, corner + n + 2], axis=1)
    upper = np.stack([corner, corner + n + 2, corner + n + 1], axis=1)
    return x, np.concatenate([lower, upper]).astype(np.int32)


def stiffness(x, cells):
    """The stiffness matrix of P1, cell by cell."""
    matrix = np.zeros((len(x), len(x)))
    for cell in cells:
        jacobian = np.stack([x[cell[1]] - x[cell[0]], x[cell[2]] - x[cell[0]]], axis=1)
        gradients = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]]) @ np.linalg.inv(jacobian)
        matrix[np.ix_(cell, cell)] += 0.5 * abs(np.linalg.det(jacobian)) * gradients @ gradients.T
    return matrix


def arrays(op, n=4):
    """The arguments of a P1 operator on the unit square by name, and the expected action."""
    x, cells = square(n)
    u = np.random.default_rng(5).standard_normal(len(x))
    given = {}
    for argument in op.arguments:
        if argument.kind == "array" and not argument.is_written:
            dtype, width = argument.dtype, argument.shape[-1]
            given[argument.name] = cells if dtype == "i32" else (x if width == "2" else u)
    return given, stiffness(x, cells) @ u


@pytest.mark.parametrize("device", DEVICES)
def test_an_operator_adds_its_action(device):
    op = purlin.jit("laplace", device, dim=2, degree=1)
    given, expected = arrays(op)
    y = np.ones_like(expected)
    op(y, **given)
    assert np.allclose(y, 1 + expected, rtol=0, atol=1e-13)  # sums of at most 18 products in f64


def test_an_operator_is_made_once():
    op = purlin.jit("laplace", "c", degree=1)
    assert purlin.jit("laplace", "c", degree=1) is op
    assert purlin.jit("laplace", "c", degree=2) is not op
    mapped = purlin.jit("laplace", "c", degree=1, mapping={"strategy": "single_cell", "cells": 8})
    assert mapped is not op and mapped.mapping == {"strategy": "single_cell", "cells": 8}
    assert "factor: 8" in mapped.recipe
    assert mapped.steps()[-1].kernel == mapped.kernel == mapped.schedule.kernel
    assert repr(mapped).endswith("for c, single cell, 8 a group>")
    assert "laplace" in mapped.source and "laplace" in mapped._repr_html_()


def test_tuning_keeps_the_fastest_right_mapping():
    op = purlin.jit("mass", "c", degree=1, mapping={"strategy": "single_cell", "cells": 16})
    given, _ = arrays(op)
    y = np.zeros(25)
    trials = op.tune(y, **given)
    assert not y.any(), "outputs are left alone"
    timed = {str(t.mapping): t.seconds for t in trials if t.seconds is not None}
    assert len(timed) >= 2
    assert op.mapping in [t.mapping for t in trials]
    assert timed[str(op.mapping)] == min(timed.values())


def test_a_roofline_is_a_picture():
    op = purlin.jit("laplace", "c", degree=1)
    given, expected = arrays(op)
    found = op.roofline(np.zeros_like(expected), **given)
    assert found.flops > 32 * 20 and found._repr_svg_().startswith("<svg")


LOWERED_ANEW = [
    {"strategy": "orbits", "then": {"strategy": "straight_cells", "cells": 64}},
    {"strategy": "orbits", "points": True, "then": {"strategy": "straight_cells", "cells": 32}},
    {"strategy": "rules", "scheme": "xiao_gimbutas", "then": {"strategy": "single_cell", "cells": 8}},
]


@pytest.mark.parametrize("mapping", LOWERED_ANEW, ids=["orbits", "points", "rules"])
def test_mappings_that_lower_the_form_anew_are_compiled_and_replay(mapping):
    op = purlin.jit("laplace", "c", degree=1, mapping=mapping)
    given, expected = arrays(op)
    y = np.zeros_like(expected)
    op(y, **given)
    assert np.allclose(y, expected, rtol=0, atol=1e-13)  # sums of at most 18 products in f64
    start = op.schedule.start
    assert op.recipe.startswith("lowering ")
    for recipe in (op.recipe, op.schedule.recipe_json):
        again = purlin.Schedule(start).run(recipe)
        assert again.kernel == op.kernel and again.recipe == op.recipe
    assert purlin.Schedule.parse(str(op.schedule)).kernel == op.kernel
    assert op.steps()[-1].kernel == op.kernel


def test_a_recipe_for_another_kernel_says_what_it_starts_from():
    op = purlin.jit("laplace", "c", degree=2, mapping=LOWERED_ANEW[0])
    own = purlin.jit("laplace", "c", degree=2, mapping={"strategy": "sequential"}).kernel
    for recipe in (op.recipe, op.schedule.recipe_json):
        with pytest.raises(purlin.Refusal, match="starts from a form that is lowered with `symmetric_directions`"):
            purlin.Schedule(own).run(recipe)


def test_wrong_forms_are_refused():
    with pytest.raises(purlin.FormError, match="^no operator `laplac`; there are `mass`"):
        purlin.jit("laplac")
    with pytest.raises(purlin.FormError, match="a int, needed a form of UFL, its JSON .* or one of"):
        purlin.jit(3)
    with pytest.raises(purlin.MappingError, match="unknown variant `fast`"):
        purlin.jit("laplace", mapping={"strategy": "fast"})
    op = purlin.jit("laplace")
    with pytest.raises(purlin.FormError, match="2 arrays by position, needed at most 1: the results `y`"):
        op(np.zeros(2), np.zeros(2))


SAMPLES = Path(__file__).parents[2] / "crates" / "forms" / "tests" / "tabulated"


def inputs(op, check):
    """The arguments of a form on the mesh of its sample, each part's facets under its name."""
    arrays = {name: np.array(values) for name, values in check["arrays"].items()}
    given = {name: values[:, 0] if values.shape[1:] == (1,) else values for name, values in arrays.items()}
    given |= {f"{name}_dofs": np.array(values, dtype=np.int32) for name, values in check["maps"].items()}
    given |= {name: values[0] for name, values in check["constants"].items()}
    known = {a.name for a in op.arguments}
    given = {name: value for name, value in given.items() if name in known}
    for part in op.parts:
        kind, _, tags = part.name.partition("_facets")
        if tags or "facets" in part.name:
            facets = check["facets"][f"{kind}_facet"]
            chosen = [k for k, tag in enumerate(facets["tags"]) if not tags or tag == int(tags[1:])]
            own = {a.name for a in part.compiled.arguments}
            given[part.name] = {
                name: np.array(facets[name], dtype=np.int32)[chosen] for name in sorted(own & facets.keys())
            }
    return given


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["vector_mass", "hyperelasticity", "interior_penalty", "energy"])
def test_imported_forms_give_the_results_of_ffcx(name, device):
    check = json.loads((SAMPLES / f"{name}.check.json").read_text())
    op = purlin.jit(SAMPLES / f"{name}.json", device)
    expected = np.array(check["results"]["y"])
    shape = [a.shape for a in op.arguments if a.name == "y"][0]
    y = np.zeros(expected.size).reshape(-1, *map(int, shape[1:]))
    op(y, **inputs(op, check))
    # sums of some hundred products in f64
    assert abs(y.ravel() - expected.ravel()).max() <= 1e-12 * abs(expected).max()


def test_a_form_of_ufl_is_exported_and_compiled():
    basix_ufl = pytest.importorskip("basix.ufl")
    ufl = pytest.importorskip("ufl")
    mesh = ufl.Mesh(basix_ufl.element("Lagrange", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(mesh, basix_ufl.element("Lagrange", "triangle", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    op = purlin.jit(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx)
    x, cells = square(4)
    values = np.random.default_rng(6).standard_normal(len(x))
    y = np.zeros(len(x))
    maps = {a.name: cells for a in op.arguments if a.dtype == "i32" and a.kind == "array"}
    op(y, x=x, w0=values, **maps)
    assert np.allclose(y, stiffness(x, cells) @ values, rtol=0, atol=1e-13)
    with pytest.raises(purlin.UnknownArgument, match="the form takes no argument `w1`; it takes `n_cells`"):
        op(y, x=x, w1=values, **maps)
    with pytest.raises(purlin.FormError, match="prism"):
        prism = ufl.Mesh(basix_ufl.element("Lagrange", "prism", 1, shape=(3,)))
        purlin.jit(ufl.TestFunction(ufl.FunctionSpace(prism, basix_ufl.element("Lagrange", "prism", 1))) * ufl.dx)


@pytest.mark.parametrize("device", DEVICES)
def test_vectors_of_cells_go_in_and_out(device):
    basix_ufl = pytest.importorskip("basix.ufl")
    ufl = pytest.importorskip("ufl")
    mesh = ufl.Mesh(basix_ufl.element("Lagrange", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(mesh, basix_ufl.element("Lagrange", "triangle", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    form = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx
    x, cells = square(4)
    values = np.random.default_rng(7).standard_normal(len(x))
    expected = stiffness(x, cells) @ values

    op = purlin.jit(form, device, vector="cells", cell_values=["w0"])
    maps = {a.name: cells for a in op.arguments if a.dtype == "i32" and a.kind == "array"}
    assert list(maps) == ["x_dofs"]
    y = np.full((len(cells), 3), np.nan)  # overwritten
    op(y, x=x, w0=values[cells], **maps)
    assembled = np.zeros(len(x))
    np.add.at(assembled, cells, y)
    assert np.allclose(assembled, expected, rtol=0, atol=1e-13)

    # in alone: the result is that of the mesh
    op = purlin.jit(form, device, cell_values=iter(["w0"]))
    maps = {a.name: cells for a in op.arguments if a.dtype == "i32" and a.kind == "array"}
    y = np.ones(len(x))
    op(y, x=x, w0=values[cells], **maps)
    assert np.allclose(y, 1 + expected, rtol=0, atol=1e-13)
    with pytest.raises(purlin.errors.ShapeError, match="w0"):
        op(y, x=x, w0=values, **maps)


def test_vectors_of_cells_that_a_form_does_not_have_are_refused():
    sample = SAMPLES / "vector_mass.json"
    with pytest.raises(purlin.FormError, match="values of `w7` cell by cell: found no coefficient of this name"):
        purlin.jit(sample, cell_values=["w7"])
    with pytest.raises(purlin.FormError, match="vector=`facets`: needed `assembled` or `cells`"):
        purlin.jit(sample, vector="facets")
    with pytest.raises(purlin.FormError, match="vector=`cells` is for linear forms, found a functional"):
        purlin.jit(SAMPLES / "energy.json", vector="cells")
    with pytest.raises(purlin.FormError, match="`laplace` has vectors of the mesh alone"):
        purlin.jit("laplace", vector="cells")


def test_positions_in_one_dimension_have_one_axis_or_two():
    basix_ufl = pytest.importorskip("basix.ufl")
    ufl = pytest.importorskip("ufl")
    mesh = ufl.Mesh(basix_ufl.element("Lagrange", "interval", 1, shape=(1,)))
    space = ufl.FunctionSpace(mesh, basix_ufl.element("Lagrange", "interval", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    op = purlin.jit(u * v * ufl.dx)
    x = np.array([0.0, 0.25, 1.0])
    cells = np.array([[0, 1], [1, 2]], dtype=np.int32)
    fields = {a.name: np.ones(3) for a in op.arguments if a.kind == "array" and a.dtype == "f64"}
    fields |= {a.name: cells for a in op.arguments if a.kind == "array" and a.dtype == "i32"}
    results = []
    # a column of a wider array has strides of its own, and is refused
    for positions in (x, x[:, None], np.stack([x, x], axis=1)[:, :1]):
        y = np.zeros(3)
        given = {name: value for name, value in fields.items() if name not in ("y", "x")}
        try:
            op(y, x=positions, **given)
        except purlin.errors.LayoutError as error:
            results.append(error.argument)
        else:
            results.append(y.tolist())
    assert results[0] == results[1] and results[2] == "x"
    assert np.allclose(results[0], [0.125, 0.5, 0.375], rtol=1e-15, atol=0)  # sums of four products


def test_an_operator_says_where_its_mapping_is_known_from(tmp_path):
    sample = SAMPLES / "vector_mass.json"
    op = purlin.jit(sample)
    tiles = op.mapping["then"]
    assert op.mapping == {"strategy": "modes", "then": tiles}
    # a vector of the processor, and half of its registers
    cells, sums = tiles["cells"], tiles["sums"]
    assert tiles == {"strategy": "point_tiles", "cells": cells, "sums": sums} and cells in (2, 4, 8)
    reason = (
        f"modes, tiles of points, {cells} cells a group, {sums} sums, constant tables (a vector of cells, modes "
        "instead of quadrature points; `purlin tune` may find a better one)"
    )
    assert op.mapping_reason == reason
    given = purlin.jit(sample, mapping={"strategy": "single_cell", "cells": 4})
    assert given.mapping_reason == "single cell, 4 a group"
    # a file that cannot be read is no empty one
    with pytest.raises(purlin.errors.MappingError, match="cannot read"):
        purlin.jit(sample, trials=tmp_path)
