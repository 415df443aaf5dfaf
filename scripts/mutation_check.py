#!/usr/bin/env python3
"""Deletes one proof condition at a time and notes which tests fail: scripts/mutation_check.py [NAME…]

The obligations of the primitives are waived by their ids; those without which a check cannot go on refuse under another id,
which a test must notice. Conditions inside shared proofs have none: the mutations of
scripts/mutations.toml go into one scratch copy, each behind a switch that the environment sets (KINGPOST_MUTATION=name),
so that everything is compiled once. The table goes to results/mutations.md; with names
only their rows change.

    --check     only look whether every mutation still fits its file
    --target D  target directory of the copy (default: target/mutations)
    --jobs N    mutations that are tested at a time (default 2)
    --pairs N   pairs of the random recipes for what the other tests let pass (default 300; 0: none)
"""

import argparse
import concurrent.futures
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
        std::sync::LazyLock::new(|| std::env::var("KINGPOST_MUTATION").unwrap_or_default());
    *ON == name
}
"""
# The test programs that see a crate, by folder and target, in the order in which they run: those of the primitives,
# those of the crate, those of the code made of its results. For what they let pass, the random recipes.
PRIMITIVES = ["primitives/facts", "primitives/primitives"]
PROGRAMS = {
    "crates/ir": [*PRIMITIVES, "ir/facts", "ir/kingpost_ir", "codegen/facts", "codegen/codegen"],
    "crates/interp": ["interp/kingpost_interp", "analysis/analysis"],
    "crates/analysis": [*PRIMITIVES, "analysis/facts", "analysis/kingpost_analysis", "analysis/analysis", "codegen/facts", "codegen/codegen"],
    "crates/steps": [*PRIMITIVES, "steps/kingpost_steps"],
    "crates/transforms": PRIMITIVES,
    "crates/algebra": [*PRIMITIVES, "algebra/kingpost_algebra"],
    "crates/codegen": ["codegen/facts", "codegen/codegen", "codegen/kingpost_codegen"],
}
TESTS = [word for crate in ["ir", "interp", "analysis", "steps", "algebra", "primitives", "codegen"] for word in ("-p", f"kingpost-{crate}")]
TESTS += ["--lib"]
TARGETS = {program.split("/")[1] for programs in PROGRAMS.values() for program in programs}
TESTS += [word for name in sorted(TARGETS) if not name.startswith("kingpost_") for word in ("--test", name)]
RANDOM = "random_recipes"


def mutated(text: str, mutation: dict) -> str:
    found = text.count(mutation["of"])
    if found != 1:
        sys.exit(f"{mutation['name']}: `{mutation['of']}` stands {found} times in {mutation['file']}, needed once")
    crate = "crate" if mutation["file"].startswith("crates/ir/") else "kingpost_ir"
    switch = f'{crate}::mutation("{mutation["name"]}")'
    return text.replace(mutation["of"], mutation["with"].replace("OFF", switch))


def stale(mutations: list) -> list:
    """The mutations that do not fit their files, in which those before them stand already."""
    texts: dict = {}
    found = []
    for mutation in mutations:
        file = ROOT / mutation["file"]
        text = texts.get(file) or (file.read_text() if file.is_file() else "")
        if text.count(mutation["of"]) == 1:
            texts[file] = mutated(text, mutation)
        else:
            found.append(mutation["name"])
    return found


def copy(mutations: list, scratch: pathlib.Path) -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    shutil.rmtree(scratch, ignore_errors=True)
    for name in filter(None, files.decode().split("\0")):
        if (ROOT / name).is_file():
            (scratch / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, scratch / name)
    lib = scratch / "crates/ir/src/lib.rs"
    lib.write_text(lib.read_text() + SWITCH)
    for mutation in mutations:
        file = scratch / mutation["file"]
        file.write_text(mutated(file.read_text(), mutation))


def executables(scratch: pathlib.Path, env: dict, random: bool) -> list:
    """The test programs, built: name, path, and the folder of their package."""
    command = ["cargo", "test", "--no-run", "--message-format=json-render-diagnostics", *TESTS]
    command += ["-p", "kingpost", "--test", RANDOM] if random else []
    output = subprocess.run(command, cwd=scratch, env=env, stdout=subprocess.PIPE)
    if output.returncode:
        sys.exit(f"{' '.join(command)} failed in {scratch}")
    found = []
    for line in output.stdout.decode().splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message.get("profile", {}).get("test"):
            folder = pathlib.Path(message["manifest_path"]).parent
            target = message["target"]["name"]
            name = target if target == RANDOM else f"{folder.name}/{target}"
            found.append((name, message["executable"], folder))
    return found


def failures(program: tuple, env: dict, *arguments: str) -> list:
    _, executable, folder = program
    env = env | {"CARGO_MANIFEST_DIR": str(folder), "INSTA_UPDATE": "no"}
    try:
        run = subprocess.run([executable, *arguments], cwd=folder, env=env, capture_output=True, timeout=900)
    except subprocess.TimeoutExpired:
        return ["(does not end)"]
    failed = re.findall(r"^test (\S+)(?: - should panic)? +\.\.\. FAILED$", run.stdout.decode(errors="replace"), re.M)
    return failed or (["(the process dies)"] if run.returncode else [])


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("--target", default=str(ROOT / "target/mutations"))
    arguments.add_argument("--pairs", default="300")
    arguments.add_argument("--jobs", default="2")
    options = arguments.parse_args()
    mutations = tomllib.loads((ROOT / "scripts/mutations.toml").read_text())["mutation"]
    names = [mutation["name"] for mutation in mutations]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        sys.exit(f"two mutations have a name, so that both are on at once: {', '.join(twice)}")
    if options.check:
        names = stale(mutations)
        found = f"{len(mutations)} mutations fit, {len(obligations())} obligations can be waived"
        return sys.exit(f"these fit no more: {', '.join(names)}") if names else print(found)
    known: set = set()
    scratch = pathlib.Path(options.target) / "copy"
    copy(mutations, scratch)
    env = os.environ | {"CARGO_TARGET_DIR": options.target, "RUSTFLAGS": "--cfg kingpost_mutation"}
    for switch in ["BLESS", "NEXTEST"]:  # facts would be rewritten, or run a file at a time
        env.pop(switch, None)
    built = executables(scratch, env, options.pairs != "0")
    programs = {program[0]: program for program in built}
    wanted = {name for names in PROGRAMS.values() for name in names}
    for program in (programs[name] for name in sorted(wanted)):
        # one that fails anyway would catch everything
        if failed := failures(program, env):
            print(f"without a mutation: {program[0]} fails: {', '.join(failed)}; these do not count", flush=True)
            known.update(failed)
    mutations += obligations()
    chosen = [m for m in mutations if not options.names or m["name"] in options.names]

    def caught(mutation: dict) -> list:
        on = env | {"KINGPOST_MUTATION": mutation["name"], "KINGPOST_PAIRS": options.pairs}
        crate = "/".join(mutation["file"].split("/")[:2])
        for name in [*PROGRAMS[crate], RANDOM]:
            if name not in programs:
                continue
            failed = [test for test in failures(programs[name], on) if test not in known]
            if failed:
                print(f"{mutation['name']}: {len(failed)} tests of {name} fail: {', '.join(failed[:3])}", flush=True)
                return [f"{name}: {test}" for test in failed]
        print(f"{mutation['name']}: no test fails", flush=True)
        return []

    with concurrent.futures.ThreadPoolExecutor(int(options.jobs)) as pool:
        results = list(pool.map(caught, chosen))
    survived = [m["name"] for m, tests in zip(chosen, results) if not tests]
    page = ROOT / "results/mutations.md"
    before = page.read_text() if options.names else ""
    rows = old_rows(before)
    rows |= {mutation["name"]: row(mutation, tests) for mutation, tests in zip(chosen, results)}
    random = RANDOM in programs or "(then random recipes)" in before
    page.write_text(table([rows[m["name"]] for m in mutations if m["name"] in rows], random))
    if survived:
        sys.exit(f"not noticed: {', '.join(survived)}")


def obligations() -> list:
    """The obligations of the primitives: each can be waived by its id."""
    found = []
    folders = [ROOT / "crates" / crate / "src" for crate in ("steps", "transforms", "algebra")]
    for file in sorted(file for folder in folders for file in folder.rglob("*.rs")):
        for name, says in re.findall(r'Obligation::new\(\s*"([a-z_.]+)",\s*"([^"]+)"', file.read_text().split("#[cfg(test)]")[0]):
            says = re.sub(r"\\\n\s*", "", says)  # a row of the table is a line
            found.append({"name": name, "condition": says, "file": str(file.relative_to(ROOT))})
    return found


def old_rows(page: str) -> dict:
    return {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}


def row(mutation: dict, tests: list) -> str:
    shown = ", ".join(f"`{test}`" for test in tests[:3]) + (f" and {len(tests) - 3} more" if len(tests) > 3 else "")
    return f"| `{mutation['name']}` | {mutation['condition']} | {shown or '**none**'} |"


def table(rows: list, random: bool) -> str:
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True).stdout.decode().strip()
    noticed = sum(1 for line in rows if not line.endswith("| **none** |"))
    recipes = "then random recipes" if random else "random recipes were left out of this run"
    lines = [
        "# Which tests notice that a proof condition is missing",
        "",
        f"`make mutations`, {datetime.date.today()}, last at {commit}: {len(rows)} conditions deleted one at a time, {noticed} "
        "noticed. The tests of the primitives run first, then those of the crate, then those of the code that is made of "
        f"its results ({recipes}); named are those of the first of these that notices.",
        "",
        "| mutation | deleted condition | tests that fail |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *rows]) + "\n"


if __name__ == "__main__":
    main()
