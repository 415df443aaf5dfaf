//! Which instructions a primitive concerns, and what is said where there are none.

use crate::story::{assert_style, kernel};
use insta::assert_snapshot;
use kingpost_primitives::Selection;

const TEXT: &str = "kernel scatter
param n: i32
arg dofs: i32[n, 3] in
arg x: f64[n] in
arg w: f64[n] in
arg y: f64[n] inout
arg z: f64[n] inout
temp t: f64[3] private
rule weighted(k) := w[k]*x[k]
for cell in 0..n
  for i in 0..3
    gather_x: t[i] = x[dofs[cell, i]] {gather}
  for j in 0..3
    scatter_y: y[dofs[cell, j]] += t[j] {scatter}
    scatter_z: z[dofs[cell, j]] += weighted(cell) {scatter}
scale: z[0] = 2.0*z[0]
";

fn names(selection: &Selection) -> String {
    let kernel = kernel(TEXT);
    match selection.resolve(&kernel) {
        Ok(found) => found.iter().map(|i| kernel.insns[*i].name.as_str()).collect::<Vec<_>>().join(" "),
        Err(error) => {
            assert_style(&error.to_string());
            format!("refused: {error}")
        }
    }
}

fn insn(name: &str) -> Selection {
    Selection::Insn(name.into())
}

#[test]
fn by_name() {
    assert_eq!(names(&insn("scatter_y")), "scatter_y");
    assert_eq!(names(&insn("scatter_*")), "scatter_y scatter_z");
    assert_eq!(names(&insn("*_x")), "gather_x");
    assert_eq!(names(&insn("*s*a*t*e*r*_*")), "scatter_y scatter_z");
    assert_eq!(names(&insn("*")), "gather_x scatter_y scatter_z scale");
}

#[test]
fn by_what_they_do() {
    assert_eq!(names(&Selection::Tag("scatter".into())), "scatter_y scatter_z");
    assert_eq!(names(&Selection::Writes("z".into())), "scatter_z scale");
    assert_eq!(names(&Selection::Reads("dofs".into())), "gather_x scatter_y scatter_z");
    assert_eq!(names(&Selection::Reads("x".into())), "gather_x scatter_z"); // through the rule, too
    assert_eq!(names(&Selection::Inside("j".into())), "scatter_y scatter_z");
    assert_eq!(names(&Selection::Inside("cell".into())), "gather_x scatter_y scatter_z");
}

#[test]
fn all_of_several() {
    let writes = || Selection::Writes("z".into());
    let inside = || Selection::Inside("cell".into());
    assert_eq!(names(&Selection::All(vec![writes(), inside()])), "scatter_z");
    assert_eq!(
        names(&Selection::All(vec![inside(), Selection::All(vec![insn("*_y"), inside()])])),
        "scatter_y"
    );
}

#[test]
fn what_matches_nothing_is_refused() {
    let parts = vec![Selection::Tag("gather".into()), Selection::Inside("j".into())];
    let refused = [
        insn("scater_y"),
        insn("scatter_*_y"),
        insn("*y*y"),
        Selection::Tag("sctter".into()),
        Selection::Writes("x".into()),
        Selection::Reads("q".into()),
        Selection::Inside("k".into()),
        Selection::All(parts),
        Selection::All(vec![insn("scale"), insn("scal")]),
        Selection::All(Vec::new()),
    ];
    assert_snapshot!(refused.iter().map(|s| format!("{s}: {}\n", names(s))).collect::<String>());
}

#[test]
fn of_many_names_the_nearest_are_shown() {
    let insns: String = (0..40).map(|k| format!("stage_{k}: y[{k}] = 1.0\n")).collect();
    let kernel = kernel(&format!("kernel many\narg y: f64[40] inout\n{insns}"));
    let error = insn("stag_17").resolve(&kernel).unwrap_err().to_string();
    assert!(error.contains("there is `stage_17`") && error.ends_with(" and 28 more"), "{error}");
    assert_eq!(error.matches('`').count(), 2 * 13, "{error}");
}

#[test]
fn written_as_json() {
    let selection = Selection::All(vec![
        insn("scatter_*"),
        Selection::Reads("x".into()),
        Selection::Inside("cell".into()),
    ]);
    let json = serde_json::to_string(&selection).unwrap();
    assert_eq!(json, r#"{"all":[{"insn":"scatter_*"},{"reads":"x"},{"inside":"cell"}]}"#);
    assert_eq!(serde_json::from_str::<Selection>(&json).unwrap(), selection);
}
