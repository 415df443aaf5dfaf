//! Programs made of whole ones, and counts as formulas.

#![allow(clippy::unwrap_used)]

use crate::schedules::run;
use crate::write;

/// Standard output.
fn good(args: &[&str]) -> String {
    run(args, 0).0
}

const TWICE: &str = "kernel twice\nparam n: i32\narg a: f64[n] in\narg b: f64[n] out\n\nfor i in 0..n\n  s: b[i] = 2.0*a[i]\n";
const ADD: &str =
    "kernel add\nparam n: i32\narg b: f64[n] in\narg c: f64[n] inout\n\nfor i in 0..n\n  s: c[i] += b[i]\n";

#[test]
fn kernels_are_fused() {
    let dir = tempfile::tempdir().unwrap();
    let [first, second] =
        [("twice.purlin", TWICE), ("add.purlin", ADD)].map(|(n, t)| write(dir.path(), n, t));
    let text = good(&["fuse", &first, &second, "--name", "both"]);
    assert!(text.starts_with("kernel both\n") && text.contains("launch add\n  for i_1 in 0..n\n"), "{text}");
    let fused = write(dir.path(), "both.purlin", &text);
    assert!(good(&["run", &fused, "--param", "n=5", "--device", "c"]).contains("b"));
    let other = write(
        dir.path(),
        "other.purlin",
        &ADD.replace("b: f64[n] in", "b: f64[n, n] in").replace("b[i]", "b[i, i]"),
    );
    assert!(run(&["fuse", &first, &other], 1).1.contains("`b` is declared in two ways"));
}

#[test]
fn kernels_are_batched() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "twice.purlin", TWICE);
    let text = good(&["batch", &file, "--by", "m", "--over", "a,b"]);
    assert!(text.contains("arg a: f64[m, n] in") && text.contains("for batch in 0..m\n"), "{text}");
    assert!(good(&["batch", &file, "--by", "3", "--over", "b"]).contains("arg b: f64[3, n] out"));
    assert!(run(&["batch", &file, "--by", "3", "--over", "a"], 1).1.contains("needed `b` among them"));
}

#[test]
fn counts_are_formulas() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "twice.purlin", &TWICE.replace("for i in 0..n", "for i in 2..n"));
    let text = good(&["stats", &file, "--formula"]);
    assert!(
        text.contains("FLOP: [n >= 2]*(n - 2)\n") && text.contains("writes of b: [n >= 2]*(n - 2)\n"),
        "{text}"
    );
    run(&["stats", &file, "--formula", "--param", "n=4"], 2);
}

#[test]
fn laws_of_operators_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let argmin = "kernel rows\nrecord Best(value: f64, at: i64)\noperator argmin(a: Best, b: Best) := select(b.value < a.value or b.value == a.value and b.at < a.at, b, a) identity Best(inf, 9223372036854775807) {associative, commutative, no_nan}\narg x: f64[8] in\narg best: Best out\n\ns: best = argmin(j in 0..8: Best(x[j], j))\n";
    let file = write(dir.path(), "rows.purlin", argmin);
    let says =
        "operator argmin: associative, commutative, no_nan: proved, by all 729 orders of its operands\n";
    assert!(good(&["stats", &file]).contains(says));
    assert!(good(&["stats", &file, "--formula"]).contains(says));
    let sums = argmin.replace("select(b.value < a.value or b.value == a.value and b.at < a.at, b, a) identity Best(inf, 9223372036854775807)", "Best(a.value + b.value, a.at + b.at) identity Best(0.0, 0)");
    let file = write(dir.path(), "sums.purlin", &sums);
    assert!(good(&["stats", &file]).contains("no_nan: sampled, with 1000 values that were drawn\n"));
}
