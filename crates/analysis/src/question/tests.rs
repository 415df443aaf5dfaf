//! Equal questions have equal answers: what is in a question, and what is not.

use super::{NoPair, Part, Question};
use crate::Analysis;
use crate::deps::{Dependence, DependenceKind};
use kingpost_ir::kernel::Kernel;
use kingpost_isl as isl;
use std::sync::Arc;

fn kernel(text: &str) -> Kernel {
    kingpost_ir::text::parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)))
}

/// A kernel of two instructions with a flow from one iteration to the next.
const SHIFT: &str = "kernel k
param n: i32
arg a: f64[n + 9] inout
assume n >= 2

for i in 0..n
  for j in 0..8
    s: a[i + j] = 1.0
for p in 0..n
  for q in 0..8
    r: a[p + q] = a[p + q]*2.0 if p <= 5
";

/// What isl is asked of the dependences of a kernel.
fn asked(text: &str) -> Vec<(DependenceKind, super::Relation)> {
    let kernel = kernel(text);
    let analysis = Analysis::of(&kernel);
    analysis.dependences().unwrap().iter().map(|d| (d.kind, d.told().as_ref().clone())).collect()
}

#[test]
fn names_of_loops_instructions_and_arrays_do_not_matter() {
    let renamed = SHIFT
        .replace("a[", "other[")
        .replace("arg a", "arg other")
        .replace("for i", "for row")
        .replace("[i + j]", "[row + j]")
        .replace("s:", "first:");
    assert_eq!(asked(SHIFT), asked(&renamed));
}

#[test]
fn all_that_isl_is_told_matters() {
    for (what, changed) in [
        ("the bounds of a loop", SHIFT.replace("for j in 0..8", "for j in 0..7")),
        ("an index", SHIFT.replace("s: a[i + j]", "s: a[i + 2*j]")),
        ("a condition", SHIFT.replace("if p <= 5", "if p <= 4")),
        ("what is assumed", SHIFT.replace("n >= 2", "n >= 3")),
        ("what a symbol can be", SHIFT.replace("n: i32", "n: i64")),
        ("a quotient", SHIFT.replace("s: a[i + j]", "s: a[i + floor_div(j, 2)]")),
    ] {
        assert_ne!(asked(SHIFT), asked(&changed), "{what}");
    }
}

#[test]
fn loops_around_both_ends_and_the_order_matter() {
    let apart = "kernel k\nparam n: i32\narg a: f64[n] inout\n\nfor i in 0..n\n  s: a[i] = 1.0\nfor j in 0..n\n  \
                 r: a[n - 1 - j] = 2.0\n";
    let together = "kernel k\nparam n: i32\narg a: f64[n] inout\n\nfor i in 0..n\n  s: a[i] = 1.0\n  \
                    r: a[n - 1 - i] = 2.0\n";
    let output = |text| asked(text).into_iter().find(|(_, r)| r.pairs.common == 1 || r.pairs.span.textual);
    let (apart, together) = (output(apart).unwrap().1, output(together).unwrap().1);
    assert_eq!(apart.pairs.ends, together.pairs.ends);
    assert_ne!(apart, together);
}

#[test]
fn a_pair_beyond_the_range_of_its_symbols_is_none() {
    // `s` and `r` meet where n is 3000000000
    let text = "kernel k\nparam n: i32\narg a: f64[10] inout\n\ns: a[0] = 1.0\nfor i in n - 2999999995..n - 2999999990\n  \
                r: a[i - 5] = 2.0\n";
    let none = |text: &str| {
        let kernel = kernel(text);
        let analysis = Analysis::of(&kernel);
        let dependences = analysis.dependences().unwrap();
        let output = dependences.iter().find(|d| d.source != d.sink).unwrap();
        NoPair { relation: output.told().clone(), part: Part::whole() }.ask().unwrap()
    };
    assert!(none(text));
    assert!(!none(&text.replace("n: i32", "n: i64")));
}

#[test]
fn answers_serve_the_next_kernel() {
    let first = kernel(
        "kernel k\nparam n: i32\narg a: f64[n] in\narg b: f64[n, 64] out\ntemp t: f64[64] local\n\nfor g in 0..n {g.0}\n  for l in 0..64 {l.0}\n    \
         s: t[l] = a[g]\n  for m in 0..64 {l.0}\n    r: b[g, m] = t[63 - m]\n",
    );
    let second = kernel(&first.to_string().replace(" l ", " item ").replace("[l]", "[item]"));
    let kept = |answers: &Arc<crate::Answers>| format!("{answers:?}");
    let analysis = Analysis::of(&first);
    let barriers = analysis.place().map(|p| p.barriers.len()).map_err(|e| e.to_string());
    assert_eq!(barriers, Ok(1));
    let after_first = kept(analysis.answers());
    assert_ne!(after_first, kept(&Arc::default()));
    let next = analysis.next(&second);
    assert_eq!(next.place().map(|p| p.barriers.len()).map_err(|e| e.to_string()), barriers);
    assert_eq!(kept(next.answers()), after_first);
}

/// Whether a value that a statement writes in an iteration of `i` is read in a later one.
fn is_read_later(text: &str, source: &str) -> bool {
    let kernel = kernel(text);
    let analysis = Analysis::of(&kernel);
    let dependences = analysis.dependences().unwrap();
    let flows = dependences
        .iter()
        .filter(|d| d.carries_value() && kernel.insns[d.source].name == source)
        .collect::<Vec<_>>();
    let later = isl::Constraint::non_negative(isl::Affine::name("i'").plus(-1, "i").offset(-1));
    let found = |d: &&Dependence| !d.relation_where(&[vec![later.clone()]]).unwrap().is_empty().unwrap();
    assert!(!flows.is_empty());
    flows.into_iter().any(found)
}

#[test]
fn what_is_written_in_each_iteration_hides_what_earlier_ones_wrote() {
    let loops = "for i in 0..n\n";
    let (low, high) =
        ("  for j in 0..4\n    low: t[j] = a[i, j]\n", "  for l in 0..4\n    high: t[l + 4] = a[i, l + 4]\n");
    let read = "  for q in 0..8\n    r: y[i, q] = t[7 - q]\n";
    let head = "kernel k\nparam n: i32\narg a: f64[n, 8] in\narg y: f64[n, 8] out\ntemp t: f64[8]\n\n";
    let start = "for p in 0..8\n  first: t[p] = 0.0\n";
    let both = [head, loops, low, high, read].concat();
    assert!(!is_read_later(&both, "low") && !is_read_later(&both, "high"));
    let sometimes = both.replace("a[i, l + 4]", "a[i, l + 4] if i <= 5");
    assert!(!is_read_later(&sometimes, "low") && is_read_later(&sometimes, "high"));
    let after = [head, start, loops, read, low, high].concat();
    assert!(is_read_later(&after, "low") && is_read_later(&after, "high"));
    let between = [head, start, loops, low, read, high].concat();
    assert!(!is_read_later(&between, "low") && is_read_later(&between, "high"));
}

/// Elements whose places are quotients are told one by one: 24 in rounds of eight work-items, each
/// where another layout has it.
#[test]
fn what_is_dealt_by_quotients_is_written_in_each_iteration() {
    let text = "kernel k\nparam n: i32\narg a: f64[n, 24] in\narg y: f64[n, 3, 4, 2] out\n\
                temp t: f64[3, 8]\n\nfor f in 0..3\n  for e in 0..8\n    first: t[f, e] = 0.0\nfor i in 0..n\n  \
                for u in 0..3\n    for v in 0..8\n      high: t[u, v] = 1.0 if i <= 5\n  \
                for c in 0..3\n    for l in 0..8\n      \
                low: t[8*c + l - 3*floor_div(8*c + l, 3), \
                4*floor_div(8*c + l, 12) + floor_div(8*c + l, 3) - 4*floor_div(8*c + l, 12)] = a[i, 8*c + l]\n  \
                for p in 0..3\n    for q in 0..4\n      for h in 0..2\n        \
                r: y[i, p, q, h] = t[p, q + 4*h]\n";
    assert!(!is_read_later(text, "high"));
    for (written, left) in [
        ("for l in 0..8\n", "for l in 0..7\n"),
        ("for c in 0..3\n", "for c in 1..3\n"),
        ("= a[i, 8*c + l]", "= a[i, 8*c + l] if i <= 2"),
        ("= a[i, 8*c + l]", "= a[i, 8*c + l] if l + c <= 8"),
        ("floor_div(8*c + l, 3) - 4*", "floor_div(8*c + l, 4) - 4*"),
    ] {
        assert!(is_read_later(&text.replace(written, left), "high"), "{left}");
    }
}
