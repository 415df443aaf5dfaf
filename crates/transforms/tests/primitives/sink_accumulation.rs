use crate::story::facts;
use purlin_transforms::primitives::{SinkAccumulation, TagIname};

fn sink() -> SinkAccumulation {
    SinkAccumulation::new("t", "q")
}

const SUM: &str = "kernel total
param n: i32
arg a: f64[n, 4] in
arg y: f64 inout
temp t: f64 private
zero: t = 0.0
for q in 0..n
  for k in 0..4
    add: t += a[q, k]
commit: y += t
";

const SCATTER: &str = "kernel scatter
param n: i32
param m: i32
arg dof: i32[n, 3] in
arg a: f64[n, 3] in
arg y: f64[m] inout
temp t: f64[3] private
for c in 0..n
  for z in 0..3
    zero: t[z] = 0.0
  for q in 0..3
    for k in 0..3
      add: t[k] += a[c, q]
  for s in 0..3
    commit: y[dof[c, s]] += t[s]
";

facts! {
    a_scalar: SUM, [sink()];
    a_scatter: SCATTER, [sink()];
    a_product: &SUM.replace("0.0", "1.0").replace("+=", "*="), [sink()];
    refuses_on_an_axis_without_atomics: SCATTER, [TagIname::new("q", "sequential"), sink(), TagIname::new("q", "l.0")];
    refuses_a_start_that_is_not_neutral: &SUM.replace("0.0", "1.0"), [sink()];
    refuses_another_operator: &SUM.replace("y += t", "y *= t"), [sink()];
    refuses_a_commit_of_more: &SUM.replace("y += t", "y += 2.0*t"), [sink()];
    refuses_a_store: &SUM.replace("y += t", "y = t"), [sink()];
    refuses_a_read_inside: &SUM.replace("t += a[q, k]", "t += a[q, k]*t"), [sink()];
    refuses_another_use: &(SUM.to_owned() + "more: y += t\n"), [sink()];
    refuses_a_reader_of_the_destination: "kernel total
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
arg y: f64 inout
temp t: f64 private
zero: t = 0.0
for q in 0..n
  add: t += a[q]
  read: b[q] = y
commit: y += t
", [sink()];
    refuses_a_commit_through_a_map_that_changes: "kernel total
param n: i32
arg a: f64[n] in
arg at: i32[n] inout
arg y: f64[n] inout
temp t: f64 private
for c in 0..n
  zero: t = 0.0
  for q in 0..n
    add: t += a[q]
    write: at[q] = 0
  commit: y[at[c]] += t
", [sink()];
    refuses_bounds_read_from_memory: "kernel total
param n: i32
arg a: f64[n] in
arg y: f64[8] inout
temp t: f64[8] private
temp end: i32 private
set_end: end = 3
for z in 0..end
  zero: t[z] = 0.0
for q in 0..n
  for k in 0..3
    add: t[k] += a[q]
for s in 0..3
  commit: y[s] += t[s]
", [sink()];
    refuses_an_unknown_loop: SUM, [SinkAccumulation::new("t", "r")];
}
