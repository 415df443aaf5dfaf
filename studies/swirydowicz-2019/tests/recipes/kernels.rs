//! Every tuned kernel computes what the dense operator does: in C, in OpenCL and, where there is a
//! device, in CUDA.
#![allow(clippy::unwrap_used, clippy::panic)] // how a test fails

use kingpost::codegen::{Options, Target, generate};
use kingpost::interp::interpret;
use kingpost::runtime::{Device, open};
use kingpost::{Loaded, Random};
use kingpost_sample::is_long_run;
use study_swirydowicz_2019::measure::memory_of;
use study_swirydowicz_2019::problem::{Precision, Problem, Sizes};
use study_swirydowicz_2019::recipes::{Launch, RecipeError, Threads, Tuned};
use study_swirydowicz_2019::reference::{reference, relative_error};

const PRECISIONS: [Precision; 2] = [Precision::Double, Precision::Single];

const ELEMENTS: usize = 3;

fn devices() -> Vec<Box<dyn Device>> {
    let open = |name| open(name).map_err(|e| println!("skipped: {e}")).ok();
    ["c", "opencl", "cuda"].into_iter().filter_map(open).collect()
}

/// The launches of a kernel at a degree, or none where a group is too small.
fn launches(kernel: Tuned, degree: usize, precision: Precision) -> Option<Vec<Launch>> {
    match kernel.launches_in(degree, precision) {
        Ok(launches) => Some(launches),
        Err(RecipeError::TooManyWorkItems { .. } | RecipeError::OtherLines { .. }) => None,
        Err(e) => panic!("{e}"),
    }
}

fn check(kernel: Tuned, degree: usize, precision: Precision, seed: u64) {
    let sizes = Sizes { problem: kernel.problem, degree, precision };
    let memory = sizes.inputs(ELEMENTS, seed);
    let expected = reference(sizes, &memory).unwrap();
    let Some(launches) = launches(kernel, degree, precision) else { return };
    for device in devices() {
        let name = device.info().name.clone();
        let compiled = |launch: &Launch| {
            let target = device.info().backend.target();
            device.compile(&generate(launch.schedule.kernel(), target, &Options::default()).unwrap()).unwrap()
        };
        let executables = launches.iter().map(compiled).collect();
        let loaded = Loaded::in_turn(&*device, executables, &memory_of(&launches, &memory))
            .unwrap_or_else(|e| panic!("{kernel} at degree {degree} on {name}: {e}"));
        loaded.launch().unwrap();
        let error = relative_error(&expected, &loaded.f64s("y").unwrap());
        let place = format!("{kernel} at degree {degree} in {precision} on {name}");
        assert!(error < precision.tolerance(), "{place}: off by {error}; seed {seed}");
    }
}

/// The last kernel of each sequence has all ideas of those before it; those by instructions are
/// sequences of their own.
fn is_last(kernel: Tuned) -> bool {
    let sequence = |k: Tuned| (k.problem, k.threads, k.by_instructions());
    !Tuned::all().into_iter().any(|k| sequence(k) == sequence(kernel) && k.number > kernel.number)
}

fn family(problem: Problem, threads: Threads) {
    let seed = Random::fresh_seed();
    let kernels = Tuned::all().into_iter().filter(|k| (k.problem, k.threads) == (problem, threads));
    for kernel in kernels {
        // at 7 rows are padded
        let degrees: &[usize] = match (is_long_run(), kernel.by_instructions()) {
            // lines of 8 and 16 nodes, or parts of lines of 9, 14 and 15
            (true, true) => &[7, 8, 13, 14, 15],
            (false, true) => &[7, 8],
            (true, false) => &[1, 2, 3, 7],
            // with a middle, and without
            (false, false) if kernel.by_halves() => &[2, 3],
            (false, false) => &[2],
        };
        let is_cut =
            kernel.problem == Problem::Bp30 && kernel.threads == Threads::Cubes && kernel.number == 1;
        if is_long_run() || is_last(kernel) || is_cut {
            for precision in PRECISIONS {
                degrees.iter().for_each(|degree| check(kernel, *degree, precision, seed));
            }
        }
    }
}

/// The interpreter takes no compiler: every kernel in every run.
#[test]
fn the_interpreter_agrees_with_the_dense_operator() {
    let seed = Random::fresh_seed();
    for kernel in Tuned::all() {
        // the last kernels have the steps of those before them, and steps do not ask for the precision
        let precisions = if is_long_run() || is_last(kernel) { &PRECISIONS[..] } else { &PRECISIONS[..1] };
        for precision in precisions.iter().copied() {
            let degree = kernel.first_degree().max(2);
            let Some(launches) = launches(kernel, degree, precision) else { continue };
            let sizes = Sizes { problem: kernel.problem, degree, precision };
            let mut memory = sizes.inputs(ELEMENTS, seed);
            let expected = reference(sizes, &memory).unwrap();
            for launch in &launches {
                interpret(launch.schedule.kernel(), &mut memory).unwrap();
            }
            let found = memory.get("y").unwrap();
            assert_eq!(found.ty(), precision.scalar(), "{kernel}");
            let error = relative_error(&expected, &found.to_f64());
            assert!(error < precision.tolerance(), "{kernel} in {precision}: off by {error}; seed {seed}");
        }
    }
}

/// A literal or a temporary in double precision would take a card's slow units.
#[test]
fn nothing_is_computed_in_double_precision_where_single_is_asked_for() {
    for kernel in Tuned::all().into_iter().filter(|k| is_long_run() || is_last(*k)) {
        for precision in PRECISIONS {
            let Some(launches) = launches(kernel, 2, precision) else { continue };
            let source = |launch: &Launch| {
                generate(launch.schedule.kernel(), Target::Cuda, &Options::default()).unwrap().source
            };
            let source: String = launches.iter().map(source).collect();
            let is_double = precision == Precision::Double;
            assert_eq!(source.contains("double"), is_double, "{kernel} in {precision}:\n{source}");
            assert_eq!(source.contains("float"), !is_double, "{kernel} in {precision}:\n{source}");
        }
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
fn bp35_on_processors() {
    family(Problem::Bp35, Threads::Host);
}

#[test]
fn bp30_by_planes() {
    family(Problem::Bp30, Threads::Planes);
}

/// An odd number of elements in pairs of groups: the condition of the last pair is around all
/// barriers.
#[test]
fn paired_groups_have_one_element_each() {
    check("bp30.2d.12x1".parse().unwrap(), 2, Precision::Double, Random::fresh_seed());
}

/// Some layers of factors are copied ahead, and the others read where they are needed.
#[test]
fn layers_of_factors_are_copied_ahead() {
    check("bp30.2d.16".parse().unwrap(), 7, Precision::Double, Random::fresh_seed());
}

/// Results of a line take the places of its terms, of all three axes.
#[test]
fn lines_are_contracted_in_place() {
    for kernel in ["bp10.2d.19", "bp30.2d.17", "bp35v.2d.9", "bp35v.2d.10"] {
        check(kernel.parse().unwrap(), 7, Precision::Double, Random::fresh_seed());
    }
}

#[test]
fn bp35_from_vertices() {
    family(Problem::Bp35Vertices, Threads::Planes);
}

#[test]
fn bp30_by_cubes() {
    family(Problem::Bp30, Threads::Cubes);
}
