"""Forms of DOLFINx, each compared with DOLFINx's own assembler.

A case returns the largest difference on any process, relative to the largest entry of the
assembler's result. ``mpiexec -n 2 python dolfinx_cases.py`` prints them as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import dolfinx_solver  # noqa: F401 (loads MPI before the bindings)
import numpy as np
import ufl
from basix.ufl import element, mixed_element
from dolfinx import fem, la, mesh
from dolfinx.fem import petsc
from mpi4py import MPI
from petsc4py import PETSc
from ufl import TestFunction, TrialFunction, avg, curl, div, dS, ds, dx, grad, inner, jump

import kingpost.dolfinx
from kingpost.dolfinx import linear

COMM = MPI.COMM_WORLD
CASES: dict[str, Callable[[], float]] = {}
GHOSTS = mesh.GhostMode.shared_facet


def case(function: Callable[..., float], *arguments: Any) -> Callable[..., float]:
    """Adds a case: a function, with the arguments that it is called with."""
    name = "-".join([function.__name__, *map(str, arguments)])
    CASES[name] = lambda: function(*arguments)
    return function


def cases(*rows: tuple) -> Callable:
    """Adds a case a row."""

    def register(function: Callable[..., float]) -> Callable[..., float]:
        for row in rows:
            case(function, *row)
        return function

    return register


def unit(cell: str, n: int = 3, dtype: type = np.float64, gdim: int | None = None) -> Any:
    """A unit mesh with moved positions, whose cells start at any vertex, in any orientation.

    It is the same on any number of processes. Where space has more dimensions than the cells, it is curved there.
    """
    kind = mesh.CellType[cell]
    dim = mesh.cell_dim(kind)
    if dim == 1:
        plain = mesh.create_unit_interval(MPI.COMM_SELF, 4 * n)
    elif dim == 2:
        plain = mesh.create_unit_square(MPI.COMM_SELF, n, n + 1, kind)
    else:
        plain = mesh.create_unit_cube(MPI.COMM_SELF, n, 2, 2, kind)
    x, cells = plain.geometry.x[:, :dim], plain.geometry.dofmaps[0]
    moved = [0.04 * np.sin(5 * x[:, (d + 1) % dim] + d + 2 * x[:, d]) for d in range(dim)]
    x = (x + np.stack(moved, axis=1)).astype(dtype)
    gdim = dim if gdim is None else gdim
    lifted = [0.3 * np.sin(2 * x[:, 0] + axis) + 0.1 * x[:, -1] ** 2 for axis in range(dim, gdim)]
    x = np.stack([*x.T, *lifted], axis=1)
    rng = np.random.default_rng(11)
    cells = np.array([vertices[turned(cells.shape[1], dim, rng)] for vertices in cells], dtype=np.int64)
    if COMM.rank > 0:
        x, cells = x[:0], cells[:0]
    domain = ufl.Mesh(element("Lagrange", cell, 1, shape=(gdim,), dtype=dtype))
    return mesh.create_mesh(COMM, cells, domain, x, mesh.create_cell_partitioner(GHOSTS, 2))


def turned(vertices: int, dim: int, rng: np.random.Generator) -> Any:
    """A random symmetry of a cell, as the order of its vertices."""
    if vertices == dim + 1:
        return rng.permutation(vertices)
    if vertices == 6:
        # a prism: its triangles in any order, and either first
        triangle, flip = rng.permutation(3), 3 * rng.integers(0, 2)
        return np.concatenate([triangle + flip, triangle + 3 - flip])
    # bit d of a vertex is its place along axis d
    axes, flips = rng.permutation(dim), rng.integers(0, 2, dim)
    bits = [[(v >> d & 1) ^ flips[d] for d in range(dim)] for v in range(vertices)]
    return [sum(int(b[axes[d]]) << d for d in range(dim)) for b in bits]


def filled(space: Any, seed: int = 1) -> Any:
    """A function with random owned entries in [0.5, 1.5) and ghosts that agree."""
    f = fem.Function(space, dtype=space.mesh.geometry.x.dtype)
    f.x.array[:] = np.random.default_rng(seed + 10 * COMM.rank).uniform(0.5, 1.5, len(f.x.array))
    f.x.scatter_forward()
    return f


def largest(values: Any) -> float:
    return COMM.allreduce(float(abs(values).max(initial=0.0)), MPI.MAX)


def compared(found: Any, expected: Any, space: Any) -> float:
    """The relative difference of owned entries."""
    n = space.dofmap.index_map.size_local * space.dofmap.index_map_bs
    assert largest(expected.array[:n]) > 0, "the form vanishes"
    return largest(found.array[:n] - expected.array[:n]) / largest(expected.array[:n])


def compiled(form: Any, dtype: Any = np.float64) -> Any:
    """DOLFINx's form; FFCx would round its tables to 1e-9, and be off by 1e-12 for P4."""
    return fem.form(form, dtype, form_compiler_options={"table_rtol": 1e-16, "table_atol": 1e-16})


def oracle(form: Any) -> Any:
    (test,) = form.arguments()
    dtype = test.ufl_function_space().mesh.geometry.x.dtype
    b = fem.assemble_vector(compiled(form, dtype))
    b.scatter_reverse(la.InsertMode.add)
    return b


def assembled(form: Any) -> float:
    """The error of a linear form."""
    space = form.arguments()[0].ufl_function_space()
    y = filled(space, 9)  # overwritten
    kingpost.dolfinx.action(form).assemble(y)
    return compared(y.x, oracle(form), space)


# Spaces: any variant, any orientation, any cell.


@cases(
    ("interval", "P", 3),
    ("triangle", "P", 1),
    ("triangle", "P", 2),
    ("triangle", "P", 3),
    ("triangle", "P", 4),
    ("tetrahedron", "P", 3),
    ("tetrahedron", "P", 4),
    ("quadrilateral", "Q", 3),
    ("quadrilateral", "S", 3),
    ("hexahedron", "Q", 3),
    ("triangle", "DG", 2),
)
def diffusion(cell: str, family: str, degree: int) -> float:
    space = fem.functionspace(unit(cell), (family, degree))
    u, v = filled(space), TestFunction(space)
    k = fem.Constant(space.mesh, 1.7)
    return assembled(k * (1 + u**2) * inner(grad(u), grad(v)) * dx + u * v * dx)


@cases(("interval", 2), ("interval", 3), ("triangle", 3), ("quadrilateral", 3))
def manifold(cell: str, gdim: int) -> float:
    """A curve or surface: action, matrix and functional of the Laplace–Beltrami operator, and vectors in space."""
    m = unit(cell, gdim=gdim)
    space = fem.functionspace(m, ("P", 2))
    u, v, x = TrialFunction(space), TestFunction(space), ufl.SpatialCoordinate(m)
    form = inner(grad(u), grad(v)) * dx + x[gdim - 1] * u * v * dx + u * v * ds
    error = max(assembled(ufl.action(form, filled(space))), multiplied(form, products=1))
    area = fem.Constant(m, 1.0) * dx
    expected = COMM.allreduce(fem.assemble_scalar(compiled(area)))
    error = max(error, abs(kingpost.dolfinx.action(area).value() / expected - 1))
    vectors = fem.functionspace(m, ("P", 1, (gdim,)))
    w = filled(vectors)
    return max(error, assembled(div(w) * v * dx + inner(w, grad(v)) * dx + avg(div(w)) * jump(v) * dS))


@cases((1,), (2,))
def prisms(degree: int) -> float:
    """Action and matrix over the cells; DOLFINx has no kernels over facets of two kinds."""
    space = fem.functionspace(unit("prism"), ("P", degree))
    u, v = TrialFunction(space), TestFunction(space)
    form = inner(grad(u), grad(v)) * dx + u * v * dx
    return max(assembled(ufl.action(form, filled(space))), multiplied(form, products=1))


@cases(("triangle", 3, "equispaced"), ("tetrahedron", 3, "equispaced"), ("triangle", 4, "legendre"))
def variant(cell: str, degree: int, name: str) -> float:
    import basix

    own = basix.LagrangeVariant[name]
    plain = element("P", cell, degree, lagrange_variant=own, discontinuous=name == "legendre")
    space = fem.functionspace(unit(cell), plain)
    u, v = filled(space), TestFunction(space)
    return assembled(inner(grad(u), grad(v)) * dx + u * v * dx)


@cases(
    ("triangle", "RT", 1),
    ("triangle", "RT", 3),
    ("tetrahedron", "RT", 2),
    ("tetrahedron", "BDM", 2),
    ("hexahedron", "NCF", 2),
    ("quadrilateral", "RTCF", 2),
)
def fluxes(cell: str, family: str, degree: int) -> float:
    space = fem.functionspace(unit(cell), (family, degree))
    s, t = filled(space), TestFunction(space)
    return assembled(inner(s, t) * dx + div(s) * div(t) * dx)


@cases(
    ("triangle", "N1curl", 2),
    ("tetrahedron", "N1curl", 1),
    ("tetrahedron", "N1curl", 3),
    ("tetrahedron", "N2curl", 2),
    ("hexahedron", "NCE", 2),
)
def circulations(cell: str, family: str, degree: int) -> float:
    space = fem.functionspace(unit(cell), (family, degree))
    e, f = filled(space), TestFunction(space)
    return assembled(inner(e, f) * dx + inner(curl(e), curl(f)) * dx)


@cases(("triangle",), ("tetrahedron",))
def hyperelasticity(cell: str) -> float:
    m = unit(cell, 2)
    d = m.geometry.dim
    space = fem.functionspace(m, ("P", 2, (d,)))
    u, v = filled(space), TestFunction(space)
    u.x.array[:] *= 0.02
    strain = ufl.variable(ufl.Identity(d) + grad(u))
    j = ufl.det(strain)
    mu, lam = fem.Constant(m, 1.3), fem.Constant(m, np.array([0.4, 0.3]))
    energy = mu / 2 * (ufl.tr(strain.T * strain) - d) - mu * ufl.ln(j) + lam[0] * lam[1] * ufl.ln(j) ** 2
    return assembled(inner(ufl.diff(energy, strain), grad(v)) * dx)


@cases(("triangle",), ("tetrahedron",))
def navier_stokes_taylor_hood(cell: str) -> float:
    m = unit(cell, 2)
    d = m.geometry.dim
    space = fem.functionspace(m, mixed_element([element("P", cell, 2, shape=(d,)), element("P", cell, 1)]))
    w = filled(space)
    (u, p), (v, q) = ufl.split(w), ufl.TestFunctions(space)
    form = inner(grad(u) * u, v) * dx + 0.1 * inner(grad(u), grad(v)) * dx
    return assembled(form - p * div(v) * dx + q * div(u) * dx)


@cases(("triangle", 2), ("tetrahedron", 2))
def mixed_poisson(cell: str, degree: int) -> float:
    parts = [element("RT", cell, degree), element("DG", cell, degree - 1)]
    space = fem.functionspace(unit(cell), mixed_element(parts))
    w = filled(space)
    (s, u), (t, v) = ufl.split(w), ufl.TestFunctions(space)
    n = ufl.FacetNormal(space.mesh)
    return assembled(inner(s, t) * dx + u * div(t) * dx + v * div(s) * dx - 0.3 * inner(t, n) * ds)


@case
def symmetric_tensors() -> float:
    space = fem.functionspace(unit("triangle"), element("P", "triangle", 2, shape=(2, 2), symmetry=True))
    s, t = filled(space), TestFunction(space)
    return assembled(inner(s * s, t) * dx + inner(grad(s), grad(t)) * dx)


@case
def quadrature_coefficients() -> float:
    import basix.ufl

    m = unit("triangle")
    points = fem.functionspace(m, basix.ufl.quadrature_element("triangle", scheme="default", degree=3))
    space = fem.functionspace(m, ("P", 2))
    sigma, v = filled(points), TestFunction(space)
    return assembled(sigma * v * dx(metadata={"quadrature_degree": 3}))


# Geometry.


@cases(("triangle",), ("quadrilateral",), ("tetrahedron",))
def curved_cells(cell: str) -> float:
    curved = bent(unit(cell, 2), cell)
    space = fem.functionspace(curved, ("P", 2))
    u, v = filled(space), TestFunction(space)
    return assembled(inner(grad(u), grad(v)) * dx + u * v * ds)


def bent(plain: Any, cell: str) -> Any:
    """The same cells with positions of degree 2, bent."""
    d = plain.geometry.dim
    found = fem.interpolate_geometry(plain, fem.coordinate_element(mesh.CellType[cell], 2))
    x = found.geometry.x
    x[:, :d] += np.stack([0.05 * np.sin(4 * x[:, (i + 1) % d]) for i in range(d)], axis=1)
    return found


@case
def a_surface_in_space() -> float:
    n = 4
    x = np.array([(i / n, j / n, (i / n) ** 2 - 0.3 * j / n) for j in range(n + 1) for i in range(n + 1)])
    corner = np.array([j * (n + 1) + i for j in range(n) for i in range(n)])
    cells = np.concatenate(
        [
            np.stack([corner, corner + 1, corner + n + 2], 1),
            np.stack([corner, corner + n + 2, corner + n + 1], 1),
        ]
    )
    if COMM.rank > 0:
        x, cells = x[:0], cells[:0]
    m = mesh.create_mesh(COMM, cells, ufl.Mesh(element("Lagrange", "triangle", 1, shape=(3,))), x)
    space = fem.functionspace(m, ("P", 3))
    u, v = filled(space), TestFunction(space)
    return assembled(inner(grad(u), grad(v)) * dx + u * v * dx)


@case
def single_precision() -> float:
    space = fem.functionspace(unit("triangle", dtype=np.float32), ("P", 2))
    u, v = filled(space), TestFunction(space)
    form = inner(grad(u), grad(v)) * dx
    assert len(u.x.array) and u.x.array.dtype == np.float32
    # sums of some tens of products in f32, stated in units of f64's tolerance
    return assembled(form) * np.finfo(np.float64).eps / np.finfo(np.float32).eps


# Facets and subdomains.


def tags(m: Any, dim: int, count: int = 3) -> Any:
    """Tags 1 to `count` of all entities of a dimension by their midpoints; some have none."""
    m.topology.create_entities(dim)
    m.topology.create_connectivity(dim, m.topology.dim)
    index = m.topology.index_map(dim)
    entities = np.arange(index.size_local + index.num_ghosts, dtype=np.int32)
    middle = mesh.compute_midpoints(m, dim, entities)
    values = (7 * middle[:, 0] + 5 * middle[:, 1]).astype(np.int32) % (count + 1)
    return mesh.meshtags(m, dim, entities[values > 0], values[values > 0])


@cases(("triangle", 3), ("tetrahedron", 2), ("tetrahedron", 3), ("quadrilateral", 2), ("hexahedron", 2))
def interior_penalty(cell: str, degree: int) -> float:
    m = unit(cell, 2)
    space = fem.functionspace(m, ("DG", degree))
    u, v = filled(space), TestFunction(space)
    n, h = ufl.FacetNormal(m), fem.Constant(m, 0.2)
    form = inner(grad(u), grad(v)) * dx + u * v / h * ds - inner(grad(u), n) * v * ds
    form += -inner(avg(grad(u)), jump(v, n)) * dS - inner(jump(u, n), avg(grad(v))) * dS
    return assembled(form + 1 / h * inner(jump(u, n), jump(v, n)) * dS)


@cases(("triangle",), ("tetrahedron",))
def sides_of_facets(cell: str) -> float:
    m = unit(cell, 2)
    space = fem.functionspace(m, ("P", 2))
    flux = fem.functionspace(m, ("RT", 2))
    u, s, v = filled(space), filled(flux, 2), TestFunction(space)
    n = ufl.FacetNormal(m)
    form = u("+") ** 2 * v("-") * dS + inner(s("+"), n("-")) * inner(grad(v)("+"), n("+")) * dS
    return assembled(form + inner(s, n) * v * ds)


@cases(("triangle",), ("tetrahedron",), ("interval",))
def tagged_subdomains(cell: str) -> float:
    m = unit(cell)
    dim = m.topology.dim
    space = fem.functionspace(m, ("P", 2))
    u, v, k = filled(space), TestFunction(space), fem.Constant(m, 0.4)
    facets = tags(m, dim - 1) if dim > 1 else tags(m, 0)
    over = ufl.Measure("dx", subdomain_data=tags(m, dim))
    out = ufl.Measure("ds", subdomain_data=facets)
    between = ufl.Measure("dS", subdomain_data=facets)
    form = u * v * over + k * u * v * over(1) + inner(grad(u), grad(v)) * over((2, 3)) + u**2 * v * over(3)
    form += u * v * out + k * v * out(2) + avg(u) * jump(v) * between((1, 2)) + avg(v) * between
    return assembled(form)


@case
def given_entities() -> float:
    m = unit("triangle")
    m.topology.create_connectivity(1, 2)
    facets = mesh.exterior_facet_indices(m.topology)[::2]
    pairs = fem.compute_integration_domains(fem.IntegralType.exterior_facet, m.topology, facets)
    space = fem.functionspace(m, ("P", 2))
    u, v = filled(space), TestFunction(space)
    out = ufl.Measure("ds", subdomain_data=[(4, np.asarray(pairs).reshape(-1)), (2, np.empty(0, np.int32))])
    return assembled(u * v * out(4) + v * out(2) + v * dx)


# Several spaces, several forms, functionals.


@case
def spaces_that_number_differently() -> float:
    m = unit("triangle")
    vectors, space = fem.functionspace(m, ("P", 2, (2,))), fem.functionspace(m, ("P", 2))
    part, b, v = filled(vectors).sub(1), filled(space, 2), TestFunction(space)
    c = filled(space.clone(), 3)
    assert not np.array_equal(part.function_space.dofmap.list, space.dofmap.list)
    return assembled(part * b * c * v * dx + inner(grad(part), grad(v)) * dx)


@case
def block_residuals() -> float:
    m = unit("triangle")
    parts = [fem.functionspace(m, ("P", 2, (2,))), fem.functionspace(m, ("P", 1))]
    both = ufl.MixedFunctionSpace(*parts)
    (v, q), u, p = ufl.TestFunctions(both), filled(parts[0]), filled(parts[1], 2)
    form = inner(grad(u) * u, v) * dx - p * div(v) * dx + q * div(u) * dx + q * p * ds
    blocks = ufl.extract_blocks(form)
    found = [filled(part, 5) for part in parts]
    kingpost.dolfinx.action(blocks).assemble(*found)
    return max(compared(y.x, oracle(b), s) for y, b, s in zip(found, blocks, parts))


@case
def functionals() -> float:
    m = unit("tetrahedron")
    u = filled(fem.functionspace(m, ("P", 3)))
    form = u**2 * dx + u * ds + jump(u) ** 2 * dS + avg(u) * dS
    expected = COMM.allreduce(fem.assemble_scalar(compiled(form)))
    volume = kingpost.dolfinx.action(fem.Constant(m, 1.0) * dx).value()
    expected_volume = COMM.allreduce(fem.assemble_scalar(compiled(fem.Constant(m, 1.0) * dx)))
    errors = abs(kingpost.dolfinx.action(form).value() / expected - 1), abs(volume / expected_volume - 1)
    return max(errors)


@case
def values_are_read_at_each_call() -> float:
    m = unit("triangle")
    space = fem.functionspace(m, ("P", 2))
    u, v, k = filled(space), TestFunction(space), fem.Constant(m, np.array([[1.0, 0.2], [0.1, 2.0]]))
    form = inner(k * grad(u), grad(v)) * dx
    action, y = kingpost.dolfinx.action(form), fem.Function(space)
    action.assemble(y)
    u.x.array[:] *= 3
    k.value[:] = [[2.0, 0.5], [0.3, 1.0]]
    m.geometry.x[:, 0] *= 1.25
    y.x.array[:] = 0
    action(y.x)
    y.x.scatter_reverse(la.InsertMode.add)
    first = compared(y.x, oracle(form), space)
    other = filled(space, 8)
    y.x.array[:] = 0
    action(y.x.array, values={u: other.x.array})
    y.x.scatter_reverse(la.InsertMode.add)
    return max(first, compared(y.x, oracle(ufl.replace(form, {u: other})), space))


# Bilinear forms.


def multiplied(form: Any, bcs: tuple = (), diagonal: float = 1.0, products: int = 2) -> float:
    """The error of products with a matrix."""
    test, trial = (a.ufl_function_space() for a in form.arguments())
    # not `dolfinx.la.MatrixCSR`, whose products differ from those of one process
    matrix = petsc.assemble_matrix(compiled(form), bcs=list(bcs), diag=diagonal)
    matrix.assemble()
    operator = kingpost.dolfinx.operator(form, bcs, diagonal=diagonal)
    assert operator.shape == matrix.getSize() and operator.local_shape == matrix.getLocalSize()
    error = 0.0
    for seed in range(products):
        x = filled(trial, seed)
        owned = trial.dofmap.index_map.size_local * trial.dofmap.index_map_bs
        expected, found = fem.Function(test), filled(test, 7)
        matrix.mult(x.x.petsc_vec, expected.x.petsc_vec)
        x.x.array[owned:] = np.nan  # ghosts are fetched, not read
        operator.mult(x, found)
        error = max(error, compared(found.x, expected.x, test))
    return max(error, assembled_matrix(form, bcs, diagonal, matrix))


def assembled_matrix(form: Any, bcs: tuple, diagonal: float, expected: Any) -> float:
    """The error of the assembled matrix, at first and once more with the same entries."""
    compiled_matrix = kingpost.dolfinx.matrix(form, bcs, diagonal=diagonal)
    found = compiled_matrix.petsc()
    compiled_matrix.petsc(found)
    assert found.getSizes() == expected.getSizes()
    largest = expected.norm(PETSc.NormType.NORM_INFINITY)
    difference = found.copy()
    difference.axpy(-1.0, expected, PETSc.Mat.Structure.DIFFERENT_NONZERO_PATTERN)
    error = difference.norm(PETSc.NormType.NORM_INFINITY) / largest
    if COMM.size == 1:
        dense = compiled_matrix.scipy().toarray() - expected.convert("dense").getDenseArray()
        error = max(error, abs(dense).sum(axis=1).max() / largest)
    return error


def clamped(space: Any, part: Any = None) -> Any:
    """Dirichlet conditions on the left half of the boundary."""
    m = space.mesh
    m.topology.create_connectivity(m.topology.dim - 1, m.topology.dim)
    facets = mesh.exterior_facet_indices(m.topology)
    left = facets[mesh.compute_midpoints(m, m.topology.dim - 1, facets)[:, 0] < 0.5]
    dofs = fem.locate_dofs_topological(part or space, m.topology.dim - 1, left)
    zero = fem.Function(space)
    return fem.dirichletbc(zero, dofs) if part is None else fem.dirichletbc(0.0, dofs, part)


@cases(("triangle", 1), ("triangle", 3), ("tetrahedron", 2), ("hexahedron", 2))
def poisson_matrix(cell: str, degree: int) -> float:
    space = fem.functionspace(unit(cell), ("P", degree))
    u, v = TrialFunction(space), TestFunction(space)
    k = filled(space, 4)
    form = k * inner(grad(u), grad(v)) * dx + u * v * ds
    return max(multiplied(form), multiplied(form, (clamped(space),), 2.5))


@case
def elasticity_matrix() -> float:
    m = unit("tetrahedron")
    space = fem.functionspace(m, ("P", 2, (3,)))
    u, v = TrialFunction(space), TestFunction(space)
    form = inner(ufl.sym(grad(u)), grad(v)) * dx + div(u) * div(v) * dx
    return multiplied(form, (clamped(space), clamped(space, space.sub(1))))


@case
def curl_curl_matrix() -> float:
    space = fem.functionspace(unit("tetrahedron"), ("N1curl", 2))
    u, v = TrialFunction(space), TestFunction(space)
    return multiplied(inner(curl(u), curl(v)) * dx + inner(u, v) * dx, (clamped(space),))


@case
def interior_penalty_matrix() -> float:
    m = unit("triangle")
    space = fem.functionspace(m, ("DG", 2))
    u, v = TrialFunction(space), TestFunction(space)
    n = ufl.FacetNormal(m)
    form = inner(grad(u), grad(v)) * dx - inner(avg(grad(u)), jump(v, n)) * dS
    return multiplied(form - inner(jump(u, n), avg(grad(v))) * dS + 9 * inner(jump(u), jump(v)) * dS)


@case
def rectangular_matrix() -> float:
    m = unit("triangle")
    flux, mean = fem.functionspace(m, ("RT", 2)), fem.functionspace(m, ("P", 1))
    s, q = TrialFunction(flux), TestFunction(mean)
    return multiplied(q * div(s) * dx, (clamped(flux), clamped(mean)))


@case
def tagged_matrix() -> float:
    m = unit("triangle", 4)
    space = fem.functionspace(m, ("P", 2))
    u, v = TrialFunction(space), TestFunction(space)
    over = ufl.Measure("dx", subdomain_data=tags(m, 2))
    form = inner(grad(u), grad(v)) * over(1) + u * v * over
    operator = kingpost.dolfinx.operator(form)
    early, late, every = (
        {over: sum(e.count for e in found if e.part == over) for over in ("cells", "cells_1")}
        for found in (operator._early, operator._late, operator.action._all)
    )
    assert all(early[part] + late[part] == every[part] for part in every)
    if COMM.size > 1:
        overlaps = min(*early.values(), *late.values()) > 0  # not where all shared entries are owned
        assert COMM.allreduce(overlaps, MPI.LOR), "no process has cells with and without ghosts"
    return multiplied(form, (clamped(space),))


@case
def single_precision_matrix() -> float:
    """Ghosts that PETSc, which has f64 here, does not send."""
    space = fem.functionspace(unit("triangle", dtype=np.float32), ("P", 2))
    u, v = TrialFunction(space), TestFunction(space)
    form, x, found = inner(grad(u), grad(v)) * dx + u * v * dx, filled(space), filled(space, 7)
    expected = oracle(ufl.action(form, x))
    x.x.array[space.dofmap.index_map.size_local :] = np.nan
    kingpost.dolfinx.operator(form).mult(x, found)
    return compared(found.x, expected, space) * np.finfo(np.float64).eps / np.finfo(np.float32).eps


@case
def a_solution_by_petsc() -> float:
    """Conjugate gradients on the shell matrix, and on the assembled matrix."""
    space = fem.functionspace(unit("triangle", 4), ("P", 2))
    u, v = TrialFunction(space), TestFunction(space)
    form, bcs = inner(grad(u), grad(v)) * dx, [clamped(space)]
    matrix = petsc.assemble_matrix(compiled(form), bcs=bcs)
    matrix.assemble()
    shell = kingpost.dolfinx.operator(form, bcs).petsc()
    assert shell.getSizes() == matrix.getSizes()
    b, found, expected = matrix.createVecLeft(), shell.createVecRight(), matrix.createVecRight()
    b.array[:] = filled(space, 3).x.array[: b.local_size]
    for a, x in ((matrix, expected), (shell, found)):
        solver = PETSc.KSP().create(COMM)
        solver.setOperators(a)
        solver.setType("cg")
        solver.getPC().setType("none")
        solver.setTolerances(rtol=1e-15, atol=1e-50, max_it=2000)
        solver.solve(b, x)
    found.axpy(-1.0, expected)
    # both stop at the rounding errors of the residual, which the condition of the matrix multiplies
    return found.norm() / expected.norm() * 1e-2


@cases(("P", "triangle", 2, "cg"), ("P", "tetrahedron", 2, "gmres"), ("DG", "triangle", 1, "gmres"))
def a_solution_on_devices(family: str, cell: str, degree: int, method: str) -> float:
    """Residuals of solutions by kernels and vectors of devices, of functions and constants that change."""
    m = unit(cell, 4)
    space = fem.functionspace(m, (family, degree, (2,)) if cell == "triangle" else (family, degree))
    u, v = TrialFunction(space), TestFunction(space)
    k, c = filled(fem.functionspace(m, ("P", 1)), 4), fem.Constant(m, 1.5)
    form = c * (1 + k) * inner(grad(u), grad(v)) * dx + inner(u, v) * (dx + ds)
    bcs = [clamped(space)] if family == "P" else []
    if family == "DG":
        form += 9 * inner(jump(u), jump(v)) * dS
    operator = kingpost.dolfinx.operator(form, bcs, diagonal=2.5)
    b, x, error = filled(space, 3), fem.Function(space), 0.0
    for turn in range(3):
        k.x.array[:] *= 0.5
        c.value += turn // 2  # once without and once with new kernels
        matrix = petsc.assemble_matrix(compiled(form), bcs=bcs, diag=2.5)
        matrix.assemble()
        diagonal = matrix.getDiagonal()
        # on one process the mesh is divided again in between
        devices = ["c", "c", "c"] if turn != 1 and COMM.size == 1 else None
        report = operator.solve(b, x, devices=devices, diagonal=diagonal.array, method=method, relative=1e-13)
        assert report.converged and report.iterations > 5, report
        residual = b.x.petsc_vec.duplicate()
        matrix.mult(x.x.petsc_vec, residual)
        residual.axpy(-1.0, b.x.petsc_vec)
        scale = matrix.norm(PETSc.NormType.NORM_INFINITY) * x.x.petsc_vec.norm()
        error = max(error, residual.norm() / scale)
        before = x.x.array.copy()
        x.x.scatter_forward()
        assert (before == x.x.array).all(), "ghosts are those of their owners"
    return error


def in_order(name: str) -> float:
    """The error of a case with the cells in the order of `kingpost.order_cells`."""
    made = linear.Action.__init__
    linear.Action.__init__ = lambda self, *given, **options: made(self, *given, **{**options, "order_cells": True})
    try:
        return CASES[name]()
    finally:
        linear.Action.__init__ = made


def main() -> None:
    """Runs the cases that are named, or all of them, with cells in either order."""
    errors = {}
    for name in sys.argv[1:] or CASES:
        try:
            errors[name] = max(float(CASES[name]()), float(in_order(name)))
        except Exception as error:  # noqa: BLE001 (the other processes must not wait for this one)
            print(
                f"{name} on process {COMM.rank}: {type(error).__name__}: {error}", file=sys.stderr, flush=True
            )
            COMM.Abort(1)
    if COMM.rank == 0:
        print(json.dumps({"processes": COMM.size, "errors": errors}))


if __name__ == "__main__":
    main()
