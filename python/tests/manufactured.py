"""Manufactured solutions of mixed and high-order problems, assembled and measured by the engine.

Each problem has a solution in closed form. Its matrix, its right-hand side and its errors are forms
of UFL, which the engine compiles; only the linear system is solved elsewhere. The unit square is
cut into triangles of any orientation and numbering, with moved vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import engine
import numpy as np
import kingpost
import ufl
from basix.ufl import element, mixed_element
from kingpost.export import dumps, export_form
from kingpost.export.elements import _leaves, states
from tabulated import Mesh
from ufl import avg, curl, div, dot, dS, ds, dx, grad, inner, jump, pi, sin
from write_samples import space_elements

from meshes import CellMesh, number

Json = dict[str, Any]

#: Degree of the rules for right-hand sides and errors: their own error is below those measured.
DEGREE = 10


@dataclass
class Problem:
    """A problem on a space, whose unknown is `w`."""

    name: str
    element: Any
    #: Bilinear form of test and trial function.
    matrix: Callable[[Any, Any], Any]
    #: Right-hand side of a test function, at a position.
    source: Callable[[Any, Any], Any]
    #: Errors of a function at a position, by name: an expression whose square is integrated.
    errors: dict[str, Callable[[Any, Any], Any]]
    #: Orders that theory gives the errors.
    orders: dict[str, float]
    #: Leaves of the element that are zero on the boundary.
    fixed: tuple[int, ...] = ()
    #: A leaf that is known up to a constant: its mean is zero.
    mean_free: int | None = None
    source_of_orders: str = ""


def _square(rng: np.random.Generator, n: int) -> CellMesh:
    """The unit square in 2 n² triangles, inner vertices moved by at most a sixth of a cell."""
    lines = np.arange(n + 1)
    vertices = np.stack(np.meshgrid(lines, lines, indexing="ij"), axis=-1).reshape(-1, 2) / n
    inner = np.all((vertices > 1e-9) & (vertices < 1 - 1e-9), axis=1)
    vertices[inner] += rng.uniform(-1, 1, (inner.sum(), 2)) / (6 * n)
    corner = (lines[:-1, None] * (n + 1) + lines[None, :-1]).reshape(-1)
    lower = np.stack([corner, corner + n + 1, corner + n + 2], axis=1)
    upper = np.stack([corner, corner + 1, corner + n + 2], axis=1)
    cells = np.concatenate([lower, upper])
    order = rng.permutation(len(vertices))
    cells = np.argsort(order)[cells]
    turned = [row[rng.permutation(3)] for row in cells[rng.permutation(len(cells))]]
    return CellMesh("triangle", vertices[order], np.array(turned))


@dataclass
class Discrete:
    """A problem on a mesh."""

    problem: Problem
    n: int
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))

    def __post_init__(self) -> None:
        self.mesh = _square(self.rng, self.n)
        self.domain = ufl.Mesh(element("P", "triangle", 1, shape=(2,)))
        self.space = ufl.FunctionSpace(self.domain, self.problem.element)
        self._maps: dict[Any, np.ndarray] = {}

    @cached_property
    def x(self) -> Any:
        """The position."""
        return ufl.SpatialCoordinate(self.domain)

    def _map(self, of: Any) -> np.ndarray:
        if of not in self._maps:
            self._maps[of] = number(self.mesh, of, self.rng)
        return self._maps[of]

    @property
    def n_dofs(self) -> int:
        """Unknowns of the problem, fixed ones included."""
        return (int(self._map(self.problem.element).max()) + 1) * self.problem.element.block_size

    def _bound(self, document: Json, form: Any, values: np.ndarray | None) -> Mesh:
        """The arguments of a form, whose only coefficient is the solution."""
        maps = [self._map(of) for of in space_elements(form)]
        positions = np.zeros((int(maps[0].max()) + 1, 2))
        for c, row in enumerate(maps[0]):
            positions[row] = self.mesh.vertices[self.mesh.cells[c]]
        arrays = [positions]
        for entry in document["functions"][1:]:
            assert values is not None
            arrays.append(values.reshape(-1, document["spaces"][entry["space"]]["block"]))
        info = self.mesh.cell_info
        own = [states(space, "triangle", info) for space in document["spaces"]]
        n_cells = len(self.mesh.cells)
        return Mesh(maps, arrays, [], own, n_cells, {}, self.mesh.facets())

    def computed(self, form: Any, values: np.ndarray | None = None) -> tuple[list[Any], list[Any]]:
        """What the engine's kernels of a form give: results, and local matrices with places."""
        document = export_form(form)
        mesh = self._bound(document, form, values)
        return engine.launched(document, mesh, kingpost.jit(dumps(document), "c"))

    def matrix(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and values of the matrix; several values of a place are added."""
        form = self.problem.matrix(ufl.TrialFunction(self.space), ufl.TestFunction(self.space))
        _, local = self.computed(form)
        parts: list[list[np.ndarray]] = [[], [], []]
        for _, (places, matrices) in local:
            for (rows, columns), matrix in zip(places, matrices, strict=True):
                grid = np.meshgrid(rows, columns, indexing="ij")
                for part, values in zip(parts, (*grid, matrix), strict=True):
                    part.append(values.reshape(-1))
        return tuple(map(np.concatenate, parts))

    def boundary(self) -> np.ndarray:
        """The unknowns that are zero, those of fixed leaves on the boundary."""
        facets = self.mesh.facets()["exterior_facet"]
        numbers = self._map(self.problem.element)
        block = self.problem.element.block_size
        found = set()
        for place, (leaf, own) in enumerate(_leaves(self.problem.element)):
            if place not in self.problem.fixed:
                continue
            closures = leaf.basix_element.entity_closure_dofs[1]
            for c, f in zip(facets["facet_cells"], facets["local_facets"], strict=True):
                for dof in closures[int(f)]:
                    found |= {int(numbers[c, own[dof]]) * block + k for k in range(block)}
        return np.array(sorted(found), dtype=int)

    def solve(self) -> np.ndarray:
        """The discrete solution [n_dofs]."""
        rows, columns, values = self.matrix()
        [right], _ = self.computed(self.problem.source(self.x, ufl.TestFunction(self.space)))
        fixed = self.boundary()
        if self.problem.mean_free is not None:
            # one value is fixed, and the mean is taken off later
            own = list(_leaves(self.problem.element))[self.problem.mean_free][1]
            fixed = np.append(fixed, self._map(self.problem.element)[0, own[0]])
        free = np.setdiff1d(np.arange(self.n_dofs), fixed)
        found = np.zeros(self.n_dofs)
        found[free] = _solved(rows, columns, values, self.n_dofs, right, free)
        return found

    def errors(self) -> dict[str, float]:
        """The errors of the discrete solution by name."""
        values = self.solve()
        w = ufl.Coefficient(self.space)
        found = {}
        for name, error in self.problem.errors.items():
            e = error(self.x, w)
            [square], _ = self.computed(inner(e, e) * dx(degree=DEGREE), values)
            if name == "p":  # up to a constant
                [mean], _ = self.computed(e * dx(degree=DEGREE), values)
                square = square - mean**2
            found[name] = float(np.sqrt(square))
        return found


def _solved(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n: int, right: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """By SciPy's sparse factorisation, or a dense one where SciPy is missing and it is small."""
    try:
        from scipy.sparse import coo_matrix
        from scipy.sparse.linalg import spsolve
    except ImportError:
        matrix = np.zeros((n, n))
        np.add.at(matrix, (rows, columns), values)
        return np.linalg.solve(matrix[np.ix_(free, free)], right.reshape(-1)[free])
    matrix = coo_matrix((values, (rows, columns)), shape=(n, n)).tocsr()
    return spsolve(matrix[free][:, free].tocsc(), right.reshape(-1)[free])


def _velocity(x: Any) -> Any:
    """Divergence-free, zero on the boundary."""
    stream = (sin(pi * x[0]) * sin(pi * x[1])) ** 2
    return ufl.as_vector([stream.dx(1), -stream.dx(0)])


def _pressure(x: Any) -> Any:
    return ufl.cos(pi * x[0]) * ufl.cos(2 * pi * x[1])


def stokes() -> Problem:
    """Taylor–Hood elements of degrees 2 and 1."""

    def matrix(trial: Any, test: Any) -> Any:
        (u, p), (v, q) = ufl.split(trial), ufl.split(test)
        return (inner(grad(u), grad(v)) - p * div(v) - q * div(u)) * dx

    def source(x: Any, test: Any) -> Any:
        v, _ = ufl.split(test)
        return inner(-div(grad(_velocity(x))) + grad(_pressure(x)), v) * dx(degree=DEGREE)

    return Problem(
        "Stokes, Taylor–Hood P2/P1",
        mixed_element([element("P", "triangle", 2, shape=(2,)), element("P", "triangle", 1)]),
        matrix,
        source,
        {
            "u": lambda x, w: ufl.split(w)[0] - _velocity(x),
            "grad u": lambda x, w: grad(ufl.split(w)[0] - _velocity(x)),
            "p": lambda x, w: ufl.split(w)[1] - _pressure(x),
        },
        {"u": 3, "grad u": 2, "p": 2},
        fixed=(0, 1),
        mean_free=2,
        source_of_orders="Boffi et al. 2013, ch. 8",
    )


def _bump(x: Any) -> Any:
    return sin(pi * x[0]) * sin(pi * x[1])


def mixed_poisson(flux: str, degree: int, orders: dict[str, float]) -> Problem:
    """The flux in H(div), the potential discontinuous."""
    potential = degree - 1

    def matrix(trial: Any, test: Any) -> Any:
        (s, u), (t, v) = ufl.split(trial), ufl.split(test)
        return (inner(s, t) + u * div(t) + div(s) * v) * dx

    def source(x: Any, test: Any) -> Any:
        _, v = ufl.split(test)
        return div(grad(_bump(x))) * v * dx(degree=DEGREE)

    return Problem(
        f"mixed Poisson, {flux}{degree}/DG{potential}",
        mixed_element([element(flux, "triangle", degree), element("DG", "triangle", potential)]),
        matrix,
        source,
        {
            "flux": lambda x, w: ufl.split(w)[0] - grad(_bump(x)),
            "div flux": lambda x, w: div(ufl.split(w)[0]) - div(grad(_bump(x))),
            "u": lambda x, w: ufl.split(w)[1] - _bump(x),
        },
        orders,
        source_of_orders="Boffi et al. 2013, ch. 7",
    )


def _field(x: Any) -> Any:
    """No divergence, no tangential component on the boundary."""
    return ufl.as_vector([sin(pi * x[1]), sin(pi * x[0])])


def curl_curl(degree: int) -> Problem:
    """Nédélec elements of the first kind."""

    def matrix(u: Any, v: Any) -> Any:
        return (inner(curl(u), curl(v)) + inner(u, v)) * dx

    def source(x: Any, v: Any) -> Any:
        return inner((1 + pi**2) * _field(x), v) * dx(degree=DEGREE)

    return Problem(
        f"curl–curl, N1curl{degree}",
        element("N1curl", "triangle", degree),
        matrix,
        source,
        {
            "E": lambda x, w: w - _field(x),
            "curl E": lambda x, w: curl(w) - curl(_field(x)),
        },
        {"E": degree, "curl E": degree},
        fixed=(0,),
        source_of_orders="Boffi et al. 2013, ch. 11",
    )


def biharmonic(degree: int, orders: dict[str, float]) -> Problem:
    """A simply supported plate by continuous elements with an interior penalty."""

    def matrix(u: Any, v: Any) -> Any:
        domain = ufl.domain.extract_unique_domain(u)
        n, h = ufl.FacetNormal(domain), avg(ufl.Circumradius(domain))
        moment = lambda w: avg(div(grad(w)))  # noqa: E731
        turn = lambda w: jump(grad(w), n)  # noqa: E731
        inside = inner(div(grad(u)), div(grad(v))) * dx
        return inside + (-moment(u) * turn(v) - turn(u) * moment(v) + degree**2 / h * turn(u) * turn(v)) * dS

    def source(x: Any, v: Any) -> Any:
        return 4 * pi**4 * _bump(x) * v * dx(degree=DEGREE)

    return Problem(
        f"biharmonic, interior penalty P{degree}",
        element("P", "triangle", degree),
        matrix,
        source,
        {
            "u": lambda x, w: w - _bump(x),
            "grad u": lambda x, w: grad(w - _bump(x)),
            "laplacian u": lambda x, w: div(grad(w - _bump(x))),
        },
        orders,
        fixed=(0,),
        source_of_orders="Brenner & Sung 2005",
    )


def patch() -> Problem:
    """A linear function through boundary terms alone: its error is rounding."""
    exact = lambda x: 1 + 2 * x[0] - 3 * x[1]  # noqa: E731

    def matrix(u: Any, v: Any) -> Any:
        domain = ufl.domain.extract_unique_domain(u)
        n, h = ufl.FacetNormal(domain), ufl.Circumradius(domain)
        flux = dot(avg(grad(u)), jump(v, n)) + dot(jump(u, n), avg(grad(v)))
        inside = inner(grad(u), grad(v)) * dx + (10 / avg(h) * jump(u) * jump(v) - flux) * dS
        return inside + (10 / h * u * v - dot(grad(u), n) * v - u * dot(grad(v), n)) * ds

    def source(x: Any, v: Any) -> Any:
        domain = ufl.domain.extract_unique_domain(v)
        n, h = ufl.FacetNormal(domain), ufl.Circumradius(domain)
        return exact(x) * (10 / h * v - dot(grad(v), n)) * ds

    errors = {"u": lambda x, w: w - exact(x), "grad u": lambda x, w: grad(w) - grad(exact(x))}
    return Problem("patch test, interior penalty DG1", element("DG", "triangle", 1), matrix, source, errors, {})


def problems() -> list[Problem]:
    """The problems whose errors have an order."""
    return [
        stokes(),
        mixed_poisson("RT", 1, {"flux": 1, "div flux": 1, "u": 1}),
        mixed_poisson("RT", 2, {"flux": 2, "div flux": 2, "u": 2}),
        mixed_poisson("BDM", 1, {"flux": 2, "div flux": 1, "u": 1}),
        mixed_poisson("BDM", 2, {"flux": 3, "div flux": 2, "u": 2}),
        curl_curl(1),
        curl_curl(2),
        biharmonic(2, {"u": 2, "grad u": 2, "laplacian u": 1}),
        biharmonic(3, {"u": 4, "grad u": 3, "laplacian u": 2}),
    ]


def orders(coarse: dict[str, float], fine: dict[str, float], ratio: float) -> dict[str, float]:
    """Observed orders between two meshes whose cells differ by a factor."""
    return {name: float(np.log(coarse[name] / fine[name]) / np.log(ratio)) for name in coarse}

