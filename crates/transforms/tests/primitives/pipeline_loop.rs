use crate::story::{facts, kernel};
use purlin_analysis::Analysis;
use purlin_ir::AddressSpace::{Local, Private};
use purlin_transforms::primitives::{PadArray, PeelIname, PipelineLoop, PrefetchArray, SplitIname, TagIname};
use purlin_transforms::{Recipe, Step};

const PRODUCT: &str = "kernel matvec
param n: i32
arg a: f64[n, n] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..n
    s: y[i] += a[i, k]*x[k]
";

/// A work-group computes a block of 4 x 4 entries from tiles of both factors in local memory.
const TILED: &str = "kernel matmul
param n: i32
arg a: f64[8*n, 8*n] in
arg b: f64[8*n, 8*n] in
arg c: f64[8*n, 8*n] inout
for i_o in 0..2*n {g.1}
  for j_o in 0..2*n {g.0}
    for k_o in 0..2*n
      for i in 0..4 {l.1}
        for j in 0..4 {l.0}
          for k in 0..4
            s: c[4*i_o + i, 4*j_o + j] += a[4*i_o + i, 4*k_o + k]*b[4*k_o + k, 4*j_o + j]
";

const TILE: &str = "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n] inout
temp tile: f64[4] private
for t in 0..n
  for j in 0..4
    fetch: tile[j] = a[t, j]
  for k in 0..4
    use: y[t] += tile[k]
";

fn pipeline() -> PipelineLoop {
    PipelineLoop::new("t", ["tile"])
}

fn both() -> Vec<Step> {
    vec![
        PrefetchArray::new("a", "k_o", Local).by_work_items([4, 4]).into(),
        PrefetchArray::new("b", "k_o", Local).by_work_items([4, 4]).into(),
    ]
}

facts! {
    two_buffers: TILE, [pipeline()];
    three_buffers: TILE, [pipeline().with_buffers(3)];
    after_a_prefetch_of_partial_tiles: PRODUCT, [SplitIname::new("k", 4), PrefetchArray::new("x", "k_o", Private), PipelineLoop::new("k_o", ["x_tile"])];
    bounds_that_do_not_start_at_zero: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64 private
for i in 0..n
  for t in i..n
    fetch: s = a[t]
    use: y[i] += s
", [PipelineLoop::new("t", ["s"])];
    a_constant_length: "kernel k
arg a: f64[3] in
arg y: f64[3] inout
temp s: f64 private
for t in 0..3
  fetch: s = a[t]
  use: y[t] += s
", [PipelineLoop::new("t", ["s"]).with_buffers(4)];
    /// A store under a condition is no certain one: for all that is known its value is an older one.
    refuses_a_value_that_is_filled_under_a_condition: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64 private
for t in 0..n
  fetch: s = a[t] if t < n - 1
  use: y[t] += s if t < n - 1
", [PipelineLoop::new("t", ["s"])];
    padded_rows: "kernel k
param n: i32
arg a: f64[n, 4, 4] in
arg y: f64[n, 4] inout
temp tile: f64[4, 4] private
for t in 0..n
  for i in 0..4
    for j in 0..4
      fetch: tile[i, j] = a[t, i, j]
  for p in 0..4
    for q in 0..4
      use: y[t, q] += tile[p, q]
", [PadArray::new("tile", 1, 1), pipeline()];
    then_peeled: TILE, [pipeline(), PeelIname::last("t", 1)];
    /// What is fetched was written by the iteration before.
    refuses_what_the_loop_writes: "kernel k
param n: i32
arg a: f64[n + 1, 4] inout
temp tile: f64[4] private
for t in 0..n
  for j in 0..4
    fetch: tile[j] = a[t, j]
  for k in 0..4
    use: a[t + 1, k] = tile[k]
", [pipeline()];
    two_ahead_of_a_distance_of_two: "kernel k
param n: i32
arg a: f64[n + 2] inout
temp s: f64 private
for t in 0..n
  fetch: s = a[t]
  use: a[t + 2] = s + 1.0
", [PipelineLoop::new("t", ["s"])];
    refuses_three_buffers_at_a_distance_of_two: "kernel k
param n: i32
arg a: f64[n + 2] inout
temp s: f64 private
for t in 0..n
  fetch: s = a[t]
  use: a[t + 2] = s + 1.0
", [PipelineLoop::new("t", ["s"]).with_buffers(3)];
    refuses_a_value_of_an_earlier_iteration: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64 private
zero: s = 0.0
for t in 0..n
  fetch: s = a[t] if a[t] < 1.0
  use: y[t] += s
", [PipelineLoop::new("t", ["s"])];
    refuses_a_value_that_is_fetched_once: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64[n] private
for i in 0..n
  for t in 0..n
    fetch: s[t] = a[t] if i < 1
    use: y[i] += s[t]
", [PipelineLoop::new("t", ["s"])];
    refuses_a_temporary_that_is_filled_twice: "kernel k
param n: i32
arg a: f64[n] in
arg x: f64[n] out
arg y: f64[n] out
temp t: f64 private
for i in 0..n
  f: t = a[i]
  s: x[i] = t
  g: t = 2.0*a[i]
  u: y[i] = t
", [PipelineLoop::new("i", ["t"])];
    refuses_to_enter_a_loop_before_its_bounds_are_written: "kernel k
param n: i32
arg a: f64[n] in
arg m: i32[n] in
arg y: f64[n] out
temp end: i32 private
temp s: f64[3] private
for t in 0..n
  for z in 0..1 where t == 0
    e: end = m[0]
  zero: s[0] = 0.0
  for j in 1..end where t >= 2
    f: s[0] += a[t]
  u: y[t] = s[0]
", [PipelineLoop::new("t", ["s"])];
    refuses_a_statement_that_does_more: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64[4] private
for t in 0..n
  for j in 0..4
    fetch: s[j] = a[t]
    use: y[t] += s[j]
", [PipelineLoop::new("t", ["s"])];
    refuses_a_loop_on_work_items: TILE, [TagIname::new("t", "l.0"), pipeline()];
    refuses_one_buffer: TILE, [pipeline().with_buffers(1)];
    refuses_an_argument: TILE, [PipelineLoop::new("t", ["y"])];
    refuses_an_unknown_loop: TILE, [PipelineLoop::new("i", ["tile"])];
    /// The condition that the statement has stays beside the one that the loop goes on.
    a_sum_of_terms_under_a_condition: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64 private
for t in 0..n
  z: s = 0.0
  f: s += a[t] if a[t] > 0.5
  u: y[t] = s
", [PipelineLoop::new("t", ["s"])];
    refuses_a_use_behind_the_loop: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64 private
for t in 0..n
  fetch: s = a[t]
  use: y[t] += s
for q in 0..n where q < 0
  last: y[q] = s
", [PipelineLoop::new("t", ["s"])];
    refuses_bounds_that_change: "kernel k
param n: i32
arg count: i32[1] in
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64 private
temp end: i32 private
e: end = count[0]
for t in 0..end
  fetch: s = a[t]
  use: y[t] += s
  e2: end = 0
", [PipelineLoop::new("t", ["s"])];
    refuses_shared_storage: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n] inout
arg z: f64[4] inout
temp tile: f64[4] private storage(b)
temp q: f64[4] private storage(b)
for t in 0..n
  for j in 0..4
    fetch: tile[j] = a[t, j]
  for k in 0..4
    use: y[t] += tile[k]
for c in 0..4
  w: q[c] = z[c]
for d in 0..4
  x: z[d] = 2.0*q[d]
", [pipeline()];
    refuses_what_a_rule_reads: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp s: f64 private
rule twice(v) := v*s
for t in 0..n
  fetch: s = a[t]
  use: y[t] += twice(2.0)
", [PipelineLoop::new("t", ["s"])];
    refuses_what_an_assumption_mentions: "kernel k
param n: i32
arg y: f64[4*n] inout
temp s: i32[4] private
assume injective(s)
for t in 0..n
  for j in 0..4
    fetch: s[j] = i32(4*t + j)
  for q in 0..4
    use: y[s[q]] += 1.0
", [PipelineLoop::new("t", ["s"])];
}

/// The barriers in the loop over tiles: two, then one.
#[test]
fn one_barrier_fewer_in_an_iteration() {
    let steps = |pipelined: bool| {
        let mut steps = both();
        if pipelined {
            steps.push(PipelineLoop::new("k_o", ["a_tile", "b_tile"]).into());
        }
        let recipe = steps.into_iter().fold(Recipe::default(), Recipe::then);
        recipe.apply(&kernel(TILED)).unwrap_or_else(|e| panic!("{e}"))
    };
    let within = |pipelined: bool| {
        let kernel = steps(pipelined);
        let placement = Analysis::of(&kernel).place().unwrap().clone();
        let barriers = placement.barriers.iter();
        let (inside, across): (Vec<_>, Vec<_>) = barriers.partition(|b| b.carrier.is_none());
        let of_loop = |insn| kernel.insns[insn].name == "s" || kernel.insns[insn].name.starts_with("fetch");
        let own = |b: &&&purlin_analysis::placement::Barrier| {
            of_loop(b.source) && of_loop(b.sink) && !kernel.insns[b.source].name.ends_with("_first")
        };
        (inside.iter().filter(own).count(), across.iter().filter(own).count())
    };
    let (inside, across) = within(false);
    assert!(inside > 0 && across > 0, "{inside} {across}");
    // nothing is to be ordered within an iteration any more
    let (inside, across) = within(true);
    assert!(inside == 0 && across > 0, "{inside} {across}");
    insta::assert_snapshot!(steps(true));
}
