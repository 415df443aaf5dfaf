#!/bin/sh
# Runs and tunes the exported forms on a device, without Python or network.
#   python python/tests/timed_forms.py FOLDER
#   FORMS=FOLDER KINGPOST=target/release/kingpost OUT=out scripts/ufl_forms.sh [DEVICE] [SECONDS_PER_TUNE] [NAME ...]
#   scripts/ufl_forms_page.py out >results/h200/ufl_forms.md
# Writes into $OUT: check/NAME.txt (small mesh, compared with the interpreter),
# run/NAME.txt (large mesh, default mapping), tune/NAME.txt, db/NAME.jsonl, and status.txt.
set -u
forms=${FORMS:?a folder of exported forms}
kingpost=${KINGPOST:-target/release/kingpost}
out=${OUT:-ufl-forms}
device=${1:-cuda}
limit=${2:-25}
[ $# -gt 0 ] && shift; [ $# -gt 0 ] && shift
mkdir -p "$out/check" "$out/run" "$out/tune" "$out/db"
: >"$out/status.txt"

# divisions of a side: small (checked against the interpreter), large (timed)
sizes() {
    case $1 in
    laplace_p4 | nonlinear_diffusion_p3) echo 3 24 ;;
    laplace_p3_triangle | grad_div_bdm1_triangle) echo 8 512 ;;
    helmholtz_p6_triangle) echo 6 256 ;;
    minimal_surface_energy_q2) echo 8 512 ;;
    laplace_q2_hexahedron) echo 3 48 ;;
    laplace_p1) echo 4 64 ;;
    laplace_p2 | laplace_p2_curved | laplace_matrices_p2) echo 3 40 ;;
    *) echo 2 28 ;;
    esac
}
step() { # KIND NAME command...
    kind=$1 name=$2; shift 2
    start=$(date +%s)
    timeout 240 "$@" >"$out/$kind/$name.txt" 2>&1
    echo "$kind $name rc=$? $(($(date +%s) - start))s" | tee -a "$out/status.txt"
}
names=$*
[ -n "$names" ] || names=$(cd "$forms" && ls ./*.json | sed 's,^\./,,; s,\.json$,,')
for name in $names; do
    # shellcheck disable=SC2046 # two numbers
    set -- $(sizes "$name")
    step check "$name" "$kingpost" run "$forms/$name.json" --device "$device" --cells "$1" --seed 1 --no-time
    step run "$name" "$kingpost" run "$forms/$name.json" --device "$device" --cells "$2" --seed 1
done
for name in $names; do
    # shellcheck disable=SC2046
    set -- $(sizes "$name")
    step tune "$name" "$kingpost" tune "$forms/$name.json" --device "$device" --cells "$2" --seed 1 \
        --time-limit "${limit}s" --db "$out/db/$name.jsonl"
done
grep -c 'rc=0' "$out/status.txt"
