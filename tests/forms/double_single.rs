//! Double-single numbers, and single precision in cells: the actions of Kulkarni & Klöckner 2025
//! against the reference in double precision.

#![allow(clippy::unwrap_used)]

use crate::support::{bent_mesh, cases, compiled, devices, is_long_run, of_run};
use kingpost::codegen::{Options, generate};
use kingpost::interp::interpret;
use kingpost::ir::Kernel;
use kingpost::kernels::Operator;

use kingpost::runtime::{Backend, Device, open};
use kingpost::transforms::programs::{BoundedErrors, bound_errors};
use kingpost::{Loaded, Mapping, Problem, Random, RelativeError, transform};

/// Sums of some hundred products in 48 bits, relative to the size of the result.
const PAIRS: f64 = 1e-12;

/// The same in 24 bits.
const SINGLE: f64 = 1e-5;

fn mapping(strategy: &str, then: &str) -> Mapping {
    serde_json::from_str(&format!(r#"{{"strategy":"{strategy}","then":{then}}}"#)).unwrap()
}

fn results(device: &dyn Device, problem: &Problem, kernel: &Kernel) -> Vec<f64> {
    let program = generate(kernel, device.info().backend.target(), &Options::default()).unwrap();
    let loaded = Loaded::compiled(device, compiled(device, &program), &problem.memory).unwrap();
    loaded.launch().unwrap();
    loaded.f64s(problem.output()).unwrap()
}

fn check(device: &dyn Device, problem: &Problem, mapping: &Mapping, tolerance: f64) -> RelativeError {
    let (kernel, _) = transform(&problem.lowered, mapping).unwrap();
    let error = RelativeError::between(&results(device, problem, &kernel), &problem.reference().unwrap());
    let name = &problem.lowered.kernel.name;
    println!("{name}, {mapping}, {}: {:.1e} {:.1e}", device.info().name, error.l2, error.max);
    assert!(error.is_within(tolerance), "{name}, {mapping}: {error:?}");
    error
}

fn problem(operator: Operator, dim: usize, degree: usize) -> Problem {
    let n = if degree < 3 { 3 } else { 1 };
    Problem::operator(operator, degree, None, bent_mesh(dim, n), Random::fresh_seed()).unwrap()
}

/// In C all 70, or one of each dimension.
#[test]
fn actions_have_twelve_digits_in_pairs_and_six_in_single_precision() {
    let device = open("c").unwrap();
    let is_chosen = |dim, degree| is_long_run() || degree == if dim == 2 { 3 } else { 1 };
    for (operator, dim, degree) in cases().into_iter().filter(|(_, dim, degree)| is_chosen(*dim, *degree)) {
        let problem = problem(operator, dim, degree);
        let single_cell = r#"{"strategy":"single_cell","cells":32}"#;
        check(&*device, &problem, &mapping("double_single", single_cell), PAIRS);
        let error = check(&*device, &problem, &mapping("mixed_precision", single_cell), SINGLE);
        // what has more digits was not computed in single precision
        assert!(error.max > 1e-9, "{error:?}");
    }
}

/// What is certified is never exceeded, and says something.
#[test]
fn errors_are_within_what_is_certified() {
    let device = open("c").unwrap();
    let operators = [Operator::Mass, Operator::Laplace, Operator::Elasticity, Operator::Hyperelasticity];
    let cases = operators.into_iter().flat_map(|o| [(o, (2, 3)), (o, (3, 1))]);
    for (operator, (dim, degree)) in of_run(cases, &[0, 3, 4, 7]) {
        let problem = problem(operator, dim, degree);
        for (strategy, largest) in [("double_single", 1e-10), ("mixed_precision", 1e-3)] {
            let mapping = mapping(strategy, r#"{"strategy":"single_cell","cells":32}"#);
            let (kernel, _) = transform(&problem.lowered, &mapping).unwrap();
            let found = results(&*device, &problem, &kernel);
            let BoundedErrors { kernel, errors } = bound_errors(&kernel).unwrap();
            let mut memory = problem.memory.clone();
            memory.set(&errors[problem.output()], vec![0.0; found.len()]);
            interpret(&kernel, &mut memory).unwrap();
            let [expected, bounds] =
                [problem.output(), &errors[problem.output()]].map(|name| memory.f64s(name).unwrap());
            let size = expected.iter().fold(0.0_f64, |most, y| most.max(y.abs()));
            let part = found.iter().zip(expected).zip(bounds).map(|((y, e), bound)| (y - e).abs() / bound);
            let part = part.fold(0.0, f64::max);
            let most = bounds.iter().fold(0.0_f64, |most, bound| most.max(*bound)) / size;
            println!(
                "{operator} {dim}-D P{degree}, {strategy}: certified {most:.1e} of the largest, {part:.3} of it found"
            );
            assert!(
                part <= 1.0 && most < largest,
                "{operator} {dim}-D P{degree}, {mapping}: {part} {most:e}"
            );
        }
    }
}

/// Mappings with local memory, atomic sums there, orbits, and the meaning of matrix instructions.
#[test]
fn mappings_of_cards_hold_pairs() {
    let thens = [
        r#"{"strategy":"straight_cells","cells":32}"#,
        r#"{"strategy":"orbits","then":{"strategy":"straight_cells","cells":32}}"#,
        r#"{"strategy":"staged_cells","cells":32,"constant_tables":true}"#,
        r#"{"strategy":"matrix_cells","sub_groups":2,"groups":4,"kept_tables":0}"#,
    ];
    let problem = problem(Operator::Laplace, 3, 2);
    for device in devices() {
        for then in of_run(thens, if device.info().backend == Backend::C { &[0, 1, 3] } else { &[2] }) {
            check(&*device, &problem, &mapping("double_single", then), PAIRS);
        }
        for then in of_run(&thens[..3], if device.info().backend == Backend::C { &[1] } else { &[0] }) {
            check(&*device, &problem, &mapping("mixed_precision", then), SINGLE);
        }
    }
}
