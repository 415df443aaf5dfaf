//! Generated sources, one snapshot a fact: the kernel, then its source for each target.

#![allow(clippy::unwrap_used, clippy::panic)]

use purlin_codegen::{Options, Target, generate};
use purlin_ir::text::{parse, print};

const ALL: [Target; 3] = [Target::Cuda, Target::OpenCl, Target::C];

/// The kernel, its launch plan and its sources.
fn show(text: &str, targets: &[Target]) -> String {
    let kernel = parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)));
    let mut out = print(&kernel);
    for (k, target) in targets.iter().enumerate() {
        let program = generate(&kernel, *target, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let again = generate(&kernel, *target, &Options::default()).unwrap();
        assert_eq!(program, again, "two runs must give the same bytes");
        if k == 0 {
            let plan = &program.plan;
            let [gx, gy, gz] = &plan.grid;
            out.push_str(&format!("\n===== launch\ngrid {gx}, {gy}, {gz}\nblock {:?}\n", plan.block));
            out.push_str(&format!("local {} bytes, {:?}\n", plan.local_bytes, plan.features));
        }
        out.push_str(&format!("\n===== {target}\n{}", program.source));
    }
    out
}

macro_rules! snapshot {
    ($name:ident, $targets:expr, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), show($text, &$targets));
        }
    };
}

snapshot!(
    axpy_is_guarded_when_not_divisible,
    ALL,
    "kernel axpy

param n: i32
arg a: f64 in
arg x: f64[n] in
arg y: f64[n] inout

for i_o in 0..ceil(n/32) {g.0}
  for i_i in 0..min(32, n - 32*i_o) {l.0}
    s: y[32*i_o + i_i] += a*x[32*i_o + i_i]
"
);

snapshot!(
    finite_element_action_one_cell_a_work_item,
    ALL,
    "kernel mass

param n_cells: i32
param n_dofs: i32
arg u: f64[n_dofs] in
arg y: f64[n_dofs] inout
arg dof: i32[n_cells, 3] in
arg detj: f64[n_cells] in
temp l: f64[3] private
temp t: f64 private
temp r: f64[3] private
temp e: f64 private
table phi: f64[2, 3] global
table w: f64[2] constant

for c_o in 0..ceil(n_cells/32) {g.0}
  for c_i in 0..min(32, n_cells - 32*c_o) {l.0}
    for j in 0..3
      gather: l[j] = u[dof[32*c_o + c_i, j]] {gather}
    for i in 0..3
      zero: r[i] = 0.0 {evaluate}
    for q in 0..2
      eval: e = sum(j_1 in 0..3: phi[q, j_1]*l[j_1]) {evaluate}
      point: t = w[q]*detj[32*c_o + c_i]*e {pointwise}
      for i_1 in 0..3
        quad: r[i_1] += phi[q, i_1]*t {quadrature}
    for i_2 in 0..3
      scatter: y[dof[32*c_o + c_i, i_2]] += r[i_2] {scatter, atomic}

table phi = [
  0.5, 0.25, 0.25, 0.1, 0.2, 0.7
]
table w = [
  0.5, 0.5
]
"
);
