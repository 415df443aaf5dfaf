"""Roots of residuals: values, derivatives by the adjoint system against Taylor's formula, what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

ufl = pytest.importorskip("ufl")

import kingpost  # noqa: E402
from basix.ufl import element  # noqa: E402
from problems import CELLS, PROBLEMS, X, Nonlinear, drawn  # noqa: E402


class Library(NamedTuple):
    """What differs between libraries."""

    function: Any
    asarray: Any
    #: The gradient of a function of one array, and the function as the library compiles it.
    gradient: Any
    compiled: Any
    #: What a failure within a call is.
    failure: type[Exception]


@pytest.fixture(scope="module", params=["jax", "torch"])
def library(request) -> Library:
    return {"jax": _jax, "torch": _torch}[request.param]()


def _jax() -> Library:
    jax = pytest.importorskip("jax", reason="skipped: JAX is not installed (pip install jax)")
    import kingpost.jax

    jax.config.update("jax_enable_x64", True)
    gradient = lambda f: jax.jit(jax.grad(f))  # noqa: E731
    return Library(kingpost.jax.function, jax.numpy.asarray, gradient, jax.jit, jax.errors.JaxRuntimeError)


def _torch() -> Library:
    torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed (pip install torch)")
    import kingpost.torch

    def gradient(f):
        def of(x):
            at = x if x.requires_grad else x.detach().requires_grad_()
            (found,) = torch.autograd.grad(f(at), at, create_graph=x.requires_grad)
            return found

        return of

    return Library(kingpost.torch.function, torch.as_tensor, gradient, lambda f: f, kingpost.ConvergenceError)


def functions(library: Library, problem: Nonlinear) -> tuple:
    """The residual, its root and the functional of it, of the values of a problem."""
    def function(form):
        own = {*form.coefficients(), *form.constants()}
        return library.function(form, names={one: name for one, name in problem.names.items() if one in own})

    residual, functional = function(problem.residual), function(problem.functional)
    solve = residual.solver("u", **problem.linear)
    given = {name: library.asarray(value) for name, value in problem.values.items()}

    def root(**values):
        return solve(fixed=problem.fixed, **given | values, **problem.mesh)

    def of_root(**values):
        taken = {name: value for name, value in (given | values).items() if name in functional.names}
        return functional(**taken | {"u": root(**values)}, **problem.mesh)

    return residual, root, of_root


def numbers(value: Any) -> np.ndarray:
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def orders(f: Any, gradient: Any, point: Any, direction: Any) -> list[float]:
    """The orders in which Taylor's remainders vanish, without and with the derivative, along halved steps."""
    value, slope = float(f(point)), float((gradient(point) * direction).sum())
    found = []
    for correction in (0.0, slope):
        remainders = [abs(float(f(point + h * direction)) - value - h * correction) for h in (1e-2, 5e-3, 2.5e-3)]
        found.append(min(np.log2(np.array(remainders[:-1]) / remainders[1:])))
    return found


def check(library: Library, f: Any, point: np.ndarray, seed: int) -> None:
    direction = library.asarray(drawn(point.shape, seed, -0.5, 0.5))
    first, second = orders(library.compiled(f), library.gradient(f), library.asarray(point), direction)
    assert 0.8 < first < 1.6 and 1.9 < second, (first, second)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_root_is_one(library: Library, name: str) -> None:
    problem = PROBLEMS[name]()
    residual, root, _ = functions(library, problem)
    u = root()
    at_root = numbers(residual(**{**problem.values, "u": u}, **problem.mesh)).ravel()
    at_start = numbers(residual(**problem.values, **problem.mesh)).ravel()
    free = np.setdiff1d(np.arange(at_root.size), problem.fixed)
    # Newton's relative tolerance
    assert np.linalg.norm(at_root[free]) <= 1e-10 * np.linalg.norm(at_start[free])
    assert np.linalg.norm(at_root) > 1e-3, "the fixed unknowns have reactions"
    start = problem.values["u"].ravel()
    assert (numbers(u).ravel()[problem.fixed] == start[problem.fixed]).all()
    # what is added to the residual
    y = drawn(problem.values["u"].shape, 5, -0.01, 0.01)
    moved = root(y=library.asarray(y))
    at_root = numbers(residual(**{**problem.values, "u": moved}, **problem.mesh)) + y
    assert np.linalg.norm(at_root.ravel()[free]) <= 1e-10 * np.linalg.norm(at_start[free])


@pytest.mark.parametrize(
    "name, by",
    [("diffusion", "k"), ("diffusion", "c"), ("diffusion", "u"), ("diffusion", "y"),
     ("solid", "mu"), ("solid", "bulk"), ("solid", "force"), ("solid", "u"), ("solid", "y")],
)  # fmt: skip
def test_gradients_of_functionals_of_roots(library: Library, name: str, by: str) -> None:
    """By coefficients, constants, what is added, and the values of unknowns that are fixed, which stand in the start."""
    problem = PROBLEMS[name]()
    _, _, of_root = functions(library, problem)
    shape = problem.values["u"].shape
    point = drawn(shape, 6, -0.01, 0.01) if by == "y" else problem.values[by]
    check(library, lambda value: of_root(**{by: value}), point, 7)
    if by == "u":
        free = np.setdiff1d(np.arange(point.size), problem.fixed)
        gradient = numbers(library.gradient(lambda value: of_root(u=value))(library.asarray(point)))
        assert not gradient.ravel()[free].any(), "the root does not depend on where Newton's method starts"


@pytest.mark.parametrize("name, by", [("diffusion", "u"), ("solid", "mu")])
def test_second_derivatives(library: Library, name: str, by: str) -> None:
    """The gradient along a direction, as a function: its gradient is a product with the Hessian."""
    problem = PROBLEMS[name]()
    *_, of_root = functions(library, problem)
    gradient = library.gradient(lambda value: of_root(**{by: value}))
    along = library.asarray(drawn(problem.values[by].shape, 8, -1.0, 1.0))
    check(library, lambda value: (gradient(value) * along).sum(), problem.values[by], 9)


def test_forward_derivatives_and_batches_under_jax() -> None:
    library = _jax()
    import jax

    problem = PROBLEMS["solid"]()
    _, root, _ = functions(library, problem)
    of_force = lambda force: root(force=force)  # noqa: E731
    force = jax.numpy.asarray(problem.values["force"])
    forward, backward = jax.jacfwd(of_force)(force), jax.jacrev(of_force)(force)
    # the tolerance of the linear systems, relative to the right-hand sides
    assert np.allclose(forward, backward, rtol=0, atol=1e-9 * abs(forward).max())
    several = jax.numpy.stack([force, 2 * force])
    batched = jax.jit(jax.vmap(of_force))(several)
    # Newton's tolerance
    assert np.allclose(batched, np.stack([of_force(one) for one in several]), rtol=0, atol=1e-8)


def test_single_precision(library: Library) -> None:
    problem = PROBLEMS["solid"]()
    single = lambda value: value.astype("float32") if value.dtype == "float64" else value  # noqa: E731
    problem = problem._replace(
        values={name: single(value) for name, value in problem.values.items()},
        mesh={name: single(value) for name, value in problem.mesh.items()},
    )
    *_, of_root = functions(library, problem)
    *_, in_double = functions(library, PROBLEMS["solid"]())
    found = library.gradient(lambda mu: of_root(mu=mu))(library.asarray(problem.values["mu"]))
    expected = library.gradient(lambda mu: in_double(mu=mu))(library.asarray(PROBLEMS["solid"]().values["mu"]))
    assert numbers(found).dtype == "float32"
    # Newton's tolerance in single precision, times a condition number of about 10
    assert np.allclose(numbers(found), numbers(expected), rtol=0, atol=1e-4 * float(abs(expected).max()))


def test_what_is_refused_is_named(library: Library) -> None:
    mesh = ufl.Mesh(element("Lagrange", "triangle", 1, shape=(2,)))
    p1, p2 = (ufl.FunctionSpace(mesh, element("Lagrange", "triangle", k)) for k in (1, 2))
    u, k, v, w = ufl.Coefficient(p1), ufl.Coefficient(p2), ufl.TestFunction(p1), ufl.TestFunction(p2)
    of = lambda form: library.function(form, names={one: {u: "u", k: "k"}[one] for one in form.coefficients()})  # noqa: E731
    with pytest.raises(kingpost.FormError, match="found one with 0 arguments, needed a residual"):
        of(u**2 * ufl.dx).solver("u")
    with pytest.raises(kingpost.FormError, match="found test functions of another space than `u`"):
        of(u * w * ufl.dx).solver("u")
    with pytest.raises(kingpost.FormError, match="derivative by `w`: found no coefficient or constant of this name"):
        of(u * v * ufl.dx).solver("w")
    residual = of((u**2 + 1) * v * ufl.dx)  # it has no root
    given = {"x": X, "x_dofs": CELLS, "p1_dofs": CELLS}
    with pytest.raises(kingpost.MissingArgument, match="argument `u` is missing: the start"):
        residual.solver("u")(**given)
    with pytest.raises(library.failure, match="Newton's method for `u`: .* after .* steps"):
        np.asarray(residual.solver("u")(u=library.asarray(np.ones(len(X))), **given))
