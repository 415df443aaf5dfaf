//! Programs made of whole ones: what they compute is what the parts compute.

use crate::story::kernel;
use kingpost_interp::{Memory, Value, interpret, with_elements};
use kingpost_ir::{Kernel, VarKind};
use kingpost_primitives::primitives::{FuseLaunches, FuseLoops};
use kingpost_primitives::programs::{
    Batches, BoundedErrors, bound_errors, fuse_kernels, remove_unused_arguments, rename_arguments, to_batched,
};
use kingpost_primitives::{Refusal, Schedule};
use kingpost_sample::{Sample, SampleConfig, arbitrary_kernel, config};
use proptest::prelude::*;
use std::collections::BTreeSet;

const TWICE: &str = "kernel twice
param n: i32
arg a: f64[n] in
arg b: f64[n] out
temp t: f64 private

for i in 0..n
  s: t = 2.0*a[i]
  r: b[i] = t + 1.0
";

const ADD: &str = "kernel add
param n: i32
arg b: f64[n] in
arg c: f64[n] inout
temp t: f64 private

for i in 0..n
  s: t = b[i]*b[i]
  r: c[i] += t
";

/// Names of parameters and arguments.
fn given(kernel: &Kernel) -> Vec<String> {
    let of_caller = kernel.vars.values().filter(|v| matches!(v.kind, VarKind::Param | VarKind::Argument(_)));
    of_caller.map(|v| v.name.clone()).collect()
}

/// The arrays after a run of a kernel, whose text is read back, or why there is none.
fn run(kernel: &Kernel, memory: &Memory) -> Result<Memory, String> {
    assert_eq!(kingpost_ir::text::parse(&kernel.to_string()).as_ref(), Ok(kernel), "{kernel}");
    let mut memory = memory.clone();
    interpret(kernel, &mut memory).map_err(|e| e.to_string())?;
    Ok(memory)
}

/// As text, because nan is not equal to itself.
fn shown(memory: &Memory, name: &str) -> String {
    format!("{:?}", memory.get(name))
}

/// The same program and memory with `second_` before all names of the caller's.
fn apart(sample: &Sample) -> (Kernel, Memory) {
    let names = given(&sample.kernel);
    let to: Vec<String> = names.iter().map(|name| format!("second_{name}")).collect();
    let pairs: Vec<_> = names.iter().zip(&to).map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut memory = Memory::new();
    for (from, to) in &pairs {
        if let Some(value) = sample.memory.get_param(from) {
            memory.set_param(*to, value);
        }
        if let Some(value) = sample.memory.get(from) {
            memory.set(*to, value.clone());
        }
    }
    (rename_arguments(&sample.kernel, &pairs).unwrap(), memory)
}

#[test]
fn two_kernels_become_one_loop() {
    let fused = fuse_kernels(&kernel(TWICE), &kernel(ADD), "both").unwrap();
    assert!(fused.first.is_empty());
    let renamed: Vec<_> = fused.second.iter().map(|(a, b)| format!("{a} {b}")).collect();
    assert_eq!(renamed, ["i i_1", "r r_1", "s s_1", "t t_1"]);
    let mut schedule = Schedule::of(&fused.kernel);
    schedule.apply(FuseLaunches::new(["twice", "add"])).unwrap();
    schedule.apply(FuseLoops::new("i", "i_1")).unwrap();
    let memory = Memory::new().param("n", 3).value("a", vec![1.0, 2.0, 3.0]).value("c", vec![0.5, 0.0, 0.0]);
    for kernel in [&fused.kernel, schedule.kernel()] {
        let after = run(kernel, &memory).unwrap();
        assert_eq!(after.f64s("b"), Some(&[3.0, 5.0, 7.0][..]));
        assert_eq!(after.f64s("c"), Some(&[9.5, 25.0, 49.0][..]));
    }
}

#[test]
fn what_is_the_kernels_own_makes_room_for_arguments() {
    let first = kernel(
        "kernel k\narg a: f64[4] out\ntemp c: f64 private\n\nfor n in 0..4\n  b: c = 1.0\n  d: a[n] = c\n",
    );
    let fused = fuse_kernels(&first, &kernel(ADD), "k").unwrap();
    let renamed: Vec<_> = fused.first.iter().map(|(a, b)| format!("{a} {b}")).collect();
    assert_eq!(renamed, ["b b_1", "c c_1", "n n_1"]);
    assert_eq!(given(&fused.kernel), ["a", "n", "b", "c"]);
}

#[test]
fn arguments_of_one_name_are_declared_alike() {
    let message =
        |second: &str| fuse_kernels(&kernel(TWICE), &kernel(second), "both").unwrap_err().to_string();
    assert_eq!(
        message(&ADD.replace("b: f64[n] in", "b: f32[n] in").replace("b[i]*b[i]", "f64(b[i])")),
        "fuse the kernels `twice` and `add`: `b` is declared in two ways, needed one type, shape, layout and \
         kind; rename it in one of the kernels"
    );
    let map = "kernel k\nparam n: i32\narg b: i32[n] in\narg y: f64[n] out\nassume injective(b)\n\nfor i in 0..n\n  s: y[b[i]] = 1.0\n";
    let writes = TWICE.replace("b: f64", "b: i32").replace("t + 1.0", "i32(t)");
    let refused = fuse_kernels(&kernel(&writes), &kernel(map), "both").unwrap_err().to_string();
    assert!(refused.contains("`k` assumes something of `b`, which `twice` writes"), "{refused}");
    let wide = fuse_kernels(
        &kernel(TWICE),
        &kernel(&ADD.replace("kernel add", "kernel add {sub_group(64)}")),
        "both",
    );
    assert!(wide.unwrap_err().to_string().contains("sub-groups of 32 and of 64"));
}

#[test]
fn a_batch_is_each_of_its_data() {
    let dot = "kernel dot\nparam n: i32\narg a: f64[n] in\narg b: f64[n] in\narg s: f64 out\nrule r(k) := a[k]*b[k]\n\ns0: s = sum(i in 0..n: r(i))\n";
    let batched = to_batched(&kernel(dot), &Batches::Number(3), &["a", "s"], "batch").unwrap();
    let a = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let memory = Memory::new().param("n", 2).value("a", a).value("b", vec![10.0, 1.0]);
    assert_eq!(run(&batched, &memory).unwrap().f64s("s"), Some(&[12.0, 34.0, 56.0][..]));
    let by_length = to_batched(&kernel(dot), &Batches::Param("n".into()), &["a", "s"], "batch").unwrap();
    assert!(by_length.to_string().contains("arg a: f64[n, n] in"));
    let message = |batches, names: &[&str], iname| {
        to_batched(&kernel(dot), &batches, names, iname).unwrap_err().to_string()
    };
    let number = || Batches::Number(2);
    assert!(
        message(number(), &["a"], "batch").contains("`s0` writes `s` for all data, needed `s` among them")
    );
    assert!(message(number(), &["s", "n"], "batch").contains("`n` is no argument"));
    assert!(message(number(), &["s", "z"], "batch").contains("there is no variable `z`"));
    assert!(message(number(), &["s"], "i").contains("the name `i` is taken"));
    assert!(message(Batches::Param("a".into()), &["s"], "batch").contains("the name `a` is taken"));
    assert!(message(Batches::Number(-1), &["s"], "batch").contains("-1 batches"));
    let map = "kernel k\nparam n: i32\narg b: i32[n] in\narg y: f64[n] out\nassume injective(b)\n\nfor i in 0..n\n  s: y[b[i]] = 1.0\n";
    let assumed = to_batched(&kernel(map), &number(), &["b", "y"], "batch").unwrap_err().to_string();
    assert!(assumed.contains("an assumption mentions `b`"), "{assumed}");
    assert!(to_batched(&kernel(map), &number(), &["y"], "batch").is_ok());
}

#[test]
fn arguments_are_renamed_and_removed() {
    let message = |pairs: &[(&str, &str)]| rename_arguments(&kernel(TWICE), pairs).unwrap_err().to_string();
    assert!(message(&[("t", "u")]).contains("`t` is a temporary or a table"));
    assert!(message(&[("a", "i")]).contains("the name `i` is taken"));
    assert!(message(&[("a", "x"), ("a", "y")]).contains("`a` gets two names"));
    assert!(message(&[("a", "x"), ("b", "x")]).contains("the name `x` is taken"));
    let unused = "kernel k\nparam n: i32\nparam m: i32\nparam p: i32\narg a: f64[m] in\narg b: f64[n] out\nassume p >= 1\n\nfor i in 0..n\n  s: b[i] = 1.0\n";
    let (kept, removed) = remove_unused_arguments(&kernel(unused)).unwrap();
    assert_eq!(removed, ["m", "a"]);
    assert_eq!(given(&kept), ["n", "p", "b"]);
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn fused_kernels_compute_what_both_do(
        first in arbitrary_kernel(SampleConfig::default()),
        second in arbitrary_kernel(SampleConfig::default()),
    ) {
        let (other, of_other) = apart(&second);
        let fused = fuse_kernels(&first.kernel, &other, "both").unwrap();
        let mut memory = first.memory.clone();
        of_other.params().iter().for_each(|(name, value)| memory.set_param(name, *value));
        of_other.values().iter().for_each(|(name, value)| memory.set(name, value.clone()));
        let (one, two) = (run(&first.kernel, &first.memory), run(&other, &of_other));
        let (Ok(one), Ok(two)) = (one, two) else { return Ok(()) };
        let both = run(&fused.kernel, &memory).unwrap();
        for (of, kernel) in [(&one, &first.kernel), (&two, &other)] {
            for name in given(kernel) {
                prop_assert_eq!(shown(&both, &name), shown(of, &name), "{}\n{}", name, fused.kernel);
            }
        }
    }

    #[test]
    fn a_kernel_after_itself_runs_twice(sample in arbitrary_kernel(SampleConfig::default())) {
        let fused = match fuse_kernels(&sample.kernel, &sample.kernel, "twice") {
            Ok(fused) => fused,
            Err(error) => {
                // it assumes something of what it writes
                prop_assert!(matches!(error.cause, Refusal::Argument(_)), "{}", error);
                return Ok(());
            }
        };
        let once = run(&sample.kernel, &sample.memory);
        let Ok(again) = once.and_then(|after| run(&sample.kernel, &after)) else { return Ok(()) };
        let twice = run(&fused.kernel, &sample.memory).unwrap();
        for name in given(&sample.kernel) {
            prop_assert_eq!(shown(&twice, &name), shown(&again, &name), "{}\n{}", name, fused.kernel);
        }
    }

    #[test]
    fn batches_compute_what_each_does(sample in arbitrary_kernel(SampleConfig::default())) {
        let arguments: Vec<String> = given(&sample.kernel)
            .into_iter()
            .filter(|name| sample.memory.get_param(name).is_none())
            .collect();
        let all: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let iname = sample.kernel.fresh_name("batch");
        let batched = match to_batched(&sample.kernel, &Batches::Number(3), &all, &iname) {
            Ok(batched) => batched,
            Err(error) => {
                prop_assert!(matches!(error.cause, Refusal::Argument(_)), "{}", error);
                return Ok(());
            }
        };
        let Ok(once) = run(&sample.kernel, &sample.memory) else { return Ok(()) };
        let thrice = |value: &Value| with_elements!(value, elements => Value::from(elements.repeat(3)));
        let mut memory = Memory::new();
        sample.memory.params().iter().for_each(|(name, value)| memory.set_param(name, *value));
        sample.memory.values().iter().for_each(|(name, value)| memory.set(name, thrice(value)));
        let after = run(&batched, &memory).unwrap();
        for name in &arguments {
            let wanted = once.get(name).map(thrice);
            prop_assert_eq!(shown(&after, name), format!("{wanted:?}"), "{}\n{}", name, batched);
        }
    }

    #[test]
    fn unused_arguments_are_not_missed(sample in arbitrary_kernel(SampleConfig::default())) {
        let (kept, removed) = remove_unused_arguments(&sample.kernel).unwrap();
        let all: BTreeSet<String> = given(&sample.kernel).into_iter().collect();
        let left: BTreeSet<String> = given(&kept).into_iter().chain(removed).collect();
        prop_assert_eq!(all, left);
        let memory = sample.memory.of_kernel(&kept);
        if let Ok(before) = run(&sample.kernel, &sample.memory) {
            let after = run(&kept, &memory).unwrap();
            for name in given(&kept) {
                prop_assert_eq!(shown(&after, &name), shown(&before, &name));
            }
        }
    }
}

const SUMS: &str = "kernel sums

param n: i32
arg a: f64[n] in
arg b: f32[n] in
arg y: f64[n] inout
temp t: f32 private

for i in 0..n {g.0}
  s: t = f32(a[i]*a[i])
  r: y[i] += t*b[i] {atomic}
";

/// The bound of a result is that of its operands and roundings, and is reached up to small factors.
#[test]
fn errors_are_bounded_instruction_by_instruction() {
    let BoundedErrors { kernel: bounded, errors } = bound_errors(&kernel(SUMS)).unwrap();
    assert_eq!(errors, [("y".to_owned(), "y_error".to_owned())].into());
    let text = bounded.to_string();
    for part in
        ["arg y_error: f64[n] inout", "temp t_error: f64 private", "for i in 0..n\n", "r: y[i] += t*b[i]\n"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let (x, unit) = (1.0 + 2.0_f64.powi(-20), 2.0_f64.powi(-24));
    let mut memory = Memory::new().param("n", 1).value("a", vec![x]).value("b", vec![3.0_f32]);
    memory.set("y", vec![0.0]);
    memory.set("y_error", vec![0.0]);
    interpret(&bounded, &mut memory).unwrap();
    let (y, bound) = (memory.f64s("y").unwrap()[0], memory.f64s("y_error").unwrap()[0]);
    // two roundings to `f32`, of the square and of the product with 3
    let size = 3.0 * x * x;
    assert!(
        (y - size).abs() < 1e-15 && bound > 2.0 * unit * size && bound < 2.001 * unit * size,
        "{y} {bound:e}"
    );
    let mut found = Memory::new().param("n", 1).value("a", vec![x]).value("b", vec![3.0_f32]);
    found.set("y", vec![0.0]);
    interpret(&kernel(SUMS), &mut found).unwrap();
    let error = (found.f64s("y").unwrap()[0] - y).abs();
    assert!(error > 0.0 && error <= bound, "{error:e} {bound:e}");
}

#[test]
fn errors_without_bounds_are_refused() {
    let refused = |insn: &str| {
        let text = format!(
            "kernel k\n\nparam n: i32\narg a: f64[n] in\narg y: f64[n] out\n\nfor i in 0..n\n  s: {insn}\n"
        );
        bound_errors(&kernel(&text)).unwrap_err().to_string()
    };
    let messages = [
        "y[i] = exp(a[i])",
        "y[i] = sum(j in 0..n: a[j])",
        "y[i] = 1.0 if a[i] < 0.5",
        "y[i] = select(a[i] < 0.5, a[i], 1.0)",
    ]
    .map(refused);
    insta::assert_snapshot!(messages.join("\n"));
}
