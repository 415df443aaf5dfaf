use crate::story::facts;
use purlin_transforms::primitives::{InlineCall, OutlineInsns, UnrollIname};

const TWO: &str = "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
callee twice
  arg c: f64 inout

  s: c = 2.0*c
for i in 0..n
  call twice
    s: y[i] = 2.0*y[i]
  t: y[i] = y[i] + x[i]
  call twice
    u: y[i] = y[i]*2.0
";

facts! {
    every_call: TWO, [InlineCall::new("twice")];
    one_then_the_other: TWO, [InlineCall::new("twice").at("u"), InlineCall::new("twice").at("s")];
    what_was_outlined: TWO, [InlineCall::new("twice"), OutlineInsns::new(["t", "u"], "both"), InlineCall::new("both")];
    /// The copies of a loop that is written out are calls, too.
    inside_an_unrolled_loop: "kernel k
param n: i32
arg y: f64[n, 4] inout
for i in 0..n
  for j in 0..4
    s: y[i, j] = 2.0*y[i, j]
", [OutlineInsns::new(["s"], "twice"), UnrollIname::new("j"), InlineCall::new("twice")];
    refuses_unknown: TWO, [InlineCall::new("thrice")];
    refuses_an_instruction_of_no_call: TWO, [InlineCall::new("twice").at("t")];
    refuses_what_nothing_calls: "kernel k
arg y: f64 inout
callee twice
  arg c: f64 inout

  s: c = 2.0*c
s: y = 1.0
", [InlineCall::new("twice")];
    other_calls_stay: "kernel k
param n: i32
arg y: f64[n] inout
callee f
  arg c: f64 inout

  s: c += 1.0
callee g
  arg c: f64 inout

  s: c *= 2.0
callee h
  arg c: f64 inout

  s: c += 2.0
for i in 0..n
  call f
    s: y[i] += 1.0
  call g
    t: y[i] *= 2.0
  call h
    u: y[i] += 2.0
", [InlineCall::new("f")];
}
