//! Contractions by FP64 matrix instructions: equal to dense matrices where their meaning runs, and
//! refused where tiles do not suit.

#![allow(clippy::unwrap_used)]

use kingpost_analysis::stats::bank_traffic;
use kingpost_codegen::{Options, Target, generate};
use kingpost_interp::{Memory, interpret};
use kingpost_multigrid::kernels::{Operation, Variant, plain};
use kingpost_multigrid::schedules::{Structure, schedule};
use kingpost_multigrid::{
    Dimension, Element, Hierarchy, HierarchyOptions, Line, MultigridError, Order, Precision, Which,
};
use kingpost_runtime::{Backend, open};
use kingpost_sample::is_long_run;
use nalgebra::DVector;

use crate::reference::{Random, dense, dense_colour, element, every_device, inner_numbers, largest, patches};

const fn instructions(sub_groups: u32) -> Structure {
    Structure::Instructions { sub_groups, parities: false, resident_groups: None, ahead: None }
}

const fn parities(sub_groups: u32) -> Structure {
    Structure::Instructions { sub_groups, parities: true, resident_groups: None, ahead: None }
}

const fn planes(resident_groups: Option<u32>) -> Structure {
    Structure::Planes { resident_groups }
}

#[test]
fn colours_equal_dense_ones() {
    for device in every_device() {
        // lines of two tiles have more local memory than OpenCL has on a processor
        let cases: &[_] = match device.info().backend {
            Backend::C if is_long_run() => {
                // minutes
                &[
                    (2, 4, instructions(2)),
                    (5, 2, instructions(8)),
                    (5, 2, parities(4)),
                    (6, 2, parities(8)),
                    (7, 2, parities(2)),
                    (5, 2, planes(None)),
                ]
            }
            Backend::C => &[(2, 4, instructions(2))],
            Backend::OpenCl if is_long_run() => &[(3, 2, instructions(2))],
            Backend::OpenCl => &[(2, 2, instructions(2))],
            Backend::Cuda => &[
                (2, 4, instructions(4)),
                (3, 4, instructions(2)),
                (7, 4, instructions(8)),
                (6, 4, instructions(4)),
                (5, 4, parities(4)),
                (6, 4, parities(2)),
                (7, 4, parities(8)),
                (5, 4, planes(None)),
                (6, 4, planes(Some(4))),
                (7, 4, planes(Some(3))),
            ],
        };
        for (degree, cells, smoother) in cases.iter().copied() {
            let element = element(Dimension::Three, degree);
            let variant = match smoother {
                Structure::Planes { .. } => Variant::Blended,
                _ => Variant::Fused,
            };
            let (variant, smoother) = (Some(variant), Some(smoother));
            let options = HierarchyOptions { variant, smoother, ..HierarchyOptions::default() };
            let levels = Hierarchy::with(&*device, element, cells, options).unwrap();
            let finest = levels.levels() - 1;
            let mut random = Random(5 + degree as u64);
            let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, cells));
            levels.set(finest, Which::Solution, &x).unwrap();
            levels.set(finest, Which::RightHandSide, &b).unwrap();
            let (mut x, b) = (DVector::from_vec(x), DVector::from_vec(b));
            let a = dense(element, cells);
            for colour in 0..if cells == 2 { 1 } else { 8 } {
                levels.smooth_colours(finest, colour..colour + 1).unwrap();
                dense_colour(&a, &patches(element, cells, colour), &mut x, &b);
                let error = largest(&levels.solution(finest).unwrap(), x.as_slice());
                // 1e-11: condition numbers of patches reach 1e3
                assert!(error < 1e-11, "Q{degree}, colour {colour}: {error}");
            }
        }
    }
}

/// The inputs of one patch.
fn inputs(element: Element, random: &mut Random) -> Memory {
    let line = Line::new(element.degree).unwrap();
    let mut memory = Memory::new().param("n", 2).value("scale", 0.7);
    for name in ["c0", "c1", "c2"] {
        memory = memory.param(name, 0);
    }
    for name in ["x", "b"] {
        memory = memory.value(name, random.numbers(element.nodes(2)));
    }
    for (name, matrix) in [("A", &line.stiffness), ("M", &line.mass), ("S", &line.eigenvectors)] {
        memory = memory.value(name, matrix.entries.clone());
    }
    memory.value("lambda", line.eigenvalues)
}

/// By the interpreter, zeros of tiles included.
#[test]
fn the_schedule_keeps_what_the_kernel_computes() {
    let all = is_long_run().then_some((3, 4));
    for (degree, sub_groups) in [(2, 2)].into_iter().chain(all) {
        let element = element(Dimension::Three, degree);
        let kernel = plain(Operation::Smooth, element, Precision::Double).unwrap();
        let mapped =
            schedule(Operation::Smooth, element, instructions(sub_groups), Precision::Double).unwrap();
        let memory = inputs(element, &mut Random(3));
        let run = |kernel| {
            let mut memory = memory.clone().of_kernel(kernel);
            interpret(kernel, &mut memory).unwrap();
            memory.get("x").unwrap().to_f64()
        };
        let (before, after) = (run(&kernel), run(mapped.kernel()));
        // 1e-13: sums of two products are added in another order
        assert!(largest(&after, &before) < 1e-13, "Q{degree}: {}", largest(&after, &before));
    }
}

/// By the interpreter, where nothing is added up in another order but what is: inner nodes are
/// replaced by what the fused kernel finds.
#[test]
fn planes_compute_what_the_fused_kernel_does() {
    let planes = planes(Some(3));
    for degree in if is_long_run() { &[5, 6, 7][..] } else { &[5] } {
        let element = element(Dimension::Three, *degree);
        let kernel = plain(Operation::Smooth, element, Precision::Double).unwrap();
        let mapped = schedule(Operation::SmoothBlended, element, planes, Precision::Double).unwrap();
        let code = generate(mapped.kernel(), Backend::Cuda.target(), &Options::default()).unwrap();
        assert!(code.untrusted.is_empty()); // or no device would run it
        let memory = inputs(element, &mut Random(3));
        let run = |kernel| {
            let mut memory = memory.clone().of_kernel(kernel);
            interpret(kernel, &mut memory).unwrap();
            memory.get("x").unwrap().to_f64()
        };
        let (before, after) = (run(&kernel), run(mapped.kernel()));
        // 1e-11: condition numbers of patches reach 1e3
        assert!(largest(&after, &before) < 1e-11, "Q{degree}: {}", largest(&after, &before));
        let changed = |x: &[f64]| largest(x, &memory.get("x").unwrap().to_f64());
        assert!(changed(&after) > 1e-2, "Q{degree}");
    }
    let refused = |operation, dimension, degree, precision| {
        let found = schedule(operation, element(dimension, degree), planes, precision);
        assert!(matches!(found, Err(MultigridError::NoTiles(_))), "{operation:?} Q{degree}");
    };
    refused(Operation::Smooth, Dimension::Three, 7, Precision::Double);
    refused(Operation::SmoothBlended, Dimension::Two, 7, Precision::Double);
    refused(Operation::SmoothBlended, Dimension::Three, 7, Precision::Single);
    for degree in [4, 8] {
        refused(Operation::SmoothBlended, Dimension::Three, degree, Precision::Double);
    }
}

/// A group that takes patches one after the other, and copies the next one while it solves for one, does what
/// one patch at a time does: rows of two patches and of one.
#[test]
fn patches_in_turn_equal_patches_at_once() {
    if !is_long_run() {
        return; // minutes
    }
    let device = open("c").unwrap();
    for (degree, sub_groups, parities) in [(2, 2, false), (5, 4, true)] {
        let (resident_groups, ahead) = (None, Some(2));
        let in_turn = Structure::Instructions { sub_groups, parities, resident_groups, ahead };
        let element = element(Dimension::Three, degree);
        let mut random = Random(9);
        let [x, b] = [(); 2].map(|()| inner_numbers(&mut random, element, 4));
        let [expected, found] = [None, Some(in_turn)].map(|smoother| {
            let options = HierarchyOptions { smoother, ..HierarchyOptions::default() };
            let levels = Hierarchy::with(&*device, element, 4, options).unwrap();
            levels.set(1, Which::Solution, &x).unwrap();
            levels.set(1, Which::RightHandSide, &b).unwrap();
            levels.smooth(1, Order::Forward).unwrap();
            levels.solution(1).unwrap()
        });
        // 1e-11: condition numbers of patches reach 1e3
        assert!(largest(&found, &expected) < 1e-11, "Q{degree}: {}", largest(&found, &expected));
    }
}

/// Lines that take two patches twice, one after the other, copied ahead: rows of three patches, by the
/// interpreter and as asynchronous copies that are waited for.
#[test]
fn patches_of_lines_are_copied_ahead() {
    let element = element(Dimension::Two, 2);
    let (patches, resident_groups, separate_terms, atomic) = (2, None, true, true);
    let ahead = Some(2);
    let in_turn = Structure::Lines { patches, resident_groups, separate_terms, atomic, ahead };
    let kernel = plain(Operation::Smooth, element, Precision::Double).unwrap();
    let mapped = schedule(Operation::Smooth, element, in_turn, Precision::Double).unwrap();
    let line = Line::new(element.degree).unwrap();
    let mut random = Random(4);
    let mut memory = Memory::new().param("n", 6).param("c0", 0).param("c1", 1).value("scale", 1.0);
    for name in ["x", "b"] {
        memory = memory.value(name, random.numbers(element.nodes(6)));
    }
    for (name, matrix) in [("A", &line.stiffness), ("M", &line.mass), ("S", &line.eigenvectors)] {
        memory = memory.value(name, matrix.entries.clone());
    }
    let memory = memory.value("lambda", line.eigenvalues);
    let run = |kernel| {
        let mut memory = memory.clone().of_kernel(kernel);
        interpret(kernel, &mut memory).unwrap();
        memory.get("x").unwrap().to_f64()
    };
    let (before, after) = (run(&kernel), run(mapped.kernel()));
    // 1e-13: sums of two products are added in another order
    assert!(largest(&after, &before) < 1e-13, "{}", largest(&after, &before));
    let code = generate(mapped.kernel(), Target::Cuda, &Options::default()).unwrap();
    let count = |what: &str| code.source.matches(what).count();
    assert!(count("cp.async.ca.shared.global") > 0 && count("cp.async.wait_group") > 0);
}

/// Sixteen work-items that read along any two axes meet in no bank.
#[test]
fn rows_are_padded_against_conflicts() {
    let all = is_long_run().then_some((7, 8)); // a minute
    for (degree, sub_groups) in [(3, 4)].into_iter().chain(all) {
        let element = element(Dimension::Three, degree);
        let mapped =
            schedule(Operation::Smooth, element, instructions(sub_groups), Precision::Double).unwrap();
        let params = [("n", 2), ("c0", 0), ("c1", 0), ("c2", 0)]; // one patch
        let traffic =
            bank_traffic(mapped.kernel(), &params.map(|(name, value)| (name.to_owned(), value)).into())
                .unwrap();
        assert!(traffic.iter().all(|t| t.exact) && traffic.iter().any(|t| t.wavefronts > 0));
        assert_eq!(traffic.iter().map(|t| t.conflicts).sum::<u64>(), 0, "Q{degree}");
    }
}

#[test]
fn tiles_that_do_not_suit_are_refused() {
    let refused = |operation, dimension, degree, precision, sub_groups| {
        let found = schedule(operation, element(dimension, degree), instructions(sub_groups), precision);
        assert!(matches!(found, Err(MultigridError::NoTiles(_))), "{operation:?} Q{degree}");
    };
    let (three, double) = (Dimension::Three, Precision::Double);
    for degree in [1, 4, 8] {
        refused(Operation::Smooth, three, degree, double, 2); // inner nodes fill fewer tiles
    }
    refused(Operation::PatchSolve, three, 3, double, 2);
    refused(Operation::Smooth, Dimension::Two, 3, double, 2);
    refused(Operation::Smooth, three, 3, Precision::Single, 2);
    for sub_groups in [0, 3, 8] {
        refused(Operation::Smooth, three, 3, double, sub_groups); // eight planes in pairs
    }
    let of_one_tile = schedule(Operation::Smooth, element(three, 3), parities(2), double);
    assert!(matches!(of_one_tile, Err(MultigridError::NoTiles(_))));
}
