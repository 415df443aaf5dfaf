"""Schedules that `kingpost.auto` finds."""

import doctest

import numpy as np
import pytest

import kingpost
import kingpost.auto  # noqa: F401 (the function hides the module)

# sums of columns wait for themselves, and each iteration of `i` needs a `t` of its own
COLUMNS = """kernel columns
param n: i32
arg a: f64[n, n] in
arg scale: f64 in
arg y: f64[n] inout
temp t: f64 private

for i in 0..n
  z: t = 0.0
  for j in 0..n
    u: t += a[j, i]*a[j, i]
  s: y[i] += scale*t
"""

DEVICES = [name for name in ("c", "opencl", "cuda") if any(d.split(":")[0] == name for d in kingpost.devices())]


@pytest.mark.parametrize("device", DEVICES)
def test_the_fastest_is_right(device):
    a, y = np.random.default_rng(0).random((90, 90)), np.zeros(90)
    found = kingpost.auto(COLUMNS, device, a=a, scale=2.0, y=y, budget=4)
    assert not y.any(), "it runs on copies"
    assert 1 < len(found.trials) <= 4 and any(t.schedule.recipe == "" for t in found.trials)
    times = [t.seconds for t in found.trials if t.seconds is not None]
    assert [t.schedule.recipe for t in found.trials if t.seconds == min(times)][0] == found.schedule.recipe
    assert all((t.seconds is None) != (t.reason is None) for t in found.trials)
    # another size than the one that ranked
    a, y = np.random.default_rng(1).random((37, 37)), np.zeros(37)
    kingpost.compile(found.schedule, device)(a=a, scale=2.0, y=y)
    np.testing.assert_allclose(y, 2.0 * (a * a).sum(axis=0), rtol=1e-12)


def test_what_was_considered_is_said():
    found = kingpost.auto(kingpost.Kernel.parse(COLUMNS), a=np.ones((50, 50)), scale=1.0, y=np.zeros(50))
    scheduled = [t for t in found.trials if t.schedule.recipe]
    assert any("expand_array(t, inames: [i])" in t.schedule.recipe for t in scheduled)
    assert any(": taken, predicted " in t.text for t in scheduled)
    assert all("# " + t.name in t.text for t in found.trials)
    assert repr(found).startswith("<kingpost.AutoSchedule of columns: ")


def test_arguments_are_those_of_a_call():
    with pytest.raises(kingpost.MissingArgument):
        kingpost.auto(COLUMNS, "c", a=np.ones((5, 5)), y=np.zeros(5))
    with pytest.raises(kingpost.TextError):
        kingpost.auto("kernel", "c")


def test_the_example_of_the_documentation():
    import sys

    assert doctest.testmod(sys.modules["kingpost.auto"]).failed == 0
