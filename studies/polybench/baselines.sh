#!/usr/bin/env bash
# What Pluto and PPCG make of the thirty references, into $POLYBENCH_BUILD (/tmp/polybench).
#
#   studies/polybench/baselines.sh pluto [NAME...]   pluto/NAME.pluto.c, pluto/NAME.pluto_parallel.c
#   studies/polybench/baselines.sh ppcg [NAME...]    ppcg/NAME_host.cu, NAME_kernel.cu, NAME_kernel.hu
#
# A tool is cloned from its public repository and built first, unless POLYCC= or PPCG_TOOL= names one.
# On Debian 12 that needs git autoconf automake libtool pkg-config bison flex libgmp-dev libyaml-dev
# llvm-14-dev libclang-14-dev clang-14 (FileCheck: llvm-14-tools). LLVM= names another place of LLVM,
# PLUTO_FLAGS= other flags. Results are checked where they are used: run.py and ppcg.py drop the wrong ones.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${POLYBENCH_BUILD:-/tmp/polybench}
llvm=${LLVM:-/usr/lib/llvm-14}
jobs=${JOBS:-2}

# The fastest on one thread of: tiles; tiles, unrolled and jammed; tiles without fusion; no tiles. Pluto 0.13.0 is
# wrong for adi in tiles, for nussinov on threads, and for cholesky, durbin and gramschmidt with --pet --unrolljam.
# Diamond tiles of heat-3d are 310 KB of C, which gcc compiles for more than 8 minutes; CLooG's simple hulls
# make 16 KB of them, and code as fast for the other stencils.
flags_of() {
  case $1 in
    adi | deriche | jacobi-1d) echo --notile --nounrolljam ;;
    fdtd-2d | heat-3d | jacobi-2d) echo --tile --nounrolljam --cloogsh --nocloogbacktrack ;;
    atax | bicg | doitgen | gesummv) echo --tile --unrolljam ;;
    mvt | symm | syrk) echo --tile --nounrolljam --nofuse ;;
    *) echo --tile --nounrolljam ;;
  esac
}

# made URL FOLDER PROGRAM: clones and builds once. Manuals need TeX and are left out.
made() {
  [ -x "$2/$3" ] && return
  rm -rf "$2"
  git clone --recursive "$1" "$2"
  (cd "$2" && ./autogen.sh && ./configure --with-clang-prefix="$llvm" CFLAGS=-O2 CXXFLAGS=-O2 &&
    make -j"$jobs" TEXI2DVI=true TEXI2PDF=true MAKEINFO=true)
}

# polycc leaves its files in the working folder, hence one folder a kernel
pluto_of() {
  local name=$1 suffix=$2 work
  shift 2
  work=$(mktemp -d)
  cp "$here/reference/$name.c" "$work"
  rm -f "$build/pluto/$name.$suffix.c"
  if (cd "$work" && timeout 300 "$polycc" "$name.c" ${PLUTO_FLAGS:-$(flags_of "$name")} "$@" --silent -o out.c) >"$work/log" 2>&1 && [ -s "$work/out.c" ]; then
    mv "$work/out.c" "$build/pluto/$name.$suffix.c"
  else
    echo "$name: $suffix: refused: $(tail -n 1 "$work/log")" >&2
  fi
  rm -rf "$work"
}

pluto() {
  polycc=${POLYCC:-$build/pluto-tool/polycc}
  [ -n "${POLYCC:-}" ] || made https://github.com/bondhugula/pluto "$build/pluto-tool" polycc
  mkdir -p "$build/pluto"
  for name in "$@"; do
    pluto_of "$name" pluto --noparallel
    pluto_of "$name" pluto_parallel --parallel
  done
}

ppcg() {
  local tool=${PPCG_TOOL:-$build/ppcg-tool/ppcg}
  [ -n "${PPCG_TOOL:-}" ] || made https://repo.or.cz/ppcg.git "$build/ppcg-tool" ppcg
  mkdir -p "$build/ppcg"
  for name in "$@"; do
    (cd "$build/ppcg" && timeout 300 "$tool" --target=cuda -I "$(echo "$llvm"/lib/clang/*/include)" ${PPCG_FLAGS:-} "$here/reference/$name.c") ||
      { echo "$name: ppcg: refused" >&2; rm -f "$build/ppcg/${name}_"*; }
  done
}

tool=${1:-}
shift || true
[ $# -gt 0 ] || set -- $(cd "$here/reference" && for file in *.c; do echo "${file%.c}"; done)
case $tool in
  pluto | ppcg) "$tool" "$@" ;;
  *) sed -n '2,/^set/p' "$0" | sed '$d; s/^# \{0,1\}//' >&2; exit 2 ;;
esac
