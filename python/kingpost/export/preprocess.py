"""UFL's passes: from a form as written to integrands that only the lowering has to read.

UFL lowers tensor algebra, takes derivatives and estimates degrees. Pull-backs, geometry and the
scaling of integrals are left to the lowering, which is faster than UFL's passes. Shape
derivatives need them before they are taken: such forms go through all of UFL's passes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import ufl
import ufl.classes as uc
from ufl.algorithms import compute_form_data
from ufl.algorithms.apply_algebra_lowering import apply_algebra_lowering
from ufl.algorithms.apply_derivatives import apply_derivatives
from ufl.algorithms.apply_integral_scaling import compute_integrand_scaling_factor
from ufl.algorithms.check_arities import ArityMismatch, check_form_arity
from ufl.algorithms.comparison_checker import ComplexComparisonError, do_comparison_check
from ufl.algorithms.compute_form_data import attach_estimated_degrees
from ufl.algorithms.domain_analysis import build_integral_data, group_form_integrals
from ufl.algorithms.remove_complex_nodes import remove_complex_nodes
from ufl.corealg.traversal import unique_pre_traversal
from ufl.domain import extract_unique_domain

from .across import Twins, twinned
from .elements import cell_name, check_element
from .errors import FormError, UnsupportedForm
from .rules import Rule, rule_across, rule_of

KINDS = ("cell", "exterior_facet", "interior_facet")


class Piece(NamedTuple):
    """One integrand with its rule; `scale` multiplies it if it is not None."""

    kind: str
    subdomains: tuple[int, ...]
    rule: Rule
    integrand: Any
    scale: Any | None


def check_form(form: Any, is_complex: bool = False) -> None:
    """Refuses what is no form, and what the tabulated form cannot say."""
    if isinstance(form, ufl.equation.Equation):
        raise FormError("found an equation; export `lhs(F)` and `rhs(F)`, or the residual")
    if not isinstance(form, ufl.Form):
        raise FormError(
            f"found a `{type(form).__name__}`, needed a `ufl.Form`; for an `Action` or a sum of "
            "assembled parts use `ufl.algorithms.expand_derivatives` first"
        )
    numbers = [argument.number() for argument in form.arguments()]
    if len(set(numbers)) < len(numbers):
        raise UnsupportedForm(
            "several parts of a `MixedFunctionSpace` in one form",
            "export the list that `ufl.extract_blocks(form)` returns",
        )
    for function in (*form.arguments(), *form.coefficients()):
        check_element(function.ufl_element())
    for integral in form.integrals():
        _check_meshes(integral)
        _check_integral(integral, is_complex)


def _check_meshes(integral: Any) -> None:
    """Refuses functions and geometry of another mesh than that of the integral."""
    mesh = integral.ufl_domain()
    for node in unique_pre_traversal(integral.integrand()):
        if isinstance(node, uc.Coefficient | uc.Argument):
            found = node.ufl_function_space().ufl_domain()
        elif isinstance(node, uc.GeometricQuantity):
            found = extract_unique_domain(node)
        else:
            continue
        if found is not None and found != mesh:
            raise UnsupportedForm(
                f"`{node}` of another mesh than that of its integral",
                "interpolate it to the mesh of the integral, also where one is a submesh of the other",
            )


def _check_integral(integral: Any, is_complex: bool) -> None:
    kind = integral.integral_type()
    if kind not in KINDS:
        names = {"vertex": "dP", "ridge": "dr"}
        raise UnsupportedForm(
            f"integrals of type `{kind}` (`{names.get(kind, kind)}`)", "use `dx`, `ds` or `dS`"
        )
    for node in unique_pre_traversal(integral.integrand()):
        if isinstance(node, uc.ComplexValue | uc.Imag) and not is_complex:
            raise FormError(f"found `{node}` in a form of real numbers; give `c128` or `c64` as `scalar`")


def check_domain(form: Any) -> Any:
    """The one mesh of a form."""
    domains = form.ufl_domains()
    if len(domains) != 1:
        raise UnsupportedForm(
            f"a form on {len(domains)} meshes", "interpolate the functions to one mesh"
        )
    (domain,) = domains
    if not isinstance(domain, ufl.Mesh):
        raise UnsupportedForm(f"a `{type(domain).__name__}`", "use a `ufl.Mesh`")
    check_element(domain.ufl_coordinate_element())
    return domain


def _has_shape_derivative(form: Any) -> bool:
    return any(
        isinstance(node, uc.CoordinateDerivative)
        for integral in form.integrals()
        for node in unique_pre_traversal(integral.integrand())
    )


class Group(NamedTuple):
    """Integrals of one type on the same subdomains."""

    kind: str
    subdomain_id: tuple[Any, ...]
    integrals: list[Any]


def _derived(form: Any, is_complex: bool, twins: Twins) -> list[Group]:
    """Algebra lowered, derivatives taken, integrals grouped, degrees estimated."""
    lowered = apply_algebra_lowering(do_comparison_check(form) if is_complex else form)
    derived = apply_derivatives(lowered if is_complex else remove_complex_nodes(lowered))
    # where two kinds meet, the form has two arguments of a number, which UFL does not add; that of one kind is checked
    if is_complex and not twins:
        check_form_arity(derived, form.arguments(), complex_mode=True)
    groups = _grouped(derived)
    if groups is None:
        grouped = group_form_integrals(
            derived, form.ufl_domains(), do_append_everywhere_integrals=False
        )
        return _data(build_integral_data(attach_estimated_degrees(grouped).integrals()))
    for group in groups:
        group.integrals[:] = attach_estimated_degrees(ufl.Form(group.integrals)).integrals()
    return groups


def _grouped(form: Any) -> list[Group] | None:
    """Groups where no two sets of subdomains overlap in part; None where UFL has to split them.

    UFL's grouping renumbers all indices, which takes longer than all derivatives of most forms.
    """
    sums: dict[Any, dict[Any, Any]] = {}
    for integral in form.integrals():
        ids = integral.subdomain_id()
        ids = ids if isinstance(ids, tuple) else (ids,)
        same = sums.setdefault((integral.integral_type(), ids), {})
        key = tuple(sorted((k, _hashable(v)) for k, v in integral.metadata().items()))
        known = same.get(key)
        if known is not None:
            integral = known.reconstruct(known.integrand() + integral.integrand())
        same[key] = integral
    seen: set[Any] = set()
    for kind, ids in sums:
        entries = {(kind, i) for i in ids}
        if seen & entries or len(entries) < len(ids):
            return None
        seen |= entries
    return [Group(kind, ids, list(same.values())) for (kind, ids), same in sums.items()]


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else id(value)


def _data(integral_data: list[Any]) -> list[Group]:
    return [Group(d.integral_type, tuple(d.subdomain_id), list(d.integrals)) for d in integral_data]


def _fully_lowered(form: Any, is_complex: bool) -> list[Group]:
    data = compute_form_data(
        form,
        do_apply_function_pullbacks=True,
        do_apply_integral_scaling=True,
        do_apply_geometry_lowering=True,
        preserve_geometry_types=(uc.Jacobian,),
        do_apply_restrictions=True,
        do_append_everywhere_integrals=False,
        complex_mode=is_complex,
    )
    return _data(data.integral_data)


@lru_cache(maxsize=64)
def _scaling(domain: Any, kind: str) -> tuple[Any, int]:
    unit = uc.Integral(uc.IntValue(1), kind, domain, "everywhere", {}, None)
    return compute_integrand_scaling_factor(unit)


def _grouped_integrals(form: Any, is_complex: bool, shape: bool, twins: Twins | None = None) -> list[Group]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _fully_lowered(form, is_complex) if shape else _derived(form, is_complex, twins or {})
        except ComplexComparisonError as error:
            raise FormError(f"complex form: {error} Compare `real`, `imag` or `abs` of them") from error
        except ArityMismatch as error:
            if not is_complex:
                raise
            raise FormError(
                f"complex form: {error}; test functions are conjugated, as `inner(f, v)` does, and trial functions are not"
            ) from error


def with_degrees(form: Any) -> Any:
    """The form with the degree of each rule in its measure, so that what is derived of it has the same rules.

    An estimate would differ: that of `exp(u)` grows with the degree of each factor that a derivative brings, and the
    result would be no derivative of the sum over points that the form is. Shape derivatives are left as they are.
    """
    if _has_shape_derivative(form):
        return form
    integrals = []
    for kind, ids, group in _grouped_integrals(form, False, False):
        for integral in group:
            metadata = dict(integral.metadata())
            estimate = _degree(metadata.pop("estimated_polynomial_degree"))
            given = metadata.get("quadrature_degree")
            if given is None or int(given) < 0:
                metadata["quadrature_degree"] = estimate + _degree(_scaling(integral.ufl_domain(), kind)[1])
            own = ids[0] if len(ids) == 1 else ids
            integrals.append(integral.reconstruct(subdomain_id=own, metadata=metadata))
    return ufl.Form(integrals) if integrals else form


def pieces(form: Any, is_complex: bool, scheme: str, twins: Twins | None = None) -> Iterator[Piece]:
    """Integrands of a checked form, one a measure, subdomain and rule; `scheme` is that of measures without one."""
    shape = _has_shape_derivative(form)
    groups = _grouped_integrals(twinned(form, twins) if twins else form, is_complex, shape, twins)
    arguments = [argument.ufl_element() for argument in form.arguments()]
    (domain,) = form.ufl_domains()
    cell = cell_name(domain.ufl_coordinate_element())
    for kind, ids, integrals in groups:
        for integral in integrals:
            scale, extra = (None, 0) if shape else _scaling(domain, kind)
            degree = _degree(integral.metadata()["estimated_polynomial_degree"]) + _degree(extra)
            if twins:
                others = [twins[argument].ufl_element() for argument in form.arguments()]
                other = cell_name(twins[domain].ufl_coordinate_element())
                rule = rule_across(integral, (cell, other), degree, [*arguments, *others], scheme)
            else:
                rule = rule_of(integral, cell, kind, degree, arguments, scheme)
            for subdomains in _subdomains(ids):
                yield Piece(kind, subdomains, rule, integral.integrand(), scale)


def _degree(estimate: Any) -> int:
    return max(estimate) if isinstance(estimate, tuple) else int(estimate)


def _subdomains(ids: tuple[Any, ...]) -> list[tuple[int, ...]]:
    """Everywhere is (); numbered subdomains stay together."""
    numbered = tuple(sorted(int(i) for i in ids if not isinstance(i, str)))
    named = [i for i in ids if isinstance(i, str)]
    return ([()] if named else []) + ([numbered] if numbered else [])
