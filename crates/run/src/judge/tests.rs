//! That a kernel on threads of the host computes what it computes in order.

use super::host::shared_out;
use super::{Expected, STEPS};
use kingpost_codegen::{Options, Target, generate};
use kingpost_interp::Memory;
use kingpost_ir::text::parse;

const HEAD: &str =
    "param n: i32\narg a: f64[n, n] in\narg c: f64[n, n] inout\n\nfor i in 0..n\n  for j in 0..n\n";

/// Rows that are independent are shared out; rows that are not, and what says itself where it runs, are not.
#[test]
fn threads_take_loops_whose_iterations_are_independent() {
    let axes = HEAD.replace("0..n\n  for", "0..n {g.0}\n  for");
    for (head, update, on_threads) in [
        (HEAD, "c[i, j] += a[i, k]*a[k, j]", true),
        (HEAD, "c[i, j] += a[i, k]*c[(i + k) mod n, j]", false),
        (HEAD, "c[0, j] += a[i, k]*0.3", false),
        (&axes, "c[i, j] += a[i, k]*a[k, j]", false),
    ] {
        let text = format!("kernel k\n{head}    for k in 0..n\n      s: {update}\n");
        let kernel = parse(&text).unwrap();
        let shared = shared_out(&kernel).map(|kernel| generate(&kernel, Target::C, &Options::default()));
        assert_eq!(shared.is_some_and(|program| program.is_ok()), on_threads, "{text}");
        let values = |seed: usize| (0..37 * 37).map(|k| ((k * seed) % 101) as f64 / 7.0).collect::<Vec<_>>();
        let memory = Memory::new().param("n", 37).value("a", values(37)).value("c", values(41));
        let interpreted = Expected::new(&kernel, &memory, STEPS).unwrap();
        let computed = Expected::by_host(&kernel, &memory).unwrap();
        assert_eq!(computed.memory.get("c"), interpreted.memory.get("c"), "{text}");
    }
}

/// Temporaries that are as long as a parameter have the length that the inputs say.
#[test]
fn temporaries_have_the_lengths_of_the_inputs() {
    let text = "kernel k\nparam m: i32\nparam n: i32\nassume n >= 1\narg a: f64[m, n] in\narg c: f64[m, n] out\n\
                temp t: f64[2*n] private\n\nfor i in 0..m\n  for j in 0..2*n\n    w: t[j] = 2.0*a[i, j mod n]\n  \
                for k in 0..n\n    s: c[i, k] = t[n + k] - t[n - 1 - k]\n";
    let kernel = parse(text).unwrap();
    let memory =
        Memory::new().param("m", 3).param("n", 5).value("a", (0..15).map(f64::from).collect::<Vec<_>>());
    let interpreted = Expected::new(&kernel, &memory, STEPS).unwrap();
    let computed = Expected::by_host(&kernel, &memory).unwrap();
    assert_eq!(computed.memory.get("c"), interpreted.memory.get("c"));
}
