//! Prescribed unknowns.
#![allow(clippy::unwrap_used)] // how a test fails

use kingpost::Random;
use kingpost::forms::tabulated::Precision;
use kingpost::runtime::open;
use study_dolfinx_benchmark::matrix::AssembledMatrix;
use study_dolfinx_benchmark::part::How;
use study_dolfinx_benchmark::problem::{Discretisation, cells_for};
use study_dolfinx_benchmark::solve::System;

/// The benchmark applies the operator to vectors that are zero on the boundary; here they are not.
#[test]
fn rows_and_columns_of_prescribed_unknowns_are_those_of_the_identity() {
    let discretisation = Discretisation {
        cells: cells_for(500, 2),
        degree: 2,
        qmode: 1,
        use_gauss: false,
        perturbation: 0.1,
        precision: Precision::F64,
    };
    let problem = discretisation.problem().unwrap();
    let u = Random::new(7).numbers(problem.n_dofs());
    let expected = AssembledMatrix::new(&problem).unwrap().multiply(&u);
    let how = How { mapping: None, is_recorded: true };
    for names in [&["c"][..], &["opencl"], &["c", "c"], &["c", "opencl", "c"]] {
        let devices: Vec<_> = names.iter().map(|name| open(name).unwrap()).collect();
        let devices: Vec<_> = devices.iter().map(|device| &**device).collect();
        let found = System::new(&devices, &problem, &how).unwrap().apply(&u, 3).unwrap().result;
        assert_eq!(found[problem.free..], u[problem.free..]);
        for (place, (y, z)) in found.iter().zip(&expected).enumerate() {
            // some hundred terms of numbers below 20
            assert!((y - z).abs() < 1e-12, "{names:?}, {place}: {y} {z}");
        }
    }
}
