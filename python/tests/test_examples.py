"""The examples run, and the README shows the first of them."""

import runpy
from pathlib import Path

import pytest
from conftest import LONG

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "python" / "examples").glob("*.py"))
# one that tunes, whose steps other tests have
SLOW = ["05_tutorial"]


@pytest.mark.parametrize("path", [path for path in EXAMPLES if LONG or path.stem not in SLOW], ids=lambda path: path.stem)
def test_examples_run(path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out


def test_the_readme_shows_the_examples():
    shown = [part.split("```")[0] for part in (ROOT / "README.md").read_text().split("```python\n")[1:]]
    assert len(shown) == 2
    for text, name in zip(shown, ["01_schedule", "04_ufl"], strict=True):
        example = (ROOT / "python" / "examples" / f"{name}.py").read_text()
        assert text in example, name
