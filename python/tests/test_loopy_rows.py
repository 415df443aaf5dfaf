"""Rows of the book's table: a transformation of Loopy's and the steps next to it have the same results."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np
import pytest
import kingpost

lp = pytest.importorskip("loopy")

F64 = np.float64
PAGE = Path(__file__).resolve().parents[2] / "docs" / "book" / "src" / "loopy.md"


def made(domain, text, *arrays, **more):
    """A kernel whose arrays have extents from `24`, `6, 8` and so on."""
    arguments = [lp.GlobalArg(names, F64, shape) for names, shape in arrays]
    return lp.make_kernel(domain, text, [*arguments, *more.pop("more", ["..."])], lang_version=(2018, 2), **more)


def line():
    return made("{[i]: 0<=i<24}", "y[i] = 2*a[i] {id=put}", ("a,y", 24))


def plane():
    return made("{[i,j]: 0<=i<6 and 0<=j<8}", "y[i,j] = 3*a[i,j] {id=put}", ("a,y", (6, 8)))


def rows():
    return made("{[i,j]: 0<=i<6 and 0<=j<8}", "y[i] = sum(j, a[i,j]) {id=put}", ("a", (6, 8)), ("y", 6))


def two(loops="i,p", first="i", second="p"):
    """Two instructions in loops of their own, or in one."""
    text = f"b[{first}] = 2*a[{first}] {{id=first}}\ny[{second}] = b[{second}] + 1 {{id=second,dep=first}}"
    bounds = " and ".join(f"0<={name}<24" for name in loops.split(","))
    return made(f"{{[{loops}]: {bounds}}}", text, ("a,b,y", 24))


def temporary(shape=24, first="i", second="p"):
    loops = "i,p" if first != second else "i"
    bounds = " and ".join(f"0<={name}<24" for name in loops.split(","))
    index = f"[{first}]", f"[{second}]"
    if shape == ():
        index = "", ""
    text = f"t{index[0]} = 2*a[{first}] {{id=first}}\ny[{second}] = t{index[1]} + 1 {{id=second,dep=first}}"
    return made(f"{{[{loops}]: {bounds}}}", text, ("a,y", 24), more=[lp.TemporaryVariable("t", F64, shape)])


def squares():
    return made("{[i]: 0<=i<24}", "f(k) := a[k]*a[k]\ny[i] = f(i) + 1 {id=put}", ("a,y", 24))


def launches():
    text = "b[i] = 2*a[i] {id=first}\n... gbarrier {id=all,dep=first}\ny[p] = b[23 - p] {id=second,dep=all}"
    return made("{[i,p]: 0<=i,p<24}", text, ("a,b,y", 24))


def called():
    callee = lp.make_function("{[l]: 0<=l<8}", "y[l] = 3*x[l]", name="triple", lang_version=(2018, 2))
    caller = made("{[i,m]: 0<=i<6 and 0<=m<8}", "[m]: y[i, m] = triple([m]: a[i, m])", ("a,y", (6, 8)))
    return lp.merge([caller, callee])


def sized():
    return made("{[i]: 0<=i<n}", "y[i] = 2*a[i] {id=put}", ("a,y", "n"))


def after():
    """A kernel that reads what :func:`line` writes."""
    return made("{[p]: 0<=p<24}", "z[p] = y[p] + 1 {id=next}", ("y,z", 24), name="after")


def extracted(schedule):
    """The rule that the import has written out."""
    schedule.extract_rule("f", ["k"], "a[k]*a[k]")


def entry(program, transform, *arguments):
    """The program with its kernel transformed: some transformations take one."""
    return program.with_kernel(transform(program.default_entrypoint, *arguments))


@dataclass
class Row:
    """A kernel, what Loopy does to it, and the steps."""

    kernel: Callable
    loopy: Callable
    steps: Callable


def insn(name):
    return {"insn": name}


ROWS = {
    "split_iname": Row(line, lambda k: lp.split_iname(k, "i", 5), lambda s: s.split("i", 5)),
    "chunk_iname": Row(line, lambda k: lp.chunk_iname(k, "i", 3), lambda s: s.split("i", 8)),
    "join_inames": Row(plane, lambda k: lp.join_inames(k, ["i", "j"], "ij"), lambda s: s.join_inames("i", "j", "ij")),
    "rename_iname": Row(line, lambda k: lp.rename_iname(k, "i", "p"), lambda s: s.rename("iname", "i", "p")),
    "rename_argument": Row(
        line,
        lambda k: entry(k, lp.rename_argument, "a", "b"),
        lambda s: kingpost.rename_arguments(s.kernel, {"a": "b"}),
    ),
    "duplicate_inames": Row(
        lambda: two("i", "i", "i"),
        lambda k: lp.duplicate_inames(k, "i", "id:second"),
        lambda s: s.duplicate_iname("i", insn("second")),
    ),
    "rename_inames": Row(
        two, lambda k: lp.rename_inames(k, ["p"], "i", existing_ok=True), lambda s: s.fuse_loops("i", "p")
    ),
    "tag_inames": Row(line, lambda k: lp.tag_inames(k, {"i": "g.0"}), lambda s: s.tag("i", "g.0")),
    "untag_inames": Row(
        line,
        lambda k: entry(lp.tag_inames(k, {"i": "unr"}), lp.untag_inames, "i", lp.kernel.data.UnrollTag),
        lambda s: (s.tag("i", "unroll"), s.tag("i", "sequential")),
    ),
    "prioritize_loops": Row(plane, lambda k: lp.prioritize_loops(k, "j,i"), lambda s: s.reorder("j", "i")),
    "affine_map_inames": Row(
        line, lambda k: lp.affine_map_inames(k, "i", "p", "p = 23 - i"), lambda s: s.reverse_iname("i")
    ),
    "add_prefetch": Row(
        plane,
        lambda k: lp.add_prefetch(k, "a", ["j"], fetch_outer_inames=frozenset(["i"]), default_tag=None),
        lambda s: s.prefetch("a", "i", "private"),
    ),
    "precompute": Row(
        squares,
        lambda k: lp.precompute(k, "f", ["i"], default_tag=None),
        lambda s: (extracted(s), s.precompute_rule("f", space="private")),
    ),
    "buffer_array": Row(
        plane,
        lambda k: lp.buffer_array(k, "y", ["j"], init_expression="0", default_tag=None),
        lambda s: s.buffer_writes("y", at="i", space="private"),
    ),
    "extract_subst": Row(
        line,
        lambda k: lp.extract_subst(k, "f", "2*a[k]", parameters="k"),
        lambda s: s.extract_rule("f", ["k"], "2*a[k]"),
    ),
    "expand_subst": Row(squares, lp.expand_subst, lambda s: (extracted(s), s.expand_rule("f"))),
    "assignment_to_subst": Row(
        lambda: temporary((), "i", "i"),
        lambda k: lp.assignment_to_subst(k, "t"),
        lambda s: s.assign_to_rule("t"),
    ),
    "realize_reduction": Row(rows, lambda k: lp.realize_reduction(k), lambda s: s.realise("j")),
    "split_reduction_inward": Row(
        rows,
        lambda k: lp.split_reduction_outward(lp.split_iname(k, "j", 4), "j_outer"),
        lambda s: (s.realise("j"), s.split("j", 4), s.factor_update("put_update", ["j_o"])),
    ),
    "collect_common_factors_on_increment": Row(
        lambda: made(
            "{[i,j]: 0<=i<6 and 0<=j<8}",
            """
            <> t = 0.0 {id=start,inames=i}
            t = t + w[i]*a[i,j] {id=add,dep=start}
            t = t + w[i]*v[i,j] {id=more,dep=start,nosync=add}
            y[i] = t {dep=add:more}
            """,
            ("a,v", (6, 8)),
            ("w,y", 6),
        ),
        lambda k: lp.collect_common_factors_on_increment(k, "t"),
        lambda s: (s.factor_out("j", "add"), s.factor_out("j", "more")),
    ),
    "add_inames_to_insn": Row(
        lambda: two("i", "i", "i"),
        lambda k: lp.add_inames_to_insn(k, "i", "id:first"),
        lambda s: s.distribute("i", "second"),
    ),
    "remove_inames_from_insn": Row(
        lambda: made(
            "{[i]: 0<=i<24}",
            "<> t = 3*w[0] {id=first,inames=i}\ny[i] = t*a[i] {id=second,dep=first}",
            ("a,y", 24),
            ("w", 1),
        ),
        lambda k: lp.remove_inames_from_insn(k, frozenset(["i"]), "id:first"),
        lambda s: s.hoist_insn("first"),
    ),
    "set_temporary_address_space": Row(
        temporary,
        lambda k: lp.set_temporary_address_space(k, "t", "local"),
        lambda s: s.set_address_space("t", "local"),
    ),
    "privatize_temporaries_with_inames": Row(
        lambda: temporary((), "i", "i"),
        lambda k: lp.privatize_temporaries_with_inames(k, "i", {"t"}),
        lambda s: s.expand("t", "i"),
    ),
    "tag_array_axes": Row(
        plane, lambda k: lp.tag_array_axes(k, "y", "N0,N1"), lambda s: s.change_layout("y", "order(1, 0)")
    ),
    "split_array_dim": Row(
        lambda: temporary(), lambda k: lp.split_array_dim(k, ("t", 0), 4), lambda s: s.split_array_axis("t", 0, 4)
    ),
    "add_padding": Row(
        lambda: made(
            "{[i,j,p]: 0<=i<6 and 0<=j,p<8}",
            "<> t[i, j] = 2*a[i, j] {id=first}\ny[i, p] = t[i, p] {id=second,dep=first}",
            ("a,y", (6, 8)),
        ),
        lambda k: k,
        lambda s: s.pad_array("t", 1, 1),
    ),
    "concatenate_arrays": Row(
        lambda: made(
            "{[i,p]: 0<=i,p<24}",
            "<> t[i] = 2*a[i] {id=first}\n<> u[i] = 3*a[i] {id=other}\ny[p] = t[p] + u[p] {dep=first:other}",
            ("a,y", 24),
        ),
        lambda k: lp.concatenate_arrays(k, ["t", "u"], "both"),
        lambda s: s.join_arrays(["t", "u"], "both", 0),
    ),
    "alias_temporaries": Row(
        lambda: made(
            "{[i,p,q,r]: 0<=i,p,q,r<24}",
            """
            <> t[i] = 2*a[i] {id=first}
            b[p] = t[23 - p] {id=second,dep=first}
            <> u[q] = 3*a[q] {id=third,dep=second}
            y[r] = u[23 - r] {id=last,dep=third}
            """,
            ("a,b,y", 24),
        ),
        lambda k: lp.alias_temporaries(k, ["t", "u"]),
        lambda s: s.alias_storage(["t", "u"], "shared"),
    ),
    "save_and_reload_temporaries": Row(launches, lambda k: k, lambda s: s.split_launch(["p"])),
    "get_kennedy_unweighted_fusion_candidates": Row(
        two,
        lambda k: entry(k, lambda one: lp.rename_inames_in_batch(
            one, lp.get_kennedy_unweighted_fusion_candidates(one, frozenset(["i", "p"]))
        )),
        lambda s: s.fuse_loops("i", "p"),
    ),
    "fix_parameters": Row(sized, lambda k: lp.fix_parameters(k, n=24), lambda s: s.fix_parameter("n", 24)),
    "assume": Row(
        sized, lambda k: lp.assume(k, "n mod 8 = 0"), lambda s: s.assume(multiple_of={"param": "n", "factor": 8})
    ),
    "remove_unused_inames": Row(
        lambda: made("{[i,j]: 0<=i<24 and 0<=j<3}", "y[i] = 2*a[i]", ("a,y", 24)),
        lambda k: lp.remove_unused_inames(k),
        lambda s: None,
    ),
    "remove_unused_arguments": Row(
        lambda: made("{[i]: 0<=i<24}", "y[i] = 2*a[i]", ("a,y,w", 24)),
        lambda k: entry(k, lp.remove_unused_arguments),
        lambda s: kingpost.remove_unused_arguments(s.kernel)[0],
    ),
    "inline_callable_kernel": Row(called, lambda k: lp.inline_callable_kernel(k, "triple"), lambda s: None),
    "pack_and_unpack_args_for_call": Row(
        called,
        lambda k: k,  # Loopy packs for all calls of a loop at once, into one copy
        lambda s: (s.prefetch("a", "i", "private"), s.buffer_writes("y", at="i", space="private")),
    ),
    "add_dependency": Row(
        lambda: made("{[i]: 0<=i<24}", "b[i] = a[i] {id=first}\ny[i] = 2*a[i] {id=second}", ("a,b,y", 24)),
        lambda k: lp.add_dependency(k, "id:first", "id:second"),
        lambda s: s.move_insns(["second"], {"before": "first"}),
    ),
    "fuse_kernels": Row(
        line,
        lambda k: lp.fuse_kernels([k, after()], data_flow=[("y", 0, 1)]),
        lambda s: kingpost.fuse_kernels([s.kernel, kingpost.from_loopy(after()).kernel]).kernel,
    ),
    "to_batched": Row(
        line,
        lambda k: lp.to_batched(k, 5, ("a", "y")),
        lambda s: kingpost.to_batched(s.kernel, 5, ["a", "y"]),
    ),
}


def names():
    """The names of Loopy that stand first in the rows of the book's table."""
    lines = PAGE.read_text().split("| Loopy | Kingpost | remark |")[1].splitlines()
    return [re.search("`(.*?)`", line).group(1) for line in lines[2 : lines.index("", 1)]]


def test_each_row_is_tested():
    assert names() == list(ROWS)


def run(kernel):
    """The arrays after a run of a kernel, those that it only reads are the same for all."""
    random = np.random.default_rng(7)
    values = {}
    array = r"^arg (\w+): f64\[(.*)\] (in|inout)( order\(1, 0\))?$"
    for name, extents, access, order in re.findall(array, str(kernel), re.MULTILINE):
        shape = [24 if extent == "n" else int(extent) for extent in extents.split(", ")]
        value = random.random(shape) if access == "in" else np.zeros(shape)
        values[name] = np.asfortranarray(value) if order else value
    sizes = {"n": 24} if "param n:" in str(kernel) else {}
    kingpost.compile(kernel, "c")(**values, **sizes)
    return values


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_the_steps_next_to_a_transformation_have_its_results(name):
    row = ROWS[name]
    schedule = kingpost.Schedule(kingpost.from_loopy(row.kernel()).kernel)
    plain = run(schedule.kernel)
    result = row.steps(schedule)
    theirs = run(kingpost.from_loopy(row.loopy(row.kernel())).kernel)
    ours = run(result if isinstance(result, kingpost.Kernel) else schedule.kernel)
    assert plain["y"].any() and ours.keys() == theirs.keys()
    for array, value in ours.items():
        np.testing.assert_allclose(value, theirs[array], rtol=1e-14)  # sums of 8 terms
        if array in plain and plain[array].shape == value.shape:
            np.testing.assert_allclose(value, plain[array], rtol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_a_rule_with_a_reduction_is_stored_as_loopy_stores_it():
    rule = "along(p, q) := sum(j, d[q, j]*u[p, j])"
    kernel = made(
        "{[e,i,j]: 0<=e<6 and 0<=i,j<8}", f"{rule}\ny[e, i] = along(e, i)*along(e, i)", ("d", (8, 8)), ("u,y", (6, 8))
    )
    theirs = kingpost.from_loopy(lp.precompute(kernel, "along", ["i"], default_tag=None)).kernel
    schedule = kingpost.Schedule(kingpost.from_loopy(kernel).kernel)
    schedule.precompute_rule("along(p, q) := sum(j in 0..8: d[q, j]*u[p, j])", at="e", space="private")
    assert str(schedule.kernel).count("sum(") == 1 and "along_values: f64[8] private" in str(schedule.kernel)
    ours, theirs = run(schedule.kernel), run(theirs)
    np.testing.assert_allclose(ours["y"], theirs["y"], rtol=1e-14)  # sums of 8 terms
    np.testing.assert_allclose(ours["y"], (ours["u"] @ ours["d"].T)**2, rtol=1e-13)  # of positive terms in any order


def test_counts_are_those_of_loopy():
    kernel = lp.set_options(sized(), allow_terminal_colors=False)
    stats = kingpost.statistics(kingpost.from_loopy(kernel).kernel)
    operations = lp.get_op_map(kernel, subgroup_size=1).filter_by(dtype=[F64])
    assert operations.eval_and_sum({"n": 100}) == stats.flops(n=100) == 100
    accesses = lp.get_mem_access_map(kernel, subgroup_size=1)
    for array, counts in (("a", stats.reads), ("y", stats.writes)):
        assert accesses.filter_by(variable=[array]).eval_and_sum({"n": 100}) == counts[array](n=100) == 100


def test_barriers_are_counted_as_loopy_counts_them():
    kernel = lp.make_kernel(
        "{[b,i,j,s]: 0<=b<m and 0<=i,j<128 and 0<=s<n}",
        """
        for b, s
            <> t[i] = a[b, i] {id=put}
            o[b, j] = t[127 - j] + s {dep=put}
        end
        """,
        [lp.GlobalArg("a,o", F64, "m, 128"), "..."],
    )
    kernel = lp.set_temporary_address_space(kernel, "t", "local")
    kernel = lp.tag_inames(kernel, {"b": "g.0", "i": "l.0", "j": "l.0"})
    kernel = lp.set_options(lp.assume(kernel, "n >= 1 and m >= 1"), allow_terminal_colors=False)
    stats = kingpost.statistics(kingpost.from_loopy(kernel).kernel)
    theirs = lp.get_synchronization_map(kernel, subgroup_size=1)
    local = theirs.filter_by(kind=["barrier_local"]).eval_and_sum({"n": 3, "m": 5})
    # Loopy counts what one group passes
    assert stats.barriers(n=3, m=5) == 5 * local
    assert theirs.filter_by(kind=["kernel_launch"]).eval_and_sum({"n": 3, "m": 5}) == stats.launches() == 1
