//! What the walk counts, on kernels that are counted by hand.
#![allow(clippy::unwrap_used)] // what a failed test does

use super::*;
use crate::{Options, PlacedKernel, Target};

/// A map that shifts by `shift`, and as many rows as asked.
struct Given {
    n: i64,
    map: fn(i64) -> i64,
}

impl Integers for Given {
    fn param(&self, _: &str) -> Option<i64> {
        Some(self.n)
    }

    fn entry(&self, _: &str, offset: i64) -> Option<i64> {
        Some((self.map)(offset))
    }
}

fn walked(text: &str, n: i64, map: fn(i64) -> i64) -> Traffic {
    let kernel = kingpost_ir::text::parse(text).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let code = placed.code(Target::Cuda, &Options::default()).unwrap();
    traffic(&code, [0; 3], &Given { n, map })
}

const SCALE: &str = "kernel scale

param n: i32
arg x: f64[n] in
arg map: i32[n] in
arg y: f64[n] inout

for i_o in 0..ceil(n/64) {g.0}
  for i_i in 0..min(64, n - 64*i_o) {l.0}
    s: y[64*i_o + i_i] += 2.0*x[map[64*i_o + i_i]]
";

#[test]
fn sectors_are_those_of_the_map() {
    for (map, sectors) in [
        // neighbours read neighbours: eight sectors of four elements a sub-group
        ((|i| i) as fn(i64) -> i64, 16.0),
        // each reads a sector of its own
        (|i| 4 * i, 64.0),
        // all read one
        (|_| 3, 2.0),
    ] {
        let t = walked(SCALE, 640, map);
        // the map itself takes four sectors a sub-group, the update of `y` eight
        assert_eq!(t.reads.sectors, sectors + 8.0 + 16.0, "{t:?}");
        assert_eq!(t.writes.sectors, 16.0);
        assert_eq!(t.arithmetic, 2.0, "a product and a sum are one instruction of two sub-groups");
        assert_eq!((t.sub_groups, t.complete), (2, true));
    }
    // the last group has 33 of 64 work-items: two sub-groups, one of them for one work-item
    let t = walked(SCALE, 33, |i| i);
    assert_eq!((t.writes.sectors, t.writes.elements, t.arithmetic), (9.0, 33.0, 2.0));
}

/// A sub-group is as wide as the kernel says: 64 work-items issue one instruction.
#[test]
fn sub_groups_have_the_width_of_the_kernel() {
    let text = SCALE.replace("kernel scale", "kernel scale {sub_group(64)}");
    let kernel = kingpost_ir::text::parse(&text).unwrap();
    let placed = PlacedKernel::new(&kernel).unwrap();
    let code = placed.code(Target::OpenCl, &Options::default()).unwrap();
    for (map, sectors) in [((|i| i) as fn(i64) -> i64, 16.0), (|_| 3, 1.0)] {
        let t = traffic(&code, [0; 3], &Given { n: 640, map });
        assert_eq!(t.reads.sectors, sectors + 8.0 + 16.0, "{t:?}");
        assert_eq!((t.arithmetic, t.writes.instructions, t.sub_groups), (1.0, 1.0, 1));
    }
}

#[test]
fn banks_and_long_loops() {
    let text = "kernel k

param n: i32
arg y: f64[n, 32] inout
temp t: f64[32, 32] local

for g in 0..n {g.0}
  for k in 0..32
    for i in 0..32 {l.0}
      s: t[i, k] = f64(k)
  for k_2 in 0..32
    for i_2 in 0..32 {l.0}
      r: y[g, i_2] += t[k_2, i_2]
";
    let t = walked(text, 4, |i| i);
    // a column: 16 work-items of half a sub-group have one pair of banks; a row: one wavefront a half
    // iterations that stand for others: sums of thirds
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{expected}: {t:?}");
    near(t.local_wavefronts, 32.0 * (32.0 + 2.0));
    near(t.local_instructions, 64.0);
    assert_eq!(t.barriers, 0.0, "a sub-group waits for itself");
}

/// A table in tiles of 8 by 8 is read by rows and by columns, as operands of matrix instructions.
#[test]
fn halves_of_a_sub_group_meet_in_banks() {
    let text = |layout: &str| {
        format!(
            "kernel k

param n: i32
arg y: f64[n, 32] inout
temp t: f64[2, 2, 4, 4] local{layout}

for g in 0..n {{g.0}}
  for c in 0..2
    for b in 0..2
      for a in 0..4
        for i in 0..4 {{l.0}}
          s: t[c, b, a, i] = 1.0
  for i_2 in 0..32 {{l.0}}
    r: y[g, i_2] += t[0, floor_div(i_2, 4) mod 2, floor_div(i_2, 8), i_2 mod 4]
  for i_3 in 0..32 {{l.0}}
    q: y[g, i_3] += t[floor_div(i_3, 4) mod 2, 0, i_3 mod 4, floor_div(i_3, 8)]
"
        )
    };
    let writes = 16.0;
    let dense = walked(&text(""), 4, |i| i);
    assert_eq!(dense.local_wavefronts, writes + 4.0 + 4.0, "{dense:?}");
    let spread = walked(&text(" strides(18, 40, 4, 1)"), 4, |i| i);
    assert_eq!(spread.local_wavefronts, writes + 2.0 + 2.0, "{spread:?}");
}

#[test]
fn private_values_are_alive_from_write_to_last_read() {
    let text = "kernel k

param n: i32
arg x: f64[n, 8] in
arg y: f64[n] out
temp a: f64[8] private
temp b: f64[8] private
temp s: f64 private

for i in 0..n {g.0}
  for j in 0..8 {unroll}
    p: a[j] = x[i, j]
  for k in 0..8 {unroll}
    q: b[k] = 2.0*a[k]
  z: s = 0.0
  for l in 0..8 {unroll}
    u: s += b[l]
  w: y[i] = s
";
    // eight elements of `a`, each of which gives way to one of `b`
    let found = walked(text, 4, |i| i);
    assert!((16..=20).contains(&found.live_words), "{found:?}");
    // both arrays are declared; the sum is no array
    assert_eq!(found.array_words, 32);
}
