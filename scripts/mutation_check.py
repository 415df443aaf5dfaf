#!/usr/bin/env python3
"""Deletes one proof condition at a time and notes which tests fail: scripts/mutation_check.py [NAME…]

All mutations of scripts/mutations.toml go into one scratch copy, each behind a switch that the environment
sets (PURLIN_MUTATION=name), so that everything is compiled once. The table goes to results/mutations.md.

    --check     only look whether every mutation still fits its file
    --target D  target directory of the copy (default: target/mutations)
    --pairs N   pairs of the random recipes for what the other tests let pass (default 300)
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
SWITCH = """
/// Whether the environment turns a mutation on: `scripts/mutation_check.py` added this to a scratch copy.
pub fn mutation(name: &str) -> bool {
    static ON: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("PURLIN_MUTATION").unwrap_or_default());
    *ON == name
}
"""
# The tests of the primitives and of the analyses below them; then, for what they let pass, the random recipes.
TESTS = ["-p", "purlin-transforms", "-p", "purlin-ir", "-p", "purlin", "--lib", "--test", "primitives"]
RANDOM = "random_recipes"


def mutated(text: str, mutation: dict) -> str:
    found = text.count(mutation["of"])
    if found != 1:
        sys.exit(f"{mutation['name']}: `{mutation['of']}` stands {found} times in {mutation['file']}, needed once")
    switch = f'purlin_isl::mutation("{mutation["name"]}")'
    return text.replace(mutation["of"], mutation["with"].replace("OFF", switch))


def copy(mutations: list, scratch: pathlib.Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    shutil.rmtree(scratch, ignore_errors=True)
    for name in filter(None, files.decode().split("\0")):
        if (ROOT / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, scratch / name)
    lib = scratch / "crates/isl/src/lib.rs"
    lib.write_text(lib.read_text() + SWITCH)
    for mutation in mutations:
        file = scratch / mutation["file"]
        file.write_text(mutated(file.read_text(), mutation))


def executables(scratch: pathlib.Path, env: dict) -> list:
    """The test programs, built: name, path, and the folder of their package."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *TESTS, "--test", RANDOM]
    output = subprocess.run(command, cwd=scratch, env=env, stdout=subprocess.PIPE)
    if output.returncode:
        sys.exit(f"{' '.join(command)} failed in {scratch}")
    found = []
    for line in output.stdout.decode().splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message.get("profile", {}).get("test"):
            folder = pathlib.Path(message["manifest_path"]).parent
            found.append((message["target"]["name"], message["executable"], folder))
    return found


def failures(program: tuple, env: dict, *arguments: str) -> list:
    _, executable, folder = program
    env = env | {"CARGO_MANIFEST_DIR": str(folder), "INSTA_UPDATE": "no"}
    try:
        run = subprocess.run([executable, *arguments], cwd=folder, env=env, capture_output=True, timeout=900)
    except subprocess.TimeoutExpired:
        return ["(does not end)"]
    failed = re.findall(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", run.stdout.decode(errors="replace"), re.M)
    return failed or (["(the process dies)"] if run.returncode else [])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--target", default=str(ROOT / "target/mutations"))
    arguments.add_argument("--pairs", default="300")
    options = arguments.parse_args()
    mutations = tomllib.loads((ROOT / "scripts/mutations.toml").read_text())["mutation"]
    if options.check:
        stale = [m["name"] for m in mutations if (ROOT / m["file"]).read_text().count(m["of"]) != 1]
        return sys.exit(f"these fit no more: {', '.join(stale)}") if stale else print(f"{len(mutations)} mutations fit")
    known: set = set()
    scratch = pathlib.Path(options.target) / "copy"
    copy(mutations, scratch)
    env = os.environ | {"CARGO_TARGET_DIR": options.target}
    built = executables(scratch, env)
    programs = [program for program in built if program[0] != RANDOM]
    random = [program for program in built if program[0] == RANDOM]
    for program in programs:
        # one that fails anyway would catch everything
        if failed := failures(program, env):
            print(f"without a mutation: {program[0]} fails: {', '.join(failed)}; these do not count", flush=True)
            known.update(failed)
    rows, survived = [], []
    for mutation in mutations:
        if options.names and mutation["name"] not in options.names:
            continue
        env["PURLIN_MUTATION"] = mutation["name"]
        caught = [test for program in programs for test in failures(program, env) if test not in known]
        if not caught:
            env["PURLIN_PAIRS"] = options.pairs
            caught = [f"random recipes: {test}" for p in random for test in failures(p, env)]
        print(f"{mutation['name']}: {len(caught)} tests fail: {', '.join(caught[:3])}", flush=True)
        survived += [] if caught else [mutation["name"]]
        shown = ", ".join(f"`{test}`" for test in caught[:3]) + (f" and {len(caught) - 3} more" if len(caught) > 3 else "")
        rows.append(f"| `{mutation['name']}` | {mutation['condition']} | {shown or '**none**'} |")
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True).stdout.decode().strip()
    head = (
        "# Which tests notice that a proof condition is missing\n\n"
        f"`scripts/mutation_check.py`, {datetime.date.today()}, at {commit}: {len(rows)} conditions deleted one at a "
        f"time, {len(rows) - len(survived)} noticed.\n\n"
        "| mutation | deleted condition | tests that fail |\n|---|---|---|\n"
    )
    if not options.names:
        (ROOT / "results/mutations.md").write_text(head + "\n".join(rows) + "\n")
    if survived:
        sys.exit(f"not noticed: {', '.join(survived)}")


if __name__ == "__main__":
    main()
