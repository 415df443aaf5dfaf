#!/usr/bin/env python3
"""Write `crates/fem/src/vtu/nodes.rs`: basix's nodes of each cell in VTK's order.

    python3 -m venv .venv && .venv/bin/pip install fenics-basix==0.11.0 vtk==9.7.2
    .venv/bin/python scripts/vtk_nodes.py | rustfmt > crates/fem/src/vtu/nodes.rs

Both codes say where the nodes of a Lagrange cell lie on its reference cell; equal places are one
node.
"""

import basix
import numpy as np
import vtk

CELLS = {
    "interval": (vtk.vtkLagrangeCurve, vtk.VTK_LAGRANGE_CURVE),
    "triangle": (vtk.vtkLagrangeTriangle, vtk.VTK_LAGRANGE_TRIANGLE),
    "tetrahedron": (vtk.vtkLagrangeTetra, vtk.VTK_LAGRANGE_TETRAHEDRON),
    "quadrilateral": (vtk.vtkLagrangeQuadrilateral, vtk.VTK_LAGRANGE_QUADRILATERAL),
    "hexahedron": (vtk.vtkLagrangeHexahedron, vtk.VTK_LAGRANGE_HEXAHEDRON),
}

HEAD = '''//! Basix's nodes of each cell in VTK's order: written by `scripts/vtk_nodes.py`.

use crate::element::CellShape;

/// For each shape and order from 1 to 4: the number of VTK's cell type, and which node of the
/// equispaced Lagrange element each of its points is.
pub(super) const NODES: [(CellShape, usize, u8, &[usize]); 20] = ['''


def places(make, count, dim):
    cell = make()
    cell.GetPointIds().SetNumberOfIds(count)
    cell.GetPoints().SetNumberOfPoints(count)
    for i in range(count):
        cell.GetPointIds().SetId(i, i)
        cell.GetPoints().SetPoint(i, 0, 0, 0)
    if hasattr(cell, "SetUniformOrderFromNumPoints"):
        cell.SetUniformOrderFromNumPoints(count)
    cell.Initialize()
    coordinates = cell.GetParametricCoords()
    return np.array([[coordinates[3 * i + a] for a in range(dim)] for i in range(count)]) if isinstance(
        coordinates, (list, tuple)
    ) else np.array([coordinates.GetTuple3(i)[:dim] for i in range(count)])


def main():
    print(HEAD)
    for shape, (make, kind) in CELLS.items():
        for order in range(1, 5):
            element = basix.create_element(
                basix.ElementFamily.P,
                basix.CellType[shape],
                order,
                lagrange_variant=basix.LagrangeVariant.equispaced,
            )
            own = element.points
            theirs = places(make, len(own), own.shape[1])
            distances = np.linalg.norm(theirs[:, None] - own[None], axis=2)
            nodes = distances.argmin(axis=1)
            assert distances.min(axis=1).max() < 1e-12 and len(set(nodes)) == len(own), (shape, order)
            print(f"    (CellShape::{shape.capitalize()}, {order}, {kind}, &{nodes.tolist()}),")
    print("];")


if __name__ == "__main__":
    main()
