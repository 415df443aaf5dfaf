use crate::story::facts;
use purlin_transforms::primitives::{Assume, TagIname};

const SCATTER: &str = "kernel scatter
param n: i32
param m: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[m] inout
for i in 0..n
  s: y[map[i]] = x[i]
";

facts! {
    bounds: SCATTER, [Assume::at_least("n", 1), Assume::at_most("n", 64)];
    twice_is_once: SCATTER, [Assume::at_least("n", 1), Assume::at_least("n", 1)];
    injective_makes_a_scatter_parallel: SCATTER, [Assume::injective("map"), TagIname::new("i", "g.0")];
    refuses_contradiction: SCATTER, [Assume::at_least("n", 5), Assume::at_most("n", 4)];
    refuses_unknown: SCATTER, [Assume::at_least("k", 1)];
    refuses_a_bound_on_an_argument: SCATTER, [Assume::at_least("x", 1)];
    refuses_a_bound_beyond_numbers: SCATTER, [Assume::at_least("n", i64::MIN)];
    refuses_injective_reals: SCATTER, [Assume::injective("x")];
    refuses_injective_scalar: SCATTER, [Assume::injective("n")];
    refuses_injective_array_that_is_written: "kernel k
param n: i32
arg y: f64[n] inout
temp map: i32[n] private
for t in 0..2
  for i in 0..n
    m: map[i] = (i + t) mod 4
    s: y[map[i]] += 1.0
", [Assume::injective("map")];
}
