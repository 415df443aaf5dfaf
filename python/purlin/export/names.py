"""Names of a document: identifiers, each used once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .elements import Element
from .errors import FormError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Names:
    """Gives out names; a name that is taken gets a number."""

    def __init__(self, given: Mapping[Any, str] | None = None) -> None:
        self.given = {key if isinstance(key, int) else id(key): name for key, name in (given or {}).items()}
        for name in self.given.values():
            if not (isinstance(name, str) and _IDENTIFIER.match(name)):
                raise FormError(f"names: found `{name}`, needed a letter or `_`, then letters, digits and `_`")
        self.taken: set[str] = set()

    def unique(self, wanted: str) -> str:
        """`wanted`, or `wanted` with the first free number behind it."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken.add(name)
        return name

    def of(self, thing: Any, otherwise: str) -> str:
        """The name that the user gave to a UFL object, or else its own, or `otherwise`."""
        for candidate in (self.given.get(id(thing)), getattr(thing, "name", None)):
            if isinstance(candidate, str) and _IDENTIFIER.match(candidate):
                return self.unique(candidate)
        return self.unique(otherwise)


def space_name(element: Element) -> str:
    """A short name for an element's space."""
    if element.is_mixed:
        return "mixed"
    if element.is_quadrature:
        return "quadrature"
    if element.is_real:
        return "real"
    family = re.sub(r"[^a-z0-9]", "", str(element.family_name).lower())
    short = {"p": "p", "lagrange": "p", "q": "q"}.get(family, family or "space")
    return f"{'d' if element.discontinuous else ''}{short}{element.degree}"
