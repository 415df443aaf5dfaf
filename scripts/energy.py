#!/usr/bin/env python3
"""Time against energy on a card: the fastest mappings of 19 operator actions that are known there, and the holes of a
product's schedule, each timed, and its joules counted, by `kingpost tune`. Every trial has both figures, so that one search
serves both objectives.

    scripts/energy.py measure KINGPOST energy.jsonl     some 4 minutes on an H200
    scripts/energy.py table energy.jsonl                the page's tables, and what is saved

Processes tune at once, one a case: inputs and code are made side by side, trials take turns at the card. The least of
several figures that are measured is too small by what they differ by: the fastest mapping and the one that is chosen
by energy are therefore measured once more, and what is saved is the difference of these.
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
    "mass.3D.P4 helmholtz.3D.P4 elasticity.3D.P4 laplace.3D.P6 laplace.2D.P6"
).split()
# values of holes that are left out, so that few candidates remain
MATMUL = "examples/tuned_matmul.kingpost"
FEWER = {
    "rows in [32, 64, 128]": "rows in [64, 128]",
    "columns in [32, 64, 128]": "columns in [128]",
}
# a trial with a run that took as many medians shared the card with a process that began
INTERRUPTED = 50
MORE_TIME = 1.05  # what an objective of energy may cost
WANTED = 0.15


def measured(record):
    """The measurement of a record; none if it was refused, cut short or interrupted."""
    found = record["outcome"].get("measured")
    is_whole = found and not found["cut_short"] and found["max_s"] < INTERRUPTED * found["median_s"]
    return found if is_whole else None


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
        text = (ROOT / MATMUL).read_text(encoding="utf-8")
        for all_values, some in FEWER.items():
            assert all_values in text, f"{MATMUL} has no line `{all_values}`"
            text = text.replace(all_values, some)
        short = pathlib.Path(texts) / pathlib.Path(MATMUL).name
        short.write_text(text, encoding="utf-8")
        # first: its reference takes the host longest
        tasks.insert(0, (MATMUL, [str(short), "--param", "n=2048"]))
        run(args.kingpost, tasks, args.db, args.limit, folder)
    again = []
    for case, trials in read(args.db).items():
        if case in ACTIONS:
            mappings = dict.fromkeys(mapping for _, _, mapping in chosen(trials))
            again.append((case, action(case) + [word for m in mappings for word in ("--mapping", m)]))
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


def chosen(trials):
    """The fastest, and the one that takes the least energy in hardly more time."""
    fastest = min(trials)
    near = [t for t in trials if t[0] <= MORE_TIME * fastest[0]]
    return fastest, min(near, key=lambda t: t[1])


def table(args):
    repeated = args.db.with_suffix(".again.jsonl")
    again = {(case, m): (s, j) for case, trials in read(repeated).items() for s, j, m in trials}
    first, saved, differ = [], [], []
    print("| case | trials | fastest | mJ | less energy: time | energy | again: time | energy |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for case, trials in read(args.db).items():
        (seconds, joules, fast), (s, j, least) = chosen(trials)
        first.append(1 - j / joules)
        cells = [f"{s / seconds:.3f}", f"{j / joules:.3f}"] if fast != least else ["the same", ""]
        twice = [again.get((case, m)) for m in (fast, least)]
        differ += [abs(math.log(found[1] / then)) for found, then in zip(twice, (joules, j)) if found]
        if fast == least:
            saved.append(0.0)
        elif all(twice):
            saved.append(1 - twice[1][1] / twice[0][1])
            cells += [f"{twice[1][0] / twice[0][0]:.3f}", f"{twice[1][1] / twice[0][1]:.3f}"]
        cells = " | ".join(cells + [""] * (4 - len(cells)))
        print(f"| {case} | {len(trials)} | {seconds * 1e6:.1f} µs | {joules * 1e3:.1f} | {cells} |")
    for what, of in (("as chosen", first), ("measured again", saved)):
        mean = sum(of) / len(of)
        verdict = "reached" if mean >= WANTED else "missed"
        print(f"\n{what}, {len(of)} cases: {100 * mean:.1f} % less energy in the mean, {100 * max(of):.1f} % at most; "
              f"{100 * WANTED:.0f} % wanted: {verdict}")
    print(f"\nenergies of {len(differ)} mappings measured twice differ by {100 * sum(differ) / len(differ):.1f} % in the "
          f"mean, {100 * max(differ):.1f} % at most")


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
    measuring.add_argument("--limit", type=int, default=150, help="seconds for all")
    measuring.add_argument("--again", type=int, default=90, help="seconds for the repetition")
    measuring.set_defaults(run=measure)
    showing = commands.add_parser("table", help="what energy is saved")
    showing.add_argument("db", type=pathlib.Path)
    showing.set_defaults(run=table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
