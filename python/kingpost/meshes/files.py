"""Meshes of files: Gmsh's by the engine's own reader, others through meshio."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from kingpost import _kingpost
from kingpost.errors import MeshError, Unavailable
from kingpost.meshes.mesh import Cells, Mesh

Array = Any

#: Basix's cells by VTK's vertices in basix's order.
VERTICES = {
    "interval": (0, 1),
    "triangle": (0, 1, 2),
    "tetrahedron": (0, 1, 2, 3),
    "quadrilateral": (0, 1, 3, 2),
    "hexahedron": (0, 1, 3, 2, 4, 5, 7, 6),
    "prism": (0, 1, 2, 3, 4, 5),
    "pyramid": (0, 1, 3, 2, 4),
}
_SQUARE = ((0, 1), (1, 2), (2, 3), (3, 0))
_UPPER = ((4, 5), (5, 6), (6, 7), (7, 4), (0, 4), (1, 5), (2, 6), (3, 7))
_SIDES = ((0, 4, 7, 3), (1, 2, 6, 5), (0, 1, 5, 4), (3, 2, 6, 7), (0, 1, 2, 3), (4, 5, 6, 7))
#: Cells by meshio's names: basix's, and the vertices between which VTK has its further nodes.
CELLS: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "line": ("interval", ()),
    "triangle": ("triangle", ()),
    "tetra": ("tetrahedron", ()),
    "quad": ("quadrilateral", ()),
    "hexahedron": ("hexahedron", ()),
    "wedge": ("prism", ()),
    "pyramid": ("pyramid", ()),
    "line3": ("interval", ((0, 1),)),
    "triangle6": ("triangle", ((0, 1), (1, 2), (2, 0))),
    "tetra10": ("tetrahedron", ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))),
    "quad9": ("quadrilateral", (*_SQUARE, (0, 1, 2, 3))),
    "hexahedron27": ("hexahedron", (*_SQUARE, *_UPPER, *_SIDES, tuple(range(8)))),
    "wedge18": (
        "prism",
        ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5),
         (0, 1, 4, 3), (1, 2, 5, 4), (2, 0, 3, 5)),
    ),
}  # fmt: skip
#: Arrays of cells that are taken for groups, if none is named.
TAGS = ("group", "gmsh:physical", "medit:ref", "cell_tags", "tag")


def read(path: Union[str, os.PathLike], *, gdim: Optional[int] = None, tags: Optional[str] = None) -> Mesh:
    """Reads a mesh.

    Gmsh's files (``.msh``, 4.1 and 2.2, text and binary) keep all groups of cells and facets, also those that overlap
    or have the other orientation, of partitioned meshes too. Other files are read by meshio. Cells are those of the
    highest dimension, of order 1 or 2 (of Gmsh's files simplices, quadrangles and hexahedra to 4; VTK has no pyramids
    of order 2).

    Args:
        path: The file.
        gdim: The dimension of space; coordinates that are dropped must be zero. By default the least that holds all
            positions, and at least that of the cells.
        tags: The array of cells, of a file that meshio reads, whose integers are their groups.

    Raises:
        MeshError: A file that is no mesh, cells that are not supported.
        Unavailable: A file for meshio, which is not installed, or of XDMF without h5py.
    """
    path = Path(path)
    if path.suffix == ".msh":
        return _of_gmsh(_kingpost.read_gmsh(str(path)), gdim)
    try:
        import meshio
    except ImportError as error:
        raise _lacking(path, error) from error
    if not path.is_file():
        raise MeshError(f"{path}: no such file")
    try:
        found = meshio.read(path)
    except ImportError as error:
        raise _lacking(path, error) from error
    except (meshio.ReadError, SystemExit, KeyError, ValueError) as error:
        # such as the number of a kind of cells that its reader does not know
        raise MeshError(f"{path}: meshio cannot read it: {type(error).__name__} {error}") from error
    return from_meshio(found, gdim=gdim, tags=tags)


def _of_gmsh(found: Any, gdim: Optional[int]) -> Mesh:
    def integers(data: bytearray) -> Array:
        return np.frombuffer(data, np.int32)

    cells: list[Cells] = []
    for kind, order, nodes, groups in found.blocks:
        if any(of.kind == kind for of in cells):
            raise MeshError(f"found cells of kind {kind} of order {order} and of another one, needed one order")
        count = len(_points(kind, order))
        own = {number: integers(data) for number, data in groups.items()}
        cells.append(Cells(kind, integers(nodes).reshape(-1, count), own))
    positions = np.frombuffer(found.positions, np.float64).reshape(-1, 3)
    facet_groups = {number: integers(data) for number, data in found.facet_groups.items()}
    return Mesh(
        _in_space(positions, found.dim, gdim),
        cells,
        facets=integers(found.facets).reshape(-1, 4),
        facet_groups=facet_groups,
        names=found.names,
    )


def from_meshio(mesh: Any, *, gdim: Optional[int] = None, tags: Optional[str] = None) -> Mesh:
    """A mesh of meshio's; arguments as of :func:`read`.

    Raises:
        MeshError: Cells that are not supported, no such array of tags.
    """
    if tags is not None and tags not in mesh.cell_data:
        known = ", ".join(f"`{name}`" for name in mesh.cell_data) or "none"
        raise MeshError(f"tags: found no array `{tags}` of cells, needed one of {known}")
    named = tags or next((name for name in TAGS if name in mesh.cell_data), None)
    blocks = []
    for place, block in enumerate(mesh.cells):
        values = None if named is None else np.abs(np.asarray(mesh.cell_data[named][place]).reshape(-1).astype(int))
        blocks.append((block.type, np.asarray(block.data), values))
    dims = [(0, b) if b[0] == "vertex" else (_dimension(b[0]), b) for b in blocks]
    top = max((dim for dim, _ in dims), default=0)
    if top == 0:
        raise MeshError("the file has no cells; needed lines, surfaces or solids")
    cells = [_cells(b for d, b in dims if d == top and CELLS[b[0]][0] == kind) for kind in _kinds(dims, top)]
    facets, groups = _facets([b for d, b in dims if d == top - 1])
    used = np.zeros(len(mesh.points), bool)
    for of in cells:
        used[of.nodes.reshape(-1)] = True
    numbers = np.cumsum(used) - 1
    cells = [Cells(of.kind, numbers[of.nodes].astype(np.int32), of.groups) for of in cells]
    facets = np.where(facets >= 0, numbers[facets], -1).astype(np.int32)
    names = {name: (int(dim), int(number)) for name, (number, dim) in mesh.field_data.items()}
    positions = np.zeros((int(used.sum()), 3))
    positions[:, : mesh.points.shape[1]] = mesh.points[used]
    return Mesh(_in_space(positions, top, gdim), cells, facets=facets, facet_groups=groups, names=names)


def write(path: Union[str, os.PathLike], mesh: Mesh, **functions: Any) -> None:
    """Writes a mesh with continuous functions through meshio, in the format of the path's end, such as VTU or XDMF.

    Functions are written by their values at the nodes of the mesh, the lowest group of each cell as ``group``, 0 where
    there is none.

    Raises:
        MeshError: Cells of order 3 or more or pyramids of order 2, which VTK has not; functions that jump; a format
            that meshio does not know.
        Unavailable: Without meshio, or without h5py for XDMF.
    """
    path = Path(path)
    try:
        import meshio
    except ImportError as error:
        raise _lacking(path, error) from error
    names = {kind: name for name, (kind, more) in CELLS.items() if bool(more) == (mesh.degree == 2)}
    cells, groups = [], []
    for kind, of in mesh.cells.items():
        if mesh.degree > 2 or kind not in names:
            raise MeshError(f"cells of kind {kind} of degree {mesh.degree}: VTK has them to degree 2, and no such pyramids")
        cells.append((names[kind], of.nodes[:, np.argsort(_places(names[kind]))]))
        lowest = np.zeros(len(of), np.int32)
        for number in sorted(of.groups, reverse=True):
            lowest[of.groups[number]] = number
        groups.append(lowest)
    points = np.zeros((len(mesh.positions), 3))
    points[:, : mesh.gdim] = mesh.positions
    values = {name: function.at_nodes() for name, function in functions.items()}
    try:
        meshio.Mesh(points, cells, point_data=values, cell_data={"group": groups}).write(path)
    except ImportError as error:
        raise _lacking(path, error) from error
    except (meshio.ReadError, meshio.WriteError) as error:
        raise MeshError(f"{path}: meshio cannot write it: {error}") from error


def _lacking(path: Path, error: ImportError) -> Unavailable:
    """What reads or writes a format is not there."""
    return Unavailable(f"`{path.name}`: {error}; install what is missing by `pip install 'kingpost[meshes]'`")


def _dimension(name: str) -> int:
    import basix

    if name not in CELLS:
        raise MeshError(f"cells of meshio's kind `{name}` are not supported; needed one of {', '.join(CELLS)}")
    return len(basix.topology(basix.CellType[CELLS[name][0]])) - 1


def _kinds(dims: list[tuple[int, Any]], top: int) -> list[str]:
    return list(dict.fromkeys(CELLS[block[0]][0] for dim, block in dims if dim == top))


def _cells(blocks: Any) -> Cells:
    """The cells of all blocks of one kind."""
    found, start = [], 0
    groups: dict[int, list[Array]] = {}
    for name, data, values in blocks:
        found.append(data[:, _places(name)])
        for number in np.unique(values) if values is not None else []:
            groups.setdefault(int(number), []).append(start + np.flatnonzero(values == number))
        start += len(data)
    if len({nodes.shape[1] for nodes in found}) > 1:
        raise MeshError(f"found cells of kind {CELLS[name][0]} of several orders, needed one")
    # 0 is no group
    merged = {number: np.concatenate(parts) for number, parts in groups.items() if number}
    return Cells(CELLS[name][0], np.concatenate(found), merged)


def _facets(blocks: Sequence[Any]) -> tuple[Array, dict[int, Array]]:
    """The vertices of facets in groups, and the groups."""
    rows, groups = [], []
    for name, data, values in blocks:
        if values is None:
            continue
        corners = 1 if name == "vertex" else len(VERTICES[CELLS[name][0]])
        wide = np.full((len(data), 4), -1)
        wide[:, :corners] = data[:, :corners]
        rows.append(wide[values > 0])
        groups.append(values[values > 0])
    if not rows:
        return np.zeros((0, 4), int), {}
    numbers = np.concatenate(groups)
    return np.concatenate(rows), {int(n): np.flatnonzero(numbers == n) for n in np.unique(numbers)}


@lru_cache(maxsize=32)
def _points(kind: str, order: int) -> Array:
    """The reference points of the nodes, in basix's order."""
    import basix

    variant = basix.LagrangeVariant.equispaced
    return basix.create_element(basix.ElementFamily.P, basix.CellType[kind], order, variant).points


@lru_cache(maxsize=32)
def _places(name: str) -> Array:
    """Which of VTK's nodes each of basix's is."""
    kind, more = CELLS[name]
    own = VERTICES[kind]
    if not more:
        return np.array(own)
    corners = _points(kind, 1)[np.argsort(own)]
    nodes = np.stack([*corners, *(corners[list(between)].mean(axis=0) for between in more)])
    distances = np.linalg.norm(_points(kind, 2)[:, None] - nodes[None], axis=2)
    assert distances.min(axis=1).max() < 1e-12, name
    return distances.argmin(axis=1)


def _in_space(positions: Array, dim: int, gdim: Optional[int]) -> Array:
    """The positions without the last coordinates, if these are zero."""
    used = [axis + 1 for axis in range(3) if positions[:, axis].any()]
    least = max([dim, *used])
    if gdim is not None and not least <= gdim <= 3:
        raise MeshError(f"gdim: found {gdim}, needed {least} to 3 for cells of dimension {dim} at these positions")
    return positions[:, : least if gdim is None else gdim]
