"""The mapping of DOLFINx's arrays, on plain stand-ins with its attributes."""

from types import SimpleNamespace

import numpy as np
import pytest

import kingpost
import kingpost.dolfinx
from test_operator import square, stiffness

ufl = pytest.importorskip("ufl")
basix_ufl = pytest.importorskip("basix.ufl")


class Mesh(ufl.Mesh):
    """A mesh with one ghost cell at the end and positions of three components."""

    def __init__(self, x, cells, ghosts):
        super().__init__(basix_ufl.element("Lagrange", "triangle", 1, shape=(2,)))
        self.geometry = SimpleNamespace(x=np.column_stack([x, np.zeros(len(x))]), dofmaps=[cells])
        owned = SimpleNamespace(size_local=len(cells) - ghosts)
        self.topology = SimpleNamespace(dim=2, index_map=lambda dim: owned)


class Space(ufl.FunctionSpace):
    def __init__(self, mesh, cells):
        super().__init__(mesh, basix_ufl.element("Lagrange", "triangle", 1))
        self.mesh, self.dofmap = mesh, SimpleNamespace(list=cells, bs=1)


class Function(ufl.Coefficient):
    def __init__(self, space, values):
        super().__init__(space)
        self.x, self.function_space = SimpleNamespace(array=values), space


class Constant(ufl.Constant):
    def __init__(self, mesh, value):
        super().__init__(mesh)
        self.value = np.array(value)


@pytest.mark.parametrize("ghosts", [0, 3])
def test_the_action_runs_over_owned_cells(ghosts):
    x, cells = square(3)
    space = Space(Mesh(x, cells, ghosts), cells)
    u = Function(space, np.random.default_rng(7).standard_normal(len(x)))
    kappa = Constant(space.mesh, 2.5)
    form = kappa * ufl.inner(ufl.grad(u), ufl.grad(ufl.TestFunction(space))) * ufl.dx
    action = kingpost.dolfinx.action(form)
    y = Function(space, np.zeros(len(x)))
    action(y)
    expected = 2.5 * stiffness(x, cells[: len(cells) - ghosts]) @ u.x.array
    assert np.allclose(y.x.array, expected, rtol=0, atol=1e-13)
    u.x.array[:] = 1.0
    action(y.x.array)
    assert np.allclose(y.x.array, expected, rtol=0, atol=1e-13), "the gradient of a constant is 0"


@pytest.mark.parametrize("ghosts", [0, 3])
def test_cells_may_come_in_an_order_of_their_own(ghosts, monkeypatch):
    x, cells = square(5)
    mesh = Mesh(x, np.random.default_rng(3).permutation(cells), ghosts)
    cells = mesh.geometry.dofmaps[0]
    space, constants = Space(mesh, cells), ufl.FunctionSpace(mesh, basix_ufl.element("DG", "triangle", 0))
    constants.mesh, constants.dofmap = mesh, SimpleNamespace(list=np.arange(len(cells), dtype=np.int32)[:, None], bs=1)
    kappa = Function(constants, np.random.default_rng(5).uniform(1, 2, len(cells)))  # a value a cell
    u = Function(space, np.random.default_rng(7).standard_normal(len(x)))
    marked = np.random.default_rng(11).permutation(len(cells) - ghosts)[:20].astype(np.int32)
    monkeypatch.setattr(kingpost.dolfinx.entities, "_found", lambda mesh, over, data: marked[:, None])
    v, markers = ufl.TestFunction(space), object()
    flux = kappa * ufl.inner(ufl.grad(u), ufl.grad(v))
    forms = {"all": flux * ufl.dx, "marked": flux * ufl.dx(3, subdomain_data=markers)}
    for name, form in forms.items():
        results = {}
        for order_cells in (False, True):
            action, y = kingpost.dolfinx.action(form, "c", order_cells=order_cells), np.zeros(len(x))
            action(y)
            results[order_cells] = y
            given = action.arguments(y)
            assert np.shares_memory(given["p1_dofs"], cells) == (not order_cells or name == "marked")
        taken = np.arange(len(cells) - ghosts) if name == "all" else marked
        expected = sum(kappa.x.array[c] * stiffness(x, cells[c : c + 1]) for c in taken) @ u.x.array
        for y in results.values():
            assert np.allclose(y, expected, rtol=0, atol=1e-13)
        listed = given["listed_cells"] if name == "marked" else None
        assert listed is None or (sorted(listed) == sorted(marked) and not np.array_equal(listed, marked))
    order = kingpost.order_cells(cells[: len(cells) - ghosts])
    action = kingpost.dolfinx.action(forms["all"], "c", order_cells=True)
    assert np.array_equal(action.arguments(y)["p1_dofs"], cells[order])
    # the cells that wait for ghosts come after the others, each in order
    space.dofmap.index_map = SimpleNamespace(size_local=len(x) - 7, num_ghosts=7)
    late, early = action._launches(space)
    is_early = (cells[order] < len(x) - 7).all(axis=1)
    assert np.array_equal(early[0].fixed["p1_dofs"], cells[order][is_early])
    assert np.array_equal(late[0].fixed["p1_dofs"], cells[order][~is_early])


def p1(ghosts=0):
    x, cells = square(3)
    return Space(Mesh(x, cells, ghosts), cells), np.ones(len(x))


def test_arrays_are_those_of_the_mesh():
    space, ones = p1()
    u, y = Function(space, ones), np.zeros(len(ones))
    given = kingpost.dolfinx.action(u * ufl.TestFunction(space) * ufl.dx).arguments(y)
    mesh = space.mesh
    kept = {
        "w0": ones,
        "y": y,
        "x": mesh.geometry.x,
        "x_dofs": mesh.geometry.dofmaps[0],
        "p1_dofs": space.dofmap.list,
    }
    assert given.keys() == kept.keys()
    assert all(np.shares_memory(given[name], array) for name, array in kept.items())


def test_spaces_that_number_differently_have_maps_of_their_own():
    space, ones = p1()
    turned = Space(space.mesh, np.ascontiguousarray(len(ones) - 1 - space.dofmap.list))
    rng = np.random.default_rng(3)
    a, b = Function(space, rng.standard_normal(len(ones))), Function(turned, rng.standard_normal(len(ones)))
    again = Function(Space(space.mesh, space.dofmap.list.copy()), ones)
    form = again * (a + b) * ufl.TestFunction(space) * ufl.dx
    action, y, expected = kingpost.dolfinx.action(form), np.zeros(len(ones)), np.zeros(len(ones))
    action(y)
    assert {"p1_dofs", "p1_2_dofs"} == {n.name for n in action.operator.arguments if n.name.startswith("p1")}
    together = Function(space, a.x.array + b.x.array[::-1])
    kingpost.dolfinx.action(together * ufl.TestFunction(space) * ufl.dx)(expected)
    assert np.allclose(y, expected, rtol=0, atol=1e-15)  # sums of some ten products of at most 0.01


def test_what_does_not_change_is_placed_once():
    space, ones = p1()
    placed = []

    def place(array):
        placed.append(array.copy())
        return placed[-1]

    u, y = Function(space, ones), np.zeros(len(ones))
    action = kingpost.dolfinx.action(u * ufl.TestFunction(space) * ufl.dx, place=place)
    action(y)
    action(y, values={u: 2 * ones})
    assert len(placed) == 3 and abs(y.sum() - 3) < 1e-13, "maps of two spaces and positions; the area is 1"


def refused(message, form, *outputs, **options):
    with pytest.raises(kingpost.FormError) as error:
        kingpost.dolfinx.action(form)(*outputs, **options)
    assert str(error.value) == message


def test_refusals_say_what_is_needed():
    space, ones = p1()
    u, v = Function(space, ones), ufl.TestFunction(space)
    bilinear = ufl.TrialFunction(space) * v * ufl.dx
    refused(
        "the form is bilinear, needed a functional or a linear form; "
        "use `kingpost.dolfinx.matrix`, `kingpost.dolfinx.operator`, or `ufl.action(a, u)` with a function `u`",
        bilinear,
    )
    refused("the form is empty: it has no integrals", ufl.Form([]))
    refused("0 results, needed 1: one a form", u * v * ufl.dx)
    other = Function(space, ones)
    refused(
        f"`values` has `{other}`, which is no function of the form; it has `{u}`",
        u * v * ufl.dx,
        np.zeros(len(ones)),
        values={other: ones},
    )
    single = Function(space, ones.astype(np.float32))
    refused(
        f"`{single}` has entries of type `float32`, needed `float64`, that of the geometry",
        single * v * ufl.dx,
    )
    complex_ = Function(space, ones * 1j)
    refused(
        f"`{complex_}` has entries of type `complex128`, needed `float64` or `float32`", complex_ * v * ufl.dx
    )
    refused(
        "`dx(3)` has no subdomain data, needed the tags of its entities; "
        'give them as `ufl.Measure("dx", subdomain_data=tags)`',
        u * v * ufl.dx(3),
    )
    first, second = (ufl.Measure("dx", space.mesh, subdomain_data=object()) for _ in range(2))
    refused(
        "measures `dx` of the form have different subdomain data, needed one; "
        "number all subdomains in one `meshtags`",
        u * v * first(1) + v * second(2),
    )
    part = Function(Space(space.mesh, np.repeat(space.dofmap.list, 2, axis=1)), ones)
    refused(
        "the space of `w0` has 6 degrees of freedom a cell in blocks of 1, needed 3 in blocks of 1: "
        "it is a part of another space; `collapse()` it",
        part * v * ufl.dx,
    )
    with pytest.raises(kingpost.FormError, match="the form is linear, needed a functional; use `assemble`"):
        kingpost.dolfinx.action(u * v * ufl.dx).value()


def test_what_is_no_vector_of_dolfinx_is_refused():
    x, cells = square(2)
    space = Space(Mesh(x, cells, 0), cells)
    v = ufl.TestFunction(space)
    action = kingpost.dolfinx.action(v * ufl.dx)
    with pytest.raises(kingpost.FormError, match="`assemble`: found a ndarray, needed a function or a vector of DOLFINx"):
        action.assemble(np.zeros(9))
    with pytest.raises(kingpost.FormError, match="2 results, needed 1: one a form"):
        action(np.zeros(9), np.zeros(9))
    blocks = ((ufl.TrialFunction(space) * v * ufl.dx, None),)
    with pytest.raises(kingpost.FormError, match="found a tuple of forms, needed one bilinear form"):
        kingpost.dolfinx.matrix(blocks)
    with pytest.raises(kingpost.FormError, match="found an equation"):
        kingpost.dolfinx.action(v * ufl.dx == 0)
    with pytest.raises(kingpost.UnknownArgument, match="`jit` has no option `bc`"):
        kingpost.dolfinx.action(v * ufl.dx, bc=[])


def test_functions_of_a_submesh_are_refused():
    x, cells = square(2)
    space, part = Space(Mesh(x, cells, 0), cells), Space(Mesh(x, cells[:3], 0), cells[:3])
    u = Function(part, np.ones(9))
    with pytest.raises(kingpost.FormError, match="of another mesh than that of its integral"):
        kingpost.dolfinx.action(u * ufl.TestFunction(space) * ufl.dx(space.mesh))
