"""The command line of the Python package: `python -m kingpost export form.py`, `python -m kingpost import-loopy file.py`."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path
from typing import Any


def _forms(variables: dict[str, Any]) -> dict[str, Any]:
    """Forms, and lists of forms, by the names of a script's variables."""
    import ufl

    found = {}
    for name, value in variables.items():
        items = value if isinstance(value, list | tuple) else [value]
        if items and all(isinstance(item, ufl.Form) or item is None for item in items):
            if any(item is not None for item in items):
                found[name] = value
    return found


def _choose(forms: dict[str, Any], wanted: str | None, file: str) -> tuple[str, Any]:
    from kingpost.export import FormError

    if wanted is not None:
        if wanted not in forms:
            known = ", ".join(f"`{name}`" for name in forms) or "none"
            raise FormError(f"{file}: no form `{wanted}`; its forms are {known}")
        return wanted, forms[wanted]
    if len(forms) == 1:
        return next(iter(forms.items()))
    known = ", ".join(f"`{name}`" for name in forms) or "none"
    raise FormError(f"{file}: found the forms {known}, needed one; name it with `--form NAME`")


def _export(options: argparse.Namespace) -> None:
    from kingpost.export import dumps, export_form, names_of

    variables = runpy.run_path(options.file)
    name, form = _choose(_forms(variables), options.form, options.file)
    kernel = options.name or name
    text = dumps(export_form(form, name=kernel, scalar=options.scalar, names=names_of(form, variables)))
    if options.output is None or options.output == "-":
        print(text)
    else:
        Path(options.output).write_text(text + "\n")


IMPORT = """Runs a Python script and reads every program of Loopy that its variables hold.

Prints the text of each kernel, plain or as it is scheduled: tags, order of instructions, launches and private
temporaries are kept, callees are inlined. What has no counterpart is refused, by feature and instruction.
With --prove it also says whether the schedule is free of races, every access in bounds, and no barrier
superfluous; the exit status is 1 if that does not hold of all.

examples:
  python -m kingpost import-loopy matmul.py                  the texts, one after the other
  python -m kingpost import-loopy matmul.py --only knl       the program of the variable `knl`
  python -m kingpost import-loopy matmul.py --prove          what is proved of each
  python -m kingpost import-loopy matmul.py -o kernels       files kernels/NAME.kingpost, for `kingpost print` and `run`
"""


def _import_loopy(options: argparse.Namespace) -> int:
    import kingpost
    from kingpost.imports import _loopy

    reader = _loopy()
    import loopy

    variables = runpy.run_path(options.file)
    found = {name: value for name, value in variables.items() if isinstance(value, loopy.TranslationUnit)}
    if options.only is not None:
        found = {name: value for name, value in found.items() if name == options.only}
    if not found:
        what = f"a variable `{options.only}` with one" if options.only else "variables with one"
        raise kingpost.Error(f"{options.file}: found no program of Loopy, needed {what}")
    status = 0
    for name, program in found.items():
        try:
            proof = reader.prove_loopy(program) if options.prove else None
            imported = proof.imported if proof is not None else reader.from_loopy(program)
        except kingpost.ImportRefusal as error:
            print(f"error: `{name}`: {error}", file=sys.stderr)
            status = 1
            continue
        if options.output is not None:
            options.output.mkdir(parents=True, exist_ok=True)
            (options.output / f"{name}.kingpost").write_text(imported.text)
        elif proof is None:
            print(imported.text)
        for line in [*(f"assumed: {line}" for line in imported.conditions), *imported.notes]:
            print(f"`{name}`: {line}", file=sys.stderr)
        if proof is not None:
            print(f"`{name}`: {proof}")
            status = status if proof else 1
    return status


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kingpost", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="write a UFL form as a tabulated form (JSON)")
    export.add_argument("file", help="a Python script that makes forms")
    export.add_argument("--form", help="the variable that holds the form, or a list of forms")
    export.add_argument("--name", help="the kernel's name (default: the variable's)")
    export.add_argument("--scalar", default="f64", help="f64 (default) or f32")
    export.add_argument("-o", "--output", help="the file to write (default: standard output)")
    reader = commands.add_parser(
        "import-loopy",
        help="read the programs of Loopy that a script makes, and prove their schedules",
        description=IMPORT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reader.add_argument("file", help="a Python script that makes programs of Loopy")
    reader.add_argument("--only", metavar="NAME", help="the variable that holds the program (default: all)")
    reader.add_argument("--prove", action="store_true", help="prove the schedules instead of printing texts")
    reader.add_argument("-o", "--output", type=Path, metavar="DIR", help="write a file NAME.kingpost for each there")
    options = parser.parse_args(arguments)
    if options.command == "import-loopy":
        from kingpost.errors import Error

        try:
            return _import_loopy(options)
        except (Error, OSError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    from kingpost.export import FormError

    try:
        _export(options)
    except (FormError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
