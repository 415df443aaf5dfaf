//! Programs that other systems get wrong: what must be refused, with the exact message, and what must
//! be accepted although it looks like it.

use crate::story::facts;
use purlin_transforms::primitives::{
    Assume, InterchangeInames, MakeAtomic, SetAddressSpace, SplitIname, TagIname,
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
    illegal_private_value_carried_between_items: "kernel k
param n: i32
arg b: f64[n] inout
temp t: f64 private
zero: t = 0.0
for i in 0..n
  use: b[i] = b[i] + t
  keep: t = b[i]
", [tag("i", "l.0")];
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
    legal_value_saved_before_it_is_overwritten: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
temp t: f64 private
for i in 0..n
  save: t = a[i]
  zero: a[i] = 0.0
  use: b[i] = t
", [split("i", 4), tag("i_o", "g.0"), tag("i_i", "l.0")];
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
", [SetAddressSpace::new("t", purlin_ir::AddressSpace::Local), tag("i", "l.0"), tag("j", "l.0")];
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
    assert!(refused >= 28 && accepted >= 9);
}
