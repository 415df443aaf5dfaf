"""Function spaces of other libraries, as the arrays that a kernel takes."""

from __future__ import annotations

from typing import Any, Protocol


class Adapter(Protocol):
    """How a library keeps meshes, spaces and functions."""

    def coordinates(self, mesh: Any) -> Any:
        """The array of positions, f64 [nodes, 2 or 3]."""

    def coordinate_map(self, mesh: Any) -> Any:
        """The nodes of each cell, i32 [cells, nodes a cell]."""

    def map(self, space: Any) -> Any:
        """The degrees of freedom of each owned cell, i32 [cells, dofs a cell]."""

    def values(self, function: Any, block: int) -> Any:
        """The values of a function, f64 [dofs] or [dofs, block]."""


def arguments(document: dict[str, Any], mesh: Any, functions: dict[str, Any], test: Any, adapter: Adapter) -> dict:
    """The arrays of a tabulated form by the names of its kernel's arguments.

    ``functions`` are the coefficients by name, ``test`` is the space of the test function.
    """
    given: dict[str, Any] = {}
    spaces = document["spaces"]
    for function in document["functions"]:
        space = spaces[function["space"]]
        if function["role"] == "coordinates":
            given[function["name"]] = adapter.coordinates(mesh)
            given[f"{space['name']}_dofs"] = adapter.coordinate_map(mesh)
        else:
            value = functions[function["name"]]
            given[function["name"]] = adapter.values(value, space["block"])
            given[f"{space['name']}_dofs"] = adapter.map(value.function_space)
    for output in document["outputs"]:
        for place in output["spaces"]:
            given[f"{spaces[place]['name']}_dofs"] = adapter.map(test)
    return given
