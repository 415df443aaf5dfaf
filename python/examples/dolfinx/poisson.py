"""A Poisson problem without a matrix: `python poisson.py` or `mpiexec -n 2 python poisson.py`."""

import dolfinx_solver  # noqa: F401 (this build of DOLFINx wants to be loaded first)
import numpy as np
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI
from petsc4py import PETSc

import kingpost.dolfinx

m = mesh.create_unit_square(MPI.COMM_WORLD, 16, 16)
V = fem.functionspace(m, ("P", 3))
u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
x, y = ufl.SpatialCoordinate(m)
a = ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx
L = 2 * (x * (1 - x) + y * (1 - y)) * v * ufl.dx  # of x (1 - x) y (1 - y)

m.topology.create_connectivity(1, 2)
boundary = mesh.exterior_facet_indices(m.topology)
bc = fem.dirichletbc(0.0, fem.locate_dofs_topological(V, 1, boundary), V)

A = kingpost.dolfinx.operator(a, bcs=[bc])
b = fem.Function(V)
kingpost.dolfinx.action(L).assemble(b)
bc.set(b.x.array)

solution = fem.Function(V)
solver = PETSc.KSP().create(m.comm)
solver.setOperators(A.petsc())
solver.setType("cg")
solver.getPC().setType("none")
solver.setTolerances(rtol=1e-12)
solver.solve(b.x.petsc_vec, solution.x.petsc_vec)
solution.x.scatter_forward()

# the solution has degree 4, so that the error is that of interpolation: h^4 times some tenths
error = kingpost.dolfinx.action((solution - x * (1 - x) * y * (1 - y)) ** 2 * ufl.dx).value()
assert np.sqrt(error) < 1e-6, np.sqrt(error)
if m.comm.rank == 0:
    print(f"{solver.getIterationNumber()} iterations, error {np.sqrt(error):.1e}")
