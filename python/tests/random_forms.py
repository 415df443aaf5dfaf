"""Random UFL forms: random cells, elements, operators and measures from one seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basix
import numpy as np
import ufl
from basix.ufl import blocked_element, element, enriched_element, mixed_element, quadrature_element

SIMPLICES = ("interval", "triangle", "tetrahedron")
CELLS = (*SIMPLICES, "quadrilateral", "hexahedron")
DIM = {"interval": 1, "triangle": 2, "tetrahedron": 3, "quadrilateral": 2, "hexahedron": 3}
VARIANTS = [
    basix.LagrangeVariant.equispaced, basix.LagrangeVariant.gll_warped,
    basix.LagrangeVariant.gll_isaac, basix.LagrangeVariant.gll_centroid,
]  # fmt: skip


@dataclass
class RandomForm:
    """A form and what was drawn for it."""

    form: ufl.Form
    title: str


class Draw:
    """Draws from one generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def pick(self, options: Any) -> Any:
        """One of `options`."""
        return options[int(self.rng.integers(len(options)))]

    def scalar_element(self, cell: str) -> Any:
        """A scalar element of low degree."""
        top = 2 if cell == "hexahedron" else 3
        degree = int(self.rng.integers(1, top + 1))
        kind = self.pick(["P", "P", "P", "DG", "DG0", "variant", "bubble", "serendipity", "GL"])
        if kind == "DG0":
            return element("DG", cell, 0)
        if kind == "variant":
            return element("P", cell, degree, lagrange_variant=self.pick(VARIANTS))
        if kind == "GL":
            variant = basix.LagrangeVariant.gl_isaac
            return element("P", cell, degree, lagrange_variant=variant, discontinuous=True)
        if kind == "bubble" and cell in SIMPLICES:
            bubble = element("bubble", cell, DIM[cell] + 1)
            return self.pick([bubble, enriched_element([element("P", cell, 1), bubble])])
        if kind == "serendipity" and cell in ("quadrilateral", "hexahedron"):
            variants: dict[str, Any] = {"dpc_variant": basix.DPCVariant.legendre}
            family = self.pick(["serendipity", "DPC"])
            if family == "serendipity":
                variants["lagrange_variant"] = basix.LagrangeVariant.legendre
            return element(family, cell, degree, discontinuous=family == "DPC", **variants)
        return element("DG" if kind == "DG" else "P", cell, degree)

    def vector_element(self, cell: str, gdim: int) -> Any:
        """A vector-valued element: a block, or a Piola-mapped family."""
        options = ["block", "block"]
        if DIM[cell] > 1 and gdim == DIM[cell]:
            options += ["RT", "N1curl"]
            if cell in SIMPLICES:
                options += ["BDM", "N2curl"]
        family = self.pick(options)
        if family == "block":
            return blocked_element(self.scalar_element(cell), shape=(gdim,))
        if cell not in SIMPLICES:
            family = {"RT": "RTCF", "N1curl": "RTCE"}[family] if DIM[cell] == 2 else {
                "RT": "NCF", "N1curl": "NCE"}[family]  # fmt: skip
            return element(family, cell, 1)
        return element(family, cell, int(self.rng.integers(1, 3 if DIM[cell] == 2 else 2)))

    def tensor_element(self, cell: str, gdim: int) -> Any:
        """A matrix-valued element: a block, a symmetric block, Regge or HHJ."""
        kind = self.pick(["block", "symmetric", "special"])
        if kind == "special" and cell in ("triangle", "tetrahedron") and gdim == DIM[cell]:
            return element(self.pick(["Regge", "HHJ"]), cell, 1)
        symmetry = True if kind == "symmetric" and gdim > 1 else None
        return blocked_element(element("P", cell, 1), shape=(gdim, gdim), symmetry=symmetry)

    def element(self, cell: str, gdim: int) -> Any:
        """Any element."""
        kind = self.pick(["scalar", "scalar", "vector", "vector", "tensor", "mixed"])
        if kind == "scalar":
            return self.scalar_element(cell)
        if kind == "tensor":
            return self.tensor_element(cell, gdim)
        if kind == "vector":
            return self.vector_element(cell, gdim)
        return mixed_element([self.vector_element(cell, gdim), self.scalar_element(cell)])


class Builder:
    """Builds one form on one mesh."""

    def __init__(self, seed: int, is_complex: bool = False) -> None:
        self.draw = Draw(np.random.default_rng(seed))
        self.is_complex = is_complex
        pick = self.draw.pick
        self.cell = pick(CELLS)
        tdim = DIM[self.cell]
        self.gdim = min(3, tdim + int(pick([0, 0, 0, 0, 0, 1])))
        degree = int(pick([1, 1, 1, 2])) if self.cell != "hexahedron" else 1
        self.affine = degree == 1 and self.cell in SIMPLICES
        coordinates = element("P", self.cell, degree, shape=(self.gdim,))
        self.mesh = ufl.Mesh(coordinates)
        self.x = ufl.SpatialCoordinate(self.mesh)
        self.title = f"{self.cell} {self.gdim}d degree {degree}"
        self.functions = [
            ufl.Coefficient(self.space(self.draw.element(self.cell, self.gdim))) for _ in range(2)
        ]
        self.constant = ufl.Constant(self.mesh)
        self.matrix = ufl.Constant(self.mesh, shape=(self.gdim, self.gdim))
        self.side = ""

    def space(self, e: Any) -> Any:
        """A function space."""
        return ufl.FunctionSpace(self.mesh, e)

    def at(self, expression: Any) -> Any:
        """The expression on the side that is being drawn."""
        return expression(self.side) if self.side else expression

    @staticmethod
    def is_constant(expression: Any) -> bool:
        """Whether UFL writes the gradient as zero, which then has no dimension."""
        return ufl.checks.is_cellwise_constant(expression)

    def flat(self, expression: Any) -> Any:
        """A scalar that is linear in `expression`: a component, a trace, a derivative."""
        rank = len(expression.ufl_shape)
        if self.draw.pick([True, False]) and rank < 3 and not self.is_constant(expression):
            expression = ufl.grad(expression)
            if (
                rank == 0
                and not self.is_constant(expression)
                and self.draw.pick([True, False, False])
            ):
                expression = ufl.grad(expression)
        shape = expression.ufl_shape
        if len(shape) == 2 and shape[0] == shape[1] > 1 and self.draw.pick([True, False]):
            expression = self.draw.pick([ufl.tr, lambda e: ufl.dev(e)[0, 0],
                                         # the second operand is conjugated
                                         lambda e: ufl.inner(ufl.sym(e), self.matrix)])(
                expression
            )  # fmt: skip
            return self.at(expression)
        if len(shape) == 1 and shape[0] == self.gdim and self.draw.pick([True, False]):
            return self.at(ufl.dot(self.x, expression))
        index = tuple(int(self.draw.rng.integers(n)) for n in shape)
        return self.at(expression[index] if index else expression)

    def factor(self) -> Any:
        """A nonlinear scalar of coefficients, constants and x."""
        pick = self.draw.pick
        f = self.flat(pick(self.functions))
        g = self.flat(pick(self.functions))
        c = self.constant
        if self.is_complex:
            return self.complex_factor(f, g)
        return pick([
            lambda: f, lambda: f * g + c, lambda: f**2 / (1 + g**2), lambda: ufl.sqrt(2 + f**2),
            lambda: ufl.exp(0.1 * f) * ufl.sin(g), lambda: ufl.ln(2 + f**2),
            lambda: ufl.conditional(ufl.lt(f, g), f, g * c), lambda: ufl.max_value(f, c),
            lambda: ufl.min_value(f, g), lambda: abs(f) + ufl.sign(g + 0.01) * c,
            lambda: ufl.tanh(f) + ufl.atan(g) + ufl.cosh(0.1 * g) + ufl.sinh(0.1 * f),
            lambda: ufl.atan2(f, 2 + g**2) + ufl.erf(f),
            lambda: ufl.bessel_J(1, 1.1 + 0.1 * ufl.tanh(f)),
            lambda: ufl.tan(0.5 * ufl.tanh(f))
            + ufl.acos(0.5 * ufl.tanh(g)) + ufl.asin(0.3 * ufl.tanh(f)),
            lambda: (2 + f**2) ** c, lambda: self.variable(f, g),
            lambda: ufl.conditional(
                ufl.And(ufl.gt(f, 0), ufl.Not(ufl.ge(g, c))), f, ufl.cos(g)),
            lambda: self.tensor(), lambda: self.geometry(),
        ])()  # fmt: skip

    def complex_factor(self, f: Any, g: Any) -> Any:
        """A nonlinear scalar that is complex, of what complex numbers have and of real parts."""
        c, re, im = self.constant, ufl.real, ufl.imag
        return self.draw.pick([
            lambda: f, lambda: ufl.conj(f) * g + c, lambda: f**2 / (1 + abs(g) ** 2),
            lambda: ufl.sqrt(2 + f) * ufl.conj(c), lambda: ufl.exp(0.1j * f) * ufl.sin(g),
            lambda: ufl.ln(2 + f) + ufl.cos(g), lambda: (1 + 2j) * f + 0.5j, lambda: im(f) * g,
            lambda: ufl.conditional(ufl.lt(re(f), im(g)), f, g * c),
            lambda: ufl.max_value(re(f), abs(c)) * g, lambda: ufl.min_value(re(f), re(g)),
            lambda: ufl.conditional(ufl.And(ufl.gt(im(f), 0), ufl.Not(ufl.ge(abs(g), 1))), f, ufl.cos(g)),
            lambda: ufl.tanh(re(f)) + ufl.atan(im(g)), lambda: abs(f) + ufl.sign(re(g) + 0.01) * c,
            lambda: ufl.erf(re(f)) * c, lambda: (2 + f) ** c, lambda: ufl.conj(f * self.x[0] + c),
            lambda: self.variable(f, g), lambda: self.tensor(), lambda: self.geometry(),
        ])()  # fmt: skip

    def variable(self, f: Any, g: Any) -> Any:
        """A derivative by a variable."""
        v = ufl.variable(f)
        return ufl.diff(ufl.sin(v) * g + v**3, v)

    def tensor(self) -> Any:
        """Tensor algebra of a matrix of constants and coordinates."""
        m = self.matrix + ufl.Identity(self.gdim) * 3 + ufl.outer(self.x, self.x)
        i, j = ufl.indices(2)
        choices = [
            lambda: ufl.det(m),
            lambda: ufl.inv(m)[0, self.gdim - 1],
            lambda: ufl.tr(m * m.T),
            lambda: ufl.inner(ufl.sym(m), ufl.skew(m) + m) + m[i, j] * m[j, i],
            lambda: ufl.as_tensor(m[i, j] * self.x[j], (i,))[0],
        ]
        if self.gdim == 3:
            choices.append(lambda: ufl.dot(ufl.cross(self.x, m[0, :]), m[:, 1]))
        return self.at(self.draw.pick(choices)())

    def geometry(self) -> Any:
        """A quantity of the cell or the facet."""
        options = [self.x[0]]
        if self.affine:
            options.append(ufl.CellVolume(self.mesh))
            if DIM[self.cell] > 1 or self.gdim == 1:
                options += [ufl.CellDiameter(self.mesh), ufl.Circumradius(self.mesh)]
        return self.at(self.draw.pick(options))

    def integrand(self, arguments: list[Any]) -> Any:
        """A product of a factor and one linear scalar for each argument."""
        value = self.factor()
        for argument in arguments:
            value = value * self.tested(argument, self.flat(argument))
        return value

    def tested(self, argument: Any, term: Any) -> Any:
        """A term that is linear in an argument; test functions of complex forms are conjugated."""
        return ufl.conj(term) if self.is_complex and argument.number() == 0 else term

    def boundary(self, arguments: list[Any]) -> Any:
        """An integrand of facets: with a normal where the mesh is no manifold."""
        value = self.integrand(arguments)
        if self.gdim == DIM[self.cell]:
            value = value * self.at(ufl.FacetNormal(self.mesh)[0])
        return value

    def interior(self, arguments: list[Any]) -> Any:
        """An integrand of interior facets with random sides."""
        value: Any = 1
        for argument in arguments:
            self.side = self.draw.pick(["+", "-"])
            term = self.flat(argument)
            if self.draw.pick([True, False]):
                self.side = ""
                plain = self.flat(argument)
                term = self.draw.pick([ufl.avg, ufl.jump])(plain)
            value = value * self.tested(argument, term)
        self.side = self.draw.pick(["+", "-"])
        value = value * self.factor()
        self.side = ""
        return value

    def measure(self, kind: str) -> Any:
        """A measure, at times with a degree, a scheme, a rule or a subdomain of its own."""
        measure = {"dx": ufl.dx, "ds": ufl.ds, "dS": ufl.dS}[kind](domain=self.mesh)
        choice = self.draw.pick(["degree", "degree", "degree", "vertex", "custom", "GLL"])
        metadata: dict[str, Any] = {"quadrature_degree": int(self.draw.rng.integers(1, 5))}
        if choice == "vertex":
            metadata = {"quadrature_rule": "vertex", "quadrature_degree": 1}
        if choice == "custom" and kind == "dx":
            n = 3
            points = self.draw.rng.uniform(0.1, 0.3, (n, DIM[self.cell]))
            metadata = {
                "quadrature_rule": "custom", "quadrature_points": points,
                "quadrature_weights": self.draw.rng.uniform(0.1, 0.4, n),
            }  # fmt: skip
        if choice == "GLL" and self.cell not in SIMPLICES and kind == "dx":
            metadata = {"quadrature_rule": "GLL", "quadrature_degree": 3}
        measure = measure(metadata=metadata)
        return (
            measure(int(self.draw.rng.integers(0, 3))) if self.draw.pick([True, False]) else measure
        )

    def build(self) -> RandomForm:
        """The form."""
        rank = int(self.draw.pick([0, 1, 1, 1, 2, 2]))
        spaces = [self.space(self.draw.element(self.cell, self.gdim)) for _ in range(rank)]
        arguments = [ufl.Argument(space, number) for number, space in enumerate(spaces)]
        makers = {"dx": self.integrand, "ds": self.boundary, "dS": self.interior}
        kinds = ["dx"] + [k for k in ("ds", "dS") if self.draw.pick([True, False, False])]
        form = None
        for kind in kinds:
            for _ in range(int(self.draw.rng.integers(1, 3))):
                term = makers[kind](arguments) * self.measure(kind)
                form = term if form is None else form + term
        assert form is not None
        title = f"rank {rank}, {self.title}, {'+'.join(kinds)}"
        # A quadrature element fixes the rule, so it stands in forms of its own.
        if rank == 1 and self.draw.pick([True, False, False, False, False]):
            q = quadrature_element(self.cell, degree=2)
            test = self.tested(arguments[0], self.flat(arguments[0]))
            form = ufl.Coefficient(self.space(q)) * test * ufl.dx
            title = f"rank 1, {self.title}, quadrature element"
        if rank == 1 and self.draw.pick([True, False, False, False]):
            form = self.differentiated(form)
            title += ", derivative"
        return RandomForm(form, title)

    def differentiated(self, form: Any) -> Any:
        """A derivative by a coefficient, in an argument or in a direction; or by x."""
        f = self.functions[0]
        if f not in form.coefficients():
            return form
        # the derivative of a conjugate is not linear in a trial function
        if self.draw.pick([True, False]) and not self.is_complex:
            return ufl.derivative(form, f, ufl.Argument(f.ufl_function_space(), 1))
        return ufl.derivative(form, f, ufl.Coefficient(f.ufl_function_space()))


def random_form(seed: int, is_complex: bool = False) -> RandomForm:
    """The random form of a seed, real or complex."""
    return Builder(seed, is_complex).build()
