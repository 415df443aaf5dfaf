use crate::story::facts;
use purlin_transforms::primitives::{
    DistributeLoop, InterchangeInames, MakeAtomic, OutlineInsns, Rename, SplitIname, TagIname, UnrollIname,
};

fn outline(statements: &[&str]) -> OutlineInsns {
    OutlineInsns::new(statements.iter().copied(), "part")
}

const ROWS: &str = "kernel rows
param n: i32
arg a: f64[n, 4] in
arg x: f64[4] in
arg y: f64[n] inout
for i in 0..n
  zero: y[i] = 0.0
  for j in 0..4
    add: y[i] += a[i, j]*x[j]
";

facts! {
    a_loop: ROWS, [outline(&["j"])];
    neighbours: ROWS, [outline(&["j", "zero"])];
    the_whole_program: ROWS, [outline(&["i"])];
    one_instruction_with_a_scalar: "kernel k
param n: i32
arg alpha: f64 in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = alpha*x[n - 1 - i] + f64(i + n)
", [outline(&["s"])];
    /// Bounds of loops around become parameters, and a parametric window one of the callee's extents.
    triangular: "kernel k
param n: i32
arg a: f64[n, n] in
arg y: f64[n] inout
for i in 0..n
  for j in i..n
    s: y[i] += a[i, j] + a[j, i]
", [outline(&["j"])];
    stencil: "kernel k
param n: i32
arg a: f64[4*n + 2] in
arg y: f64[4*n] inout
for i in 0..n
  for j in 0..4
    s: y[4*i + j] = a[4*i + j] - 2.0*a[4*i + j + 1] + a[4*i + j + 2]
", [outline(&["j"])];
    reductions_conditions_and_gathers: "kernel k
param n: i32
arg map: i32[n, 3] in
arg a: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] = sum(k in 0..3: a[map[i, k]]) if i mod 2 == 0
", [outline(&["s"])];
    substitution_rules_are_expanded: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
rule square(v) := v*v
for i in 0..n
  s: y[i] = square(a[i])
", [outline(&["s"])];
    bounds_from_memory: "kernel k
param n: i32
arg rows: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = rows[i]
  for j in 0..end
    s: y[i, j] += 1.0
", [outline(&["j"])];
    bounds_that_are_read_inside: "kernel k
param n: i32
arg rows: i32[n] in
arg y: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = rows[i]
  for j in 0..end
    s: y[i, j] += 1.0
", [outline(&["e", "j"])];
    /// Loops around may be transformed: the arguments follow.
    what_may_happen_around: ROWS, [
        outline(&["j"]), SplitIname::new("i", 4), TagIname::new("i_o", "g.0"), TagIname::new("i_i", "l.0")
    ];
    around_an_interchange: "kernel k
param n: i32
arg a: f64[n, n, 4] inout
for i in 0..n
  for j in 0..n
    for l in 0..4
      s: a[i, j, l] = 2.0*a[i, j, l]
", [outline(&["l"]), InterchangeInames::new("i", "j")];
    refuses_to_change_the_inside: ROWS, [outline(&["j"]), SplitIname::new("j", 2)];
    refuses_to_split_it_apart: ROWS, [
        outline(&["zero", "j"]), DistributeLoop::new("i", ["j"])
    ];
    refuses_another_write: ROWS, [outline(&["j"]), MakeAtomic::insn("add")];
    a_loop_inside_is_renamed_and_unrolled: ROWS, [
        outline(&["j"]), Rename::iname("j", "column"), UnrollIname::new("column")
    ];
    refuses_what_is_called: ROWS, [outline(&["j"]), OutlineInsns::new(["i"], "more")];
    refuses_statements_apart: "kernel k
arg y: f64[3] inout
a: y[0] = 1.0
b: y[1] = 1.0
c: y[2] = 1.0
", [outline(&["a", "c"])];
    refuses_different_bodies: ROWS, [outline(&["zero", "add"])];
    refuses_nothing: ROWS, [outline(&[])];
    refuses_an_unknown_statement: ROWS, [outline(&["k"])];
    refuses_a_name_taken: ROWS, [OutlineInsns::new(["j"], "a")];
    remainders_and_sums_of_loops_around: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  for j where j >= 0 and j < n and j mod 2 == i mod 2
    s: y[j] += f64(j)
", [outline(&["j"])];
    /// The value of `i` is taken by its name where only `i + n` is known.
    refuses_to_lose_a_parameter: "kernel k
param n: i32
arg y: f64[n] inout
for i in 0..n
  s: y[i] = f64(i + n)
", [outline(&["s"]), SplitIname::new("i", 4)];
}
