use crate::story::facts;
use purlin_transforms::primitives::ExpandRule;

const TWO: &str = "kernel k
param n: i32
arg a: f64[n] in
arg y: f64[n] inout
rule f(j) := 2.0*a[j]
rule g(x, j) := x*f(j) + x
for i in 0..n
  s: y[i] = g(y[i] - 1.0, i) + f(n - 1 - i) if f(i) < 3.0
";

facts! {
    inner_rule_stays_callable: TWO, [ExpandRule::new("f"), ExpandRule::new("g")];
    outer_rule_first: TWO, [ExpandRule::new("g")];
    unused: "kernel k
arg y: f64 inout
rule f(x) := x*x
s: y = 2.0*y
", [ExpandRule::new("f")];
    reduction_as_an_argument: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
rule f(x) := 2.0*x
s: y = f(sum(j in 0..n: a[j]))
", [ExpandRule::new("f")];
    refuses_to_repeat_a_reduction: "kernel k
param n: i32
arg a: f64[n] in
arg y: f64 inout
rule f(x) := x*x
s: y = f(sum(j in 0..n: a[j]))
", [ExpandRule::new("f")];
    refuses_unknown: TWO, [ExpandRule::new("h")];
}
