//! Every kernel compiles for a card in both precisions, where NVRTC is installed.

#![allow(clippy::unwrap_used, clippy::panic)]

use kingpost_multigrid::kernels::Operation;
use kingpost_multigrid::schedules::{Structure, program};
use kingpost_multigrid::{Dimension, Element, Precision};
use kingpost_runtime::cuda::nvrtc;
use kingpost_runtime::{Backend, Cache};

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
    for (dimension, degree) in [(Dimension::Two, 2), (Dimension::Three, 2)] {
        let element = Element::new(dimension, degree).unwrap();
        for (operation, precision) in
            Operation::ALL.into_iter().flat_map(|o| [Precision::Double, Precision::Single].map(|p| (o, p)))
        {
            let structure = Structure::of((Backend::Cuda, "sm_90"), operation, element, precision);
            compile(operation, element, structure, precision);
        }
    }
    let planes = Structure::Planes { resident_groups: Some(4) };
    let cube = Element::new(Dimension::Three, 5).unwrap();
    compile(Operation::SmoothBlended, cube, planes, Precision::Double);
}
