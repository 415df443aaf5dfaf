"""Programs of Loopy as kernels, and proofs of their schedules."""

import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import purlin

lp = pytest.importorskip("loopy", reason="Loopy is missing (pip install 'purlin[loopy]')")

from loopy.version import LOOPY_USE_LANGUAGE_VERSION_2018_2  # noqa: E402, F401 (Loopy looks for it)

from purlin.__main__ import main  # noqa: E402
from purlin.loopy import internals, nest  # noqa: E402
from purlin.loopy.imported import Reading  # noqa: E402
from purlin.loopy.prove import refuted  # noqa: E402

F64 = np.float64
ROOT = Path(__file__).resolve().parents[2]


def body(imported):
    """The loops of a kernel: what follows its declarations."""
    return imported.text.split("\n\n", 2)[2]


def arrays(imported, **given):
    return {imported.names.variables[name]: value for name, value in given.items()}


def matmul():
    """The tiled matrix product of Loopy's tutorial."""
    kernel = lp.make_kernel("{[i,j,k]: 0<=i,j,k<n}", "c[i,j] = sum(k, a[i,k]*b[k,j])", name="matmul")
    kernel = lp.assume(lp.add_dtypes(kernel, {"a": F64, "b": F64}), "n mod 8 = 0 and n >= 8")
    kernel = lp.split_iname(kernel, "i", 8, outer_tag="g.0", inner_tag="l.1")
    kernel = lp.split_iname(kernel, "j", 8, outer_tag="g.1", inner_tag="l.0")
    kernel = lp.split_iname(kernel, "k", 8)
    outer = frozenset(["i_outer", "j_outer", "k_outer"])
    for array, inames in (("a", ["k_inner", "i_inner"]), ("b", ["j_inner", "k_inner"])):
        kernel = lp.add_prefetch(kernel, array, inames, default_tag="l.auto", fetch_outer_inames=outer)
    return kernel


def test_what_is_used_beyond_the_documented_interface_is_there():
    assert lp.version.VERSION_TEXT == internals.VERSION
    signatures = {
        internals._preprocess_single_kernel: "(kernel, is_entrypoint)",
        internals.get_one_linearized_kernel: "(kernel, callables_table)",
        internals.filter_reachable_callables: "(t_unit)",
        internals.resolve_callables: "(t_unit)",
        internals.infer_unknown_types: "(t_unit, expect_completion)",
        internals.apply_single_writer_dependency_heuristic: "(kernel, warn_if_used, error_if_used)",
    }
    for function, expected in signatures.items():
        assert f"({', '.join(inspect.signature(function).parameters)})" == expected, function
    assert "iname" in nest.EnterLoop.__dataclass_fields__ and "insn_id" in nest.RunInstruction.__dataclass_fields__


def test_a_plain_kernel_keeps_its_reductions_and_runs():
    kernel = lp.make_kernel(
        "{[i,j,k]: 0<=i<n and 0<=j,k<=i}",
        "out[i] = sum(j, a[j])/2 + max(k, a[k]) {id=both}",
        [lp.GlobalArg("a", F64, "n"), "..."],
    )
    imported = purlin.from_loopy(kernel)
    assert body(imported) == (
        "for i in 0..n\n  both: out_[i] = sum(j in 0..i + 1: a[j])/2 + maximum(k in 0..i + 1: a[k])\n"
    )
    assert imported.names.loops == {"i": ("i",), "j": ("j",), "k": ("k",)}
    assert imported.names.statements == {"both": ("both",)} and imported.names.variables["out"] == "out_"
    a, out = np.linspace(-1.0, 2.0, 17), np.zeros(17)
    imported.compile("c")(**arrays(imported, a=a, out=out))
    np.testing.assert_allclose(out, np.cumsum(a) / 2 + np.maximum.accumulate(a), rtol=1e-14)


def test_a_scheduled_kernel_is_proved_and_runs():
    proof = purlin.prove_loopy(matmul())
    assert proof and proof.superfluous == ()
    assert str(proof) == "`matmul` is free of races, and every access is in bounds"
    text = proof.imported.text
    assert "temp a_fetch: f64[8, 8] local" in text and "{g.1}" in text and "{l.1}" in text
    # the accumulator lives in three loops over work-items: an element for each
    assert "temp acc_k_outer_k_inner: f64[8, 8] private" in text
    random = np.random.default_rng(1)
    a, b, c = random.random((16, 16)), random.random((16, 16)), np.zeros((16, 16))
    for device in {"c", "opencl"} & set(purlin.devices()):
        proof.imported.compile(device)(a=a, b=b, c=c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-13)  # sums of 16 terms in another order


def test_every_barrier_of_the_product_is_needed():
    reading = Reading(matmul(), None)
    imported = reading.imported()
    assert len(nest.barriers(reading.kernel)) == 2
    for number in range(2):
        error = refuted(reading, imported, number)
        assert isinstance(error, purlin.RaceError) and error.witness.element.startswith("a_fetch[")
    # the first one separates iterations: nothing else sees it
    assert error.witness.source != error.witness.sink


def exchange(second):
    return lp.make_kernel(
        "{[i,j]: 0<=i,j<64}",
        f"""
        <> t[i] = a[i] {{id=first}}
        {second}
        """,
        [lp.GlobalArg("a", F64, 64), lp.GlobalArg("out", F64, 64)],
        seq_dependencies=True,
    )


def local(kernel):
    kernel = lp.set_temporary_address_space(kernel, "t", "local")
    return lp.tag_inames(kernel, {"i": "l.0", "j": "l.0"})


def test_a_barrier_that_loopy_is_told_to_leave_out_is_a_race():
    kernel = local(exchange("out[j] = t[63 - j] {id=second, nosync=first}"))
    proof = purlin.prove_loopy(kernel)
    assert not proof and proof.race.witness.element.startswith("t[")
    assert {proof.race.witness.source.statement, proof.race.witness.sink.statement} == {"first", "second"}
    assert purlin.prove_loopy(local(exchange("out[j] = t[63 - j] {id=second}")))


def test_work_items_are_counted_from_the_first_value_of_an_iname():
    def shifted(index):
        kernel = lp.make_kernel(
            "{[i,j]: 0<=i<64 and 1<=j<=64}",
            f"<> t[i] = a[i] {{id=first}}\nout[j - 1] = t[{index}] {{id=second, nosync=first}}",
            [lp.GlobalArg("a", F64, 64), lp.GlobalArg("out", F64, 64)],
            seq_dependencies=True,
        )
        return purlin.prove_loopy(local(kernel))

    assert shifted("j - 1") and shifted("64 - j").race.witness.element.startswith("t[")


@pytest.mark.parametrize("index", ["j - j % 2", "j - j % 2 + 1"])
def test_a_race_in_one_direction_is_found(index):
    kernel = local(exchange(f"out[j] = t[{index}] {{id=second, nosync=first}}"))
    assert purlin.prove_loopy(kernel).race.witness.element.startswith("t[")
    proof = purlin.prove_loopy(local(exchange(f"out[j] = t[{index}] {{id=second}}")))
    assert proof and proof.superfluous == ()


def test_a_barrier_without_which_the_proof_holds_is_superfluous():
    kernel = local(exchange("... lbarrier\nout[j] = a[63 - j]"))
    [barrier] = purlin.prove_loopy(kernel).superfluous
    assert barrier.startswith("barrier 0, after `first`")


def test_a_race_and_an_access_outside_have_witnesses():
    def one(value, index, tag):
        kernel = lp.make_kernel(
            "{[i]: 0<=i<64}", f"out[{index}] = {value}", [lp.GlobalArg("a", F64, 64), lp.GlobalArg("out", F64, 64)]
        )
        return purlin.prove_loopy(lp.tag_inames(kernel, {"i": tag}))

    race = one("a[i]", "i//2", "g.0")
    assert not race and (race.race.witness.source.point, race.race.witness.sink.point) == ((0,), (1,))
    assert "`loopy_kernel` has a race: " in str(race)
    outside = one("a[i + 1]", "i", "l.0")
    assert not outside and outside.outside.element == "a[64]" and outside.race is None
    assert one("a[63 - i]", "i", "l.0")


def test_accesses_that_may_leave_their_array_become_conditions():
    arguments = [lp.GlobalArg("a", F64, 10), lp.GlobalArg("out", F64, "n"), lp.ValueArg("n", np.int32)]
    kernel = lp.make_kernel("{[i]: 0<=i<n}", "out[i] = a[i]", arguments)
    imported = purlin.from_loopy(kernel)
    assert imported.conditions == ("n <= 10",) and "assume n <= 10\n" in imported.text
    run = imported.compile("c")
    run(**arrays(imported, a=np.ones(10), out=np.zeros(10)))
    with pytest.raises(purlin.ArgumentError, match="relies on"):
        run(**arrays(imported, a=np.ones(10), out=np.zeros(11)))
    # an access that a condition keeps inside needs none
    guarded = lp.make_kernel("{[i]: 0<=i<n}", "out[i] = if(i < 10, a[i], 0)", arguments)
    assert purlin.from_loopy(guarded).conditions == ()


def test_a_global_barrier_parts_launches():
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i,j<n}",
        """
        b[i] = 2*a[i] {id=first}
        ... gbarrier {id=between, dep=first}
        out[j] = b[n - 1 - j] {dep=between}
        """,
        [lp.GlobalArg("a,b,out", F64, "n"), lp.ValueArg("n", np.int32)],
    )
    kernel = lp.tag_inames(kernel, {"i": "g.0", "j": "g.0"})
    imported = purlin.from_loopy(kernel)
    assert imported.text.count("launch ") == 2
    a, b, out = np.arange(5.0), np.zeros(5), np.zeros(5)
    imported.compile("c")(**arrays(imported, a=a, b=b, out=out))
    assert (out == 2 * a[::-1]).all()


def test_a_callee_is_inlined_and_tags_are_kept():
    callee = lp.make_function("{[l]: 0<=l<4}", "y[l] = 3*x[l]", name="triple")
    caller = lp.make_kernel(
        "{[i,m]: 0<=i<8 and 0<=m<4}",
        "[m]: out[i, m] = triple([m]: a[i, m])",
        [lp.GlobalArg("a,out", F64, (8, 4))],
        name="caller",
    )
    kernel = lp.merge([lp.tag_inames(caller, {"i": "g.0"}), callee])
    imported = purlin.from_loopy(kernel)
    assert "`triple` is inlined" in imported.notes and "{g.0}" in imported.text
    a, out = np.arange(32.0).reshape(8, 4), np.zeros((8, 4))
    imported.compile("c")(**arrays(imported, a=a, out=out))
    assert (out == 3 * a).all()


def test_unrolled_and_interleaved_loops_run():
    kernel = lp.make_kernel("{[i]: 0<=i<64}", "<> t = a[i]\nout[i] = t*t", [lp.GlobalArg("a,out", F64, 64)])
    kernel = lp.split_iname(kernel, "i", 16, outer_tag="g.0")
    kernel = lp.split_iname(kernel, "i_inner", 4, outer_tag="l.0", inner_tag="ilp")
    imported = purlin.from_loopy(kernel)
    assert purlin.prove_loopy(kernel) and "{unroll}" in imported.text
    a, out = np.arange(64.0), np.zeros(64)
    imported.compile("c")(**arrays(imported, a=a, out=out))
    assert (out == a * a).all()


def test_what_all_work_items_write_alike_is_written_once():
    kernel = lp.make_kernel(
        "{[i]: 0<=i<64}",
        "flag = 7 {id=same}\nout[i] = a[i]",
        [lp.GlobalArg("a,out", F64, 64), lp.GlobalArg("flag", F64, ())],
    )
    kernel = lp.add_inames_to_insn(kernel, "i", "id:same")
    proof = purlin.prove_loopy(lp.tag_inames(kernel, {"i": "l.0"}))
    assert proof and "`same` is run once for all `i`" in proof.imported.notes
    assert "\nsame: flag = 7" in proof.imported.text  # outside the loop over work-items
    # where the values differ it is a race
    arguments = [lp.GlobalArg("a", F64, 64), lp.GlobalArg("flag", F64, ())]
    kernel = lp.make_kernel("{[i]: 0<=i<64}", "flag = a[i]", arguments)
    assert purlin.prove_loopy(lp.tag_inames(kernel, {"i": "l.0"})).race.witness.element == "flag"


def test_inames_of_one_axis_are_one_group_and_private_values_live_on():
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i,j<8}", "<> t = a[i] {id=first}\nout[j] = t + t {dep=first}", [lp.GlobalArg("a,out", F64, 8)]
    )
    imported = purlin.from_loopy(lp.tag_inames(kernel, {"i": "g.0", "j": "g.0"}))
    assert body(imported).count("for ") == 1 and imported.names.loops == {"i": ("i",)}
    a, out = np.arange(8.0), np.zeros(8)
    imported.compile("c")(**arrays(imported, a=a, out=out))
    assert (out == 2 * a).all()


def test_vectors_are_an_axis_of_lanes():
    kernel = lp.make_kernel("{[i]: 0<=i<16}", "out[i] = 2*a[i]", [lp.GlobalArg("a,out", np.float32, 16)])
    kernel = lp.split_array_dim(kernel, [("a", 0), ("out", 0)], 4)
    kernel = lp.tag_array_axes(kernel, "a,out", "c,vec")
    kernel = lp.tag_inames(kernel, {"i_outer": "l.0", "i_inner": "vec"})
    imported = purlin.from_loopy(kernel)
    assert "out_: f32[4, 4]" in imported.text and "{vector}" in imported.text
    lane = np.dtype({"names": ["x", "y"], "formats": [np.float32, np.float32]})
    kernel = lp.make_kernel(
        "{[i]: 0<=i<4}",
        "out[i] = 2*a[i]\nsum[i] = a[i].x + a[i].y",
        [lp.GlobalArg("a,out", lane, 4), lp.GlobalArg("sum", np.float32, 4)],
    )
    imported = purlin.from_loopy(kernel)
    assert "`out` has an axis for the 2 lanes of its vectors" in imported.notes
    a, out, total = np.arange(8, dtype=np.float32).reshape(4, 2), np.zeros((4, 2), np.float32), np.zeros(4, np.float32)
    imported.compile("c")(**arrays(imported, a=a, out=out, sum=total))
    assert (out == 2 * a).all() and (total == a.sum(axis=1)).all()


def refusal(*arguments, **named):
    with pytest.raises(purlin.ImportRefusal) as caught:
        purlin.from_loopy(*arguments, **named)
    return caught.value


def test_refusals_say_the_feature_and_the_instruction():
    kernel = lp.make_kernel("{[i]: 0<=i<4}", "out[i] = f(a[i]) {id=calls}", [lp.GlobalArg("a,out", F64, 4)])
    error = refusal(kernel)
    assert (error.feature, error.instruction) == ("a function that is not known", "calls")
    assert str(error).startswith("import of instruction `calls` of ")
    raw = lp.CInstruction("i", "out[i] = 0;", assignees="out[i]", id="raw")
    kernel = lp.make_kernel("{[i]: 0<=i<4}", [raw], [lp.GlobalArg("out", F64, 4)])
    assert (refusal(kernel).feature, refusal(kernel).instruction) == ("inline C code", "raw")
    kernel = lp.make_kernel("{[i]: 0<=i<4}", "out[i] = a[i]", [lp.GlobalArg("a,out", None, 4)])
    assert refusal(kernel).feature == "a type that is not known"
    assert "f32[4]" in purlin.from_loopy(kernel, types={"a": np.float32, "out": np.float32}).text


SCRIPT = """
import loopy as lp
import numpy as np
from loopy.version import LOOPY_USE_LANGUAGE_VERSION_2018_2

good = lp.make_kernel("{[i]: 0<=i<64}", "out[i] = a[i]", [lp.GlobalArg("a,out", np.float64, 64)])
bad = lp.make_kernel("{[i]: 0<=i<64}", "out[0] = a[i]", [lp.GlobalArg("a,out", np.float64, 64)])
bad = lp.tag_inames(bad, {"i": "g.0"})
"""


def test_the_command_line_reads_a_script(tmp_path, capsys):
    script = tmp_path / "kernels.py"
    script.write_text(textwrap.dedent(SCRIPT))
    assert main(["import-loopy", str(script), "--only", "good"]) == 0
    assert purlin.Kernel.parse(capsys.readouterr().out).name == "loopy_kernel"
    assert main(["import-loopy", str(script), "--prove"]) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert good.startswith("`good`: `loopy_kernel` is free of races")
    assert bad.startswith("`bad`: `loopy_kernel` has a race")
    assert main(["import-loopy", str(script), "-o", str(tmp_path / "texts")]) == 0
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == ["bad.purlin", "good.purlin"]
    assert main(["import-loopy", str(script), "--only", "none"]) == 1
    assert "found no program of Loopy" in capsys.readouterr().err


PARTS = pkgutil.iter_modules(lp.transform.__path__)
TRANSFORMS = [lp, *(importlib.import_module(f"loopy.transform.{part.name}") for part in PARTS)]


def rows():
    """The rows of the book's table: names of Loopy, and of Purlin."""
    page = (ROOT / "docs" / "book" / "src" / "loopy.md").read_text()
    lines = page.split("| Loopy | Purlin | remark |")[1].splitlines()
    for line in lines[2 : lines.index("", 1)]:
        left, right, _ = line.strip("|").split("|")
        yield re.findall("`(.*?)`", left), re.findall("`(.*?)`", right)


@pytest.mark.parametrize(("theirs", "ours"), rows(), ids=lambda names: names[0])
def test_the_names_of_the_book_are_there(theirs, ours):
    assert all(any(hasattr(module, name) for module in TRANSFORMS) for name in theirs), theirs
    assert all(hasattr(purlin.Schedule, name) for name in ours) and ours
