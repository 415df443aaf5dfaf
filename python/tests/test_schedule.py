"""Kernels and schedules by hand."""

import html
import inspect
import json
import keyword
import pickle
import re

import numpy
import pytest

import kingpost

SCALE = """kernel scale

param n: i32
arg y: f64[n] inout

for i in 0..n
  s: y[i] = 2.0*y[i]
"""

CARRIED = """kernel carried
param n: i32
arg a: f64[n, n] inout

for i in 1..n
  for j in 0..n - 1
    s: a[i, j] = a[i - 1, j + 1]
"""


def test_a_kernel_prints_what_it_reads():
    kernel = kingpost.Kernel.parse(SCALE)
    assert str(kernel) == SCALE
    assert (kernel.name, kernel.loops, kernel.statements, kernel.variables) == ("scale", ["i"], ["s"], ["n", "y"])
    assert kernel == kingpost.Kernel.parse(str(kernel)) and hash(kernel) == hash(kingpost.Kernel.parse(SCALE))
    assert kernel != kingpost.Kernel.parse(CARRIED) and kernel != "scale"
    assert pickle.loads(pickle.dumps(kernel)) == kernel


def test_a_text_that_is_no_kernel_says_where():
    with pytest.raises(kingpost.TextError) as caught:
        kingpost.Kernel.parse(SCALE.replace("y[i] = ", "z[i] = "))
    [(message, _, line, column)] = caught.value.mistakes
    assert (line, column) == (7, 6)
    assert "`z`" in message
    assert isinstance(caught.value, ValueError)


def test_a_kernel_has_sub_groups_of_its_width_and_names_for_its_statements():
    text = "kernel k{}\narg x: f64[64] inout\n\nfor i in 0..64\n  x[i] *= 2.0\n  last: x[i] += 1.0\n"
    plain, wide = kingpost.Kernel.parse(text.format("")), kingpost.Kernel.parse(text.format(" {sub_group(64)}"))
    assert (plain.sub_group, wide.sub_group) == (32, 64)
    assert plain.statements == wide.statements == ["s0", "last"]
    assert str(wide).startswith("kernel k {sub_group(64)}\n") and kingpost.Kernel.parse(str(wide)) == wide != plain


def test_handles_are_arguments_of_further_steps():
    s = kingpost.Schedule(SCALE)
    i_o, i_i = s.split("i", 128)
    assert (i_o, i_i) == ("i_o", "i_i")
    s.tag(i_o, "g.0")
    s.tag_iname(i_i, "l.0")
    assert s.recipe == "split_iname(i, factor: 128)\ntag(i_o, tag: g.0)\ntag(i_i, tag: l.0)\n"
    assert "for i_i in 0..min(128, n - 128*i_o) {l.0}" in str(s.kernel)
    assert s.start == kingpost.Kernel.parse(SCALE)
    [split, *_] = s.steps()
    assert split.operation == "split `i` by 128 into `i_o`, `i_i`"
    assert s.steps()[-1].kernel == s.kernel


def test_what_a_step_made_is_grouped():
    s = kingpost.Schedule(SCALE)
    made = s.split_iname("i", 8, outer="block", tail="peel")
    assert made.loops == ("block", "i_i", "i_tail") and made.arrays == ()
    assert made == ("block", "i_i", "i_tail", *made.statements)


def test_schedules_are_read_back():
    s = kingpost.Schedule(SCALE)
    s.split("i", 4)
    s.unroll("i_i")
    assert kingpost.Schedule(SCALE).run(s.recipe).kernel == s.kernel
    assert kingpost.Schedule(SCALE).run(s.recipe_json).kernel == s.kernel
    assert kingpost.Schedule.parse(str(s)).kernel == s.kernel
    tuned = kingpost.Schedule.parse(SCALE + "\nschedule\ntile in [4, 8]\nsplit_iname(i, tile)\n", tile=8)
    assert tuned.recipe == "split_iname(i, factor: 8)\n"
    with pytest.raises(kingpost.ScheduleError, match="`tile` is one of 4, 8, not 5"):
        kingpost.Schedule.parse(SCALE + "\nschedule\ntile in [4, 8]\nsplit_iname(i, tile)\n", tile=5)
    with pytest.raises(kingpost.TextError, match="there is no step `spilt_iname`"):
        s.run("spilt_iname(i_o, 4)")


def test_a_copy_goes_on_by_itself():
    s = kingpost.Schedule(SCALE)
    other = s.copy()
    other.split("i", 4)
    assert (s.recipe, other.recipe) == ("", "split_iname(i, factor: 4)\n")


def test_a_refusal_keeps_its_witness():
    s = kingpost.Schedule(CARRIED)
    with pytest.raises(kingpost.Refusal) as caught:
        s.interchange_inames("i", "j")
    refusal = caught.value
    assert refusal.operation == "interchange `i` `j`"
    assert str(refusal).startswith("interchange `i` `j`: would run `s[2,0]` before `s[1,1]`, ")
    assert str(refusal).endswith(f"[{refusal.obligation}]")
    assert (str(refusal.witness.source), str(refusal.witness.sink)) == ("s[1,1]", "s[2,0]")
    assert refusal.witness.element == "a[1,1]"
    assert refusal.witness.parameters["n"] >= 3
    assert refusal.needed == kingpost.primitives()["interchange_inames"].obligations.get(
        refusal.obligation, refusal.needed
    )
    assert s.recipe == "" and s.kernel == s.start


@pytest.mark.parametrize("kind", [numpy.complex64, numpy.complex128])
def test_complex_arguments_become_tables(kind):
    name = numpy.dtype(kind).name.replace("complex", "c")
    kernel = kingpost.Kernel.parse(
        f"kernel k\n\narg turns: {name}[8, 8] in\narg x: {name}[3, 8] in\narg y: {name}[3, 8] out\n\n"
        "for i in 0..3\n  for k in 0..8\n    s: y[i, k] = sum(j in 0..8: turns[k, j]*x[i, j])\n"
    )
    turns = numpy.exp(-2j * numpy.pi * numpy.outer(numpy.arange(8), numpy.arange(8)) / 8).astype(kind)
    schedule = kingpost.Schedule(kernel)
    schedule.fix_argument("turns", {"Complex": turns.ravel()})
    schedule.set_address_space("turns", "constant")
    random = numpy.random.default_rng(3)
    x = (random.random((3, 8)) + 1j * random.random((3, 8))).astype(kind)
    y = numpy.zeros_like(x)
    kingpost.compile(schedule, "c")(x=x, y=y)
    tolerance = 1e-6 if kind is numpy.complex64 else 1e-14  # sums of 8 terms
    numpy.testing.assert_allclose(y, numpy.fft.fft(x), rtol=0, atol=8 * tolerance)


def test_refusals_of_a_text_name_the_line():
    with pytest.raises(kingpost.Refusal) as caught:
        kingpost.Schedule.parse(CARRIED + "\nschedule\n# wrong\ninterchange_inames(i, j)\n")
    assert caught.value.line == 11
    assert caught.value.kernel_text == str(kingpost.Kernel.parse(CARRIED))
    steps = json.dumps({"steps": [{"unroll_iname": {"iname": "k"}}]})
    with pytest.raises(kingpost.Refusal, match="step 1 of 1: tag `k` unroll: there is no iname `k`; there is") as caught:
        kingpost.Schedule(CARRIED).run(steps)
    assert (caught.value.step, caught.value.witness, caught.value.obligation) == (1, None, None)


def python_name(argument):
    return argument + "_" * keyword.iskeyword(argument)


def test_verbs_combined_steps_and_former_names():
    s = kingpost.Schedule(SCALE)
    blocks, inside = s.tile(["i"], [8])
    s.tag([inside], "l.0")
    s.tag_iname(blocks, "g.0")
    assert s.recipe == "split_iname(i, factor: 8)\ntag(i_i, tag: l.0)\ntag(i_o, tag: g.0)\n"
    tagged = kingpost.Schedule(SCALE)
    tagged.tile(["i"], [8], [("g.0", "l.0")])
    assert tagged.kernel == s.kernel
    with pytest.raises(kingpost.Refusal, match="tile: .*g.9"):
        tagged.tile(["i_i"], [2], [("g.9", "l.0")])
    former = kingpost.Schedule(SCALE).run("split(i, 8)\nunroll_iname(i_i)\ntag_inames([i_o], g.0)\n")
    assert former.recipe == "split_iname(i, factor: 8)\ntag(i_i, tag: unroll)\ntag(i_o, tag: g.0)\n"
    assert list(inspect.signature(kingpost.Schedule.hoist_insn).parameters) == ["self", "insn"]
    assert "tag_iname" not in kingpost.primitives()


MATMUL = """kernel matmul
arg a: f32[64, 64] in
arg b: f32[64, 64] in
arg c: f32[64, 64] out

for i in 0..64
  for j in 0..64
    s: c[i, j] = sum(k in 0..64: a[i, k]*b[k, j])
"""


def test_a_product_in_local_memory_takes_four_calls():
    s = kingpost.Schedule(MATMUL)
    s.realise("k")
    tiles = s.tile(["i", "j", "k"], [16, 16, 16], [("g.1", "l.1"), ("g.0", "l.0")])
    s.prefetch("a", tiles.loops[2], tag=["l.1", "l.0"])
    s.prefetch("b", tiles.loops[2], tag=["l.1", "l.0"])
    before = s.recipe
    with pytest.raises(kingpost.Refusal, match="2 loops that copy and 3 tags"):
        s.prefetch("a", tiles.loops[2], "private", tag=["unroll"] * 3)
    assert s.recipe == before
    random = numpy.random.default_rng(1)
    a, b = (random.random((64, 64), numpy.float32) for _ in range(2))
    c = numpy.zeros_like(a)
    kingpost.compile(s.kernel, "c")(a=a, b=b, c=c)
    numpy.testing.assert_allclose(c, a @ b, rtol=1e-5)  # sums of 64 terms in single precision
    assert str(s.kernel).count("local") == 2 and str(s.kernel).count("{l.0}") >= 4


def test_loops_are_tagged_by_a_pattern():
    s = kingpost.Schedule("kernel k\narg y: f64[8, 4] out\n\nfor i_1 in 0..8\n  for i_2 in 0..4\n    s: y[i_1, i_2] = 1.0\n")
    assert s.tag_matching("*_*", "unroll") == ("i_1", "i_2")
    assert s.recipe == "tag([i_1, i_2], tag: unroll)\n"
    with pytest.raises(kingpost.Refusal, match="there is no loop `j_\\*`; there is `i_1`, `i_2`"):
        s.tag_matching("j_*", "unroll")
    with pytest.raises(kingpost.Refusal, match="ilp"):
        s.tag_matching("i_*", "ilp")


def test_iterations_run_side_by_side():
    s = kingpost.Schedule(MATMUL)
    s.realise("k")
    _, inside = s.split("j", 4)
    parts = s.interleave(inside)
    assert len(parts.loops) == 3
    assert s.recipe.endswith(f"tag([{', '.join(parts.loops)}], tag: unroll)\n")
    again = kingpost.Schedule(MATMUL).run("realise_reduction(k)\nsplit_iname(j, 4)\ninterleave(j_i)\n")
    assert again.kernel == s.kernel
    a = numpy.random.default_rng(2).random((64, 64), numpy.float32)
    c = numpy.zeros_like(a)
    kingpost.compile(s.kernel, "c")(a=a, b=a, c=c)
    numpy.testing.assert_allclose(c, a @ a, rtol=1e-5)  # sums of 64 terms in single precision


def test_every_primitive_is_a_documented_method():
    table = kingpost.primitives()
    assert "split_iname" in table
    for name, primitive in table.items():
        method = getattr(kingpost.Schedule, name)
        assert method.__doc__.splitlines()[0]
        assert list(inspect.signature(method).parameters) == ["self", *map(python_name, primitive.arguments)]
    split = inspect.signature(kingpost.Schedule.split_iname)
    assert str(split) == "(self, /, iname, factor, outer=None, inner=None, tail=None)"
    assert "    factor: Iterations of a block." in kingpost.Schedule.split_iname.__doc__


def test_wrong_arguments_are_refused():
    s = kingpost.Schedule(SCALE)
    with pytest.raises(TypeError, match="missing a required argument: 'factor'"):
        s.split_iname("i")
    with pytest.raises(TypeError, match="unexpected keyword argument 'facto'"):
        s.split_iname("i", 4, facto=4)
    with pytest.raises(kingpost.Refusal, match="split_iname: invalid type: string"):
        s.split_iname("i", "four")
    with pytest.raises(kingpost.Refusal, match="there is no step `splits`; did you mean `split`"):
        s.apply("splits")


def test_notebooks_show_kernels_and_sources():
    s = kingpost.Schedule(SCALE)
    s.split("i", 4)
    for shown in (s, s.kernel, s.steps()[0]):
        assert "split" in str(shown) or "i_o" in str(shown)
        text = html.unescape(re.sub("<[^>]*>", "", shown._repr_html_()))
        assert text.split() == str(shown).split()
    assert repr(s) == "<kingpost.Schedule of scale, 1 steps>"
    # the frame reaches nothing, and what is in it ends no attribute
    shown = s._repr_html_()
    [frame] = re.findall(r'<iframe sandbox="allow-scripts" srcdoc="([^"<>]*)"', shown)
    assert html.unescape(frame) == s.page() and s.page().startswith("<!doctype html>")
    for k in range(40):
        s.rename("iname", f"x{k - 1}" if k else "i_o", f"x{k}")
    assert "<iframe" not in s._repr_html_()
    assert repr(s.kernel) == "<kingpost.Kernel scale>"
