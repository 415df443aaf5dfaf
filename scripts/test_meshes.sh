#!/bin/sh
# Writes the small Gmsh files that the tests of kingpost-fem read (Debian's gmsh 4.8.4).
set -eu
cd "$(dirname "$0")/../crates/fem/tests/data"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/plate.geo" <<'GEO'
SetFactory("OpenCASCADE");
Rectangle(1) = {0, 0, 0, 2, 1};
Disk(2) = {1, 0.5, 0, 0.25};
BooleanDifference(3) = { Surface{1}; Delete; }{ Surface{2}; Delete; };
Physical Surface("plate", 7) = {3};
Mesh.MeshSizeMax = 0.5;
GEO
cat >"$work/ball.geo" <<'GEO'
SetFactory("OpenCASCADE");
Sphere(1) = {0, 0, 0, 1};
Mesh.MeshSizeMax = 1;
GEO
gmsh "$work/plate.geo" -2 -v 0 -format msh41 -o plate.msh
gmsh "$work/plate.geo" -2 -v 0 -format msh41 -bin -o plate_binary.msh
gmsh "$work/plate.geo" -2 -v 0 -format msh41 -order 2 -o plate_curved.msh
gmsh "$work/plate.geo" -2 -v 0 -format msh41 -setnumber Mesh.RecombineAll 1 -o plate_quadrangles.msh
gmsh "$work/plate.geo" -2 -v 0 -format msh22 -o plate_old.msh
gmsh "$work/ball.geo" -3 -v 0 -format msh41 -setnumber Mesh.SaveParametric 1 -o ball.msh
gmsh "$work/ball.geo" -3 -v 0 -format msh41 -bin -o ball_binary.msh
