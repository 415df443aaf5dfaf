use crate::story::facts;
use purlin_transforms::Selection;
use purlin_transforms::primitives::{ConvertToUpdate, MakeAtomic, TagIname};

fn convert() -> ConvertToUpdate {
    ConvertToUpdate::insn("s")
}

facts! {
    sum_of_two: "kernel k
param n: i32
arg map: i32[n] in
arg b: f64[n] in
arg c: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[map[i]] = z[map[i]] + b[i] + c[i]
", [convert(), MakeAtomic::insn("s"), TagIname::new("i", "g.0")];
    difference_and_another_order: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i + 1 - 1] = b[i] + z[i] - 2.0*b[i] if i < 3
", [convert()];
    grouped_operand: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = z[i] - (b[i] - 1.0)
", [convert()];
    factors: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = 2.0*z[i]*b[i]
", [convert()];
    minimum_and_maximum: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
arg w: f64[n] inout
for i in 0..n
  s: z[i] = min(z[i], b[i]) {extremum}
  u: w[i] = max(max(1.0, w[i]), b[i]) {extremum}
", [ConvertToUpdate { insns: Selection::Tag("extremum".into()) }];
    narrow_terms_are_summed_in_the_wide_type: "kernel k
param n: i32
arg b: f32[n] in
arg c: f32[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = z[i] + b[i] + c[i]
", [convert()];
    integers: "kernel k
param n: i32
arg z: i32[n] inout
for i in 0..n
  s: z[i] = z[i] + 1 + 2
", [convert()];
    refuses_a_plain_store: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = 2.0*b[i]
", [convert()];
    refuses_a_neighbour: "kernel k
param n: i32
arg z: f64[n] inout
for i in 1..n
  s: z[i] = z[i - 1] + 1.0
", [convert()];
    refuses_a_negated_element: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = b[i] - z[i]
", [convert()];
    refuses_a_quotient: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = z[i]/b[i]
", [convert()];
    refuses_an_affine_recurrence: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = 0.5*z[i] + b[i]
", [convert()];
    refuses_a_second_read: "kernel k
param n: i32
arg z: f64[n] inout
for i in 0..n
  s: z[i] = z[i] + 0.5*z[i]
", [convert()];
    refuses_a_second_read_inside_a_rule: "kernel k
param n: i32
arg z: f64[n] inout
rule half(j) := 0.5*z[j]
for i in 0..n
  s: z[i] = z[i] + half(i)
", [convert()];
    refuses_a_function_of_the_sum: "kernel k
param n: i32
arg b: f64[n] in
arg z: f64[n] inout
for i in 0..n
  s: z[i] = fabs(z[i] + b[i])
", [convert()];
    refuses_an_update: "kernel k
param n: i32
arg z: f64[n] inout
for i in 0..n
  s: z[i] += 1.0
", [convert()];
    refuses_an_empty_selection: "kernel k
param n: i32
arg z: f64[n] inout
for i in 0..n
  t: z[i] = 1.0
", [convert()];
}
