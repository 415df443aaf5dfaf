#!/bin/sh
# Writes FILE.msh: the bracket of meshes/bracket.msh in some 450,000 tetrahedra, made with gmsh, whose
# vertices and cells are numbered at random, so that what reads it has to find a good order itself.
#
#   scripts/shuffled_mesh.sh FILE.msh [FACTOR]    # of the lengths of edges in meshes/bracket.msh, 0.35 without it
set -eu
file=$1
folder=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# half as large as in the demo and a little less
gmsh "$folder/bracket.geo" -3 -v 0 -format msh41 -o "$work/ordered.msh" -clscale "${2:-0.35}"
python3 "$folder/shuffle_mesh.py" "$work/ordered.msh" "$file"
