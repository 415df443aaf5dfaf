#!/bin/sh
# Instructions that a tiling candidate of `benches/engine.rs` takes, by callgrind: the same on a busy machine.
# Prints the total of 12 candidates and the mean of one; OUT (callgrind.out) keeps the profile. PROFILE
# (dist) is that of the build.
set -eu
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "valgrind: not found; apt-get install valgrind" >&2; exit 1; }
out="${OUT:-target/callgrind.out}"
profile="${PROFILE:-dist}"
# Symbols name the functions of the profile; they change no instruction.
upper=$(printf %s "$profile" | tr a-z A-Z)
export "CARGO_PROFILE_${upper}_DEBUG=line-tables-only" "CARGO_PROFILE_${upper}_STRIP=none"
bench=$(cargo bench --profile "$profile" --bench engine --no-run 2>&1 | sed -n 's/.*Executable.*(\(.*\))/\1/p')
count=12
valgrind --tool=callgrind --callgrind-out-file="$out" --collect-atstart=no --toggle-collect='engine::tiling_candidate' \
    "$bench" --bench --sample-count "$count" --sample-size 1 tiling_to_cuda >/dev/null 2>"$out.log"
total=$(sed -n 's/^summary: //p' "$out")
echo "$count candidates: $((total / 1000000)) million instructions; a candidate: $((total / count / 1000000))"
