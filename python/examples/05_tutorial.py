# A notebook in cells, for editors and Jupytext: from UFL to a tuned kernel on NumPy arrays.
# The book's chapter "From UFL to a tuned kernel" tells it.

# %% a mesh of triangles, as arrays
import time

import basix.ufl
import numpy as np
import kingpost
import ufl

n = 64
corners = np.stack(np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij"), -1).reshape(-1, 2)
first = np.array([i * (n + 1) + j for i in range(n) for j in range(n)])
lower = np.stack([first, first + n + 1, first + n + 2], axis=1)
upper = np.stack([first, first + n + 2, first + 1], axis=1)
x = corners / n
triangles = np.concatenate([lower, upper]).astype(np.int32)

# %% the degrees of freedom of P2: vertices, then edges, each opposite of its vertex
edges = np.sort(triangles[:, [1, 2, 0, 2, 0, 1]].reshape(-1, 2), axis=1)
edges, numbers = np.unique(edges, axis=0, return_inverse=True)
dofs = np.hstack([triangles, len(x) + numbers.reshape(-1, 3)]).astype(np.int32)
nodes = np.concatenate([x, x[edges].mean(axis=1)])

# %% the form: stiffness with a coefficient that varies, and mass
mesh = ufl.Mesh(basix.ufl.element("Lagrange", "triangle", 1, shape=(2,)))
V = ufl.FunctionSpace(mesh, basix.ufl.element("Lagrange", "triangle", 2))
u, k, v = ufl.Coefficient(V), ufl.Coefficient(V), ufl.TestFunction(V)
action = ((1 + k**2) * ufl.inner(ufl.grad(u), ufl.grad(v)) + u * v) * ufl.dx

# %% one call compiles it; a call adds the action to `y`
op = kingpost.jit(action, device="c", names={u: "u", k: "k"})
fixed: dict = dict(k=np.sin(nodes[:, 0]), x=x, x_dofs=triangles, p2_dofs=dofs)


def apply(values):
    y = np.zeros_like(values)
    op(y, u=values, **fixed)
    return y


print([f"{a.name}: {a.dtype}{list(a.shape)}" for a in op.arguments])

# %% what it computes: the derivative of a constant is zero, which leaves its mass
assert np.isclose(apply(np.ones(len(nodes))).sum(), 1.0)  # the area of the square

# %% the right-hand side of a solution that is known, and conjugate gradients
position = ufl.SpatialCoordinate(mesh)
known = ufl.cos(ufl.pi * position[0]) * ufl.cos(ufl.pi * position[1])
load = kingpost.jit(
    ((1 + k**2) * ufl.inner(ufl.grad(known), ufl.grad(v)) + known * v) * ufl.dx, names={k: "k"}
)
b = np.zeros(len(nodes))
load(b, **fixed)


def solve(b):
    u, r = np.zeros_like(b), b.copy()
    p, size = r.copy(), r @ r
    for steps in range(1, 1000):
        ap = apply(p)
        alpha = size / (p @ ap)
        u += alpha * p
        r -= alpha * ap
        size, before = r @ r, size
        if size <= 1e-20 * (b @ b):
            return u, steps
        p = r + size / before * p
    raise RuntimeError("no convergence")


solution, steps = solve(b)
error = np.abs(solution - np.cos(np.pi * nodes[:, 0]) * np.cos(np.pi * nodes[:, 1])).max()
print(f"{steps} steps, largest error {error:.1e}")
assert error < 1e-5  # the third order of P2, on 64 divisions

# %% how it runs: the mapping and its reason, the steps that made it, the source
print(op.mapping_reason)
print(op.recipe.splitlines()[0])
print(op.source.splitlines()[-1])


# %% tuned with these arrays: mappings are tried, compared, and the fastest is kept
def seconds():
    def once():
        start = time.perf_counter()
        apply(b)
        return time.perf_counter() - start

    return min(once() for _ in range(20))


before = seconds()
trials = op.tune(np.zeros_like(b), u=b, **fixed)
print(f"{len(trials)} mappings tried; {1e6 * before:.0f} µs before, {1e6 * seconds():.0f} µs with {op.mapping}")
assert np.allclose(solve(b)[0], solution, rtol=0, atol=1e-9)

# %% how far from the machine's limits it is
print(op.roofline(np.zeros_like(b), u=b, **fixed))

# %% the same by hand: the kernel before any step, and steps of one's own
s = kingpost.Schedule(op.steps()[0].kernel)
group, item = s.split("cell", 32)
try:
    s.tag(group, "g.0")
except kingpost.Refusal as refusal:
    print(refusal)  # cells share degrees of freedom, and their updates would meet
