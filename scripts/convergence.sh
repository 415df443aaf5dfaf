#!/bin/sh
# Writes results/convergence.md: errors of manufactured problems on finer meshes. The wheel is that
# which scripts/python-tests.sh installs; SciPy and matplotlib go into the same .venv. Arguments go
# to python/tests/write_convergence.py.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/.venv"
packages="scipy==1.16.3 matplotlib==3.10.8"

[ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import kingpost' 2>/dev/null || {
    echo "convergence: the wheel is missing; run scripts/python-tests.sh first" >&2
    exit 3
}
if [ "$(cat "$venv/convergence-packages.txt" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086 # one word a package
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages
    echo "$packages" >"$venv/convergence-packages.txt"
fi
cd "$root/python/tests"
exec "$venv/bin/python" write_convergence.py "$@"
