#!/bin/sh
# Makes .venv in the repository root with NVRTC and ptxas, so that CUDA sources compile where there
# is no CUDA. The wheels are pinned: a newer NVRTC writes PTX that a 13.0 driver refuses.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/.venv"
nvrtc=13.0.88
nvcc=13.0.88

installed() {
    for site in "$venv"/lib/python3*/site-packages; do
        [ -d "$site/nvidia_cuda_nvrtc-$nvrtc.dist-info" ] && [ -d "$site/nvidia_cuda_nvcc-$nvcc.dist-info" ] && return 0
    done
    return 1
}

if installed; then
    echo "cuda wheels: already in .venv"
    exit 0
fi
command -v python3 >/dev/null || { echo "cuda wheels: python3 is missing; install it (Debian: apt install python3-venv)" >&2; exit 1; }
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || {
    echo "cuda wheels: no virtual environment could be made (Debian: apt install python3-venv)" >&2
    exit 1
}
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
    "nvidia-cuda-nvrtc==$nvrtc" "nvidia-cuda-nvcc==$nvcc"
installed || { echo "cuda wheels: pip succeeded but the wheels are not in .venv; remove .venv and retry" >&2; exit 1; }
echo "cuda wheels: installed in .venv"
