//! Private arrays that are larger than the stack of a thread.

use super::{Random, compare, device, random_memory, run};
use kingpost_codegen::{CodegenError, Options, Target, generate};
use kingpost_interp::interpret;
use kingpost_ir::text::parse;
use kingpost_runtime::{RuntimeError, open};
use kingpost_sample::seed;
use std::collections::BTreeMap;

/// A work-item's array `t` and a group's array `l`, of which few elements are used; `large`
/// elements are 10 MB.
fn text(private: u64, local: u64) -> String {
    format!(
        "kernel large

param n: i32
arg a: f64[n, 16] in
arg y: f64[n, 16] out
temp t: f64[{private}] private
temp l: f64[{local}] local
temp s: f64[16] private

for g in 0..n {{g.0}}
  for i in 0..16 {{l.0}}
    fill: t[{private} - 1] = a[g, i]
    first: t[i] = a[g, i] + 1.0
    share: l[{local} - 16 + i] = t[{private} - 1]*2.0
    keep: s[i] = t[i]
  for k in 0..16 {{l.0}}
    store: y[g, k] = s[k] + l[{local} - 1 - k]
"
    )
}

/// A thread of a test has 2 MiB of stack. The groups run on several threads, each with arrays of
/// its own.
#[test]
fn large_arrays_are_not_on_the_stack_of_c() {
    let device = open("c").unwrap();
    let mut random = Random(seed());
    // elements of the arrays, and how many of the two are too large: 256 KiB stay on the stack
    let cases =
        [(1_250_000, 120_000, 2), (16, 120_000, 1), (1_250_000, 16, 1), (30_000, 30_000, 1), (16, 16, 0)];
    for (private, local, kept) in cases {
        let kernel = parse(&text(private, local)).unwrap();
        let memory = random_memory(&kernel, &BTreeMap::from([("n".into(), 50)]), &mut random);
        let mut expected = memory.clone();
        interpret(&kernel, &mut expected).unwrap();
        compare(&expected, &run(&*device, &kernel, &memory)).unwrap();
        let source = generate(&kernel, Target::C, &Options::default()).unwrap().source;
        assert_eq!(source.matches("static _Thread_local double ").count(), kept, "{source}");
    }
}

#[test]
fn large_private_arrays_are_refused_where_nothing_can_hold_them() {
    let kernel = parse(&text(1_250_000, 16)).unwrap();
    for target in [Target::Cuda, Target::OpenCl] {
        let error = generate(&kernel, target, &Options::default()).unwrap_err();
        assert!(matches!(error, CodegenError::PrivateMemory { bytes: 10_000_000, .. }), "{error}");
    }
    // on a CPU the work-items of a group share a stack: 16 times 280 kB are more than it has
    let Some(device) = device("opencl").filter(|d| d.info().private_mem_bytes.is_some()) else { return };
    let kernel = parse(&text(35_000, 16)).unwrap();
    let program = generate(&kernel, Target::OpenCl, &Options::default()).unwrap();
    let error = device.compile(&program).unwrap_err();
    assert!(matches!(error, RuntimeError::PrivateMemory { limit: 4_194_304, .. }), "{error}");
    let kernel = parse(&text(30_000, 16)).unwrap();
    let memory = random_memory(&kernel, &BTreeMap::from([("n".into(), 20)]), &mut Random(seed()));
    let mut expected = memory.clone();
    interpret(&kernel, &mut expected).unwrap();
    compare(&expected, &run(&*device, &kernel, &memory)).unwrap();
}
