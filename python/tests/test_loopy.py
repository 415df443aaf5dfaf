"""Programs of Loopy as kernels, and proofs of their schedules."""

import importlib
import inspect
import pkgutil
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import kingpost

lp = pytest.importorskip("loopy", reason="Loopy is missing (pip install 'kingpost[loopy]')")

from loopy.version import LOOPY_USE_LANGUAGE_VERSION_2018_2  # noqa: E402, F401 (Loopy looks for it)

from kingpost.__main__ import main  # noqa: E402
from kingpost.loopy import internals, nest  # noqa: E402
from kingpost.loopy.imported import Reading  # noqa: E402
from kingpost.loopy.prove import refuted  # noqa: E402

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
    imported = kingpost.from_loopy(kernel)
    assert body(imported) == (
        "for i in 0..n\n  both: out_[i] = sum(j in 0..i + 1: a[j])/2 + maximum(k in 0..i + 1: a[k])\n"
    )
    assert imported.names.loops == {"i": ("i",), "j": ("j",), "k": ("k",)}
    assert imported.names.statements == {"both": ("both",)} and imported.names.variables["out"] == "out_"
    a, out = np.linspace(-1.0, 2.0, 17), np.zeros(17)
    imported.compile("c")(**arrays(imported, a=a, out=out))
    np.testing.assert_allclose(out, np.cumsum(a) / 2 + np.maximum.accumulate(a), rtol=1e-14)


def test_a_scheduled_kernel_is_proved_and_runs():
    proof = kingpost.prove_loopy(matmul())
    assert proof and proof.superfluous == ()
    assert str(proof) == "`matmul` is free of races, and every access is in bounds"
    text = proof.imported.text
    assert "temp a_fetch: f64[8, 8] local" in text and "{g.1}" in text and "{l.1}" in text
    # the accumulator lives in three loops over work-items: an element for each
    assert "temp acc_k_outer_k_inner: f64[8, 8] private" in text
    random = np.random.default_rng(1)
    a, b, c = random.random((16, 16)), random.random((16, 16)), np.zeros((16, 16))
    for device in {"c", "opencl"} & set(kingpost.devices()):
        proof.imported.compile(device)(a=a, b=b, c=c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-13)  # sums of 16 terms in another order


def test_every_barrier_of_the_product_is_needed():
    reading = Reading(matmul(), None)
    imported = reading.imported()
    assert len(nest.barriers(reading.kernel)) == 2
    for number in range(2):
        error = refuted(reading, imported, number)
        assert isinstance(error, kingpost.RaceError) and error.witness.element.startswith("a_fetch[")
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
    proof = kingpost.prove_loopy(kernel)
    assert not proof and proof.race.witness.element.startswith("t[")
    assert {proof.race.witness.source.statement, proof.race.witness.sink.statement} == {"first", "second"}
    assert kingpost.prove_loopy(local(exchange("out[j] = t[63 - j] {id=second}")))


def test_work_items_are_counted_from_the_first_value_of_an_iname():
    def shifted(index):
        kernel = lp.make_kernel(
            "{[i,j]: 0<=i<64 and 1<=j<=64}",
            f"<> t[i] = a[i] {{id=first}}\nout[j - 1] = t[{index}] {{id=second, nosync=first}}",
            [lp.GlobalArg("a", F64, 64), lp.GlobalArg("out", F64, 64)],
            seq_dependencies=True,
        )
        return kingpost.prove_loopy(local(kernel))

    assert shifted("j - 1") and shifted("64 - j").race.witness.element.startswith("t[")


@pytest.mark.parametrize("index", ["j - j % 2", "j - j % 2 + 1"])
def test_a_race_in_one_direction_is_found(index):
    kernel = local(exchange(f"out[j] = t[{index}] {{id=second, nosync=first}}"))
    assert kingpost.prove_loopy(kernel).race.witness.element.startswith("t[")
    proof = kingpost.prove_loopy(local(exchange(f"out[j] = t[{index}] {{id=second}}")))
    assert proof and proof.superfluous == ()


def test_a_barrier_without_which_the_proof_holds_is_superfluous():
    kernel = local(exchange("... lbarrier\nout[j] = a[63 - j]"))
    [barrier] = kingpost.prove_loopy(kernel).superfluous
    assert barrier.startswith("barrier 0, after `first`")


def test_a_race_and_an_access_outside_have_witnesses():
    def one(value, index, tag):
        kernel = lp.make_kernel(
            "{[i]: 0<=i<64}", f"out[{index}] = {value}", [lp.GlobalArg("a", F64, 64), lp.GlobalArg("out", F64, 64)]
        )
        return kingpost.prove_loopy(lp.tag_inames(kernel, {"i": tag}))

    race = one("a[i]", "i//2", "g.0")
    assert not race and (race.race.witness.source.point, race.race.witness.sink.point) == ((0,), (1,))
    assert "`loopy_kernel` has a race: " in str(race)
    outside = one("a[i + 1]", "i", "l.0")
    assert not outside and outside.outside.element == "a[64]" and outside.race is None
    assert one("a[63 - i]", "i", "l.0")


def test_accesses_that_may_leave_their_array_become_conditions():
    arguments = [lp.GlobalArg("a", F64, 10), lp.GlobalArg("out", F64, "n"), lp.ValueArg("n", np.int32)]
    kernel = lp.make_kernel("{[i]: 0<=i<n}", "out[i] = a[i]", arguments)
    imported = kingpost.from_loopy(kernel)
    assert imported.conditions == ("n <= 10",) and "assume n <= 10\n" in imported.text
    run = imported.compile("c")
    run(**arrays(imported, a=np.ones(10), out=np.zeros(10)))
    with pytest.raises(kingpost.ArgumentError, match="relies on"):
        run(**arrays(imported, a=np.ones(10), out=np.zeros(11)))
    # an access that a condition keeps inside needs none
    guarded = lp.make_kernel("{[i]: 0<=i<n}", "out[i] = if(i < 10, a[i], 0)", arguments)
    assert kingpost.from_loopy(guarded).conditions == ()


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
    imported = kingpost.from_loopy(kernel)
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
    imported = kingpost.from_loopy(kernel)
    assert "`triple` is inlined" in imported.notes and "{g.0}" in imported.text
    a, out = np.arange(32.0).reshape(8, 4), np.zeros((8, 4))
    imported.compile("c")(**arrays(imported, a=a, out=out))
    assert (out == 3 * a).all()


def test_unrolled_and_interleaved_loops_run():
    kernel = lp.make_kernel("{[i]: 0<=i<64}", "<> t = a[i]\nout[i] = t*t", [lp.GlobalArg("a,out", F64, 64)])
    kernel = lp.split_iname(kernel, "i", 16, outer_tag="g.0")
    kernel = lp.split_iname(kernel, "i_inner", 4, outer_tag="l.0", inner_tag="ilp")
    imported = kingpost.from_loopy(kernel)
    assert kingpost.prove_loopy(kernel) and "{unroll}" in imported.text
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
    proof = kingpost.prove_loopy(lp.tag_inames(kernel, {"i": "l.0"}))
    assert proof and "`same` is run once for all `i`" in proof.imported.notes
    assert "\nsame: flag = 7" in proof.imported.text  # outside the loop over work-items
    # where the values differ it is a race
    arguments = [lp.GlobalArg("a", F64, 64), lp.GlobalArg("flag", F64, ())]
    kernel = lp.make_kernel("{[i]: 0<=i<64}", "flag = a[i]", arguments)
    assert kingpost.prove_loopy(lp.tag_inames(kernel, {"i": "l.0"})).race.witness.element == "flag"


def test_elements_that_several_groups_write_alike_are_written_once():
    def overlapping(value):
        kernel = lp.make_kernel(
            "{[i,j]: 0<=i<4 and 2*i<=j<2*i + 3}",
            f"out[j] = {value}",
            [lp.GlobalArg("a,out", F64, 10)],
        )
        return kingpost.prove_loopy(lp.tag_inames(kernel, {"i": "g.0"}))

    proof = overlapping("2*a[j]")
    assert proof, str(proof)
    a, out = np.arange(10.0), np.zeros(10)
    proof.imported.compile("c")(**arrays(proof.imported, a=a, out=out))
    assert (out[:9] == 2 * a[:9]).all() and out[9] == 0
    assert overlapping("a[j] + i").race is not None


def test_inames_of_one_axis_are_one_group_and_private_values_live_on():
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i,j<8}", "<> t = a[i] {id=first}\nout[j] = t + t {dep=first}", [lp.GlobalArg("a,out", F64, 8)]
    )
    imported = kingpost.from_loopy(lp.tag_inames(kernel, {"i": "g.0", "j": "g.0"}))
    assert body(imported).count("for ") == 1 and imported.names.loops == {"i": ("i",)}
    a, out = np.arange(8.0), np.zeros(8)
    imported.compile("c")(**arrays(imported, a=a, out=out))
    assert (out == 2 * a).all()


def test_vectors_are_an_axis_of_lanes():
    kernel = lp.make_kernel("{[i]: 0<=i<16}", "out[i] = 2*a[i]", [lp.GlobalArg("a,out", np.float32, 16)])
    kernel = lp.split_array_dim(kernel, [("a", 0), ("out", 0)], 4)
    kernel = lp.tag_array_axes(kernel, "a,out", "c,vec")
    kernel = lp.tag_inames(kernel, {"i_outer": "l.0", "i_inner": "vec"})
    imported = kingpost.from_loopy(kernel)
    assert "out_: f32[4, 4]" in imported.text and "{vector}" in imported.text
    lane = np.dtype({"names": ["x", "y"], "formats": [np.float32, np.float32]})
    kernel = lp.make_kernel(
        "{[i]: 0<=i<4}",
        "out[i] = 2*a[i]\nsum[i] = a[i].x + a[i].y",
        [lp.GlobalArg("a,out", lane, 4), lp.GlobalArg("sum", np.float32, 4)],
    )
    imported = kingpost.from_loopy(kernel)
    assert "`out` has an axis for the 2 lanes of its vectors" in imported.notes
    a, out, total = np.arange(8, dtype=np.float32).reshape(4, 2), np.zeros((4, 2), np.float32), np.zeros(4, np.float32)
    imported.compile("c")(**arrays(imported, a=a, out=out, sum=total))
    assert (out == 2 * a).all() and (total == a.sum(axis=1)).all()


NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]


@pytest.mark.parametrize("name", NUMBERS)
def test_every_type_of_numpy_is_stored(name):
    kind = np.dtype(name)
    kernel = lp.make_kernel("{[i]: 0<=i<16}", "out[i] = 2*a[i] + b[i]/2", [lp.GlobalArg("a,b,out", kind, 16)])
    a, b = (np.arange(16) % 5).astype(kind), (np.arange(16) % 7).astype(kind)
    imported = kingpost.from_loopy(kernel)
    for device in {"c", "opencl"} & set(kingpost.devices()):
        out = np.zeros(16, kind)
        imported.compile(device)(**arrays(imported, a=a, b=b, out=out))
        assert (out == 2 * a + (b / 2 if kind.kind == "f" else b // 2)).all()


def test_words_wrap_and_bits_are_those_of_c():
    kernel = lp.make_kernel(
        "{[i]: 0<=i<8}",
        """
        hash[i] = (w[i]*2654435769 + 7) >> 3
        bits[i] = ((k[i] & 12) | (k[i] ^ i)) + (~k[i] << 2)
        signed[i] = w[i] + 1
        back[i] = w[i] - 5
        """,
        [
            lp.GlobalArg("w,hash", np.uint32, 8),
            lp.GlobalArg("k,bits,back", np.int32, 8),
            lp.GlobalArg("signed", np.int64, 8),
        ],
    )
    w, k = np.array([0, 1, 2, 3, 2**31, 2**32 - 2, 2**32 - 1, 77], np.uint32), np.arange(-4, 4, dtype=np.int32)
    found = {"hash": np.zeros(8, np.uint32), "bits": np.zeros(8, np.int32), "back": np.zeros(8, np.int32)}
    found["signed"] = np.zeros(8, np.int64)
    imported = kingpost.from_loopy(kernel)
    imported.compile("c")(**arrays(imported, w=w, k=k, **found))
    assert (found["hash"] == (w * np.uint32(2654435769) + np.uint32(7)) >> np.uint32(3)).all()
    assert (found["bits"] == ((k & 12) | (k ^ np.arange(8))) + (~k << 2)).all()
    # the sum is one of 32 bits, as in C
    assert (found["signed"] == w + np.uint32(1)).all() and (found["back"] == (w - np.uint32(5)).view(np.int32)).all()


def test_truth_values_are_stored_and_reduced():
    kernel = lp.make_kernel(
        "{[i,j,k]: 0<=i<5 and 0<=j,k<4}",
        """
        some[i] = reduce(any, j, a[i, j] > 2)
        every[i] = reduce(all, k, m[k] or a[i, k] > 0)
        count[i] = some[i] + 1
        """,
        [
            lp.GlobalArg("a", F64, (5, 4)),
            lp.GlobalArg("m", np.bool_, 4),
            lp.GlobalArg("some,every", np.bool_, 5),
            lp.GlobalArg("count", np.int32, 5),
        ],
        seq_dependencies=True,
    )
    a, m = np.arange(-8.0, 12.0).reshape(5, 4), np.array([True, False, True, False])
    some, every, count = np.zeros(5, bool), np.zeros(5, bool), np.zeros(5, np.int32)
    imported = kingpost.from_loopy(kernel)
    assert "some: bool[5]" in imported.text and "any(j in 0..4: " in imported.text
    imported.compile("c")(**arrays(imported, a=a, m=m, some=some, every=every, count=count))
    assert (some == (a > 2).any(axis=1)).all() and (every == (m | (a > 0)).all(axis=1)).all()
    assert (count == some + 1).all()


@pytest.mark.parametrize(("kind", "part"), [(np.complex64, np.float32), (np.complex128, np.float64)])
def test_complex_numbers(kind, part):
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i,j<8}",
        """
        out[i] = conj(a[i])*b[i] + 2*a[i] - r[i]/b[i] + (1.5 - 2j)*i
        size[i] = real(a[i]*conj(a[i])) + real(b[i]*1j) - imag(a[i])
        total = sum(j, a[j]*b[j])
        root[i] = ((0 + 1j)*i + a[i])*b[i]**2
        """,
        [
            lp.GlobalArg("a,b,out,root", kind, 8),
            lp.GlobalArg("r,size", part, 8),
            lp.GlobalArg("total", kind, ()),
        ],
    )
    random = np.random.default_rng(3)
    a, b = (random.random(8) + 1j*random.random(8) + 0.1 for _ in range(2))
    a, b, r = a.astype(kind), b.astype(kind), random.random(8).astype(part)
    imported = kingpost.from_loopy(kernel)
    for device in {"c", "opencl"} & set(kingpost.devices()):
        found = {name: np.zeros(8, kind) for name in ("out", "root")}
        found |= {"size": np.zeros(8, part), "total": np.zeros(1, kind)}
        imported.compile(device)(**arrays(imported, a=a, b=b, r=r, **found))
        share = 1e-5 if kind is np.complex64 else 1e-13  # sums of 8 terms
        np.testing.assert_allclose(found["out"], a.conj()*b + 2*a - r/b + (1.5 - 2j)*np.arange(8), rtol=share)
        np.testing.assert_allclose(found["size"], abs(a)**2 + (b*1j).real - a.imag, rtol=share, atol=share)
        np.testing.assert_allclose(found["total"], [(a*b).sum()], rtol=share)
        np.testing.assert_allclose(found["root"], (1j*np.arange(8) + a)*b**2, rtol=share)


@pytest.mark.parametrize("kind", [np.complex64, np.complex128])
@pytest.mark.parametrize("scope", [lp.AddressSpace.GLOBAL, lp.AddressSpace.PRIVATE])
def test_tables_of_complex_numbers(kind, scope):
    turns = np.exp(-2j*np.pi*np.outer(np.arange(8), np.arange(8))/8).astype(kind)
    kernel = lp.make_kernel(
        "{[i,k,j]: 0<=i<3 and 0<=k,j<8}",
        "out[i, k] = sum(j, turns[k, j]*a[i, j])",
        [
            lp.GlobalArg("a,out", kind, (3, 8)),
            lp.TemporaryVariable("turns", kind, (8, 8), initializer=turns, read_only=True, address_space=scope),
        ],
    )
    random = np.random.default_rng(5)
    a = (random.random((3, 8)) + 1j*random.random((3, 8))).astype(kind)
    imported = kingpost.from_loopy(kernel)
    for device in ("c", "opencl"):
        if not any(name.split(":")[0] == device for name in kingpost.devices()):
            continue
        out = np.zeros_like(a)
        imported.compile(device)(**arrays(imported, a=a, out=out))
        share = 1e-5 if kind is np.complex64 else 1e-13  # sums of 8 terms
        np.testing.assert_allclose(out, np.fft.fft(a), rtol=share, atol=share)


@pytest.mark.parametrize("which", ["argmin", "argmax"])
@pytest.mark.parametrize("tag", [None, "l.0"])
def test_reductions_of_two_results(which, tag):
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i<3 and 0<=j<16}",
        f"value[i], at[i] = {which}(j, a[i, j], j)",
        [lp.GlobalArg("a", F64, (3, 16)), lp.GlobalArg("value", F64, 3), lp.GlobalArg("at", np.int32, 3)],
    )
    kernel = lp.tag_inames(kernel, {"j": tag} if tag else {})
    a = np.cos(np.arange(48.0)).reshape(3, 16)
    a[0, 3] = a[0, 5] = 2 if which == "argmax" else -2  # the last of equal ones is Loopy's
    proof = kingpost.prove_loopy(kernel)
    assert proof, str(proof)
    for device in {"c", "opencl"} & set(kingpost.devices()):
        value, at = np.zeros(3), np.zeros(3, np.int32)
        proof.imported.compile(device)(**arrays(proof.imported, a=a, value=value, at=at))
        assert (value == getattr(a, which[3:])(axis=1)).all()
        assert (at[1:] == getattr(a, which)(axis=1)[1:]).all() and at[0] in (3, 5)


def test_a_segmented_scan_starts_anew_at_each_flag():
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i<12 and 0<=j<=i}",
        "out[i], <>last = reduce(segmented(sum), j, a[j], flag[j])",
        [lp.GlobalArg("a,out", F64, 12), lp.GlobalArg("flag", np.int32, 12)],
    )
    a, flag, out = np.arange(12.0), np.zeros(12, np.int32), np.zeros(12)
    flag[[4, 9]] = 1
    imported = kingpost.from_loopy(kernel)
    imported.compile("c")(**arrays(imported, a=a, flag=flag, out=out))
    assert (out == np.concatenate([np.cumsum(part) for part in np.split(a, [4, 9])])).all()


def test_shapes_and_places_that_a_call_finds_out():
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i<n and 0<=j<m}",
        "out[i, j] = 2*a[i, j]\nfirst[j] = a[0, j]",
        [
            lp.GlobalArg("a", F64, shape=None),
            lp.GlobalArg("first", F64, "m", offset=3),
            lp.GlobalArg("out", F64, "n, m"),
            "...",
        ],
    )
    imported = kingpost.from_loopy(kernel)
    assert "a: f64[extent_a_0, extent_a_1] in" in imported.text
    a, out, first = np.arange(12.0).reshape(3, 4), np.zeros((3, 4)), np.zeros(7)
    imported.compile("c")(**arrays(imported, a=a, out=out, first=first[3:]))
    assert (out == 2 * a).all() and (first == [0, 0, 0, 0, 1, 2, 3]).all()


@pytest.mark.parametrize("axes", [("N2", "N0", "N1"), ("N0", "N1", "N2"), ("N1", "N2", "N0")])
def test_axes_in_another_order_are_found_in_the_array(axes):
    kernel = lp.make_kernel(
        "{[i,j,k]: 0<=i<n and 0<=j<m and 0<=k<3}",
        "out[i, j, k] = 2*a[i, j, k]",
        [lp.GlobalArg("a", F64, "n, m, 3"), lp.GlobalArg("out", F64, "n, m, 3"), "..."],
    )
    imported = kingpost.from_loopy(lp.tag_array_axes(kernel, "out", ",".join(axes)))
    order = sorted(range(3), key=lambda axis: -int(axes[axis][1]))
    assert f"arg out_: f64[n, m, 3] inout order({', '.join(map(str, order))})\n" in imported.text
    a = np.arange(60.0).reshape(4, 5, 3)
    for device in {"c", "opencl"} & set(kingpost.devices()):
        out = np.zeros([(4, 5, 3)[axis] for axis in order]).transpose(np.argsort(order))
        imported.compile(device)(**arrays(imported, a=a, out=out))
        assert (out == 2 * a).all()
    with pytest.raises(kingpost.LayoutError):
        imported.compile("c")(**arrays(imported, a=a, out=np.zeros((4, 5, 3))))


def test_a_linear_subscript_counts_elements():
    kernel = lp.make_kernel("{[i]: 0<=i<n}", "a[[i*n + i]] = 1", [lp.GlobalArg("a", F64, "n, n"), "..."])
    imported, a = kingpost.from_loopy(kernel), np.zeros((5, 5))
    imported.compile("c")(**arrays(imported, a=a))
    assert (a == np.eye(5)).all()


def test_each_field_of_a_structure_is_an_array():
    kind = np.dtype([("low", np.float32), ("hit", np.int64)])
    kernel = lp.make_kernel(
        "{[i]: 0<=i<6}", "r[i].hit = i % 2\nr[i].low = q[i].low + i", [lp.GlobalArg("r,q", kind, 6)]
    )
    imported = kingpost.from_loopy(kernel)
    assert imported.names.variables["r.hit"] == "r_hit" and "arg q_low: f32[6] in\n" in imported.text
    low, hit, other = np.zeros(6, np.float32), np.zeros(6, np.int64), np.ones(6, np.float32)
    fields = {"r.low": low, "r.hit": hit, "q.low": other, "q.hit": hit.copy()}
    imported.compile("c")(**arrays(imported, **fields))
    assert (low == np.arange(1, 7)).all() and (hit == np.arange(6) % 2).all()


def test_powers_of_integers_are_exact():
    kernel = lp.make_kernel("{[i]: 0<=i<9}", "out[i] = (i - 4)**e[i]", [lp.GlobalArg("e,out", np.int32, 9)])
    e, out = np.full(9, 5, np.int32), np.zeros(9, np.int32)
    imported = kingpost.from_loopy(kernel)
    imported.compile("c")(**arrays(imported, e=e, out=out))
    assert (out == np.arange(-4, 5) ** 5).all()


def test_a_reduction_without_loops_is_its_value():
    arguments = [lp.GlobalArg("a", np.int32, 4), lp.GlobalArg("out", np.int32, 4)]
    kernel = lp.make_kernel("{[i]: 0<=i<4}", "out[i] = reduce(any, [], a[i]) + reduce(max, [], 2*a[i])", arguments)
    imported, a, out = kingpost.from_loopy(kernel), np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    imported.compile("c")(**arrays(imported, a=a, out=out))
    assert (out == 3 * a).all()


def test_one_loop_of_two_reductions_is_one_of_each():
    arguments = [lp.GlobalArg("a", F64, 8), lp.GlobalArg("out", F64, ())]
    kernel = lp.make_kernel("{[i]: 0<=i<8}", "out = sum(i, a[i]) + sum(i, a[i]*a[i])", arguments)
    imported, a, out = kingpost.from_loopy(kernel), np.arange(8.0), np.zeros(1)
    imported.compile("c")(**arrays(imported, a=a, out=out))
    assert out[0] == a.sum() + (a * a).sum()


def test_rows_whose_length_is_data_are_proved():
    def rows(index):
        kernel = lp.make_kernel(
            ["{[i]: 0<=i<n}", "{[j]: 0<=j<length}"],
            f"""
            <> start = begin[i]
            <> length = begin[i + 1] - start
            y[{index}] = sum(j, a[[start + j]])
            """,
            [
                lp.GlobalArg("begin", np.int32, "n + 1"),
                lp.GlobalArg("a", F64, shape=None),
                lp.GlobalArg("y", F64, "n"),
                "...",
            ],
        )
        kernel = lp.split_iname(kernel, "i", 128, outer_tag="g.0", inner_tag="l.0")
        return kingpost.prove_loopy(kernel)

    proof = rows("i")
    assert proof, str(proof)
    assert rows("i - i % 2").race is not None


def test_local_values_are_saved_over_launches():
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i,j<10}",
        """
        <> t[i] = a[i] {id=first}
        ... gbarrier {id=between, dep=first}
        out[j] = t[j] {dep=between}
        """,
        [lp.GlobalArg("a,out", F64, 10)],
    )
    kernel = lp.tag_inames(lp.set_temporary_address_space(kernel, "t", "local"), {"i": "l.0", "j": "l.0"})
    proof = kingpost.prove_loopy(lp.save_and_reload_temporaries(lp.linearize(lp.preprocess_program(kernel))))
    assert proof, str(proof)
    a, out = np.arange(10.0), np.zeros(10)
    proof.imported.compile("c")(**arrays(proof.imported, a=a, out=out))
    assert (out == a).all()


def test_a_loop_of_launches_has_one_range():
    kernel = lp.make_kernel(
        "{[k,i]: 0<=k<3 and 0<=i<n}",
        """
        for k, i
            c[k, i] = a[k, i + 1]
            ... gbarrier
            out[k, i] = c[k, i]
        end
        """,
        [lp.GlobalArg("a", F64, "3, n + 1"), lp.GlobalArg("c,out", F64, "3, n"), "..."],
        seq_dependencies=True,
    )
    proof = kingpost.prove_loopy(lp.split_iname(kernel, "i", 4, outer_tag="g.0", inner_tag="l.0"))
    assert proof, str(proof)
    a, c, out = np.arange(18.0).reshape(3, 6), np.zeros((3, 5)), np.zeros((3, 5))
    proof.imported.compile("c")(**arrays(proof.imported, a=a, c=c, out=out))
    assert (out == a[:, 1:]).all()


def refusal(*arguments, **named):
    with pytest.raises(kingpost.ImportRefusal) as caught:
        kingpost.from_loopy(*arguments, **named)
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
    assert "f32[4]" in kingpost.from_loopy(kernel, types={"a": np.float32, "out": np.float32}).text
    kernel = lp.make_kernel("{[i,j]: 0<=i,j<4}", "out[i, j] = 0", [lp.GlobalArg("out", F64, (4, 4))])
    assert refusal(lp.tag_inames(kernel, {"i": "l.0", "j": "l.0"})).feature == "two loops on one axis"
    kernel = lp.make_kernel(
        ["{[i]: 0<=i<4}", "{[j]: 0<=j<m}"],
        "<> m = a[i]\nout[i, j] = 0 {id=put}",
        [lp.GlobalArg("a", np.int32, 4), lp.GlobalArg("out", F64, (4, 4))],
    )
    error = refusal(lp.tag_inames(kernel, {"j": "g.0"}))
    assert (error.feature, error.instruction) == ("work-groups that depend on data", "put")


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
    assert kingpost.Kernel.parse(capsys.readouterr().out).name == "loopy_kernel"
    assert main(["import-loopy", str(script), "--prove"]) == 1
    good, bad = capsys.readouterr().out.splitlines()
    assert good.startswith("`good`: `loopy_kernel` is free of races")
    assert bad.startswith("`bad`: `loopy_kernel` has a race")
    assert main(["import-loopy", str(script), "-o", str(tmp_path / "texts")]) == 0
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == ["bad.kingpost", "good.kingpost"]
    assert main(["import-loopy", str(script), "--only", "none"]) == 1
    assert "found no program of Loopy" in capsys.readouterr().err


@pytest.mark.parametrize(("domain", "left"), [("{[i,j]: 0<=i<n and 0<=j<0}", 1.0), (["{[i]: 0<=i<n}", "{[j]: 0<=j<0}"], 0.0)])
def test_loops_of_no_iterations_run_as_often_as_in_loopy(domain, left):
    arguments = [lp.GlobalArg("y", np.float64, "n"), "..."]
    program = lp.make_kernel(domain, "y[i] = sum(j, 1.0)", arguments, lang_version=(2018, 2))
    theirs, ours = np.ones(4), np.ones(4)
    program.copy(target=lp.ExecutableCTarget())(y=theirs, n=4)
    kingpost.from_loopy(program).compile("c")(y=ours)
    assert ours.tolist() == theirs.tolist() == [left]*4


PARTS = pkgutil.iter_modules(lp.transform.__path__)
TRANSFORMS = [lp, *(importlib.import_module(f"loopy.transform.{part.name}") for part in PARTS)]


def rows():
    """The rows of the book's table: names of Loopy, and of Kingpost."""
    page = (ROOT / "docs" / "book" / "src" / "loopy.md").read_text()
    lines = page.split("| Loopy | Kingpost | remark |")[1].splitlines()
    for line in lines[2 : lines.index("", 1)]:
        left, right, _ = line.strip("|").split("|")
        yield re.findall("`(.*?)`", left), re.findall("`(.*?)`", right)


@pytest.mark.parametrize(("theirs", "ours"), rows(), ids=lambda names: names[0])
def test_the_names_of_the_book_are_there(theirs, ours):
    assert all(any(hasattr(module, name) for module in TRANSFORMS) for name in theirs), theirs
    assert all(hasattr(kingpost.Schedule, name) or hasattr(kingpost, name) for name in ours) and ours
