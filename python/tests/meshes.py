"""Small meshes in NumPy: random numbering and orientation, entities, DOLFINx's permutation info."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import basix
import numpy as np
from kingpost.export.elements import _leaves, states
from kingpost.export.tables import permute_face_points
from tabulated import Mesh, number_type

SYMMETRIES = {
    "quadrilateral": [
        [0, 1, 2, 3], [1, 3, 0, 2], [3, 2, 1, 0], [2, 0, 3, 1], [0, 2, 1, 3], [1, 0, 3, 2],
    ],
    "hexahedron": [
        [0, 1, 2, 3, 4, 5, 6, 7], [1, 3, 0, 2, 5, 7, 4, 6], [4, 5, 6, 7, 0, 1, 2, 3],
        [0, 2, 4, 6, 1, 3, 5, 7], [2, 3, 6, 7, 0, 1, 4, 5],
    ],
    "prism": [
        [0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3], [2, 1, 0, 5, 4, 3], [3, 4, 5, 0, 1, 2], [5, 3, 4, 2, 0, 1],
    ],
    "pyramid": [[0, 1, 2, 3, 4], [1, 3, 0, 2, 4], [3, 2, 1, 0, 4], [0, 2, 1, 3, 4]],
}  # fmt: skip


@dataclass
class CellMesh:
    """Straight vertices [n, gdim] and cells [n_cells, n_vertices] in basix's local order."""

    cell: str
    vertices: np.ndarray
    cells: np.ndarray

    @property
    def topology(self) -> list[list[list[int]]]:
        """Basix's sub-entities of the reference cell."""
        return basix.topology(basix.CellType[self.cell])

    @property
    def tdim(self) -> int:
        """Topological dimension."""
        return len(self.topology) - 1

    @cached_property
    def entities(self) -> dict[int, np.ndarray]:
        """[dim]: entity numbers [n_cells, n_local]."""
        found = {}
        for dim in range(self.tdim + 1):
            numbers: dict[tuple[int, ...], int] = {}
            rows = [
                [
                    numbers.setdefault(tuple(sorted(cell[list(local)].tolist())), len(numbers))
                    for local in self.topology[dim]
                ]
                for cell in self.cells
            ]
            found[dim] = np.array(rows)
        return found

    def _state(self, cell: np.ndarray, dim: int, local: int) -> int:
        """An entity's state, reflected + 2 * rotations: what turns it to the frame that all share.

        In that frame the first vertex has the lowest number, and the second a lower one than the
        third. The turns are those of points in tables and of basix's transforms alike.
        """
        v = cell[list(self.topology[dim][local])].tolist()
        if len(v) == 2:
            return int(v[0] > v[1])
        corners = np.array([[0, 0], [1, 0], [0, 1], [1, 1]][: len(v)], dtype=float)
        for state in range(2 * len(v)):
            turned = np.rint(permute_face_points(corners, len(v), state)).astype(int)
            seen = [v[x + 2 * y] for x, y in turned]
            if seen[0] == min(v) and seen[1] < seen[2]:
                return state
        raise AssertionError("no state turns the face to the common frame")

    @cached_property
    def cell_info(self) -> np.ndarray:
        """Permutation info [n_cells], as DOLFINx packs it."""
        info = np.zeros(len(self.cells), dtype=np.uint32)
        faces = len(self.topology[2]) if self.tdim == 3 else 0
        for c, cell in enumerate(self.cells):
            bits = sum(self._state(cell, 2, f) << (3 * f) for f in range(faces))
            if self.tdim > 1:
                edges = range(len(self.topology[1]))
                bits |= sum(self._state(cell, 1, e) << (3 * faces + e) for e in edges)
            info[c] = bits
        return info

    def facets(self) -> dict[str, dict[str, np.ndarray]]:
        """Facet lists of both types with tags: facets with all x_0 on the left have tag 1."""
        by_facet: dict[int, list[tuple[int, int]]] = {}
        for c, row in enumerate(self.entities[self.tdim - 1]):
            for local, facet in enumerate(row):
                by_facet.setdefault(int(facet), []).append((c, local))
        outer = [sides[0] for sides in by_facet.values() if len(sides) == 1]
        inner = [sides for sides in by_facet.values() if len(sides) == 2]
        orient = lambda c, f: (  # noqa: E731
            self._state(self.cells[c], self.tdim - 1, f) if self.tdim > 1 else 0
        )
        return {
            "exterior_facet": {
                "facet_cells": np.array([c for c, _ in outer]),
                "local_facets": np.array([f for _, f in outer]),
                "facet_states": np.array([0 for _ in outer]),
                "tags": np.array([i % 3 for i, _ in enumerate(outer)]),
            },
            "interior_facet": {
                "facet_cells": np.array([[c for c, _ in s] for s in inner]).reshape(-1, 2),
                "local_facets": np.array([[f for _, f in s] for s in inner]).reshape(-1, 2),
                "facet_states": np.array([[orient(*p) for p in s] for s in inner]).reshape(-1, 2),
                "tags": np.array([i % 2 for i, _ in enumerate(inner)]),
            },
        }

    def place(self, cell: int, points: np.ndarray) -> np.ndarray:
        """Reference points [n, tdim] of a cell in space, by its vertices alone."""
        kind = basix.CellType[self.cell]
        p1 = basix.create_element(basix.ElementFamily.P, kind, 1)
        return p1.tabulate(0, points)[0, :, :, 0] @ self.vertices[self.cells[cell]]


def _grid(counts: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and tensor-ordered cells of a box grid."""
    axes = np.meshgrid(*(np.arange(n + 1.0) for n in counts), indexing="ij")
    vertices = np.stack([a.reshape(-1) for a in axes], axis=1)
    strides = [int(np.prod([m + 1 for m in counts[i + 1 :]])) for i in range(len(counts))]
    cells = []
    for corner in np.ndindex(*counts):
        base = int(np.dot(corner, strides))
        offsets = [0]
        for stride in strides:
            offsets += [o + stride for o in offsets]
        cells.append([base + o for o in offsets])
    return vertices, np.array(cells)


def make_mesh(
    cell: str,
    rng: np.random.Generator,
    counts: tuple[int, ...] | None = None,
    gdim: int | None = None,
) -> CellMesh:
    """A perturbed mesh of a few cells with random numbering and cells of both orientations."""
    tdim = len(basix.topology(basix.CellType[cell])) - 1
    vertices, boxes = _grid(counts or {1: (4,), 2: (2, 2), 3: (1, 1, 1)}[tdim])
    if cell == "triangle":
        cells = np.concatenate([boxes[:, [0, 1, 3]], boxes[:, [0, 2, 3]]])
    elif cell == "tetrahedron":
        paths = [(1, 3), (1, 5), (2, 3), (2, 6), (4, 5), (4, 6)]
        cells = np.concatenate([boxes[:, [0, a, b, 7]] for a, b in paths])
    elif cell == "prism":
        cells = np.concatenate([boxes[:, [0, 1, 3, 4, 5, 7]], boxes[:, [0, 2, 3, 4, 6, 7]]])
    elif cell == "pyramid":
        # around the middle of each box
        sides = [(0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (2, 3, 6, 7), (0, 2, 4, 6), (1, 3, 5, 7)]
        middles = len(vertices) + np.arange(len(boxes))[:, None]
        cells = np.concatenate([np.hstack([boxes[:, list(side)], middles]) for side in sides])
        vertices = np.concatenate([vertices, vertices[boxes].mean(axis=1)])
    else:
        cells = boxes
    vertices = 0.4 * (vertices + rng.uniform(-0.12, 0.12, vertices.shape))
    order = rng.permutation(len(vertices))
    inverse = np.argsort(order)
    vertices, cells = vertices[order], inverse[cells]
    turned = []
    for row in cells[rng.permutation(len(cells))]:
        turns = SYMMETRIES.get(cell)
        turn = turns[rng.integers(len(turns))] if turns else rng.permutation(len(row))
        turned.append(row[turn])
    if gdim is not None and gdim > tdim:
        lift = rng.uniform(-0.3, 0.3, (tdim, gdim - tdim))
        vertices = np.hstack([vertices, vertices @ lift + 0.1 * vertices[:, :1] ** 2])
    return CellMesh(cell, vertices, np.array(turned))


def number(mesh: CellMesh, element: Any, rng: np.random.Generator) -> np.ndarray:
    """A map [n_cells, columns] for an element, randomly numbered."""
    columns = element.dim // element.block_size
    numbers: dict[Any, int] = {}
    found = np.zeros((len(mesh.cells), columns), dtype=int)
    for part, (leaf, own) in enumerate(_leaves(element)):
        for c in range(len(mesh.cells)):
            for k, key in enumerate(_keys(mesh, leaf, c)):
                found[c, own[k]] = numbers.setdefault((part, key), len(numbers))
    return rng.permutation(len(numbers))[found]


def _keys(mesh: CellMesh, leaf: Any, c: int) -> list[Any]:
    """What identifies each degree of freedom of a cell: a point, or an entity and a place."""
    if leaf.is_real:
        return [0]
    if leaf.is_quadrature:
        return [(c, k) for k in range(leaf.dim)]
    plain = leaf.basix_element
    keys: list[Any] = [None] * plain.dim
    points = plain.points if plain.interpolation_is_identity else None
    for dim, entities in enumerate(plain.entity_dofs):
        for local, dofs in enumerate(entities):
            for k, dof in enumerate(dofs):
                keys[dof] = (dim, int(mesh.entities[dim][c, local]), k)
                if points is not None and dim < mesh.tdim and len(dofs) > 1:
                    at = mesh.place(c, points[dof : dof + 1])[0]
                    keys[dof] = tuple(np.round(at, 9).tolist())
    return keys


def bind(
    form: dict[str, Any], mesh: CellMesh, elements: list[Any], rng: np.random.Generator
) -> Mesh:
    """Random data for a document; `elements` are those of its spaces, in order."""
    maps = [number(mesh, element, rng) for element in elements]
    geometry = form["spaces"][0]
    x = np.zeros((int(maps[0].max()) + 1, form["gdim"]))
    for c in range(len(mesh.cells)):
        x[maps[0][c]] = mesh.place(c, np.asarray(geometry["nodes"]))
    if geometry["columns"] > len(mesh.cells[0]):
        x += rng.uniform(-0.01, 0.01, x.shape)
    arrays = [x]
    turned = number_type(form) is complex
    drawn = lambda low, high, shape: (  # noqa: E731
        rng.uniform(low, high, shape) + (1j * rng.uniform(-high / 2, high / 2, shape) if turned else 0)
    )
    for entry in form["functions"][1:]:
        space = form["spaces"][entry["space"]]
        size = int(maps[entry["space"]].max()) + 1
        arrays.append(drawn(0.2, 0.9, (size, space["block"])))
    info = mesh.cell_info
    return Mesh(
        maps, arrays,
        [drawn(0.3, 1.2, int(np.prod(c["shape"]))) for c in form["constants"]],
        [states(space, mesh.cell, info) for space in form["spaces"]],
        len(mesh.cells),
        {i: np.arange(len(mesh.cells))[i::3] for i in range(3)},
        mesh.facets(),
    )  # fmt: skip
