//! What kernels look like.

use super::round_trip::{looping, storing};
use crate::affine::Affine;
use crate::constant::TableData;
use crate::domain::{Constraint, Domain};
use crate::expr::{BinaryOp, Expr};
use crate::kernel::{Arithmetic, Assumption};
use crate::text::{PrintOptions, TableStyle, parse, print_with};
use crate::types::ScalarType;
use crate::{Access, KernelBuilder};
use insta::assert_snapshot;

/// Every part of the format, as it is printed.
const ALL_PARTS: &str = "\
kernel laplace

param n_cells: i32
param n_dofs: i32
param n: i64
arg u: f64[n_dofs] in
arg alpha: f64 in
arg y: f64[n_dofs] inout
arg dof: i32[n_cells, 35] in
temp l: f64[35] private
temp acc: f64[35] private
temp first: i32 private
temp buf: f64[8, 9] local strides(9, 1) vector(1) storage(shared)
table phi: f64[2, 3] global
table small: f32[3] constant
table big: i64[4, 8] global
rule square(x) := x*x
rule scaled(a, b) := square(a)*alpha + b
assume n_cells >= 1
assume 2*n_cells <= n_dofs
assume injective(dof)

for cell in 0..n_cells {g.0}
  lookup: first = dof[cell, 0]
  for j in 0..35 {unroll}
    gather: l[j] = u[dof[cell, j]] {stage_gather}
  for i_o in 0..ceil(n/4)
    for i_i in 0..min(4, n - 4*i_o)
      for k in max(0, i_i - 2)..n where (i_i + k) mod 2 == 0
        e: acc[k] = sum(q in 0..2, r in 0..q + 1: phi[q, r]*l[r])*scaled(alpha, f64(k))
  for j_1 in first..min(35, first + 3)
    reset: acc[j_1] = select(j_1 < n and not alpha <= 0, -3.5, -(3.5)) + exp(-alpha)/(alpha - (1 - alpha))
  for j_2 where (j_2 >= 0 and j_2 <= 2) or (j_2 >= 9 and j_2 < n)
    s: y[dof[cell, j_2]] += l[j_2] if j_2 != floor_div(n, 2) {\"atomic\", scatter, atomic}
    m: acc[j_2] min= max(l[0], l[min(34, (j_2 + 1) mod 35)])

table phi = [0.1, 0.2, -3.0, 1e-7, inf, nan]

table small = [0.1, -0.0, 1e-10]

table big = [
  1, 2, 3, 4, 5, 6, 7, 8,
  -1, -2, -3, -4, -5, -6, -7, -8,
  9223372036854775807, -9223372036854775808, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0,
]
";

#[test]
fn all_parts() {
    let kernel = parse(ALL_PARTS).unwrap_or_else(|e| panic!("{}", e.render(ALL_PARTS)));
    assert_eq!(kernel.to_string(), ALL_PARTS);
}

#[test]
fn a_first_line_with_resident_groups() {
    let text = "kernel k {resident_groups(4)}\n";
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    assert_eq!((kernel.launch.resident_groups, kernel.to_string().as_str()), (Some(4), text));
    for found in [0, 33] {
        let mut other = kernel.clone();
        other.launch.resident_groups = Some(found);
        let message = other.verify().expect_err("refused").to_string();
        assert_eq!(message, format!("{found} resident groups are not within 1 to 32"));
    }
}

#[test]
fn a_first_line_with_dynamic_local_memory() {
    for text in ["kernel k {dynamic_local}\n", "kernel k {resident_groups(4), dynamic_local}\n"] {
        let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
        assert_eq!((kernel.launch.dynamic_local, kernel.to_string().as_str()), (true, text));
    }
    assert_ne!(parse("kernel k {dynamic_local}"), parse("kernel k"));
}

#[test]
fn a_first_line_with_ordered_groups() {
    for text in ["kernel k {ordered_groups}\n", "kernel k {dynamic_local, ordered_groups, sub_group(64)}\n"] {
        let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
        assert_eq!((kernel.launch.ordered_groups, kernel.to_string().as_str()), (true, text));
    }
    assert_ne!(parse("kernel k {ordered_groups}"), parse("kernel k"));
}

#[test]
fn a_first_line_with_double_single_arithmetic() {
    for text in ["kernel k {double_single}\n", "kernel k {dynamic_local, sub_group(64), double_single}\n"] {
        let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
        assert_eq!((kernel.arithmetic, kernel.to_string().as_str()), (Arithmetic::DoubleSingle, text));
        let json = serde_json::to_string(&kernel).expect("data");
        assert!(json.contains(r#""arithmetic":"double_single""#), "{json}");
    }
    assert_ne!(parse("kernel k {double_single}"), parse("kernel k"));
}

/// 32 is what a kernel without a width means, so that it is not printed, and not in JSON.
#[test]
fn a_first_line_with_the_width_of_sub_groups() {
    let plain = parse("kernel k\n").expect("well formed");
    assert_eq!(parse("kernel k {sub_group(32)}"), Ok(plain.clone()));
    assert!(!serde_json::to_string(&plain).expect("data").contains("sub_group"));
    for width in [1, 16, 64, 128] {
        let text = format!("kernel k {{dynamic_local, sub_group({width})}}\n");
        let kernel = parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)));
        assert_eq!((kernel.sub_group.width(), &kernel.to_string()), (width, &text));
        let json = serde_json::to_string(&kernel).expect("data");
        assert!(json.contains(&format!("\"sub_group\":{width}")), "{json}");
        assert_eq!(serde_json::from_str::<crate::Kernel>(&json).expect("a kernel"), kernel);
        let other = json.replace(&format!("\"sub_group\":{width}"), "\"sub_group\":48");
        let error = serde_json::from_str::<crate::Kernel>(&other).expect_err("refused").to_string();
        assert!(
            error.contains("a sub-group of 48 work-items; its width is a power of two, 1 to 128"),
            "{error}"
        );
    }
    let callee = "kernel k\n\ncallee c {sub_group(64)}\n  arg y: f64[1] out\n\n  s: y[0] = 1.0\n";
    assert_eq!(parse(callee).unwrap_or_else(|e| panic!("{}", e.render(callee))).to_string(), callee);
}

/// Names are given as instructions stand, past every word of the text, and stay once they are printed.
#[test]
fn instructions_without_names() {
    let text = "kernel k
param s1: i32
arg x: f64[s1] in
arg y: f64[s1] inout
temp t: f64

callee twice
  arg a: f64[1] inout

  a[0] *= 2.0

for i in 0..s1
  y[i] = x[i]
  s3: t = 1.0
  t min= x[i] if x[i] < 1.0 {stage}
  call twice
    y[i] *= 2.0
  t *= sum(s5 in 0..2: x[i])
t = 0.0
t max= 1.0
";
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let names: Vec<&str> = kernel.insns.values().map(|insn| insn.name.as_str()).collect();
    assert_eq!(names, ["s0", "s3", "s2", "s4", "s6", "s7", "s8"]);
    let callee = kernel.callees.values().next().expect("declared");
    assert_eq!(callee.kernel.insns.values().next().expect("one").name, "s0");
    let printed = kernel.to_string();
    assert!(printed.contains("\n  s2: t min= x[i] if x[i] < 1.0 {stage}\n"), "{printed}");
    assert_eq!(parse(&printed), Ok(kernel));
}

#[test]
fn layout_and_comments_do_not_matter() {
    let spread =
        ALL_PARTS.replace("  ", "    ").replace('\n', "   # a comment ]\r\n\n").replace(" = [", " = [ # (\n");
    assert_eq!(parse(&spread), parse(ALL_PARTS));
    let broken = ALL_PARTS
        .replace("sum(", "sum(\n")
        .replace("r in 0..q", "\n\n   r in\n0..q")
        .replace(" + exp(", " + exp(\n");
    assert_eq!(parse(&broken), parse(ALL_PARTS));
}

/// The hash names kernels in databases that outlive a build: it may change only with the format.
#[test]
fn content_hash_is_stable() {
    let kernel = parse(ALL_PARTS).expect("well formed");
    assert_snapshot!(kernel.content_hash(), @"aa3094e92c227bcc0a3dbdd59f4342fd6bfb9bd08033dcb8e44a8c015f441037");
}

#[test]
fn abridged_tables() {
    let mut b = KernelBuilder::new("k");
    b.table("phi", ScalarType::F64, [24, 35], TableData::real((0..840).map(|k| f64::from(k) / 8.0)));
    b.table("few", ScalarType::I32, [2], TableData::int([1, 2]));
    let kernel = b.finish().expect("well formed");
    let text = print_with(&kernel, PrintOptions { tables: TableStyle::Abridged });
    assert_snapshot!(text, @r#"
kernel k

table phi: f64[24, 35] global
table few: i32[2] global

table phi = [0.0, 0.125, 0.25, 0.375, ... 840 values, blake3 e2d0d38f7b2a8794]

table few = [1, 2]
"#);
    assert_snapshot!(parse(&text).expect_err("abridged").render(&text), @r#"
error: the values of table `phi` are abridged
 --> 6:39
6 | table phi = [0.0, 0.125, 0.25, 0.375, ... 840 values, blake3 e2d0d38f7b2a8794]
  |                                       ^^^
  = help: print the kernel with its tables in full
"#);
}

#[test]
fn parts_of_a_kernel() {
    let kernel = storing(|_, i| Expr::Cast(ScalarType::F64, Box::new(Expr::from(i) * 2)));
    let i = kernel.iname("i").expect("declared");
    let n = kernel.var("n").expect("declared");
    let e = Affine::iname(i).times(-2).plus(&Affine::var(n)).plus_constant(3);
    assert_snapshot!(kernel.show_affine(&e), @"n - 2*i + 3");
    assert_snapshot!(kernel.show_affine(&e.modulo(4).times(2).plus_constant(-1)), @"2*((n - 2*i + 3) mod 4) - 1");
    assert_snapshot!(kernel.show_affine(&e.floor_div(4).times(3)), @"3*floor_div(n - 2*i + 3, 4)");
    assert_snapshot!(kernel.show_constraint(&Constraint::lt(&e, &Affine::var(n))), @"i >= 2");
    assert_snapshot!(kernel.show_constraint(&Constraint::equal(&e, &Affine::constant(0))), @"2*i == n + 3");
    assert_snapshot!(kernel.show_domain(i, &kernel.inames[i].domain), @"i in 0..n");
    let t = kernel.var("t").expect("declared");
    assert_snapshot!(kernel.show_access(&Access::new(t, [Expr::from(i) + 1])), @"t[i + 1]");
    let condition =
        Expr::binary(BinaryOp::And, Expr::binary(BinaryOp::Lt, i, 3), Expr::binary(BinaryOp::Ne, i, 1));
    assert_snapshot!(kernel.show_expr(&condition), @"i < 3 and i != 1");
    assert_snapshot!(kernel.show_insn(&kernel.insns[kernel.insn("s").expect("declared")]), @"s: t = f64(i*2)");
    assert_snapshot!(kernel.show_assumption(&Assumption::Params(Constraint::le(&Affine::constant(1), &Affine::var(n)))), @"n >= 1");
}

#[test]
fn domains() {
    let show = |make: &dyn Fn(&Affine, &Affine) -> Domain| {
        let kernel = looping(|i, n| make(&Affine::iname(i), n));
        let i = kernel.iname("i").expect("declared");
        kernel.show_domain(i, &kernel.inames[i].domain).to_string()
    };
    let c = Affine::constant;
    let (le, lt, eq) = (Constraint::le, Constraint::lt, Constraint::equal);
    let all = |list: &[Constraint]| Domain::conjunction(list.to_vec());
    assert_snapshot!(show(&|i, n| all(&[le(&c(0), i), lt(i, n)])), @"i in 0..n");
    assert_snapshot!(show(&|i, n| all(&[le(&n.times(-1), i), le(i, n)])), @"i in -n..n + 1");
    assert_snapshot!(show(&|i, n| all(&[le(&n.plus_constant(1), &i.times(2)), lt(&i.times(4), n)])), @"i in ceil((n + 1)/2)..ceil(n/4)");
    assert_snapshot!(show(&|i, n| all(&[le(&c(0), i), lt(i, n), le(&n.plus_constant(-9), i), lt(i, &c(99))])), @"i in max(0, n - 9)..min(99, n)");
    assert_snapshot!(show(&|i, n| all(&[eq(i, &n.floor_div(2))])), @"i where i == floor_div(n, 2)");
    assert_snapshot!(show(&|i, n| all(&[le(i, n)])), @"i where i <= n");
    assert_snapshot!(show(&|i, n| all(&[le(&c(0), i), lt(i, n), eq(&i.modulo(3), &n.modulo(2))])), @"i in 0..n where i mod 3 == n mod 2");
    assert_snapshot!(show(&|i, n| all(&[le(&c(0), i), lt(i, n), le(&c(2), n)])), @"i in 0..n where n >= 2");
    assert_snapshot!(show(&|_, _| Domain::union([])), @"i where false");
}
