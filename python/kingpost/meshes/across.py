"""Integrals over interior facets between cells of two kinds: a kernel for each pair, with both cells in its arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Optional

import numpy as np
import ufl

from kingpost.errors import FormError, MeshError
from kingpost.export.across import translated
from kingpost.meshes.mesh import Mesh
from kingpost.meshes.of_kind import OfKind, facets_between, own, space_of
from kingpost.meshes.space import _Restricted, _Value

Array = Any
Pair = tuple[str, str]


class Between(OfKind):
    """A form on the facets between cells of two kinds, the first of which is that of the side `+`.

    Cells of the second kind are numbered after those of the first one. Maps have as many columns as the longer one; a
    shorter row ends in its first number again, to which nothing is added.
    """

    def __init__(self, mesh: Mesh, pair: Pair, form: Any, *given: Any) -> None:
        self.pair = pair
        super().__init__(mesh, pair[0], form, *given)

    def _twins(self, form: Any) -> Optional[dict[Any, Any]]:
        return twins(self.mesh, self.pair[1], form) | {self.mesh.domain(self.pair[0]): self.mesh.domain(self.pair[1])}

    def _n_cells(self) -> int:
        return sum(len(self.mesh.cells[kind]) for kind in self.pair)

    def _kinds_of_sides(self) -> Pair:
        return self.pair

    def _of_sides(self, cells: Array, local: Array) -> dict[str, Array]:
        states = [
            self.mesh.states(kind, self.mesh.tdim - 1)[cells[:, side], local[:, side]]
            for side, kind in enumerate(self.pair)
        ]
        return {"facet_states": np.stack(states, axis=1), "entity_cells": cells + [0, len(self.mesh.cells[self.pair[0]])]}

    def _map(self, place: int) -> Array:
        maps = [self._map_of(place, kind) for kind in self.pair]
        width = max(one.shape[1] for one in maps)
        wide = [np.concatenate([one, np.repeat(one[:, :1], width - one.shape[1], axis=1)], axis=1) for one in maps]
        return np.concatenate(wide)


def twins(mesh: Mesh, kind: str, form: Any) -> dict[Any, Any]:
    """The functions and arguments of a form on the cells of another kind."""
    found: dict[Any, Any] = {f: own(f, _Restricted, mesh).function.on(kind) for f in form.coefficients()}
    for argument in form.arguments():
        space = space_of(argument.ufl_function_space(), mesh)
        found[argument] = ufl.Argument(space.on(kind), argument.number(), argument.part())
    return found


def pairs(mesh: Mesh, forms: Mapping[str, Any]) -> dict[Pair, Any]:
    """The integrals over facets between cells of two kinds, by those, of the forms of all kinds.

    Raises:
        MeshError: Facets between cells whose forms have different integrals over interior facets.
    """
    inside = {kind: _inside(form) for kind, form in forms.items()}
    if not inside or all(form.empty() for form in inside.values()):
        return {}
    return dict(_pairs(mesh, {kind: inside.get(kind, ufl.Form([])) for kind in mesh.kinds}))


def _pairs(mesh: Mesh, inside: Mapping[str, Any]) -> Iterator[tuple[Pair, Any]]:
    for pair in combinations(mesh.kinds, 2):
        one, other = (inside[kind] for kind in pair)
        if not any(len(facets_between(mesh, pair, _groups(i))) for form in (one, other) for i in form.integrals()):
            continue
        if one.empty() or other.empty() or one.signature() != _on(mesh, pair, other).signature():
            raise MeshError(
                f"an integral over interior facets: found some between a {pair[0]} and a {pair[1]}, whose forms differ in "
                "`dS`; needed the same integral, or give the facets between others a group, and take `dS` of the rest"
            )
        yield pair, one


def _inside(form: Any) -> Any:
    return ufl.Form([i for i in form.integrals() if i.integral_type() == "interior_facet"])


def _groups(integral: Any) -> list[int]:
    ids = integral.subdomain_id()
    return [i for i in (ids if isinstance(ids, tuple) else (ids,)) if not isinstance(i, str)]


def _on(mesh: Mesh, pair: Pair, form: Any) -> Any:
    """A form of the second kind as one of the first."""
    there = twins(mesh, pair[0], form) | {mesh.domain(pair[1]): mesh.domain(pair[0])}
    there |= {c: own(c, _Value, mesh).constant.on(pair[0]) for c in form.constants()}
    return translated(form, there)
