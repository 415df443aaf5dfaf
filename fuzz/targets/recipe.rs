//! No text makes the reader of recipes panic; no recipe makes a primitive panic; what is accepted
//! is well formed, reads back, and computes the same.

#![no_main]

use kingpost_primitives::steps;
use libfuzzer_sys::fuzz_target;
use kingpost_ir::Kernel;
use kingpost_interp::{InterpError, Memory, Value, interpret_with};
use kingpost_primitives::primitives::FixParameter;
use kingpost_primitives::{Recipe, Refusal, Step};
use std::sync::LazyLock;

static KERNEL: LazyLock<Kernel> =
    LazyLock::new(|| kingpost_ir::text::parse(include_str!("small.kingpost")).expect("the kernel of this target"));

/// Steps of one recipe that are tried.
const STEPS: usize = 6;

/// What the kernel runs on.
fn memory() -> Memory {
    let reals = |n: i32| (0..n).map(|k| f64::from((k * 7 + 3) % 9 - 4)).collect::<Vec<_>>();
    Memory::new()
        .param("n", 5)
        .value("map", vec![3, 0, 3, 1, 2])
        .value("a", reals(20))
        .value("x", reals(5))
        .value("y", reals(5))
}

/// Small integers: sums in any order are exact.
fn same(before: &Memory, after: &Memory) -> bool {
    before.values().iter().all(|(name, value)| match (value, after.get(name)) {
        (Value::F64(a), Some(Value::F64(b))) => a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan())),
        (a, b) => Some(a) == b,
    })
}

fn check(kernel: &Kernel, step: &Step) -> Option<Kernel> {
    let result = match step.apply(kernel) {
        Ok(result) => result,
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty());
            assert!(!matches!(error.cause, Refusal::Solver(_)), "{message}");
            return None;
        }
    };
    assert_eq!(kingpost_ir::text::parse(&result.to_string()).as_ref(), Ok(&result), "{step}");
    let (mut expected, mut found) = (memory(), memory());
    interpret_with(kernel, &mut expected, &mut (), Some(100_000)).ok()?;
    match interpret_with(&result, &mut found, &mut (), Some(1_000_000)) {
        Ok(_) => {}
        // what the user asserts may be wrong, and a copy may be long
        Err(InterpError::Assumption { .. } | InterpError::NotInjective { .. } | InterpError::NotSymmetric { .. } | InterpError::StepLimit { .. }) => {
            return None;
        }
        Err(error) => panic!("{step}: {error}\n{kernel}\n=>\n{result}"),
    }
    assert!(same(&expected, &found), "{step}: other results\n{kernel}\n=>\n{result}");
    Some(result)
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let recipe = match steps().recipe(text) {
        Ok(recipe) => recipe,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert_eq!(steps().recipe(&recipe.to_json().expect("plain data")).ok().as_ref(), Some(&recipe));
    let mut kernel = KERNEL.clone();
    for step in recipe.steps.iter().take(STEPS) {
        // another size is another program
        if step.get::<FixParameter>().is_some_and(|fix| fix.value.eval(|_| Some(5)) != Some(5)) {
            let _ = step.apply(&kernel);
            continue;
        }
        kernel = check(&kernel, step).unwrap_or(kernel);
    }
});
