//! Minima and maxima with nans: what was there before is joined to partial values that may be of
//! nothing.

use crate::story::{compare_from, kernel, story};
use kingpost_interp::Value;
use kingpost_ir::AddressSpace::Private;
use kingpost_primitives::Step;
use kingpost_primitives::primitives::{
    BufferWrites, FactorUpdate, ParalleliseScan, RealiseReduction, RealiseScan, ReduceInTree,
    SinkAccumulation,
};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// Compares before and after at every operator and type, for values with nans and infinities in all
/// places; the text has parameters of value 4, `OP` for the update, `REDUCE` for the reduction,
/// `REAL` for the type.
fn check(text: &str, steps: &[Step]) {
    for (op, reduce, nothing) in [("min=", "minimum", "inf"), ("max=", "maximum", "-inf")] {
        for ty in ["f64", "f32"] {
            let text = text
                .replace("OP", op)
                .replace("REDUCE", reduce)
                .replace("REAL", ty)
                .replace("NOTHING", nothing);
            for pattern in
                [[NAN, NAN, NAN, NAN], [INF, -INF, NAN, 2.0], [NAN, -1.0, INF, NAN], [INF, INF, NAN, -3.0]]
            {
                let at = |shift: usize, len: usize| -> Value {
                    let reals = (0..len).map(|k| pattern[(k * k / 3 + k + shift) % 4]);
                    if ty == "f64" {
                        Value::F64(reals.collect())
                    } else {
                        Value::F32(reals.map(|v| v as f32).collect())
                    }
                };
                for shift in 0..4 {
                    let lengths = kernel(&text);
                    let len = |name: &str| {
                        let var = lengths.var(name).map(|v| lengths.vars[v].shape.len());
                        var.map_or(1, |axes| 4_usize.pow(axes as u32))
                    };
                    compare_from(
                        &text,
                        steps,
                        &[("y", at(shift, len("y"))), ("a", at(2 * shift + 1, len("a")))],
                    );
                }
            }
        }
    }
}

#[test]
fn elements_of_a_buffer_that_nothing_updates() {
    let text = "kernel k
param n: i32
arg a: REAL[n] in
arg y: REAL[n] inout
for i in 0..1
  for k in 0..2
    s: y[2*k] OP a[k]
";
    check(text, &[BufferWrites::new("y", "i", Private).into()]);
}

#[test]
fn partial_values() {
    let text = "kernel k
param n: i32
arg a: REAL[n] in
arg y: REAL inout
for i in 0..n
  for j in 0..2
    s: y OP a[i] if i + j < 3
";
    check(text, &[FactorUpdate::new("s", ["j"]).into()]);
    check(text, &[FactorUpdate::new("s", ["i", "j"]).into()]);
}

#[test]
fn leaves_of_a_tree() {
    let text = "kernel k
param n: i32
arg a: REAL[n] in
arg y: REAL inout
for i in 0..min(n, 7)
  s: y OP a[i] if i < 3
";
    check(text, &[ReduceInTree::new("i").into()]);
    check(text, &[ReduceInTree::new("i").into(), BufferWrites::whole("y", Private).into()]);
    check(&text.replace("if i < 3", "if i < 0"), &[ReduceInTree::new("i").into()]);
}

#[test]
fn running_extrema() {
    let text = "kernel k
param n: i32
arg a: REAL[n] in
arg y: REAL[n] inout
temp t: REAL private
first: t = y[1]
for c in 0..4
  u: t OP a[c] if c mod 2 == 1
  s: y[c] = t
";
    check(text, &[ParalleliseScan::new("c", "u").into()]);
}

/// Both are the extremum of nothing before they see a term.
#[test]
fn reductions_start_from_infinity() {
    let text = "kernel k
param n: i32
arg a: REAL[n] in
arg y: REAL[n] inout
for i in 0..n
  s: y[i] = REDUCE(j in 0..i: a[j])
";
    check(text, &[RealiseReduction::new("j").into()]);
    check(text, &[RealiseScan::new("s").into()]);
    check(text, &[RealiseReduction::new("j").into(), FactorUpdate::new("s_update", ["j"]).into()]);
}

const SINK: &str = "kernel k
param n: i32
arg a: REAL[n] in
arg y: REAL inout
temp t: REAL private
zero: t = NOTHING
for q in 0..n
  add: t OP a[q]
commit: y OP t
";

#[test]
fn commits_of_nothing() {
    let sink = SinkAccumulation::new("t", "q");
    check(&SINK.replace("NOTHING", "nan"), &[sink.clone().into()]);
    check(&SINK.replace("0..n", "0..3"), &[sink.clone().into()]);
    check(
        &SINK
            .replace("\n\nfor q", "\nassume n >= 1\nfor q")
            .replace("temp t: REAL private", "temp t: REAL private\nassume n >= 1"),
        &[sink.clone().into()],
    );
    // without an iteration, the infinity would not be committed any more
    let text = SINK.replace("OP", "min=").replace("REAL", "f64").replace("NOTHING", "inf");
    let refused = story(&text, &[sink.into()]);
    let message = "`zero` does not simply set `t` to the neutral element of `min=`, nan; keep it in a statement of its own";
    assert!(refused.contains(message), "{refused}");
}
