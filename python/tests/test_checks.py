"""Calls that are checked before they run."""

import os
import subprocess
import sys

import numpy as np
import pytest

import kingpost
from test_compile import DEVICES, ROWS
from test_operator import arrays


def rows(wrong, x=None):
    entries = np.array([0, wrong], dtype=np.int32)
    return {"map": entries, "x": np.ones((2, 3), dtype=np.float32), "y": np.full(2, 7, dtype=np.float32)}


@pytest.mark.parametrize("device", [d for d in DEVICES if d != "cuda"])
@pytest.mark.parametrize("wrong", [2, -1, 2**31 - 1])
def test_a_checked_call_refuses_entries_outside(device, wrong):
    checked = kingpost.checked(kingpost.compile(ROWS, device))
    good, bad = rows(1), rows(wrong)
    checked(**good)
    assert good["y"].tolist() == [3.0, 3.0]
    for run in (checked, checked.seconds, checked.roofline):
        with pytest.raises(kingpost.ArgumentError, match=f"x\\[{wrong}"):
            run(**bad)
    assert bad["y"].tolist() == [7.0, 7.0]  # nothing ran


def test_an_operator_is_checked_and_stays_so_when_tuned():
    op = kingpost.jit("laplace", "c", dim=2, degree=1)
    checked = kingpost.checked(op)
    given, expected = arrays(op)
    y = np.zeros_like(expected)
    checked(y, **given)
    assert np.allclose(y, expected, rtol=0, atol=1e-13)
    bad = {name: value + 1000 if value.dtype == np.int32 and name == "dofs" else value for name, value in given.items()}
    for _ in range(2):
        with pytest.raises(kingpost.ArgumentError, match="dofs"):
            checked(y, **bad)
        checked.tune(y, **given)
    assert kingpost.jit("laplace", "c", dim=2, degree=1) is op and not op._is_checked
    with pytest.raises(kingpost.ArgumentError, match="`function` is a int; needed what `kingpost.compile`"):
        kingpost.checked(3)


def test_real_values_that_nothing_depends_on_are_not_copied():
    """Only maps are looked at; those read in between lead somewhere, too."""
    text = ROWS.replace("x[map[i], j]", "x[map[map[i]], j]")
    with pytest.raises(kingpost.ArgumentError, match="map\\[5"):
        kingpost.compile(text).check(**rows(5))
    assert "accesses inside their arrays" in kingpost.compile(text).check(**rows(0))


SCRIPT = """
import numpy as np, kingpost
from test_compile import ROWS
from test_checks import rows
try:
    kingpost.compile(ROWS)(**rows(1))
    kingpost.compile(ROWS)(**rows(2))
except kingpost.ArgumentError as error:
    print("refused", error)
"""


@pytest.mark.parametrize(("value", "refused"), [("1", True), ("yes", True)])
def test_the_environment_has_every_call_checked(value, refused):
    here = os.path.dirname(__file__)
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=os.environ | {"KINGPOST_CHECK": value}, cwd=here, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("refused") == refused, run.stdout
