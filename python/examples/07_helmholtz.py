"""A complex form: the Helmholtz equation with an impedance boundary, solved for a plane wave in a lossy medium."""

import basix.ufl
import numpy as np
import kingpost
import ufl

mesh = ufl.Mesh(basix.ufl.element("Lagrange", "triangle", 1, shape=(2,)))
space = ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "triangle", 1))
u, v, k = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.Constant(mesh)
inside = ufl.inner(ufl.grad(u), ufl.grad(v)) - k**2 * ufl.inner(u, v)
form = inside * ufl.dx - 1j * k * ufl.inner(u, v) * ufl.ds
op = kingpost.jit(form, matrix="sparse", scalar="complex128", names={k: "k"})

# what the wave exp(ikx) has of the impedance condition, on the boundary
wave = ufl.exp(1j * k * ufl.SpatialCoordinate(mesh)[0])
flux = 1j * k * (ufl.FacetNormal(mesh)[0] - 1) * wave
load = kingpost.jit(ufl.inner(flux, v) * ufl.ds(degree=6), scalar="complex128", names={k: "k"})


def square(n):
    """The unit square in 2 n² triangles: vertices, cells, and the facets of the boundary."""
    x = np.array([(i / n, j / n) for j in range(n + 1) for i in range(n + 1)])
    corner = np.array([j * (n + 1) + i for j in range(n) for i in range(n)])
    lower, upper = ([corner, corner + 1, corner + n + 2], [corner, corner + n + 2, corner + n + 1])
    cells = np.concatenate([np.stack(part, axis=1) for part in (lower, upper)]).astype(np.int32)
    edges = {}
    for cell, vertices in enumerate(cells):
        for facet in range(3):  # the facet across from each vertex
            edges.setdefault(frozenset(np.delete(vertices, facet).tolist()), []).append((cell, facet))
    cells_of, numbers = np.array([own[0] for own in edges.values() if len(own) == 1], dtype=np.int32).T
    return x, cells, {"facet_cells": cells_of.copy(), "local_facets": numbers.copy()}


def error(n, number=4 + 0.5j):
    """The largest error of the solution in a vertex."""
    x, cells, facets = square(n)
    maps = {"x": x, "x_dofs": cells, "p1_dofs": cells, "k": number}
    csr = op.assemble(exterior_facets=facets, **maps)
    matrix = np.zeros((len(x), len(x)), complex)
    for row, (start, end) in enumerate(zip(csr.indptr[:-1], csr.indptr[1:])):
        matrix[row, csr.indices[start:end]] = csr.data[start:end]
    b = np.zeros(len(x), complex)
    load(b, **maps, **facets)
    return abs(np.linalg.solve(matrix, b) - np.exp(1j * number * x[:, 0])).max()


coarse, fine = error(8), error(16)
print(f"{op}: error {coarse:.2e}, then {fine:.2e} with cells of half the size")
# second order, as linear functions have it
assert 3.2 < coarse / fine < 4.8
