"""Linear systems and Newton's method on devices against NumPy's elimination."""

from __future__ import annotations

import time

import numpy as np
import kingpost
import pytest
import ufl
from basix.ufl import element
from kingpost import Csr

RANDOM = np.random.default_rng()


def csr(dense, shuffled=False, side=1):
    """A dense matrix by rows, with all entries of blocks of a given number of rows on the diagonal; shuffled, its
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
    found = kingpost.solve(
        matrix, b, method=method, preconditioner=preconditioner, relative=1e-12, components=side
    )
    assert found.converged and found.reason == "converged", found
    assert found.iterations >= 1 and found.residuals[-1] <= 1e-11 * np.linalg.norm(b)
    assert np.abs(found.x - np.linalg.solve(dense, b)).max() <= 1e-9


def test_several_right_hand_sides_share_a_preconditioner():
    dense = laplace(40)
    b = RANDOM.standard_normal((40, 3))
    found = kingpost.solve(csr(dense), b, relative=1e-12)
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
    op = kingpost.jit(form, matrix="sparse")
    matrix = op.assemble(x=grid, x_dofs=cells, p1_dofs=cells)
    rows = np.repeat(np.arange(len(grid)), np.diff(matrix.indptr))
    dense = np.zeros((len(grid), len(grid)))
    dense[rows, matrix.indices] = matrix.data
    exact = RANDOM.standard_normal(len(grid))
    found = kingpost.solve(matrix, dense @ exact, preconditioner="amg", relative=1e-12)
    assert found.converged and np.abs(found.x - exact).max() <= 1e-8


FORMATS = ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"]


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", FORMATS)
def test_matrices_of_scipy_are_taken_in_every_format(form, kind):
    sparse = pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
    dense = laplace(30, 0.4)  # without symmetry, so that the transpose is another matrix
    b = RANDOM.standard_normal(30)
    matrix = getattr(sparse, f"{form}_{kind}")(dense)
    found = kingpost.solve(matrix, b, method="gmres", relative=1e-12)
    assert found.converged and np.abs(found.x - np.linalg.solve(dense, b)).max() <= 1e-9
    root = kingpost.newton(lambda x: dense @ x - b, lambda x: matrix, np.zeros(30), method="gmres", relative=1e-9)
    assert root.converged and np.abs(root.x - np.linalg.solve(dense, b)).max() <= 1e-6


def test_rows_of_scipy_may_have_room_and_repeat_entries():
    sparse = pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
    matrix = sparse.csr_matrix((np.array([1.0, 1.0, 4.0, 9.0]), np.array([0, 0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert np.allclose(kingpost.solve(matrix, np.array([2.0, 8.0])).x, [1.0, 2.0])


class ByColumns:
    """A matrix by columns, which has the three arrays of one by rows."""

    format = "csc"

    def __init__(self, dense):
        transposed = csr(dense.T)
        self.indptr, self.indices, self.data = transposed.indptr, transposed.indices, transposed.data
        self.shape = dense.shape


class Converted(ByColumns):
    """The same, as CuPy's matrices are: its library converts it."""

    def tocsr(self):
        rows = Csr(*(np.array(a) for a in (self.indptr, self.indices, self.data)))
        dense = np.zeros(self.shape)
        for column in range(len(dense)):
            for k in range(rows.indptr[column], rows.indptr[column + 1]):
                dense[rows.indices[k], column] = rows.data[k]
        return csr(dense)


def test_a_matrix_by_columns_is_not_the_transpose():
    dense, b = laplace(30, 0.4), RANDOM.standard_normal(30)
    found = kingpost.solve(Converted(dense), b, method="gmres", relative=1e-12)
    assert found.converged and np.abs(found.x - np.linalg.solve(dense, b)).max() <= 1e-9
    with pytest.raises(kingpost.ArgumentError, match="the matrix has the format `csc` and no `tocsr`"):
        kingpost.solve(ByColumns(dense), b)


@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab", "chebyshev"])
@pytest.mark.parametrize(("of_matrix", "of_b"), [(0, -660), (0, -1010), (-660, 0), (-600, -1000), (700, 300), (0, 1000)])
def test_numbers_of_any_size_are_solved_with(method, of_matrix, of_b):
    dense, b = laplace(40), RANDOM.standard_normal(40)
    expected = np.linalg.solve(dense, b)
    factor = 2.0 ** (of_b - of_matrix)
    matrix = csr(dense * 2.0**of_matrix)
    preconditioner = "amg" if method in ("cg", "bicgstab") else "jacobi"
    for chosen in {preconditioner, "none"}:
        found = kingpost.solve(matrix, b * 2.0**of_b, method=method, preconditioner=chosen, relative=1e-12)
        assert found.converged and found.iterations > 0, found
        assert np.abs(found.x / factor - expected).max() <= 1e-9 * np.abs(expected).max(), chosen
        assert found.residuals[0] == pytest.approx(np.linalg.norm(b) * 2.0**of_b, rel=1e-9)


def test_a_solution_beyond_all_numbers_has_not_converged():
    found = kingpost.solve(csr(laplace(5) * 2.0**-900), np.full(5, 2.0**900))
    assert not found.converged and found.reason == "a number is infinite or NaN"


def test_newton_takes_tiny_residuals():
    tiny = 2.0**-700
    found = kingpost.newton(lambda x: (x - 3.0) * tiny, lambda x: csr(np.eye(2) * tiny), np.zeros(2), absolute=0.0)
    assert found.converged and np.allclose(found.x, 3.0) and found.iterations >= 1
    assert found.residuals[0] == pytest.approx(3 * 2**0.5 * tiny)


def test_no_iterations_leave_the_start():
    dense, b = laplace(20), np.ones(20)
    for method in ("cg", "gmres", "bicgstab", "chebyshev"):
        found = kingpost.solve(csr(dense), b, method=method, max_iterations=0)
        assert not found.converged and found.reason == "too many iterations" and found.iterations == 0
        assert not found.x.any() and len(found.residuals) == 1
        assert kingpost.solve(csr(dense), b, method=method, max_iterations=0, absolute=10.0).converged
        for count in (1, 2, 5):
            found = kingpost.solve(csr(dense), b, method=method, max_iterations=count, relative=1e-14)
            assert found.iterations == count
            assert np.linalg.norm(b - dense @ found.x) == pytest.approx(found.residuals[-1], rel=1e-6)


@pytest.mark.parametrize("every", [None, 3, 700])
def test_multigrid_of_matrices_with_few_couplings_is_quick(every):
    n = 20_000
    starts, columns, data = np.arange(n + 1), np.arange(n), 1.0 + np.arange(n) % 11
    if every is not None:
        sparse = pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")
        off_diagonal = np.where(np.arange(n - 1) % every == 0, -0.5, 0.0)
        matrix = sparse.diags([off_diagonal, data, off_diagonal], [-1, 0, 1], format="csr")
        matrix.eliminate_zeros()
    else:
        matrix = Csr(starts, columns, data)
    before = time.monotonic()
    found = kingpost.solve(matrix, data.copy(), preconditioner="amg", relative=1e-12)
    assert found.converged and found.iterations <= 15, found
    if every is None:
        assert np.abs(found.x - 1.0).max() <= 1e-9
    assert time.monotonic() - before < 20, "a dense inverse takes minutes"


def test_what_does_not_converge_says_why():
    found = kingpost.solve(csr(laplace(60)), np.ones(60), max_iterations=2)
    assert not found.converged and found.reason == "too many iterations"
    found = kingpost.solve(csr(-laplace(60)), np.ones(60))
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
        (dict(relative=-1.0), "`relative` is -1; needed a finite number from 0 on"),
        (dict(absolute=-1e-3), "`absolute` is -0.001; needed a finite number"),
        (dict(relative=np.nan), "`relative` is nan; needed"),
        (dict(absolute=np.inf), "`absolute` is inf; needed"),
        (dict(relative="small"), "`relative` is a str, needed a number"),
        (dict(max_iterations=-1), "`max_iterations` is -1; needed an integer from 0 on"),
        (dict(max_iterations=2**64), "`max_iterations` is 18446744073709551616; needed"),
        (dict(max_iterations=1.5), "`max_iterations` is a float, needed an integer"),
        (dict(components=0), "`components` is 0; needed an integer from 1 on"),
        (dict(components=-3), "`components` is -3; needed"),
        (dict(method=3), "`method` is a int, needed a name"),
        (dict(preconditioner=None), "`preconditioner` is a NoneType, needed a name"),
        (dict(device=0), "`device` is a int, needed a name"),
        (dict(matrix=np.eye(60)), "the matrix is a ndarray without `indptr`"),
        (dict(matrix=Csr(np.array([0, 1, 2]), np.array([1, 0]), np.ones(2)), b=np.ones(2)), "no entry on the diagonal"),
        (dict(matrix=Csr(np.array([0, 1]), np.array([0.5]), np.ones(1)), b=np.ones(1)), "needed integers"),
    ],
)
def test_mistakes_are_named(change, message):
    arguments = dict(matrix=csr(laplace(60)), b=np.ones(60)) | change
    with pytest.raises(kingpost.ArgumentError, match=message):
        kingpost.solve(arguments.pop("matrix"), arguments.pop("b"), **arguments)


def test_matrices_are_square():
    class Rows:
        shape = (2, 3)
        indptr, indices, data = np.array([0, 1, 2]), np.array([0, 1]), np.ones(2)

    with pytest.raises(kingpost.ShapeError, match=r"the shape \[2, 3\] and 2 rows"):
        kingpost.solve(Rows(), np.ones(2))


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

    found = kingpost.newton(residual, jacobian, start, fixed=[0, n - 1], relative=1e-12)
    assert found.converged and 1 <= found.iterations <= 8, found
    assert found.x[0] == 0.3 and found.x[n - 1] == -0.2
    assert np.abs(residual(found.x)[1:-1]).max() <= 1e-10
    assert len(found.residuals) == found.iterations + 1 == len(found.linear_iterations) + 1
    # quadratically at the end
    assert found.residuals[-1] <= 10 * found.residuals[-2] ** 2 + 1e-13


def test_newton_says_why_it_stops():
    identity = csr(np.eye(2))
    assert kingpost.newton(lambda x: x - np.nan, lambda x: identity, np.ones(2)).reason == "a number is infinite or NaN"
    found = kingpost.newton(lambda x: 1 + x**2, lambda x: csr(np.diag(2 * x)), np.array([1.5, 2.0]), max_iterations=3)
    assert not found.converged and found.reason
    found = kingpost.newton(lambda x: np.ones(2), lambda x: identity, np.ones(2))
    assert found.reason == "the residual no longer decreases"
    with pytest.raises(kingpost.ArgumentError, match="needed 0 to 1"):
        kingpost.newton(lambda x: x, lambda x: identity, np.ones(2), fixed=[2])
    found = kingpost.newton(lambda x: x - 3.0, lambda x: identity, np.ones(2), max_iterations=0)
    assert not found.converged and found.reason == "too many iterations" and found.x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(relative=-1.0), "`relative` is -1"), (dict(absolute=np.nan), "`absolute` is nan"),
        (dict(max_iterations=-1), "`max_iterations` is -1"), (dict(halvings=-1), "`halvings` is -1"),
        (dict(fixed=[True, False]), "`fixed` holds bool; needed the numbers of unknowns"),
        (dict(fixed=[0.5]), "`fixed` holds float64"), (dict(fixed=[[0, 1]]), "`fixed` holds"),
    ],
)  # fmt: skip
def test_options_of_newton_that_mean_nothing_are_refused(options, message):
    with pytest.raises(kingpost.ArgumentError, match=message):
        kingpost.newton(lambda x: x, lambda x: csr(np.eye(2)), np.ones(2), **options)


@pytest.mark.parametrize(("method", "skew"), [("cg", 0.0), ("gmres", 0.3)])
def test_operators_and_preconditioners_may_be_functions(method, skew):
    import scipy.sparse.linalg

    dense = laplace(120, skew)
    b = RANDOM.standard_normal((120, 2))
    expected = np.linalg.solve(dense, b)
    inverse = np.linalg.inv(laplace(120))
    products = [lambda x: dense @ x, scipy.sparse.linalg.aslinearoperator(dense), csr(dense)]
    preconditioners = [lambda r: inverse @ r, scipy.sparse.linalg.aslinearoperator(inverse), "none"]
    plain = kingpost.solve(products[0], b, method=method, preconditioner="none", relative=1e-12)
    for product in products:
        for preconditioner in preconditioners:
            found = kingpost.solve(product, b, method=method, preconditioner=preconditioner, relative=1e-12)
            assert found.converged and abs(found.x - expected).max() <= 1e-9, found
    best = kingpost.solve(products[0], b[:, 0], method=method, preconditioner=preconditioners[0], relative=1e-12)
    assert best.x.shape == (120,) and best.iterations < plain.iterations / 2
    # the residuals are those of the system
    assert np.isclose(best.residuals[-1], np.linalg.norm(b[:, 0] - dense @ best.x), atol=1e-12)
    assert str(best).startswith(f"converged after {best.iterations} iterations, residual ")
    assert best._repr_svg_().startswith("<svg") and str(best.iterations) in best._repr_svg_()


@pytest.mark.parametrize("precondition", [False, True])
def test_minres_solves_what_is_not_definite(precondition):
    """Symmetric with eigenvalues of both signs, with the absolute value of the matrix in between as a preconditioner."""
    basis = np.linalg.qr(RANDOM.standard_normal((80, 80)))[0]
    eigenvalues = np.concatenate([-np.linspace(1, 20, 30), np.linspace(0.5, 40, 50)])
    dense, b = basis @ np.diag(eigenvalues) @ basis.T, RANDOM.standard_normal(80)
    near = basis @ np.diag(1 / (np.abs(eigenvalues) * np.linspace(0.5, 1.5, 80))) @ basis.T
    before = (lambda r: near @ r) if precondition else "none"
    found = kingpost.solve(lambda x: dense @ x, b, method="minres", preconditioner=before, relative=1e-11)
    assert found.converged and found.iterations < (40 if precondition else 160)
    assert abs(found.x - np.linalg.solve(dense, b)).max() <= 1e-9
    assert np.isclose(found.residuals[-1], np.linalg.norm(b - dense @ found.x), atol=1e-12)
    # a singular system with a solution; the preconditioner scales, so that its norm is another one
    singular = basis @ np.diag(np.where(np.arange(80) == 3, 0, eigenvalues)) @ basis.T
    right, scale = singular @ b, 10.0 ** RANDOM.uniform(-3, 3, 80)
    found = kingpost.solve(lambda x: singular @ x, right, method="minres", preconditioner=lambda r: scale * r, relative=1e-8)
    assert found.converged and np.linalg.norm(right - singular @ found.x) <= 1e-8 * np.linalg.norm(right)
    wrong = kingpost.solve(lambda x: dense @ x, b, method="minres", preconditioner=lambda r: -r)
    assert wrong.reason == "the preconditioner is not positive definite"
    assert kingpost.solve(lambda x: dense @ x, b, method="minres", max_iterations=2).reason == "too many iterations"
    assert kingpost.solve(lambda x: dense @ x, np.zeros(80), method="minres").converged


def test_solves_of_functions_end_with_a_reason():
    dense, b = laplace(60), RANDOM.standard_normal(60)
    stopped = kingpost.solve(lambda x: dense @ x, b, max_iterations=3)
    assert not stopped.converged and stopped.reason == "too many iterations" and stopped.iterations == 3
    indefinite = kingpost.solve(lambda x: -(dense @ x), b)
    assert indefinite.reason == "the matrix is not positive definite"
    wrong = kingpost.solve(lambda x: x * np.inf, b, method="gmres")
    assert wrong.reason == "a number is infinite or NaN"
    assert kingpost.solve(lambda x: dense @ x, np.zeros(60)).converged
    restarted = kingpost.solve(lambda x: laplace(200) @ x, np.ones(200), method="gmres", relative=1e-12)
    assert restarted.converged and restarted.iterations > 50
    assert kingpost.solve(lambda x: dense @ x, np.zeros((60, 0))).reason == "no right-hand side"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(method="bicgstab"), "`method` is 'bicgstab', and products are functions; needed cg, minres, gmres"),
        (dict(preconditioner="amg"), "`preconditioner` is 'amg', and the matrix is a function"),
        (dict(device="opencl"), "`device` is 'opencl', and products are functions, which run on the host"),
        (dict(preconditioner=lambda r: r[:-1]), "`preconditioner` gives an array of shape .59.; needed .60."),
        (dict(preconditioner=lambda r: r * 1j), "`preconditioner` gives elements of type complex128"),
        (dict(relative=-1), "`relative` is -1"),
    ],
)
def test_options_of_functions_are_checked(options, message):
    with pytest.raises(kingpost.ArgumentError, match=message):
        kingpost.solve(lambda x: 2.0 * x, np.ones(60), **options)
