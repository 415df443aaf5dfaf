"""Poisson's equation on several devices, each of which has a part of the mesh."""

import basix.ufl
import numpy as np
import kingpost
import ufl

mesh = ufl.Mesh(basix.ufl.element("Lagrange", "triangle", 1, shape=(2,)))
V = ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "triangle", 1))
u, f, v = ufl.Coefficient(V), ufl.Coefficient(V), ufl.TestFunction(V)

# the unit square in triangles
n = 32
x = np.array([(i / n, j / n) for j in range(n + 1) for i in range(n + 1)])
corner = np.array([j * (n + 1) + i for j in range(n) for i in range(n)])
below = np.stack([corner, corner + 1, corner + n + 2], axis=1)
above = np.stack([corner, corner + n + 2, corner + n + 1], axis=1)
cells = np.concatenate([below, above]).astype(np.int32)
boundary = np.flatnonzero(((x == 0) | (x == 1)).any(axis=1))
arrays = {"x": x, "x_dofs": cells, "p1_dofs": cells}

devices = ["c", "c"]  # on cards `["cuda:0", "cuda:1"]`
stiffness = kingpost.jit(ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx, devices=devices, names={u: "u"})
load = kingpost.jit(f * v * ufl.dx, devices=devices, names={f: "f"})

b = np.zeros(len(x))
load(b, f=np.ones(len(x)), **arrays)  # as one device would, up to the order of sums
division = stiffness.divide(u=np.zeros(len(x)), **arrays)  # the mesh stays on the devices
solution = division.solve(b, fixed=boundary)
print(division, solution, sep="\n")

# the largest value of the torsion function of a square
assert solution.converged
assert abs(solution.x.max() - 0.0737) < 1e-4
