"""What the arguments of a tabulated form's kernels stand for, by their names.

The names are those of the book's chapter on forms from other front ends. Libraries of meshes map
roles to their arrays and know no names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Role:
    """What an argument stands for; ``place`` is one in the document's list of that kind.

    ``kind`` is ``function``, ``constant`` (with the flat ``component``), ``map``, ``states``,
    ``output``, ``entity_cells``, ``local_facets`` or ``facet_states``.
    """

    kind: str
    place: int = 0
    component: int = 0


@dataclass(frozen=True)
class Entities:
    """What a kernel runs over: cells or facets, everywhere if there are no subdomains."""

    #: ``cell``, ``exterior_facet`` or ``interior_facet``.
    kind: str
    subdomains: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the part of a :class:`kingpost.Operator`."""
        return "_".join([f"{self.kind}s", *map(str, self.subdomains)])


def map_name(space: Json) -> str:
    """The name of a space's map."""
    return space.get("map") or f"{space['name']}_dofs"


def parts(document: Json) -> list[Entities]:
    """The parts of a form's operator, each once."""
    found = (Entities(i["type"], tuple(i["subdomains"])) for i in document["integrals"])
    return list(dict.fromkeys(found))


def roles(document: Json) -> dict[str, Role]:
    """The roles of all arguments of arrays and numbers by name; kernels take some of them."""
    return dict(_roles(document))


def _roles(document: Json) -> Iterator[tuple[str, Role]]:
    for place, space in enumerate(document["spaces"]):
        yield map_name(space), Role("map", place)
        yield f"{space['name']}_states", Role("states", place)
    for name in ("facet_cells", "listed_cells"):
        yield name, Role("entity_cells")
    for name in ("local_facets", "facet_states"):
        yield name, Role(name)
    for place, function in enumerate(document["functions"]):
        yield function["name"], Role("function", place)
    for place, output in enumerate(document["outputs"]):
        yield output["name"], Role("output", place)
    for place, constant in enumerate(document["constants"]):
        size = 1
        for extent in constant["shape"]:
            size *= extent
        names = [f"{constant['name']}_{k}" for k in range(size)] if constant["shape"] else [constant["name"]]
        for component, name in enumerate(names):
            yield name, Role("constant", place, component)
