//! Random programs, and what the set draws for them: every step that is accepted keeps what it promises.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use kingpost_interp::interpret;
use kingpost_ir::TableData;
use kingpost_primitives::StepSetError;
use kingpost_primitives::draw::{Inputs, Picks};
use kingpost_sample::{SampleConfig, arbitrary_kernel, config};
use own_primitive::{RotateIname, steps};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;

/// No values: the primitive needs none.
struct Nothing;

impl Inputs for Nothing {
    fn param(&self, _: &str) -> Option<i64> {
        None
    }

    fn array(&self, _: &str) -> Option<TableData> {
        None
    }
}

/// Equal up to the order of sums (1e-4: at most 5^3 terms, of `f32` with a unit of 6e-8 or made of such).
fn near(a: f64, b: f64) -> bool {
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-4 * (1.0 + a.abs())
}

#[test]
fn accepted_steps_keep_what_they_promise() {
    let set = steps().unwrap();
    let accepted = Cell::new(0);
    let samples = (arbitrary_kernel(SampleConfig::simple()), any::<[u8; 4]>());
    let mut runner = TestRunner::new(config(256));
    let row = set.row("acme.rotate_iname").unwrap();
    let run = runner.run(&samples, |(sample, bytes)| {
        let Some(step) = row.draw(&sample.kernel, &mut Picks::new(&bytes, &Nothing)) else { return Ok(()) };
        if let Ok(after) = step.apply(&sample.kernel) {
            let (mut expected, mut found) = (sample.memory.clone(), sample.memory.clone());
            interpret(&sample.kernel, &mut expected).unwrap();
            interpret(&after, &mut found).unwrap_or_else(|e| panic!("{step}: {e}\n{after}"));
            for (name, value) in expected.values() {
                let found = found.get(name).unwrap();
                let same = value.to_f64().into_iter().zip(found.to_f64()).all(|(a, b)| near(a, b));
                assert!(same, "{step}: `{name}` is {found:?}, before {value:?}\n{}{after}", sample.kernel);
            }
            accepted.set(accepted.get() + 1);
        }
        Ok(())
    });
    run.unwrap();
    assert!(accepted.get() > 3, "{} accepted", accepted.get());
}

#[test]
fn a_set_has_each_name_once() {
    assert_eq!(steps().unwrap().with::<RotateIname>(), Err(StepSetError::Taken("acme.rotate_iname")));
    let both = kingpost_primitives::steps().clone().and(&steps().unwrap());
    assert!(matches!(both, Err(StepSetError::Taken(_))));
    assert!(steps().unwrap().rows().len() == 1 + kingpost_primitives::steps().rows().len());
}

#[test]
fn a_set_without_it_names_what_it_lacks() {
    let json = r#"{"kingpost_recipe": 1, "steps": [{"acme.rotate_iname": {"iname": "i", "first": 3}}]}"#;
    let message = kingpost_primitives::steps().recipe(json).unwrap_err().to_string();
    assert!(message.contains("there is no step `acme.rotate_iname`"), "{message}");
}
