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
        [("twice.kingpost", TWICE), ("add.kingpost", ADD)].map(|(n, t)| write(dir.path(), n, t));
    let text = good(&["fuse", &first, &second, "--name", "both"]);
    assert!(text.starts_with("kernel both\n") && text.contains("launch add\n  for i_1 in 0..n\n"), "{text}");
    let fused = write(dir.path(), "both.kingpost", &text);
    assert!(good(&["run", &fused, "--param", "n=5", "--device", "c"]).contains("b"));
    let other = write(
        dir.path(),
        "other.kingpost",
        &ADD.replace("b: f64[n] in", "b: f64[n, n] in").replace("b[i]", "b[i, i]"),
    );
    assert!(run(&["fuse", &first, &other], 1).1.contains("`b` is declared in two ways"));
}

#[test]
fn kernels_are_batched() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "twice.kingpost", TWICE);
    let text = good(&["batch", &file, "--by", "m", "--over", "a,b"]);
    assert!(text.contains("arg a: f64[m, n] in") && text.contains("for batch in 0..m\n"), "{text}");
    assert!(good(&["batch", &file, "--by", "3", "--over", "b"]).contains("arg b: f64[3, n] out"));
    assert!(run(&["batch", &file, "--by", "3", "--over", "a"], 1).1.contains("needed `b` among them"));
}

#[test]
fn counts_are_formulas() {
    let dir = tempfile::tempdir().unwrap();
    let file = write(dir.path(), "twice.kingpost", &TWICE.replace("for i in 0..n", "for i in 2..n"));
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
    let file = write(dir.path(), "rows.kingpost", argmin);
    let says =
        "operator argmin: associative, commutative, no_nan: proved, by all 729 orders of its operands\n";
    assert!(good(&["stats", &file]).contains(says));
    assert!(good(&["stats", &file, "--formula"]).contains(says));
    let sums = argmin.replace("select(b.value < a.value or b.value == a.value and b.at < a.at, b, a) identity Best(inf, 9223372036854775807)", "Best(a.value + b.value, a.at + b.at) identity Best(0.0, 0)");
    let file = write(dir.path(), "sums.kingpost", &sums);
    assert!(good(&["stats", &file]).contains("no_nan: sampled, with 1000 values that were drawn\n"));

    // each step that regroups says it; one that keeps the order relies on nothing
    let realised = r#"{"realise_reduction": {"iname": "j", "in_place": true}}, {"split_iname": {"iname": "j", "factor": 4}}, {"factor_update": {"insn": "s_update", "inames": ["j_o"]}}"#;
    let recipe = write(dir.path(), "steps.json", &format!(r#"{{"steps": [{realised}]}}"#));
    for (text, known) in [
        (&argmin.to_owned(), "proved, by all 729 orders of its operands"),
        (&sums, "sampled, with 1000 values that were drawn"),
    ] {
        let file = write(dir.path(), "rows.kingpost", text);
        let steps = good(&["steps", &file, "--recipe", &recipe]);
        let says: Vec<&str> = steps.lines().filter(|line| line.starts_with("# relies")).collect();
        let line = format!("# relies on `argmin` being associative and commutative: {known}");
        assert_eq!(says, [line.as_str(), line.as_str()], "{steps}");
        assert!(steps.contains(&format!("# step 3 of 3: factor `s_update` over `j_o`\n{line}\n")), "{steps}");
    }
}

#[test]
fn barriers_and_launches_are_counted_as_formulas() {
    let dir = tempfile::tempdir().unwrap();
    let stencil =
        "kernel waves\nparam n: i32\nparam m: i32\narg a: f64[m, 128] inout\ntemp t: f64[128] local\n
for k in 0..n
  launch forward
    for b in 0..m {g.0}
      for s in 0..3
        for i in 0..128 {l.0}
          put: t[i] = a[b, i]
        for j in 0..128 {l.0}
          get: a[b, j] = t[127 - j]
  launch back
    for c in 0..m {g.0}
      for l in 0..128 {l.0}
        last: a[c, l] += 1.0
";
    let file = write(dir.path(), "waves.kingpost", stencil);
    let text = good(&["stats", &file, "--formula"]);
    assert!(text.contains("launches: [n >= 0]*2*n\nbarriers: [n >= 0]*6*n*m\n"), "{text}");
    // in one sub-group, whose work-items wait for each other alone
    let narrow = stencil.replace("128", "32").replace("127", "31");
    let file = write(dir.path(), "narrow.kingpost", &narrow);
    let text = good(&["stats", &file, "--formula"]);
    assert!(text.contains("barriers: 0\nbarriers of sub-groups: [n >= 0]*6*n*m\n"), "{text}");
    // what is refused has no barriers to count
    let file = write(dir.path(), "race.kingpost", &stencil.replace("t[127 - j]", "a[0, 127 - j]"));
    let text = good(&["stats", &file, "--formula"]);
    assert!(
        text.contains("launches: [n >= 0]*2*n\nbarriers: no closed form: `") && text.contains("FLOP"),
        "{text}"
    );
}
