use crate::story::facts;
use purlin_transforms::Selection;
use purlin_transforms::primitives::{MakeAtomic, TagIname};

const SCATTER: &str = "kernel scatter
param n: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
arg z: f64[n] inout
temp t: f64 private
for i in 0..n
  load: t = x[i]
  more: t += 1.0
  s: y[map[i]] += t {scatter}
  u: z[map[i]] max= t {scatter}
  v: z[i] = t {plain}
";

facts! {
    one_by_name: SCATTER, [MakeAtomic::insn("s")];
    all_with_a_tag: SCATTER, [MakeAtomic::tag("scatter")];
    all_writes_of_a_variable: SCATTER, [MakeAtomic { insns: Selection::Writes("y".into()) }];
    makes_a_scatter_parallel: "kernel scatter
param n: i32
arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[map[i]] += x[i]
", [MakeAtomic::insn("s"), TagIname::new("i", "g.0")];
    refuses_a_plain_store: SCATTER, [MakeAtomic::insn("v")];
    refuses_a_private_variable: SCATTER, [MakeAtomic::insn("more")];
    refuses_unknown_name: SCATTER, [MakeAtomic::insn("w")];
    refuses_unknown_tag: SCATTER, [MakeAtomic::tag("gather")];
    refuses_a_tag_where_there_is_none: "kernel k
arg y: f64 inout
s: y += 1.0
", [MakeAtomic::tag("scatter")];
    refuses_unwritten_variable: SCATTER, [MakeAtomic { insns: Selection::Writes("x".into()) }];
}
