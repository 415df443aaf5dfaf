//! Loops that are cut until nothing is decided inside: what is left, and that it computes the same.

use crate::story::{kernel, story};
use insta::assert_snapshot;
use kingpost_ir::Kernel;
use kingpost_isl::{IslError, with_operation_limit};
use kingpost_primitives::primitives::TileBand;
use kingpost_primitives::{Schedule, ScheduleSteps, steps};
use kingpost_steps::refusal::BUDGET;

/// The steps of LU, fused.
const FACTORS: &str = "kernel factors
param n: i32
arg A: f64[n, n] inout

for k in 0..n - 1
  for i in k + 1..n
    for j in k..n
      b: A[i, k] = A[i, k] - 3.0*A[k, k] if j == k
      a: A[i, j] += -A[i, k]*A[k, j] if k + 1 <= j and j + 1 <= i
      c: A[i, j] += -A[i, k]*A[k, j] if i <= j
";

const TRIANGLE: &str = "kernel triangle
param n: i32
arg y: f64[n, n] inout

for i in 0..n
  for j in 0..i + 1
    s: y[i, j] = 2.0*y[i, j]
";

/// The kernel after some steps, each of which computes the same at small sizes.
fn after(text: &str, apply: impl FnOnce(&mut Schedule)) -> Kernel {
    let mut schedule = Schedule::of(&kernel(text));
    apply(&mut schedule);
    let told = story(text, &schedule.recipe().steps);
    assert!(!told.contains("\nrefused: "), "{told}");
    schedule.kernel().clone()
}

#[test]
fn innermost_loops_decide_nothing() {
    let kernel = after(FACTORS, |s| {
        let loops = s.separate_loops("j", None).unwrap();
        assert_eq!(loops.iter().map(|l| l.name()).collect::<Vec<_>>(), ["j_below", "j_below_1", "j"]);
    });
    assert_snapshot!(kernel.to_string());
}

/// The cuts of the outer loop take nothing away that those of the inner one would leave.
#[test]
fn loops_inside_are_cut_too() {
    let kernel = after(FACTORS, |s| drop(s.separate_loops("i", None).unwrap()));
    assert!(!kernel.to_string().contains(" if "), "{kernel}");
}

#[test]
fn full_tiles_have_constant_bounds() {
    let kernel = after(TRIANGLE, |s| {
        s.make(TileBand::new(["i", "j"], [4, 4])).unwrap();
        s.separate_loops("i_o", 2).unwrap();
    });
    assert_snapshot!(kernel.to_string());
}

#[test]
fn nothing_is_cut_where_nothing_is_decided() {
    let before = kernel(TRIANGLE);
    let mut schedule = Schedule::of(&before);
    assert_eq!(schedule.separate_loops("i", None).unwrap().len(), 1);
    assert_eq!(*schedule.kernel(), before);
}

/// All cuts together have one budget; the question that exceeds it is named.
#[test]
fn cuts_past_the_budget_are_undecided() {
    let before = Schedule::of(&kernel(FACTORS));
    let mut refused = 0;
    for limit in (4..26).map(|bits| 1 << bits) {
        let mut schedule = before.clone();
        let cut = || Ok::<_, IslError>(schedule.separate_loops("i", None));
        match with_operation_limit(limit, cut).unwrap() {
            Ok(_) => {
                assert!(!schedule.kernel().to_string().contains(" if "));
                break;
            }
            Err(error) => {
                assert_eq!(error.cause.obligation(), Some(BUDGET), "{error}");
                assert!(error.to_string().starts_with("cut `"), "{error}");
                assert_eq!(schedule, before);
                refused += 1;
            }
        }
    }
    assert!((2..22).contains(&refused), "{refused}");
}

#[test]
fn loops_and_depths_that_are_none_are_refused() {
    let refused =
        |text: &str| steps().script(text).unwrap().apply(&kernel(TRIANGLE)).unwrap_err().to_string();
    assert_eq!(
        refused("separate_loops(i, depth: 0)\n"),
        "line 1: separate `i`: no loop is to be cut, needed 1 for this one alone, or more"
    );
    assert_eq!(
        refused("separate_loops(q)\n"),
        "line 1: separate `q`: there is no iname `q`; there is `i`, `j`"
    );
}
