#!/bin/sh
# Packages every crate that is published, in the order in which they depend on each other, and compiles the packages
# from nothing but themselves and the registry: what `cargo publish --workspace` sends. `--list` packages alone.
set -eu
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="$PWD/target"
others=$(grep -l '^publish = false' crates/*/Cargo.toml python/Cargo.toml examples/*/Cargo.toml |
    xargs sed -n 's/^name = "\(.*\)"/--exclude \1/p' | grep -e '--exclude \(kingpost\|own\)-')
verify=""
[ "${1:-}" != --list ] || verify=--no-verify
# shellcheck disable=SC2086 # one word an option
cargo package --workspace $others $verify --allow-dirty
