#!/usr/bin/env python3
"""Read VTU files with meshio and with VTK and print what they find as JSON, a list of objects.

    python3 -m venv .venv && .venv/bin/pip install meshio==5.3.5 vtk==9.7.2
    .venv/bin/python scripts/read_vtu.py FILE X,Y,Z [FILE X,Y,Z ...]

`points` and `data` (by name) are those of meshio, or of VTK if meshio does not know the version.
`places` and `values` are VTK's position and field `u` at the reference point of each cell, which
depend on the order of the nodes. The point X,Y,Z is that of the file before it.
"""

import json
import sys

import meshio
import vtk
from vtk.util.numpy_support import vtk_to_numpy


def evaluate(grid, at):
    """Position and value of `u` at a reference point of each cell."""
    field = grid.GetPointData().GetArray("u")
    places, values = [], []
    for i in range(grid.GetNumberOfCells()):
        cell = grid.GetCell(i)
        place, sub = [0.0] * 3, vtk.reference(0)
        weights = [0.0] * cell.GetNumberOfPoints()
        cell.EvaluateLocation(sub, at, place, weights)
        ids = [cell.GetPointId(k) for k in range(cell.GetNumberOfPoints())]
        places.append(place)
        values.append(
            [
                sum(w * field.GetComponent(k, c) for w, k in zip(weights, ids))
                for c in range(field.GetNumberOfComponents())
            ]
        )
    return places, values


def read(path, at):
    reader = vtk.vtkXMLUnstructuredGridReader()
    reader.SetFileName(path)
    reader.Update()
    grid = reader.GetOutput()
    places, values = evaluate(grid, (at + [0.0, 0.0])[:3])
    found = {"cells": grid.GetNumberOfCells(), "places": places, "values": values}
    with open(path, encoding="ascii") as file:
        known = 'type="UnstructuredGrid" version="1.0"' in file.read(200)
    if known:
        mesh = meshio.read(path)
        found["reader"] = "meshio"
        found["points"] = mesh.points.tolist()
        found["data"] = {name: data.tolist() for name, data in mesh.point_data.items()}
        found["tags"] = [int(t) for block in mesh.cell_data.get("tag", []) for t in block]
    else:
        found["reader"] = "vtk"
        found["points"] = vtk_to_numpy(grid.GetPoints().GetData()).tolist()
        data = grid.GetPointData()
        names = [data.GetArrayName(i) for i in range(data.GetNumberOfArrays())]
        found["data"] = {name: vtk_to_numpy(data.GetArray(name)).tolist() for name in names}
        tags = grid.GetCellData().GetArray("tag")
        found["tags"] = [] if tags is None else vtk_to_numpy(tags).tolist()
    return found


if __name__ == "__main__":
    pairs = zip(sys.argv[1::2], sys.argv[2::2])
    print(json.dumps([read(path, [float(x) for x in at.split(",")]) for path, at in pairs]))
