use crate::story::facts;
use purlin_transforms::primitives::{DistributeLoop, ExpandArray, StageValue};

fn stage() -> StageValue {
    StageValue::new("s", "v")
}

const SCATTER: &str = "kernel k
param n: i32
arg dof: i32[n, 3] in
arg a: f64[n] in
arg y: f64[n] inout
for c in 0..n
  for i in 0..3
    s: y[dof[c, i]] += 2.0*a[c]
";

facts! {
    of_an_update: SCATTER, [stage()];
    in_a_loop_of_its_own: SCATTER, [stage(), ExpandArray::new("v", ["i"]), DistributeLoop::new("i", ["s"])];
    refuses_another_type: &SCATTER.replace("arg a: f64", "arg a: f32"), [stage()];
    refuses_a_condition: &SCATTER.replace("2.0*a[c]", "2.0*a[c] if a[c] < 1.0"), [stage()];
    refuses_a_taken_name: SCATTER, [StageValue::new("s", "a")];
    refuses_an_unknown_instruction: SCATTER, [StageValue::new("t", "v")];
}
