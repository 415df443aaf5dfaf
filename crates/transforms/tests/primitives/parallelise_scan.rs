use crate::story::facts;
use purlin_transforms::primitives::{ParalleliseScan, RealiseScan, SplitIname};

fn scan(iname: &str) -> ParalleliseScan {
    ParalleliseScan::new(iname, "u").by_work_items("l.0")
}

const CHUNKS: &str = "kernel chunks
param n: i32
arg a: f64[5, n] in
arg y: f64[5, n] inout
arg z: f64 inout
temp t: f64 private
zero: t = 0.0
for c in 0..5
  for j in 0..n
    u: t += a[c, j]
    s: y[c, j] = t
last: z = t
";

facts! {
    inclusive: CHUNKS, [scan("c")];
    exclusive_maximum: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
temp t: f64 private
zero: t = 0.0
for c in 0..4
  s: y[c] = t
  u: t max= a[c]
", [scan("c").into_temporary("highest")];
    one_iteration: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
temp t: f64 private
zero: t = 0.0
for c in 0..1
  u: t += a[c]
  s: y[c] = t
", [scan("c")];
    /// Blocks of four work-items, the total carried from block to block.
    prefix_sums: "kernel sums
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i + 1: a[j])
", [
        RealiseScan::new("s").into_temporary("total"), SplitIname::new("i", 4),
        ParalleliseScan::new("i_i", "total_update").by_work_items("l.0"),
    ];
    /// Three work-items with chunks of two in each block.
    two_levels: "kernel sums
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(j in 0..i: a[j])
", [
        RealiseScan::new("s").into_temporary("total"), SplitIname::new("i", 6), SplitIname::new("i_i", 2),
        ParalleliseScan::new("i_i_o", "total_update").by_work_items("l.0"),
    ];
    refuses_terms_that_the_loop_writes: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
temp t: f64 private
zero: t = 0.0
for c in 0..4
  u: t += y[c]
  s: y[3 - c] = t
", [scan("c")];
    refuses_a_temporary_term: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
temp t: f64 private
temp v: f64 private
zero: t = 0.0
for c in 0..4
  r: v = 2.0*a[c]
  u: t += v
  s: y[c] = t
", [scan("c")];
    refuses_another_writer: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
temp t: f64 private
zero: t = 0.0
for c in 0..4
  u: t += a[c]
  w: t = 0.0 if a[c] > 1.0
  s: y[c] = t
", [scan("c")];
    refuses_terms_of_the_total: "kernel k
arg a: f64[4] in
arg y: f64[4] inout
temp t: f64 private
zero: t = 1.0
for c in 0..4
  u: t += 0.5*t
  s: y[c] = t
", [scan("c")];
    refuses_an_argument: "kernel k
arg a: f64[4] in
arg t: f64 inout
for c in 0..4
  u: t += a[c]
", [scan("c")];
    refuses_unknown_length: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
temp t: f64 private
zero: t = 0.0
for c in 0..n
  u: t += a[c]
  s: y[c] = t
", [scan("c")];
    refuses_a_loop_elsewhere: CHUNKS, [ParalleliseScan::new("j", "zero")];
    refuses_a_loop_that_is_not_around: "kernel k
arg a: f64[4] in
temp t: f64 private
zero: t = 0.0
for c in 0..4
  u: t += a[c]
for d in 0..4
  v: t *= a[d]
", [scan("d")];
    refuses_readers_on_an_axis: "kernel k
arg a: f64[4, 4] in
arg y: f64 inout
temp t: f64 private
zero: t = 0.0
for c in 0..4
  u: t += a[c, 0]
  s: y = t
", [scan("c")];
    refuses_names_taken: CHUNKS, [scan("c").into_temporary("a")];
    /// The total has a value where the predicate holds, and only there.
    total_under_a_condition: "kernel k
arg a: f64[4] in
arg alpha: f64 in
arg y: f64[4, 4] inout
temp t: f64 private
for i in 0..4
  zero: t = 0.0 if alpha < 0.25
  for c in 0..4
    u: t += a[c] if alpha < 0.25 and i < 2
  s: y[i, 0] = t if alpha < 0.25
", [scan("c")];
    /// Where the terms are left out, the total is read all the same.
    condition_of_the_terms_only: "kernel k
arg a: f64[4] in
arg alpha: f64 in
arg y: f64[4] inout
temp t: f64 private
zero: t = 1.0
for c in 0..4
  u: t += a[c] if alpha < 0.25
  s: y[c] = t
", [scan("c")];
    /// In the first iteration of `i` nothing is written; all terms are there.
    total_without_a_start: "kernel k
arg a: f64[4] in
arg y: f64[4, 4] inout
temp t: f64 private
for i in 0..4
  zero: t = 0.0 if i < 1
  for c in 0..4
    u: t += a[c]
    s: y[i, c] = t
", [scan("c")];
    refuses_a_total_that_has_no_value_yet: "kernel k
param n: i32
arg a: f64[4, n] in
temp t: f64 private
for i in 0..4
  zero: t = 0.0 if 0 < i
  for c in 0..4
    for j in 0..n
      u: t += a[c, j]
", [scan("c")];
    refuses_a_condition_from_an_array: "kernel k
arg a: f64[4] in
arg b: f64[4] in
temp t: f64 private
zero: t = 0.0 if b[0] < 0.25
for c in 0..4
  u: t += a[c] if b[0] < 0.25
", [scan("c")];
    refuses_a_reader_without_the_condition: "kernel k
arg a: f64[4] in
arg alpha: f64 in
arg y: f64[4] inout
temp t: f64 private
zero: t = 0.0 if alpha < 0.25
for c in 0..4
  u: t += a[c] if alpha < 0.25
  s: y[c] = t if alpha < 0.5
", [scan("c")];
}
