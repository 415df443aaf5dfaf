use crate::story::facts;
use purlin_transforms::Selection;
use purlin_transforms::primitives::{DuplicateIname, ExpandArray, TagIname};

const THREE: &str = "kernel three
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
arg c: f64[n] inout
for i in 0..n
  s: a[i] = 2.0*a[i]
  t: b[i] = b[i] + 1.0 {second}
  u: c[i] = c[i] + a[i]
";

const NEST: &str = "kernel nest
param n: i32
arg x: f64[n, n] in
arg y: f64[n, n] inout
arg z: f64[n, n] inout
arg w: f64[n] inout
for i in 0..n
  for j in 0..i + 1
    t: y[i, j] = x[i, j] + 1.0
    u: z[i, j] = sum(k in j..n: x[i, k])
  v: w[i] = x[i, i]
";

const CARRIED: &str = "kernel carried
param n: i32
arg a: f64[n] in
arg b: f64[n] inout
temp t: f64 private
for i in 0..n
  s: t = 2.0*a[i]
  u: b[i] = t + 1.0
";

fn insn(iname: &str, name: &str) -> DuplicateIname {
    DuplicateIname::new(iname, Selection::Insn(name.into()))
}

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
    one_instruction: THREE, [insn("i", "s").in_front()];
    one_in_the_middle: THREE, [insn("i", "t")];
    by_tag: THREE, [DuplicateIname::new("i", Selection::Tag("second".into()))];
    two_that_are_no_neighbours: THREE, [DuplicateIname {
        name: Some("other".into()), ..DuplicateIname::new("i", Selection::Reads("a".into())).in_front()
    }];
    intersection: THREE, [DuplicateIname::new("i", Selection::All(vec![
        Selection::Reads("a".into()), Selection::Writes("c".into()), Selection::Inside("i".into())
    ]))];
    loop_in_between_is_duplicated: NEST, [insn("i", "u")];
    whole_loop_in_between_moves: NEST, [DuplicateIname::new("i", Selection::Inside("j".into()))];
    in_front: NEST, [insn("i", "v").in_front()];
    inner_loop: NEST, [insn("j", "u")];
    after_expansion: CARRIED, [ExpandArray::new("t", ["i"]), insn("i", "u")];
    tag_is_copied: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 0..n {g.0}
  s: a[i] = 2.0
  t: b[i] = 3.0
", [insn("i", "t")];
    refuses_a_value_that_is_overwritten: CARRIED, [insn("i", "u")];
    refuses_to_turn_a_flow_around: THREE, [insn("i", "s")];
    refuses_the_value_of_an_earlier_iteration: "kernel k
param n: i32
arg a: f64[n] inout
arg b: f64[n] inout
for i in 1..n
  s: a[i] = b[i - 1]
  t: b[i] = f64(i)
", [insn("i", "t")];
    refuses_bounds_that_change: "kernel k
param n: i32
arg count: i32[n] in
arg y: f64[n, n] inout
arg z: f64[n, n] inout
temp end: i32 private
for i in 0..n
  e: end = count[i]
  for j in 0..end
    s: y[i, j] = 1.0
    t: z[i, j] = 1.0
", [insn("i", "t")];
    refuses_to_part_work_items_from_their_value: "kernel k
param n: i32
arg a: f64[8] inout
arg b: f64[8] inout
arg c: f64[8] inout
temp t: f64 private
for l in 0..8
  s: t = a[l]
  u: b[l] = t
  v: c[l] = 1.0
", [TagIname::new("l", "l.0"), insn("l", "u")];
    refuses_all_of_the_loop: THREE, [insn("i", "*")];
    refuses_what_is_elsewhere: NEST, [insn("j", "v")];
    refuses_an_empty_selection: THREE, [insn("i", "q")];
    refuses_names_taken: THREE, [DuplicateIname { name: Some("a".into()), ..insn("i", "u") }];
    refuses_a_reduction: NEST, [insn("k", "u")];
    refuses_unknown: THREE, [insn("q", "u")];
    refuses_a_value_that_may_be_of_another_group: ROWS, [insn("i", "s")];
}
