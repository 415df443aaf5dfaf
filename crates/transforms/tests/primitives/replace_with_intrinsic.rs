use crate::story::facts;
use purlin_transforms::primitives::{
    DeclareCallee, PadArray, ReplaceWithIntrinsic, SplitIname, TransposeArrayAxes,
};

const AXPY4: &str = "callee axpy4
  arg a: f64 in
  arg x: f64[4] in
  arg y: f64[4] inout

  for l in 0..4
    s: y[l] += a*x[l]
  code c (\"axpy4({a}, {&x[0]}, {&y[0]});\")
";

/// Statements that are, or are not, the callee.
const DOT: &str = "callee dot
  param m: i64
  arg x: f64[m] in
  arg y: f64[m] in
  arg z: f64 inout

  for l in 0..m
    s: z += x[l]*y[l]
";

fn axpy4() -> DeclareCallee {
    DeclareCallee::new(AXPY4)
}

fn replace(statement: &str) -> ReplaceWithIntrinsic {
    ReplaceWithIntrinsic::new([statement], "axpy4")
}

const AXPY: &str = "kernel axpy
param n: i32
arg alpha: f64 in
arg u: f64[4*n] in
arg v: f64[4*n] inout
for i in 0..4*n
  s: v[i] += u[i]*alpha
";

fn of(statement: &str) -> String {
    format!(
        "kernel k\nparam n: i32\narg u: f64[n + 4, 8] in\narg v: f64[n + 4, 8] inout\narg w: f32[n, 8] inout\n\
         temp t: f64 private\nfor i in 0..n\n  for j in 0..4\n    s: {statement}\n"
    )
}

facts! {
    after_a_split: AXPY, [SplitIname::new("i", 4), axpy4(), replace("i_i")];
    operands_in_another_order_and_a_shift: "kernel k
param n: i32
arg u: f64[n, 8] in
arg v: f64[n, 8] inout
for i in 0..n
  for j in 4..8
    s: v[i, j - 2] += u[i, j]*(2.0*f64(i))
", [axpy4(), replace("j")];
    a_parameter_is_found: "kernel k
param n: i32
arg u: f64[n, n] in
arg v: f64[n] inout
for i in 0..n
  for j in 0..i
    s: v[i] += u[j, i]*u[i, n - 1 - j]
", [DeclareCallee::new(DOT), ReplaceWithIntrinsic::new(["j"], "dot")];
    one_array_twice: "kernel k
param n: i32
arg u: f64[n] in
arg v: f64 inout
for j in 0..n
  s: v += u[j]*u[j]
", [DeclareCallee::new(DOT), ReplaceWithIntrinsic::new(["j"], "dot")];
    refuses_a_partial_tile: "kernel k
param n: i32
arg u: f64[n] in
arg v: f64[n] inout
for i in 0..n
  s: v[i] += 2.0*u[i]
", [SplitIname::new("i", 4), axpy4(), replace("i_i")];
    refuses_an_assignment: &of("v[i, j] = 2.0*u[i, j]"), [axpy4(), replace("j")];
    refuses_another_operation: &of("v[i, j] += 2.0 - u[i, j]"), [axpy4(), replace("j")];
    refuses_a_scalar_that_changes: &of("v[i, j] += u[i + 1, j]*u[i, j]"), [axpy4(), replace("j")];
    refuses_another_type: &of("w[i, j] += f32(i)*w[i, j]"), [axpy4(), replace("j")];
    refuses_what_is_no_window: &of("v[i, j] += 2.0*u[j mod 2, j]"), [axpy4(), replace("j")];
    refuses_strides: &of("v[j, i mod 8] += 2.0*u[i, j]"), [axpy4(), replace("j")];
    refuses_one_array_read_and_written: &of("v[i, j] += 2.0*v[i + 4, j]"), [axpy4(), replace("j")];
    refuses_a_value_that_it_writes: &of("v[i, j] += v[0, 0]*u[i, j]"), [axpy4(), replace("j")];
    refuses_an_instruction_for_a_loop: &of("v[i, j] += 2.0*u[i, j]"), [axpy4(), replace("s")];
    refuses_too_many_statements: "kernel k
param n: i32
arg u: f64[n, 4] in
arg v: f64[n, 4] inout
for i in 0..n
  for j in 0..4
    s: v[i, j] += 2.0*u[i, j]
  for k in 0..4
    r: v[i, k] += 2.0*u[i, k]
", [axpy4(), ReplaceWithIntrinsic::new(["j", "k"], "axpy4")];
    refuses_an_unknown_callee: AXPY, [replace("i")];
    refuses_to_replace_it_twice: AXPY, [SplitIname::new("i", 4), axpy4(), replace("i_i"), replace("i_i")];
    /// The array may move as long as the window lies as the code needs it.
    another_layout_later: "kernel k
param n: i32
arg u: f64[n, 4] in
arg v: f64[n, 4] inout
for i in 0..n
  for j in 0..4
    s: v[i, j] += 2.0*u[i, j]
", [axpy4(), replace("j"), PadArray::new("u", 1, 2), TransposeArrayAxes::new("v", [1, 0])];
}
