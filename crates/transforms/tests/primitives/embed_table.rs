use crate::story::facts;
use purlin_transforms::primitives::{EmbedTable, RemoveUnusedVars};

fn embed(var: &str) -> EmbedTable {
    EmbedTable::new(var)
}

facts! {
    every_load: "kernel k
arg a: f64[2] inout
table w: f64[2, 2] global
table map: i32[2] global
rule scale(x) := w[1, 0]*x
s: a[map[0]] = w[0, 1]*a[map[1]] + scale(2.0) - w[1, 1]
table w = [0.25, -0.75, 3, 4]
table map = [1, 0]
", [embed("w"), embed("map"), RemoveUnusedVars::default()];
    the_type_of_an_extremum_stays: "kernel k
param n: i32
arg y: i64[2] inout
table w: i32[2] global
s0: y[0] = minimum(i in 0..n: w[1])
s1: y[1] = maximum(j in 0..n: w[0] + j)
table w = [5, 7]
", [embed("w")];
    only_constant_indices: "kernel k
arg a: f64[4] inout
table w: f64[4] global
for i in 0..4
  s: a[i] = w[i] - w[3 - 1]
table w = [1, 2, 3, 4]
", [embed("w")];
    cast_where_single_precision_occurs: "kernel k
arg a: f32[2] inout
arg b: f64 inout
table w: f64[2] global
s: b = w[0]*a[1]
table w = [0.1, 2]
", [embed("w")];
    refuses_indices_that_vary: "kernel k
arg a: f64[4] inout
table w: f64[4] global
for i in 0..4
  s: a[i] = w[i]
table w = [1, 2, 3, 4]
", [embed("w")];
    refuses_an_argument: "kernel k
arg a: f64[4] inout
s: a[0] = a[1]
", [embed("a")];
    refuses_unknown: "kernel k
arg a: f64[4] inout
s: a[0] = a[1]
", [embed("w")];
    cast_where_a_cast_to_single_precision_occurs: "kernel k
arg y: f64[2] inout
table w: f64[1] global
s: y[0] = w[0]*f32(y[1])
table w = [0.1]
", [embed("w")];
    cast_where_a_rule_casts_to_single_precision: "kernel k
arg y: f64[2] inout
table w: f64[1] global
rule f(x) := w[0]*f32(x)
s: y[0] = f(y[1])
table w = [0.1]
", [embed("w")];
    refuses_an_index_outside: "kernel k
arg y: f64[2] inout
table w: f64[2, 2] global
for i in 0..0
  s: y[i] = w[0, 2]
table w = [1, 2, 3, 4]
", [embed("w")];
}
