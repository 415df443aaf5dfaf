use crate::story::facts;
use purlin_transforms::primitives::{DistributeLoop, FuseLoops, TagIname};

fn fuse(first: &str, second: &str) -> FuseLoops {
    FuseLoops::new(first, second)
}

/// Two loops over `first` and `second` with these statements.
fn pair(first: &str, one: &str, second: &str, two: &str) -> String {
    format!(
        "kernel pair
param n: i32
arg a: f64[n + 2] inout
arg b: f64[n + 2] inout
temp t: f64 private
for i {first}
  s: {one}
for j {second}
  u: {two}
"
    )
}

facts! {
    same_range: &pair("in 0..n", "a[i] = f64(i)", "in 0..n", "b[j] = a[j] + f64(j)"), [fuse("i", "j")];
    shifted: &pair("in 0..n", "a[i] = f64(i)", "in 2..n + 2", "b[j] = a[j - 2] + f64(j)"), [fuse("i", "j")];
    value_from_an_earlier_iteration:
        &pair("in 1..n", "a[i] = f64(i)", "in 1..n", "b[j] = a[j - 1]"), [fuse("i", "j")];
    strided: &pair("in 0..n where i mod 2 == 0", "a[i] = 1.0", "in 0..n where j mod 2 == 0", "b[j] = a[j]"),
        [fuse("i", "j")];
    /// Two texts, one set: isl decides.
    same_values_in_another_form:
        &pair("in 0..n where 2*i >= 1", "a[i] = 1.0", "in 1..n", "b[j] = a[j]"), [fuse("i", "j")];
    empty: &pair("in 0..0", "a[i] = 1.0", "in 0..0", "b[j] = a[j]"), [fuse("i", "j")];
    undoes_distribution: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  s: a[i] = 1.0
  u: b[i] = a[i]
", [DistributeLoop::new("i", ["u"]), fuse("i", "i_1")];
    inside_a_loop_with_inner_loops: "kernel k
param n: i32
arg a: f64[n, n] inout
arg b: f64[n, n] inout
for o in 0..n
  for i in o..n
    for k in 0..i
      s: a[o, i] += f64(k)
  for j in 0..n - o
    for l in j..n
      u: b[o, j] += sum(q in 0..j: f64(q)) + f64(l)
", [fuse("i", "j")];
    bounds_from_a_temporary: "kernel k
param n: i32
arg count: i32[1] in
arg a: f64[n] inout
arg b: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: a[i] = 1.0
for j in 0..end
  u: b[j] = 2.0
", [fuse("i", "j")];
    on_one_axis: &pair("in 0..n {l.0}", "a[i] = 1.0", "in 0..n {l.0}", "b[j] = a[j]"), [fuse("i", "j")];
    refuses_a_value_from_a_later_iteration:
        &pair("in 0..n + 1", "a[i] = f64(i)", "in 0..n + 1", "b[j] = a[j + 1]"), [fuse("i", "j")];
    refuses_to_overwrite_an_operand:
        &pair("in 0..n + 1", "b[i] = a[i]", "in 0..n + 1", "a[j + 1] = 1.0"), [fuse("i", "j")];
    refuses_to_change_the_last_value:
        &pair("in 0..n", "a[i] = 1.0", "in 0..n", "a[j + 1] = 2.0"), [fuse("i", "j")];
    refuses_a_temporary: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64 private
z: t = 0.0
for i in 0..n
  s: t += a[i]
for j in 0..n
  u: a[j] = t
", [fuse("i", "j")];
    refuses_a_map: "kernel k
param n: i32
arg map: i32[n] in
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  s: a[map[i]] = f64(i)
for j in 0..n
  u: b[j] = a[j]
", [fuse("i", "j")];
    refuses_bounds_that_change: "kernel k
param n: i32
arg count: i32[1] in
arg a: f64[n] inout
arg b: f64[n] inout
temp end: i32 private
e: end = count[0]
for i in 0..end
  s: a[i] = 1.0
  e2: end = 0
for j in 0..end
  u: b[j] = 2.0
", [fuse("i", "j")];
    refuses_the_bound_of_a_loop_that_holds_nothing: "kernel k
param n: i32
arg count: i32[1] in
arg b: f64[n] inout
temp end: i32 private
for i in 0..n
  e: end = count[0] if i == n - 1
for j in 0..n
  for k in 0..end
    for l in 0..0
      u: b[j] = 2.0
", [fuse("i", "j")];
    refuses_other_lengths: &pair("in 0..n", "a[i] = 1.0", "in 0..n + 1", "b[j] = 1.0"), [fuse("i", "j")];
    refuses_other_values_in_the_middle:
        &pair("in 0..n where i mod 2 == 0", "a[i] = 1.0", "in 0..n where j mod 2 == 1", "b[j] = 1.0"),
        [fuse("i", "j")];
    refuses_other_tags: &pair("in 0..n", "a[i] = 1.0", "in 0..n", "b[j] = 1.0"),
        [TagIname::new("j", "l.0"), fuse("i", "j")];
    refuses_the_wrong_way_round: &pair("in 0..n", "a[i] = 1.0", "in 0..n", "b[j] = 1.0"), [fuse("j", "i")];
    refuses_itself: &pair("in 0..n", "a[i] = 1.0", "in 0..n", "b[j] = 1.0"), [fuse("i", "i")];
    refuses_unknown: &pair("in 0..n", "a[i] = 1.0", "in 0..n", "b[j] = 1.0"), [fuse("i", "k")];
    refuses_what_stands_between: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  s: a[i] = 1.0
z: a[0] = 3.0
for j in 0..n
  u: a[j] = 2.0
", [fuse("i", "j")];
    refuses_loops_of_two_bodies: "kernel k
param n: i32
arg a: f64[n, n] inout
for o in 0..n
  for i in 0..n
    s: a[o, i] = 1.0
for p in 0..n
  for j in 0..n
    u: a[p, j] = 2.0
", [fuse("i", "j")];
    refuses_to_move_work_items: &pair("in 0..n {l.0}", "a[i] = f64(i)", "in 2..n + 2 {l.0}", "b[j] = a[j]"),
        [fuse("i", "j")];
}
