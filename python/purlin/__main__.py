"""The command line of the Python package: `python -m purlin export form.py`."""

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
    from purlin.export import FormError

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
    from purlin.export import dumps, export_form, names_of

    variables = runpy.run_path(options.file)
    name, form = _choose(_forms(variables), options.form, options.file)
    kernel = options.name or name
    text = dumps(export_form(form, name=kernel, scalar=options.scalar, names=names_of(form, variables)))
    if options.output is None or options.output == "-":
        print(text)
    else:
        Path(options.output).write_text(text + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m purlin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="write a UFL form as a tabulated form (JSON)")
    export.add_argument("file", help="a Python script that makes forms")
    export.add_argument("--form", help="the variable that holds the form, or a list of forms")
    export.add_argument("--name", help="the kernel's name (default: the variable's)")
    export.add_argument("--scalar", default="f64", help="f64 (default) or f32")
    export.add_argument("-o", "--output", help="the file to write (default: standard output)")
    options = parser.parse_args(arguments)
    from purlin.export import FormError

    try:
        _export(options)
    except (FormError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
