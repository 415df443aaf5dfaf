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
    integers_that_are_loaded: &INTEGERS.replace("4*a[i]", "a[i]"), [stage()];
    /// The store casts them in any case.
    integers_of_a_plain_store: &INTEGERS.replace("min=", "="), [stage()];
    refuses_integers_that_may_not_fit: INTEGERS, [stage()];
    /// Every place would read the element that one of them writes.
    refuses_a_value_of_one_place_among_many: "kernel k
param n: i32
arg x: f64[n + 1] inout
arg y: f64[n] inout
for c in 0..n {g.0}
  w: y[c] = 1.0
s: x[0] = 2.0*x[0]
", [stage()];
}

const INTEGERS: &str = "kernel k
param n: i32
arg a: i32[n] in
arg y: i32[n] inout
for i in 0..n
  s: y[i] min= 4*a[i]
";
