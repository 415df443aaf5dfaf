"""Quadrature rules as measures name them: degree, scheme, custom points, quadrature elements."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import basix
import numpy as np
from ufl.algorithms import extract_elements

from .errors import FormError, UnsupportedForm
from .products import GRIDS
from .tables import Array


class Rule(NamedTuple):
    """Points [points][dim] and weights [points] on the reference cell or facet.

    Where the facets of a cell are of two kinds, those of each facet: [facets][points][dim] and [facets][points]. A
    facet that needs fewer points than another has its first one again, with weight 0.
    """

    points: Array
    weights: Array
    degree: int
    scheme: str
    #: The points on each facet of the cell on the side `-`, where that is of another kind.
    other: Array | None = None

    @property
    def key(self) -> tuple[bytes, bytes]:
        """Equal for equal rules."""
        return self.points.tobytes(), self.weights.tobytes()


def _entities(cell: str, kind: str) -> list[basix.CellType]:
    """The cell, or its facets; one of them if all are alike."""
    whole = basix.CellType[cell]
    if kind == "cell":
        return [whole]
    facets = list(basix.cell.subentity_types(whole)[-2])
    return facets if len(set(facets)) > 1 else facets[:1]


def _of_facets(rules: list[Rule], most: int) -> Rule:
    """One rule of those of each facet, of as many points."""
    points, weights = [], []
    for rule in rules:
        missing = most - len(rule.weights)
        points.append(np.concatenate([rule.points, np.repeat(rule.points[:1], missing, axis=0)]))
        weights.append(np.concatenate([rule.weights, np.zeros(missing)]))
    return Rule(np.stack(points), np.stack(weights), rules[0].degree, rules[0].scheme)


def checked_scheme(scheme: str) -> basix.QuadratureType:
    """The kind of rules of this name."""
    try:
        return basix.quadrature.string_to_type(scheme)
    except KeyError as error:
        raise FormError(f"quadrature rule `{scheme}`: basix has no such rule") from error


@lru_cache(maxsize=256)
def _named(entity: basix.CellType, degree: int, scheme: str, polyset: basix.PolysetType) -> Rule:
    if entity == basix.CellType.point:
        return Rule(np.ones((1, 0)), np.ones(1), degree, scheme)
    if scheme == "vertex":
        points = np.asarray(basix.cell.geometry(entity))
        weight = basix.cell.volume(entity) / len(points)
        return Rule(points, np.full(len(points), weight), degree, scheme)
    kind = checked_scheme(scheme)
    try:
        rule = basix.make_quadrature(entity, degree, rule=kind, polyset_type=polyset)
    except RuntimeError as error:
        raise FormError(f"quadrature rule `{scheme}` of degree {degree} on a {entity.name}: {error}") from error
    points, weights = (np.asarray(array) for array in rule)
    if entity in GRIDS:
        # basix's Gauss-Lobatto points begin with both ends of an axis: in ascending order, tables of nodes at the
        # points are identities and no permutations
        order = np.lexsort(np.round(points, 12).T[::-1])
        points, weights = points[order], weights[order]
    return Rule(points, weights, degree, scheme)


def _of_elements(integral: Any, dim: int) -> Rule | None:
    """The rule of the quadrature elements in an integral."""
    found: Rule | None = None
    for element in extract_elements(integral):
        if not element.has_custom_quadrature:
            continue
        points, weights = element.custom_quadrature()
        if points.shape[1] != dim:
            raise UnsupportedForm(
                f"`{element}` in an integral over facets", "evaluate it on a space of the cells"
            )
        if found and not (found.points.shape == points.shape and np.allclose(found.points, points)):
            raise FormError(
                "quadrature elements with different points in one integral; use one rule, or "
                "split the integral"
            )
        found = Rule(
            np.asarray(points), np.asarray(weights), element.embedded_superdegree, "custom"
        )
    return found


def rule_of_cells(cell: str, elements: list[Any]) -> Rule:
    """A rule over cells at whose points these elements have values: one point, or a quadrature element's."""
    for element in elements:
        if element.is_quadrature:
            points, weights = (np.asarray(array) for array in element.custom_quadrature())
            return Rule(points, weights, element.embedded_superdegree, "custom")
    return _named(basix.CellType[cell], 0, "default", basix.PolysetType.standard)


def rule_of(integral: Any, cell: str, kind: str, degree: int, arguments: list[Any], preferred: str) -> Rule:
    """The rule of an integral; `degree` is the estimate where the measure gives none, and `preferred` the scheme.

    Facets keep the default one where there is no such rule on them.
    """
    entities = _entities(cell, kind)
    if len(entities) > 1:
        if (integral.metadata() or {}).get("quadrature_rule") == "custom":
            raise UnsupportedForm(
                f"custom points on facets of a `{cell}`, which are of two kinds", "give a degree instead"
            )
        found = [_rule_on(e, integral, kind, degree, arguments, preferred) for e in entities]
        return _of_facets(found, max(len(rule.weights) for rule in found))
    return _rule_on(entities[0], integral, kind, degree, arguments, preferred)


def rule_across(
    integral: Any, cells: tuple[str, str], degree: int, arguments: list[Any], preferred: str
) -> Rule:
    """The rule of an integral over facets between cells of two kinds: points on each facet of both.

    Facets of a shape that the other cell does not have are given their midpoint, of weight 0.
    """
    facets = [basix.cell.subentity_types(basix.CellType[cell])[-2] for cell in cells]
    shared = [shape for shape in dict.fromkeys(facets[0]) if shape in facets[1]]
    if not shared:
        raise UnsupportedForm(f"facets between a `{cells[0]}` and a `{cells[1]}`, which have no shape in common")
    if len(shared) > 1 and (integral.metadata() or {}).get("quadrature_rule") == "custom":
        raise UnsupportedForm(
            f"custom points on facets between a `{cells[0]}` and a `{cells[1]}`, which are of two kinds",
            "give a degree instead",
        )
    rules = {shape: _rule_on(shape, integral, "interior_facet", degree, arguments, preferred) for shape in shared}
    any_of = rules[shared[0]]
    for shape in {*facets[0], *facets[1]} - set(shared):
        middle = np.asarray(basix.geometry(shape)).mean(axis=0, keepdims=True)
        rules[shape] = Rule(middle, np.zeros(1), any_of.degree, any_of.scheme)
    most = max(len(rule.weights) for rule in rules.values())
    own, other = (_of_facets([rules[shape] for shape in of], most) for of in facets)
    return own._replace(degree=any_of.degree, scheme=any_of.scheme, other=other.points)


def _rule_on(
    entity: basix.CellType, integral: Any, kind: str, degree: int, arguments: list[Any], preferred: str
) -> Rule:
    """The rule of an integral on a cell or a facet of this shape."""
    metadata = integral.metadata() or {}
    dim = len(basix.topology(entity)) - 1
    own = _of_elements(integral, dim)
    if own is not None:
        return own
    scheme = metadata.get("quadrature_rule") or "default"
    is_preferred = scheme == "default" != preferred
    if scheme == "custom":
        points = np.asarray(metadata["quadrature_points"], dtype=np.float64)
        weights = np.asarray(metadata["quadrature_weights"], dtype=np.float64)
        if points.shape != (len(weights), dim):
            raise FormError(
                f"custom rule: points have shape {list(points.shape)}; needed "
                f"[{len(weights)}, {dim}] on the reference {entity.name}"
            )
        return Rule(points, weights, -1, "custom")
    given = metadata.get("quadrature_degree", -1)
    chosen = int(given) if given is not None and int(given) >= 0 else degree
    polyset = basix.PolysetType.standard
    for element in arguments:
        if entity != basix.CellType.point:
            polyset = basix.polyset_superset(entity, polyset, element.polyset_type)
    if not is_preferred:
        return _named(entity, chosen, scheme, polyset)
    try:
        return _named(entity, chosen, preferred, polyset)
    except FormError:
        if kind == "cell":
            raise
        return _named(entity, chosen, scheme, polyset)
