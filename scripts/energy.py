#!/usr/bin/env python3
"""Time against energy on a card: the fastest mappings of 18 operator actions that are known there, and the holes of two
schedules, each timed, and its joules counted, by `kingpost tune`. Every trial has both figures, so that one search
serves both objectives.

    scripts/energy.py measure KINGPOST energy.jsonl     some 2.5 minutes on an H200
    scripts/energy.py table energy.jsonl                the page's tables, and what is saved

Processes tune at once, one a case: inputs and code are made side by side, trials take turns at the card. The fastest
mapping of each case is measured once more afterwards, for what a repetition differs by.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
# both dimensions, low and high degrees, kernels that memory binds and kernels that arithmetic binds
ACTIONS = (
    "mass.2D.P1 elasticity.2D.P2 helmholtz.2D.P2 hyperelasticity.2D.P2 laplace.2D.P3 helmholtz.2D.P4 mass.2D.P5 "
    "elasticity.2D.P6 laplace.3D.P1 elasticity.3D.P1 mass.3D.P2 elasticity.3D.P2 hyperelasticity.3D.P2 laplace.3D.P3 "
    "mass.3D.P4 helmholtz.3D.P4 elasticity.3D.P4 laplace.3D.P6"
).split()
# values of holes that are left out, so that few candidates remain
SCHEDULES = {
    "examples/tuned_bp35.kingpost": (
        ["--param", "n=8", "--param", "ne=8192"],
        {"elements in [1, 2, 4]": "elements in [1, 4]", "pad in [1, 2, 3]": "pad in [1]",
         "groups in [1, 4, 8]": "groups in [4, 8]", "lines in [private, local]": "lines in [private]"},
    ),
    "examples/tuned_matmul.kingpost": (
        ["--param", "n=2048"],
        {"rows in [32, 64, 128]": "rows in [64, 128]", "columns in [32, 64, 128]": "columns in [128]"},
    ),
}
MORE_TIME = 1.05  # what an objective of energy may cost
WANTED = 0.15


def measured(record):
    """The measurement of a record; none if it was refused or cut short."""
    found = record["outcome"].get("measured")
    return found if found and not found["cut_short"] else None


def fastest(case, records, number, within):
    """Mappings of a case whose recorded time is within a factor of the best, first those of other strategies."""
    times = [(measured(r)["median_s"], r) for r in records if r["workload"]["case"] == case and measured(r)]
    times.sort(key=lambda pair: pair[0])
    near = [r["parameters"] for seconds, r in times if seconds <= within * times[0][0]]
    distinct = list({json.dumps(p): p for p in near}.values())

    def strategies(mapping):
        chain = []
        while isinstance(mapping, dict):
            chain.append(mapping.get("strategy"))
            mapping = mapping.get("then")
        return tuple(chain)

    firsts = {}
    for mapping in distinct:
        firsts.setdefault(strategies(mapping), mapping)
    ordered = list(firsts.values()) + [m for m in distinct if m not in firsts.values()]
    return ordered[:number]


def action(case):
    """Arguments of `kingpost tune` for a case on the mesh of its published time."""
    operator, dim, degree = case.split(".")
    cells = "1280" if dim == "2D" else "56"
    return [operator, "--dim", dim[0], "--degree", degree[1:], "--scheme", "xiao-gimbutas", "--cells", cells]


def run(kingpost, tasks, db, limit, folder):
    """Tunes all cases at once; a process that takes longer than `limit` seconds is stopped."""
    started = time.monotonic()
    processes = []
    for name, arguments in tasks:
        log = open(folder / f"{name.replace('/', '_')}.log", "a", encoding="utf-8")
        command = [kingpost, "tune", *arguments, "--device", "cuda", "--objective", "energy", "--seed", "44",
                   "--threads", "4", "--db", str(db), "--time-limit", f"{limit}s"]
        processes.append((name, log, subprocess.Popen(command, stdout=log, stderr=log)))
    for name, log, process in processes:
        try:
            code = process.wait(max(1.0, started + limit + 10 - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.terminate()
            code = "stopped"
        log.close()
        if code != 0:
            last = pathlib.Path(log.name).read_text(encoding="utf-8").strip().splitlines()[-3:]
            print(f"{name}: {code}: {' / '.join(last)}", file=sys.stderr)


def measure(args):
    known = [json.loads(line) for line in args.known.read_text(encoding="utf-8").splitlines()]
    folder = args.db.with_suffix(".logs")
    folder.mkdir(parents=True, exist_ok=True)
    candidates = {case: fastest(case, known, args.candidates, args.within) for case in ACTIONS}
    tasks = []
    for case, mappings in candidates.items():
        given = [word for mapping in mappings for word in ("--mapping", json.dumps(mapping))]
        tasks.append((case, action(case) + given))
    with tempfile.TemporaryDirectory() as texts:
        for path, (params, fewer) in SCHEDULES.items():
            text = (ROOT / path).read_text(encoding="utf-8")
            for all_values, some in fewer.items():
                assert all_values in text, f"{path} has no line `{all_values}`"
                text = text.replace(all_values, some)
            short = pathlib.Path(texts) / pathlib.Path(path).name
            short.write_text(text, encoding="utf-8")
            # the schedules first: their references take the host longest
            tasks.insert(0, (path, [str(short), *params]))
        run(args.kingpost, tasks, args.db, args.limit, folder)
        again = [(case, action(case) + ["--mapping", json.dumps(m[0])]) for case, m in candidates.items()]
        run(args.kingpost, again, args.db.with_suffix(".again.jsonl"), args.again, folder)


def read(path):
    by_case = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        found = measured(record)
        if found and found.get("joules"):
            case = record["workload"]["case"].split("/")[-1]
            by_case[case].append((found["median_s"], found["joules"], json.dumps(record["parameters"])))
    return by_case


def table(args):
    print("| case | candidates | fastest | power | least energy in 1.05 of the time | time | energy | saved |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    saved = []
    for case, trials in read(args.db).items():
        seconds, joules, _ = min(trials)
        near = [t for t in trials if t[0] <= MORE_TIME * seconds]
        s, j, _ = min(near, key=lambda t: t[1])
        saved.append(1 - j / joules)
        print(f"| {case} | {len(trials)}, {len(near)} near | {seconds * 1e6:.1f} µs | {joules / seconds:.0f} W "
              f"| {j / s:.0f} W | {s / seconds:.3f} | {j / joules:.3f} | {100 * saved[-1]:.1f} % |")
    mean = sum(saved) / len(saved)
    verdict = "reached" if mean >= WANTED else "missed"
    print(f"\n{len(saved)} cases: {100 * mean:.1f} % less energy in the mean at 5 % more time at most, "
          f"{100 * max(saved):.1f} % at most; {100 * WANTED:.0f} % wanted: {verdict}")
    repeated = args.db.with_suffix(".again.jsonl")
    if repeated.exists():
        first = {(case, m): (s, j) for case, trials in read(args.db).items() for s, j, m in trials}
        pairs = [(first[case, m], (s, j)) for case, trials in read(repeated).items() for s, j, m in trials
                 if (case, m) in first]
        for k, what in enumerate(["times", "energies"]):
            ratios = [abs(math.log(b[k] / a[k])) for a, b in pairs]
            print(f"{len(ratios)} {what} measured twice differ by {100 * sum(ratios) / len(ratios):.1f} % in the mean, "
                  f"{100 * max(ratios):.1f} % at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure", help="tune all cases on the card")
    measuring.add_argument("kingpost", help="the command line, optimised")
    measuring.add_argument("db", type=pathlib.Path, help="database of the trials, made")
    measuring.add_argument("--known", type=pathlib.Path, default=ROOT / "results/h200/tuned.jsonl",
                           help="records that say which mappings are fast")
    measuring.add_argument("--candidates", type=int, default=5, help="of a case, at most")
    measuring.add_argument("--within", type=float, default=1.2, help="recorded times, of the best one's")
    measuring.add_argument("--limit", type=int, default=125, help="seconds for all")
    measuring.add_argument("--again", type=int, default=30, help="seconds for the repetition")
    measuring.set_defaults(run=measure)
    showing = commands.add_parser("table", help="what energy is saved")
    showing.add_argument("db", type=pathlib.Path)
    showing.set_defaults(run=table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
