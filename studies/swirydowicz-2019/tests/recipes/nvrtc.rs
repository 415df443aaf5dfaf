//! CUDA source of the tuned kernels compiles with NVRTC for sm_90; no GPU is needed.
//!
//! The last kernel of each sequence at degree 7 in every run; with `KINGPOST_TEST_ALL` every kernel
//! at degrees 1, 7 and 15. `KINGPOST_KERNELS=bp10.2d.8` and `KINGPOST_DEGREE=15` choose one, and print
//! what it takes.
#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use kingpost::codegen::{Options, Target, generate};
use kingpost::runtime::Cache;
use kingpost::runtime::cuda::nvrtc;
use std::time::Instant;
use study_swirydowicz_2019::recipes::{RecipeError, Tuned};

fn compile(kernel: Tuned, degree: usize) {
    let begin = Instant::now();
    let launches = match kernel.launches(degree) {
        Ok(launches) => launches,
        Err(RecipeError::TooManyWorkItems { .. } | RecipeError::OtherLines { .. }) => return,
        Err(e) => panic!("{e}"),
    };
    let applied = begin.elapsed();
    let name = format!("{kernel} at degree {degree}");
    for launch in launches {
        let begin = Instant::now();
        let program = generate(launch.schedule.kernel(), Target::Cuda, &Options::default()).unwrap();
        let generated = begin.elapsed();
        let object = nvrtc::compile_for("sm_90", &name, &program.source, &Cache::from_environment()).unwrap();
        let [resources] = object.resources.as_slice() else { panic!("{name}: {}", object.log) };
        println!(
            "{name}: {resources}; steps {applied:.1?}, code {generated:.1?}, NVRTC {:.1?}",
            begin.elapsed() - generated
        );
        assert!(!object.cubin.is_empty() && resources.entry == program.entry, "{name}");
    }
}

#[test]
fn cuda_sources_compile() {
    if let Err(reason) = nvrtc::version() {
        println!("skipped: {reason}");
        return;
    }
    let all = kingpost_sample::is_long_run();
    if let Ok(names) = std::env::var("KINGPOST_KERNELS") {
        let degree = std::env::var("KINGPOST_DEGREE").ok().and_then(|d| d.parse().ok()).unwrap_or(7);
        names.split(',').for_each(|name| compile(name.parse().unwrap(), degree));
        return;
    }
    let last = [
        "bp30.3d.1",
        "bp10.2d.8",
        "bp35.2d.10",
        "bp35.3d.6",
        "bp30.2d.9",
        "bp30.3d.9",
        "bp35v.2d.2",
        "bp35v.2d.4",
    ];
    for kernel in Tuned::all() {
        if all {
            [1, 7, 15].iter().for_each(|degree| compile(kernel, *degree));
        } else if last.contains(&kernel.to_string().as_str()) {
            compile(kernel, 7);
        }
    }
}
