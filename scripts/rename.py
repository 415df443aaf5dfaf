#!/usr/bin/env python3
"""Gives the project another name: `scripts/rename.py OLD NEW`, lower case, in a clean checkout.

Names of crates, module, binary, files, folders, environment variables, symbols of printed code and every text
change with it. The order of imports and the widths of lines follow from the name: formatting, snapshots, facts and
pages are written again afterwards (CONTRIBUTING.md), and printed sources differ by the prefix alone.
"""

import pathlib
import subprocess
import sys

KEPT = {"scripts/rename.py"}


def git(*arguments):
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def spellings(old, new):
    return [(old, new), (old.capitalize(), new.capitalize()), (old.upper(), new.upper())]


def renamed(text, pairs):
    for old, new in pairs:
        text = text.replace(old, new)
    return text


def main():
    if len(sys.argv) != 3 or not all(name.isalpha() and name.islower() for name in sys.argv[1:]):
        sys.exit(__doc__)
    if git("status", "--porcelain"):
        sys.exit("rename: commit what is changed first")
    pairs = spellings(*sys.argv[1:])
    files = [name for name in git("ls-files", "-z").split("\0") if name and name not in KEPT]
    for name in files:
        path = pathlib.Path(name)
        data = path.read_bytes()
        if b"\0" in data or path.is_symlink():
            continue
        # inputs of tests need not be UTF-8
        text = data.decode(errors="surrogateescape")
        if (new := renamed(text, pairs)) != text:
            path.write_bytes(new.encode(errors="surrogateescape"))
    moved = {name: renamed(name, pairs) for name in files if renamed(name, pairs) != name}
    for old, new in moved.items():
        pathlib.Path(new).parent.mkdir(parents=True, exist_ok=True)
        git("mv", old, new)
    print(f"{len(files)} files read, {len(moved)} moved; next: cargo fmt --all, then CONTRIBUTING.md's generated files")


if __name__ == "__main__":
    main()
