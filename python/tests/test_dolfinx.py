"""The mapping of DOLFINx's arrays, on plain stand-ins with its attributes."""

from types import SimpleNamespace

import numpy as np
import pytest

import purlin.dolfinx
from test_operator import square, stiffness

ufl = pytest.importorskip("ufl")
basix_ufl = pytest.importorskip("basix.ufl")


class Mesh(ufl.Mesh):
    """A mesh with one ghost cell at the end and positions of three components."""

    def __init__(self, x, cells, ghosts):
        super().__init__(basix_ufl.element("Lagrange", "triangle", 1, shape=(2,)))
        self.geometry = SimpleNamespace(x=np.column_stack([x, np.zeros(len(x))]), dofmap=cells)
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
    action = purlin.dolfinx.action(form)
    y = Function(space, np.zeros(len(x)))
    action(y)
    expected = 2.5 * stiffness(x, cells[: len(cells) - ghosts]) @ u.x.array
    assert np.allclose(y.x.array, expected, rtol=0, atol=1e-13)
    u.x.array[:] = 1.0
    action(y.x.array)
    assert np.allclose(y.x.array, expected, rtol=0, atol=1e-13), "the gradient of a constant is 0"
