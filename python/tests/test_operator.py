"""Forms as functions on arrays."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import kingpost

DEVICES = [name for name in ("c", "opencl") if any(d.split(":")[0] == name for d in kingpost.devices())]


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
    op = kingpost.jit("laplace", device, dim=2, degree=1)
    given, expected = arrays(op)
    y = np.ones_like(expected)
    op(y, **given)
    assert np.allclose(y, 1 + expected, rtol=0, atol=1e-13)  # sums of at most 18 products in f64


def test_an_operator_is_made_once():
    op = kingpost.jit("laplace", "c", degree=1)
    assert kingpost.jit("laplace", "c", degree=1) is op
    assert kingpost.jit("laplace", "c", degree=2) is not op
    mapped = kingpost.jit("laplace", "c", degree=1, mapping={"strategy": "single_cell", "cells": 8})
    assert mapped is not op and mapped.mapping == {"strategy": "single_cell", "cells": 8}
    assert "factor: 8" in mapped.recipe
    assert mapped.steps()[-1].kernel == mapped.kernel == mapped.schedule.kernel
    assert repr(mapped).endswith("for c, single cell, 8 a group>")
    assert "laplace" in mapped.source and "laplace" in mapped._repr_html_()


def test_tuning_keeps_the_fastest_right_mapping():
    op = kingpost.jit("mass", "c", degree=1, mapping={"strategy": "single_cell", "cells": 16})
    given, _ = arrays(op)
    y = np.zeros(25)
    trials = op.tune(y, **given)
    assert not y.any(), "outputs are left alone"
    timed = {str(t.mapping): t.seconds for t in trials if t.seconds is not None}
    assert len(timed) >= 2
    assert op.mapping in [t.mapping for t in trials]
    assert timed[str(op.mapping)] == min(timed.values())


def test_a_roofline_is_a_picture():
    op = kingpost.jit("laplace", "c", degree=1)
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
    op = kingpost.jit("laplace", "c", degree=1, mapping=mapping)
    given, expected = arrays(op)
    y = np.zeros_like(expected)
    op(y, **given)
    assert np.allclose(y, expected, rtol=0, atol=1e-13)  # sums of at most 18 products in f64
    start = op.schedule.start
    assert op.recipe.startswith("lowering ")
    for recipe in (op.recipe, op.schedule.recipe_json):
        again = kingpost.Schedule(start).run(recipe)
        assert again.kernel == op.kernel and again.recipe == op.recipe
    assert kingpost.Schedule.parse(str(op.schedule)).kernel == op.kernel
    assert op.steps()[-1].kernel == op.kernel


def test_a_recipe_for_another_kernel_says_what_it_starts_from():
    op = kingpost.jit("laplace", "c", degree=2, mapping=LOWERED_ANEW[0])
    own = kingpost.jit("laplace", "c", degree=2, mapping={"strategy": "sequential"}).kernel
    for recipe in (op.recipe, op.schedule.recipe_json):
        with pytest.raises(kingpost.Refusal, match="starts from a form that is lowered with `symmetric_directions`"):
            kingpost.Schedule(own).run(recipe)


def test_wrong_forms_are_refused():
    with pytest.raises(kingpost.FormError, match="^no operator `laplac`; there are `mass`"):
        kingpost.jit("laplac")
    with pytest.raises(kingpost.FormError, match="a int, needed a form of UFL, its JSON .* or one of"):
        kingpost.jit(3)
    with pytest.raises(kingpost.MappingError, match="there is no strategy `fast`"):
        kingpost.jit("laplace", mapping={"strategy": "fast"})
    for wrong in ("2", 1.5, -1, None):
        with pytest.raises(kingpost.FormError, match=f"degree is {wrong!r}, needed a positive integer"):
            kingpost.jit("laplace", degree=wrong)
    op = kingpost.jit("laplace")
    with pytest.raises(kingpost.FormError, match="2 arrays by position, needed at most 1: the results `y`"):
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
    op = kingpost.jit(SAMPLES / f"{name}.json", device)
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
    op = kingpost.jit(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx)
    x, cells = square(4)
    values = np.random.default_rng(6).standard_normal(len(x))
    y = np.zeros(len(x))
    maps = {a.name: cells for a in op.arguments if a.dtype == "i32" and a.kind == "array"}
    op(y, x=x, w0=values, **maps)
    assert np.allclose(y, stiffness(x, cells) @ values, rtol=0, atol=1e-13)
    with pytest.raises(kingpost.UnknownArgument, match="the form takes no argument `w1`; it takes `n_cells`"):
        op(y, x=x, w1=values, **maps)
    with pytest.raises(kingpost.FormError, match="integrals of type `vertex`"):
        kingpost.jit(v * ufl.dP)


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

    op = kingpost.jit(form, device, vector="cells", cell_values=["w0"])
    maps = {a.name: cells for a in op.arguments if a.dtype == "i32" and a.kind == "array"}
    assert list(maps) == ["x_dofs"]
    y = np.full((len(cells), 3), np.nan)  # overwritten
    op(y, x=x, w0=values[cells], **maps)
    assembled = np.zeros(len(x))
    np.add.at(assembled, cells, y)
    assert np.allclose(assembled, expected, rtol=0, atol=1e-13)

    # in alone: the result is that of the mesh
    op = kingpost.jit(form, device, cell_values=iter(["w0"]))
    maps = {a.name: cells for a in op.arguments if a.dtype == "i32" and a.kind == "array"}
    y = np.ones(len(x))
    op(y, x=x, w0=values[cells], **maps)
    assert np.allclose(y, 1 + expected, rtol=0, atol=1e-13)
    with pytest.raises(kingpost.errors.ShapeError, match="w0"):
        op(y, x=x, w0=values, **maps)


def test_vectors_of_cells_that_a_form_does_not_have_are_refused():
    sample = SAMPLES / "vector_mass.json"
    with pytest.raises(kingpost.FormError, match="values of `w7` cell by cell: found no coefficient of this name"):
        kingpost.jit(sample, cell_values=["w7"])
    with pytest.raises(kingpost.FormError, match="vector=`facets`: needed `assembled` or `cells`"):
        kingpost.jit(sample, vector="facets")
    with pytest.raises(kingpost.FormError, match="vector=`cells` is for linear forms, found a functional"):
        kingpost.jit(SAMPLES / "energy.json", vector="cells")
    with pytest.raises(kingpost.FormError, match="`laplace` has vectors of the mesh alone"):
        kingpost.jit("laplace", vector="cells")


def test_positions_in_one_dimension_have_one_axis_or_two():
    basix_ufl = pytest.importorskip("basix.ufl")
    ufl = pytest.importorskip("ufl")
    mesh = ufl.Mesh(basix_ufl.element("Lagrange", "interval", 1, shape=(1,)))
    space = ufl.FunctionSpace(mesh, basix_ufl.element("Lagrange", "interval", 1))
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    op = kingpost.jit(u * v * ufl.dx)
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
        except kingpost.errors.LayoutError as error:
            results.append(error.argument)
        else:
            results.append(y.tolist())
    assert results[0] == results[1] and results[2] == "x"
    assert np.allclose(results[0], [0.125, 0.5, 0.375], rtol=1e-15, atol=0)  # sums of four products


def test_an_operator_says_where_its_mapping_is_known_from(tmp_path):
    sample = SAMPLES / "vector_mass.json"
    op = kingpost.jit(sample)
    tiles = op.mapping["then"]
    assert op.mapping == {"strategy": "modes", "then": tiles}
    # a vector of the processor, and half of its registers
    cells, sums = tiles["cells"], tiles["sums"]
    assert tiles == {"strategy": "point_tiles", "cells": cells, "sums": sums} and cells in (2, 4, 8)
    reason = (
        f"modes, tiles of points, {cells} cells a group, {sums} sums, constant tables (a vector of cells, modes "
        "instead of quadrature points; `kingpost tune` may find a better one)"
    )
    assert op.mapping_reason == reason
    given = kingpost.jit(sample, mapping={"strategy": "single_cell", "cells": 4})
    assert given.mapping_reason == "single cell, 4 a group"
    # a file that cannot be read is no empty one
    with pytest.raises(kingpost.errors.MappingError, match="cannot read"):
        kingpost.jit(sample, trials=tmp_path)


def spaces():
    """UFL, a mesh of triangles, and P1 and P2 on it."""
    ufl, basix_ufl = pytest.importorskip("ufl"), pytest.importorskip("basix.ufl")
    mesh = ufl.Mesh(basix_ufl.element("Lagrange", "triangle", 1, shape=(2,)))
    return ufl, mesh, *(ufl.FunctionSpace(mesh, basix_ufl.element("Lagrange", "triangle", k)) for k in (1, 2))


def numbers_of_edges(cells):
    """A numbering of P2: vertices, then edges as basix numbers those of a triangle."""
    edges: dict = {}
    rows = []
    for cell in cells:
        pairs = [tuple(sorted((cell[a], cell[b]))) for a, b in ((1, 2), (0, 2), (0, 1))]
        rows.append([*cell, *(cells.max() + 1 + edges.setdefault(pair, len(edges)) for pair in pairs)])
    return np.array(rows, dtype=np.int32)


def test_a_form_that_is_zero_adds_nothing():
    ufl, mesh, p1, p2 = spaces()
    u, k = ufl.Coefficient(p1), ufl.Coefficient(p2)
    v, dk = ufl.TestFunction(p1), ufl.TrialFunction(p2)
    x, cells = square(2)
    given = {"x": x, "x_dofs": cells, "p1_dofs": cells}
    linear = kingpost.jit(ufl.derivative(u * u * ufl.dx, k, v))
    y = np.arange(9.0)
    linear(y, **given)
    assert y.tolist() == list(range(9))
    assert "inside" in linear.check(y, **given)
    vectors = np.ones((8, 3))
    kingpost.jit(ufl.derivative(u * u * ufl.dx, k, v), vector="cells")(vectors, x=x, x_dofs=cells)
    assert not vectors.any()
    zero = ufl.derivative(u * v * ufl.dx, k, dk)
    matrices = np.ones((8, 3, 6))
    kingpost.jit(zero)(matrices, x=x, x_dofs=cells)
    assert (matrices == 1).all()
    csr = kingpost.jit(zero, matrix="sparse").assemble(**given, p2_dofs=numbers_of_edges(cells))
    assert len(csr.indptr) == 10 and not csr.data.any()
    number = np.ones(1)
    kingpost.jit(ufl.derivative(u * ufl.dx, k, u))(number, x=x, x_dofs=cells)
    assert number.tolist() == [1]
    # with a form that is not
    two = kingpost.jit([ufl.derivative(u * u * ufl.dx, k, v), u * v * ufl.dx])
    y0, y1 = np.zeros(9), np.zeros(9)
    two(y0, y1, w0=np.ones(9), **given)
    assert not y0.any() and abs(y1.sum() - 1) < 1e-14
    # all components, also those of several elements
    basix_ufl = pytest.importorskip("basix.ufl")
    vector, mixed = (
        ufl.FunctionSpace(mesh, element)
        for element in (
            basix_ufl.element("Lagrange", "triangle", 1, shape=(2,)),
            basix_ufl.mixed_element([basix_ufl.element("Lagrange", "triangle", k) for k in (2, 1)]),
        )
    )
    for space, shape in ((vector, (8, 3, 2)), (mixed, (8, 9))):
        w = ufl.TestFunction(space)
        found = np.ones(shape)
        kingpost.jit(ufl.derivative(w[0] * u * ufl.ds, k, ufl.Coefficient(p2)), vector="cells")(found, x=x, x_dofs=cells)
        assert not found.any()
    # the numbering and the points of a quadrature element are its own
    element = basix_ufl.quadrature_element("triangle", degree=2)
    values = ufl.TestFunction(ufl.FunctionSpace(mesh, element))
    at_points = kingpost.jit(ufl.derivative(k * values * ufl.dx, u, ufl.Coefficient(p1)), vector="cells")
    found = np.ones((8, len(element.custom_quadrature()[1])))
    at_points(found, x=x, x_dofs=cells)
    assert not found.any()


def test_blocks_are_one_operator():
    ufl, mesh, p1, p2 = spaces()
    both = ufl.MixedFunctionSpace(p1, p2)
    (u, p), (v, q) = ufl.TrialFunctions(both), ufl.TestFunctions(both)
    blocks = ufl.extract_blocks(u * v * ufl.dx + p * v * ufl.dx + 2 * p * q * ufl.dx)
    x, cells = square(2)
    maps = {"p1_dofs": cells, "p2_dofs": numbers_of_edges(cells)}
    op = kingpost.jit(blocks, matrix="sparse")
    found = op.assemble(x=x, x_dofs=cells, **maps)
    # the third block is none
    assert list(found) == ["y0", "y1", "y3"]
    sizes = {"p1": 9, "p2": int(maps["p2_dofs"].max()) + 1}
    for name, rows, columns, area in (("y0", "p1", "p1", 1), ("y1", "p1", "p2", 1), ("y3", "p2", "p2", 2)):
        csr = found[name]
        assert len(csr.indptr) == sizes[rows] + 1 and csr.indices.max() == sizes[columns] - 1
        assert abs(csr.data.sum() - area) < 1e-13
    alone = kingpost.jit(blocks[0][1], matrix="sparse").assemble(x=x, x_dofs=cells, **maps)
    assert np.allclose(alone.data, found["y1"].data, rtol=0, atol=1e-15)
    assert np.array_equal(alone.indices, found["y1"].indices)
    # patterns of an earlier call
    patterns = op.patterns(**maps)
    again = op.assemble(patterns, x=x, x_dofs=cells, **maps)
    assert np.array_equal(again["y3"].data, found["y3"].data)


def test_constants_with_components_are_arrays():
    ufl, mesh, p1, _ = spaces()
    u, v = ufl.Coefficient(p1), ufl.TestFunction(p1)
    K, T = ufl.Constant(mesh, shape=(2,)), ufl.Constant(mesh, shape=(2, 2))
    form = ufl.dot(K, T * ufl.grad(u)) * v * ufl.dx + K[1] * v * ufl.ds
    op = kingpost.jit(form, names={u: "u", K: "K", T: "T"})
    x, cells = square(2)
    facets = {"facet_cells": np.array([0], np.int32), "local_facets": np.array([0], np.int32)}
    fixed = {"x": x, "x_dofs": cells, "p1_dofs": cells, "u": np.linspace(0, 1, 9), "exterior_facets": facets}
    numbers = {"K_0": 0.5, "K_1": 2.0, "T_0": 1.0, "T_1": 2.0, "T_2": 3.0, "T_3": 4.0}
    expected, found = np.zeros(9), np.zeros(9)
    op(expected, **fixed, **numbers)
    assert expected.any()
    for K_as, T_as in (([0.5, 2], [[1, 2], [3, 4]]), (np.array([0.5, 2.0]), np.arange(1.0, 5).reshape(2, 2))):
        found[:] = 0
        op(found, **fixed, K=K_as, T=T_as)
        assert np.array_equal(found, expected)
    # of one part alone
    found[:] = 0
    op(found, **{**fixed, "exterior_facets": facets | {"K": [0.5, 2.0]}}, K=[0.5, 2.0], T=[[1, 2], [3, 4]])
    assert np.array_equal(found, expected)
    wrong = [
        (kingpost.ShapeError, "argument `K` has shape \\(3,\\), needed \\(2,\\)", {"K": [1, 2, 3]}),
        (kingpost.DtypeError, "argument `K` is a str, needed an array of numbers of shape \\(2,\\)", {"K": "ab"}),
        (kingpost.DtypeError, "argument `K` is a list, needed an array of numbers", {"K": ["1", "2"]}),
        (kingpost.DtypeError, "argument `T` is a list, needed an array of numbers", {"K": [1, 2], "T": [[1], [2, 3]]}),
        (kingpost.ArgumentError, "`K` is a masked array with 1 masked", {"K": np.ma.array([1, 2], mask=[0, 1])}),
        (kingpost.ArgumentError, "argument `K_1` was given twice: as itself, and in `K`", {"K": [1, 2], "K_1": 2.0}),
        (kingpost.MissingArgument, "needs argument `K_0`", {"T": [[1, 2], [3, 4]]}),
    ]
    for error, message, given in wrong:
        with pytest.raises(error, match=message):
            op(found, **{**fixed, **given})


def test_options_that_mean_nothing_are_refused():
    ufl, mesh, p1, _ = spaces()
    u, v, k = ufl.Coefficient(p1), ufl.TestFunction(p1), ufl.Coefficient(p1)
    form = u * v * ufl.dx
    refused = [
        (kingpost.UnknownArgument, "`jit` has no option `nams`; did you mean `names`", form, {"nams": {}}),
        (kingpost.UnknownArgument, "`jit` has no option `zzz`; it has `device`, ", form, {"zzz": 1}),
        (kingpost.UnknownArgument, "option `names` is for forms of UFL, found the text", "laplace", {"names": {}}),
        (kingpost.FormError, "names: found a list, needed a mapping", form, {"names": ["u"]}),
        (kingpost.FormError, "names: found `w_.*`, needed a coefficient or constant .* it has `w_", form, {"names": {k: "k"}}),
        (kingpost.FormError, "names: found the `id` 7, needed", form, {"names": {7: "k"}}),
        (kingpost.FormError, "names: `y` is the name of a result, needed one of its own", form, {"names": {u: "y"}}),
        (kingpost.FormError, "names: `x` is the name of the positions", form, {"names": {u: "x"}}),
        (kingpost.FormError, "names: `u` is the name of another", u * k * v * ufl.dx, {"names": {u: "u", k: "u"}}),
        (kingpost.FormError, "outputs: `x` is the name of the positions", form, {"outputs": ["x"]}),
        (kingpost.FormError, "outputs: `a` is the name of a result", [form, form], {"outputs": ["a", "a"]}),
        (kingpost.FormError, "outputs: found 2 names, needed 1", form, {"outputs": ["a", "b"]}),
        (kingpost.FormError, "outputs: found a str, needed a list", form, {"outputs": "y"}),
        (kingpost.FormError, "found an equation; export `lhs", form == 0, {}),
        (kingpost.FormError, "matrix=`sparse` is for bilinear forms, found a linear form", form, {"matrix": "sparse"}),
        (kingpost.FormError, "matrix=`diagonal` is for bilinear forms, found a functional", u * ufl.dx, {"matrix": "diagonal"}),
    ]
    for error, message, wrong, options in refused:
        with pytest.raises(error, match=message):
            kingpost.jit(wrong, **options)
    # the name of the result is free where the result has another
    op = kingpost.jit(form, names={u: "y"}, outputs=["b"])
    assert [a.name for a in op.arguments if a.is_written] == ["b"] and "y" in {a.name for a in op.arguments}


def test_functions_of_another_mesh_are_refused():
    ufl, mesh, p1, _ = spaces()
    _, other, q1, _ = spaces()
    v = ufl.TestFunction(p1)
    for wrong in (ufl.Coefficient(q1), ufl.SpatialCoordinate(other)[0], ufl.CellVolume(other)):
        with pytest.raises(kingpost.FormError, match="of another mesh than that of its integral; interpolate"):
            kingpost.jit(wrong * v * ufl.dx(mesh))
    # a constant is a number wherever it was made
    kingpost.jit(ufl.Constant(other) * v * ufl.dx(mesh))


def test_export_options_are_those_of_the_exporter():
    import inspect

    exporter = pytest.importorskip("kingpost.export")
    from kingpost.operator import EXPORT_OPTIONS

    # forms on facets between cells of two kinds are compiled by `kingpost.meshes` alone
    options = [name for name in inspect.signature(exporter.export_form).parameters if name not in ("form", "twins")]
    assert tuple(options) == EXPORT_OPTIONS


def lagrange(degree, cell="tetrahedron", scalar="f64"):
    """Laplace's operator with a mass term and its arrays on a few cells of a deformed cube."""
    import basix.ufl
    import ufl

    dim = {"triangle": 2, "tetrahedron": 3}[cell]
    mesh = ufl.Mesh(basix.ufl.element("Lagrange", cell, 1, shape=(dim,)))
    element = basix.ufl.element("Lagrange", cell, degree)
    space = ufl.FunctionSpace(mesh, element)
    u, v = ufl.Coefficient(space), ufl.TestFunction(space)
    form = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + 0.5 * ufl.inner(u, v) * ufl.dx
    rng = np.random.default_rng(degree)
    corners = np.eye(dim + 1, dim, k=-1)
    x = np.concatenate([corners + 0.2 * rng.random(corners.shape) for _ in range(3)])
    cells = np.arange(len(x), dtype=np.int32).reshape(3, dim + 1)
    dofs = rng.permutation(3 * element.dim).astype(np.int32).reshape(3, element.dim)
    kind = np.float32 if scalar == "f32" else np.float64
    return form, {"w0": rng.random(dofs.size).astype(kind), "x": x.astype(kind), "x_dofs": cells}, dofs


# a form of UFL takes the mappings of the forms that this package knows
@pytest.mark.parametrize("scalar, tolerance", [("f64", 1e-12), ("f32", 2e-5)])
@pytest.mark.parametrize("cell, degree", [("triangle", 4), ("tetrahedron", 3)])
@pytest.mark.parametrize("mapping", LOWERED_ANEW[:2], ids=["orbits", "points"])
def test_forms_of_ufl_are_lowered_anew(mapping, cell, degree, scalar, tolerance):
    form, given, dofs = lagrange(degree, cell, scalar)
    name = f"p{degree}_dofs"
    results = []
    for chosen in (None, mapping):
        op = kingpost.jit(form, "c", mapping=chosen, scalar=scalar)
        y = np.zeros(dofs.size, dtype=given["w0"].dtype)
        op(y, **given, **{name: dofs})
        results.append(y)
    assert abs(results[0] - results[1]).max() <= tolerance * abs(results[0]).max()
    assert op.recipe.startswith("lowering ")


def test_numbers_by_dimension_give_the_same_result():
    form, given, dofs = lagrange(3)
    op = kingpost.jit(form, "c", by_dimension=True)
    assert op.entity_parts == (4, 12, 4)
    new, order = kingpost.number_by_dimension(dofs, op.entity_parts)
    assert sorted(order) == list(range(dofs.size)) and (order[new] == dofs).all()
    # the vertices of all cells come last
    assert (new[:, :4] >= dofs.size - 12).all() and new[0, 4] == 0
    expected, found = np.zeros(dofs.size), np.zeros(dofs.size)
    op(expected, p3_dofs=dofs, **given)
    op(found, p3_dofs=new, **{**given, "w0": given["w0"][order]})
    assert np.allclose(found, expected[order], rtol=0, atol=1e-13)
    with pytest.raises(kingpost.ShapeError, match="needed \\[cells, 10\\]"):
        kingpost.number_by_dimension(dofs, (4, 6))


def test_cells_in_order_have_vertices_side_by_side():
    from write_card_forms import cube

    n = 8
    _, _, cells = cube(n)  # the six tetrahedra of a cube after each other
    order = kingpost.order_cells(cells)
    assert sorted(order) == list(range(len(cells)))

    def steps(cells):
        """How many cells are the one before, moved by a vertex."""
        return int((np.diff(cells, axis=0) == 1).all(axis=1).sum())

    assert steps(cells) == 0
    # rows of `n` cells of a kind, cut where windows end
    windows = (n + 1) ** 3 // 64 + 1
    assert steps(cells[order]) >= 6 * (n**2 * (n - 1) - windows)
    # cells that all differ stay in their windows
    mixed = np.random.default_rng(7).permutation(64 * 9).reshape(-1, 4).astype(np.int32)
    places = kingpost.order_cells(mixed, window=32)
    assert (np.diff(mixed.min(axis=1)[places] // 32) >= 0).all()
    assert kingpost.order_cells(np.empty((0, 3), np.int32)).shape == (0,)
    for cells, window in ((np.zeros(4, np.int32), 64), (np.zeros((4, 0), np.int32), 64), (cells, 0)):
        with pytest.raises(kingpost.ShapeError):
            kingpost.order_cells(cells, window)


PATH_OF_TUNED = kingpost.tuning.path


def test_tuned_mappings_are_those_of_later_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(kingpost.tuning, "path", PATH_OF_TUNED)
    monkeypatch.setenv("KINGPOST_CACHE_DIR", str(tmp_path / "cache"))
    kingpost.operator._cache.clear()
    op = kingpost.jit("helmholtz", "c", degree=1)
    given, _ = arrays(op)
    lines = []
    trials = op.tune(np.zeros(25), progress=lines.append, **given)
    assert lines[0].startswith("tuning: 0 of ") and "fastest" in lines[-2] and lines[-1].startswith("tuned: ")
    timed = [t for t in trials if t.seconds is not None]
    assert trials._repr_html_().count("<tr>") == 1 + len(timed)

    def in_another_process():
        kingpost.operator._cache.clear()
        return kingpost.jit("helmholtz", "c", degree=1)

    again = in_another_process()
    assert again.mapping == op.mapping
    assert "(tuned on this device for n_cells = 32, " in again.mapping_reason
    other = kingpost.jit("helmholtz", "c", degree=2)
    assert "tuned on this device" not in other.mapping_reason
    # a mapping that is asked for wins
    single = {"strategy": "single_cell", "cells": 8}
    assert kingpost.jit("helmholtz", "c", degree=1, mapping=single).mapping == single

    file = tmp_path / "shared.jsonl"
    assert kingpost.tuning.export(file) == 1
    monkeypatch.setenv("KINGPOST_CACHE_DIR", str(tmp_path / "of_another_user"))
    assert "tuned" not in in_another_process().mapping_reason
    assert kingpost.tuning.load(file) == 1
    assert in_another_process().mapping == op.mapping
    # what another version wrote is no obstacle here, and is refused where it is loaded
    with open(kingpost.tuning.path(), "a") as out:
        out.write('{"form": 1}\nnothing\n')
    assert in_another_process().mapping == op.mapping
    (tmp_path / "broken.jsonl").write_text("nothing\n")
    with pytest.raises(kingpost.ArgumentError, match="line 1: needed a tuned mapping"):
        kingpost.tuning.load(tmp_path / "broken.jsonl")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("degree", [1, 2])
def test_batches_are_one_call(device, degree):
    """Of several right-hand sides; in any mapping, after tuning, and pickled."""
    op = kingpost.jit("laplace", device, dim=2, degree=degree)
    x, cells = square(3)
    dofs = cells if degree == 1 else numbers_of_edges(cells)
    rest = {"coords": x, "cell_vertices": cells, "dofs": dofs}
    u = np.random.default_rng(3).standard_normal((4, dofs.max() + 1))
    expected = np.ones_like(u)
    for one, result in zip(u, expected):
        op(result, u=one, **rest)
    several = op.batched("u")
    assert [a.shape[0] for a in several.arguments if a.name in ("y", "u")] == ["batches", "batches"]
    again = pickle.loads(pickle.dumps(several))
    several.tune(np.zeros_like(u), u=u, **rest, progress=False)
    for run in (several, again, kingpost.checked(op).batched("u")):
        found = np.ones_like(u)
        run(found, u=u, **rest)
        assert np.allclose(found, expected, rtol=0, atol=1e-13)  # sums of at most 36 products in f64
    with pytest.raises(kingpost.UnknownArgument, match="the form takes no array `v`; it takes `y`"):
        op.batched("v")
    with pytest.raises(kingpost.FormError, match="one for batches already"):
        several.batched("u")
