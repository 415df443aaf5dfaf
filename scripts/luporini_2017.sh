#!/bin/sh
# Repeats the experiment of Luporini et al. 2017, section 7, beside FFCx: installs the peer from PyPI,
# builds kingpost, measures all 64 cases and writes the page, the table and the figures.
#
#     scripts/luporini_2017.sh [arguments of ffcx_matrices.py]
#
# The results are in target/luporini_2017, or in the folder of `--write`; cases that stand in a file there
# are not measured again. The page needs an idle core until all 64 cases are done: its seconds are those that
# the processor counts for the thread, but caches and memory are shared with whatever else runs.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
"$root/scripts/ffcx.sh"
cargo build --release --manifest-path "$root/Cargo.toml" --bin kingpost
exec "$root/.venv/bin/python" "$root/scripts/ffcx_matrices.py" --write "$root/target/luporini_2017" "$@"
