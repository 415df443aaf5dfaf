use crate::story::facts;
use purlin_ir::AddressSpace;
use purlin_transforms::Selection;
use purlin_transforms::primitives::{
    FactorUpdate, InterchangeInames, MakeAtomic, RealiseReduction, SetAddressSpace, SplitIname, TagIname,
};

fn factor(insn: &str, inames: &[&str]) -> FactorUpdate {
    FactorUpdate::new(insn, inames.iter().copied())
}

fn split(iname: &str, factor: i64) -> SplitIname {
    SplitIname::new(iname, factor)
}

fn tag(iname: &str, tag: &str) -> TagIname {
    TagIname::new(iname, tag)
}

const SUM: &str = "kernel total
param n: i32
arg a: f64[n] in
arg y: f64 inout
for k in 0..n
  s: y += a[k]
";

const MATVEC: &str = "kernel matvec
param n: i32
arg a: f64[n, n] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*sum(k in 0..n: a[i, k]*x[k])
";

const SCATTER: &str = "kernel scatter
param n: i32
arg dof: i32[n, 3] in
arg x: f64[n, 5] in
arg y: f64[n] inout
for c in 0..n
  for q in 0..5
    for j in 0..3
      s: y[dof[c, j]] += x[c, q]*f64(j + 1) {stage}
";

facts! {
    blocks: SUM, [split("k", 4), factor("s", &["k_o"])];
    strides: SUM, [split("k", 4), InterchangeInames::new("k_o", "k_i"), factor("s", &["k_i"])];
    name_of_ones_own: SUM, [split("k", 4), factor("s", &["k_o"]).into_temporary("block")];
    /// Every work-group sums a block and adds it once.
    across_groups_by_atomics: SUM, [
        split("k", 4), factor("s", &["k_o"]), MakeAtomic::insn("s_part_sum"),
        tag("k_o_sum", "g.0"), tag("k_o", "g.0"),
    ];
    /// `y` starts at zero in the same kernel: nothing makes the groups wait for that.
    refuses_groups_that_would_wait: "kernel total
param n: i32
arg a: f64[n] in
arg y: f64 out
zero: y = 0.0
for k in 0..n
  s: y += a[k]
", [split("k", 4), factor("s", &["k_o"]), MakeAtomic::insn("s_part_sum"), tag("k_o_sum", "g.0"), tag("k_o", "g.0")];
    refuses_groups_that_add_without_atomics: SUM, [
        split("k", 4), factor("s", &["k_o"]), tag("k_o_sum", "g.0"), tag("k_o", "g.0"),
    ];
    realised_reduction: MATVEC, [
        RealiseReduction::new("k"), split("k", 4), InterchangeInames::new("k_o", "k_i"),
        factor("s_update", &["k_i"]), SetAddressSpace::new("s_update_part", AddressSpace::Local), tag("k_i", "l.0"),
    ];
    /// What a cell adds to a degree of freedom is summed before it is scattered.
    element_found_through_a_map: SCATTER, [factor("s", &["c"])];
    element_found_through_a_map_in_parallel: SCATTER, [
        MakeAtomic { insns: Selection::Tag("stage".into()) }, tag("c", "g.0"), tag("j", "l.0"), factor("s", &["c"]),
    ];
    inner_loop_only: SCATTER, [factor("s", &["q"])];
    two_loops: "kernel k
param n: i32
arg a: f64[n, n, n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..n
    for k in 0..n
      s: y[k] max= a[i, j, k]
", [factor("s", &["j", "i"])];
    triangle: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  for j in i..n
    for k in 0..j
      s: y[j] *= a[k, i]
", [factor("s", &["i"])];
    predicate_on_the_element: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..n
    s: y[i + 1] += a[i, j] if i + 1 < n
", [factor("s", &["i"])];
    /// With `p = 0` there is no `c[i, 0]`: the sum adds nothing where no term is.
    predicate_whose_operand_may_not_exist: "kernel k
param n: i32
param p: i32
arg a: f64[n, p] in
arg c: f64[n, p] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..p
    s: y[i] += a[i, k] if c[i, 0] > 0.0
", [FactorUpdate::new("s", ["i"])];
    predicate_whose_operand_exists: "kernel k
param n: i32
param p: i32
assume p >= 1
arg a: f64[n, p] in
arg c: f64[n, p] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..p
    s: y[i] += a[i, k] if c[i, 0] > 0.0
", [FactorUpdate::new("s", ["i"])];
    refuses_bounds_that_may_have_no_value: "kernel k
param n: i32
param p: i32
arg a: f64[n] in
arg y: f64[4] inout
temp m: i32 private
for q in 0..p
  w: m = 3
for i in 0..n
  for k in 0..p
    for j in 0..min(m, 4)
      s: y[j] += a[i]
", [FactorUpdate::new("s", ["i"])];
    predicate_on_the_term: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..n
    s: y[i] += a[i, j] if a[i, j] > 0.0
", [factor("s", &["i"])];
    other_updates_may_go_on: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64 inout
for i in 0..n
  for j in 0..4
    s: y += a[i, j]
    t: y += 1.0
", [factor("s", &["i"])];
    refuses_a_reader: "kernel k
param n: i32
arg a: f64[n, 4] in
arg b: f64[n] inout
arg y: f64 inout
for i in 0..n
  for j in 0..4
    s: y += a[i, j]
  r: b[i] = y
", [factor("s", &["i"])];
    inside_of_a_reader: "kernel k
param n: i32
arg a: f64[n, 4] in
arg b: f64[n] inout
arg y: f64 inout
for i in 0..n
  for j in 0..4
    s: y += a[i, j]
  r: b[i] = y
", [factor("s", &["j"])];
    refuses_an_overwriter: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[n] inout
for i in 0..n
  for j in 0..4
    s: y[i] += a[i, j]
  r: y[n - 1 - i] = 0.0
", [factor("s", &["i"])];
    refuses_another_operator: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y += a[i]
  t: y *= 2.0
", [factor("s", &["i"])];
    terms_that_read_the_element_before: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[0] += y[i]
", [factor("s", &["i"])];
    refuses_terms_that_read_the_element: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[n - 1] += y[i]
", [factor("s", &["i"])];
    refuses_an_index_that_changes: "kernel k
param n: i32
arg dof: i32[n] in
arg a: f64[n] in
arg y: f64[n] inout
temp d: i32 private
for i in 0..n
  r: d = dof[i]
  s: y[d] += a[i]
", [factor("s", &["i"])];
    refuses_bounds_on_a_summed_loop: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..n
    for j in 0..k
      s: y[j] += a[i, k]
", [factor("s", &["i"])];
    refuses_an_element_that_may_not_exist: "kernel k
param n: i32
param m: i32
arg a: f64[n, m] in
arg y: f64[m] inout
for i in 0..n
  for k in 0..m
    s: y[i - n + 1] += a[i, k]
", [factor("s", &["i"])];
    element_that_always_exists: "kernel k
param n: i32
param m: i32
assume 1 <= m
arg a: f64[n, m] in
arg dof: i32[n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..m
    s: y[dof[i]] += a[i, k]
", [factor("s", &["i"])];
    refuses_a_mapped_element_that_may_not_exist: "kernel k
param n: i32
param m: i32
arg a: f64[n, m] in
arg dof: i32[n] in
arg y: f64[n] inout
for i in 0..n
  for k in 0..m
    s: y[dof[i]] += a[i, k]
", [factor("s", &["i"])];
    refuses_an_element_without_a_value: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64[4] out
for i in 0..n
  start: y[i] = 1.0 if i < 2
for i2 in 0..4
  for k in 0..4
    s: y[i2] += a[i2, k] if a[i2, k] > 0.0
", [factor("s", &["i2"])];
    refuses_an_element_written_in_the_loop: "kernel k
param n: i32
arg a: f64[n, 4] in
arg y: f64 out
assume n >= 1
for i in 0..n
  start: y = 1.0 if i < 1
  for k in 0..4
    s: y += a[i, k] if a[i, k] > 0.0
", [factor("s", &["i"])];
    refuses_a_plain_store: MATVEC, [factor("s", &["i"])];
    refuses_a_loop_elsewhere: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] += 1.0
for j in 0..n
  t: y[j] *= 2.0
", [factor("s", &["j"])];
    refuses_no_loop: SUM, [factor("s", &[])];
    refuses_unknown: SUM, [factor("s", &["q"])];
    refuses_names_taken: SUM, [factor("s", &["k"]).into_temporary("a")];
    refuses_private_partials_that_others_need: SUM, [
        split("k", 4), factor("s", &["k_o"]), tag("k_o", "l.0"),
    ];
    refuses_bounds_that_change: "kernel k
param n: i32
arg y: f64[8] inout
temp p: i32 private
p0: p = 0
for i in 0..n
  t: p += 1
  for k in 0..min(p, 8)
    f: y[k] += 2.0
", [factor("f", &["i"])];
    refuses_a_predicate_that_changes: "kernel k
param n: i32
arg a: f64[n, 4] in
arg c: f64[n] inout
arg y: f64[n] inout
for i in 0..n
  for k in 0..4
    s: y[i] += a[i, k] if c[i] > 0.0
  w: c[i] = -1.0
", [factor("s", &["i"])];
}
