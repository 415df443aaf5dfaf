use crate::story::facts;
use purlin_transforms::primitives::{AliasStorage, TagIname};

fn alias(vars: &[&str]) -> AliasStorage {
    AliasStorage::new(vars.iter().copied(), "buf")
}

/// Two tiles, one after the other, each written by all work-items and read by others.
fn tiles(tag: &str) -> String {
    format!(
        "kernel tiles
param n: i32
arg a: f64[n, 8] inout
temp t: f64[8] local
temp u: f64[4] local
for c in 0..n
  for i in 0..8{tag}
    load_t: t[i] = a[c, i]
  for j in 0..8{tag}
    use_t: a[c, j] = t[7 - j] + 1.0
  for k in 0..4{tag}
    load_u: u[k] = a[c, k]
  for l in 0..4{tag}
    use_u: a[c, l] = u[3 - l]
"
    )
}

const OVERLAP: &str = "kernel k
arg a: f64[8] inout
temp t: f64[8] private
temp u: f64[8] private
for i in 0..8
  load_t: t[i] = a[i]
for j in 0..8
  load_u: u[j] = 2.0*a[j]
for k in 0..8
  use: a[k] = t[k] + u[k]
";

/// Between `t[i]` and its use there is no write of `u` in a sequential run; work-items run side by side.
const SAME_LOOP: &str = "kernel k
arg a: f64[8] inout
temp t: f64[8] local
temp u: f64[8] local
for i in 0..8
  load_t: t[i] = a[i]
  load_u: u[i] = t[i] + 1.0
  use_u: a[i] = u[i]
";

const CONST_BOUND: &str = "kernel k
arg a: f64[8] inout
temp t: f64[8] private
temp end: i32 private
e: end = 3
for j in 0..end
  s: t[j] = a[j]
for k in 0..end
  r: a[k] = t[2 - k]
";

facts! {
    one_after_the_other: &tiles(""), [alias(&["t", "u"])];
    on_work_items: &tiles(" {l.0}"), [alias(&["t", "u"])];
    /// Within the loop over the chunks lives end before the next ones begin.
    joined_by_a_third: "kernel k
arg a: f64[8] inout
temp t: f64[8] private storage(buf)
temp u: f64[8] private storage(buf)
temp v: f64[8] private
for c in 0..3
  for i in 0..8
    s1: t[i] = a[i]
  for j in 0..8
    s2: a[j] = t[7 - j]
  for k in 0..8
    s3: u[k] = a[k]
  for l in 0..8
    s4: a[l] = u[7 - l]
  for m in 0..8
    s5: v[m] = a[m]
  for o in 0..8
    s6: a[o] = v[7 - o]
", [alias(&["v"])];
    /// The last read of the one and the write of the other are one instance.
    handed_over_in_one_instance: "kernel k
arg a: f64[8] inout
temp t: f64[2] private
temp u: f64[2] private
for i in 0..8
  s1: t[0] = a[i]
  s2: u[1] = t[0]*t[0]
  s3: a[i] = u[1]
", [alias(&["t", "u"])];
    /// No sum goes on in the next iteration of `i`: both start anew.
    sums_that_start_anew: "kernel k
param n: i32
arg a: f64[n, 2] inout
temp t: f64[2] private
temp u: f64[2] private
for i in 0..n
  for p in 0..2
    zero_t: t[p] = 0.0
    for j in 0..n
      add_t: t[p] += a[j, p]
  for q in 0..2
    use_t: a[i, q] = t[1 - q]
  for r in 0..2
    zero_u: u[r] = 1.0
    for k in 0..n
      mul_u: u[r] *= a[k, r]
  for s in 0..2
    use_u: a[i, s] = u[1 - s]
", [alias(&["t", "u"])];
    refuses_overlapping_lives: OVERLAP, [alias(&["t", "u"])];
    refuses_a_value_from_before_the_loop: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[1] private
temp u: f64[1] private
zero: t[0] = 1.0
for i in 0..n
  s1: u[0] = a[i]*t[0]
  s2: a[i] = u[0]
", [alias(&["t", "u"])];
    /// A write of the one and a read of the other are one instance, both ways.
    handed_back_and_forth: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[1] private
temp u: f64[1] private
zero: t[0] = 1.0
for i in 0..n
  s1: a[i] = t[0]
  s2: u[0] = a[i] + 1.0
  s3: t[0] = u[0]
", [alias(&["t", "u"])];
    refuses_what_the_next_iteration_still_reads: "kernel k
param n: i32
arg a: f64[n] inout
temp t: f64[n] private
temp u: f64[n] private
for i in 0..n
  s1: t[i] = a[i]
for j in 0..n
  s2: u[j] = t[j]
  s3: a[j] = u[j]
", [alias(&["t", "u"])];
    refuses_work_items_side_by_side: SAME_LOOP, [TagIname::new("i", "l.0"), alias(&["t", "u"])];
    /// In one work-item after the other the lives do not meet.
    sequential_where_work_items_would_clash: SAME_LOOP, [alias(&["t", "u"])];
    /// Legal for the dependences of the variables, which are apart; not for their buffer.
    refuses_a_later_step_that_makes_lives_meet: "kernel k
arg a: f64[8, 4] inout
temp t: f64[8] local
temp u: f64[8] local
for i in 0..8
  load_t: t[i] = a[i, 0]
  load_u: u[i] = t[i] + 1.0
  use_u: a[i, 1] = u[i]
", [alias(&["t", "u"]), TagIname::new("i", "l.0")];
    refuses_lanes: "kernel k
arg a: f64[8] inout
temp t: f64[2] private
temp u: f64[2] private
for i in 0..8 {vector}
  s1: t[0] = a[i]
  s2: a[i] = t[0]
for j in 0..8
  s3: u[0] = a[j]
  s4: a[j] = u[0]
", [alias(&["t", "u"])];
    refuses_other_types: "kernel k
temp t: f64[2] private
temp u: f32[2] private
s: t[0] = 1.0
r: u[0] = 1.0
", [alias(&["t", "u"])];
    refuses_other_address_spaces: "kernel k
temp t: f64[2] private
temp u: f64[2] local
s: t[0] = 1.0
r: u[0] = 1.0
", [alias(&["t", "u"])];
    refuses_global_temporaries: "kernel k
temp t: f64[2] global
temp u: f64[2] global
s: t[0] = 1.0
r: u[0] = 1.0
", [alias(&["t", "u"])];
    refuses_scalars: CONST_BOUND, [alias(&["t", "end"])];
    refuses_an_argument: OVERLAP, [alias(&["t", "a"])];
    refuses_one_alone: OVERLAP, [alias(&["t"])];
    refuses_a_name_taken: OVERLAP, [AliasStorage::new(["t", "u"], "a")];
    refuses_sharers_of_another_buffer: "kernel k
arg a: f64[8] inout
temp t: f64[8] private storage(old)
temp u: f64[8] private
for i in 0..8
  s1: t[i] = a[i]
for j in 0..8
  s2: a[j] = t[7 - j]
for k in 0..8
  s3: u[k] = a[k]
", [alias(&["t", "u"])];
    refuses_one_twice: OVERLAP, [alias(&["t", "t"])];
}

/// The steps of other primitives meet the check, too.
#[test]
fn later_steps_that_keep_lives_apart_pass() {
    let story = crate::story::story(
        &tiles(""),
        &[alias(&["t", "u"]).into(), TagIname::new("c", "g.0").into(), TagIname::new("i", "l.0").into()],
    );
    assert!(!story.contains("refused"), "{story}");
}
