"""Compiles and runs random pairs by many compilers: `make harvest`, CONTRIBUTING.md.

    harvest run PAIRS… --compilers FILE    judges files of pairs by each compiler
    harvest build PAIRS… --compilers FILE  compiles alone, for a machine without the compilers
    harvest judge FILE --compiler LINE     fails where the pairs of a file are wrong
    harvest count VERDICTS…                what was found, by compiler
    harvest extract FILE TARGET            the first pair of a file as a reproducer
    harvest check SOURCE --compiler LINE --reference LINE…
                                           fails unless a compiler is wrong about a reproducer
    harvest reduce SOURCE --out FILE …     makes it smaller with C-Vise while it is
"""
import argparse
import collections
import json
import multiprocessing
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from operator import itemgetter
from pathlib import Path

import judging
import pairs
import reproducers
import shorten
from compilers import Compiler

FAULTS = ("wrong", "died", "unbuilt", "error", "together")


def compilers_of(path, only):
    """The compilers of a file, without its comments."""
    lines = [line.strip() for line in Path(path).read_text().splitlines()]
    all_ = [Compiler(line) for line in lines if line and not line.startswith("#")]
    return [compiler for compiler in all_ if not only or compiler.name in only]


def batch(task):
    """The verdicts of one file by all compilers, as lines."""
    path, compilers, end = task
    lines = []
    with tempfile.TemporaryDirectory(prefix="harvest-") as folder:
        for compiler in compilers:
            start = time.time()
            if start > end:
                break
            programs = pairs.read(path, compiler.target)
            verdicts = judging.confirmed(compiler, programs, Path(folder)) if programs else []
            common = {"file": path.name, "compiler": compiler.name}
            lines += [
                {**common, "place": printed.place, "verdict": verdict, "why": why}
                for printed, (verdict, why) in zip(programs, verdicts)
                if verdict in FAULTS
            ]
            lines.append({**common, "pairs": len(programs), "seconds": round(time.time() - start, 2)})
    return path, lines


def tasks(arguments, compilers):
    """A task for each file; of folders, as long as there is time, for those that come, too."""
    seen, end = set(), time.time() + arguments.seconds
    while True:
        for path in map(Path, arguments.pairs):
            for file in sorted(path.glob("*.pairs")) if path.is_dir() else [path]:
                if file not in seen:
                    seen.add(file)
                    yield file, compilers, end
        if not arguments.follow or time.time() > end:
            return
        time.sleep(0.5)


def run(arguments):
    """Judges files and keeps those that have a fault."""
    compilers = compilers_of(arguments.compilers, arguments.only)
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    found = 0
    log = (out / "verdicts.jsonl").open("a")
    with log, multiprocessing.Pool(arguments.jobs, maxtasksperchild=20) as pool:
        for path, lines in pool.imap_unordered(batch, tasks(arguments, compilers)):
            log.writelines(json.dumps(line) + "\n" for line in lines)
            log.flush()
            faults = [line for line in lines if "verdict" in line]
            found += len(faults)
            keep(path, {tuple(line["place"]) for line in faults}, out)
    print(f"{found} faults; {out}/verdicts.jsonl")


def build(arguments):
    """Compiles files of pairs, one object each and compiler."""
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    for path in arguments.pairs:
        for compiler in compilers_of(arguments.compilers, arguments.only):
            programs = pairs.read(path, compiler.target)
            source = pairs.merged(printed.source for printed in programs)
            with tempfile.TemporaryDirectory(prefix="harvest-") as folder:
                try:
                    built = compiler.build(source, Path(folder), judging.stem(programs), programs[0].batch)
                    shutil.copy(built, out)
                except judging.BuildError as error:
                    print(f"{path}: {compiler.name}: {error}")


def keep(path, places, out):
    """Copies the lines of pairs with faults to files of their own."""
    if places:
        for line in path.read_text().splitlines():
            seed, place = itemgetter("seed", "place")(json.loads(line))
            if tuple(place) in places:
                (out / f"{seed}_{place[0]}_{place[1]}.pairs").write_text(line + "\n")


def judge(arguments):
    """Says what is wrong with the pairs of a file, and fails then."""
    compiler = Compiler(arguments.compiler)
    programs = pairs.read(arguments.file, compiler.target)
    verdicts = judging.judge(compiler, programs)
    for printed, (verdict, why) in zip(programs, verdicts):
        print(*printed.place, verdict, why)
    sys.exit(any(verdict in FAULTS for verdict, _ in verdicts))


def count(arguments):
    """Pairs and faults of each compiler."""
    table = collections.defaultdict(collections.Counter)
    for path in arguments.verdicts:
        for text in Path(path).read_text().splitlines():
            line = json.loads(text)
            row = table[line["compiler"]]
            if "pairs" in line:
                row["pairs"] += line["pairs"]
                row["seconds"] += line["seconds"]
            else:
                row[line["verdict"]] += 1
    print(f"{'compiler':24} {'pairs':>8} {'seconds':>8} " + " ".join(f"{fault:>8}" for fault in FAULTS))
    for name, row in sorted(table.items()):
        faults = " ".join(f"{row[fault]:8}" for fault in FAULTS)
        print(f"{name:24} {row['pairs']:8} {row['seconds']:8.0f} {faults}")
    print(f"{'all':24} {sum(row['pairs'] for row in table.values()):8}")


def extract(arguments):
    """Prints a pair as a source of its own."""
    printed = pairs.read(arguments.file, arguments.target)[0]
    print(reproducers.Reproducer.of(printed).text(), end="")


def check(arguments):
    """Whether a compiler is wrong about a reproducer."""
    references = [Compiler(line) for line in arguments.reference]
    why = reproducers.check(Path(arguments.source).read_text(), Compiler(arguments.compiler), references)
    why = why if why and arguments.like in why else None
    print(why or "nothing: right, or what the references do not agree on")
    sys.exit(why is None)


def reduce(arguments):
    """Reduces a reproducer by C-Vise, which knows nothing of its head."""
    text = Path(arguments.source).read_text()
    words = [word for line in arguments.reference for word in ("--reference", line)]
    with tempfile.TemporaryDirectory(prefix="harvest-") as folder:
        head, body = Path(folder, "head"), Path(folder, f"body{Path(arguments.source).suffix}")
        lines = text.splitlines(keepends=True)
        head.write_text("".join(line for line in lines if line.startswith("//")))
        body.write_text("".join(line for line in lines if not line.startswith("//")))
        harvest = [sys.executable, str(Path(__file__).parent.resolve())]
        command = [*harvest, "check", "all", "--compiler", arguments.compiler, "--like", arguments.like]
        if shutil.which("cvise") is None or arguments.seconds:
            compiler, references = Compiler(arguments.compiler), [Compiler(line) for line in arguments.reference]

            def is_wrong(body):
                why = reproducers.check(head.read_text() + body, compiler, references)
                return why and arguments.like in why

            body.write_text(shorten.shorten(body.read_text(), is_wrong, arguments.seconds or 600))
            Path(arguments.out).write_text(reproducers.Reproducer(head.read_text() + body.read_text()).text())
            return
        script = Path(folder, "check.sh")
        script.write_text(f"#!/bin/sh\ncat {head} {body.name} >all && exec {shlex.join(command + words)}\n")
        script.chmod(0o755)
        kind = [] if body.suffix == ".c" else ["--not-c"]
        subprocess.run(["cvise", "--n", "1", "--timeout", "60", *kind, str(script), body.name], cwd=folder, check=True)
        Path(arguments.out).write_text(reproducers.Reproducer(head.read_text() + body.read_text()).text())


def main():
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="harvest", description=__doc__)
    commands = parser.add_subparsers(required=True)
    of_run = commands.add_parser("run")
    of_run.add_argument("pairs", nargs="+", help="files of pairs, or folders of them")
    of_run.add_argument("--compilers", required=True, help="file with a compiler a line")
    of_run.add_argument("--only", nargs="*", help="names of compilers")
    of_run.add_argument("--jobs", type=int, default=1)
    of_run.add_argument("--seconds", type=float, default=1e9, help="no batch is begun after that time")
    of_run.add_argument("--follow", action="store_true", help="waits for more files until then")
    of_run.add_argument("--out", default="target/harvest/found")
    of_run.set_defaults(command=run)
    of_build = commands.add_parser("build")
    of_build.add_argument("pairs", nargs="+", help="files of pairs")
    of_build.add_argument("--compilers", required=True, help="file with a compiler a line")
    of_build.add_argument("--only", nargs="*", help="names of compilers")
    of_build.add_argument("--out", required=True)
    of_build.set_defaults(command=build)
    of_judge = commands.add_parser("judge")
    of_judge.add_argument("--compiler", required=True, help="a line of the file of compilers")
    of_judge.add_argument("file")
    of_judge.set_defaults(command=judge)
    of_count = commands.add_parser("count")
    of_count.add_argument("verdicts", nargs="+")
    of_count.set_defaults(command=count)
    of_extract = commands.add_parser("extract")
    of_extract.add_argument("file")
    of_extract.add_argument("target")
    of_extract.set_defaults(command=extract)
    of_check = commands.add_parser("check")
    of_check.add_argument("source")
    of_check.add_argument("--compiler", required=True)
    of_check.add_argument("--reference", action="append", default=[])
    of_check.add_argument("--like", default="", help="part of what is wrong")
    of_check.set_defaults(command=check)
    of_reduce = commands.add_parser("reduce")
    of_reduce.add_argument("source")
    of_reduce.add_argument("--compiler", required=True)
    of_reduce.add_argument("--reference", action="append", default=[])
    of_reduce.add_argument("--like", default="", help="part of what is wrong, so that it stays the same fault")
    of_reduce.add_argument("--out", required=True)
    of_reduce.add_argument("--seconds", type=float, help="by a reducer of its own, so long")
    of_reduce.set_defaults(command=reduce)
    arguments = parser.parse_args()
    arguments.command(arguments)


if __name__ == "__main__":
    main()
