//! Programs that other systems get wrong: what must be refused, with the exact message, and what must
//! be accepted although it looks like it.

use crate::story::facts;
use purlin_ir::AddressSpace::{Local, Private};
use purlin_transforms::Selection;
use purlin_transforms::primitives::{
    AliasStorage, AssignToRule, Assume, BufferWrites, ContractArray, ConvertToUpdate, DistributeLoop,
    DuplicateIname, EliminateCommonSubexpressions, ExpandArray, FactorUpdate, FuseLoops, HoistInsn,
    InterchangeInames, MakeAtomic, MoveInsns, PipelineLoop, PrefetchArray, RealiseScan, ReverseIname,
    SetAddressSpace, SkewIname, SplitIname, TagIname, UnrollIname, VectoriseIname,
};

const RECURRENCE: &str = "kernel recurrence
param n: i32
arg a: f64[n] inout
for i in 1..n
  s: a[i] = a[i - 1] + 1.0
";

const ACCUMULATION: &str = "kernel accumulation
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y += a[i]
";

const SCATTER: &str = "kernel scatter
param n: i32
param m: i32
arg dof: i32[n, 4] in
arg x: f64[n, 4] in
arg y: f64[n] inout
for cell in 0..n
  for j in 0..min(4, n)
    scatter: y[dof[cell, j]] += x[cell, j]
";

/// Legal to distribute once each iteration has an element of its own.
const STAGED: &str = "kernel staged
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64 private
for i in 1..n
  load: t = a[i - 1]
  store: b[i] = t + 1.0
";

const CARRIED: &str = "kernel carried
param n: i32
arg b: f64[n] inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  use: b[i] = b[i] + t
  keep: t = b[i]
";

const SAVED: &str = "kernel saved
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
temp t: f64 private
for i in 0..n
  save: t = a[i]
  zero: a[i] = 0.0
  use: b[i] = t
";

fn split(iname: &str, factor: i64) -> SplitIname {
    SplitIname::new(iname, factor)
}

fn tag(iname: &str, tag: &str) -> TagIname {
    TagIname::new(iname, tag)
}

facts! {
    illegal_interchange_across_one_minus_one: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 1..n
  for j in 0..n - 1
    s: a[i, j] = a[i - 1, j + 1]
", [InterchangeInames::new("i", "j")];
    illegal_recurrence_on_groups: RECURRENCE, [tag("i", "g.0")];
    illegal_recurrence_on_items: RECURRENCE, [tag("i", "l.0")];
    illegal_recurrence_in_lanes: RECURRENCE, [tag("i", "vector")];
    illegal_recurrence_split_on_groups: RECURRENCE, [split("i", 32), tag("i_o", "g.0")];
    illegal_recurrence_split_on_items: RECURRENCE, [split("i", 32), tag("i_i", "l.0")];
    illegal_recurrence_split_in_lanes: RECURRENCE, [split("i", 4), tag("i_i", "vector")];
    illegal_recurrence_split_on_both: RECURRENCE, [split("i", 32), tag("i_i", "l.0"), tag("i_o", "g.0")];
    illegal_accumulation_on_groups: ACCUMULATION, [tag("i", "g.0")];
    illegal_accumulation_on_items: ACCUMULATION, [tag("i", "l.0")];
    illegal_accumulation_in_lanes: ACCUMULATION, [tag("i", "vector")];
    illegal_accumulation_split_on_both: ACCUMULATION, [split("i", 32), tag("i_i", "l.0"), tag("i_o", "g.0")];
    legal_accumulation_with_atomics: ACCUMULATION, [MakeAtomic::insn("s"), split("i", 4), tag("i_o", "g.0"), tag("i_i", "l.0")];
    illegal_scatter_on_groups: SCATTER, [tag("cell", "g.0")];
    illegal_scatter_on_items: SCATTER, [tag("cell", "l.0")];
    illegal_scatter_of_one_cell: SCATTER, [tag("j", "l.0")];
    legal_scatter_with_atomics: SCATTER, [MakeAtomic::insn("scatter"), tag("cell", "g.0"), tag("j", "l.0")];
    legal_scatter_through_an_injective_map: "kernel scatter
param n: i32
arg dof: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
for cell in 0..n
  scatter: y[dof[cell]] += x[cell]
", [Assume::injective("dof"), split("cell", 4), tag("cell_o", "g.0"), tag("cell_i", "l.0")];
    illegal_half_of_a_scatter_is_atomic: "kernel scatter
param n: i32
arg dof: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
for cell in 0..n
  first: y[dof[cell]] += x[cell]
  second: y[dof[cell]] += 2.0*x[cell]
", [MakeAtomic::insn("first"), tag("cell", "g.0")];
    illegal_private_value_carried_between_items: CARRIED, [tag("i", "l.0")];
    illegal_private_accumulator_outside_the_loop: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  add: t += a[i]
store: y = t
", [tag("i", "l.0")];
    illegal_local_value_across_groups: "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n] local
for i in 0..n
  load: t[i] = a[i]
for j in 0..n
  store: b[j] = t[n - 1 - j]
", [tag("i", "g.0"), tag("j", "g.0")];
    illegal_flow_between_groups_of_one_launch: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  first: a[i] = b[i]
for j in 1..n
  second: b[j] = a[j - 1]
", [tag("i", "g.0"), tag("j", "g.0")];
    illegal_stencil_in_place_on_items: "kernel k
param n: i32
arg a: f64[n] inout
for t in 0..3
  for i in 1..n - 1
    s: a[i] = a[i - 1] + a[i + 1]
", [tag("i", "l.0")];
    illegal_last_value_of_parallel_stores: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y = a[i]
", [tag("i", "l.0")];
    illegal_assignments_outside_the_first_write: "kernel k
param n: i32
arg x: f64[n] in
arg z: f64[n, n] inout
for i in 0..n
  a: z[i, 0] = x[i]
  b: z[0, n - 1] = f64(i)
", [tag("i", "g.0")];
    illegal_conditional_value_from_another_item: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  a: t = x[i] if x[i] < 0.0
  b: y[i] = t
", [tag("i", "l.0")];
    illegal_array_written_in_part_by_each_item: "kernel k
param n: i32
arg x: f64[n, n] in
arg y: f64[n] inout
temp t: f64[n] private
for q in 0..n
  zero: t[q] = 0.0
for i in 0..n
  for j in 0..n - i
    a: t[j] = x[i, j]
  for k in 0..n
    b: y[i] += t[k]
", [tag("i", "l.0")];
    illegal_split_by_zero: RECURRENCE, [split("i", 0)];
    illegal_split_by_a_negative: RECURRENCE, [split("i", -8)];
    illegal_unknown_iname: RECURRENCE, [split("k", 8)];
    illegal_empty_match: SCATTER, [MakeAtomic::tag("scatter")];
    illegal_contradictory_assumptions: RECURRENCE, [Assume::at_least("n", 8), Assume::at_most("n", 7)];
    legal_value_saved_before_it_is_overwritten: SAVED, [split("i", 4), tag("i_o", "g.0"), tag("i_i", "l.0")];
    legal_interchange_with_a_scalar_confined_to_the_body: "kernel k
param n: i32
arg a: f64[n, n] inout
temp t: f64 private
for i in 0..n
  for j in 0..n
    square: t = a[i, j]*a[i, j]
    store: a[i, j] = t + 1.0
", [InterchangeInames::new("i", "j")];
    legal_empty_reduction_beside_a_loop: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
arg s: f64 inout
for i in 0..n
  copy: y[i] = a[i]
none: s = sum(k in n..n: a[k])
", [split("i", 4), split("k", 4), tag("i_o", "g.0")];
    legal_sweeps_ordered_by_barriers: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for t in 0..3
  for i in 1..n - 1
    s: b[i] = a[i - 1] + a[i + 1]
  for j in 1..n - 1
    u: a[j] = b[j]
", [tag("i", "l.0"), tag("j", "l.0")];
    /// What an iteration does not write, no earlier one has written: all of it is still zero.
    legal_array_written_in_part_by_each_item: "kernel k
param n: i32
arg x: f64[n, n] in
arg y: f64[n] inout
temp t: f64[n] private
for q in 0..n
  zero: t[q] = 0.0
for i in 0..n
  for j in 0..i
    a: t[j] = x[i, j]
  for k in 0..n
    b: y[i] += t[k]
", [tag("i", "l.0")];
    legal_array_of_each_item: "kernel k
param n: i32
arg x: f64[n, 4] in
arg y: f64[n] inout
temp t: f64[4] private
for i in 0..n
  for j in 0..4
    a: t[j] = x[i, j]
  for k in 0..4
    b: y[i] += t[3 - k]
", [split("i", 32), tag("i_o", "g.0"), tag("i_i", "l.0")];
    legal_recurrence_along_another_loop: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 1..n
  for j in 0..n
    s: a[i, j] = a[i - 1, j] + 1.0
", [tag("j", "g.0"), InterchangeInames::new("i", "j")];
    legal_local_staging: "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64[n] private
for i in 0..n
  load: t[i] = a[i]
for j in 0..n
  store: b[j] = t[n - 1 - j]
", [SetAddressSpace::new("t", Local), tag("i", "l.0"), tag("j", "l.0")];
    illegal_fusion_with_a_value_of_the_next_iteration: "kernel k
param n: i32
arg a: f64[n + 1] inout
arg b: f64[n] inout
for i in 0..n
  first: a[i] = f64(i)
for j in 0..n
  second: b[j] = a[j + 1]
", [FuseLoops::new("i", "j")];
    legal_fusion_with_a_value_of_the_same_iteration: "kernel k
param n: i32
arg a: f64[n + 1] inout
arg b: f64[n] inout
for i in 0..n
  first: a[i] = f64(i)
for j in 0..n
  second: b[j] = a[j]
", [FuseLoops::new("i", "j")];
    illegal_distribution_of_a_scalar: STAGED, [DistributeLoop::new("i", ["store"])];
    legal_distribution_after_expansion: STAGED, [ExpandArray::new("t", ["i"]), DistributeLoop::new("i", ["store"])];
    /// The recurrence runs through memory: an element of its own for each iteration does not help.
    illegal_distribution_of_a_recurrence_after_expansion: "kernel k
param n: i32
arg b: f64[n] inout
temp t: f64 private
for i in 1..n
  load: t = b[i - 1]
  store: b[i] = t + 1.0
", [ExpandArray::new("t", ["i"]), DistributeLoop::new("i", ["store"])];
    illegal_prefetch_of_what_the_sweep_writes: "kernel k
arg a: f64[16] inout
for t in 0..3
  for i in 1..16
    s: a[i] = 0.5*a[i - 1]
", [PrefetchArray::new("a", "t", Local)];
    illegal_prefetch_of_what_an_enclosing_loop_writes: "kernel k
arg a: f64[16] inout
arg b: f64[16] inout
for t in 0..3
  for i in 0..16
    use: b[i] += a[15 - i]
  for j in 0..16
    change: a[j] = b[j]
", [PrefetchArray::whole("a", Local)];
    legal_prefetch_in_every_sweep: "kernel k
arg a: f64[16] inout
arg b: f64[16] inout
for t in 0..3
  for i in 0..16
    use: b[i] += a[15 - i]
  for j in 0..16
    change: a[j] = b[j]
", [PrefetchArray::new("a", "i", Local)];
    illegal_expansion_of_a_value_carried_on: CARRIED, [ExpandArray::new("t", ["i"])];
    illegal_contraction_of_values_for_a_later_loop: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] out
temp t: f64[n] local
for i in 0..n
  load: t[i] = x[i]
for j in 0..n
  store: y[j] = t[j]
", [ContractArray::new("t", 0)];
    illegal_reversal_of_a_recurrence: RECURRENCE, [ReverseIname::new("i")];
    illegal_storage_shared_across_work_items: "kernel k
arg x: f64[32] inout
temp t: f64[32] local
temp u: f64[32] local
for i in 0..32 {l.0}
  fill: t[i] = x[i]
  next: u[i] = t[i] + 1.0
  last: x[i] = u[i]
", [AliasStorage::new(["t", "u"], "shared")];
    /// A work-item takes the place of another one, after a barrier.
    legal_storage_shared_across_work_items: "kernel k
arg x: f64[32] in
arg y: f64[32] inout
temp t: f64[32] local
temp u: f64[32] local
for i in 0..32 {l.0}
  fill: t[i] = x[i]
  read: y[i] = t[i]
  next: u[31 - i] = y[i]
  last: y[i] = u[31 - i]
", [AliasStorage::new(["t", "u"], "shared")];
    illegal_storage_of_values_alive_together: "kernel k
arg x: f64[32] in
arg y: f64[32] inout
temp t: f64[32] local
temp u: f64[32] local
for i in 0..32
  fill: t[i] = x[i]
for j in 0..32
  next: u[j] = x[j]*t[j]
for k in 0..32
  last: y[k] = u[k]
", [AliasStorage::new(["t", "u"], "shared")];
    illegal_definition_across_a_write_of_its_operand: SAVED, [AssignToRule::new("t")];
    illegal_buffer_of_what_others_read_through_a_map: "kernel k
param n: i32
arg map: i32[8] in
arg y: f64[8] inout
for i in 0..8
  for j in 0..8
    s: y[j] = y[map[j]] + 1.0
", [BufferWrites::new("y", "i", Private)];
    illegal_move_in_front_of_an_operand: SAVED, [MoveInsns::before(["use"], "save")];
    illegal_move_across_what_it_overwrites: SAVED, [MoveInsns::before(["zero"], "save")];
    illegal_store_as_an_update: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y = x[i]
", [ConvertToUpdate::insn("s")];
    illegal_update_of_a_product_and_a_sum: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y = y*x[i] + x[i]
", [ConvertToUpdate::insn("s")];
    legal_update_adds_all_it_adds: "kernel k
param n: i32
arg m: i32[n] in
arg b: f64[n] in
arg c: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[m[i]] = z[m[i]] + b[i] + c[i]
", [ConvertToUpdate::insn("s"), MakeAtomic::insn("s"), tag("i", "g.0")];
    /// Entries that differ may still lie next to each other.
    illegal_neighbours_of_injective_entries: "kernel k
param n: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n + 1] inout
assume injective(map)
for i in 0..n
  left: y[map[i]] += x[i]
  right: y[map[i] + 1] += x[i]
", [tag("i", "g.0")];
    /// The map is injective, but every `k` goes through the same entry.
    illegal_injective_entry_used_by_all: "kernel k
param n: i32
arg map: i32[n] in
arg x: f64[n, 4] in
arg y: f64[n] inout
assume injective(map)
for i in 0..n
  for k in 0..4
    s: y[map[i]] += x[i, k]
", [tag("i", "g.0"), tag("k", "l.0")];
    illegal_two_iterations_for_each_element: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[floor_div(i, 2)] += x[i]
", [tag("i", "g.0")];
    illegal_elements_used_in_turns: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[4] inout
for i in 0..n
  s: y[i mod 4] = x[i]
", [tag("i", "g.0")];
    illegal_mirror_in_place: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  s: a[i] = a[n - 1 - i]
", [tag("i", "g.0")];
    legal_halves_that_never_meet: "kernel k
param n: i32
arg a: f64[2*n] inout
for i in 0..n
  s: a[i] = a[i + n]
", [split("i", 4), tag("i_o", "g.0"), tag("i_i", "l.0")];
    legal_odd_elements_from_even_ones: "kernel k
param n: i32
arg a: f64[n + 1] inout
for i in 0..n
  s: a[i] = a[i + 1] if i mod 2 == 0
", [tag("i", "g.0")];
    illegal_triangle_of_earlier_elements: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  for j in 0..i
    s: a[i] += a[j]
", [tag("i", "g.0")];
    illegal_reader_beside_atomic_updates: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
arg u: f64[n] inout
for i in 0..n
  add: y += x[i]
  look: u[i] = y
", [MakeAtomic::insn("add"), tag("i", "g.0")];
    illegal_two_operators_on_one_element: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
for i in 0..n
  add: y += x[i]
  cut: y min= 10.0
", [MakeAtomic::insn("add"), MakeAtomic::insn("cut"), tag("i", "g.0")];
    legal_wave_front: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 1..n
  for j in 1..n
    s: a[i, j] = a[i - 1, j] + a[i, j - 1]
", [SkewIname::new("j", "i", 1), InterchangeInames::new("i", "j"), tag("i", "l.0")];
    illegal_wave_front_along_the_other_axis: "kernel k
param n: i32
arg a: f64[n, n] inout
for i in 1..n
  for j in 1..n
    s: a[i, j] = a[i - 1, j] + a[i, j - 1]
", [SkewIname::new("j", "i", 1), InterchangeInames::new("i", "j"), tag("j", "g.0")];
    illegal_hoist_of_what_the_loop_changes: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
assume n >= 1
for i in 0..n
  load: t = a[0]
  store: a[i] = t + 1.0
", [HoistInsn::new("load")];
    illegal_pipeline_of_what_the_iteration_before_writes: "kernel k
arg a: f64[16] inout
temp t: f64[16] private
for s in 0..4
  for i in 0..16
    fetch: t[i] = a[15 - i]
  for j in 0..16
    store: a[j] = t[j]
", [PipelineLoop::new("s", ["t"])];
    illegal_subexpression_across_a_write: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  first: b[i] = sin(a[i])
  second: a[i] = 0.0
  third: b[i] += sin(a[i])
", [EliminateCommonSubexpressions::of(Selection::Inside("i".into()))];
    illegal_partial_sums_of_a_sum_that_is_read: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
arg u: f64[n] inout
for i in 0..n
  add: y += x[i]
  look: u[i] = y
", [FactorUpdate::new("add", ["i"])];
    illegal_running_total_of_terms_that_change: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
assume n >= 1
for i in 0..n
  s: b[i] = sum(j in 0..i: a[j])
  change: a[0] = b[i]
", [RealiseScan::new("s")];
    /// Every term has its last value when it is first read.
    legal_running_total_of_earlier_totals: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  s: a[i] = 1.0 + sum(j in 0..i: a[j])
", [RealiseScan::new("s")];
    illegal_loop_of_its_own_for_an_earlier_value: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 1..n
  first: a[i] = b[i - 1]
  second: b[i] = a[i]
", [DuplicateIname::new("i", Selection::Insn("second".into()))];
    illegal_private_array_that_others_read: "kernel k
param n: i32
arg a: f64[32] in
arg b: f64[32] out
temp t: f64[32] local
for i in 0..32 {l.0}
  load: t[i] = a[i]
for j in 0..32 {l.0}
  store: b[j] = t[31 - j]
", [SetAddressSpace::new("t", Private)];
    illegal_unrolling_without_an_end: RECURRENCE, [UnrollIname::new("i")];
    illegal_vectors_across_a_dependence: "kernel k
arg a: f64[12] inout
for o in 0..2
  for i in 0..4
    s: a[4*o + i + 1] = a[4*o + i]
", [VectoriseIname::new("i")];
    /// A work-item beyond the loop's end must not add again: it runs where its loop is not, once.
    legal_update_outside_of_an_axis: "kernel k
arg x: f64[32] in
arg y: f64[32] out
arg total: f64 inout
for i in 0..32 {l.0}
  s: y[i] = 2.0*x[i]
count: total += 1.0
", [MakeAtomic::insn("count")];
    legal_minimum_and_maximum_by_atomics: "kernel k
param n: i32
arg x: f64[n] in
arg lo: f64 inout
arg hi: f64 inout
for i in 0..n
  least: lo min= x[i]
  most: hi max= x[i]
", [MakeAtomic::insn("least"), MakeAtomic::insn("most"), split("i", 4), tag("i_o", "g.0"), tag("i_i", "l.0")];
}

/// The corpus prints what it is made of: nothing illegal passes.
#[test]
fn nothing_illegal_passes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/primitives/snapshots");
    let (mut refused, mut silent, mut accepted) = (0, Vec::new(), 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "snap") || !name.contains("corpus__") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        match (name.contains("corpus__illegal"), text.contains("\nrefused: ")) {
            (true, true) => refused += 1,
            (false, false) => accepted += 1,
            (true, false) | (false, true) => silent.push(name),
        }
    }
    println!("{refused} illegal programs refused, {accepted} legal ones accepted, {} silent", silent.len());
    assert!(silent.is_empty(), "{silent:?}");
    assert!(refused >= 64 && accepted >= 22);
}
