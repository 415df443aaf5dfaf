//! Every tuned kernel computes what the dense operator does: in C, in OpenCL and, where there is a
//! device, in CUDA.
#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use purlin::codegen::{Options, generate};
use purlin::interp::interpret;
use purlin::runtime::{Device, open};
use purlin::transforms::Schedule;
use purlin::{Loaded, Random, laid_out};
use study_swirydowicz_2019::problem::{Problem, Sizes};
use study_swirydowicz_2019::recipes::{RecipeError, Threads, Tuned};
use study_swirydowicz_2019::reference::{reference, relative_error};

/// Sums of at most 12 * 17 terms with matrix entries up to N^2: 1e-16 a rounding.
const TOLERANCE: f64 = 1e-12;

const ELEMENTS: usize = 3;

fn all() -> bool {
    std::env::var_os("PURLIN_TEST_ALL").is_some_and(|v| v != "0" && !v.is_empty())
}

fn devices() -> Vec<Box<dyn Device>> {
    let open = |name| open(name).map_err(|e| println!("skipped: {e}")).ok();
    ["c", "opencl", "cuda"].into_iter().filter_map(open).collect()
}

/// The result of a kernel at a degree, or none where a primitive is missing or a group too small.
fn schedule(kernel: Tuned, degree: usize) -> Option<Schedule> {
    match kernel.schedule(degree) {
        Ok(schedule) => Some(schedule),
        Err(RecipeError::Unreachable { .. } | RecipeError::TooManyWorkItems { .. }) => None,
        Err(e) => panic!("{e}"),
    }
}

fn check(kernel: Tuned, degree: usize, seed: u64) {
    let sizes = Sizes { problem: kernel.problem, degree };
    let memory = sizes.inputs(ELEMENTS, seed);
    let expected = reference(sizes, &memory).unwrap();
    let Some(schedule) = schedule(kernel, degree) else { return };
    for device in devices() {
        let name = device.info().name.clone();
        let program =
            generate(schedule.kernel(), device.info().backend.target(), &Options::default()).unwrap();
        let memory = laid_out(schedule.kernel(), &memory);
        let loaded = Loaded::new(&*device, &program, &memory)
            .unwrap_or_else(|e| panic!("{kernel} at degree {degree} on {name}: {e}"));
        loaded.launch().unwrap();
        let error = relative_error(&expected, &loaded.f64s("y").unwrap());
        assert!(error < TOLERANCE, "{kernel} at degree {degree} on {name}: off by {error}; seed {seed}");
    }
}

/// The last kernel of each sequence has all ideas of those before it.
fn is_last(kernel: Tuned) -> bool {
    let behind =
        |k: &Tuned| (k.problem, k.threads) == (kernel.problem, kernel.threads) && k.number > kernel.number;
    !Tuned::all().iter().any(behind)
}

fn family(problem: Problem, threads: Threads) {
    let seed = Random::fresh_seed();
    let kernels = Tuned::all().into_iter().filter(|k| (k.problem, k.threads) == (problem, threads));
    for kernel in kernels {
        // at 7 rows are padded
        let degrees: &[usize] = if all() { &[1, 2, 3, 7] } else { &[2] };
        if all() || is_last(kernel) {
            degrees.iter().for_each(|degree| check(kernel, *degree, seed));
        }
    }
}

/// The interpreter takes no compiler: every kernel in every run.
#[test]
fn the_interpreter_agrees_with_the_dense_operator() {
    let seed = Random::fresh_seed();
    for kernel in Tuned::all() {
        let Some(schedule) = schedule(kernel, 2) else { continue };
        let sizes = Sizes { problem: kernel.problem, degree: 2 };
        let mut memory = sizes.inputs(ELEMENTS, seed);
        let expected = reference(sizes, &memory).unwrap();
        interpret(schedule.kernel(), &mut memory).unwrap();
        let error = relative_error(&expected, memory.f64s("y").unwrap());
        assert!(error < TOLERANCE, "{kernel}: off by {error}; seed {seed}");
    }
}

#[test]
fn bp10_by_planes() {
    family(Problem::Bp10, Threads::Planes);
}

#[test]
fn bp35_by_planes() {
    family(Problem::Bp35, Threads::Planes);
}

#[test]
fn bp35_by_cubes() {
    family(Problem::Bp35, Threads::Cubes);
}

#[test]
fn bp30_by_planes() {
    family(Problem::Bp30, Threads::Planes);
}

#[test]
fn bp35_from_vertices() {
    family(Problem::Bp35Vertices, Threads::Planes);
}

#[test]
fn bp30_by_cubes() {
    family(Problem::Bp30, Threads::Cubes);
}
