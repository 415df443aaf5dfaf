#!/bin/sh
# Times the assembly of Poisson's matrix (P1, unit cube of N^3 cubes of six tetrahedra) on two cores of a
# processor: DOLFINx with two processes, into PETSc's matrix and its own, and Kingpost with two threads, in turns.
# Prints the least time of each over all turns, and ratios.
#
#     scripts/dolfinx_assembly.sh [N] [turns] [folder of records]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
n=${1:-40} turns=${2:-5} to=${3:-$root/target/dolfinx_assembly}
venv="$root/.venv-dolfinx"
[ -x "$venv/bin/mpiexec" ] || "$root/scripts/dolfinx-tests.sh" >&2
[ -x "$venv/bin/mpiexec" ] || { echo "dolfinx_assembly: DOLFINx is not in .venv-dolfinx; see scripts/dolfinx-tests.sh" >&2; exit 1; }
cargo build --release --manifest-path "$root/studies/Cargo.toml" --target-dir "$root/target" -p study-trotter-2023
rm -rf "$to"
mkdir -p "$to"
for turn in $(seq "$turns"); do
    for matrix in petsc dolfinx; do
        LD_LIBRARY_PATH="$venv/lib" "$venv/bin/mpiexec" -n 2 "$venv/bin/python" "$root/scripts/dolfinx_assembly.py" \
            --divisions "$n" --matrix "$matrix" >>"$to/dolfinx.jsonl"
    done
    OMP_NUM_THREADS=2 "$root/target/release/study-trotter-2023" time --device c --divisions "$n" --degrees 1 \
        --strategies lookup-table,rowwise,full --db "$to/turn_$turn.jsonl"
done
cat "$to"/turn_*.jsonl >"$to/kingpost.jsonl"
rm "$to"/turn_*.jsonl
"$venv/bin/python" - "$to" <<'PYTHON'
import json, pathlib, sys

folder = pathlib.Path(sys.argv[1])
records = [json.loads(line) for name in ("dolfinx", "kingpost") for line in open(folder / f"{name}.jsonl")]
best = {}
for r in records:
    who = f"DOLFINx {r['dolfinx']}, {r['matrix']}" if "dolfinx" in r else f"Kingpost, {r['strategy']}, {json.dumps(r['mapping'])}"
    best.setdefault(who, []).append((r["min_s"], r["median_s"]))
peer = {who: min(t)[0] for who, t in best.items() if who.startswith("DOLFINx")}
print(f"{records[0]['unknowns']:,} unknowns; least of all turns, and the median of their medians\n")
print("| | least, ms | median, ms | " + " | ".join(f"{who} / this" for who in peer) + " |")
print("|---|--:|--:|" + "--:|" * len(peer))
for who, times in sorted(best.items(), key=lambda item: min(item[1])):
    least, medians = min(times)[0], sorted(m for _, m in times)
    ratios = " | ".join(f"{t / least:.2f}" for t in peer.values())
    print(f"| {who.replace('|', ' ')} | {1e3 * least:.1f} | {1e3 * medians[len(medians) // 2]:.1f} | {ratios} |")
PYTHON
