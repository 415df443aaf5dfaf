use crate::story::facts;
use purlin_transforms::primitives::{PadArray, TransposeArrayAxes};

fn order(var: &str, axes: &[u32]) -> TransposeArrayAxes {
    TransposeArrayAxes::new(var, axes.iter().copied())
}

const K: &str = "kernel k
param n: i32
arg a: f64[n, 4] inout
arg b: f64[2, n, 4] inout
temp t: f64[n, 4, 2] private
temp s: f64 private
rule twice(k) := 2.0*t[k, 1, 0]
table w: f64[2, 2] global
for i in 0..n
  for j in 0..4
    set: t[i, j, 0] = a[i, j] + w[1, 0]
  put: b[0, i, 3] = twice(i) - sum(l in 0..4: t[i, l, 0])
table w = [1, 2, 3, 4]
";

facts! {
    temporary: K, [order("t", &[2, 0, 1])];
    twice_is_as_before: K, [order("t", &[1, 2, 0]), order("t", &[2, 0, 1])];
    argument: K, [order("a", &[1, 0])];
    refuses_products_of_parameters: "kernel k
param n: i32
param m: i32
arg a: f64[4, n, m] inout
for i in 0..n
  s: a[2, i, 0] = 1.0 if m > 0
", [order("a", &[0, 2, 1])];
    outermost_parameter_of_an_argument: K, [order("b", &[1, 2, 0])];
    refuses_strides: K, [PadArray::new("t", 1, 1), order("t", &[2, 0, 1])];
    refuses_the_order_there_is: K, [order("a", &[0, 1])];
    refuses_no_permutation: K, [order("a", &[0, 0])];
    refuses_too_few: K, [order("a", &[])];
    refuses_a_scalar: K, [order("s", &[])];
    refuses_a_table: K, [order("w", &[1, 0])];
    refuses_a_parameter: K, [order("n", &[])];
    refuses_unknown: K, [order("u", &[1, 0])];
}
