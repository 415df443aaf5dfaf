#!/bin/sh
# Runs and tunes the exported forms on a device, without network, and with PYTHON from Python, too.
#   python python/tests/timed_forms.py FOLDER
#   FORMS=FOLDER KINGPOST=target/release/kingpost PYTHON=python OUT=out \
#       scripts/ufl_forms.sh [DEVICE] [SECONDS_PER_TUNE] [NAME ...]
#   scripts/ufl_forms_page.py out >results/h200/ufl_forms.md
# Writes into $OUT: check/NAME.txt (small mesh, compared with the interpreter),
# run/NAME.txt (large mesh, default mapping), named/NAME.txt (that of a form by name, where there is one),
# python/NAME.txt (what PYTHON, which has the package, makes of the arrays of run/NAME.txt),
# tune/NAME.txt, db/NAME.jsonl, and status.txt. No form is tuned for 0 seconds.
set -u
forms=${FORMS:?a folder of exported forms}
kingpost=${KINGPOST:-target/release/kingpost}
out=${OUT:-ufl-forms}
device=${1:-cuda}
limit=${2:-25}
[ $# -gt 0 ] && shift; [ $# -gt 0 ] && shift
mkdir -p "$out/check" "$out/run" "$out/named" "$out/tune" "$out/db"
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
# the same form by name, of which the command line numbers the mesh by dimension
named() {
    case $1 in
    laplace_p[124]) echo laplace --degree "${1#laplace_p}" ;;
    laplace_p3_triangle) echo laplace --dim 2 --degree 3 ;;
    elasticity_p2) echo elasticity --degree 2 ;;
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
    cells=$2
    step run "$name" "$kingpost" run "$forms/$name.json" --device "$device" --cells "$cells" --seed 1 \
        --save-arrays "$out/arrays/$name" --save-inputs
    # shellcheck disable=SC2046 # words of a command
    set -- $(named "$name")
    [ $# -eq 0 ] || step named "$name" "$kingpost" run "$@" --device "$device" --cells "$cells" --seed 1
done
if [ -n "${PYTHON:-}" ]; then
    "$PYTHON" "$(dirname "$0")/../python/tests/time_forms.py" "$forms" "$out" "$device"
    echo "python rc=$?" | tee -a "$out/status.txt"
fi
# they are large
rm -rf "$out/arrays"
[ "$limit" != 0 ] || names=
for name in $names; do
    # shellcheck disable=SC2046
    set -- $(sizes "$name")
    step tune "$name" "$kingpost" tune "$forms/$name.json" --device "$device" --cells "$2" --seed 1 \
        --time-limit "${limit}s" --db "$out/db/$name.jsonl"
done
grep -c 'rc=0' "$out/status.txt"
