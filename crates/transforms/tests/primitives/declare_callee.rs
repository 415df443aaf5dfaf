use crate::story::facts;
use purlin_transforms::primitives::DeclareCallee;

const SUM: &str = "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
for i in 0..n
  s: y[i] += 2.0*x[i]
";

const FMA: &str = "callee multiply_add
  arg a: f64 in
  arg b: f64 in
  arg c: f64 inout

  s: c += a*b
  code c (\"{c} = fma({a}, {b}, {c});\")
";

facts! {
    with_code: SUM, [DeclareCallee::new(FMA)];
    refuses_a_second_time: SUM, [DeclareCallee::new(FMA), DeclareCallee::new(FMA)];
    refuses_text_that_is_wrong: SUM, [DeclareCallee::new("callee c\n  arg c: f64 inout\n  s: d = 1.0\n")];
    refuses_two: SUM, [DeclareCallee::new(FMA.to_owned() + "callee d\n  arg c: f64 inout\n  s: c = 1.0\n")];
    refuses_another_statement: SUM, [DeclareCallee::new("param m: i32\n")];
    refuses_a_temporary: SUM, [DeclareCallee::new("callee c\n  temp c: f64 private\n  s: c = 1.0\n")];
}
