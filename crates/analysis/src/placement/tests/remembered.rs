//! Each row of the table, legal and illegal.

use super::placed;
use insta::assert_snapshot;
use std::fmt::Write;

/// The kernel, then the barriers and slices, or the refusal.
fn show(text: &str) -> String {
    let header = "kernel k\nparam n: i32\nassume n >= 1\narg a: f64[n] inout\narg b: f64[n] inout\n\
                  arg m: f64[n, n] inout\narg map: i32[n] in\n";
    let text = format!("{header}{text}");
    let kernel = purlin_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
    let printed = kernel.to_string();
    let (_, program) = printed.split_once("map: i32[n] in\n").expect("the header");
    let mut shown = format!("{program}\n");
    match placed(&kernel) {
        Err(error) => shown += &format!("refused: {error}\n"),
        Ok(placement) => {
            shown += if placement.barriers.is_empty() { "no barrier\n" } else { "" };
            for b in &placement.barriers {
                let [source, sink] = [b.source, b.sink].map(|i| &kernel.insns[i].name);
                let carrier = b.carrier.map_or("in the text".to_owned(), |l| {
                    format!("from one `{}` to a later one", kernel.inames[l].name)
                });
                let _ =
                    writeln!(shown, "barrier: {source}, {sink} for `{}` {carrier}", kernel.vars[b.var].name);
            }
            for (var, sliced) in kernel.vars.values().zip(&placement.sliced) {
                if sliced.contains(&true) {
                    let _ = writeln!(shown, "slices of `{}`: {sliced:?}", var.name);
                }
            }
        }
    }
    shown
}

/// Answers are remembered for equal questions only.
#[test]
fn what_was_asked_before_changes_nothing() {
    let swept = |i: &str, j: &str| {
        format!(
            "temp t: f64[7, 7] local\nfor i in 0..4{i}\n  for j in 0..4{j}\n    s: t[i + j, i - j + 3] = 1.0\n\
             for p in 0..4{i}\n  for q in 0..4{j}\n    r: m[p, q] = t[p - q + 3, p + q]\n"
        )
    };
    let under = |last: i64| {
        format!("temp t: f64 local\ne: t = 1.0\nfor k in 0..4 {{l.0}}\n  r: b[k] = t if k <= {last}\n")
    };
    let with = |assumed: &str, end: &str| {
        format!(
            "param o: i32\nassume {assumed}\ntemp t: f64 local\ne: t = 1.0\nfor k in 0..{end} {{l.0}}\n  r: b[k] = t\n"
        )
    };
    let into = |op: &str| format!("for k in 0..n\n  for l in 0..4 {{l.0}}\n    s: a[k + l] {op} 1.0\n");
    let pairs = [
        (swept(" {l.0}", ""), swept("", " {l.0}")),
        (under(0), under(1)),
        (with("n <= 1", "n"), with("n <= 2", "n")),
        (with("o <= 1", "o"), with("o <= 1", "n")),
        (into("="), into("+=")),
    ];
    for (first, second) in pairs {
        let text = second.clone();
        let alone = std::thread::spawn(move || show(&text)).join().expect("does not panic");
        assert_ne!(show(&first), alone);
        assert_eq!(show(&second), alone);
    }
}

macro_rules! facts {
    ($($(#[$doc:meta])* $name:ident: $text:literal;)*) => {
        $($(#[$doc])* #[test] fn $name() { assert_snapshot!(show($text)); })*
    };
}

facts! {
    independent_iterations_on_groups_and_items: "for g in 0..ceil(n/4) {g.0}
  for l in 0..min(4, n - 4*g) {l.0}
    s: a[4*g + l] = b[4*g + l]
";
    recurrence_on_groups: "for i in 1..n {g.0}
  s: a[i] = a[i - 1] + 1.0
";
    recurrence_on_items: "for i in 1..n {l.0}
  s: a[i] = a[i - 1] + 1.0
";
    sub_group_reads_a_neighbour: "temp t: f64[32] subgroup
for l in 0..32 {l.0}
  s: t[l] = 1.0
for k in 0..32 {l.0}
  r: a[k] = t[(k + 1) mod 32]
";
    sub_group_reads_inside_its_block_of_a_row: "temp t: f64[64] subgroup
for l in 0..64 {l.0}
  s: t[l] = 1.0
for k in 0..64 {l.0}
  r: a[k] = t[32*floor_div(k, 32)]
";
    sub_group_reads_another_block_of_a_row: "temp t: f64[64] subgroup
for l in 0..64 {l.0}
  s: t[l] = 1.0
for k in 0..64 {l.0}
  r: a[k] = t[63 - k]
";
    sub_group_reads_another_block_of_a_shorter_row: "temp t: f64[64] subgroup
for l in 0..min(64, n) {l.0}
  s: t[l] = 1.0
for k in 0..min(64, n) {l.0}
  r: a[k] = t[63 - k]
";
    sub_group_writes_at_two_indices: "temp t: f64[33] subgroup
for l in 0..32 {l.0}
  s: t[l] = 1.0
  u: t[l + 1] = 2.0
";
    sub_group_reads_another_row: "temp t: f64[2, 32] subgroup
for i in 0..2 {l.1}
  for l in 0..32 {l.0}
    s: t[i, l] = 1.0
for j in 0..2 {l.1}
  for k in 0..32 {l.0}
    r: m[j, k] = t[1 - j, k]
";
    sub_group_is_read_by_everybody_in_a_row: "temp t: f64[32] subgroup
temp total: f64
for l in 0..32 {l.0}
  s: t[l] = 1.0
r: total = t[0]
for k in 0..32 {l.0}
  w: a[k] = total
";
    sub_group_is_read_by_everybody_in_two: "temp t: f64[64] subgroup
temp total: f64
for l in 0..64 {l.0}
  s: t[l] = 1.0
r: total = t[0]
for k in 0..64 {l.0}
  w: a[k] = total
";
    sub_group_writes_for_another: "temp t: f64[32] subgroup
for l in 0..32 {l.0}
  s: t[31 - l] = 1.0
";
    sub_group_writes_at_one_index: "temp t: f64[32] subgroup
s: t[0] = 1.0
for k in 0..32 {l.0}
  w: a[k] = t[0]
";
    sub_group_overwrites_what_it_reads: "temp t: f64[32] subgroup
for l in 0..32 {l.0}
  s: t[l] = 1.0
for k in 0..32 {l.0}
  r: t[k] += t[(k + 1) mod 32]
";
    sub_group_on_no_axis: "temp t: f64[32] subgroup
for l in 0..32
  s: t[31 - l] = 1.0
for k in 0..32
  r: a[k] = t[(k + 1) mod 32]
";
    recurrence_in_lanes: "for i in 1..n {vector}
  s: a[i] = a[i - 1] + 1.0
";
    anti_dependence_on_items: "for i in 0..n - 1 {l.0}
  s: a[i] = a[i + 1] + 1.0
";
    private_value_inside_a_work_item: "temp t: f64 private
for i in 0..n {l.0}
  s: t = a[i]
  u: b[i] = t
";
    private_value_for_another_work_item: "temp t: f64[n] private
for i in 0..n {l.0}
  s: t[i] = a[i]
for j in 0..n {l.0}
  u: b[j] = t[n - 1 - j]
";
    private_value_for_another_group: "temp t: f64[n] private
for i in 0..n {g.0}
  s: t[i] = a[i]
for j in 1..n {g.0}
  u: b[j] = t[j]
";
    private_value_carried_between_work_items: "temp t: f64 private
zero: t = 0.0
for i in 0..n {l.0}
  s: b[i] = t
  u: t = a[i]
";
    private_slice_lives_from_loop_to_loop: "temp t: f64[n] private
for i in 0..n {l.0}
  s: t[i] = a[i]
for j in 0..n {l.0}
  u: b[j] = t[j]
";
    private_elements_of_two_blocks: "temp t: f64[64] private
for l in 0..32 {l.0}
  s: t[l] = a[l]
  u: t[l + 32] = b[l]
  r: a[l] = t[l]
  w: b[l] = t[l + 32]
";
    private_value_of_the_last_iteration: "temp t: f64 private
for i in 0..n {l.0}
  s: t = a[i]
u: b[0] = t
";
    local_value_for_another_work_item: "temp t: f64[n] local
for i in 0..n {l.0}
  s: t[i] = a[i]
for j in 0..n {l.0}
  u: b[j] = t[n - 1 - j]
";
    local_value_for_the_same_work_item: "temp t: f64[n] local
for i in 0..n {l.0}
  s: t[i] = a[i]
for j in 0..n {l.0}
  u: b[j] = t[j]
";
    local_value_for_another_group: "temp t: f64[n] local
for i in 0..n {g.0}
  s: t[i] = a[i]
for j in 0..n {g.0}
  u: b[j] = t[n - 1 - j]
";
    local_tile_in_a_loop_is_reused: "temp t: f64[4] local
for g in 0..n {g.0}
  for k in 0..n
    for l in 0..4 {l.0}
      s: t[l] = m[g, k]
    for r in 0..4 {l.0}
      u: m[g, k] += t[3 - r] {atomic}
";
    local_update_needs_atomics: "temp t: f64 local
zero: t = 0.0
for i in 0..n {l.0}
  s: t += a[i]
use: b[0] = t
";
    local_update_is_atomic: "temp t: f64 local
zero: t = 0.0
for i in 0..n {l.0}
  s: t += a[i] {atomic}
use: b[0] = t
";
    global_update_needs_atomics_across_groups: "for i in 0..n {g.0}
  s: a[map[i]] += b[i]
";
    global_update_is_atomic: "for i in 0..n {g.0}
  s: a[map[i]] += b[i] {atomic}
";
    global_updates_by_two_operators: "for i in 0..n {g.0}
  s: a[map[i]] += b[i] {atomic}
  u: a[map[i]] *= b[i] {atomic}
";
    injective_map_needs_no_atomics: "assume injective(map)
for i in 0..n {g.0}
  s: a[map[i]] += b[i]
";
    no_map_helps_where_one_update_is_direct: "for i in 0..n {g.0}
  s: a[i] += b[i]
  u: a[map[i]] += b[i]
";
    no_map_helps_where_all_take_one_entry: "for g in 0..n
  for i in 0..n {l.0}
    s: a[map[g]] += b[i]
";
    no_map_helps_where_entries_are_neighbours: "for i in 0..n - 1 {g.0}
  s: a[map[i]] += b[i]
  u: a[map[i + 1]] += b[i]
";
    no_map_helps_behind_another_index: "for i in 0..n {g.0}
  s: a[map[i] - 1] += b[i]
";
    one_map_on_two_axes_helps: "for i in 0..n {g.0}
  for j in 0..n {l.0}
    s: m[map[i], map[j]] += b[i]
";
    lanes_of_stores_through_a_map: "for i in 0..4 {vector}
  s: a[map[i]] = b[i]
  u: b[i] = a[map[i]]
";
    scatter_by_plain_stores: "for i in 0..n {g.0}
  s: a[map[i]] = b[i]
";
    accumulation_over_items_needs_atomics: "for i in 0..n {l.0}
  s: a[0] += b[i]
";
    global_flow_inside_a_group_needs_a_barrier: "temp w: f64[n, n] global
for g in 0..n {g.0}
  for i in 0..n {l.0}
    s: m[g, i] = b[i]
  for j in 0..n {l.0}
    u: m[g, j] += 1.0
  for r in 0..n {l.0}
    v: w[g, r] = m[g, n - 1]
";
    global_flow_between_loops_of_items: "for i in 0..n {l.0}
  s: a[i] = b[i]
for j in 0..n {l.0}
  u: b[j] = a[n - 1 - j]
";
    global_flow_between_groups: "for i in 0..n {g.0}
  s: a[i] = b[i]
for j in 0..n {g.0}
  u: b[j] = a[n - 1 - j]
";
    two_loops_on_one_axis_count_from_their_bounds: "temp t: f64[n + 2] private
for i in 0..n {l.0}
  s: t[i] = a[i]
for j in 2..n + 2 {l.0}
  u: b[j - 2] = t[j - 2]
";
    same_iname_value_but_another_work_item: "temp t: f64[n + 2] private
for i in 0..n {l.0}
  s: t[i] = a[i]
for j in 2..n {l.0}
  u: b[j] = t[j]
";
    geometry_is_replicated: "temp t: f64 private
for g in 0..n {g.0}
  s: t = a[g]
  for l in 0..4 {l.0}
    u: m[g, l] = t
";
    local_value_is_written_by_one_item: "temp t: f64 local
for g in 0..n {g.0}
  s: t = a[g]
  for l in 0..4 {l.0}
    u: m[g, l] = t
";
    outside_of_all_axes_global: "s: a[0] = 1.0
for i in 0..n {l.0}
  u: b[i] = a[0]
";
    outside_of_all_groups_global: "s: a[0] = 1.0
for i in 0..n {g.0}
  u: b[i] = a[0]
";
    last_value_of_a_loop_stored_by_item_zero: "for i in 0..n {l.0}
  s: a[i] = 1.0
u: b[0] = a[0]
";
    bounds_are_read_by_all_work_items: "temp len: i32 local
e: len = map[0]
for j in 0..len
  s: b[j] = 1.0
for l in 0..4 {l.0}
  u: a[l] = 1.0
";
    carried_by_a_sequential_loop_outside: "for t in 0..n
  for i in 1..n - 1 {l.0}
    s: a[i] = b[i - 1] + b[i + 1]
  for j in 1..n - 1 {l.0}
    u: b[j] = a[j]
";
    carried_by_a_sequential_loop_inside: "for i in 1..n {l.0}
  for t in 1..n
    s: m[t, i] = m[t - 1, i - 1]
";
    carried_against_a_sequential_loop: "for i in 1..n {l.0}
  for t in 0..n - 1
    s: m[t, i] = m[t + 1, i - 1]
";
    reads_through_a_rule: "temp t: f64[n] private
rule at(i) := t[i]
for i in 0..n {l.0}
  s: t[i] = a[i]
for j in 0..n {l.0}
  u: b[j] = at(j) + at(n - 1 - j)
";
    lanes_with_private_scalars: "temp t: f64 private
for i in 0..n {vector}
  s: t = a[i]
  u: b[i] = t
";
    lanes_accumulate: "temp t: f64 private
zero: t = 0.0
for i in 0..n {vector}
  s: t += a[i]
u: b[0] = t
";
    value_leaves_the_last_lane: "temp t: f64 private
for i in 0..n {vector}
  s: t = a[i]
u: b[0] = t
";
    elements_leave_their_lanes: "temp t: f64[n] private
for i in 0..n {vector}
  s: t[i] = a[i]
for j in 0..n
  u: b[j] = t[n - 1 - j]
";
}
