#!/bin/sh
# Makes an environment of Python with Intel's OpenCL for processors (x86-64 of any maker), a second compiler beside
# pocl's: 270 MB to fetch, 550 MB unpacked. Quick when it is there. The wheels are pinned: compilers differ.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/target/intel-opencl"
version=2026.2.0

[ "$(uname -sm)" = "Linux x86_64" ] || { echo "intel opencl: only for x86-64 Linux" >&2; exit 1; }
if ! [ -e "$venv/lib/libintelocl.so" ] || [ "$(cat "$venv/version.txt" 2>/dev/null)" != "$version" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv" || { echo "intel opencl: no environment (Debian: apt install python3-venv)" >&2; exit 1; }
    # the first does not name what it needs of the second
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
        "intel-opencl-rt==$version" "intel-cmplr-lib-rt==$version"
    # the wheel has these twice
    for library in libcommon_clang libintelocl; do
        for full in "$venv/lib/$library".so.20*; do ln -f "$full" "$venv/lib/$library.so"; done
    done
    echo "$version" >"$venv/version.txt"
fi
echo "intel opencl: in target/intel-opencl; VIRTUAL_ENV=\"\$PWD/target/intel-opencl\" kingpost devices"
