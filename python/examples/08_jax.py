"""A form as a function of JAX, and its root as another one, differentiated by a constant and by a coefficient."""

import importlib.util

import basix.ufl
import numpy as np
import ufl

if importlib.util.find_spec("jax") is None:
    print("skipped: JAX is not installed (pip install jax)")
    raise SystemExit

import jax
import jax.numpy as jnp
import kingpost.jax

jax.config.update("jax_enable_x64", True)

mesh = ufl.Mesh(basix.ufl.element("Lagrange", "triangle", 1, shape=(2,)))
V = ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "triangle", 1))
u, v, kappa = ufl.Coefficient(V), ufl.TestFunction(V), ufl.Constant(mesh)
form = kappa**2 * (1 + u**2) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx

# two triangles of the unit square
x = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
triangles = np.array([[0, 1, 2], [3, 1, 2]], dtype=np.int32)
mesh_arrays = {"x": x, "x_dofs": triangles, "p1_dofs": triangles}
values = jnp.asarray(x[:, 0])  # u = x

residual = kingpost.jax.function(form, names={u: "u", kappa: "kappa"})
energy = lambda kappa: jnp.vdot(values, residual(u=values, kappa=kappa, **mesh_arrays))
print(jax.jit(jax.value_and_grad(energy))(2.0))

# with v = x: kappa² times the integral of 1 + x², and the derivative of it
value, slope = jax.value_and_grad(energy)(2.0)
assert np.isclose(value, 4 * (1 + 1 / 3)) and np.isclose(slope, 4 * (1 + 1 / 3))

# the product of the Jacobian with a vector, and its transpose
action = lambda values: residual(u=values, kappa=2.0, **mesh_arrays)
direction = jnp.ones(4)
_, forward = jax.jvp(action, (values,), (direction,))
(backward,) = jax.vjp(action, values)[1](direction)
assert np.isclose(jnp.vdot(direction, forward), jnp.vdot(backward, direction))

# the root of the residual and a load, where two vertices keep their values, as a function of kappa
root = residual.solver("u", method="gmres")
total = lambda kappa: root(u=values, y=-0.25 * jnp.ones(4), kappa=kappa, fixed=[0, 2], **mesh_arrays).sum()
slope = jax.grad(total)(2.0)  # by one linear system, with the transposed matrix
assert np.isclose(slope, (total(2.001) - total(1.999)) / 0.002, rtol=1e-5)
