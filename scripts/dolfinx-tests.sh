#!/bin/sh
# Runs the tests of `kingpost.dolfinx` with DOLFINx, on one and on two processes, in .venv-dolfinx.
# Its wheels need Python 3.12 or newer; the package is the wheel that scripts/python-tests.sh built.
# KINGPOST_DOLFINX_PYTHON names a Python to make the environment with. Arguments go to pytest.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/.venv-dolfinx"
packages="dolfinx-solver-real==0.11.0.post0 scipy pytest"

skip() { echo "dolfinx tests: skipped: $1"; exit 0; }

# a shim of pyenv may stand for a version that is not chosen, so each is asked for its version
find_python() {
    for python in "${KINGPOST_DOLFINX_PYTHON:-}" python3 python3.12 python3.13 python3.14 \
        "$HOME"/.pyenv/versions/3.1[234]*/bin/python3; do
        [ -n "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null &&
            echo "$python" && return 0
    done
    return 1
}

[ "$(uname -sm)" = "Linux x86_64" ] || skip "DOLFINx has wheels for Linux on x86-64"
command -v cc >/dev/null || skip "no C compiler, which DOLFINx needs for forms (Debian: apt install gcc)"
wheel=$(find "$root/target/wheels" -name 'kingpost-*.whl' 2>/dev/null | head -n 1)
[ -n "$wheel" ] || skip "no wheel in target/wheels; run scripts/python-tests.sh"
if [ ! -x "$venv/bin/python" ]; then
    python=$(find_python) || skip "no Python 3.12 or newer; KINGPOST_DOLFINX_PYTHON may name one"
    "$python" -m venv "$venv" || skip "no virtual environment could be made (Debian: apt install python3-venv)"
fi
# the list is kept where it was installed, so that pip runs once
if [ "$(cat "$venv/kingpost-packages.txt" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086 # one word a package
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages
    echo "$packages" >"$venv/kingpost-packages.txt"
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheel"

# MPI's library is in the environment, and no wheel has a path to it
export LD_LIBRARY_PATH="$venv/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cd "$root/python/tests"
exec "$venv/bin/python" -m pytest -q --rootdir "$root/python" -p no:cacheprovider \
    test_dolfinx.py test_dolfinx_mapping.py test_dolfinx_problems.py test_division.py "$@"
