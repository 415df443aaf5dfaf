"""Export of UFL forms to tabulated forms: plain data that the engine reads.

    >>> import kingpost.export
    >>> text = kingpost.export.dumps(kingpost.export.export_form(form))

A tabulated form has for each integral a rule, tables of reference derivatives, evaluations of
functions by tables, a graph of scalar operations, and terms (tables of arguments times a factor).
No element is known to its reader. Needs fenics-ufl, fenics-basix and NumPy, no compiled module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from .across import checked
from .document import documents
from .elements import states
from .errors import FormError, UnsupportedForm
from .names import POSITIONS
from .preprocess import check_domain, check_form
from .rules import checked_scheme

__all__ = ["FormError", "UnsupportedForm", "dumps", "export_form", "names_of", "states"]


def export_form(
    form: Any,
    *,
    name: str = "form",
    scalar: str = "f64",
    names: Mapping[Any, str] | None = None,
    outputs: Sequence[str] | None = None,
    numbering: Callable[[Any], Hashable] | None = None,
    scheme: str = "default",
    twins: Mapping[Any, Any] | None = None,
) -> dict[str, Any]:
    """Writes a UFL form, or a list of forms that share functions, as a tabulated form.

    Args:
        form: A `ufl.Form` of rank 0, 1 or 2 over `basix.ufl` elements, or a list of forms of one
            rank on one mesh; None in a list stands for an empty form. Integrals of equal type,
            subdomains and rule are merged.
        name: The kernel's name.
        scalar: `f64`, `f32`, `c128` or `c64`, the type of coefficients, constants and results, by this
            name or that of NumPy. Positions and tables of complex forms are real.
        names: Names of coefficients and constants, by the object or its `id`; else their attribute `name`,
            else `w0`, `w1`, ... and `c0`, `c1`, ... in the order of `form.coefficients()`. Each is a name of
            its own: `x` is that of the positions, and results have theirs.
        outputs: A name for each form; `y`, or `y0`, `y1`, ... where there are several.
        numbering: Tells function spaces of one element apart that number their degrees of freedom
            differently: equal results for spaces that may share a map. Without it, all spaces of
            an element share one.
        scheme: The quadrature rules of measures that name none, by basix's names; `Xiao-Gimbutas` has fewer points
            than the default at some degrees, such as 11 instead of 14 at degree 4 on tetrahedra.
        twins: Where facets lie between cells of two kinds: what stands on the side `-` of interior facets, by the mesh,
            coefficients and arguments of the form, which are those of `+`. Maps have both kinds of cells in their rows,
            and as many columns as the longer ones.

    Returns:
        The document as plain data, all arrays nested lists.

    Raises:
        UnsupportedForm: A valid form with something that a tabulated form does not have.
        FormError: A form that is wrong, or no form.
    """
    forms = _flat(form)
    titles = _default_outputs(len(forms)) if outputs is None else _checked_outputs(outputs, len(forms))
    kept = [(f, t) for f, t in zip(forms, titles, strict=True) if f is not None]
    scalar = _checked_scalar(scalar)
    checked_scheme(scheme)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise FormError(f"name `{name}` is not an identifier; use letters, digits and `_`")
    for one, _ in kept:
        check_form(one, scalar.startswith("c"))
    kept = [(f, t) for f, t in kept if not f.empty()]
    if not kept:
        raise FormError("the form is empty: nothing is left after simplification")
    _check_together([f for f, _ in kept])
    domain = check_domain(kept[0][0])
    document = documents([f for f, _ in kept], domain, [t for _, t in kept], names, numbering, scalar, scheme, checked(twins or {}))
    return document.write(name)


def names_of(form: Any, variables: Mapping[str, Any]) -> dict[int, str]:
    """Names for :func:`export_form`: the variables that hold functions and constants of a form.

    Those that begin with `_` are left out, and those that are the names of the positions or results.
    """
    forms = [one for one in _flat(form) if one is not None]
    own = {id(thing) for one in forms for thing in (*one.coefficients(), *one.constants())}
    taken = {POSITIONS, *_default_outputs(len(_flat(form)))}
    return {
        id(value): title
        for title, value in variables.items()
        if id(value) in own and not title.startswith("_") and title not in taken
    }


def _flat(form: Any) -> list[Any]:
    """Forms of nested lists, as `ufl.extract_blocks` makes them."""
    if isinstance(form, list | tuple):
        return [item for part in form for item in _flat(part)]
    return [form]


#: Types of numbers, by NumPy's names.
SCALARS = {"float64": "f64", "float32": "f32", "complex128": "c128", "complex64": "c64"}


def _checked_scalar(scalar: Any) -> str:
    if isinstance(scalar, str) and scalar in SCALARS.values():
        return scalar
    try:
        name = np.dtype(scalar).name
    except TypeError:
        name = None
    if scalar is None or name not in SCALARS:
        known = ", ".join(f"`{known}`" for known in SCALARS.values())
        raise UnsupportedForm(f"scalar type `{scalar}`; needed one of {known}")
    return SCALARS[name]


def _default_outputs(count: int) -> list[str]:
    return ["y"] if count == 1 else [f"y{i}" for i in range(count)]


def _checked_outputs(outputs: Any, count: int) -> list[str]:
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        raise FormError(f"outputs: found a {type(outputs).__name__}, needed a list with a name for each form")
    if len(outputs) != count:
        raise FormError(f"outputs: found {len(outputs)} names, needed {count}: one for each form")
    return list(outputs)


def _check_together(forms: list[Any]) -> None:
    ranks = sorted({len(form.arguments()) for form in forms})
    if len(ranks) > 1:
        raise FormError(f"the forms have ranks {ranks}; export forms of each rank apart")
    if ranks[0] > 2:
        raise UnsupportedForm(f"a form of rank {ranks[0]}", "replace an argument by a coefficient")
    domains = {domain for form in forms for domain in form.ufl_domains()}
    if len(domains) > 1:
        raise UnsupportedForm("forms on several meshes", "export the forms of each mesh apart")


def dumps(document: dict[str, Any]) -> str:
    """JSON of a document."""
    return json.dumps(document, allow_nan=False, separators=(",", ":"))
