#!/bin/sh
# Draws fresh random pairs and compiles and runs them with every compiler that is found here, or with those of the file
# that KINGPOST_COMPILERS names (a line each: scripts/harvest/compilers.py). KINGPOST_PAIRS pairs (200) of KINGPOST_SEED
# (fresh), with loops of at most KINGPOST_EXTENT (13); faults are kept in target/harvest/found. KINGPOST_HIP_CPU is a
# checkout of HIP-CPU, on which HIP's text runs.
set -eu
cd "$(dirname "$0")/.."
pairs=target/harvest/pairs
rm -rf "$pairs"
KINGPOST_HARVEST="$PWD/$pairs" KINGPOST_EXTENT="${KINGPOST_EXTENT:-13}" KINGPOST_SEED="${KINGPOST_SEED:-fresh}" \
    KINGPOST_PAIRS="${KINGPOST_PAIRS:-200}" cargo test --quiet --test random_recipes pairs_are_written -- --ignored --nocapture

has() { command -v "$1" >/dev/null 2>&1; }
is_new() {
    name=$1
    case " $seen " in *" $name "*) return 1 ;; esac
    seen="$seen $name"
}
found() {
    # by version: `gcc` is one of the others
    seen=""
    for gcc in gcc gcc-11 gcc-12 gcc-13 gcc-14 gcc-15; do
        has $gcc && is_new "gcc-$($gcc -dumpfullversion)" || continue
        for level in -O2 "-O3 -march=native"; do echo "$name${level%% *} c $gcc $level"; done
    done
    for clang in clang clang-16 clang-19 clang-20; do
        has $clang && is_new "clang-$($clang -dumpversion)" && echo "$name-O3 c $clang -O3 -march=native"
    done
    for folder in ${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}; do
        [ -d "$folder" ] && echo "opencl opencl OCL_ICD_VENDORS=$folder POCL_CACHE_DIR=$PWD/target/harvest/pocl"
    done
    intel="$PWD/target/intel-opencl/lib/libintelocl.so"
    if [ -e "$intel" ]; then
        mkdir -p target/harvest/intel
        echo "$intel" >target/harvest/intel/intel.icd
        echo "intel opencl OCL_ICD_VENDORS=$PWD/target/harvest/intel"
    fi
    # without a card what they make cannot run
    has nvidia-smi && for nvrtc in .venv/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1? "${CUDA_HOME:-/usr/local/cuda}"/lib64/libnvrtc.so.1?; do
        [ -e "$nvrtc" ] && echo "nvrtc${nvrtc##*so.} nvrtc $nvrtc"
    done
    [ -x target/amd/llvm/bin/clang ] &&
        echo "hip only hip target/amd/llvm/bin/clang -x hip --offload-arch=gfx90a --offload-device-only --rocm-path=target/amd -O3 -S {source} -o {object}"
    [ -d "${KINGPOST_HIP_CPU:-}" ] && echo "hip-cpu hipcpu $KINGPOST_HIP_CPU g++ -O1"
    true
}
compilers="${KINGPOST_COMPILERS:-target/harvest/compilers.txt}"
[ -n "${KINGPOST_COMPILERS:-}" ] || found >"$compilers"
rm -rf target/harvest/found
python3 scripts/harvest run "$pairs" --compilers "$compilers" --jobs "${KINGPOST_JOBS:-$(nproc)}" --out target/harvest/found
python3 scripts/harvest count target/harvest/found/verdicts.jsonl
