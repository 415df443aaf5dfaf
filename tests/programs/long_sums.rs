//! Sums of as many terms as an expression may have, on the stack of a test's thread: 2 MiB.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::{compiled, devices, is_long_run};
use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::{Memory, interpret};
use kingpost::ir::depth::MAX_PATH;
use kingpost::ir::{AxisTag, Kernel, text};
use kingpost::transforms::Primitive;
use kingpost::transforms::primitives::{SplitIname, SplitSum, Tag};
use kingpost::{Loaded, Random, RelativeError};

/// Terms of the longest sum: the operations above the first term, its load and its index are a path.
const TERMS: usize = MAX_PATH - 1;

fn program(terms: usize) -> String {
    let sum: String =
        (1..terms).map(|k| format!(" {} a[i, {k}]", if k % 3 == 0 { '-' } else { '+' })).collect();
    format!(
        "kernel sums\n\nparam n: i32\narg a: f64[n, {terms}] in\narg y: f64[n] out\n\nfor i in 0..n\n  \
         s: y[i] = a[i, 0]{sum}\n"
    )
}

fn values(kernel: &Kernel, memory: &Memory) -> Vec<f64> {
    let mut memory = memory.clone();
    interpret(kernel, &mut memory).unwrap();
    memory.f64s("y").unwrap().to_vec()
}

/// The kernel with two work-items a group.
fn on_axes(kernel: &Kernel) -> Kernel {
    let split = SplitIname::new("i", 2).apply(kernel).unwrap();
    let placed = Tag::new("i_o", AxisTag::Group(0)).apply(&split).unwrap();
    Tag::new("i_i", AxisTag::Local(0)).apply(&placed).unwrap()
}

#[test]
fn the_longest_sums_go_all_the_way() {
    let longest = text::parse(&program(TERMS)).unwrap();
    assert_eq!(text::parse(&longest.to_string()).unwrap(), longest);
    assert_eq!(longest.longest_path(), MAX_PATH);
    // the index is two operations deeper after a split
    let kernel = text::parse(&program(TERMS - 2)).unwrap();
    let placed = on_axes(&kernel);
    assert_eq!(placed.longest_path(), MAX_PATH);
    // GCC 12 takes a minute for 1000 terms in two statements
    let compiled_terms = if is_long_run() { TERMS - 2 } else { TERMS / 8 };
    let shorter = text::parse(&program(compiled_terms)).unwrap();
    let parts = on_axes(&shorter);
    let parts = SplitSum::new("s").from(compiled_terms as u32 / 2).apply(&parts).unwrap();
    let n = 5;
    let mut random = Random::new(Random::fresh_seed());
    for (before, all) in [(&longest, vec![&longest]), (&kernel, vec![&placed]), (&shorter, vec![&parts])] {
        let terms = before.vars[before.var("a").unwrap()].shape[1].as_constant().unwrap() as usize;
        let mut memory = Memory::new().param("n", n);
        memory.set("a", random.numbers(n as usize * terms));
        let expected = values(before, &memory);
        for kernel in all {
            // 1000 roundings of sums of numbers below 1, each at most 2^-53 of the largest sum
            let error = RelativeError::between(&values(kernel, &memory), &expected);
            assert!(error.is_within(1e-11), "{error:?}");
            for target in [Target::C, Target::OpenCl, Target::Cuda] {
                let source = generate(kernel, target, &Options::default()).unwrap().source;
                assert!(source.matches("a[").count() >= terms, "{target}");
            }
            for device in if *kernel == parts { devices() } else { Vec::new() } {
                let target = device.info().backend.target();
                let program = generate(kernel, target, &Options::default()).unwrap();
                let loaded = Loaded::compiled(&*device, compiled(&*device, &program), &memory).unwrap();
                loaded.launch().unwrap();
                let error = RelativeError::between(&loaded.f64s("y").unwrap(), &expected);
                assert!(error.is_within(1e-11), "{}: {error:?}", device.info().name);
            }
        }
    }
}

#[test]
fn longer_ones_are_refused() {
    let error = text::parse(&program(TERMS + 1)).map(drop).unwrap_err().to_string();
    assert!(error.contains("the expression is more than 1000 operations deep"), "{error}");
}
