"""Integrals over facets between cells of two kinds: the side `-` has a mesh and elements of its own.

What stands there is said by a mapping: the mesh, coefficients and arguments of the side `+`, each with its twin. Twins
are put in before derivatives are taken, because UFL drops those that vanish on the cells of one kind alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ufl
import ufl.classes as uc
from ufl.algorithms.map_integrands import map_integrand_dags
from ufl.corealg.map_dag import map_expr_dag
from ufl.corealg.multifunction import MultiFunction
from ufl.corealg.traversal import unique_pre_traversal
from ufl.domain import extract_unique_domain

from .elements import check_element, transforms
from .errors import FormError, UnsupportedForm

Twins = Mapping[Any, Any]
#: What is added to the numbers of arguments on the side `-`: UFL takes one argument of a number.
OTHER = 1000


class _Replacer(MultiFunction):
    """Terminals by their twins, geometry by that of the mesh's twin."""

    expr = MultiFunction.reuse_if_untouched

    def __init__(self, twins: Twins) -> None:
        super().__init__()
        self.twins = twins

    def terminal(self, o: Any) -> Any:
        """A function that depends on cells, or something that does not."""
        return self.twins.get(o, o)

    def geometric_quantity(self, o: Any) -> Any:
        """The quantity of the other cell."""
        return type(o)(self.twins[extract_unique_domain(o)])


class _OnSides(MultiFunction):
    """Twins on the side `-` alone."""

    expr = MultiFunction.reuse_if_untouched

    def __init__(self, twins: Twins) -> None:
        super().__init__()
        self._twins, self._replacer = twins, _Replacer(twins)

    def terminal(self, o: Any) -> Any:
        """Of the side `+`, or of none."""
        return o

    def negative_restricted(self, o: Any) -> Any:
        """What stands on the side `-`."""
        return map_expr_dag(self._replacer, o.ufl_operands[0])("-")

    def coefficient_derivative(self, o: Any) -> Any:
        """The derivative by a function on both sides, which are two functions now."""
        integrand, functions, directions, known = o.ufl_operands
        if known.ufl_operands:
            raise UnsupportedForm(
                "`derivative` with `coefficient_derivatives` over facets between cells of two kinds", "write it out"
            )
        both = []
        for these in (functions, directions):
            own = these.ufl_operands
            both.append(uc.ExprList(*own, *(map_expr_dag(self._replacer, one) for one in own)))
        return type(o)(map_expr_dag(self, integrand), *both, known)


def twinned(form: Any, twins: Twins) -> Any:
    """The form with twins on the side `-`.

    Raises:
        UnsupportedForm: Derivatives by variables, or by positions.
        FormError: Integrals over something else than interior facets.
    """
    for integral in form.integrals():
        if integral.integral_type() != "interior_facet":
            raise FormError(f"integral of type {integral.integral_type()}: found twins, which `dS` alone has")
        for node in unique_pre_traversal(integral.integrand()):
            if isinstance(node, uc.VariableDerivative | uc.CoordinateDerivative):
                raise UnsupportedForm(
                    f"`{type(node).__name__}` in an integral over facets between cells of two kinds", "write it out"
                )
    numbered = dict(twins)
    for argument in form.arguments():
        space = twins[argument].ufl_function_space()
        numbered[argument] = ufl.Argument(space, argument.number() + OTHER, argument.part())
    return map_integrand_dags(_OnSides(numbered), form)


def translated(form: Any, twins: Twins) -> Any:
    """The form of other cells, as a form of those of the twins."""
    replacer = _Replacer(twins)
    return ufl.Form([
        integral.reconstruct(
            integrand=map_expr_dag(replacer, integral.integrand()), domain=twins[integral.ufl_domain()]
        )
        for integral in form.integrals()
    ])  # fmt: skip


def checked(twins: Twins) -> Twins:
    """Refuses elements whose degrees of freedom are turned with the entities of a cell."""
    for pair in twins.items():
        for one in pair:
            if isinstance(one, ufl.Mesh):
                check_element(one.ufl_coordinate_element())
                continue
            element = one.ufl_element()
            check_element(element)
            if transforms(element):
                raise UnsupportedForm(
                    f"`{element}` on facets between cells of two kinds: its degrees of freedom are turned",
                    "take Lagrange or discontinuous elements there",
                )
    return twins
