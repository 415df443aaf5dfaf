"""A form of UFL as a function of arrays: here NumPy's, of two triangles."""

import basix.ufl
import numpy as np
import kingpost
import ufl

mesh = ufl.Mesh(basix.ufl.element("Lagrange", "triangle", 1, shape=(2,)))
V = ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "triangle", 2))
u, v, kappa = ufl.Coefficient(V), ufl.TestFunction(V), ufl.Constant(mesh)
form = kappa * (1 + u**2) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx

op = kingpost.jit(form, device="c", names={u: "u", kappa: "kappa"})  # or "opencl", "cuda"
print(op, op.mapping, op.source, sep="\n")

# two triangles of the unit square, and the degrees of freedom of each
x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
triangles = np.array([[0, 1, 2], [3, 1, 2]], dtype=np.int32)
dofs = np.array([[0, 1, 2, 4, 5, 6], [3, 1, 2, 4, 7, 8]], dtype=np.int32)
nodes = np.concatenate([x, [[0.5, 0.5], [0.0, 0.5], [0.5, 0.0], [0.5, 1.0], [1.0, 0.5]]])

y, values = np.zeros(9), nodes[:, 0].copy()  # u = x
op(y, u=values, kappa=3.0, x=x, x_dofs=triangles, p2_dofs=dofs)

# the functions of a partition of unity have gradients that add up to zero
assert abs(y.sum()) < 1e-14
# with v = x: 3 times the integral of 1 + x² over the square
assert np.isclose(y @ values, 3 * (1 + 1 / 3))
