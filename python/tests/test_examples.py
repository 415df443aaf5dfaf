"""The examples run, and the README shows the first of them."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "python" / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, capsys):
    runpy.run_path(str(path))
    assert capsys.readouterr().out


def test_the_readme_shows_the_first_example():
    shown = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    first = EXAMPLES[0].read_text()
    assert shown in first and len(shown.splitlines()) >= 10
