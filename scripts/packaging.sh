#!/bin/sh
# The recipes for conda-forge and Spack: `scripts/packaging.sh URL HOMEPAGE SDIST` writes them below
# `target/published`, for the source distribution that was published at `URL`, and checks them. Without arguments it
# makes a source distribution, and the recipes have addresses that lead nowhere.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tools="$root/target/packaging-tools"
out="$root/target/published"
[ -x "$tools/bin/python" ] || python3 -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check maturin==1.16.0 py-rattler-build==0.73.0 ruff==0.17.6
mkdir -p "$out"
if [ $# -eq 0 ]; then
    rm -f "$out"/*.tar.gz
    "$tools/bin/maturin" sdist --manifest-path "$root/python/Cargo.toml" --out "$out" >/dev/null
    set -- https://example.org/kingpost.tar.gz https://example.org "$(find "$out" -name '*.tar.gz')"
fi
version=$(basename "$3" .tar.gz)
version=${version#kingpost-}
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
hash=$(sha256sum "$3" | cut -d ' ' -f 1)
for recipe in recipe.yaml package.py; do
    sed "s/@VERSION@/$version/; s/@SHA256@/$hash/; s/@RUST@/$rust/; s|@URL@|$1|; s|@HOMEPAGE@|$2|" "$root/packaging/$recipe" >"$out/$recipe"
done
"$tools/bin/python" - "$out/recipe.yaml" <<'CHECK'
import pathlib
import sys

from rattler_build import Stage0Recipe, VariantConfig

recipe = Stage0Recipe.from_yaml(pathlib.Path(sys.argv[1]).read_text())
variants = VariantConfig.from_yaml('python: ["3.12.* *_cpython"]\nc_stdlib: [sysroot]\nc_stdlib_version: ["2.28"]\n')
for output in recipe.render(variants):
    print(f"{sys.argv[1]}: {output.recipe.package.name} {output.recipe.package.version}")
CHECK
"$tools/bin/ruff" check --quiet --isolated --select E,F,I,W --ignore F403,F405,I001 --line-length 99 "$out/package.py"
echo "$out/package.py"
