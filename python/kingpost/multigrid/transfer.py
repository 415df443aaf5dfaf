"""Interpolation from a coarse space to a finer one, and its transpose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional

import numpy as np

from kingpost.errors import MeshError
from kingpost.meshes.forms import DTYPES
from kingpost.meshes.refinement import children, in_child, parents
from kingpost.meshes.space import Space
from kingpost.multigrid.kernels import transfer_kernel

Array = Any
#: Weights below it are zeros with rounding errors: values of basis functions are of the order of 1.
ZERO = 1e-12


class Transfer:
    """The interpolation between two spaces, on a device: each degree of freedom of the fine one is a value at a point.

    The spaces are of one mesh, or the mesh of the fine one is that of the coarse one, refined once. ``place`` brings
    arrays to the device, whose numbers are ``f64`` or ``f32``.

    Raises:
        MeshError: Spaces whose degrees of freedom are no values at points, other meshes, components that differ.
    """

    def __init__(self, coarse: Space, fine: Space, device: str, place: Any, precision: str = "f64") -> None:
        if coarse.block != fine.block:
            raise MeshError(f"transfer: found {coarse.block} and {fine.block} components, needed as many")
        if fine.mesh is not coarse.mesh and fine.mesh.parent is not coarse.mesh:
            raise MeshError("transfer: found two meshes, needed one, or the second as `refined` makes it of the first")
        self.shape = (coarse.size, fine.size, fine.block)
        names, rows = ("prolong", "restrict"), _rows(coarse, fine)
        rows["weights"] = rows["weights"].astype(DTYPES[precision])
        self._kernels = {name: transfer_kernel(name, fine.block, precision, device) for name in names}
        self._arrays = {name: place(values) for name, values in rows.items()}

    def prolong(self, coarse: Array, fine: Array, inverse: Array) -> None:
        """Adds the interpolated values, except where ``inverse`` is zero."""
        self._run("prolong", coarse, fine, inverse)

    def restrict(self, fine: Array, coarse: Array, inverse: Array) -> None:
        """Adds what the transpose makes of the values, without those where ``inverse`` is zero."""
        self._run("restrict", coarse, fine, inverse)

    def _run(self, name: str, coarse: Array, fine: Array, inverse: Array) -> None:
        n_coarse, n, block = self.shape
        arrays = {"coarse": coarse.reshape(n_coarse, block), "fine": fine.reshape(n, block)}
        self._kernels[name](**self._arrays, **arrays, inverse=inverse.reshape(n, block))


def _rows(coarse: Space, fine: Space) -> dict[str, Array]:
    """The rows of the interpolation: those of the reference cell once, and for each degree of freedom which one it has
    and where its cell stands in the map of the coarse space."""
    total, most = sum(dofs.size for dofs in coarse.dofs.values()), np.iinfo(np.int32).max
    if total > most:
        raise MeshError(f"transfer: found a map of {total} entries, needed at most {most}; use fewer cells")
    first, row = np.zeros(fine.size, np.int32), np.zeros(fine.size, np.int32)
    starts, columns, weights, base, entries = [np.zeros(1, int)], [], [], 0, 0
    for kind, parent, at, dofs in _families(coarse, fine):
        table = _table(coarse, fine, parent, kind)
        each, width = len(table), dofs.shape[1]
        table = table.reshape(-1, table.shape[2])
        child = np.arange(len(dofs), dtype=np.int32)
        # the last cell that has a degree of freedom stays; in all of them its value is the same
        first[dofs] = (at + child // each * table.shape[1])[:, None]
        row[dofs] = (base + child % each * width)[:, None] + np.arange(width, dtype=np.int32)
        used = np.abs(table) > ZERO
        starts.append(entries + np.cumsum(used.sum(axis=1)))
        columns.append(np.nonzero(used)[1])
        weights.append(table[used])
        base, entries = base + len(table), entries + int(used.sum())
    return {
        "first": first,
        "row": row,
        "row_starts": np.concatenate(starts).astype(np.int32),
        "columns": np.concatenate(columns).astype(np.int32),
        "weights": np.concatenate(weights),
        "map": np.concatenate([dofs.reshape(-1) for dofs in coarse.dofs.values()]),
    }


def _families(coarse: Space, fine: Space) -> Iterator[tuple[str, str, int, Array]]:
    """The cells of the fine space with parents of one kind: both kinds, where the map of the parents begins among those
    of all kinds, and the map of the cells."""
    maps = list(coarse.dofs.values())
    starts = dict(zip(coarse.dofs, np.cumsum([0, *(dofs.size for dofs in maps)]).tolist()))
    if fine.mesh is coarse.mesh:
        yield from ((kind, kind, starts[kind], dofs) for kind, dofs in fine.dofs.items())
        return
    for kind, of_kinds in parents(coarse.dofs).items():
        begin = 0
        for parent in of_kinds:
            end = begin + len(children(parent)[kind]) * len(coarse.dofs[parent])
            yield kind, parent, starts[parent], fine.dofs[kind][begin:end]
            begin = end
        if begin != len(fine.dofs[kind]):
            raise MeshError(f"cells of kind `{kind}`: found {len(fine.dofs[kind])}, needed all children of the coarse ones")


def _table(coarse: Space, fine: Space, parent: str, kind: str) -> Array:
    """The basis functions of the coarse cell at the points of each cell in it, ``[cells, points, functions]``."""
    points = nodal(fine, kind).points
    of_cells = points[None] if fine.mesh is coarse.mesh else in_child(parent, kind, points)
    tables = [nodal(coarse, parent).tabulate(0, at)[0, :, :, 0] for at in of_cells]
    return np.stack(tables)


def nodal(space: Space, kind: str) -> Any:
    """Basix's element of values at points."""
    element = space.elements[kind]
    plain = element._sub_element if element.block_size > 1 else element
    own: Optional[Any] = getattr(plain, "basix_element", None)
    if own is None or not own.interpolation_is_identity or own.value_size > 1 or own.discontinuous:
        raise MeshError(f"`{element}`: needed a continuous Lagrange element, or one of its components")
    return own
