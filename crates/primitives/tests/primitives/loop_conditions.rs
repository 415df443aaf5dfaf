//! Loops that run only under a condition on the loops around them, or on parameters: what a
//! primitive makes of them runs under it as well. A story is run at sizes with and without the
//! condition.

use crate::story::story;
use kingpost_ir::AddressSpace::{Local, Private};
use kingpost_ir::AxisTag;
use kingpost_primitives::primitives::*;
use kingpost_primitives::{Selection, Step};

/// Conditions on a loop around, on parameters, with remainders, on both; each is false at some
/// size.
const CONDITIONS: [&str; 6] = [
    "i + 2 < n",
    "n <= 3",
    "i == 1",
    "floor_div(i, 2) >= 1 and n >= 4",
    "n mod 2 == 1",
    "(i + n) mod 3 == 1",
];

/// Conditions of the outermost loop, which can only be on parameters.
const OF_PARAMETERS: [&str; 4] = ["n <= 3", "n mod 2 == 1", "floor_div(n, 2) >= 2", "n >= 1 and n <= 3"];

/// Runs steps on a program in which `WHERE` stands for each of the conditions; all must be
/// accepted.
#[track_caller]
fn keeps(conditions: &[&str], program: &str, steps: &[Step]) {
    for condition in conditions {
        let told = story(&program.replace("WHERE", &format!("where {condition}")), steps);
        assert!(!told.contains("\nrefused: "), "{told}");
    }
}

/// A nest whose inner loop is conditional.
const INNER: &str = "kernel inner
param n: i32
arg a: f64[n, 8] in
arg y: f64[n, 8] inout
for i in 0..n
  for j in 0..8 WHERE
    s: y[i, j] += 2.0*a[i, j]
";

/// A loop of parametric length, from elsewhere than zero.
const LONG: &str = "kernel long
param n: i32
arg a: f64[n, n + 8] in
arg y: f64[n, n + 8] inout
for i in 0..n
  for j in 3..n + 5 WHERE
    s: y[i, j] += 2.0*a[i, j]
";

/// A loop that is conditional, with a loop inside.
const OUTER: &str = "kernel outer
param n: i32
arg a: f64[n, 8, 4] in
arg y: f64[n, 8] inout
for i in 0..n
  for j in 0..n + 1 WHERE
    for k in 0..4
      s: y[i, j mod 8] += f64(k)*a[i, j mod 8, k]
";

/// The outermost loop is conditional.
const FIRST: &str = "kernel first
param n: i32
arg a: f64[8, 4] in
arg y: f64[8] inout
for j in 0..8 WHERE
  for k in 0..4
    s: y[j] += f64(k)*a[j, k]
";

/// Two statements in a conditional loop.
const TWO: &str = "kernel two
param n: i32
arg a: f64[n, 8] in
arg y: f64[n, 8] inout
arg z: f64[n, 8] inout
for i in 0..n
  for j in 0..8 WHERE
    s: y[i, j] += 2.0*a[i, j]
    u: z[i, j] += y[i, j]
";

/// A value that is filled and used in one iteration of a conditional loop.
const FILLED: &str = "kernel filled
param n: i32
arg a: f64[n, n, 4] in
arg y: f64[n, n, 4] inout
temp t: f64[4] private
for i in 0..n
  for j in 0..n WHERE
    for k in 0..4
      f: t[k] = a[i, j, k]
    for l in 0..4
      s: y[i, j, l] += t[l]
";

/// A reduction whose loop is conditional.
const REDUCTION: &str = "kernel reduction
param n: i32
arg a: f64[n, 8] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] += sum(j in 0..8 WHERE: a[i, j])
";

fn rows(rows: &[&[i64]]) -> Vec<Vec<i64>> {
    rows.iter().map(|row| row.to_vec()).collect()
}

macro_rules! all_keep {
    ($($name:ident: $program:expr, [$($step:expr),* $(,)?] $(under $conditions:expr)?;)*) => {
        $(#[test] fn $name() {
            let conditions = [&CONDITIONS[..], $(&$conditions[..])?];
            keeps(conditions[conditions.len() - 1], $program, &[$($step.into()),*]);
        })*
    };
}

all_keep! {
    mapped_loop: INNER, [MapInames::new(["j"], rows(&[&[-1]]))];
    mapped_with_a_loop_around: INNER, [MapInames::new(["i", "j"], rows(&[&[1, 1], &[0, 1]]))] under CONDITIONS[..5];
    mapped_with_a_loop_inside: OUTER, [MapInames::new(["j", "k"], rows(&[&[1, 1], &[0, 1]]))];
    mapped_three: OUTER, [MapInames::new(["i", "j", "k"], rows(&[&[1, 0, 0], &[0, 1, 2], &[0, 0, -1]]))];
    mapped_outermost: FIRST, [MapInames::new(["j", "k"], rows(&[&[0, 1], &[1, 0]])).shifted([2, -1])] under OF_PARAMETERS;
    split: INNER, [SplitIname::new("j", 4)];
    split_into_uneven_blocks: LONG, [SplitIname::new("j", 3)];
    split_with_its_remainder_peeled: LONG, [SplitIname::new("j", 4).with_tail(Tail::Peel)];
    split_without_remainder: INNER, [SplitIname::new("j", 2).with_tail(Tail::Exact)];
    split_reduction: REDUCTION, [SplitIname::new("j", 3)];
    joined_inner: INNER, [JoinInames::new("i", "j")];
    joined_outer: OUTER, [JoinInames::new("j", "k")];
    joined_three: &OUTER.replace("n + 1", "9"), [JoinInames::new("j", "k"), JoinInames::new("i", "j_k")];
    joined_outermost: FIRST, [JoinInames::new("j", "k")] under OF_PARAMETERS;
    skewed: LONG, [SkewIname::new("j", "i", 2)];
    shifted: LONG, [ShiftIname::new("j", 3).and(-1, "n")];
    reversed: LONG, [ReverseIname::new("j")];
    reversed_reduction: REDUCTION, [ReverseIname::new("j")];
    first_peeled: LONG, [PeelIname::first("j", 2)];
    last_peeled: LONG, [PeelIname::last("j", 2)];
    more_peeled_than_there_is: INNER, [PeelIname::first("j", 9)];
    interchanged_with_a_loop_around: INNER, [InterchangeInames::new("i", "j")];
    interchanged_with_a_loop_inside: OUTER, [InterchangeInames::new("j", "k")];
    duplicated: TWO, [DuplicateIname::new("j", Selection::Insn("u".into()))];
    distributed: TWO, [DistributeLoop::new("j", ["u"])];
    distributed_around: TWO, [DistributeLoop::new("j", ["u"]), DistributeLoop::new("i", ["u"])];
    fused: TWO, [DistributeLoop::new("j", ["u"]), FuseLoops::new("j", "j_1")];
    fused_after_a_shift: TWO, [DistributeLoop::new("j", ["u"]), ShiftIname::new("j_1", 3), FuseLoops::new("j", "j_1")];
    unrolled: INNER, [Tag::new("j", AxisTag::Unrolled)];
    unrolled_in_a_window: &INNER.replace("0..8 WHERE", "i..i + 3 WHERE").replace("n, 8]", "n, n + 8]"), [Tag::new("j", AxisTag::Unrolled)];
    vectorised: INNER, [Tag::new("j", AxisTag::Vector)];
    on_work_items: INNER, [Tag::new("i", AxisTag::Group(0)), Tag::new("j", AxisTag::Local(0))];
    shifted_on_work_items: INNER, [Tag::new("i", AxisTag::Group(0)), Tag::new("j", AxisTag::Local(0)), ShiftIname::new("j", 2)];
    pipelined: FILLED, [PipelineLoop::new("j", ["t"])];
    pipelined_and_mapped: FILLED, [PipelineLoop::new("j", ["t"]), MapInames::new(["k"], rows(&[&[-1]]))];
    fill_of_a_pipeline_vectorised: FILLED, [PipelineLoop::new("j", ["t"]), Tag::new("k", AxisTag::Vector), Tag::new("k_first", AxisTag::Vector)];
    fill_of_a_pipeline_split_and_reversed: FILLED, [PipelineLoop::new("j", ["t"]).with_buffers(3), SplitIname::new("k", 2), ReverseIname::new("k_i")];
    staged_reads: INNER, [PrefetchArray::new("a", "i", Private)];
    staged_exactly: INNER, [PrefetchArray::new("a", "i", Private).exactly()];
    staged_by_work_items: INNER, [Tag::new("i", AxisTag::Group(0)), PrefetchArray::new("a", "i", Local).by_work_items([4])];
    staged_writes: INNER, [BufferWrites::new("y", "i", Private)];
    precomputed: INNER, [ExtractRule::new("r", ["p", "q"], "a[p, q]"), PrecomputeRule::new("r", "i", Private).exactly()];
    hoisted: &INNER.replace("s: y[i, j] += 2.0*a[i, j]", "s: y[i, 0] = 2.0*a[i, 1]\n    u: y[i, j] += 1.0")
        .replace("0..8", "1..8"), [Hoist::new(["s"])];
    expanded_and_contracted: FILLED, [ExpandArray::new("t", ["j"]), DistributeLoop::new("j", ["s"])];
    realised_reduction: REDUCTION, [RealiseReduction::new("j")];
    reduced_in_a_tree: REDUCTION, [RealiseReduction::new("j"), ReduceInTree::new("j")];
    sunk: "kernel sunk
param n: i32
arg a: f64[n, 8, 4] in
arg y: f64[n] inout
temp t: f64 private
for i in 0..n
  zero: t = 0.0
  for j in 0..8 WHERE
    for k in 0..4
      add: t += a[i, j, k]
  commit: y[i] += t
", [SinkAccumulation::new("t", "j")];
    factored: "kernel factored
param n: i32
arg a: f64[n, 8] in
arg b: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..8 WHERE
    s: y[i] += b[i]*a[i, j]
", [FactorUpdate::new("s", ["j"])];
    scan_of_a_recurrence: "kernel scan
param n: i32
arg a: f64[n, n] in
arg y: f64[n, n] inout
for i in 0..n
  for j in 1..n WHERE
    s: y[i, j] = y[i, j - 1] + a[i, j]
", [RealiseScan::new("s")];
    scan_of_a_prefix: "kernel scan
param n: i32
arg a: f64[n, n] in
arg y: f64[n, n] inout
for i in 0..n
  for j in 1..n WHERE
    s: y[i, j] = sum(k in 0..j: a[i, k])
", [RealiseScan::new("s")];
    scan_in_parallel: "kernel scan
param n: i32
arg a: f64[n, 8] in
arg y: f64[n, 8] inout
temp t: f64 private
for i in 0..n
  zero: t = 0.0
  for j in 0..8 WHERE
    s: t += a[i, j]
    u: y[i, j] = t
", [ParalleliseScan::new("j", "s")];
    outlined_and_inlined: INNER, [OutlineInsns::new(["j"], "part"), InlineCall::new("part")];
    outlined_inside: OUTER, [OutlineInsns::new(["k"], "part")];
    found_again: &(INNER.to_owned() + "  for l in 0..8 WHERE\n    v: y[i, l] += 2.0*a[i, l]\n"),
        [OutlineInsns::new(["j"], "part"), ReplaceWithIntrinsic::new(["l"], "part")];
    split_outermost: FIRST, [SplitIname::new("j", 3)] under OF_PARAMETERS;
    interchanged_outermost: FIRST, [InterchangeInames::new("j", "k")] under OF_PARAMETERS;
    peeled_outermost: FIRST, [PeelIname::last("j", 1)] under OF_PARAMETERS;
    reversed_outermost: FIRST, [ReverseIname::new("j")] under OF_PARAMETERS;
    with_a_fixed_parameter: OUTER, [FixParameter::new("n", 4), MapInames::new(["j"], rows(&[&[-1]]))];
}
