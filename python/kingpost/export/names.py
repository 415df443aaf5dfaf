"""Names of a document: identifiers, each used once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .elements import Element
from .errors import FormError

#: The name of the positions.
POSITIONS = "x"

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Names:
    """Gives out names; a name that is taken gets a number.

    Those that the user gives, of results and of functions, stay as they are and come first.
    """

    def __init__(self, given: Mapping[Any, str] | None, results: Sequence[str]) -> None:
        if given is not None and not isinstance(given, Mapping):
            raise FormError(
                f"names: found a {type(given).__name__}, needed a mapping from coefficients and constants to their "
                'names, as in `{u: "u"}`'
            )
        self.taken: dict[str, str] = {POSITIONS: "the positions"}
        for name in results:
            self._take("outputs", name, "a result")
        self.given = dict(given or {})
        for name in self.given.values():
            self._take("names", name, "another function or constant")

    def _take(self, option: str, name: Any, of: str) -> None:
        if not (isinstance(name, str) and _IDENTIFIER.match(name)):
            raise FormError(f"{option}: found `{name}`, needed a letter or `_`, then letters, digits and `_`")
        if name in self.taken:
            raise FormError(f"{option}: `{name}` is the name of {self.taken[name]}, needed one of its own")
        self.taken[name] = of

    def unique(self, wanted: str) -> str:
        """`wanted`, or `wanted` with the first free number after it."""
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted}_{number}"
        self.taken[name] = name
        return name

    def of(self, thing: Any, otherwise: str) -> str:
        """The name that the user gave to a UFL object, or else its own, or `otherwise`."""
        for key in (id(thing), thing):
            if key in self.given:
                return self.given[key]
        own = getattr(thing, "name", None)
        return self.unique(own if isinstance(own, str) and _IDENTIFIER.match(own) else otherwise)

    def check_used(self, things: Sequence[Any]) -> None:
        """Refuses names of what is not among the functions and constants of the form."""
        there = {*map(id, things), *things}
        for key in self.given:
            if key not in there:
                found = f"the `id` {key}" if isinstance(key, int) else f"`{key}`"
                known = ", ".join(f"`{thing}`" for thing in things) or "none"
                raise FormError(
                    f"names: found {found}, needed a coefficient or constant of the form; it has {known}"
                )


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
