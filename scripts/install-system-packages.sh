#!/bin/sh
# Installs what Kingpost needs from the system: a C compiler, an OpenCL CPU device and its checker. Quick when everything is there; elsewhere than on Debian and its like it says what to
# install and goes on.
set -eu
build="make gcc libc6-dev"
devices="ocl-icd-libopencl1 pocl-opencl-icd oclgrind clinfo"
python="python3-venv"
# C for Arm, which `make test-all` runs
[ "${KINGPOST_TEST_ALL:-0}" = 0 ] || devices="$devices gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"

if ! command -v cargo >/dev/null 2>&1; then
    echo "packages: Rust is missing; install it from https://rustup.rs, version 1.95 or newer" >&2
    exit 1
fi
if ! command -v dpkg >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    echo "packages: this is no Debian; make sure that these are installed, by whatever name:" >&2
    echo "  to build: $build" >&2
    echo "  for OpenCL on the CPU and its checks (optional): $devices" >&2
    echo "  for NVRTC without a GPU (optional): $python" >&2
    exit 0
fi

missing() {
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"
    done
}

# shellcheck disable=SC2086
wanted=$(missing $build $devices $python)
if [ -z "$wanted" ]; then
    echo "packages: all there"
    exit 0
fi
sudo=""
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "packages: install as root:" $wanted >&2; exit 1; }
    sudo=sudo
fi
echo "packages: installing" $wanted "(a minute or two)"
export DEBIAN_FRONTEND=noninteractive
install() {
    # shellcheck disable=SC2086
    $sudo apt-get install -y -q --no-install-recommends $wanted >/dev/null
}
# The lists may be missing or old: read them anew only if the first try fails.
install 2>/dev/null || { echo "packages: reading the lists anew"; $sudo apt-get update -q >/dev/null && install; }
# shellcheck disable=SC2086
wanted=$(missing $build $devices $python)
[ -z "$wanted" ] || { echo "packages: could not install" $wanted >&2; exit 1; }
