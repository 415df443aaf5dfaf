#![allow(clippy::unwrap_used, clippy::panic)]

use super::{Cause, Reach};
use crate::Analysis;
use kingpost_interp::{InterpError, interpret};
use kingpost_ir::text::parse;
use kingpost_ir::{Expr, Id, Kernel};
use kingpost_sample::{SampleConfig, arbitrary_kernel, config};
use proptest::prelude::*;

fn kernel(text: &str) -> Kernel {
    let text = format!("kernel k\nparam n: i32\n{text}");
    parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)))
}

fn outside(text: &str) -> String {
    Analysis::of(&kernel(text)).first_outside().map_or_else(String::new, |o| o.to_string())
}

fn needed(found: &str) -> String {
    format!("{found}; correct the index or the loops, or assume what the parameters satisfy")
}

/// What is known of each access, in one word.
fn known(text: &str) -> Vec<&'static str> {
    let word = |reach: &Reach| match reach {
        Reach::Inside => "inside",
        Reach::Outside(_) => "outside",
        Reach::Open(Cause::Index) => "index",
        Reach::Open(Cause::Computed) => "computed",
        Reach::Open(Cause::Domain) => "domain",
        Reach::Open(Cause::Solver) => "solver",
    };
    Analysis::of(&kernel(text)).accesses().iter().map(|a| word(&a.reach)).collect()
}

#[test]
fn whole_ranges_blocks_and_triangles_are_inside() {
    let texts = [
        "arg a: f64[n] out\nfor i in 0..n\n  s: a[i] = 1.0\n",
        "arg a: f64[n] out\nfor i in 0..n\n  s: a[n - 1 - i] = 1.0\n",
        "arg a: f64[n] out\nfor o in 0..ceil(n/32)\n  for i in 0..min(32, n - 32*o)\n    s: a[32*o + i] = 1.0\n",
        "arg a: f64[n, n] out\nfor i in 0..n\n  for j in i..n\n    s: a[j, i] = 1.0\n",
        "arg a: f64[8, 12] out\nfor o in 0..3\n  for l in 0..32\n    s: a[floor_div(32*o + l, 12), (32*o + l) mod 12] = 1.0\n",
        "arg a: f64[n] out\nfor i in 0..n\n  for j where (j >= 0 and j < 3 and j <= i) or (j == n - 1)\n    s: a[j] = 1.0\n",
        "arg a: f64[n] out\nassume n >= 4\ns: a[3] = 1.0\n",
        "arg a: f64[n] in\narg y: f64 out\ns: y = sum(i in 0..n - 1: a[i + 1] - a[i])\n",
    ];
    for text in texts {
        assert_eq!(outside(text), "", "{text}");
        assert!(known(text).iter().all(|k| *k == "inside"), "{text}");
    }
}

/// Of products there are bounds, also those that the loops around say. What these alone allow is not outside.
#[test]
fn parameters_that_are_computed() {
    let inside = [
        "param d: i64 = n + 1\narg a: f64[d] out\nfor i in 0..n\n  s: a[i + 1] = 1.0\n",
        "param m: i32\narg a: f64[n*m] out\nfor i in 0..n*m\n  s: a[i] = 1.0\n",
        "param m: i32\narg a: f64[n*m + 1] out\nfor i in 0..n\n  for j in 0..m\n    s: a[i + 1] = 1.0\n",
        "param m: i32\narg a: f64[max(n, m)] out\nfor j in 0..m\n  s: a[j] = 1.0\n",
    ];
    for text in inside {
        assert_eq!(outside(text), "", "{text}");
        assert!(known(text).iter().all(|k| *k == "inside"), "{text}");
    }
    // n + m - 1 <= n*m is no bound that is known
    let open = "param m: i32\narg a: f64[n*m] out\nfor i in 0..n\n  for j in 0..m\n    s: a[i + j] = 1.0\n";
    assert_eq!(known(open), ["computed"]);
    let beyond = "param m: i32\narg a: f64[n*m] out\nfor i in 0..n*m + 1\n  s: a[i] = 1.0\n";
    let found = "`s[0]` accesses `a[0]` with n_m = 0, outside its shape [n_m]";
    assert_eq!(outside(beyond), needed(found));
    let beyond = "param m: i32\narg a: f64[n*m] out\nfor i in 0..n\n  s: a[i + 2*m] = 1.0 if m >= 2\n";
    let found = "`s[0]` accesses `a[4]` with n = 2, m = 2, n_m = 4, outside its shape [n_m]";
    assert_eq!(outside(beyond), needed(found));
}

/// A parameter has values of its type: what lies outside for others only is inside.
#[test]
fn witnesses_have_values_of_the_types() {
    let beyond =
        "arg a: f64[n] inout\nfor j in 0..n\n  t: a[j + n - 1099511627776] = 2.0 if j + n >= 1099511627776\n";
    assert_eq!(outside(beyond), "");
    assert_eq!(known(beyond), ["inside"]);
    let wide = "param m: i64\narg a: f64[m] inout\nfor j in 0..m\n  t: a[j + m - 1099511627776] = 2.0 if j + m >= 1099511627776\n";
    assert!(outside(wide).contains("with m = 109951162777"), "{}", outside(wide));
    let least = "arg a: f64[7] inout\nfor j in 0..1\n  t: a[3 + n] = 2.0\n";
    assert_eq!(outside(least), needed("`t[0]` accesses `a[-1]` with n = -4, outside its shape [7]"));
}

#[test]
fn conditions_count() {
    let text = "arg a: f64[n] inout
for i in 0..n
  whole: a[i] = a[i - 1] + a[i + 1] if i > 0 and i < n - 1
  chosen: a[i] = select(i == 0, 0.0, a[i - 1])
  short: a[i] = 1.0 if i > 0 and a[i - 1] > 0.0
  other: a[i] = 2.0 if not (i > 1 or a[i + 0] > 0.0) or i == 0 or a[i - 1] > 0.0
";
    assert_eq!(outside(text), "");
    let wrong = "arg a: f64[n] inout\nfor i in 0..n\n  s: a[i] = 1.0 if a[i - 1] > 0.0 and i > 0\n";
    assert_eq!(outside(wrong), needed("`s[0]` accesses `a[-1]` with n = 1, outside its shape [n]"));
    for wrong in ["1.0 if i > 0 or a[i - 1] > 0.0", "a[i - 1] if i > 0 or i < 2"] {
        let wrong = format!("arg a: f64[n] inout\nfor i in 0..n\n  s: a[i] = {wrong}\n");
        assert_eq!(outside(&wrong), needed("`s[0]` accesses `a[-1]` with n = 1, outside its shape [n]"));
    }
    let wrong = "arg a: f64[n] inout\nfor i in 0..n\n  s: a[i] = select(i > 0, 0.0, a[i - 1])\n";
    assert_eq!(outside(wrong), needed("`s[0]` accesses `a[-1]` with n = 1, outside its shape [n]"));
}

#[test]
fn witness_is_the_smallest_instance() {
    let text =
        "param m: i32\narg a: f64[n, m] inout\nfor i in 0..n\n  for j in 0..n\n    s: a[i, j] += 1.0\n";
    assert_eq!(
        outside(text),
        needed("`s[0,0]` accesses `a[0,0]` with n = 1, m = 0, outside its shape [n, m]")
    );
    assert_eq!(outside(&text.replace("for i", "assume n <= m\nfor i")), "");
    let text = "arg a: f64[7] in\narg y: f64[n] out\nfor i in 0..n\n  s: y[i] = sum(k in 0..4: a[2*k + 1])\n";
    assert_eq!(outside(text), needed("`s[0,3]` accesses `a[7]` with n = 1, outside its shape [7]"));
    let text = "temp t: f64[4] private\ns: t[4] = 1.0\n";
    assert_eq!(outside(text), needed("`s` accesses `t[4]`, outside its shape [4]"));
}

#[test]
fn parameters_need_what_the_kernel_takes_for_granted() {
    let text = "arg y: f64[n] out\ns: y[0] = 1.0\n";
    assert_eq!(outside(text), needed("`s` accesses `y[0]` with n = 0, outside its shape [n]"));
    assert_eq!(outside(&text.replace("\ns:", "\nassume n >= 1\ns:")), "");
}

#[test]
fn what_memory_decides_is_left_open() {
    let text = "arg map: i32[n] in
arg x: f64[n] in
arg y: f64[n] inout
arg m: i32 in
temp k: i32 private
for i in 0..n
  load: k = map[i]
  gather: y[i] = x[map[i]]
  through: y[i] = x[k]
  product: y[i] += x[i*n]
  given: y[i] += x[m]
  for j in 0..k
    far: y[i] += x[j]
  near: y[i] += x[i] if x[i] > 0.0
  guarded: y[i] += x[i + 1] if x[i] > 0.0
";
    let text = text.replace("product", "times");
    let word = known(&text);
    let named: Vec<_> = Analysis::of(&kernel(&text))
        .accesses()
        .into_iter()
        .zip(word)
        .filter(|(_, w)| *w != "inside")
        .map(|(a, w)| (a.access, w))
        .collect();
    let expected = [
        ("x[map[i]]", "index"),
        ("x[k]", "index"),
        ("x[i*n]", "index"),
        ("x[m]", "index"),
        ("x[j]", "domain"),
        ("x[i + 1]", "domain"),
    ];
    assert_eq!(named, expected.map(|(a, w)| (a.to_owned(), w)));
}

#[test]
fn accesses_of_rules_stand_where_they_are_used() {
    let text =
        "arg a: f64[n] in\narg y: f64[n] out\nrule next(k) := a[k + 1]\nfor i in 0..n\n  s: y[i] = next(i)\n";
    assert_eq!(outside(text), needed("`s[0]` accesses `a[1]` with n = 1, outside its shape [n]"));
}

#[test]
fn what_holds_elsewhere_does_not_count() {
    // what was decided under a condition
    let text = "arg a: f64[n] inout\nfor i in 0..n\n  r: a[i] = a[i - 1] if i > 0\n  s: a[i] = a[i - 1]\n";
    assert_eq!(outside(text), needed("`s[0]` accesses `a[-1]` with n = 1, outside its shape [n]"));
    // `j < k <= i < 5`, but of two values of `k`
    let text = "temp k: i32 private\narg a: f64[5] inout\nstart: k = 10\nfor j in 0..k\n  less: k = 0\n  \
                for i in k..5\n    s: a[j] = 1.0\n";
    assert_eq!(known(text), ["domain"]);
    // `2*n >= 3`, so that `n >= 2`
    let text = "arg x: f64[2*n - 3] in\narg y: f64[n] out\ns: y[5] = 1.0\n";
    assert_eq!(outside(text), needed("`s` accesses `y[5]` with n = 2, outside its shape [n]"));
}

/// One instruction accesses its arrays elsewhere.
fn shifted(mut kernel: Kernel, pick: prop::sample::Index, by: i64) -> Kernel {
    let insns = kernel.insns.len();
    let Some((_, insn)) = kernel.insns.iter().nth(pick.index(insns)) else { return kernel };
    let mut insn = insn.clone();
    let move_last = |index: &mut Vec<Expr>| {
        if let Some(last) = index.pop() {
            index.push(last + Expr::Int(by));
        }
    };
    match pick.index(2) {
        0 => move_last(&mut insn.lhs.index),
        _ => {
            insn.rhs = insn.rhs.map(&mut |e| match e {
                Expr::Load(mut access) => {
                    move_last(&mut access.index);
                    Expr::Load(access)
                }
                other => other,
            });
        }
    }
    kernel.insns[kingpost_ir::InsnId::from_index(pick.index(insns))] = insn;
    kernel.canonical()
}

proptest! {
    #![proptest_config(config(400))]

    /// What is proved stays inside its array when it runs, and so does what is drawn to.
    #[test]
    fn proofs_hold_on_random_kernels(
        sample in arbitrary_kernel(SampleConfig::default()),
        pick in any::<prop::sample::Index>(),
        by in -2..3_i64,
    ) {
        prop_assert_eq!(Analysis::of(&sample.kernel).first_outside(), None);
        let kernel = shifted(sample.kernel, pick, by);
        prop_assume!(kernel.verify().is_ok());
        if let Err(InterpError::OutOfBounds { at, .. }) = interpret(&kernel, &mut sample.memory.clone()) {
            let inside = |a: &super::AccessReach| a.reach == Reach::Inside;
            let of_insn = Analysis::of(&kernel).accesses().into_iter().filter(|a| kernel.insns[a.insn].name == at.name);
            prop_assert!(!of_insn.collect::<Vec<_>>().iter().all(inside), "{at}\n{kernel}");
        }
    }
}
