//! Counts of a patch beside the statistics of the plain kernel, and the page.

#![allow(clippy::unwrap_used)]

use kingpost::analysis::stats::statistics;
use kingpost_multigrid::kernels::{Operation, plain};
use kingpost_multigrid::{Dimension, Element, Precision};
use study_cui_2024::flops_of_patch;

#[test]
fn operations_of_a_patch() {
    for dimension in [Dimension::Two, Dimension::Three] {
        for degree in 1..=8 {
            let element = Element::new(dimension, degree).unwrap();
            let kernel = plain(Operation::Smooth, element, Precision::Double).unwrap();
            let params =
                ["n", "c0", "c1", "c2"].map(|name| (name.to_owned(), if name == "n" { 2 } else { 0 }));
            let counted = statistics(&kernel, &params.into_iter().collect()).unwrap().flops();
            assert_eq!(flops_of_patch(element), counted as f64, "{element:?}");
        }
    }
}
