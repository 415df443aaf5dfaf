use crate::story::{compare_from, facts};
use purlin_interp::Value;
use purlin_transforms::primitives::{RealiseReduction, SplitIname, TagIname};

fn realise(iname: &str) -> RealiseReduction {
    RealiseReduction::new(iname)
}

const MATVEC: &str = "kernel matvec
param n: i32
arg a: f64[n, n] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*sum(k in 0..n: a[i, k]*x[k]) + y[i] {stage}
";

facts! {
    sum: MATVEC, [realise("k")];
    name_of_ones_own: MATVEC, [RealiseReduction { accumulator: Some("row".into()), ..realise("k") }];
    on_work_items: MATVEC, [TagIname::new("i", "l.0"), realise("k")];
    split_before: MATVEC, [SplitIname::new("k", 4), realise("k_o")];
    triangle_of_two_inames: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i, k in j..n: a[j, k])
", [realise("k")];
    empty_ranges_and_extrema: "kernel k
param n: i32
arg a: f32[n] in
arg m: i32[n] in
arg p: f32[n] inout
arg q: f32[n] inout
arg r: i32[n] inout
for i in 0..n
  s: p[i] = minimum(j in 0..i: a[j])
  t: q[i] = maximum(k in 0..i: a[k])
  u: r[i] = minimum(l in 0..i: m[l]) if i > 0
  v: r[i] = product(o in 0..i: m[o])
", [realise("j"), realise("k"), realise("l"), realise("o")];
    nested_outer_first: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64 inout
s: y = sum(i in 0..n: f64(i)*sum(j in 0..i: a[i, j]))
", [realise("i"), realise("j")];
    in_an_index: "kernel k
param n: i32
arg a: i32[n] in
arg y: f64[n*1 + 1] inout
for i in 0..n
  s: y[sum(j in 0..1: a[j])] = 1.0
", [realise("j")];
    update_under_a_predicate: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] += sum(j in 0..n: a[i, j]) if i < 2
", [realise("j")];
    refuses_a_loop: MATVEC, [realise("i")];
    refuses_unknown: MATVEC, [realise("q")];
    refuses_the_inner_one_first: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64 inout
s: y = sum(i in 0..n: sum(j in 0..i: a[i, j]))
", [realise("j")];
    refuses_under_a_condition: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = select(i < 2, sum(j in 0..n: a[j]), 0.0)
", [realise("j")];
    refuses_in_a_predicate: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 1.0 if sum(j in 0..n: a[j]) < 2.0
", [realise("j")];
    refuses_an_argument_of_a_rule: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
rule square(x) := x*x
for i in 0..n
  s: y[i] = square(sum(j in 0..n: a[j]))
", [realise("j")];
    refuses_a_sum_without_a_type: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..n: 0.5)
", [realise("j")];
    refuses_names_taken: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
arg s_acc: f64[n] in
for i in 0..n
  s: y[i] = sum(j in 0..n: a[j])
", [realise("j")];
    /// The sums are computed in 64 bits, and only what is stored must fit.
    integers_in_64_bits: QUOTIENTS, [realise("j")];
    integers_of_a_plain_store: &QUOTIENTS.replace("floor_div(sum(j in 0..n: a[i, j]), 8)", "sum(j in 0..n: a[i, j])"),
        [realise("j")];
    extrema_of_integers_that_may_not_fit: &QUOTIENTS.replace("sum(j in 0..n: a[i, j])", "minimum(j in 0..n: 4*a[i, j])"),
        [realise("j")];
    integers_added_as_a_whole: &QUOTIENTS.replace("= floor_div(sum(j in 0..n: a[i, j]), 8)", "+= sum(j in 0..n: a[i, j])"),
        [realise("j")];
    refuses_an_update_by_a_part: &QUOTIENTS.replace("] = ", "] += "), [realise("j")];
    refuses_an_extremum_with_a_sum:
        &QUOTIENTS.replace("= floor_div(sum(j in 0..n: a[i, j]), 8)", "min= sum(j in 0..n: a[i, j])"), [realise("j")];
}

/// Means of integers whose sums fit no i32.
const QUOTIENTS: &str = "kernel k
param n: i32
arg a: i32[n, n] in
arg y: i32[n] inout
for i in 0..n
  s: y[i] = floor_div(sum(j in 0..n: a[i, j]), 8)
";

#[test]
fn large_sums_stay() {
    let large = Value::I32(vec![2_000_000_000; 16]);
    let wide = "product(j in 0..n - 2: a[i, j])";
    for text in [
        QUOTIENTS,
        &QUOTIENTS.replace("arg y: i32", "arg y: i64").replace("floor_div(sum(j in 0..n: a[i, j]), 8)", wide),
        &QUOTIENTS.replace("sum(j in 0..n: a[i, j])", "minimum(j in 0..n: 4*a[i, j])"),
    ] {
        compare_from(text, &[realise("j").into()], &[("a", large.clone())]);
    }
}
