"""Twenty UFL forms of different elements and kinds, exported for a machine without Python."""
import json, sys
from pathlib import Path
import ufl
from basix.ufl import element, mixed_element
from ufl import avg, curl, derivative, div, dot, ds, dS, dx, exp, grad, inner, jump, sym, tr
from kingpost.export import dumps, export_form

OUT = Path(sys.argv[1])
FORMS = {}

def mesh(cell, degree=1):
    gdim = {"triangle": 2, "quadrilateral": 2}.get(cell, 3)
    return ufl.Mesh(element("P", cell, degree, shape=(gdim,)))

def space(cell, e, degree=1):
    return ufl.FunctionSpace(mesh(cell, degree), e)

def form(make):
    FORMS[make.__name__] = make
    return make

def poisson(cell, degree, geometry=1):
    V = space(cell, element("P", cell, degree), geometry)
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    return inner(grad(u), grad(v)) * dx, {"u": u}

@form
def laplace_p1(): return poisson("tetrahedron", 1)
@form
def laplace_p2(): return poisson("tetrahedron", 2)
@form
def laplace_p4(): return poisson("tetrahedron", 4)
@form
def laplace_p3_triangle(): return poisson("triangle", 3)
@form
def laplace_q2_hexahedron(): return poisson("hexahedron", 2)
@form
def laplace_p2_curved(): return poisson("tetrahedron", 2, 2)

@form
def mass_dg3():
    V = space("tetrahedron", element("DG", "tetrahedron", 3))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    return u * v * dx, {"u": u}

@form
def elasticity_p2():
    V = space("tetrahedron", element("P", "tetrahedron", 2, shape=(3,)))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    mu, lmbda = ufl.Constant(V.ufl_domain()), ufl.Constant(V.ufl_domain())
    e = sym(grad(u))
    return inner(2 * mu * e + lmbda * tr(e) * ufl.Identity(3), sym(grad(v))) * dx, {"u": u, "mu": mu, "lambda": lmbda}

def neo_hooke(degree):
    V = space("tetrahedron", element("P", "tetrahedron", degree, shape=(3,)))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    F = ufl.Identity(3) + 1e-3 * grad(u)  # with random values of u, no cell is turned inside out
    J = ufl.det(F)
    psi = 0.5 * (tr(F.T * F) - 3) - ufl.ln(J) + 2.0 * ufl.ln(J) ** 2
    return u, v, psi * dx(degree=2 * degree)

@form
def neo_hooke_residual_p2():
    u, v, energy = neo_hooke(2)
    return derivative(energy, u, v), {"u": u}

@form
def neo_hooke_jacobian_action_p2():
    u, v, energy = neo_hooke(2)
    w = ufl.Coefficient(u.ufl_function_space())
    return derivative(derivative(energy, u, v), u, w), {"u": u, "w": w}

@form
def navier_stokes_convection_p2():
    V = space("tetrahedron", element("P", "tetrahedron", 2, shape=(3,)))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    return inner(dot(grad(u), u), v) * dx, {"u": u}

@form
def stokes_taylor_hood():
    V = space("tetrahedron", mixed_element([element("P", "tetrahedron", 2, shape=(3,)), element("P", "tetrahedron", 1)]))
    w, t = ufl.Coefficient(V), ufl.TestFunction(V)
    (u, p), (v, q) = ufl.split(w), ufl.split(t)
    return (inner(grad(u), grad(v)) - p * div(v) + q * div(u)) * dx, {"w": w}

@form
def curl_curl_nedelec2():
    V = space("tetrahedron", element("N1curl", "tetrahedron", 2))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    return (inner(curl(u), curl(v)) + inner(u, v)) * dx, {"u": u}

@form
def mixed_poisson_rt_dg():
    V = space("tetrahedron", mixed_element([element("RT", "tetrahedron", 2), element("DG", "tetrahedron", 1)]))
    w, t = ufl.Coefficient(V), ufl.TestFunction(V)
    (s, u), (tau, v) = ufl.split(w), ufl.split(t)
    return (inner(s, tau) + div(tau) * u + div(s) * v) * dx, {"w": w}

@form
def grad_div_bdm1_triangle():
    V = space("triangle", element("BDM", "triangle", 1))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    return (inner(u, v) + div(u) * div(v)) * dx, {"u": u}

@form
def interior_penalty_dg2():
    V = space("tetrahedron", element("DG", "tetrahedron", 2))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    n, h = ufl.FacetNormal(V.ufl_domain()), ufl.Circumradius(V.ufl_domain())
    flux = inner(avg(grad(u)), jump(v, n)) + inner(jump(u, n), avg(grad(v)))
    return (inner(grad(u), grad(v)) * dx - flux * dS + 10 / avg(h) * jump(u) * jump(v) * dS
            + 10 / h * u * v * ds), {"u": u}

@form
def nonlinear_diffusion_p3():
    V = space("tetrahedron", element("P", "tetrahedron", 3))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    return (1 + u**2) * inner(grad(u), grad(v)) * dx(degree=6) + exp(-u) * v * dx(degree=6), {"u": u}

@form
def helmholtz_p6_triangle():
    V = space("triangle", element("P", "triangle", 6))
    u, v = ufl.Coefficient(V), ufl.TestFunction(V)
    return (inner(grad(u), grad(v)) - 4 * u * v) * dx, {"u": u}

@form
def minimal_surface_energy_q2():
    V = space("quadrilateral", element("P", "quadrilateral", 2), 2)
    u = ufl.Coefficient(V)
    return ufl.sqrt(1 + inner(grad(u), grad(u))) * dx(degree=4) + u**2 * ds, {"u": u}

@form
def laplace_matrices_p2():
    V = space("tetrahedron", element("P", "tetrahedron", 2))
    return inner(grad(ufl.TrialFunction(V)), grad(ufl.TestFunction(V))) * dx, {}

OUT.mkdir(parents=True, exist_ok=True)
for name, make in FORMS.items():
    ufl_form, named = make()
    text = dumps(export_form(ufl_form, name=name, names={id(v): k for k, v in named.items()}))
    (OUT / f"{name}.json").write_text(text + "\n")
    d = json.loads(text)
    print(name, d["cell"], d["rank"], len(text))
