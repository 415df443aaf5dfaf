"""Poisson's equation with boundary terms on a mesh of Gmsh, on two devices."""

from pathlib import Path

import ufl
from kingpost import meshes, multigrid

DATA = Path(__file__).resolve().parents[2] / "crates" / "fem" / "tests" / "data"
mesh = meshes.read(DATA / "groups_22.msh").refined(3)  # a square, whose edges at the right are in group 11, those above in 12
V = mesh.space("P", 2)
devices = ["c", "c"]  # on cards `["cuda:0", "cuda:1"]`


def form(V):
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx + 2 * u * v * ufl.ds(12)


v = ufl.TestFunction(V.on())
b = meshes.action(mesh, 3 * v * ufl.dx + v * ufl.ds(12), devices=devices).assemble()
exact = V.interpolate(lambda x: 1 + 5 / 3 * x[1] - 3 / 2 * x[1] ** 2)

solver = multigrid.TwoLevels(V, form, devices=devices, fixed=lambda V: V.dofs_on(11))
solution = solver.solve(b, values=exact)
print(solver, solver.division, solution, sep="\n")

u = V.function()
u.array = solution.x
mean = meshes.action(mesh, u.on() * ufl.dx, devices=devices).value()

# the solution is a polynomial of the space
assert solution.converged and solution.iterations <= 20
assert abs(solution.x - exact).max() < 1e-8
assert abs(mean - (1 + 5 / 6 - 1 / 2)) < 1e-8
