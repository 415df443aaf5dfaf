"""Stokes' equations in Taylor–Hood's elements: a lid that drives a fluid, by MINRES with multigrid, without a matrix."""

from pathlib import Path

import numpy as np
import ufl
from kingpost import meshes, multigrid

DATA = Path(__file__).resolve().parents[2] / "crates" / "fem" / "tests" / "data"
mesh = meshes.read(DATA / "groups_22.msh").refined(3)
V, Q = mesh.space("P", 2, shape=(2,)), mesh.space("P", 1)


def viscous(V):
    u, v = ufl.TrialFunction(V.on()), ufl.TestFunction(V.on())
    return ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx


def divergence(V, Q):
    u, q = ufl.TrialFunction(V.on()), ufl.TestFunction(Q.on())
    return -q * ufl.div(u) * ufl.dx


def mass(Q):
    return ufl.TrialFunction(Q.on()) * ufl.TestFunction(Q.on()) * ufl.dx


solver = multigrid.SaddlePoint(V, Q, viscous, divergence, mass, fixed=lambda V: V.dofs_on())
top = mesh.positions[:, 1].max()
lid = V.interpolate(lambda x: np.stack([4.0 * (x[1] > top - 1e-12) * x[0] * (x[0].max() - x[0]), 0 * x[0]]))
flow = solver.solve(np.zeros(V.shape), values=lid, relative=1e-8)
print(solver, flow, sep="\n")

# what the lid drags along turns back below it, and no fluid is made
velocity = V.function()
velocity.array = flow.u
made = meshes.action(mesh, ufl.action(divergence(V, Q), velocity.on())).assemble()
assert flow.solution.converged and flow.solution.iterations < 60
assert flow.u[:, 0].min() < -0.1 and abs(made).max() < 1e-6
