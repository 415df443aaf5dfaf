use crate::story::facts;
use purlin_transforms::primitives::RollInsns;

fn roll(insns: &[&str]) -> RollInsns {
    RollInsns::new(insns.iter().copied(), "c")
}

const COMPONENTS: &str = "kernel components
param n: i32
arg y: f64[3*n] inout
arg a: f64[n, 3] in
arg map: i32[n] in
arg x: f64[n, 3] in
assume n >= 1
for i in 0..n
  s0: y[3*i] += 2.0*a[i, 0] + x[map[i], 0]
  s1: y[3*i + 1] += 2.0*a[i, 1] + x[map[i], 1]
  s2: y[3*i + 2] += 2.0*a[i, 2] + x[map[i], 2]
  t: y[3*i] += 1.0
";

const PLAIN: &str = "kernel plain
param n: i32
arg y: f64[n, 4] inout
arg a: f64[n, 4] in
for i in 0..n
  s0: y[i, 0] = a[i, 3]
  s1: y[i, 1] = a[i, 2]
  s2: y[i, 3] = a[i, 1]
  u: y[i, 2] += a[i, 0]
  v: y[i, 3] = 2.0*a[i, 0] if a[i, 0] < 1.0
  w: y[i, 0] = 3.0*a[i, 1] if a[i, 1] < 1.0
  p: y[i, 1] = sin(a[i, 1]) if a[i, 1] < 1.0
  q: y[i, 2] = sin(a[i, 2]) if a[i, 2] < 1.0
";

facts! {
    components: COMPONENTS, [roll(&["s0", "s1", "s2"])];
    some_of_them: COMPONENTS, [roll(&["s1", "s2"])];
    backward: PLAIN, [roll(&["s0", "s1"])];
    with_conditions: PLAIN, [roll(&["p", "q"])];
    a_recurrence_stays_in_order: "kernel k
arg y: f64[4] inout
s0: y[1] = y[0] + 1.0
s1: y[2] = y[1] + 1.0
s2: y[3] = y[2] + 1.0
", [roll(&["s0", "s1", "s2"])];
    refuses_uneven_steps: PLAIN, [roll(&["s0", "s1", "s2"])];
    refuses_another_operator: PLAIN, [roll(&["s2", "u"])];
    refuses_another_value: PLAIN, [roll(&["v", "w"])];
    refuses_a_condition: PLAIN, [roll(&["u", "v"])];
    refuses_a_condition_of_one: "kernel k
arg y: f64[2] inout
s0: y[0] = 1.0
s1: y[1] = 1.0 if y[0] > 2.0
", [roll(&["s0", "s1"])];
    refuses_another_array: "kernel k
arg y: f64[2] inout
arg z: f64[2] inout
s0: y[0] = 1.0
s1: z[1] = 1.0
", [roll(&["s0", "s1"])];
    refuses_a_call: "kernel k
arg y: f64[2] inout
callee one
  arg x: f64 inout
  s: x = 1.0
call one
  s0: y[0] = 1.0
call one
  s1: y[1] = 1.0
", [roll(&["s0", "s1"])];
    refuses_another_order: COMPONENTS, [roll(&["s1", "s0"])];
    refuses_what_is_apart: COMPONENTS, [roll(&["s0", "s2"])];
    refuses_one: COMPONENTS, [roll(&["s0"])];
    refuses_unknown: COMPONENTS, [roll(&["s0", "nothing"])];
    refuses_a_taken_name: COMPONENTS, [RollInsns::new(["s0", "s1"], "i")];
}
