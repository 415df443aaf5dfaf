use crate::story::facts;
use purlin_transforms::primitives::{SplitIname, TagIname, TagInames};

const PAIR: &str = "kernel pair
param n: i32
arg a: f64[8] in
arg b: f64[8] inout
temp t: f64[8] private
for c in 0..8
  s: t[c] = a[c]
for d in 0..8
  r: b[d] = 2.0*t[d]
";

fn both(tag: &str) -> TagInames {
    TagInames::new(["c", "d"], tag)
}

facts! {
    slices_of_work_items: PAIR, [both("l.0")];
    refuses_one_of_them_alone: PAIR, [TagIname::new("c", "l.0")];
    unrolled: PAIR, [both("unroll")];
    unrolled_under_guards: "kernel k
arg a: f64[10] inout
for i in 0..10
  s: a[i] = 2.0*a[i]
", [SplitIname::new("i", 4), TagInames::new(["i_i"], "unroll")];
    refuses_to_unroll_a_loop_of_any_length: "kernel k
param n: i32
arg a: f64[n] inout
for i in 0..n
  s: a[i] = 2.0*a[i]
", [TagInames::new(["i"], "unroll")];
    refuses_no_inames: PAIR, [TagInames::new([""; 0], "l.0")];
    refuses_an_unknown_tag: PAIR, [both("l.3")];
    refuses_another_slice: &PAIR.replace("t[d]", "t[7 - d]"), [both("l.0")];
}
