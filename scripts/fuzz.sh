#!/bin/sh
# Fuzzes the readers of kernels, recipes and forms: scripts/fuzz.sh [TARGET…], FUZZ_SECONDS each (default 1800).
# Installs cargo-fuzz where it is missing; a compiler that is no nightly is told to take unstable options.
set -eu
cd "$(dirname "$0")/../fuzz"
seconds="${FUZZ_SECONDS:-1800}"
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked cargo-fuzz
if rustup toolchain list 2>/dev/null | grep -q '^nightly'; then toolchain=+nightly; else
    toolchain=
    export RUSTC_BOOTSTRAP=1
fi
[ $# -gt 0 ] || set -- parse recipe form
for target in "$@"; do
    mkdir -p "corpus/$target"
    # The sanitizers look for what Rust rules out; without them the targets run twice as fast.
    # shellcheck disable=SC2086 # no toolchain is no argument
    cargo $toolchain fuzz run -s none "$target" "corpus/$target" "seeds/$target" -- \
        -dict=dictionaries/"$target".txt -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -print_final_stats=1
done
