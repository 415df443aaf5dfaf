//! Modes instead of quadrature points: how many there are, what is refused, what the kernels compute.
#![allow(clippy::unwrap_used, clippy::panic)] // what a failed test does

use crate::support::bent_mesh;
use kingpost::forms::lowering::LoweredForm;
use kingpost::forms::program::CellProgram;
use kingpost::kernels::Operator;
use kingpost::tuning::known::{Sought, Source, known};
use kingpost::tuning::transform;
use kingpost::tuning::vectors::HostVectors;
use kingpost::{Mapping, Problem, Random, RelativeError};

/// The largest degree of elements in two and three dimensions.
const DEGREES: [(usize, usize); 2] = [(2, 8), (3, 6)];

fn lowered(operator: Operator, dim: usize, degree: usize) -> LoweredForm {
    Problem::operator(operator, degree, None, bent_mesh(dim, 1), 1).unwrap().lowered
}

/// The number of modes of each loop.
fn modes(form: &LoweredForm) -> Vec<i64> {
    let (kernel, _) = Mapping::sequential().with_modes().apply(form).unwrap();
    CellProgram::read(&kernel).unwrap().blocks.iter().map(|block| block.points).collect()
}

/// Dimension of the polynomials of a degree.
fn dimension(dim: usize, degree: usize) -> i64 {
    let product: usize = (1..=dim).map(|k| degree + k).product();
    (product / (1..=dim).product::<usize>()) as i64
}

/// Derivatives of polynomials of degree p are those of degree p - 1.
#[test]
fn laplace_has_a_mode_for_each_polynomial_of_one_degree_less() {
    for (dim, largest) in DEGREES {
        for degree in 1..=largest {
            let found = modes(&lowered(Operator::Laplace, dim, degree));
            assert_eq!(found, [dimension(dim, degree - 1)], "{dim}-D P{degree}");
        }
    }
}

#[test]
fn mass_and_elasticity_have_the_modes_of_values_and_derivatives() {
    for (dim, degree) in [(2, 4), (3, 3)] {
        assert_eq!(modes(&lowered(Operator::Mass, dim, degree)), [dimension(dim, degree)]);
        assert_eq!(modes(&lowered(Operator::Elasticity, dim, degree)), [dimension(dim, degree - 1)]);
    }
}

/// Mass and stiffness get loops of their own.
#[test]
fn helmholtz_has_the_modes_of_mass_and_laplace() {
    for (dim, degree) in [(2, 4), (3, 1), (3, 3)] {
        let expected = [dimension(dim, degree), dimension(dim, degree - 1)];
        assert_eq!(modes(&lowered(Operator::Helmholtz, dim, degree)), expected, "{dim}-D P{degree}");
    }
}

#[test]
fn hyperelasticity_keeps_its_points() {
    let form = lowered(Operator::Hyperelasticity, 2, 2);
    let refusal = Mapping::sequential().with_modes().apply(&form).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "step 1: factor quadrature `q`: `set_t_12` multiplies `phi_p2_d0`, `phi_p2_d0`, `phi_p2_d0`; the sum must be \
         linear in the values that are evaluated [factor_quadrature.quadratic]"
    );
}

/// The largest tables, in the interpreter: every sum differs by rounding only.
#[test]
fn results_are_those_of_the_reference() {
    let numbers = Random::fresh_seed();
    for (operator, dim, degree) in [
        (Operator::Laplace, 2, 8),
        (Operator::Helmholtz, 2, 8),
        (Operator::Laplace, 3, 6),
        (Operator::Mass, 3, 6),
    ] {
        let problem = Problem::operator(operator, degree, None, bent_mesh(dim, 1), numbers).unwrap();
        let (kernel, _) = transform(&problem.lowered, &Mapping::sequential().with_modes()).unwrap();
        let mut memory = problem.memory.clone();
        kingpost::interp::interpret(&kernel, &mut memory).unwrap();
        let error =
            RelativeError::between(memory.f64s(problem.output()).unwrap(), &problem.reference().unwrap());
        // sums of some hundred products in f64, relative to the size of the result
        assert!(error.is_within(1e-12), "{operator} {dim}-D P{degree}, seed {numbers}: {error:?}");
    }
}

/// The operator is computed over modes unless something better is known, where they are no more than points.
#[test]
fn modes_are_the_default_on_a_processor_where_they_are_no_more() {
    let device = kingpost::runtime::open("c").unwrap();
    let lanes = HostVectors::of(device.info()).tiles();
    // 23 points and 20 modes, 6 of each, a form that is not linear
    for (operator, dim, degree, expected) in [
        (Operator::Laplace, 3, 4, (lanes.clone().with_modes(), Source::Modes)),
        (Operator::Laplace, 2, 3, (lanes.clone().with_modes(), Source::Modes)),
        (Operator::Hyperelasticity, 2, 2, (lanes, Source::Lanes)),
    ] {
        let form = lowered(operator, dim, degree);
        let sought = Sought { case: None, dim };
        let found = known(&form, sought, device.info(), &[]).swap_remove(0);
        assert_eq!((found.mapping, found.source), expected, "{operator} {dim}-D P{degree}");
    }
}
