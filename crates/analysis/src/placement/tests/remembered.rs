//! What was asked before; the rows of the table, legal and illegal, are in `facts/placement`.

use super::placed;

/// The placement, or the refusal.
fn show(text: &str) -> String {
    let header = "kernel k\nparam n: i32\nassume n >= 1\narg a: f64[n] inout\narg b: f64[n] inout\n\
                  arg m: f64[n, n] inout\narg map: i32[n] in\n";
    let text = format!("{header}{text}");
    let kernel = kingpost_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
    match placed(&kernel) {
        Err(error) => format!("refused: {error}"),
        Ok(placement) => format!("{placement:?}"),
    }
}

/// Answers are remembered for equal questions only.
#[test]
fn what_was_asked_before_changes_nothing() {
    let swept = |i: &str, j: &str| {
        format!(
            "temp t: f64[7, 7] local\nfor i in 0..4{i}\n  for j in 0..4{j}\n    s: t[i + j, i - j + 3] = 1.0\n\
             for p in 0..4{i}\n  for q in 0..4{j}\n    r: m[p, q] = t[p - q + 3, p + q]\n"
        )
    };
    let under = |last: i64| {
        format!("temp t: f64 local\ne: t = 1.0\nfor k in 0..4 {{l.0}}\n  r: b[k] = t if k <= {last}\n")
    };
    let with = |assumed: &str, end: &str| {
        format!(
            "param o: i32\nassume {assumed}\ntemp t: f64 local\ne: t = 1.0\nfor k in 0..{end} {{l.0}}\n  r: b[k] = t\n"
        )
    };
    let into = |op: &str| format!("for k in 0..n\n  for l in 0..4 {{l.0}}\n    s: a[k + l] {op} 1.0\n");
    let pairs = [
        (swept(" {l.0}", ""), swept("", " {l.0}")),
        (under(0), under(1)),
        (with("n <= 1", "n"), with("n <= 2", "n")),
        (with("o <= 1", "o"), with("o <= 1", "n")),
        (into("="), into("+=")),
    ];
    for (first, second) in pairs {
        let text = second.clone();
        let alone = std::thread::spawn(move || show(&text)).join().expect("does not panic");
        assert_ne!(show(&first), alone);
        assert_eq!(show(&second), alone);
    }
}
