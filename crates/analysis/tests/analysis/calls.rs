//! A call means what stands in it.

use kingpost_analysis::Analysis;
use kingpost_interp::{Memory, interpret};
use kingpost_ir::Kernel;
use kingpost_ir::text::parse;

const KERNEL: &str = "kernel k
param n: i32
arg alpha: f64 in
arg u: f64[n, 16] in
arg v: f64[n, 16] inout
callee axpy4
  arg a: f64 in
  arg x: f64[4] in
  arg y: f64[4] inout

  for l in 0..4
    s: y[l] += a*x[l]
for i in 0..n
  call axpy4
    for j in 0..4
      t: v[i, 4 + j] += alpha*u[i, 3*j]
";

fn kernel(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|e| panic!("{}", e.render(text)))
}

/// The same statements with and without the marks are one program to everything but the text.
#[test]
fn a_call_means_what_stands_in_it() {
    let called = kernel(KERNEL);
    let mut plain = called.clone();
    plain.insns.values_mut().for_each(|i| i.callee = None);
    plain.verify().expect("well formed");
    let run = |kernel: &Kernel| {
        let values = |k: f64| (0..48).map(|i| k * f64::from(i)).collect::<Vec<_>>();
        let mut memory = Memory::new().param("n", 3).value("alpha", vec![0.5]).value("u", values(1.0));
        memory = memory.value("v", values(3.0));
        let run = interpret(kernel, &mut memory).expect("runs");
        (run, memory.f64s("v").map(<[f64]>::to_vec))
    };
    assert_eq!(run(&called), run(&plain));
    let count = |kernel: &Kernel| Analysis::of(kernel).dependence_graph().expect("dependences").edge_count();
    assert_eq!(count(&called), count(&plain));
}
