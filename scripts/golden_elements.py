#!/usr/bin/env python3
"""Write golden tabulations of elements for the tests of `kingpost-fem`.

    python3 -m venv .venv && .venv/bin/pip install fenics-basix==0.11.0
    .venv/bin/python scripts/golden_elements.py

`lagrange_equispaced.jsonl`, one JSON object a line: shape, degree, nodes [dofs][dim], points
[points][dim] and tables [1 + dim][points][dofs]: the values, then the derivative along each
reference axis.

`elements.jsonl`, likewise: family, variant (or null), shape, degree, discontinuous, points
[points][dim], order, table [derivatives][points][dofs][components] in basix's order, nodes (or null,
if degrees of freedom are not values at points), entity_dofs [dims][entities][dofs] and, to degree 4 and of faces of one shape,
transformations [dims][matrices][dofs][dofs].
"""

import json
import pathlib

import basix
import numpy as np
from basix import CellType, ElementFamily, LagrangeVariant

DATA = pathlib.Path(__file__).resolve().parent.parent / "crates/fem/tests/data"
SIMPLICES = [CellType.interval, CellType.triangle, CellType.tetrahedron]
PRODUCTS = [CellType.quadrilateral, CellType.hexahedron]
OTHERS = [CellType.prism, CellType.pyramid]


def dimension(cell):
    return len(basix.topology(cell)) - 1


def inside(rng, cell, count):
    """Random points: of a simplex the first of `dim + 1` Dirichlet coordinates."""
    dim = dimension(cell)
    if cell in PRODUCTS:
        return rng.random((count, dim))
    if cell in OTHERS:
        height = rng.random((count, 1))
        if cell == CellType.prism:
            return np.hstack([rng.dirichlet(np.ones(3), size=count)[:, :2], height])
        return np.hstack([rng.random((count, 2)) * (1 - height), height])
    return rng.dirichlet(np.ones(dim + 1), size=count)[:, :dim]


def golden(rng, cell, degree):
    element = basix.create_element(
        ElementFamily.P, cell, degree, lagrange_variant=LagrangeVariant.equispaced
    )
    points = inside(rng, cell, 3)
    tables = element.tabulate(1, points)[..., 0]
    return {
        "shape": cell.name,
        "degree": degree,
        "nodes": element.points.tolist(),
        "points": points.tolist(),
        "tables": tables.tolist(),
    }


def is_points(element):
    """Whether every functional is one value at one point."""
    matrix = np.asarray(element.interpolation_matrix)
    return matrix.shape[0] == matrix.shape[1] and np.allclose(matrix, np.eye(len(matrix)))


def transformations(element):
    """Of edges and faces below the cell's dimension."""
    by_type = element.entity_transformations()
    dim = dimension(element.cell_type)
    lists = [[] for _ in range(dim + 1)]
    for kind, matrices in by_type.items():
        kind = kind if isinstance(kind, str) else CellType(kind).name
        lists[1 if kind == "interval" else 2] = np.asarray(matrices).tolist()
    return lists


def any_element(rng, family, cell, degree, variant, discontinuous, n_points, order):
    options = {} if variant is None else {"lagrange_variant": variant}
    if family not in (ElementFamily.P, ElementFamily.bubble):
        options = {"lagrange_variant": LagrangeVariant.legendre}
    element = basix.create_element(family, cell, degree, discontinuous=discontinuous, **options)
    points = inside(rng, cell, n_points)
    table = element.tabulate(order, points)
    return {
        "family": family.name,
        "variant": None if variant is None else variant.name,
        "shape": cell.name,
        "degree": degree,
        "discontinuous": discontinuous,
        "points": points.tolist(),
        "order": order,
        "table": table.tolist(),
        "nodes": element.points.tolist() if is_points(element) else None,
        "entity_dofs": element.entity_dofs,
        "transformations": transformations(element) if degree <= 4 and cell not in OTHERS else None,
    }


def cases():
    """Family, cell, degree, variant, discontinuous, points, order of derivatives."""
    lagrange = [LagrangeVariant.equispaced, LagrangeVariant.gll_warped, LagrangeVariant.gll_isaac]
    for variant in lagrange:
        for cell in SIMPLICES:
            for degree in range(1, 9):
                yield ElementFamily.P, cell, degree, variant, False, 2 if degree < 5 else 1, 1
        for cell in PRODUCTS:
            for degree in range(1, 5):
                yield ElementFamily.P, cell, degree, variant, False, 1, 1
        yield ElementFamily.P, CellType.quadrilateral, 9, variant, False, 1, 1
        yield ElementFamily.P, CellType.interval, 15, variant, False, 1, 2
        yield ElementFamily.P, CellType.tetrahedron, 3, variant, False, 1, 3
        yield ElementFamily.P, CellType.hexahedron, 2, variant, False, 1, 2
    yield ElementFamily.P, CellType.quadrilateral, 15, LagrangeVariant.gll_warped, False, 1, 0
    yield ElementFamily.P, CellType.hexahedron, 7, LagrangeVariant.gll_warped, False, 1, 0
    for cell in SIMPLICES + PRODUCTS:
        yield ElementFamily.P, cell, 0, LagrangeVariant.gll_warped, True, 1, 1
        yield ElementFamily.P, cell, 3, LagrangeVariant.gll_warped, True, 1, 1
        for degree in range(0, 5):
            yield ElementFamily.P, cell, degree, LagrangeVariant.legendre, True, 1, 1
        lowest = {"interval": 2, "triangle": 3, "tetrahedron": 4}.get(cell.name, 2)
        for degree in range(lowest, lowest + 3):
            yield ElementFamily.bubble, cell, degree, None, False, 1, 1
    for family in [ElementFamily.RT, ElementFamily.BDM, ElementFamily.N1E, ElementFamily.N2E]:
        for cell in SIMPLICES[1:]:
            for degree in range(1, 5):
                yield family, cell, degree, None, False, 1, 1
            yield family, cell, 2, None, True, 1, 2
    for cell in OTHERS:
        for variant in lagrange:
            for degree in (1, 2):
                yield ElementFamily.P, cell, degree, variant, False, 2, 2
        for degree in range(3):
            yield ElementFamily.P, cell, degree, LagrangeVariant.gll_warped, True, 1, 1


def written(name, rows):
    with open(DATA / name, "w", encoding="ascii") as out:
        for row in rows:
            print(json.dumps(row, separators=(",", ":")), file=out)


if __name__ == "__main__":
    rng = np.random.default_rng(20)
    known = [(CellType.triangle, k) for k in range(1, 9)]
    known += [(CellType.tetrahedron, k) for k in range(1, 7)]
    with open(DATA / "lagrange_equispaced.jsonl", "w", encoding="ascii") as out:
        for cell, degree in known:
            print(json.dumps(golden(rng, cell, degree)), file=out)
    written("elements.jsonl", [any_element(rng, *case) for case in cases()])
