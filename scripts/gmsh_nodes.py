#!/usr/bin/env python3
"""Write `crates/fem/src/mesh/gmsh/nodes.rs`: Gmsh's nodes of each element in basix's order.

    python3 -m venv .venv && .venv/bin/pip install fenics-basix==0.11.0 gmsh==4.15.2
    .venv/bin/python scripts/gmsh_nodes.py | rustfmt > crates/fem/src/mesh/gmsh/nodes.rs

Both codes say where the nodes of an element lie on its reference cell; equal places are one node.
"""

import basix
import gmsh
import numpy as np

FAMILIES = ["Line", "Triangle", "Tetrahedron", "Quadrangle", "Hexahedron", "Prism", "Pyramid"]
SHAPES = ["interval", "triangle", "tetrahedron", "quadrilateral", "hexahedron", "prism", "pyramid"]

HEAD = '''//! Gmsh's nodes of each element in basix's order: written by `scripts/gmsh_nodes.py`.

use crate::element::CellShape;

/// For each shape and order from 1 to 4, of prisms and pyramids to 2: the number of Gmsh's element type,
/// and which of its nodes each node of the equispaced Lagrange element is.
pub(super) const NODES: [(CellShape, usize, i32, &[usize]); 24] = ['''


def main():
    gmsh.initialize()
    print(HEAD)
    for family, shape in zip(FAMILIES, SHAPES):
        # Gmsh 4.15 has no nodes of prisms of order 3
        for order in range(1, 3 if shape in ("prism", "pyramid") else 5):
            kind, nodes = nodes_of(family, shape, order)
            print(f"    (CellShape::{shape.capitalize()}, {order}, {kind}, &{nodes}),")
    print("];")


def nodes_of(family, shape, order):
    """The number of Gmsh's element type, and its nodes in basix's order."""
    kind = gmsh.model.mesh.getElementType(family, order)
    _, dim, _, count, places, _ = gmsh.model.mesh.getElementProperties(kind)
    places = np.asarray(places).reshape(count, -1)[:, :dim]
    if shape in ("interval", "quadrilateral", "hexahedron"):
        places = (places + 1) / 2
    elif shape == "prism":
        places[:, 2] = (places[:, 2] + 1) / 2
    elif shape == "pyramid":
        # a section at height z is the square of sides 1 - z, around the axis
        places[:, :2] = (places[:, :2] + 1 - places[:, 2:]) / 2
    element = basix.create_element(
        basix.ElementFamily.P, basix.CellType[shape], order, lagrange_variant=basix.LagrangeVariant.equispaced
    )
    distances = np.linalg.norm(element.points[:, None] - places[None], axis=2)
    nodes = distances.argmin(axis=1)
    assert distances.min(axis=1).max() < 1e-12 and len(set(nodes)) == count
    return kind, nodes.tolist()


if __name__ == "__main__":
    main()
