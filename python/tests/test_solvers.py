"""Linear systems and Newton's method on devices against NumPy's elimination."""

from __future__ import annotations

import numpy as np
import purlin
import pytest
import ufl
from basix.ufl import element
from purlin import Csr

RANDOM = np.random.default_rng()


def csr(dense, shuffled=False, side=1):
    """A dense matrix by rows, with all entries of blocks of so many rows on the diagonal; shuffled, its
    rows are out of order, and an entry comes in two parts."""
    starts, columns, data = [0], [], []
    for i, row in enumerate(dense):
        is_stored = (row != 0) | (np.arange(len(dense)) // side == i // side)
        places = np.flatnonzero(is_stored)
        values = row[places]
        if shuffled:
            order = RANDOM.permutation(len(places))
            places = np.concatenate([places[order], [i]])
            values = np.concatenate([values[order], [0.5]])
            values[np.flatnonzero(places[:-1] == i)] -= 0.5
        columns.extend(places)
        data.extend(values)
        starts.append(len(columns))
    return Csr(np.array(starts), np.array(columns, dtype="i4"), np.array(data))


def laplace(n, skew=0.0):
    """The matrix of Laplace's equation on a line, and of convection."""
    return 2.1 * np.eye(n) - (1 + skew) * np.eye(n, k=1) - (1 - skew) * np.eye(n, k=-1)


@pytest.mark.parametrize(
    ("method", "preconditioner", "skew"),
    [
        ("cg", "jacobi", 0.0), ("cg", "none", 0.0), ("cg", "block-jacobi", 0.0), ("cg", "amg", 0.0),
        ("chebyshev", "jacobi", 0.0), ("cg", "chebyshev", 0.0), ("gmres", "jacobi", 0.3), ("bicgstab", "none", 0.3),
    ],
)  # fmt: skip
def test_systems_are_solved_as_by_elimination(method, preconditioner, skew):
    dense = laplace(60, skew)
    b = RANDOM.standard_normal(60)
    side = 3 if preconditioner == "block-jacobi" else 1
    matrix = csr(dense, shuffled=True, side=side)
    found = purlin.solve(
        matrix, b, method=method, preconditioner=preconditioner, relative=1e-12, components=side
    )
    assert found.converged and found.reason == "converged", found
    assert found.iterations >= 1 and found.residuals[-1] <= 1e-11 * np.linalg.norm(b)
    assert np.abs(found.x - np.linalg.solve(dense, b)).max() <= 1e-9


def test_several_right_hand_sides_share_a_preconditioner():
    dense = laplace(40)
    b = RANDOM.standard_normal((40, 3))
    found = purlin.solve(csr(dense), b, relative=1e-12)
    assert found.x.shape == (40, 3) and found.converged
    assert np.abs(found.x - np.linalg.solve(dense, b)).max() <= 1e-9


def test_the_matrix_of_a_form_is_solved_with():
    """Helmholtz's matrix on two triangles a square, as `assemble` gives it."""
    n = 6
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, n + 1)] * 2, indexing="ij"), -1).reshape(-1, 2)
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    lower = np.stack([corner, corner + n + 1, corner + n + 2], 1)
    upper = np.stack([corner, corner + n + 2, corner + 1], 1)
    cells = np.concatenate([lower, upper]).astype("i4")
    domain = ufl.Mesh(element("P", "triangle", 1, shape=(2,)))
    space = ufl.FunctionSpace(domain, element("P", "triangle", 1))
    u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
    form = (ufl.inner(ufl.grad(u), ufl.grad(v)) + u * v) * ufl.dx
    op = purlin.jit(form, matrix="sparse")
    matrix = op.assemble(x=grid, x_dofs=cells, p1_dofs=cells)
    rows = np.repeat(np.arange(len(grid)), np.diff(matrix.indptr))
    dense = np.zeros((len(grid), len(grid)))
    dense[rows, matrix.indices] = matrix.data
    exact = RANDOM.standard_normal(len(grid))
    found = purlin.solve(matrix, dense @ exact, preconditioner="amg", relative=1e-12)
    assert found.converged and np.abs(found.x - exact).max() <= 1e-8


def test_what_does_not_converge_says_why():
    found = purlin.solve(csr(laplace(60)), np.ones(60), max_iterations=2)
    assert not found.converged and found.reason == "too many iterations"
    found = purlin.solve(csr(-laplace(60)), np.ones(60))
    assert not found.converged and "not positive definite" in found.reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(method="other"), "unknown method `other`; known: cg, gmres"),
        (dict(preconditioner="ilu"), "unknown preconditioner `ilu`"),
        (dict(method="chebyshev", preconditioner="amg"), "takes the preconditioners `none` and `jacobi`"),
        (dict(components=7), "needed a divisor of the 60 unknowns"),
        (dict(points=np.zeros((3, 2))), r"needed \[60, dim\]"),
        (dict(b=np.ones(59)), r"needed \[60\]"),
        (dict(b=np.full(60, np.nan)), "infinite or NaN"),
        (dict(matrix=Csr(np.array([0, 2]), np.array([0]), np.array([1.0])), b=np.ones(1)), "needed ascending places"),
        (dict(matrix=Csr(np.array([0, 1]), np.array([4]), np.array([1.0])), b=np.ones(1)), "column 4"),
        (dict(matrix=Csr(np.array([0, 1]), np.array([-4]), np.array([1.0])), b=np.ones(1)), "holds -4; needed 0"),
        (dict(matrix=np.eye(60)), "the matrix is a ndarray without `indptr`"),
        (dict(matrix=Csr(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2)), b=np.ones(2)), "no entry on the diagonal"),
        (dict(matrix=Csr(np.array([0, 1]), np.array([0.5]), np.ones(1)), b=np.ones(1)), "needed integers"),
    ],
)
def test_mistakes_are_named(change, message):
    arguments = dict(matrix=csr(laplace(60)), b=np.ones(60)) | change
    with pytest.raises(purlin.ArgumentError, match=message):
        purlin.solve(arguments.pop("matrix"), arguments.pop("b"), **arguments)


def test_matrices_are_square():
    class Rows:
        shape = (2, 3)
        indptr, indices, data = np.array([0, 1, 2]), np.array([0, 1]), np.ones(2)

    with pytest.raises(purlin.ShapeError, match=r"the shape \[2, 3\] and 2 rows"):
        purlin.solve(Rows(), np.ones(2))


def test_newton_finds_the_root_and_keeps_what_is_fixed():
    n = 30
    dense = laplace(n)
    source = RANDOM.uniform(0, 1, n)
    start = np.zeros(n)
    start[[0, n - 1]] = 0.3, -0.2

    def residual(x):
        return dense @ x + x**3 - source

    def jacobian(x):
        return csr(dense + np.diag(3 * x**2))

    found = purlin.newton(residual, jacobian, start, fixed=[0, n - 1], relative=1e-12)
    assert found.converged and 1 <= found.iterations <= 8, found
    assert found.x[0] == 0.3 and found.x[n - 1] == -0.2
    assert np.abs(residual(found.x)[1:-1]).max() <= 1e-10
    assert len(found.residuals) == found.iterations + 1 == len(found.linear_iterations) + 1
    # quadratically at the end
    assert found.residuals[-1] <= 10 * found.residuals[-2] ** 2 + 1e-13


def test_newton_says_why_it_stops():
    identity = csr(np.eye(2))
    assert purlin.newton(lambda x: x - np.nan, lambda x: identity, np.ones(2)).reason == "a number is infinite or NaN"
    found = purlin.newton(lambda x: 1 + x**2, lambda x: csr(np.diag(2 * x)), np.array([1.5, 2.0]), max_iterations=3)
    assert not found.converged and found.reason
    found = purlin.newton(lambda x: np.ones(2), lambda x: identity, np.ones(2))
    assert found.reason == "the residual no longer decreases"
    with pytest.raises(purlin.ArgumentError, match="needed 0 to 1"):
        purlin.newton(lambda x: x, lambda x: identity, np.ones(2), fixed=[2])
