//! A step that the solver does not decide in time is refused as undecided, with the question.

use kingpost_isl::{IslError, with_operation_limit};
use kingpost_steps::refusal::{BUDGET, Refusal};
use kingpost_steps::{Primitive, Step};
use kingpost_transforms::primitives::{InterchangeInames, MapInames, Reschedule};

const SWEEP: &str = "kernel sweep\nparam m: i32\nparam n: i32\narg a: f64[m, n] inout\n\n\
    for t in 1..m\n  for i in 1..n - 1\n    s: a[t, i] = a[t - 1, i - 1] + a[t - 1, i + 1]\n";

fn refused(step: impl Into<Step>, limit: u64) -> Refusal {
    let kernel = kingpost_ir::text::parse(SWEEP).unwrap();
    let analysis = kingpost_analysis::Analysis::of(&kernel);
    let step = step.into();
    let applied = with_operation_limit(limit, || Ok::<_, IslError>(step.apply_to(&analysis).map(drop)));
    applied.unwrap().unwrap_err().cause
}

#[test]
fn a_step_past_its_budget_is_undecided() {
    let map = MapInames::new(["t", "i"], [vec![2, 1], vec![1, 1]]);
    let reschedule = Reschedule::new(["t"], ["x", "y"]).map("s", ["2*t + i", "t"]);
    for step in [Step::from(map), Step::from(reschedule), InterchangeInames::new("t", "i").into()] {
        let cause = refused(step, 60);
        assert_eq!(cause.obligation(), Some(BUDGET), "{cause}");
        assert!(matches!(cause, Refusal::Undecided(_)), "{cause}");
        assert!(cause.to_string().contains("not decided within 60 operations of the solver"), "{cause}");
    }
}

/// The limit is gone afterwards, and what was not decided is decided with more.
#[test]
fn the_next_question_has_a_budget_of_its_own() {
    let step = InterchangeInames::new("t", "i");
    assert_eq!(refused(step.clone(), 60).obligation(), Some(BUDGET));
    let kernel = kingpost_ir::text::parse(SWEEP).unwrap();
    let error = step.apply(&kernel).unwrap_err();
    assert!(error.to_string().ends_with("[order]"), "{error}");
}
