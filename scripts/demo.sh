#!/bin/sh
# The main job on real input: the action of the 3-D P4 Laplace operator on an unstructured mesh, checked
# and placed on the roofline of this machine. In C with the best mapping that is known, which takes a third
# of the time of one cell a work-item there, and a tenth of that of OpenCL on the same cores (medians of
# several runs on two cores of an AMD EPYC: 2.5, 7.6 to 8.3 and 23 to 24 ms; 2026-11-23).
set -eu
cd "$(dirname "$0")/.."
step() { echo "demo, $1" >&2; }

step "1 of 3: packages of the system"
scripts/install-system-packages.sh
step "2 of 3: building the command line for the host alone; a first build compiles isl and takes some minutes"
cargo build --profile demo --package kingpost-cli --no-default-features
step "3 of 3: the action of the 3-D P4 Laplace operator on meshes/bracket.msh, in C, checked and timed"
target/demo/kingpost run laplace --dim 3 --degree 4 --mesh meshes/bracket.msh \
    --device c --save-dir demo-output
