#!/bin/sh
# Adds FFCx to .venv in the repository root, for scripts/ffcx_actions.py and ffcx_matrices.py. The versions are pinned:
# generated code differs from one to the next.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/.venv"
ffcx=0.11.0
basix=0.11.0
ufl=2026.1.0

command -v python3 >/dev/null || { echo "ffcx: python3 is missing; install it (Debian: apt install python3-venv)" >&2; exit 1; }
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || {
    echo "ffcx: no virtual environment could be made (Debian: apt install python3-venv)" >&2
    exit 1
}
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    "fenics-ffcx==$ffcx" "fenics-basix==$basix" "fenics-ufl==$ufl"
echo "ffcx: installed in .venv"
