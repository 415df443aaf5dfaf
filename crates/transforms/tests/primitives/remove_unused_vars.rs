use crate::story::facts;
use purlin_transforms::primitives::RemoveUnusedVars;

facts! {
    temporaries_and_tables: "kernel k
param n: i32
param m: i32
arg a: f64[n] inout
arg unused: f64[n] in
temp t: f64[n] private
table w: f64[2] global
temp u: f64 private
for i in 0..n
  s: u = 2.0*a[i]
  r: a[i] = u
table w = [1, 2]
", [RemoveUnusedVars::default()];
    what_bounds_rules_and_assumptions_mention_stays: "kernel k
param n: i32
arg a: f64[n] inout
temp gone: f64 private
temp end: i32 private
table w: f64[2] global
table map: i32[2] global
assume injective(map)
rule half(x) := w[0]*x
e: end = n
for i in 0..end
  s: a[i] = 2.0
table w = [1, 2]
table map = [1, 0]
", [RemoveUnusedVars::default()];
    refuses_where_all_are_used: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  s: a[i] = 2.0
", [RemoveUnusedVars::default()];
    what_an_instruction_writes_stays: "kernel k
param n: i32
arg a: f64[n] inout
temp gone: f64 private
temp v: f64 private
for i in 0..n
  s: v = a[i]
", [RemoveUnusedVars::default()];
    what_a_predicate_reads_stays: "kernel k
param n: i32
arg a: f64[n] inout
temp gone: f64 private
table w: f64[1] global
for i in 0..n
  s: a[i] = 2.0 if w[0] < 1.0
table w = [2]
", [RemoveUnusedVars::default()];
}
