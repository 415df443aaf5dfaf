"""The cells and facets that a process integrates over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from kingpost.errors import FormError
from kingpost.spaces import Entities

Array = Any
Rows = Union[slice, Array]

#: Entries of an integration entity: a cell; a cell and its facet; the same for both sides.
WIDTHS = {"cell": 1, "exterior_facet": 2, "interior_facet": 4}
MEASURES = {"cell": "dx", "exterior_facet": "ds", "interior_facet": "dS"}


@dataclass(frozen=True)
class Batch:
    """Entities of one launch.

    ``rows`` are those of numberings that the kernel gets; ``lists`` are its lists of entities, i32
    ``[n]`` or ``[n, 2]``, by the kind of their role.
    """

    rows: Rows
    lists: dict[str, Array]
    count: int


def owned_cells(mesh: Any) -> int:
    """The number of cells that this process owns; they come first."""
    return mesh.topology.index_map(mesh.topology.dim).size_local


def batches(
    mesh: Any, over: Entities, data: Any, is_early: Optional[Array], order: Optional[Array]
) -> Iterator[tuple[bool, Batch]]:
    """The launches of a kernel, and whether each is early.

    ``data`` is the measure's subdomain data. ``is_early`` says of each cell whether it needs no
    entry of another process; an entity is early if all its cells are. Without it, all entities are
    one late batch. ``order`` has the owned cells in the order in which they are integrated over, where
    that is another one than their own; facets keep theirs.
    """
    if over.kind == "cell" and not over.subdomains:
        owned = owned_cells(mesh)
        if is_early is None:
            yield False, Batch(slice(owned) if order is None else order, {}, owned)
            return
        cells = np.arange(owned) if order is None else order
        for early in (True, False):
            rows = cells[is_early[cells] == early]
            yield early, Batch(rows, {}, len(rows))
        return
    found = _found(mesh, over, data)
    if over.kind == "cell" and order is not None:
        found = found[np.argsort(np.argsort(order)[found[:, 0]], kind="stable")]
    if is_early is None:
        yield False, _listed(mesh, over.kind, found)
        return
    chosen = is_early[found[:, ::2]].all(axis=1)
    for early in (True, False):
        yield early, _listed(mesh, over.kind, found[chosen == early])


def _found(mesh: Any, over: Entities, data: Any) -> Array:
    """Owned integration entities [n, width]."""
    if over.subdomains and data is None:
        name, ids = MEASURES[over.kind], ", ".join(map(str, over.subdomains))
        raise FormError(
            f"`{name}({ids})` has no subdomain data, needed the tags of its entities; "
            f'give them as `ufl.Measure("{name}", subdomain_data=tags)`'
        )
    from dolfinx.fem import IntegralType, compute_integration_domains
    from dolfinx.fem.forms import get_integration_domains

    kind, width = IntegralType[over.kind], WIDTHS[over.kind]
    topology = mesh.topology
    if over.kind != "cell":
        topology.create_connectivity(topology.dim - 1, topology.dim)
        topology.create_connectivity(topology.dim, topology.dim - 1)
    if not over.subdomains:
        facets = _facets(topology, over.kind)
        lists = [compute_integration_domains(kind, topology, facets)]
    else:
        # a list of arrays comes back whole, a mesh's tags for these subdomains alone
        domains = get_integration_domains(kind, data, list(over.subdomains))
        lists = [entities for number, entities in domains if number in over.subdomains]
    flat = [np.asarray(entities, dtype=np.int32).reshape(-1, width) for entities in lists]
    return np.concatenate([np.empty((0, width), dtype=np.int32), *flat])


def _facets(topology: Any, kind: str) -> Array:
    """All owned facets of a kind."""
    from dolfinx.mesh import exterior_facet_indices

    if kind == "exterior_facet":
        return exterior_facet_indices(topology)
    cells = topology.connectivity(topology.dim - 1, topology.dim)
    owned = topology.index_map(topology.dim - 1).size_local
    return np.flatnonzero(np.diff(cells.offsets[: owned + 1]) == 2).astype(np.int32)


def _listed(mesh: Any, kind: str, found: Array) -> Batch:
    # facets may have cells of other processes, and listed cells any place
    if kind == "cell":
        return Batch(slice(None), {"entity_cells": np.ascontiguousarray(found[:, 0])}, len(found))
    cells, facets = found[:, ::2], found[:, 1::2]
    if kind == "exterior_facet":
        cells, facets = cells[:, 0], facets[:, 0]
    lists = {"entity_cells": np.ascontiguousarray(cells), "local_facets": np.ascontiguousarray(facets)}
    if kind == "interior_facet":
        mesh.topology.create_entity_permutations()
        orientations = mesh.topology.get_facet_permutations().reshape(mesh.geometry.dofmaps[0].shape[0], -1)
        lists["facet_states"] = orientations[cells, facets].astype(np.int32)
    return Batch(slice(None), lists, len(found))


def subdomain_data(forms: Sequence[Any]) -> dict[str, Any]:
    """The subdomain data of forms by type of integral.

    Raises:
        FormError: Two measures of a type with different data.
    """
    found: dict[str, Any] = {}
    for form in forms:
        for by_type in form.subdomain_data().values():
            for kind, all_data in by_type.items():
                for data in all_data:
                    if data is not None and found.setdefault(kind, data) is not data:
                        name = MEASURES.get(kind, kind)
                        raise FormError(
                            f"measures `{name}` of the form have different subdomain data, needed one; "
                            "number all subdomains in one `meshtags`"
                        )
    return found
