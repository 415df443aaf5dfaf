#!/usr/bin/env python3
"""Schedules loop programs by `kingpost mcp`, greedily: of all moves, the one that gains most, until none does.

    python3 examples/greedy.py my.kingpost n=1000 m=800      # a schedule for a kernel, on standard output
    python3 examples/greedy.py --table results/greedy.md     # ten kernels of PolyBench, and `kingpost auto`

Everything goes through the tools: `apply` proves each step or refuses it, `predict` ranks what is legal, `time`
runs, compares and times. A move is one to some ten steps; what is refused is none. `KINGPOST` names the command
(default: `kingpost`), `OMP_NUM_THREADS` the threads.
"""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = shlex.split(os.environ.get("KINGPOST", "kingpost"))
KERNELS = ROOT / "studies/polybench/kernels"
SIZES = {
    "2mm": dict(ni=600, nj=650, nk=700, nl=750), "3mm": dict(ni=500, nj=550, nk=600, nl=650, nm=700),
    "atax": dict(m=5000, n=5200), "bicg": dict(m=5000, n=5200), "doitgen": dict(nr=100, nq=100, np=128),
    "gemm": dict(ni=800, nj=900, nk=1000), "gemver": dict(n=4000), "gesummv": dict(n=4000),
    "heat-3d": dict(tsteps=40, n=120), "mvt": dict(n=5000),
}
TIMED = 6  # moves of a round that are timed: of each kind the one that is predicted to be the fastest
ROUNDS = 4  # moves of a schedule
SECONDS = 75  # of a search, after which no other move is tried
GAIN = 0.97  # a move is taken if it leaves less than this part of the time


class Refused(Exception):
    """What a tool said instead of a result."""


class Kingpost:
    """A kernel in a server, with a way back."""

    def __init__(self, text, params, record=None):
        options = ["--record", record] if record else []
        self.server = subprocess.Popen([*COMMAND, "mcp", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.run = dict(params=params, device="c")
        self.calls = 0
        self.call("load", text=text)

    def call(self, tool, **arguments):
        self.server.stdin.write(json.dumps(dict(tool=tool, arguments=arguments)) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline())
        if not answer["ok"]:
            raise Refused(answer["error"]["message"])
        return answer["result"]

    def apply(self, *lines):
        """Applies lines, all or none; the names of the loops that the last one made."""
        done = self.call("apply", steps="\n".join(lines))["applied"]
        self.calls += 1
        return done[-1]["made"]["loops"]

    def back_to(self, calls):
        if self.calls > calls:
            self.call("undo", calls=self.calls - calls)
            self.calls = calls

    def attempt(self, move):
        """Whether a move was accepted; else nothing has changed."""
        calls = self.calls
        try:
            return move(self) is not False
        except Refused:
            self.back_to(calls)
            return False

    def parts(self):
        return self.call("kernel")["parts"]

    def steps(self):
        return self.call("save", format="schedule")["text"]

    def close(self):
        self.server.stdin.close()
        self.server.wait()


# what is in a kernel


def nests(parts):
    """Of each statement its loops, and those of them that hold nothing else."""
    around = {s["name"]: [loop["name"] for loop in s["loops"]] for s in parts["insns"]}
    count = {}
    for loops in around.values():
        for loop in loops:
            count[loop] = count.get(loop, 0) + 1
    return [(s, around[s["name"]], [l for l in around[s["name"]] if count[l] == 1]) for s in parts["insns"]]


def children(parts):
    """Of each loop what stands in it, in order."""
    inside = {}
    for s in parts["insns"]:
        names = [loop["name"] for loop in s["loops"]] + [s["name"]]
        for outer, inner in zip(names, names[1:]):
            if inner not in inside.setdefault(outer, []):
                inside[outer].append(inner)
    return inside


def coefficient(row, loop):
    """Of a loop in an index: a constant, then names and coefficients by turns."""
    return dict(zip(row[1::2], row[2::2])).get(loop, 0) if row else 0


def length(parts, loop):
    """Iterations of a loop, if their number is constant."""
    domains = [l["domain"] for s in parts["insns"] for l in s["loops"] if l["name"] == loop]
    if not domains or len(domains[0]) != 1 or len(domains[0][0].get("ge", [])) != 2:
        return None
    total = {}
    for row in domains[0][0]["ge"]:
        for name, factor in zip(row[1::2], row[2::2]):
            total[name] = total.get(name, 0) + factor
    constant = sum(row[0] for row in domains[0][0]["ge"])
    return constant + 1 if not any(total.values()) else None


def written(statement):
    """The index that a statement writes or updates."""
    access = [a for a in statement["access"] if a["mode"] != "read"]
    return access[0]["index"] if access else []


# moves: functions that apply steps to a Kingpost


def lines(*text):
    def move(kp):
        kp.apply(*text)
    return move


def unroll_and_jam(loop, factor):
    """Iterations of a loop side by side in the innermost loops inside."""
    def move(kp):
        _, inner = kp.apply(f"split_iname({loop}, factor: {factor}, tail: peel)")[:2]
        held = children(kp.parts())[inner]
        copies = [inner]
        if len(held) > 1:
            copies += kp.apply(f"distribute_loop({inner}, before: [{', '.join(held[1:])}])")
        for copy in copies:
            while True:
                inside = children(kp.parts())
                if len(inside[copy]) != 1 or inside[copy][0] not in inside:
                    break
                kp.apply(f"interchange_inames({copy}, inner: {inside[copy][0]})")
            kp.apply(f"tag({copy}, unroll)")
    return move


def lanes(loop, sums, factor):
    """Sums along a loop in the lanes of a vector."""
    def move(kp):
        outer, inner = kp.apply(f"split_iname({loop}, factor: {factor}, tail: peel)")[:2]
        kp.apply(f"interchange_inames({outer}, inner: {inner})")
        for name in sums:
            kp.apply(f"factor_update({name}, inames: [{inner}], partial: {name}_part)")
        body = children(kp.parts())[inner]
        at = body.index(outer)
        before = ([outer] if at > 0 else []) + body[at + 1:at + 2]
        lane = kp.apply(f"distribute_loop({inner}, before: [{', '.join(before)}])")[0] if at > 0 else inner
        kp.apply(f"interchange_inames({lane}, inner: {outer})")
        kp.apply(f"tag({lane}, vector)")
    return move


def hold_block(name, sizes):
    """A block of sums in registers while the loop over what is summed runs."""
    def move(kp):
        if not isolate(kp, name, 3):
            return False
        statement, around, _ = next(nest for nest in nests(kp.parts()) if nest[0]["name"] == name)
        index, loops = written(statement), around[-3:]
        along = [l for l in loops if index and coefficient(index[-1], l) == 1]
        across = [l for l in loops if l not in along and any(coefficient(row, l) for row in index[:-1])]
        summed = [l for l in loops if not any(coefficient(row, l) for row in index)]
        if not (len(along) == len(across) == len(summed) == 1):
            return False
        order = [summed[0], along[0], across[0]]
        fresh = [f"{kind}_{name}" for kind in ("terms", "along", "across")]
        kp.apply(f"reschedule({loops[0]}, loops: [{', '.join(fresh)}], maps: {{{name}: [{', '.join(order)}]}})")
        tiles = kp.apply(f"tile_band([{', '.join(fresh)}], sizes: {list(sizes)})")
        kp.apply(f"interchange_inames({fresh[1]}, inner: {fresh[2]})")
        var = next(a["var"] for a in statement["access"] if a["mode"] != "read")
        tile = next(t for t in tiles if t.startswith(fresh[1]))
        kp.apply(f"separate_loops({tile}, depth: 2)")
        parts = kp.parts()
        for piece, loops, _ in nests(parts):
            if len(loops) < 5 or not any(l.startswith(tile) for l in loops):
                continue
            tile_along, tile_across, _, row, lane = loops[-5:]
            if (length(parts, row), length(parts, lane)) == (sizes[2], sizes[1]):
                kp.apply(
                    f"buffer_writes({var}, at: {tile_across}, space: private)",
                    f"skew_iname({row}, outer: {tile_across}, factor: {-sizes[2]})",
                    f"skew_iname({lane}, outer: {tile_along}, factor: {-sizes[1]})",
                    f"tag({lane}, vector)",
                    f"tag({row}, unroll)",
                )
    return move


def isolate(kp, name, depth):
    """Makes the innermost loops of a statement hold nothing else."""
    while True:
        parts = kp.parts()
        inside = children(parts)
        around = next(around for s, around, _ in nests(parts) if s["name"] == name)
        if len(around) < depth:
            return False
        chain = around[-depth:] + [name]
        open_ = [(o, i) for o, i in zip(chain, chain[1:]) if len(inside[o]) > 1]
        if not open_:
            return True
        outer, inner = open_[-1]
        at = inside[outer].index(inner)
        before = ([inner] if at > 0 else []) + inside[outer][at + 1:at + 2]
        kp.apply(f"distribute_loop({outer}, before: [{', '.join(before)}])")


def distribute_all(kp):
    """Every statement in loops of its own, as far as that is legal."""
    changed = True
    while changed:
        changed = False
        for loop, held in children(kp.parts()).items():
            if len(held) > 1 and kp.attempt(lines(f"distribute_loop({loop}, before: [{', '.join(held[1:])}])")):
                changed = True
                break


def share(kp):
    """Threads for the outermost loop of each nest that takes them; whether one does."""
    shared, tried = False, True
    while tried:
        tried = False
        parts = kp.parts()
        for _, around, _ in nests(parts):
            tags = {l["name"]: l.get("tag") for s in parts["insns"] for l in s["loops"]}
            if any(tags[l] == "g.0" for l in around):
                continue
            for loop in around:
                if tags[loop] is None and kp.attempt(lambda kp: share_one(kp, loop, around)):
                    shared = tried = True
                    break
            if tried:
                break
    return shared


def share_one(kp, loop, around):
    """Tags a loop; where its neighbours forbid that, in a launch of its own."""
    if kp.attempt(lines(f"tag({loop}, g.0)")):
        return True
    inside = children(kp.parts())
    held = next((held for held in inside.values() if loop in held), None)
    if held is None:
        held = list(dict.fromkeys(around[0] for _, around, _ in nests(kp.parts()) if around))
    at = held.index(loop)
    splits = [name for name in held[at:at + 2] if name != held[0]]
    if not splits:
        return False
    kp.apply(f"split_launch([{', '.join(splits)}])")
    return kp.attempt(lines(f"tag({loop}, g.0)"))


def moves(kp):
    """All moves on the kernel as it is now, with their names."""
    yield from built(kp.parts())
    # what the engine itself proposes
    for tried in kp.call("steps", only=["interchange_inames", "fuse_loops", "distribute_loop"]):
        for legal in tried["legal"]:
            yield legal["step"], lines(legal["step"])


def built(parts):
    """Moves of several steps."""
    inside = children(parts)
    for statement, around, own in nests(parts):
        name, index = statement["name"], written(statement)
        free = [l for l in own if not any(x.get("tag") for x in statement["loops"] if x["name"] == l)]
        if len(free) == len(own) and 2 <= len(own) <= 3:
            for order in itertools.permutations(own):
                if list(order) != own:
                    yield f"order {order}", lines(f"reorder([{', '.join(order)}])")
                for sizes in [(32, 128), (64, 512)] if len(own) == 2 else [(32, 32, 128)]:
                    fresh = [f"{l}_b" for l in order]
                    yield f"tile {order} {sizes}", lines(
                        f"reschedule({own[0]}, loops: [{', '.join(fresh)}], maps: {{{name}: [{', '.join(order)}]}}, then: [{name}])",
                        f"tile_band([{', '.join(fresh)}], sizes: {list(sizes)})",
                    )
        if len(around) >= 3 and any(a["mode"] == "update" for a in statement["access"]):
            for sizes in [(128, 16, 8), (256, 16, 6), (128, 8, 8)]:
                yield f"block {name} {sizes}", hold_block(name, sizes)
        if around and not any(coefficient(row, around[-1]) for row in index):
            held = [s["name"] for s, loops, _ in nests(parts) if loops and loops[-1] == around[-1]]
            if held[0] == name:
                for factor in (8, 16):
                    yield f"lanes {around[-1]} {factor}", lanes(around[-1], held, factor)
    yield from joined(parts)
    for outer, held in inside.items():
        for inner in held:
            if inner in inside and not any(child in inside for child in inside[inner]):
                yield f"strip {inner} 1024", strip(outer, inner, 1024)
        depths = {len(around) - around.index(outer) for _, around, _ in nests(parts) if outer in around}
        if len(held) > 1 and len(depths) == 1 and all(child in inside for child in held):
            sizes = {2: [(64, 1024)], 3: [(16, 32), (32, 64)], 4: [(8, 16, 32), (16, 16, 64)]}
            for tiles in sizes.get(depths.pop(), []):
                yield f"time {outer} {tiles}", tile_in_time(outer, parts, tiles)
    for loop in inside:
        if any(child in inside for child in inside[loop]):
            for factor in (4, 8):
                yield f"jam {loop} {factor}", unroll_and_jam(loop, factor)


def kind(name):
    """What a move does, whatever it is applied to: its first word and its sizes."""
    sizes = re.search(r" (\(.*\)|\d+)$", name)
    return re.split(r"[ (]", name)[0], sizes and sizes[1]


def joined(parts):
    """Two nests after each other as one, in every order of their loops."""
    pairs = [(s["name"], around) for s, around, own in nests(parts) if around == own]
    for (first, a), (second, b) in zip(pairs, pairs[1:]):
        for depth in range(2, 1 + min(len(a), len(b))):
            fresh = [f"{l}_{b[0]}" for l in a[:depth]]
            for one, two in itertools.product(itertools.permutations(a[:depth]), itertools.permutations(b[:depth])):
                if len(a) == len(b) == depth:
                    yield f"join {one} {two}", lines(
                        f"reschedule([{a[0]}, {b[0]}], loops: [{', '.join(fresh)}], "
                        f"maps: {{{first}: [{', '.join(one)}], {second}: [{', '.join(two)}]}}, then: [{first}, {second}])"
                    )


def strip(outer, inner, factor):
    """Strips of an inner loop around the outer one, so that what a strip touches stays in a cache."""
    def move(kp):
        strips, _ = kp.apply(f"split_iname({inner}, factor: {factor})")[:2]
        held = children(kp.parts())[outer]
        at = held.index(strips)
        if len(held) > 1:
            before = ([strips] if at > 0 else []) + held[at + 1:at + 2]
            made = kp.apply(f"distribute_loop({outer}, before: [{', '.join(before)}])")
            kp.apply(f"interchange_inames({made[0] if at > 0 else outer}, inner: {strips})")
        else:
            kp.apply(f"interchange_inames({outer}, inner: {strips})")
    return move


def tile_in_time(loop, parts, sizes):
    """Tiles over a loop and the loops of the nests in it, which are one nest after the other."""
    def move(kp):
        inside = [(s["name"], around[around.index(loop) + 1:]) for s, around, _ in nests(parts) if loop in around]
        names, count = [f"c{k}_{loop}" for k in range(1 + len(inside[0][1]))], len(inside)
        maps = [
            f'{name}: ["{count}*{loop} + {k}", {", ".join(loops)}]' for k, (name, loops) in enumerate(inside)
        ]
        order = ", ".join(name for name, _ in inside)
        kp.apply(f"reschedule({loop}, loops: [{', '.join(names)}], maps: {{{', '.join(maps)}}}, then: [{order}])")
        band = names[:len(sizes)]
        by = [band[0]] + [f'"{band[0]} + {name}"' for name in band[1:]]
        kp.apply(f"tile_band([{', '.join(band)}], sizes: {list(sizes)}, by: [{', '.join(by)}])")
        distribute_all(kp)
    return move


def expansions(kp):
    """Temporaries with an element for each iteration of some loops, and then every statement in loops of its own."""
    for tried in kp.call("steps", only=["expand_array"]):
        for legal in tried["legal"]:
            def begin(kp, step=legal["step"]):
                kp.apply(step)
                distribute_all(kp)
            yield begin


# the search


def timed(kp):
    """Seconds, with threads where a loop takes them or without; the steps so far with those of the faster."""
    calls = kp.calls
    found = [(kp.call("time", **kp.run)["seconds"], kp.steps())]
    if share(kp):
        found.append((kp.call("time", **kp.run)["seconds"], kp.steps()))
    kp.back_to(calls)
    return min(found)


def search(kp, say):
    """The moves that gain most, one after the other; the schedules on the way."""
    best, start = timed(kp), time.time()
    way = [best[1]]
    for _ in range(ROUNDS):
        calls, found = kp.calls, []
        for name, move in moves(kp):
            if time.time() - start > SECONDS:
                break
            if kp.attempt(move):
                predicted = kp.call("predict", **kp.run)["prediction"]
                found.append((predicted["seconds"] or predicted["cycles"], name, move))
            kp.back_to(calls)
        found.sort(key=lambda one: one[0])
        kinds = {}
        for one in found:
            kinds.setdefault(kind(one[1])[0], one)
        outcomes = []
        for _, name, move in list(kinds.values())[:TIMED]:
            kp.attempt(move)
            try:
                outcomes.append((*timed(kp), name, move))
            except Refused:
                pass  # it has no code, or rounds otherwise
            kp.back_to(calls)
        fastest = min(outcomes, key=lambda one: one[0], default=None)
        again = timed(kp)  # what is timed at the same time is compared
        if fastest is None or fastest[0] > GAIN * min(again[0], best[0]):
            break
        best = fastest
        kp.attempt(fastest[3])
        way.append(fastest[1])
        say(f"  {best[0] * 1e3:9.3f} ms  {fastest[2]}   ({len(found)} legal moves, {time.time() - start:.0f} s)")
        for best in repeated(kp, fastest[2], best, say):
            way.append(best[1])
    return way


def repeated(kp, name, best, say):
    """The same move on other statements and loops, one after the other as each gains: two products of equal form take
    one round."""
    tried, gained = {name}, kind(name)[1] is not None
    while gained:
        gained = False
        for other, move in built(kp.parts()):
            if kind(other) != kind(name) or other in tried:
                continue
            tried.add(other)
            calls = kp.calls
            try:
                outcome = timed(kp) if kp.attempt(move) else None
            except Refused:
                outcome = None  # as in a search
            if outcome is None or outcome[0] > GAIN * best[0]:
                kp.back_to(calls)
                continue
            gained, best = True, outcome
            say(f"  {best[0] * 1e3:9.3f} ms  {other}")
            yield best
            break  # the kernel has changed


def schedule(kp, say):
    """The fastest schedule on the ways of searches from the kernel as it is written, with every loop distributed, and
    with temporaries expanded."""
    ways, starts = [], set()
    for begin in (lambda kp: None, distribute_all, *itertools.islice(expansions(kp), 1)):
        kp.back_to(0)
        begin(kp)
        text = kp.steps()
        if text not in starts:
            starts.add(text)
            ways += search(kp, say)
    kp.back_to(0)
    ways = list(dict.fromkeys(ways))
    times = interleaved(kp, ways, rounds=8)
    return ways[times.index(min(times))]


def interleaved(kp, schedules, rounds=15):
    """Least seconds of each of several schedules, timed by turns."""
    times = [[] for _ in schedules]
    for _ in range(rounds):
        for steps, seconds in zip(schedules, times):
            kp.back_to(0)
            if steps.strip():
                kp.apply(steps)
            seconds.append(kp.call("time", **kp.run)["seconds"])
    kp.back_to(0)
    return [min(seconds) for seconds in times]


HEAD = (
    "# Greedy schedules through `kingpost mcp`\n\n"
    "`examples/greedy.py` asks for legal steps, applies, predicts and times; `auto` is the tool of that name, with its\n"
    "budget of 10. Milliseconds on two threads of the target C, the least of 15 turns of each; part is auto / greedy.\n"
    "`OMP_NUM_THREADS=2 python3 examples/greedy.py --table results/greedy.md [KERNEL …]` makes rows of this table, on a\n"
    "machine with two cores where other programs ran, too; search is the time that a search took there.\n\n"
)
COLUMNS = "| kernel | written | auto | greedy | part | steps | search |\n|---|---|---|---|---|---|---|\n"


def table(path, names):
    rows = []
    for name in names:
        kp = Kingpost((KERNELS / f"{name}.kingpost").read_text(), SIZES[name])
        start = time.time()
        print(name, flush=True)
        found = schedule(kp, lambda text: print(text, flush=True))
        seconds = time.time() - start
        auto = kp.call("auto", run=kp.run)["steps"]
        written_s, auto_s, greedy_s = interleaved(kp, ["", auto, found])
        rows.append((name, written_s, auto_s, greedy_s, len(found.splitlines()), seconds))
        print(f"  {name}: auto {auto_s * 1e3:.3f} ms, greedy {greedy_s * 1e3:.3f} ms, part {auto_s / greedy_s:.2f}", flush=True)
        kp.close()
        write_table(path, rows)


def write_table(path, rows):
    """Rows of these kernels, and those of others that the page has."""
    kept = {}
    if Path(path).exists():
        kept = {line.split(" | ")[0][2:]: line for line in Path(path).read_text().splitlines() if line.startswith("| ")}
    for name, written_s, auto_s, greedy_s, steps, seconds in rows:
        times = " | ".join(f"{1e3 * t:.2f}" for t in (written_s, auto_s, greedy_s))
        kept[name] = f"| {name} | {times} | {auto_s / greedy_s:.2f} | {steps} | {seconds:.0f} s |"
    kept.pop("kernel", None)
    Path(path).write_text(HEAD + COLUMNS + "".join(kept[name] + "\n" for name in sorted(kept)))


def main(arguments):
    if arguments[:1] == ["--table"]:
        return table(arguments[1], arguments[2:] or list(SIZES))
    if not arguments or not arguments[0].endswith(".kingpost"):
        sys.exit(__doc__)
    params = {name: int(value) for name, value in (word.split("=") for word in arguments[1:])}
    kp = Kingpost(re.split(r"(?m)^schedule$", Path(arguments[0]).read_text())[0], params)
    print(schedule(kp, lambda text: print("#" + text, flush=True)), end="")
    return kp.close()


if __name__ == "__main__":
    main(sys.argv[1:])
