use crate::story::facts;
use purlin_transforms::primitives::{Assume, FixParameter, SplitIname, TagIname, Tail, UnrollIname};

const SCALE: &str = "kernel scale
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 2.0*y[i] + f64(i)
";

fn named(outer: &str, inner: &str) -> SplitIname {
    SplitIname { outer: Some(outer.into()), inner: Some(inner.into()), ..SplitIname::new("i", 4) }
}

fn peel(iname: &str, factor: i64) -> SplitIname {
    SplitIname::new(iname, factor).with_tail(Tail::Peel)
}

fn exact(iname: &str, factor: i64) -> SplitIname {
    SplitIname::new(iname, factor).with_tail(Tail::Exact)
}

const TRIANGLE: &str = "kernel k
param n: i32
arg y: f64[n, n] inout
for i in 0..n
  for j in i..n
    s: y[i, j] = y[j, i] + 1.0
";

const BLOCKS: &str = "kernel k
param n: i32
arg y: f64[12*n] inout
for i in 0..12*n
  s: y[i] = 2.0*y[i]
";

const CHANGING: &str = "kernel k
param n: i32
arg count: i32[1] in
arg y: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: y[i] = 1.0
  e2: end = 0
";

const COUNTED: &str = "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i, j] = 2.0
";

const SHARED: &str = "kernel k
param n: i32
arg a: f64[n, 8] inout
arg b: f64[n, 8] inout
for i in 0..n
  for l in 0..8 {l.0}
    s: a[i, l] = b[i, l] + 1.0
  for m in 0..8 {l.0}
    t: b[i, m] = a[i, 7 - m]
";

facts! {
    peeled_remainder: SCALE, [peel("i", 4)];
    peeled_remainder_of_what_may_be_negative: "kernel k
param n: i32
param m: i32
arg y: f64[n] inout
for i in 0..m
  s: y[i] = 2.0*y[i] if i < n
", [peel("i", 4)];
    /// The blocks begin at the lower bound.
    peeled_remainder_of_a_shifted_range: "kernel k
param n: i32
arg y: f64[n + 3] inout
for i in 3..n
  s: y[i] = 2.0*y[i]
", [peel("i", 4)];
    peeled_remainder_is_nothing: BLOCKS, [peel("i", 4)];
    peeled_remainder_is_everything: "kernel k
arg y: f64[3] inout
for i in 0..3
  s: y[i] = 2.0*y[i]
", [peel("i", 8)];
    peeled_remainder_of_a_triangle: TRIANGLE, [peel("j", 4), peel("i", 2)];
    peeled_remainder_of_a_recurrence: "kernel k
param n: i32
arg a: f64[n] inout
arg x: f64[n, n] in
temp t: f64 private
for i in 1..n
  s: t = a[i - 1] + sum(k in i..n: x[i, k])
  u: a[i] = t + 1.0 {stage}
", [peel("i", 4)];
    peeled_remainder_of_bounds_from_memory: COUNTED, [peel("j", 4)];
    peeled_remainder_around_work_items: SHARED, [peel("i", 2)];
    exact_when_the_length_is_a_multiple: BLOCKS, [exact("i", 4)];
    exact_when_the_length_is_fixed: SCALE, [FixParameter::new("n", 8), exact("i", 4)];
    exact_reduction: "kernel k
arg x: f64[8] in
arg y: f64 inout
s: y = sum(i in 0..8: x[i])
", [exact("i", 4)];
    exact_between_multiples_apart: "kernel k
param n: i32
arg y: f64[4*n + 3] inout
for i in 3..4*n + 3
  s: y[i] = 2.0*y[i]
", [exact("i", 4)];
    exact_in_a_block_of_an_outer_loop: BLOCKS, [exact("i", 6), exact("i_i", 3)];
    refuses_exact_of_a_parameter: SCALE, [Assume::at_least("n", 6), exact("i", 4)];
    refuses_exact_of_a_constant: "kernel k
arg y: f64[7] inout
for i in 0..7
  s: y[i] = 2.0*y[i]
", [exact("i", 4)];
    refuses_exact_of_a_triangle: TRIANGLE, [exact("j", 4)];
    refuses_exact_of_bounds_from_memory: COUNTED, [exact("j", 4)];
    refuses_full_blocks_of_a_stride: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n where i mod 3 == 1
  s: y[i] = 2.0*y[i]
", [peel("i", 4)];
    refuses_to_peel_a_reduction: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
s: y = sum(i in 0..n: x[i])
", [peel("i", 4)];
    refuses_full_blocks_that_start_where_memory_says: "kernel k
param n: i32
arg p: i32[n] in
arg a: f64[n] inout
temp m: i32 private
e: m = p[0]
for i in m..n
  s: a[i] = 2.0
", [peel("i", 4)];
    refuses_full_blocks_of_bounds_that_change: CHANGING, [peel("i", 4)];
    refuses_bounds_that_change: CHANGING, [SplitIname::new("i", 4)];
}

facts! {
    guard_when_not_divisible: SCALE, [SplitIname::new("i", 4)];
    no_guard_when_divisible: "kernel k
arg y: f64[8] inout
for i in 0..8
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 4)];
    factor_beyond_the_length: "kernel k
arg y: f64[3] inout
for i in 0..3
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 8)];
    factor_one: SCALE, [SplitIname::new("i", 1)];
    empty_loop: "kernel k
arg y: f64[3] inout
for i in 0..0
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 4)];
    lower_bound_within_a_block: "kernel k
param n: i32
arg y: f64[n + 3] inout
for i in 3..n
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 4)];
    triangular: "kernel k
param n: i32
arg y: f64[n, n] inout
for i in 0..n
  for j in 0..i + 1
    s: y[i, j] = y[j, i] + 1.0
", [SplitIname::new("j", 4), SplitIname::new("i", 2)];
    strided: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n where i mod 3 == 1
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 4)];
    union: "kernel k
param n: i32
arg y: f64[n + 12] inout
for i where (i >= 0 and i < 3) or (i >= 9 and i < n)
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 4)];
    /// A bound between blocks must stay inside: the block may be there for the sake of the other range.
    union_with_a_bound_between_blocks: "kernel k
param n: i32
arg y: f64[n + 12] inout
for i where (i >= 0 and i < 3) or (i >= 2 and i >= 4 and i < n)
  s: y[i] = 2.0*y[i]
", [SplitIname::new("i", 2)];
    bound_from_a_temporary: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i, j] = 2.0
", [SplitIname::new("j", 4)];
    reduction: "kernel k
param n: i32
arg x: f64[n] in
arg y: f64 inout
s: y = sum(i in 0..n: x[i]*f64(i))
", [SplitIname::new("i", 4)];
    other_bounds_mention_it: "kernel k
param n: i32
arg x: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = maximum(j in i..n: x[i, j])
", [SplitIname::new("i", 4)];
    predicate_and_rule_mention_it: "kernel k
param n: i32
arg y: f64[n] inout
rule twice(a) := 2.0*f64(a)
for i in 0..n
  s: y[i] = twice(i) if i mod 2 == 0
", [SplitIname::new("i", 4)];
    twice: SCALE, [SplitIname::new("i", 4), SplitIname::new("i_i", 2)];
    names_of_ones_own: SCALE, [named("block", "lane")];
    keeps_the_name_inside: SCALE, [named("block", "i")];
    refuses_factor_zero: SCALE, [SplitIname::new("i", 0)];
    refuses_factor_negative: SCALE, [SplitIname::new("i", -4)];
    refuses_factor_beyond_32_bits: SCALE, [SplitIname::new("i", 1 << 40)];
    refuses_unknown_iname: SCALE, [SplitIname::new("j", 4)];
    refuses_names_taken: SCALE, [named("y", "lane")];
    refuses_one_name_twice: SCALE, [named("a", "a")];
    refuses_a_keyword: SCALE, [named("for", "lane")];
    refuses_a_loop_on_an_axis: SCALE, [TagIname::new("i", "g.0"), SplitIname::new("i", 4)];
    refuses_an_unrolled_loop: "kernel k
arg y: f64[8] inout
for i in 0..8
  s: y[i] = 2.0*y[i]
", [UnrollIname::new("i"), SplitIname::new("i", 3)];
}
