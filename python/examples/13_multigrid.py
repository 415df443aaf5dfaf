"""Poisson's equation with a jump in its coefficient, P2 on a mesh that is refined, by multigrid without a matrix."""

from pathlib import Path

import numpy as np
import ufl
from kingpost import meshes, multigrid

DATA = Path(__file__).resolve().parents[2] / "crates" / "fem" / "tests" / "data"
coarse = meshes.read(DATA / "groups_22.msh")  # a square with groups 7 and 8 of triangles


def form(V):
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    flux = ufl.inner(ufl.grad(u), ufl.grad(v))
    return flux * ufl.dx(7) + 100 * flux * ufl.dx(8)


iterations = []
for times in range(2, 5):
    V = coarse.refined(times).space("P", 2)
    b = meshes.action(V.mesh, ufl.TestFunction(V.on()) * ufl.dx).assemble()
    solver = multigrid.Multigrid(V, form, fixed=lambda V: V.dofs_on(11))
    solution = solver.solve(b, relative=1e-8)
    iterations.append(solution.iterations)
    print(solver, solution, sep=": ")

# as many iterations on each mesh
assert max(iterations) <= 10
# the work of the source is the energy of the solution
energy = solution.x @ solver.product(solution.x)
assert abs(energy - solution.x @ b) < 1e-6 * energy
assert np.all(solution.x >= 0)
