//! Every kernel compiles for a card, where NVRTC is installed: in a long run in both precisions, on squares and cubes.

#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost_multigrid::kernels::Operation;
use kingpost_multigrid::schedules::{Structure, program};
use kingpost_multigrid::{Dimension, Element, Precision};
use kingpost_runtime::cuda::nvrtc;
use kingpost_runtime::{Backend, Cache};
use kingpost_sample::of_run;

#[test]
fn kernels_compile_for_a_card() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let compile = |operation, element, structure, precision| {
        let program = program(operation, element, structure, precision, Backend::Cuda).unwrap();
        let compiled =
            nvrtc::compile_for("sm_90", &program.entry, &program.source, &Cache::from_environment());
        let what = format!("{operation:?} {element:?} {structure:?} {precision:?}");
        match compiled.map(|object| object.resources) {
            Ok(resources) => println!("{what}: {resources:?}"),
            Err(error) => panic!("{what}: {error}"),
        }
    };
    for (k, operation) in Operation::ALL.into_iter().enumerate() {
        let cases = [Dimension::Two, Dimension::Three]
            .into_iter()
            .flat_map(|dimension| [Precision::Double, Precision::Single].map(|p| (dimension, p)));
        for (dimension, precision) in of_run(cases, &[k % 4]) {
            let element = Element::new(dimension, 2).unwrap();
            let structure = Structure::of((Backend::Cuda, "sm_90"), operation, element, precision);
            compile(operation, element, structure, precision);
        }
    }
    let planes = Structure::Planes { resident_groups: Some(4) };
    let cube = Element::new(Dimension::Three, 5).unwrap();
    compile(Operation::SmoothBlended, cube, planes, Precision::Double);
}
