# A notebook in cells, for editors and Jupytext: a form, bound calls, a captured step, a solve and a gradient.
# On a card with CuPy the arrays lie there; elsewhere it runs on NumPy's.

# %% the device, and the library of its arrays
import importlib.util

import basix.ufl
import numpy as np
import kingpost
import ufl

device = next((name for name in kingpost.devices() if name.startswith("cuda")), "c")
if device != "c" and importlib.util.find_spec("cupy"):
    import cupy as xp
else:
    device, xp = "c", np
print(f"{kingpost.devices()[device]}, arrays of {xp.__name__}")

# %% a mesh of triangles, as arrays; what is on the device stays there
n = 24
corners = np.stack(np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"), -1).reshape(-1, 2)
first = np.array([i * (n + 1) + j for i in range(n) for j in range(n)])
lower = np.stack([first, first + n + 1, first + n + 2], axis=1)
upper = np.stack([first, first + n + 2, first + 1], axis=1)
triangles = np.concatenate([lower, upper]).astype(np.int32)
fixed = np.flatnonzero((corners % n == 0).any(axis=1))  # the boundary
mesh = {"x": xp.asarray(corners / n), "x_dofs": xp.asarray(triangles), "p1_dofs": xp.asarray(triangles)}

# %% the form: diffusion that grows with the solution, heated in proportion to kappa
domain = ufl.Mesh(basix.ufl.element("Lagrange", "triangle", 1, shape=(2,)))
V = ufl.FunctionSpace(domain, basix.ufl.element("Lagrange", "triangle", 1))
u, v, kappa = ufl.Coefficient(V), ufl.TestFunction(V), ufl.Coefficient(V)
form = (1 + u**2) * ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx - 10 * kappa * v * ufl.dx
energy = u**2 * ufl.dx  # what is asked of the solution
residual = kingpost.jit(form, device, names={u: "u", kappa: "kappa"})

# %% bound calls: arguments are checked once
values, heat, r = xp.zeros(len(corners)), xp.ones(len(corners)), xp.zeros(len(corners))
apply = residual.bind(r, u=values, kappa=heat, **mesh)
apply()
assert np.isclose(float(r.sum()), -10.0)  # the heat of the unit square

# %% a captured step: the residual and an update, in time; on a card one graph of CUDA
update = """kernel update
param n: i32
arg tau: f64 in
arg mass: f64[n] in
arg r: f64[n] inout
arg u: f64[n] inout

for i in 0..n
  move: u[i] -= tau/mass[i]*r[i]
  zero: r[i] = 0.0
"""
s = kingpost.Schedule(update)
block, item = s.split("i", 128)
s.tag(block, "g.0")
s.tag(item, "l.0")
advance = kingpost.compile(s, device)
mass = xp.zeros(len(corners))
kingpost.jit(v * ufl.dx, device)(mass, **{name: mesh[name] for name in ("x", "x_dofs", "p1_dofs")})
mass[xp.asarray(fixed)] = 1e30  # what is fixed does not move
r[:] = 0


def once():
    apply()
    advance(tau=1e-4, mass=mass, r=r, u=values)


step = kingpost.capture(once)
for _ in range(200):
    step()
print(f"at t = 0.02 the largest value is {float(values.max()):.4f}")

# %% the steady state, by Newton's method; the result draws its residuals in a notebook
jacobian = kingpost.jit(ufl.derivative(form, u), device, matrix="sparse", names={u: "u"})
maps = {"p1_dofs": mesh["p1_dofs"]}
pattern = jacobian.patterns(**maps)


def at(solution, heat):
    r = xp.zeros(len(corners))
    residual(r, u=xp.asarray(solution), kappa=heat, **mesh)
    return r


def matrix(solution):
    return jacobian.assemble(pattern, u=xp.asarray(solution), **mesh)


def steady(heat):
    start = np.zeros(len(corners))
    return kingpost.newton(lambda u: at(u, heat), matrix, start, fixed=fixed, method="gmres", device=device)


found = steady(heat)
assert found.converged
print(found)

# %% the gradient of the energy by the heat: one linear system, with the adjoint of the derivative of the form
w = ufl.Coefficient(V)
transposed = ufl.adjoint(ufl.derivative(form, u))
adjoint_matrix = kingpost.jit(transposed, device, matrix="sparse", names={u: "u"})
adjoint_action = kingpost.jit(ufl.action(transposed, w), device, names={u: "u", w: "w"})
by_solution = kingpost.jit(ufl.derivative(energy, u), device, names={u: "u"})
by_heat = kingpost.jit(ufl.action(ufl.adjoint(ufl.derivative(form, kappa)), w), device, names={w: "w"})


def gradient(solution):
    solution = xp.asarray(solution)

    def remainder(adjoint):
        r = xp.zeros(len(corners))
        by_solution(r, u=solution, **mesh)
        adjoint_action(r, u=solution, w=xp.asarray(adjoint), **mesh)
        return r

    system = adjoint_matrix.assemble(pattern, u=solution, **mesh)
    start = np.zeros(len(corners))  # of a linear equation, Newton's method takes one step
    adjoint = kingpost.newton(remainder, lambda _: system, start, fixed=fixed, method="gmres", device=device)
    result = xp.zeros(len(corners))
    by_heat(result, w=xp.asarray(adjoint.x), **mesh)
    return result


slope = gradient(found.x)

# %% it is that of the energies themselves
energy_of = kingpost.jit(energy, device, names={u: "u"})


def total(heat):
    result = xp.zeros(1)
    energy_of(result, u=xp.asarray(steady(heat).x), **mesh)
    return float(result[0])


direction = xp.asarray(np.sin(np.arange(len(corners))))
h = 1e-3
difference = (total(heat + h * direction) - total(heat - h * direction)) / (2 * h)
print(f"along a direction: {float(slope @ direction):.9f}, by differences {difference:.9f}")
assert np.isclose(float(slope @ direction), difference, rtol=1e-5)

# %% with JAX or PyTorch, the solution is a function that is differentiated like any other
if importlib.util.find_spec("jax"):
    import jax
    import kingpost.jax

    jax.config.update("jax_enable_x64", True)
    arrays = {"x": corners / n, "x_dofs": triangles, "p1_dofs": triangles}
    of_form = kingpost.jax.function(form, names={u: "u", kappa: "kappa"})
    of_energy = kingpost.jax.function(energy, names={u: "u"})
    root = of_form.solver("u", method="gmres")
    start = np.zeros(len(corners))
    of_heat = lambda heat: of_energy(u=root(u=start, kappa=heat, fixed=fixed, **arrays), **arrays)

    same = jax.jit(jax.grad(of_heat))(np.ones(len(corners)))
    host = slope.get() if hasattr(slope, "get") else slope
    print(f"JAX's gradient differs by {abs(same - host).max():.1e}")
    assert np.allclose(same, host, rtol=0, atol=1e-8 * abs(host).max())
