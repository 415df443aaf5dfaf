#!/bin/sh
# Builds the Python package as a wheel (development profile, in the workspace's target), installs it
# into .venv in the repository root, and runs its tests. Does no work twice: cargo and pip see what
# is there. Arguments go to pytest.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
venv="$root/.venv"
wheels="$root/target/wheels"
packages="maturin==1.16.0 numpy pytest pytest-xdist pygments fenics-ufl==2026.1.0 fenics-basix==0.11.0 fenics-ffcx==0.11.0 cffi scipy jax==0.10.2 loopy==2025.2 islpy==2025.2.5 mypy==2.4.1 meshio==5.3.5 h5py==3.16.0 pymetis==2025.2.2"

command -v python3 >/dev/null || { echo "python tests: skipped: python3 is missing (Debian: apt install python3-venv)"; exit 0; }
[ -x "$venv/bin/python" ] || python3 -m venv "$venv" || {
    echo "python tests: skipped: no virtual environment could be made (Debian: apt install python3-venv)"
    exit 0
}
# the list is kept where it was installed, so that pip runs once
if [ "$(cat "$venv/kingpost-packages.txt" 2>/dev/null)" != "$packages" ]; then
    # shellcheck disable=SC2086 # one word a package
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $packages
    echo "$packages" >"$venv/kingpost-packages.txt"
fi

cd "$root"
rm -rf "$wheels"
# without compression: the wheel is as large as the library, and is installed at once
CARGO_TARGET_DIR="$root/target" "$venv/bin/maturin" build --quiet --manifest-path python/Cargo.toml --profile dev \
    --compression-method stored --out "$wheels"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/kingpost-*.whl
# What users do: the wheel with its extras in an environment of nothing else, and README's Python, which
# python/tests/test_examples.py says it shows. In long runs: it installs everything once more.
if [ "${KINGPOST_TEST_ALL:-0}" != 0 ]; then
    fresh="$root/target/fresh-venv"
    rm -rf "$fresh"
    python3 -m venv "$fresh"
    wheel=$(find "$wheels" -name 'kingpost-*.whl')
    "$fresh/bin/python" -m pip install --quiet --disable-pip-version-check "kingpost[forms] @ file://$wheel"
    for example in 01_schedule 04_ufl; do
        (cd / && "$fresh/bin/python" "$root/python/examples/$example.py" >/dev/null)
    done
fi

# from elsewhere, so that the installed package is tested and not its source
cd "$root/python/tests"
"$venv/bin/mypy" --config-file "$root/python/pyproject.toml" "$root"/python/examples/*.py
"$venv/bin/mypy" --config-file "$root/python/pyproject.toml" "$root/python/kingpost"
exec "$venv/bin/python" -m pytest -q -n auto --rootdir "$root/python" -p no:cacheprovider "$@"
