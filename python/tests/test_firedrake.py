"""The mapping of Firedrake's arrays, on stand-ins with its attributes, and FIAT's elements where they are."""

from types import SimpleNamespace

import numpy as np
import pytest

import kingpost
from test_operator import square

basix_ufl = pytest.importorskip("basix.ufl")
ufl = pytest.importorskip("ufl")
firedrake = pytest.importorskip("kingpost.firedrake")

from ufl.finiteelement import AbstractFiniteElement  # noqa: E402


class Lagrange(AbstractFiniteElement):
    """A Lagrange element whose nodes are numbered backwards, as far as UFL asks."""

    sub_elements = ()

    def __init__(self, degree, discontinuous=False):
        self.plain = basix_ufl.element("Lagrange", "triangle", degree, discontinuous=discontinuous)

    def degree(self):
        return self.plain.degree

    def points(self):
        return self.plain.basix_element.points[::-1]

    def __repr__(self):
        return f"backwards {self.plain!r}"

    __str__ = __repr__

    def __hash__(self):
        return hash(repr(self))

    def __eq__(self, other):
        return repr(self) == repr(other)

    sobolev_space = property(lambda self: ufl.L2 if self.plain.discontinuous else ufl.H1)
    pullback = property(lambda self: self.plain.pullback)
    embedded_superdegree = property(lambda self: self.plain.embedded_superdegree)
    embedded_subdegree = property(lambda self: self.plain.embedded_subdegree)
    cell = property(lambda self: self.plain.cell)
    reference_value_shape = property(lambda self: self.plain.reference_value_shape)


class VectorElement(Lagrange):
    def __init__(self, degree):
        self.scalar = Lagrange(degree)
        self.plain = basix_ufl.element("Lagrange", "triangle", degree, shape=(2,))

    sub_elements = property(lambda self: (self.scalar, self.scalar))


class Space(ufl.FunctionSpace):
    def __init__(self, mesh, element, numbers):
        super().__init__(mesh, element)
        self.numbers = numbers

    def cell_node_map(self):
        return SimpleNamespace(values=self.numbers)


class Function(ufl.Coefficient):
    def __init__(self, space, values):
        super().__init__(space)
        self.dat = SimpleNamespace(data_ro=values, data=values)

    def function_space(self):
        return self.ufl_function_space()


class Constant(ufl.Constant):
    def __init__(self, mesh, value):
        super().__init__(mesh)
        self.dat = SimpleNamespace(data_ro=np.array([value]))


@pytest.fixture
def meshed(monkeypatch):
    """A square, a numbering of P3 by cells, and the nodes."""
    monkeypatch.setattr(firedrake, "points_of", lambda element: element.points())
    firedrake.element_of.cache_clear()
    x, cells = square(2)
    mesh = ufl.Mesh(VectorElement(1))
    numbers = np.ascontiguousarray(cells[:, ::-1])
    mesh.coordinates = Function(Space(mesh, VectorElement(1), numbers), x)
    element = Lagrange(3, discontinuous=True)
    own = np.arange(10 * len(cells), dtype=np.int32).reshape(-1, 10)
    a, b, c = (x[cells[:, k]] for k in range(3))
    p = element.points()
    nodes = a[:, None] + p[None, :, :1] * (b - a)[:, None] + p[None, :, 1:] * (c - a)[:, None]
    yield Space(mesh, element, own), nodes.reshape(-1, 2)
    firedrake.element_of.cache_clear()


def test_the_numbering_is_that_of_the_element(meshed):
    space, nodes = meshed
    u = Function(space, nodes[:, 0] ** 2 + nodes[:, 1])
    kappa = Constant(space.ufl_domain(), 2.5)
    energy = kingpost.firedrake.action(kappa * u**2 * ufl.dx)
    # 2.5 times the integral of (x² + y)² over the square
    assert np.isclose(energy.value(), 2.5 * (1 / 5 + 1 / 3 + 1 / 3), rtol=1e-13)
    x = ufl.SpatialCoordinate(space.ufl_domain())
    load = kingpost.firedrake.action(ufl.inner(ufl.grad(u), ufl.grad(ufl.TestFunction(space))) * x[0] * ufl.dx)
    y = Function(space, np.full(len(nodes), 7.0))
    load.assemble(y)
    # with v = u: the integral of x (4 x² + 1)
    assert np.isclose(y.dat.data @ u.dat.data, 1 + 1 / 2, rtol=1e-13)
    before = y.dat.data.copy()
    load(y)
    assert np.allclose(y.dat.data, 2 * before, rtol=1e-14)


def test_a_matrix_is_that_of_the_action(meshed):
    pytest.importorskip("scipy")
    space, nodes = meshed
    u = Function(space, nodes[:, 0] ** 2 + nodes[:, 1])
    kappa = Constant(space.ufl_domain(), 2.5)
    trial, test = ufl.TrialFunction(space), ufl.TestFunction(space)
    form = (kappa + u) * ufl.inner(ufl.grad(trial), ufl.grad(test)) * ufl.dx + trial * ufl.grad(test)[0] * ufl.dx
    matrix, y = kingpost.firedrake.matrix(form), Function(space, np.zeros(len(nodes)))
    for value in (2.5, -1.0):
        kappa.dat.data_ro[0] = value
        found = matrix.assemble()
        assert found.shape == (len(nodes), len(nodes))
        kingpost.firedrake.action(ufl.action(form, u)).assemble(y)
        assert np.allclose(found @ u.dat.data, y.dat.data, rtol=0, atol=1e-13)
    # with v = u = x² + y, and no term of the first order: 2.5 times the integral of 4 x² + 1
    kappa.dat.data_ro[0] = 2.5
    laplace = kingpost.firedrake.matrix(kappa * ufl.inner(ufl.grad(trial), ufl.grad(test)) * ufl.dx).assemble()
    assert np.isclose(u.dat.data @ (laplace @ u.dat.data), 2.5 * (4 / 3 + 1), rtol=1e-13)
    # blocks of components: the vectors of positions
    vectors = Space(space.ufl_domain(), VectorElement(1), space.ufl_domain().coordinates.function_space().numbers)
    x = space.ufl_domain().coordinates.dat.data_ro
    a = ufl.inner(ufl.TrialFunction(vectors), ufl.TestFunction(vectors)) * ufl.dx
    mass = kingpost.firedrake.matrix(a).assemble()
    assert np.isclose(x.ravel() @ (mass @ x.ravel()), 2 / 3, rtol=1e-13)


def test_what_is_not_taken_says_so(meshed):
    space, _ = meshed
    v = ufl.TestFunction(space)
    with pytest.raises(kingpost.FormError, match="type `exterior_facet` on `everywhere`, needed integrals over all"):
        kingpost.firedrake.action(v * ufl.ds)
    with pytest.raises(kingpost.FormError, match="is bilinear, needed a functional or a linear form"):
        kingpost.firedrake.action(ufl.TrialFunction(space) * v * ufl.dx)
    with pytest.raises(kingpost.FormError, match="the form has 1 arguments, needed a test and a trial function"):
        kingpost.firedrake.matrix(v * ufl.dx)
    mesh = space.ufl_domain()
    mesh.comm = SimpleNamespace(size=2)
    with pytest.raises(kingpost.FormError, match="the mesh is on 2 processes, needed one"):
        kingpost.firedrake.action(v * ufl.dx)


CASES = [
    ("CG", "interval", 3), ("CG", "triangle", 1), ("CG", "triangle", 3), ("CG", "tetrahedron", 4),
    ("DG", "triangle", 0), ("DG", "triangle", 2), ("DG", "tetrahedron", 3), ("Q", "quadrilateral", 2),
    ("DQ", "quadrilateral", 2), ("Q", "hexahedron", 2), ("DQ", "hexahedron", 1),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_elements_of_fiat_keep_their_basis(case):
    pytest.importorskip("finat.ufl")
    from finat.element_factory import create_element
    from finat.ufl import FiniteElement, VectorElement

    element = FiniteElement(*case)
    own = firedrake.element_of(element)
    points = np.random.default_rng(3).uniform(0.1, 0.3, (4, element.cell.topological_dimension))
    of_fiat = create_element(element)
    if case[1] == "hexahedron":
        # FInAT has no table of a product of three; its last axis is the fastest
        lines = [f.fiat_equivalent.tabulate(0, points[:, k : k + 1])[(0,)] for k, f in enumerate(of_fiat.product.factors)]
        expected = np.einsum("ap,bp,cp->abcp", *lines).reshape(-1, len(points))
        corners = of_fiat.cell.get_vertices()
        for vertex, dofs in of_fiat.entity_dofs()[0].items():
            assert all(np.allclose(firedrake.points_of(element)[dof], corners[vertex]) for dof in dofs)
    else:
        (expected,) = of_fiat.fiat_equivalent.tabulate(0, points).values()
    assert np.allclose(own.tabulate(0, points)[0], expected.T, rtol=0, atol=1e-12)
    assert firedrake.element_of(VectorElement(*case, dim=3)).block_size == 3


@pytest.mark.parametrize("case", [("RT", "triangle", 2), ("NCE", "hexahedron", 1)], ids=str)
def test_other_elements_of_fiat_are_refused(case):
    pytest.importorskip("finat.ufl")
    from finat.ufl import FiniteElement

    with pytest.raises(kingpost.FormError, match="needed a Lagrange element on simplices, quadrilaterals or"):
        firedrake.element_of(FiniteElement(*case))
