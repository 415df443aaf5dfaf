"""The arrays that DOLFINx keeps, by the roles of a kernel's arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional

import numpy as np

from kingpost.dolfinx.entities import Batch
from kingpost.errors import FormError
from kingpost.spaces import Json, Role

Array = Any

#: Scalar types of forms by those of DOLFINx.
SCALARS = {"float64": "f64", "float32": "f32"}


class Numberings:
    """Tells numberings apart: function spaces with equal maps share one.

    Two spaces of one element may number differently, such as one that was collapsed from a mixed
    space.
    """

    def __init__(self) -> None:
        self._known: list[Any] = []

    def __call__(self, space: Any) -> int:
        for place, known in enumerate(self._known):
            if known is space or _same(known.dofmap, space.dofmap):
                return place
        self._known.append(space)
        return len(self._known) - 1


def _same(a: Any, b: Any) -> bool:
    return a.bs == b.bs and np.array_equal(a.list, b.list)


class Mapping:
    """The arrays of a form on a mesh.

    ``functions`` are the coefficients and ``constants`` the constants by their names in the
    document, ``spaces`` those of the arguments by the names of the
    outputs, the test function first.
    """

    def __init__(
        self,
        document: Json,
        mesh: Any,
        functions: dict[str, Any],
        constants: dict[str, Any],
        spaces: dict[str, Sequence[Any]],
    ) -> None:
        self.document, self.mesh = document, mesh
        self.functions, self.constants = functions, constants
        self._spaces: dict[int, Any] = {}
        for entry in document["functions"]:
            if entry["name"] in functions:
                self._bind_space(
                    entry["space"], functions[entry["name"]].function_space, f"`{entry['name']}`"
                )
        for entry in document["outputs"]:
            whose = ("the test function", "the trial function")
            for place, space, name in zip(entry["spaces"], spaces[entry["name"]], whose):
                self._bind_space(place, space, name)

    def _bind_space(self, place: int, space: Any, whose: str) -> None:
        entry, dofmap = self.document["spaces"][place], space.dofmap
        found = (dofmap.list.shape[1], dofmap.bs)
        if found != (entry["columns"], entry["block"]):
            raise FormError(
                f"the space of {whose} has {found[0]} degrees of freedom a cell in blocks of {found[1]}, "
                f"needed {entry['columns']} in blocks of {entry['block']}: it is a part of another space; "
                "`collapse()` it"
            )
        self._spaces[place] = space

    def fixed(self, role: Role, batch: Batch) -> Optional[Array]:
        """The array of a role that does not change between calls; None for the others."""
        if role.kind == "map":
            return self._map(role.place)[batch.rows]
        if role.kind == "states":
            return self._states(role.place)[batch.rows]
        return batch.lists.get(role.kind)

    def _map(self, place: int) -> Array:
        # the geometry is the first space, and no function shares it
        return self.mesh.geometry.dofmaps[0] if place == 0 else self._spaces[place].dofmap.list

    def _states(self, place: int) -> Array:
        from kingpost.export import states

        self.mesh.topology.create_entity_permutations()
        orientations = self.mesh.topology.get_cell_permutation_info()
        return states(self.document["spaces"][place], self.document["cell"], orientations)

    def varying(self, role: Role, values: dict[str, Array]) -> Any:
        """The array or number of a role as it is now; ``values`` stand for functions by name."""
        if role.kind == "constant":
            constant = self.constants[self.document["constants"][role.place]["name"]]
            return np.asarray(constant.value).reshape(-1)[role.component].item()
        entry = self.document["functions"][role.place]
        if entry["role"] == "coordinates":
            return self.mesh.geometry.x  # three components also in the plane
        name = entry["name"]
        array = values[name] if name in values else self.functions[name].x.array
        return self.blocked(array, entry["space"])

    def blocked(self, array: Array, place: int) -> Array:
        """An array of degrees of freedom as ``[n]``, or ``[n, block]``; a view."""
        block = self.document["spaces"][place]["block"]
        return array if block == 1 else array.reshape(-1, block)


def scalar_type(mesh: Any, functions: Sequence[Any]) -> str:
    """The scalar type of a form.

    Raises:
        FormError: Complex numbers, or types that differ.
    """
    found = {"geometry": mesh.geometry.x.dtype} | {f"`{f}`": f.x.array.dtype for f in functions}
    for whose, dtype in found.items():
        if dtype.name not in SCALARS:
            raise FormError(f"{whose} has entries of type `{dtype}`, needed `float64` or `float32`")
        if dtype != found["geometry"]:
            needed = found["geometry"]
            raise FormError(f"{whose} has entries of type `{dtype}`, needed `{needed}`, that of the geometry")
    return SCALARS[found["geometry"].name]


def array_of(vector: Any) -> Array:
    """The local entries of a function, a vector of DOLFINx or PETSc, or an array."""
    if hasattr(vector, "x") and hasattr(vector.x, "array"):
        return vector.x.array
    if hasattr(vector, "scatter_reverse"):
        return vector.array
    return vector


Place = Callable[[Array], Array]
