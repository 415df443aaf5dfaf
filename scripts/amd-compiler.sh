#!/bin/sh
# Makes target/amd look like an installation of ROCm, of Debian's clang and its headers of HIP: what compiles for AMD's
# processors without a card. 160 MB to fetch, quick when it is there; only on Debian and its like.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
amd="$root/target/amd"
llvm=/usr/lib/llvm-19
libraries=/usr/lib/x86_64-linux-gnu/amdgcn/bitcode

[ -e "$amd/amdgcn/bitcode/oclc_isa_version_942.bc" ] && [ -x "$llvm/bin/clang" ] && { echo "amd compiler: in target/amd"; exit 0; }
command -v apt-get >/dev/null 2>&1 && [ "$(uname -m)" = x86_64 ] || { echo "amd compiler: only for Debian on x86-64" >&2; exit 1; }
sudo=""
[ "$(id -u)" -eq 0 ] || sudo=sudo
# shellcheck disable=SC2086
[ -x "$llvm/bin/clang" ] && [ -d "$libraries" ] || DEBIAN_FRONTEND=noninteractive \
    $sudo apt-get install -y -q --no-install-recommends clang-19 lld-19 rocm-device-libs >/dev/null
rm -rf "$amd"
mkdir -p "$amd/amdgcn/bitcode" "$amd/package"
# of the package of headers nothing but these: it depends on the runtime of a card
(cd "$amd/package" && apt-get download -q libamdhip64-dev >/dev/null 2>&1 && dpkg -x ./*.deb .)
ln -s package/usr/include "$amd/include"
ln -s "$llvm" "$amd/llvm"
ln -s "$libraries"/*.bc "$amd/amdgcn/bitcode/"
# the libraries are older than gfx942, which has the instructions of gfx940
ln -s oclc_isa_version_940.bc "$amd/amdgcn/bitcode/oclc_isa_version_942.bc"
echo "amd compiler: in target/amd"
