"""Programs made of whole ones, and counts as formulas."""

import doctest
import sys
import textwrap

import numpy
import pytest

import kingpost

SCALE = "kernel scale\nparam n: i32\narg a: f64[n] in\narg b: f64[n] out\n\nfor i in 0..n\n  s: b[i] = 2.0*a[i]\n"
ADD = "kernel add\nparam n: i32\narg b: f64[n] in\narg c: f64[n] inout\n\nfor i in 0..n\n  s: c[i] += b[i]\n"
SQUARE = "kernel square\nparam n: i32\narg c: f64[n] inout\n\nfor i in 0..n\n  s: c[i] = c[i]*c[i]\n"


def test_the_examples_of_programs():
    assert doctest.testmod(sys.modules["kingpost.programs"]).failed == 0


def test_three_kernels_become_one_loop():
    fused = kingpost.fuse_kernels([SCALE, ADD, SQUARE], "all")
    assert fused.names == ({}, {"i": "i_1", "s": "s_1"}, {"i": "i_2", "s": "s_2"})
    s = kingpost.Schedule(fused.kernel)
    s.fuse_launches(["scale", "add", "square"])
    s.fuse("i", "i_1")
    s.fuse("i", "i_2")
    for kernel in (fused.kernel, s.kernel):
        a, b, c = numpy.array([1.0, 2.0]), numpy.zeros(2), numpy.array([3.0, 0.5])
        kingpost.compile(kernel, "c")(a=a, b=b, c=c)
        assert b.tolist() == [2.0, 4.0] and c.tolist() == [25.0, 20.25]
    with pytest.raises(kingpost.Refusal, match="`b` is declared in two ways"):
        kingpost.fuse_kernels([SCALE, ADD.replace("b: f64[n]", "b: f64[n + 1]")])


def test_names_are_followed_through_several_kernels():
    # `c` is a temporary of the first and an argument of the third
    first = "kernel first\narg a: f64[4] out\ntemp c: f64 private\n\nfor i in 0..4\n  s: c = 1.0\n  r: a[i] = c\n"
    fused = kingpost.fuse_kernels([first, first.replace("a:", "d:").replace("a[", "d["), SQUARE])
    own, second, third = fused.names
    kernel = fused.kernel
    assert own["c"] in kernel.variables and second["c"] in kernel.variables and own["c"] != second["c"]
    assert set(second) == {"i", "s", "r", "c"} and set(third) == {"i", "s"}


def test_a_batch_of_data():
    dot = "kernel dot\nparam n: i32\narg a: f64[n] in\narg b: f64[n] in\narg s: f64 out\n\ns0: s = sum(i in 0..n: a[i]*b[i])\n"
    kernel = kingpost.to_batched(dot, "m", ["a", "s"])
    a, b, s = numpy.arange(6.0).reshape(2, 3), numpy.array([1.0, 10.0, 100.0]), numpy.zeros(2)
    kingpost.compile(kernel, "c")(a=a, b=b, s=s)
    assert s.tolist() == (a @ b).tolist()
    assert "f64[2, n]" in str(kingpost.to_batched(dot, 2, ["a", "s"]))
    with pytest.raises(kingpost.Refusal, match="needed `s` among them"):
        kingpost.to_batched(dot, 2, ["a"])


def test_arguments_are_renamed_and_left_out():
    swapped = kingpost.rename_arguments(SCALE, {"a": "b", "b": "a"})
    assert "s: a[i] = 2.0*b[i]" in str(swapped)
    kernel, removed = kingpost.remove_unused_arguments(SCALE.replace("\narg b", "\narg w: f64[n] in\narg b"))
    assert removed == ["w"] and kernel == kingpost.Kernel.parse(SCALE)


def test_counts_are_formulas():
    stats = kingpost.statistics(ADD.replace("0..n", "1..n - 1"))
    assert str(stats.flops) == "[n >= 2]*(n - 2)" and stats.flops.exact and stats.flops.reason is None
    assert (stats.flops(n=10), stats.flops(n=1)) == (8, 0)
    assert stats.operations["add", "f64"](n=5) == stats.writes["c"](n=5) == stats.instances["s"](n=5) == 3
    assert stats.reads["b"](n=5) == 3
    with pytest.raises(kingpost.errors.StatisticsError, match="no value with no parameter"):
        stats.flops()
    data = kingpost.statistics(ADD.replace("+= b[i]", "+= 1.0 if b[i] < 0.0"))
    assert str(data.flops) == "at most n" and not data.flops.exact


def test_barriers_and_launches_are_formulas():
    text = """
    kernel flip
    param n: i32
    param m: i32
    arg a: f64[m, 128] inout
    temp t: f64[128] local

    for b in 0..m {g.0}
      for s in 0..n
        for i in 0..128 {l.0}
          t[i] = a[b, i]
        for j in 0..128 {l.0}
          a[b, j] = t[127 - j]
    """
    stats = kingpost.statistics(textwrap.dedent(text))
    assert (stats.launches(), stats.sub_group_barriers(), stats.barriers(n=3, m=5)) == (1, 0, 30)
    raced = kingpost.statistics(textwrap.dedent(text).replace("t[127 - j]", "a[0, 127 - j]"))
    assert "a[0, " in raced.barriers.reason or "`a" in raced.barriers.reason
