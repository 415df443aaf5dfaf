use crate::story::facts;
use purlin_transforms::primitives::{SplitIname, TagIname};

fn tag(iname: &str, tag: &str) -> TagIname {
    TagIname::new(iname, tag)
}

const COPY: &str = "kernel copy
param n: i32
arg a: f64[n, n] in
arg b: f64[n, n] inout
for i in 0..n
  for j in 0..n
    s: b[i, j] = a[j, i]
";

facts! {
    groups_and_items: COPY, [tag("i", "g.0"), tag("j", "l.0")];
    lanes: COPY, [tag("j", "vector")];
    back_to_sequential: COPY, [tag("i", "g.0"), tag("i", "sequential")];
    empty_loop: "kernel k
arg a: f64[4] inout
for i in 0..0
  s: a[0] = a[i] + 1.0
", [tag("i", "g.0")];
    one_iteration: "kernel k
arg a: f64[4] inout
for i in 0..1
  s: a[0] = a[0] + 1.0
", [tag("i", "g.0")];
    refuses_unknown_iname: COPY, [tag("k", "g.0")];
    refuses_unknown_tag: COPY, [tag("i", "g.3")];
    refuses_unroll: COPY, [tag("i", "unroll")];
    refuses_one_axis_inside_itself: COPY, [tag("i", "g.0"), tag("j", "g.0")];
    refuses_a_reduction: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
s: y = sum(i in 0..n: a[i])
", [tag("i", "l.0")];
    refuses_a_recurrence: "kernel k
param n: i32
arg a: f64[n] inout
for i in 1..n
  s: a[i] = a[i - 1] + 1.0
", [SplitIname::new("i", 4), tag("i_i", "l.0")];
}
