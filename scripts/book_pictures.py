#!/usr/bin/env python3
"""Pictures of the book: iteration spaces as `kingpost explore` draws them. The page draws in a headless Chromium, and
what it drew is kept, its colours as they are in the light theme.

    cargo build --param kingpost-cli && scripts/book_pictures.py [NAME...]
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs/book/src"

# name: arguments of `kingpost explore`, and the place in the page
PICTURES = {
    "blur_2d_tiles": ("blur_2d.kingpost --param n=20 --param m=80", "step=6&stmt=b"),
    "gemm_loops": ("gemm.kingpost --param ni=8 --param nj=10 --param nk=6", "stmt=s1&at=3,2,4"),
    "matmul_tiles": ("examples/matmul.kingpost --recipe examples/matmul_recipe.json --param n=40", "step=3"),
    "row_sums": ("examples/row_sums.kingpost --recipe examples/row_sums_recipe.json --param n=6 --param m=40", "step=2"),
    "stencil_refused": ("stencil.kingpost --recipe wrong_tiles.json", ""),
}


def colours():
    """The variables of the page's style, in the light theme."""
    style = (ROOT / "crates/explore/page/style.css").read_text()
    light = style[style.index(":root") :].split("}")[0]
    return dict(re.findall(r"--([\w-]+):\s*([^;]+)", light))


def blocks(folder):
    """Writes the files that the chapters show."""
    for chapter in BOOK.glob("*.md"):
        for info, body in re.findall(r"^```(.*)\n((?:.*\n)*?)```$", chapter.read_text(), re.M):
            named = re.search(r"file=(\S+)", info)
            if named:
                (folder / named[1].split(",")[0]).write_text(body)
    (folder / "examples").symlink_to(ROOT / "examples")


def extent(plot):
    """What is drawn, without the room that the page has below it."""
    cells = [[float(x) for x in cell] for cell in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)", plot)]
    words = re.findall(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)', plot)
    right = [x + w for x, _, w, _ in cells] + [float(x) + 7 * len(word) for x, _, word in words]
    below = [y + h for _, y, _, h in cells] + [float(y) for _, y, _ in words]
    return round(max(right)) + 12, round(max(below)) + 12


def draw(folder, arguments, place, table):
    """The picture of a page."""
    page = folder / "page.html"
    command = [ROOT / "target/debug/kingpost", "explore", *arguments.split(), "-o", page]
    wrote = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if not page.exists():  # a refused step is a page, too
        sys.exit(f"{arguments}: {wrote.stderr}")
    chromium = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=4000", "--dump-dom"]
    shown = subprocess.run([*chromium, f"file://{page}#theme=light&{place}"], check=True, capture_output=True, text=True)
    page.unlink()
    plot = re.search(r'id="plot".*?(<svg.*?</svg>)', shown.stdout, re.S)[1]
    plot = re.sub(r"var\(--([\w-]+)\)", lambda name: table[name[1]], plot)
    plot = plot.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" ', 1)
    plot = re.sub(r' tabindex="0"| data-tile="[^"]*"', "", plot)
    plot = re.sub(r"; arrow keys move between instances", "", plot)
    width, height = extent(plot)
    plot = re.sub(r'viewBox="[^"]*"', f'viewBox="0 0 {width} {height}"', plot, count=1)
    plot = plot.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)
    back = f'<rect width="{width}" height="{height}" fill="{table["panel"]}"/>'
    return re.sub(r"(<svg[^>]*>)", lambda head: head[1] + back, plot, count=1) + "\n"


def main():
    """Draws the pictures, or those that are named."""
    table = colours()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        blocks(folder)
        for picture in sys.argv[1:] or PICTURES:
            text = draw(folder, *PICTURES[picture], table)
            (BOOK / f"pictures/{picture}.svg").write_text(text)
            print(f"{picture}.svg: {len(text) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
