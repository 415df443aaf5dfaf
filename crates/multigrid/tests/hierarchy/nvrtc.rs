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
    for (dimension, degree) in [(Dimension::Two, 2), (Dimension::Three, 2)] {
        let element = Element::new(dimension, degree).unwrap();
        for (operation, precision) in
            Operation::ALL.into_iter().flat_map(|o| [Precision::Double, Precision::Single].map(|p| (o, p)))
        {
            let structure = Structure::of((Backend::Cuda, "sm_90"), operation, element, precision);
            let program = program(operation, element, structure, precision, Backend::Cuda).unwrap();
            let compiled =
                nvrtc::compile_for("sm_90", &program.entry, &program.source, &Cache::from_environment());
            let what = format!("{operation:?} {element:?} {precision:?}");
            let resources = compiled.map(|object| object.resources);
            match resources {
                Ok(resources) => println!("{what}: {resources:?}"),
                Err(error) => panic!("{what}: {error}"),
            }
        }
    }
}
