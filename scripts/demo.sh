#!/bin/sh
# The main job on real input: the action of the 3-D P4 Laplace operator on an unstructured mesh, checked
# and placed on the roofline of this machine.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --bin purlin || cargo build --release --bin purlin
target/release/purlin run laplace --dim 3 --degree 4 --mesh meshes/bracket.msh \
    --strategy single-cell --save-dir demo-output
