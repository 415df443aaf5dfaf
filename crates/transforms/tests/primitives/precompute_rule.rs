use crate::story::{compare_from, facts};
use purlin_interp::Value;
use purlin_ir::AddressSpace::{Constant, Global, Local, Private};
use purlin_transforms::Selection;
use purlin_transforms::primitives::{FixParameter, PrecomputeRule, SplitIname, TagIname};

const PAIRS: &str = "kernel pairs
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
rule r(i) := exp(x[i]) + 1.0
for b in 0..floor_div(n, 8)
  for k in 0..8
    for l in 0..8
      s: y[8*b + k] += r(8*b + k)*r(8*b + l)
";

const PLANE: &str = "kernel plane
param n: i32
arg x: f64[n, 6] in
arg y: f64[n] inout
rule r(i, j) := 2.0*x[i, j]
for c in 0..n {g.0}
  for l in 0..8 {l.0}
    s: y[c] += sum(j in 0..6: r(c, j)*f64(j)) if l < 1
";

/// The rule is used for every second argument.
const SPARSE: &str = "kernel sparse
param n: i32
arg x: f64[8] in
arg y: f64[n] inout
rule r(i) := x[i] + 1.0
for i in 0..n
  for k in 0..4
    s: y[i] += r(2*k)
";

/// Beyond the last argument that is used there is nothing to read.
const ENDS: &str = "kernel ends
param n: i32
arg x: f64[9] in
arg y: f64[n] inout
rule r(i) := x[i]
for i in 0..n
  for k in 0..4
    s: y[i] += r(2*k) + select(k < 1, r(k + 8), 0.0)
";

const SWEEP: &str = "kernel sweep
param n: i32
arg a: f64[n] inout
rule r(i) := a[i] + 1.0
for t in 0..n
  for i in 1..n
    s: a[i] = r(i - 1)
";

fn compute(at: &str) -> PrecomputeRule {
    PrecomputeRule::new("r", at, Private)
}

facts! {
    in_a_block: PAIRS, [compute("b")];
    in_an_inner_loop: PAIRS, [compute("k")];
    only_in_some_instructions: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
arg z: f64[n] inout
rule r(i) := x[i]*x[i]
for i in 0..n
  for k in 0..4
    s: y[i] += r(i)
    t: z[i] += r(i)
", [compute("i").only_in(Selection::Writes("z".into()))];
    names_of_ones_own: PAIRS, [PrecomputeRule { inames: vec!["e".into()], ..compute("b").into_temporary("values") }];
    several_parameters_by_work_items: PLANE, [PrecomputeRule::new("r", "c", Local).by_work_items([4, 2])];
    loop_tagged_afterwards: PLANE, [PrecomputeRule::new("r", "c", Local), TagIname::new("r_values_0", "l.0")];
    whole_kernel: "kernel k
arg x: f64[8] in
arg y: f64[8] inout
rule r(i) := x[i]*x[i]
for i in 0..8
  for j in 0..8
    s: y[i] += r(j)
", [PrecomputeRule::whole("r", Global)];
    without_parameters: "kernel k
param n: i32
arg a: f64 in
arg y: f64[n] inout
rule r() := exp(a)
for i in 0..n
  s: y[i] += r()
", [PrecomputeRule::whole("r", Private)];
    rule_that_uses_another: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
rule q(i) := 2.0*x[i]
rule r(i) := q(i) + q(i)
for i in 0..n
  for k in 0..4
    s: y[i] += r(i)*q(i)
", [compute("i"), PrecomputeRule::new("q", "i", Private)];
    integers_are_stored_wide: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
rule r(i) := map[i]*map[i]
for i in 0..n
  for k in 0..4
    s: y[i] += f64(r(i))
", [compute("i")];
    integers_that_are_loaded_keep_their_type: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
rule r(i) := map[i]
for i in 0..n
  for k in 0..4
    s: y[r(i)] += 1.0
", [compute("i")];
    box_with_values_that_nothing_uses: SPARSE, [compute("i")];
    exactly_what_is_used: SPARSE, [compute("i").exactly()];
    partial_block_of_what_there_is: PAIRS, [FixParameter::new("n", 8), compute("b")];
    after_a_write_of_an_operand: "kernel k
param n: i32
arg a: f64[n, 4] inout
arg y: f64[n] inout
rule r(i, j) := a[i, j] + 1.0
for i in 0..n
  for j in 0..4
    w: a[i, j] = 2.0*a[i, j]
  for k in 0..4
    s: y[i] += r(i, k)
", [compute("i")];
    refuses_a_write_in_the_sweep: SWEEP, [SplitIname::new("i", 4), compute("i_o")];
    refuses_a_write_in_an_enclosing_loop: SWEEP, [FixParameter::new("n", 4), PrecomputeRule::whole("r", Private)];
    refuses_to_read_outside: ENDS, [compute("i")];
    /// The condition is not seen by the analysis: what may be used is 0, 2, 4, 6, and 8 to 11.
    refuses_to_read_outside_even_exactly: ENDS, [compute("i").exactly()];
    /// An entry that nothing uses may lead anywhere.
    refuses_to_read_through_a_map: "kernel k
param n: i32
arg map: i32[8] in
arg x: f64[n] in
arg y: f64[n] inout
rule r(j) := x[map[j]]
for i in 0..n
  for k in 0..4
    s: y[i] += r(2*k)
", [compute("i")];
    refuses_bounds_from_memory: "kernel k
param n: i32
arg rows: i32[n] in
arg x: f64[n, 7] in
arg y: f64[n] inout
temp m: i32 private
rule r(b, j) := x[b, j]
for i in 0..n
  e: m = rows[i]
  for b in 0..m
    for k in 0..4
      s: y[i] += r(b, 2*k)
", [compute("b")];
    refuses_what_may_be_undefined: "kernel k
param n: i32
arg y: f64[n] inout
temp t: f64[8] private
rule r(j) := t[j]
for j in 0..4
  w: t[2*j] = f64(j)
for i in 0..n
  for k in 0..4
    s: y[i] += r(2*k)
", [compute("i")];
    refuses_an_argument_from_memory: "kernel k
param n: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
rule r(k) := x[k]
for i in 0..n
  for k in 0..4
    s: y[i] += r(map[i])
", [compute("i")];
    refuses_a_literal: "kernel k
param n: i32
arg y: f64[n] inout
rule r() := 0.5
for i in 0..n
  s: y[i] += r()
", [PrecomputeRule::whole("r", Private)];
    refuses_private_values_shared_by_items: PLANE, [PrecomputeRule::new("r", "c", Private).by_work_items([8])];
    refuses_an_extent_that_grows: PAIRS, [PrecomputeRule::whole("r", Private)];
    refuses_a_rule_that_nothing_uses_there: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
rule r(i) := x[i]
for i in 0..n
  s: y[i] = 1.0
for j in 0..n
  t: y[j] += r(j)
", [compute("i")];
    refuses_names_taken: PAIRS, [compute("b").into_temporary("y")];
    refuses_constant_memory: PAIRS, [PrecomputeRule::new("r", "b", Constant)];
    refuses_unknown: PAIRS, [PrecomputeRule::new("q", "b", Private)];
    refuses_an_unknown_loop: PAIRS, [compute("q")];
    refuses_a_write_of_what_another_rule_reads: "kernel k
param n: i32
arg x: f64[n] inout
arg y: f64[n] inout
rule q(i) := 2.0*x[i]
rule r(i) := q(i) + 1.0
for i in 0..n
  for k in 0..4
    s: y[i] += r(i)
    w: x[i] = 0.5*x[i]
", [compute("i")];
    refuses_values_of_different_types: "kernel k
param n: i32
arg y: i64[n, 4] inout
rule r(j) := j*j
for i in 0..n
  for k in 0..4
    s: y[i, k] = r(n) + r(k)
", [compute("k")];
    refuses_to_divide_by_what_may_be_zero: GUARDED, [compute("i")];
    refuses_to_divide_under_a_condition:
        &GUARDED.replace("select(b[k] >= 1, r(k), 0)", "r(k) if b[k] >= 1"), [compute("i")];
    refuses_a_remainder_by_what_may_be_zero: &GUARDED.replace("floor_div(a[i], b[i])", "a[i] mod b[i]"), [compute("i")];
    divides_by_one_at_least: &GUARDED.replace("b[i])", "max(b[i], 1))"), [compute("i")];
    divides_by_a_constant: &GUARDED.replace("b[i])", "3)"), [compute("i")];
    refuses_to_cast_a_real_that_may_not_fit:
        &GUARDED.replace("arg a: i32", "arg a: f64").replace("floor_div(a[i], b[i])", "i64(a[i])"), [compute("i")];
    refuses_to_cast_an_integer_that_may_not_fit:
        &GUARDED.replace("arg a: i32", "arg a: i64").replace("floor_div(a[i], b[i])", "i32(a[i])"), [compute("i")];
    /// What is stored in 32 bits is cast as the store does.
    integers_of_a_plain_store: &SUMS.replace("+=", "="), [compute("i")];
    integers_that_are_cast: &SUMS.replace("2*a[i]", "i32(2*a[i])"), [compute("i")];
    refuses_an_update_in_32_bits: SUMS, [compute("i")];
    /// Every division runs in any case.
    divides_what_is_surely_used: &GUARDED.replace("select(b[k] >= 1, r(k), 0)", "r(k)"), [compute("i")];
}

/// Divides only where the divisor is not zero.
const GUARDED: &str = "kernel guarded
param n: i32
arg a: i32[4] in
arg b: i32[4] in
arg y: i64[n, 4] inout
rule r(i) := floor_div(a[i], b[i])
for i in 0..n
  for k in 0..4
    s: y[i, k] += select(b[k] >= 1, r(k), 0)
";

const SUMS: &str = "kernel sums
param n: i32
arg a: i32[4] in
arg y: i32[n, 4] inout
rule r(i) := 2*a[i]
for i in 0..n
  for k in 0..4
    s: y[i, k] += r(k)
";

#[test]
fn large_integers_stay() {
    let text = SUMS.replace("+= r(k)", "= floor_div(r(k), 4)");
    compare_from(&text, &[compute("i").into()], &[("a", Value::I32(vec![2_000_000_000; 4]))]);
}
