use crate::story::facts;
use purlin_transforms::primitives::Rename;

const KERNEL: &str = "kernel k
param n: i32
arg x: f64[n] in
arg y: f64[n] inout
temp t: f64 private
table w: f64[2] global
rule twice(a) := 2.0*a
for i in 0..n
  s: t = twice(x[i])*w[0] + sum(k in 0..i: f64(k))
  u: y[i] = t if i mod 2 == 0
table w = [
  1.5, 2.5
]
";

facts! {
    a_loop: KERNEL, [Rename::iname("i", "cell")];
    a_reduction: KERNEL, [Rename::iname("k", "q")];
    an_instruction: KERNEL, [Rename::insn("s", "load")];
    a_temporary: KERNEL, [Rename::var("t", "value")];
    a_table: KERNEL, [Rename::var("w", "weights")];
    a_rule: KERNEL, [Rename::rule("twice", "double")];
    refuses_an_argument: KERNEL, [Rename::var("x", "z")];
    refuses_a_parameter: KERNEL, [Rename::var("n", "m")];
    refuses_unknown_iname: KERNEL, [Rename::iname("s", "z")];
    refuses_unknown_instruction: KERNEL, [Rename::insn("i", "z")];
    refuses_unknown_variable: KERNEL, [Rename::var("i", "z")];
    refuses_unknown_rule: KERNEL, [Rename::rule("i", "z")];
    refuses_a_name_taken: KERNEL, [Rename::iname("i", "y")];
    refuses_its_own_name: KERNEL, [Rename::iname("i", "i")];
    refuses_a_keyword: KERNEL, [Rename::iname("i", "for")];
    refuses_the_parameter_of_a_rule: KERNEL, [Rename::var("t", "a")];
}
