#!/bin/sh
# The main job on real input: the action of the 3-D P4 Laplace operator on an unstructured mesh, checked
# and placed on the roofline of this machine. In C with the best mapping that is known, which takes a third
# of the time of one cell a work-item there, and a tenth of that of OpenCL on the same cores (medians of
# several runs on two cores of an AMD EPYC: 2.5, 7.6 to 8.3 and 23 to 24 ms; 2026-11-23).
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet --bin purlin || cargo build --release --bin purlin
target/release/purlin run laplace --dim 3 --degree 4 --mesh meshes/bracket.msh \
    --device c --save-dir demo-output
