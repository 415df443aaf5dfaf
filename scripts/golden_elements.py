#!/usr/bin/env python3
"""Write golden tabulations of Lagrange elements for the tests of `purlin-forms`.

    python3 -m venv .venv && .venv/bin/pip install fenics-basix==0.11.0
    .venv/bin/python scripts/golden_elements.py

One JSON object a line: shape, degree, nodes [dofs][dim], points [points][dim] and tables
[1 + dim][points][dofs]: the values, then the derivative along each reference axis.
"""

import json
import pathlib

import basix
import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/forms/tests/data/lagrange_equispaced.jsonl"


def inside(rng, dim, count):
    """Random points of the unit simplex: the first `dim` of `dim + 1` Dirichlet coordinates."""
    return rng.dirichlet(np.ones(dim + 1), size=count)[:, :dim]


def golden(rng, cell, dim, degree):
    element = basix.create_element(
        basix.ElementFamily.P, cell, degree, lagrange_variant=basix.LagrangeVariant.equispaced
    )
    points = inside(rng, dim, 3)
    tables = element.tabulate(1, points)[..., 0]
    return {
        "shape": cell.name,
        "degree": degree,
        "nodes": element.points.tolist(),
        "points": points.tolist(),
        "tables": tables.tolist(),
    }


if __name__ == "__main__":
    rng = np.random.default_rng(20)
    cases = [(basix.CellType.triangle, 2, k) for k in range(1, 9)]
    cases += [(basix.CellType.tetrahedron, 3, k) for k in range(1, 7)]
    with open(OUT, "w", encoding="ascii") as out:
        for cell, dim, degree in cases:
            print(json.dumps(golden(rng, cell, dim, degree)), file=out)
