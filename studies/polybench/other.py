#!/usr/bin/env python3
"""Loop programs that are not of PolyBench: `kingpost auto` in C beside a schedule by hand of the same program.

    python3 studies/polybench/other.py schedule    # a schedule for each program, into other/schedules/
    python3 studies/polybench/other.py check       # both against the interpreter, small sizes
    python3 studies/polybench/other.py time        # one thread, interleaved; other/times.json
    python3 studies/polybench/other.py cards       # schedules for cards by the model, into other/schedules/cards/
    python3 studies/polybench/other.py card-auto   # on a card (CARD=cuda): schedules by trials there
    python3 studies/polybench/other.py card-check  # both against the interpreter on the card
    python3 studies/polybench/other.py card-time   # medians, in turn; other/card_times.json

Each command takes names of programs; `run.py page` and `run.py card-page` print the times. Schedules by hand are
in other/hand/, those for cards in other/hand/cards/. Nobody has written one of the FFT for a card: its indices
depend on a value that it computes.
"""

import json
import statistics
import sys
import time

import numpy as np

import run

HERE = run.HERE / "other"
SMALL = {
    "attention": dict(n=9), "bchol": dict(nb=5), "blu": dict(nb=5), "blur": dict(n=37), "conv2d": dict(co=5, ci=3, h=6, w=9),
    "ell": dict(n=21, w=5), "fft": dict(n=32, logn=5), "flash": dict(n=9), "histogram": dict(n=301),
    "layernorm": dict(rows=5, n=37), "nbody": dict(n=23), "prefix": dict(n=37), "softmax": dict(rows=5, n=37),
    "transpose": dict(n=19, m=23),
}
LARGE = {
    "attention": dict(n=1000), "bchol": dict(nb=50_000), "blu": dict(nb=50_000), "blur": dict(n=10_000_000),
    "conv2d": dict(co=64, ci=64, h=96, w=96), "ell": dict(n=400_000, w=16), "fft": dict(n=1 << 18, logn=18),
    "flash": dict(n=600), "histogram": dict(n=20_000_000), "layernorm": dict(rows=10_000, n=1000), "nbody": dict(n=4000),
    "prefix": dict(n=40_000), "softmax": dict(rows=2000, n=1000), "transpose": dict(n=4000, m=4100),
}


# on a card; rows of softmax and layer norm are as long as the schedules by hand say
CARD_SMALL = {**SMALL, "softmax": dict(rows=5, n=4096), "layernorm": dict(rows=5, n=4096)}
CARD_LARGE = {
    "attention": dict(n=4096), "bchol": dict(nb=200_000), "blu": dict(nb=200_000), "blur": dict(n=50_000_000),
    "conv2d": dict(co=64, ci=64, h=128, w=128), "ell": dict(n=2_000_000, w=16), "fft": dict(n=1 << 18, logn=18),
    "flash": dict(n=4096), "histogram": dict(n=100_000_000), "layernorm": dict(rows=16384, n=4096), "nbody": dict(n=20_000),
    "prefix": dict(n=50_000), "softmax": dict(rows=16384, n=4096), "transpose": dict(n=8000, m=8200),
}
# by hand it is on one thread, as it is written
NOT_ON_CARDS = ["fft"]


def inputs(name, sizes):
    """Values for which the program stays finite."""
    random = np.random.default_rng(0)
    values = {}
    for arg, kind, shape, _ in run.declared(name)[1]:
        of = {"i32": np.int32, "f32": np.float32, "f64": np.float64}[kind]
        below = sizes["n"] if name == "ell" else 256
        size = run.shape_of(shape, sizes)
        values[arg] = random.integers(0, below, size).astype(of) if kind == "i32" else random.random(size, dtype=of)
    if name in ("bchol", "blu"):
        a = values["A"]
        values["A"] = 0.05 * (a + a.transpose(0, 2, 1)) + 2.0 * np.eye(8)
    return values


def schedule(names):
    """A schedule by `kingpost auto` for each program."""
    for name in names:
        run.scheduled(name, run.values_file(name, {}), LARGE[name], HERE / "schedules")


def folders():
    return {"hand": HERE / "hand", "auto": HERE / "schedules"}


def check(names):
    """Both schedules against the program as it is written, at the small sizes and at five times these."""
    wrong = 0
    for name in names:
        for scale in (1, 5):
            # of a transform, the length is a power of two
            sizes = {k: v if name == "fft" else scale * v for k, v in SMALL[name].items()}
            values = inputs(name, sizes)
            wanted = run.copied(values)
            run.Ours(name).run(sizes, wanted)
            for label, folder in folders().items():
                found = run.copied(values)
                run.Ours(name, run.schedule_of(name, folder)).run(sizes, found)
                off = run.error(name, found, wanted)
                bad = not off <= (1e-4 if "f32" in run.text_of(name) else 1e-9)
                wrong += bad
                print(f"{name:12s} x{scale} {label} {off:.0e} {'WRONG' if bad else ''}", flush=True)
    return 1 if wrong else 0


def measure(names):
    """Median times, interleaved."""
    path = HERE / "times.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        programs = {label: run.Ours(name, run.schedule_of(name, folder)) for label, folder in folders().items()}
        programs["written"] = run.Ours(name)
        values = inputs(name, LARGE[name])
        times = {label: [] for label in programs}
        for _ in range(3 * run.RUNS):
            for label, program in programs.items():
                times[label].append(program.run(LARGE[name], run.copied(values)))
        found[name] = {label: statistics.median(all_) for label, all_ in times.items()}
        path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        print(f"{name:12s} " + " ".join(f"{k} {1e3 * v:.2f} ms" for k, v in found[name].items())
              + f"  hand / auto {found[name]['hand'] / found[name]['auto']:.2f}", flush=True)


def card_schedules(name):
    return {"hand": HERE / "hand" / "cards" / f"{name}.txt", "auto": HERE / "schedules" / "cards" / f"{name}.txt"}


def cards(names):
    """Schedules by the model of an H200. Needs no card."""
    by_card(names, "cuda", "--untimed")


def card_auto(names):
    """Schedules by trials on the card."""
    by_card(names, run.CARD, "--budget", run.os.environ.get("BUDGET", "10"))


def by_card(names, device, *how):
    (HERE / "schedules" / "cards").mkdir(parents=True, exist_ok=True)
    for name in names:
        start = time.time()
        done = run.kingpost("auto", run.kernel_of(name), "--device", device, "--seed", "1", *how, *run.options(CARD_LARGE[name]))
        if not done.returncode:
            card_schedules(name)["auto"].write_text(done.stdout.replace(f"{run.HERE}/", ""))
        why = done.stderr.strip()[-300:] if done.returncode else ""
        print(f"{name:12s} {time.time() - start:5.1f} s {why}", flush=True)


def card_check(names):
    """Both schedules against the interpreter, at small sizes and, where these may grow, at five times these."""
    wrong = 0
    for name in names:
        fixed = name in ("fft", "softmax", "layernorm")
        for scale in (1,) if fixed else (1, 5):
            sizes = {k: scale * v for k, v in CARD_SMALL[name].items()}
            read = {arg for arg, _, _, direction in run.declared(name)[1] if direction != "out"}
            values = {k: v.ravel().tolist() for k, v in inputs(name, sizes).items() if k in read}
            path = run.values_file(name, values)
            for label, schedule in card_schedules(name).items():
                done = run.kingpost("run", run.kernel_of(name), "--recipe", schedule, "--device", run.CARD, "--no-time", "--seed", "1",
                                  "--values", path, *run.options(sizes))
                wrong += bool(done.returncode)
                print(f"{name:12s} x{scale} {label} {'WRONG ' + done.stderr.strip()[-400:] if done.returncode else 'right'}", flush=True)
    return 1 if wrong else 0


def card_time(names):
    """Median times on the card, in turn."""
    path = HERE / "card_times.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        if name not in NOT_ON_CARDS:
            found[name] = run.in_turn(name, CARD_LARGE[name], card_schedules(name)) or found.get(name, {})
            path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def main():
    commands = {"schedule": schedule, "check": check, "time": measure, "cards": cards, "card-auto": card_auto, "card-check": card_check, "card-time": card_time}
    asked = [word for word in sys.argv[1:] if word in commands]
    names = [word for word in sys.argv[1:] if word not in commands] or sorted(SMALL)
    if not asked or any(name not in SMALL for name in names):
        sys.exit(__doc__)
    return max((commands[command](names) or 0) for command in asked)


if __name__ == "__main__":
    sys.exit(main())
