"""A Poisson problem on prisms, hexahedra, pyramids and tetrahedra of one Gmsh file, and the area of a curved surface."""

from pathlib import Path

import numpy as np
import ufl
from kingpost import meshes
from scipy.sparse.linalg import spsolve

DATA = Path(__file__).resolve().parents[2] / "crates" / "fem" / "tests" / "data"

mesh = meshes.read(DATA / "solids_2.msh")
V = mesh.space("P", 2)


def bilinear(kind):
    u, v = ufl.TrialFunction(V.on(kind)), ufl.TestFunction(V.on(kind))
    return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + u * v * ufl.ds


inlet = mesh.names["inlet"][1]


def linear(kind):
    v = ufl.TestFunction(V.on(kind))
    return v * ufl.dx + 2 * v * ufl.ds(inlet)


A = meshes.matrix(mesh, bilinear).assemble()
solution = V.function()
solution.array = spsolve(A.tocsc(), meshes.action(mesh, linear).assemble())
print(f"{mesh!r}: {V.size} unknowns")

# what flows in leaves through the boundary
inflow = 3 + 2 * 1
outflow = meshes.action(mesh, lambda kind: solution.on(kind) * ufl.ds).value()
print(f"in {inflow}, out {outflow:.12f}")
assert abs(outflow - inflow) < 1e-10

# the same with the value 1 on the inlet
fixed = V.dofs_on(inlet)
free = np.setdiff1d(np.arange(V.size), fixed)
solution.array[:] = 0
solution.array[fixed] = 1
residual = meshes.action(mesh, lambda kind: ufl.action(bilinear(kind), solution.on(kind)) - linear(kind)).assemble()
solution.array[free] -= spsolve(A[free][:, free].tocsc(), residual[free])

sphere = meshes.read(DATA / "sphere_2.msh")
one = sphere.constant(1.0)
area = meshes.action(sphere, one.on() * ufl.dx).value()
print(f"{sphere!r}: area {area:.4f}, of the sphere {4 * np.pi:.4f}")
