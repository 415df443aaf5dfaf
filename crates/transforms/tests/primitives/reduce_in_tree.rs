use crate::story::facts;
use purlin_ir::AddressSpace;
use purlin_transforms::primitives::{
    ExpandArray, FactorUpdate, InterchangeInames, MakeAtomic, RealiseReduction, ReduceInTree,
    SetAddressSpace, SplitIname, TagIname,
};

fn tree(iname: &str) -> ReduceInTree {
    ReduceInTree::new(iname).by_work_items("l.0")
}

fn tag(iname: &str, tag: &str) -> TagIname {
    TagIname::new(iname, tag)
}

fn sum_of(n: i64) -> String {
    format!("kernel total\narg a: f64[{n}] in\narg y: f64 inout\nfor j in 0..{n}\n  s: y += a[j] {{stage}}\n")
}

const ROWS: &str = "kernel rows
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*sum(k in 0..n: a[i, k])
";

const SHORT: &str = "kernel short
param n: i32
assume n <= 6
arg a: f64[n] in
arg y: f64 inout
for j in 0..n
  s: y max= a[j]
";

facts! {
    five: &sum_of(5), [tree("j")];
    eight: &sum_of(8), [tree("j")];
    one: &sum_of(1), [tree("j")];
    two_with_a_name: &sum_of(2), [ReduceInTree::new("j").into_temporary("sum_of_two")];
    /// Not more than six, perhaps none.
    parametric_length: SHORT, [tree("j")];
    /// Strided partial sums in registers, a tree over the work-items, one row a group.
    row_of_a_group: ROWS, [
        RealiseReduction::new("k"), SplitIname::new("k", 4), InterchangeInames::new("k_o", "k_i"),
        FactorUpdate::new("s_update", ["k_i"]), tag("i", "g.0"), tree("k_i_sum"), tag("k_i", "l.0"),
    ];
    /// One atomic update a group.
    across_groups: "kernel total
param n: i32
arg a: f64[n] in
arg y: f64 inout
for k in 0..n
  s: y += a[k]
", [
        SplitIname::new("k", 4), FactorUpdate::new("s", ["k_o"]).into_temporary("block"),
        MakeAtomic::insn("block_sum"), tree("k_i"), tag("k_o_sum", "g.0"), tag("k_o", "g.0"),
    ];
    predicated_terms: "kernel k
param n: i32
arg a: f64[n, 5] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..5
    s: y[i] min= a[i, j] if a[i, j] > 0.0
", [tree("j")];
    predicated_rows: "kernel k
param n: i32
arg a: f64[n, 3] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..3
    s: y[i] *= a[i, j] if i < 2
", [tree("j")];
    terms_are_what_the_loop_counts: "kernel k
param n: i32
arg y: i32[n] inout
for i in 0..n
  for j in 2..5
    s: y[i] += i*j
", [tree("j")];
    terms_that_read_the_element_before: "kernel k
param n: i32
arg y: f64[4] inout
for j in 0..4
  s: y[0] += y[j]
", [tree("j")];
    refuses_terms_that_read_the_element: "kernel k
param n: i32
arg y: f64[4] inout
for j in 0..4
  s: y[3] += y[j]
", [tree("j")];
    refuses_an_element_of_every_iteration: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
for j in 0..4
  s: y[j] += a[j]
", [tree("j")];
    refuses_an_element_that_may_not_exist: "kernel k
param n: i32
assume n <= 6
arg a: f64[n] in
arg y: f64[n] inout
for j in 0..n
  s: y[0] += a[j]
", [tree("j")];
    refuses_unknown_length: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for j in 0..n
  s: y += a[j]
", [tree("j")];
    refuses_two_instructions: "kernel k
arg a: f64[4] in
arg y: f64 inout
arg z: f64 inout
for j in 0..4
  s: y += a[j]
  t: z += a[j]
", [tree("j")];
    refuses_a_plain_store: "kernel k
arg a: f64[4] in
arg y: f64 inout
for j in 0..4
  s: y = a[j]
", [tree("j")];
    by_shuffles: &sum_of(4), [tree("j").by_shuffles()];
    by_shuffles_one: &sum_of(1), [tree("j").by_shuffles()];
    by_shuffles_of_predicated_terms: "kernel k
param n: i32
arg a: f64[n, 8] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..8
    s: y[i] min= a[i, j] if a[i, j] > 0.0
", [tree("j").by_shuffles()];
    by_shuffles_in_rows: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n] inout
for i in 0..ceil(n/2)
  for r in 0..min(2, n - 2*i)
    for j in 0..4
      s: y[2*i + r] *= a[2*i + r, j]
", [
        tree("j").by_shuffles(),
        ExpandArray::new("s_tree", ["r"]), ExpandArray::new("s_tree_sum_0", ["r"]),
        ExpandArray::new("s_tree_sum_1", ["r"]), tag("i", "g.0"), tag("r", "l.1"),
    ];
    refuses_shuffles_of_five: &sum_of(5), [tree("j").by_shuffles()];
    refuses_shuffles_of_sixty_four: &sum_of(64), [tree("j").by_shuffles()];
    refuses_shuffles_on_another_axis: &sum_of(4), [ReduceInTree::new("j").by_work_items("l.1").by_shuffles()];
    refuses_shuffles_with_names_taken: "kernel k
arg a: f64[4] in
arg y: f64 inout
arg s_tree_sum_1: f64 in
for j in 0..4
  s: y += a[j]*s_tree_sum_1
", [tree("j").by_shuffles()];
    /// A step of the local tree reads what another work-item holds.
    refuses_a_local_tree_between_sub_groups: &sum_of(64), [
        tree("j"), SetAddressSpace::new("s_tree", AddressSpace::SubGroup),
    ];
    /// Private memory is of one work-item: `by_shuffles` makes a tree in registers.
    refuses_a_tree_in_registers: &sum_of(4), [tree("j"), SetAddressSpace::new("s_tree", AddressSpace::Private)];
    refuses_groups: &sum_of(4), [ReduceInTree::new("j").by_work_items("g.0")];
    refuses_an_axis_that_is_taken: "kernel k
arg a: f64[8, 4] in
arg y: f64[8] inout
for i in 0..8 {l.0}
  for j in 0..4
    s: y[i] += a[i, j]
", [tree("j")];
    refuses_an_empty_loop: "kernel k
arg a: f64[4] in
arg y: f64 inout
for j in 0..0
  s: y += a[j]
", [tree("j")];
    refuses_names_taken: &sum_of(4), [tree("j").into_temporary("a")];
    /// The sum over nothing would be added to what has no value.
    refuses_an_element_without_a_value: "kernel k
arg a: f64[4] in
arg alpha: f64 in
arg y: f64 inout
temp t: f64 private
start: t = 1.0 if alpha < 0.25
for j in 0..4
  s: t += a[j] if j < 2 and alpha < 0.25
last: y = t if alpha < 0.25
", [tree("j")];
    element_written_in_front: "kernel k
param n: i32
arg a: f64[4, n] in
arg y: f64[n] inout
temp t: f64[n] global
for i in 0..n
  start: t[i] = 1.0
for i2 in 0..n
  for j in 0..4
    s: t[i2] += a[j, i2] if j < i2
for i3 in 0..n
  last: y[i3] = t[i3]
", [tree("j")];
    refuses_an_element_written_behind: "kernel k
param n: i32
arg a: f64[4, n] in
arg y: f64[n] out
for i in 0..n
  for j in 0..4
    s: y[i] += a[j, i] if j < i - n
for i2 in 0..n
  last: y[i2] = 1.0
", [tree("j")];
    refuses_an_element_perhaps_not_written: "kernel k
param n: i32
arg a: f64[4] in
arg count: i32[1] in
temp m: i32 private
temp t: f64 private
e: m = count[0]
for i in 0..m
  start: t = 1.0
for j in 0..4
  s: t += a[j] if a[j] > 100.0
", [tree("j")];
    /// The update runs nowhere, and the sum under a condition that says something else by then.
    refuses_a_condition_that_changes: "kernel k
param n: i32
assume n <= 6
arg a: f64[n] in
arg g: f64[1] inout
temp t: f64 private
start: t = 1.0 if g[0] > 0.25
change: g[0] = 1.0
for j in 0..n
  s: t += a[j] if g[0] > 0.25
", [tree("j")];
    refuses_an_element_written_elsewhere: "kernel k
param n: i32
assume n >= 2
arg a: f64[4, n] in
arg y: f64[n] inout
temp t: f64[n] global
for i in 1..n
  start: t[i] = 1.0
for i2 in 0..n
  for j in 0..4
    s: t[i2] += a[j, i2] if j < i2
for i3 in 1..n
  last: y[i3] = t[i3]
", [tree("j")];
    /// The cast says that they fit.
    extremum_of_integers: &INTEGERS.replace("4*a[j]", "i32(4*a[j])"), [tree("j")];
    refuses_integers_that_may_not_fit: INTEGERS, [tree("j")];
}

const INTEGERS: &str = "kernel k
arg a: i32[4] in
arg y: i32 inout
for j in 0..4
  s: y min= 4*a[j]
";
