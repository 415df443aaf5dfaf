"""Callees, random numbers, shared buffers and chunks of Loopy's."""

import importlib

import numpy as np
import pytest

import kingpost

lp = pytest.importorskip("loopy", reason="Loopy is missing (pip install 'kingpost[loopy]')")

from loopy.version import LOOPY_USE_LANGUAGE_VERSION_2018_2  # noqa: E402, F401 (Loopy looks for it)

from kingpost.loopy import random123  # noqa: E402

F64 = np.float64


def body(imported):
    return imported.text.split("\n\n", 2)[2]


def arrays(imported, **given):
    return {imported.names.variables[name]: value for name, value in given.items()}


def test_a_callee_of_numbers_is_a_rule_for_each_type():
    scaled = lp.make_function("{:}", "y = k*sin(x) + x", name="scaled")
    kernel = lp.make_kernel(
        "{[i]: 0<=i<n}",
        "[]: r[i] = scaled(i, q[i])\n[]: s[i] = scaled(3, p[2*i])",
        [
            lp.GlobalArg("r,q", F64, "n"),
            lp.GlobalArg("s", np.float32, "n"),
            lp.GlobalArg("p", np.float32, "2*n"),
            "...",
        ],
    )
    kernel = lp.merge([lp.split_iname(kernel, "i", 8, outer_tag="g.0", inner_tag="l.0"), scaled])
    imported = kingpost.from_loopy(kernel)
    assert imported.text.count("\nrule scaled") == 2 and "is inlined" not in " ".join(imported.notes)
    assert kingpost.prove_loopy(kernel)
    q, p = np.linspace(0, 1, 21), np.linspace(1, 2, 42).astype(np.float32)
    r, s = np.zeros(21), np.zeros(21, np.float32)
    imported.compile("c")(**arrays(imported, r=r, q=q, s=s, p=p))
    assert np.allclose(r, np.arange(21) * np.sin(q) + q, rtol=1e-14)
    assert np.allclose(s, 3 * np.sin(p[::2]) + p[::2], rtol=1e-6)


@pytest.mark.parametrize(
    ("domain", "callee", "call"),
    [
        ("{[l]: 0<=l<4}", "y[l] = 3*x[l]", "[m]: out[i, m] = f([m]: a[i, m])"),  # on arrays
        ("{:}", "<> t = 3*x {id=a}\ny = 2*t {dep=a}", "[]: out[i, m] = f(a[i, m])"),  # of two instructions
    ],
)
def test_other_callees_are_written_out(domain, callee, call):
    function = lp.make_function(domain, callee, name="f")
    arguments = [lp.GlobalArg("a,out", F64, (8, 4))]
    kernel = lp.make_kernel("{[i,m]: 0<=i<8 and 0<=m<4}", call, arguments, name="caller")
    imported = kingpost.from_loopy(lp.merge([kernel, function]))
    assert "`f` is inlined" in imported.notes and "rule" not in imported.text


#: Known answers of Random123 (`kat_vectors`), of counters and keys of zeros, of ones, and of digits of pi.
WORDS = ([0] * 4, [0xFFFFFFFF] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344])
KEYS = ([0] * 4, [0xFFFFFFFF] * 4, [0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89])
ANSWERS = {
    "philox4x32": (
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
    "threefry4x32": (
        [0x9C6CA96A, 0xE17EAE66, 0xFC10ECD4, 0x5256A7D8],
        [0x2A881696, 0x57012287, 0xF6C7446E, 0xA16A6732],
        [0x59CD1DBB, 0xB8879579, 0x86B5D00C, 0xAC8B6D84],
    ),
}


@pytest.mark.parametrize("name", random123.NAMES)
def test_random_numbers_are_those_of_random123(name):
    width = 2 if name == "philox4x32" else 4
    head = f"kernel k\n\narg c: u32[4] in\narg k: u32[{width}] in\narg w: u32[4] inout\n\n"
    call = f"\ncall {name}(ctr = c[0..], key = k[0..], drawn = w[0..])\n"
    compiled = kingpost.compile(head + random123.function(name) + call, "c")
    for counter, key, answer in zip(WORDS, KEYS, ANSWERS[name], strict=True):
        words = np.zeros(4, np.uint32)
        compiled(c=np.array(counter, np.uint32), k=np.array(key[:width], np.uint32), w=words)
        assert words.tolist() == answer


def test_counters_count_what_is_drawn():
    pytest.importorskip("pyopencl", reason="pyopencl is missing: Loopy has its vector types from there")
    kernel = lp.make_kernel(
        "{[i]: 0<=i<n}",
        """
        <> key = make_uint2(i, 7) {id=key}
        <> ctr = make_uint4(4294967295, 4294967295, i, 3) {id=ctr}
        <> x, ctr = philox4x32_f64(ctr, key) {id=first, dep=key:ctr}
        <> y, ctr = philox4x32(ctr, key) {id=second, dep=first}
        out[i, 0] = x.s0 {dep=first}
        out[i, 1] = y.s3 {dep=second}
        """,
        [lp.GlobalArg("out", F64, "n, 2"), "..."],
    )
    imported = kingpost.from_loopy(lp.split_iname(kernel, "i", 4, outer_tag="g.0", inner_tag="l.0"))
    out = np.zeros((6, 2))
    imported.compile("c")(**arrays(imported, out=out))
    for i in range(6):
        # the carry goes over two words; a number of double precision takes two draws
        counters = [[0xFFFFFFFF, 0xFFFFFFFF, i, 3], [0, 0, i + 1, 3], [1, 0, i + 1, 3]]
        first, second, third = (philox(counter, [i, 7]) for counter in counters)
        assert out[i, 0] == first[0] * 2.0**-32 + second[0] * 2.0**-64 and out[i, 1] == third[3]


def philox(counter, key):
    text = f"kernel k\n\narg w: u32[4] inout\ntemp c: u32[4]\ntemp k: u32[2]\n\n{random123.function('philox4x32')}\n"
    text += "".join(f"c[{at}] = {word}\n" for at, word in enumerate(counter))
    text += "".join(f"k[{at}] = {word}\n" for at, word in enumerate(key))
    words = np.zeros(4, np.uint32)
    kingpost.compile(text + "call philox4x32(ctr = c[0..], key = k[0..], drawn = w[0..])\n", "c")(w=words)
    return words.tolist()


def shared_buffer(length=10):
    """Two temporaries in one buffer, the first of which is read after the second is written."""
    kernel = lp.make_kernel(
        "{[i]: 0<=i<10}",
        "<> a[i] = 0 {id=a}\nb[i] = i {id=b, dep=a}\nout[i] = a[i] {dep=b}",
        [lp.GlobalArg("out", np.int32, 10), lp.TemporaryVariable("b", np.int32, (length,))],
    )
    kernel = lp.tag_inames(kernel, {"i": "l.0"})
    for name in "ab":
        kernel = lp.set_temporary_address_space(kernel, name, "local")
    return kernel


def aliased(kernel):
    kernel = lp.alias_temporaries(kernel, ["a", "b"], synchronize_for_exclusive_use=False)
    return lp.allocate_temporaries_for_base_storage(lp.preprocess_program(kernel))


def test_temporaries_that_overlap_in_one_buffer_are_one():
    proof = kingpost.prove_loopy(aliased(shared_buffer()))
    assert proof, str(proof)
    assert "`b` is `a`, whose buffer it shares" in proof.imported.notes
    out = np.full(10, -1, np.int32)
    proof.imported.compile("c")(**arrays(proof.imported, out=out))
    assert (out == np.arange(10)).all()  # as Loopy's code has it


def test_a_shared_buffer_that_is_read_too_late_is_an_error_with_instances():
    text = "kernel k\n\narg o: f64[4] inout\ntemp a: f64[4] local storage(s)\ntemp b: f64[4] local storage(s)\n\n"
    text += "for i in 0..4 {l.0}\n  a[i] = 1.0\nfor j in 0..4 {l.0}\n  b[j] = 2.0\nfor k in 0..4 {l.0}\n  o[k] = a[k]\n"
    with pytest.raises(kingpost.StorageError) as caught:
        kingpost.source(kingpost.Kernel.parse(text), "c")
    assert "`b`" in str(caught.value) and caught.value.witness is not None


def test_temporaries_of_two_shapes_that_overlap_are_refused():
    with pytest.raises(kingpost.ImportRefusal) as caught:
        kingpost.from_loopy(aliased(shared_buffer(12)))
    assert caught.value.feature == "a buffer of several temporaries at once"
    assert "found `a` and `b`" in str(caught.value)


def test_chunks_of_a_loop_of_known_length_are_proved():
    arguments = [lp.GlobalArg("out,a", np.float32, shape=lp.auto), "..."]
    kernel = lp.make_kernel("{[i]: 0<=i<n}", "out[i] = 2*a[i]", arguments)
    kernel = lp.chunk_iname(lp.assume(kernel, "n > 0"), "i", 3, inner_tag="l.0")
    kernel = lp.fix_parameters(lp.prioritize_loops(kernel, "i_outer, i_inner"), n=130)
    proof = kingpost.prove_loopy(kernel)
    assert proof, str(proof)
    a, out = np.arange(130, dtype=np.float32), np.zeros(130, np.float32)
    proof.imported.compile("c")(**arrays(proof.imported, a=a, out=out))
    assert (out == 2 * a).all()


def smallest(*values):
    return importlib.import_module("pymbolic.primitives").Min(values)


def test_minima_of_one_iname_are_sums_of_steps():
    i, out, q = map(importlib.import_module("pymbolic").var, ("i", "out", "q"))
    arguments = [lp.GlobalArg("out", np.int32, 6), lp.GlobalArg("q", np.int32, 4)]
    for place, is_sum in ((smallest(i * i, 5), True), (smallest(q[i], 5), False)):
        stored = lp.Assignment(out[place], i + q[i], id="stored")
        imported = kingpost.from_loopy(lp.make_kernel("{[i]: 0<=i<4}", [stored], arguments))
        index = body(imported).split(" = ")[0]
        assert ("floor_div(" in index) == is_sum and ("min(" in index) != is_sum
        found, given = np.zeros(6, np.int32), np.array([0, 1, 4, 9], np.int32)
        imported.compile("c")(**arrays(imported, out=found, q=given))
        assert found.tolist() == [0, 2, 0, 0, 6, 12]


@pytest.mark.parametrize("tag", ["g.0", "l.0"])
def test_an_axis_that_no_instruction_needs_has_no_bound(tag):
    kernel = lp.make_kernel("{[i]: 0<=i<n}", "for i\n  c = 1\nend", [lp.GlobalArg("c", np.int32, ()), "..."])
    proof = kingpost.prove_loopy(lp.tag_inames(kernel, {"i": tag}))
    assert proof, str(proof)


def test_places_count_vectors_or_their_lanes():
    kernel = lp.make_kernel(
        "{[i,j]: 0<=i<4 and 0<=j<5}",
        "out[i, j] = indexof_vec(out[i, j])\nat[j] = indexof(out[0, j])",
        [lp.GlobalArg("out", np.float32, shape=(4, 5)), lp.GlobalArg("at", np.int32, shape=5)],
    )
    kernel = lp.tag_array_axes(kernel, "out", "vec,c")
    imported = kingpost.from_loopy(kernel)
    out, at = np.zeros((5, 4), np.float32), np.zeros(5, np.int32)
    imported.compile("c")(**arrays(imported, out=out.T, at=at))
    assert (out.ravel() == np.arange(20)).all() and (at == np.arange(5)).all()


def test_arrays_of_structures_are_passed_as_they_are():
    kind = np.dtype([("low", np.float32), ("hit", np.int64)])
    kernel = lp.make_kernel(
        "{[i]: 0<=i<6}", "r[i].hit = q[i].hit + i\nr[i].low = 2*q[i].low", [lp.GlobalArg("r,q", kind, 6)]
    )
    q, r = np.zeros(6, kind), np.zeros(6, kind)
    q["low"], q["hit"] = np.arange(6), 7
    kingpost.from_loopy(kernel).compile("c")(q=q, r=r)
    assert (r["low"] == 2 * np.arange(6)).all() and (r["hit"] == 7 + np.arange(6)).all()
