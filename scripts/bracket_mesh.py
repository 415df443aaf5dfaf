#!/usr/bin/env python3
"""Meshes the bracket of scripts/bracket.geo with about a given number of vertices by Gmsh's parallel algorithm.

    python3 scripts/bracket_mesh.py MILLIONS FILE.msh [THREADS]

Needs the `gmsh` package (4.15.2 made the meshes of results/h200/trotter_2023.md).
"""
import sys
import time
from pathlib import Path

import gmsh

COARSE = 0.00151  # millions of vertices at the lengths of the file, by this algorithm

millions, path = float(sys.argv[1]), sys.argv[2]
threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
gmsh.initialize()
start = time.time()
gmsh.option.setNumber("General.Verbosity", 2)
gmsh.open(str(Path(__file__).parent / "bracket.geo"))
gmsh.option.setNumber("General.NumThreads", threads)
gmsh.option.setNumber("Mesh.Algorithm", 5)
gmsh.option.setNumber("Mesh.Algorithm3D", 10)
gmsh.option.setNumber("Mesh.Optimize", 0)
gmsh.option.setNumber("Mesh.MeshSizeFactor", (COARSE / millions) ** (1 / 3))
gmsh.option.setNumber("Mesh.MeshSizeFromCurvature", 0)
gmsh.model.mesh.generate(2)
surface = time.time() - start
gmsh.model.mesh.generate(3)
vertices = int(gmsh.option.getNumber("Mesh.NbNodes"))
cells = int(gmsh.option.getNumber("Mesh.NbTetrahedra"))
print(f"{vertices} nodes, {cells} tetrahedra; surface {surface:.1f} s, all {time.time() - start:.1f} s")
gmsh.option.setNumber("Mesh.Binary", 1)
gmsh.option.setNumber("Mesh.MshFileVersion", 4.1)
gmsh.write(path)
print(f"written at {time.time() - start:.1f} s")
gmsh.finalize()
