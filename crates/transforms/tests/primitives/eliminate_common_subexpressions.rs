use crate::story::facts;
use purlin_transforms::Selection;
use purlin_transforms::primitives::{
    EliminateCommonSubexpressions as Eliminate, HoistInsn, SplitIname, TagIname,
};

fn eliminate() -> Eliminate {
    Eliminate::default()
}

const SHARED: &str = "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] in
arg y: f64[n] inout
arg z: f64[n, 3] inout
for i in 0..n
  s: y[i] = (a[i] + 1.0)*b[i]
  for j in 0..3
    t: z[i, j] = (a[i] + 1.0)*b[i] + (a[i] + 1.0)/f64(j + 1)
";

const WRITTEN: &str = "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64[n, 4] inout
for i in 0..n
  s: y[i, 0] = 2.0*a[i]
  t: y[i, 1] = 2.0*a[i] + 1.0
  w: a[i] = y[i, 0]
  u: y[i, 2] = 2.0*a[i]
  v: y[i, 3] = 2.0*a[i] - 1.0
";

/// Work-groups write `b`; then one of them uses it twice.
fn groups(value: &str) -> String {
    format!(
        "kernel k\narg z: f64[8] in\narg b: f64[8] inout\narg y: f64[8] inout\n\
         for c1 in 0..8 {{g.0}}\n  s: b[c1] = 1.0\n\
         for c2 in 0..1 {{g.0}}\n  t: y[c2] = {value}\n\
         for c3 in 0..1 {{g.0}}\n  u: y[c3] += {value}\n"
    )
}

facts! {
    the_largest_first: SHARED, [eliminate()];
    at_a_size_and_a_number_of_uses: SHARED, [Eliminate { least_size: 2, ..eliminate() }];
    beside_a_parameter_of_its_name: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] out
arg z: f64[n] out
rule f(common, compute_common_1) := common*2.0 + compute_common_1
for i in 0..n
  s: y[i] = (a[i] + 1.0)*(a[i] + 1.0)
  t: z[i] = f(a[i], 1.0)
", [eliminate()];
    not_often_enough: SHARED, [Eliminate { least_uses: 4, ..eliminate() }];
    of_some_instructions: SHARED, [Eliminate { temporary: Some("shifted".into()), ..Eliminate::of(Selection::Insn("t".into())) }];
    then_hoisted: "kernel k
param n: i32
arg c: f64 in
arg d: f64 in
arg y: f64[n, 2] inout
for i in 0..n
  for j in 0..2
    s: y[i, j] = sqrt(c*d) + f64(j)*sqrt(c*d)
", [eliminate(), HoistInsn::new("compute_common"), HoistInsn::new("compute_common")];
    in_front_of_a_loop_that_is_not_empty: "kernel k
param n: i32
arg c: f64[n] in
arg y: f64[n, 4] inout
for i in 0..n
  for j in 0..2
    s: y[i, j] = c[i]*c[i]
  for k in 2..4
    t: y[i, k] = c[i]*c[i] + 1.0
", [eliminate()];
    one_on_each_side_of_a_write: WRITTEN, [eliminate()];
    in_single_precision: "kernel k
arg a: f32[2] in
arg y: f32[2] inout
s: y[0] = a[0]*a[1] + 1.0
t: y[1] = a[0]*a[1]
", [eliminate()];
    in_a_condition: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sqrt(a[i]*a[i]) if a[i]*a[i] < 4.0
", [eliminate()];
    on_work_items: SHARED, [SplitIname::new("i", 4), TagIname::new("i_o", "g.0"), TagIname::new("i_i", "l.0"), eliminate()];
    of_every_work_item: "kernel k
arg c: f64 in
arg y: f64[4] inout
arg z: f64[4] inout
for i in 0..4 {l.0}
  s: y[i] = c*c + f64(i)
for j in 0..4 {l.0}
  t: z[j] = c*c - f64(j)
", [eliminate()];
    integers_stay: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[(map[i] + 1) mod n] += 1.0 if map[i] + 1 < n
", [eliminate()];
    reductions_stay: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
s: y = sum(i in 0..n: a[i]*a[i]) + sum(j in 0..n: a[j]*a[j])
", [eliminate()];
    refuses_where_all_are_conditional: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 1.0/a[i] + 2.0*(1.0/a[i]) if a[i] < 0.0
", [eliminate()];
    refuses_in_front_of_loops_that_may_be_empty: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*a[0]
for j in 0..n
  t: y[j] += 2.0*a[0]
", [eliminate()];
    refuses_across_a_write: "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*a[i]
  w: a[i] = y[i]
  t: y[i] += 2.0*a[i]
", [eliminate()];
    refuses_across_a_write_through_a_map: "kernel k
param n: i32
arg map: i32[n] in
arg a: f64[n] inout
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*a[i]
  w: a[map[i]] = 3.0
  t: y[i] += 2.0*a[i]
", [eliminate()];
    refuses_one_use: SHARED, [Eliminate { least_uses: 1, ..eliminate() }];
    /// The temporary of `2.0*b[0]` would need a value that other work-groups write.
    of_those_that_no_other_group_writes: &groups("2.0*b[0] + sqrt(z[7])*3.0"), [eliminate()];
    refuses_what_another_group_writes: &groups("2.0*b[0]"), [eliminate()];
    refuses_in_front_of_bounds_from_memory: "kernel k
param n: i32
arg count: i32[n] in
arg a: f64[n] in
arg y: f64[n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i] += 2.0*a[0]
  for l in 0..end
    t: y[i] *= 2.0*a[0]
", [eliminate()];
    refuses_branches_of_a_selection: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = select(i > 0, 2.0*a[i - 1], 1.0) + select(i > 0, 2.0*a[i - 1], 3.0)
", [eliminate()];
    refuses_second_operands_of_conditions: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 1.0 if i > 0 and 2.0*a[i - 1] < 1.0
  t: y[i] *= 3.0 if i < 1 or 2.0*a[i - 1] < 1.0
", [eliminate()];
    refuses_terms_of_reductions_that_may_be_empty: "kernel k
param n: i32
param m: i32
arg a: f64[m] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..m: 2.0*a[0]) + maximum(l in 0..m: 2.0*a[0])
", [eliminate()];
    refuses_uses_of_rules: "kernel k
param n: i32
arg a: f64[n] inout
arg y: f64[n] inout
rule f(j) := a[j]
for i in 0..n
  s: y[i] = f(i) + 1.0
  w: a[i] = 2.0*y[i]
  t: y[i] *= f(i) + 1.0
", [eliminate()];
    refuses_products_of_integers: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = f64(map[i]*map[i]) + f64(map[i]*map[i] + 1)
", [eliminate()];
    /// What a call holds stays, and what stands around it has temporaries.
    beside_a_call: CALL, [eliminate()];
    refuses_what_only_calls_hold: CALL, [Eliminate::of(Selection::Insn("s".into()))];
}

const CALL: &str = "kernel k
param n: i32
arg x: f64[n] inout
arg y: f64[n] inout
arg z: f64[n] inout
callee dbl
  arg p: f64 in
  arg c: f64 inout

  s: c = (2.0*p)*(2.0*p)
  t: c = c + 2.0*p
for i in 0..n
  u: z[i] = 2.0*x[i] + 1.0
  call dbl
    s: y[i] = (2.0*x[i])*(2.0*x[i])
    t: y[i] = y[i] + 2.0*x[i]
  v: z[i] = z[i]*(2.0*x[i])
";
