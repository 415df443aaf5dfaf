#!/usr/bin/env python3
"""Write `crates/fem/src/mesh/gmsh/nodes.rs`: Gmsh's nodes of each element in basix's order.

    python3 -m venv .venv && .venv/bin/pip install fenics-basix==0.11.0 gmsh==4.15.2
    .venv/bin/python scripts/gmsh_nodes.py | rustfmt > crates/fem/src/mesh/gmsh/nodes.rs

Both codes say where the nodes of an element lie on its reference cell; equal places are one node.
"""

import basix
import gmsh
import numpy as np

FAMILIES = ["Line", "Triangle", "Tetrahedron", "Quadrangle", "Hexahedron"]
SHAPES = ["interval", "triangle", "tetrahedron", "quadrilateral", "hexahedron"]

HEAD = '''//! Gmsh's nodes of each element in basix's order: written by `scripts/gmsh_nodes.py`.

use crate::element::CellShape;

/// For each shape and order from 1 to 4: the number of Gmsh's element type, and which of its nodes
/// each node of the equispaced Lagrange element is.
pub(super) const NODES: [(CellShape, usize, i32, &[usize]); 20] = ['''


def main():
    gmsh.initialize()
    print(HEAD)
    for family, shape in zip(FAMILIES, SHAPES):
        for order in range(1, 5):
            kind = gmsh.model.mesh.getElementType(family, order)
            _, dim, _, count, places, _ = gmsh.model.mesh.getElementProperties(kind)
            places = np.asarray(places).reshape(count, -1)[:, :dim]
            if shape in ("interval", "quadrilateral", "hexahedron"):
                places = (places + 1) / 2
            element = basix.create_element(
                basix.ElementFamily.P,
                basix.CellType[shape],
                order,
                lagrange_variant=basix.LagrangeVariant.equispaced,
            )
            distances = np.linalg.norm(element.points[:, None] - places[None], axis=2)
            nodes = distances.argmin(axis=1)
            assert distances.min(axis=1).max() < 1e-12 and len(set(nodes)) == count
            print(f"    (CellShape::{shape.capitalize()}, {order}, {kind}, &{nodes.tolist()}),")
    print("];")


if __name__ == "__main__":
    main()
