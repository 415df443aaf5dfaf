use crate::story::facts;
use purlin_transforms::Selection;
use purlin_transforms::primitives::{ExpandRule, ExtractRule};

const TEXT: &str = "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] in
arg y: f64[n] inout
rule twice(x) := 2.0*x
for i in 0..n
  s: y[i] = a[i]*b[n - 1 - i] + sum(k in 0..n: a[k]*b[k])
  t: y[i] = twice(a[i]*b[i]) if a[i]*b[0] < 1.0
";

fn extract(params: &[&str], template: &str) -> ExtractRule {
    ExtractRule::new("f", params.to_vec(), template)
}

/// For templates that one thing keeps from matching.
const OTHERS: &str = "kernel k
param n: i32
arg a: f64[n] in
arg b: f64[n] in
arg y: f64[n] inout
rule twice(x) := 2.0*x
rule half(x) := 0.5*x
for i in 0..n
  t: y[i] = twice(a[i]*b[0]) + sin(a[i]) + f64(f32(b[i])) if a[i]*b[0] < 1.0
";

facts! {
    everywhere: TEXT, [extract(&["p", "q"], "a[p]*b[q]")];
    one_parameter_for_two_places: TEXT, [extract(&["p"], "a[p]*b[p]")];
    parameters_named_as_loops: TEXT, [extract(&["i"], "a[i]")];
    from_one_instruction: TEXT, [ExtractRule { insns: Some(Selection::Insn("t".into())), ..extract(&["p", "q"], "a[p]*b[q]") }];
    use_of_another_rule: TEXT, [extract(&["x"], "twice(x)")];
    undone_by_expansion: TEXT, [extract(&["p", "q"], "a[p]*b[q]"), ExpandRule::new("f")];
    refuses_no_match: TEXT, [extract(&["p", "q"], "b[p]*a[q]")];
    refuses_a_bare_parameter: TEXT, [extract(&["p"], "p")];
    refuses_a_parameter_that_is_not_there: TEXT, [extract(&["p", "q"], "a[p]")];
    refuses_a_loop_that_is_no_parameter: TEXT, [extract(&[], "a[i]")];
    refuses_nonsense: TEXT, [extract(&["p"], "a[p")];
    refuses_two_lines: TEXT, [extract(&["p"], "a[p]\ns: y[0] = 1.0")];
    refuses_a_reduction: TEXT, [extract(&["p"], "sum(k in 0..n: a[k])")];
    refuses_a_name_taken: TEXT, [ExtractRule::new("y", ["p"], "a[p]")];
    refuses_an_empty_selection: TEXT, [ExtractRule { insns: Some(Selection::Tag("q".into())), ..extract(&["p"], "a[p]") }];
    refuses_another_integer: OTHERS, [extract(&["p"], "a[p]*b[1]")];
    refuses_another_real: OTHERS, [extract(&["x"], "x < 2.0")];
    refuses_another_operator: OTHERS, [extract(&["p", "q"], "a[p] + b[q]")];
    refuses_another_function: OTHERS, [extract(&["x"], "cos(x)")];
    refuses_another_cast: OTHERS, [extract(&["x"], "f64(f64(x))")];
    refuses_another_rule: OTHERS, [extract(&["x"], "half(x)")];
}
