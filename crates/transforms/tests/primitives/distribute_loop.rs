use crate::story::facts;
use purlin_transforms::primitives::{DistributeLoop, TagIname};

fn before(iname: &str, parts: &[&str]) -> DistributeLoop {
    DistributeLoop::new(iname, parts.iter().copied())
}

const TWO: &str = "kernel two
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
arg c: f64[n] inout
for i in 0..n
  s: b[i] = 2.0*a[i]
  u: c[i] = b[i] + f64(i)
";

const SCALAR: &str = "kernel scalar
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64 private
for i in 0..n
  load: t = a[i]
  store: b[i] = t + 1.0
";

/// How far a row goes, memory says: not even that two loops go equally far is seen.
const ROWS: &str = "kernel rows
arg d: i32[4] in
arg a: f64[4, 8] in
arg y: f64[4, 8] inout
temp e: i32 private
temp t: f64[8] private
for c in 0..4 {g.0}
  r: e = d[c]
  for i in 0..min(e, 8) {l.0}
    load: t[i] = a[c, i]
    s: y[c, i] = t[i]
";

facts! {
    two_parts: TWO, [before("i", &["u"])];
    names_of_ones_own: TWO, [DistributeLoop { names: vec!["k".into()], ..before("i", &["u"]) }];
    three_parts_and_a_loop_inside: "kernel k
param n: i32
arg y: f64[n] inout
arg z: f64[n, n] inout
for i in 0..n
  s: y[i] = f64(i)
  for j in 0..i + 1
    u: z[i, j] = y[i] + f64(j)
  v: y[i] = y[i] + z[i, i]
", [before("i", &["v", "j"])];
    /// The part is named by an instruction inside a loop.
    part_named_by_what_it_holds: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = 0.0
  for j in i..n
    u: y[i] += sum(k in i..j: f64(k))
", [before("i", &["u"])];
    inner_loop: "kernel k
param n: i32
arg a: f64[n, n] inout
arg b: f64[n, n] inout
for i in 0..n
  for j in 0..i
    s: a[i, j] = 1.0
    u: b[j, i] = a[i, j] if i mod 2 == 0
", [before("j", &["u"])];
    empty_loop: "kernel k
arg a: f64[3] inout
for i in 0..0
  s: a[i] = 1.0
  u: a[i] = 2.0
", [before("i", &["u"])];
    /// What `u` reads was written in an earlier iteration: all of it is there now.
    value_from_an_earlier_iteration: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 1..n
  s: a[i] = f64(i)
  u: b[i] = a[i - 1]
", [before("i", &["u"])];
    expanded_temporary: "kernel k
param n: i32
arg b: f64[n] inout
temp t: f64[n] private
for i in 1..n
  load: t[i] = b[i]
  store: b[i] = t[i] + 1.0
", [before("i", &["store"])];
    bounds_from_a_temporary: "kernel k
param n: i32
arg count: i32[1] in
arg a: f64[n] inout
arg b: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: a[i] = 1.0
  u: b[i] = 2.0
", [before("i", &["u"])];
    on_work_items: "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
arg c: f64[n] inout
for i in 0..n
  s: b[i] = a[i]
  u: c[i] = a[i]
", [TagIname::new("i", "l.0"), before("i", &["u"])];
    sums_commute: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y += a[i]
  u: y += 2.0
", [before("i", &["u"])];
    refuses_a_temporary: SCALAR, [before("i", &["store"])];
    refuses_a_recurrence: "kernel k
param n: i32
arg b: f64[n] inout
temp t: f64[n] private
for i in 1..n
  load: t[i] = b[i - 1]
  store: b[i] = t[i] + 1.0
", [before("i", &["store"])];
    refuses_anti: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n - 1
  s: a[i] = 1.0
  u: b[i] = a[i + 1]
", [before("i", &["u"])];
    refuses_output: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n - 1
  s: a[i] = 1.0
  u: a[i + 1] = f64(i)
", [before("i", &["u"])];
    refuses_two_operators: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
for i in 0..n
  s: y += a[i]
  u: y *= 2.0
", [before("i", &["u"])];
    refuses_a_scatter: "kernel k
param n: i32
arg map: i32[n] in
arg y: f64[n] inout
arg z: f64[n] inout
for i in 0..n
  s: z[i] = y[map[i]]
  u: y[map[i]] = f64(i)
", [before("i", &["u"])];
    refuses_the_bound_of_a_loop_inside: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i, j] = 1.0
", [before("i", &["s"])];
    refuses_bounds_that_change: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: y[i] = 1.0
  e2: end = 0
", [before("i", &["e2"])];
    refuses_the_first_part: TWO, [before("i", &["s"])];
    refuses_no_part: TWO, [before("i", &[])];
    refuses_unknown_part: TWO, [before("i", &["v"])];
    refuses_unknown_iname: TWO, [before("j", &["u"])];
    refuses_a_reduction: "kernel k
param n: i32
arg y: f64 inout
s: y = sum(i in 0..n: f64(i))
", [before("i", &["s"])];
    refuses_a_name_taken: TWO, [DistributeLoop { names: vec!["b".into()], ..before("i", &["u"]) }];
    refuses_two_names_for_one_loop: TWO, [
        DistributeLoop { names: vec!["k".into(), "l".into()], ..before("i", &["u"]) }
    ];
    refuses_a_value_that_may_be_of_another_group: ROWS, [before("i", &["s"])];
}
