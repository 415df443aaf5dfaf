use crate::story::facts;
use purlin_transforms::primitives::MoveInsns;

const THREE: &str = "kernel three
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
arg c: f64[n + 1] inout
for i in 0..n
  s: a[i] = f64(i)
  t: b[i] = 2.0
  for j in 0..i
    u: c[i] += a[i]
";

facts! {
    before: THREE, [MoveInsns::before(["t"], "s")];
    after: THREE, [MoveInsns::after(["t"], "j")];
    a_loop: THREE, [MoveInsns::before(["j"], "t")];
    several_keep_their_order: THREE, [MoveInsns::before(["j", "s"], "t")];
    whole_nests: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  s: a[i] = 1.0
for j in 0..n
  u: b[j] = 2.0
", [MoveInsns::before(["j"], "i")];
    where_it_stands: THREE, [MoveInsns::before(["s"], "t")];
    /// `u` reads what `s` wrote an iteration earlier.
    value_from_an_earlier_iteration: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 1..n
  s: a[i] = 1.0
  u: b[i] = a[i - 1]
", [MoveInsns::before(["u"], "s")];
    sums_commute: "kernel k
param n: i32
arg y: f64 inout
for i in 0..n
  s: y += 1.0
  u: y += f64(i)
", [MoveInsns::before(["u"], "s")];
    /// `f` reads `end` from the third iteration on only.
    a_condition_that_reads_behind_another_one: "kernel k
param n: i32
arg m: i32[n] in
arg y: f64[n] out
temp end: i32 private
for t in 0..n
  e0: y[t] = 0.0
  for z in 0..1 where t == 0
    e: end = m[0]
  f: y[t] = 1.0 if t >= 2 and end < 3
", [MoveInsns::before(["f"], "z")];
    refuses_flow: THREE, [MoveInsns::before(["j"], "s")];
    refuses_anti: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  s: b[i] = a[i]
  u: a[i] = 1.0
", [MoveInsns::after(["s"], "u")];
    refuses_output: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  s: a[i] = 1.0
  u: a[i] = 2.0 if i < 3
", [MoveInsns::before(["u"], "s")];
    refuses_two_operators: "kernel k
param n: i32
arg y: f64 inout
for i in 0..n
  s: y += 1.0
  u: y *= 2.0
", [MoveInsns::before(["u"], "s")];
    refuses_the_bound_of_a_loop: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i, j] = 1.0
", [MoveInsns::before(["j"], "e")];
    refuses_the_bound_of_a_loop_that_holds_nothing: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    for k in 0..0
      s: y[i, j] = 1.0
", [MoveInsns::after(["e"], "j")];
    refuses_a_condition_whose_operand_has_no_value: "kernel k
param n: i32
arg m: i32[n] in
arg y: f64[n] out
temp end: i32 private
for t in 0..n
  e0: y[t] = 0.0
  for z in 0..1 where t == 0
    e: end = m[0]
  f: y[t] = 1.0 if end < 3 and t >= 2
", [MoveInsns::before(["f"], "z")];
    refuses_to_swap_nests: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n
  s: a[i] = 1.0
for j in 0..n
  u: b[j] = a[n - 1 - j]
", [MoveInsns::before(["j"], "i")];
    refuses_another_body: THREE, [MoveInsns::before(["u"], "s")];
    refuses_itself: THREE, [MoveInsns::before(["s"], "s")];
    refuses_nothing: THREE, [MoveInsns::before(Vec::<String>::new(), "s")];
    refuses_unknown: THREE, [MoveInsns::before(["v"], "s")];
    refuses_unknown_target: THREE, [MoveInsns::before(["s"], "v")];
    refuses_a_reduction: "kernel k
param n: i32
arg y: f64 inout
z: y = 0.0
s: y = sum(i in 0..n: f64(i))
", [MoveInsns::before(["i"], "z")];
}
