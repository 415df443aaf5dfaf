"""Makes the modules of the tests importable, and adds the options of the tests."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
LONG = os.environ.get("KINGPOST_TEST_ALL", "0") not in ("", "0")
sys.path[:0] = [str(HERE)]  # the package is the installed one


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--random-forms N` and `--first-seed SEED`."""
    count = 50 if LONG else 8
    parser.addoption("--random-forms", type=int, default=count, help="random UFL forms to compare")
    parser.addoption("--first-seed", type=int, default=0, help="the first seed")


@pytest.fixture(autouse=True)
def _own_tuned_mappings(tmp_path, monkeypatch) -> None:
    """What a test tunes is not kept for others, and what a user has tuned does not count."""
    monkeypatch.setattr("kingpost.tuning.path", lambda: tmp_path / "tuned.jsonl")


@pytest.fixture(autouse=True)
def _quiet() -> None:
    """UFL warns of geometry that it does not lower; the exporter refuses it or does it itself."""
    warnings.filterwarnings("ignore", message="Only know how to compute")
