//! Iterations of full multigrid.

#![allow(clippy::unwrap_used)]

use purlin_multigrid::{Dimension, Element, Ended, Hierarchy};
use purlin_runtime::open;

/// Iterations for a source of 1 to a residual of 1e-9 of the right-hand side.
fn iterations(dimension: Dimension, degree: usize, cells: usize) -> usize {
    let device = open("c").unwrap();
    let hierarchy = Hierarchy::new(&*device, Element::new(dimension, degree).unwrap(), cells).unwrap();
    let loads: Vec<_> = (0..hierarchy.levels()).map(|level| hierarchy.load(level)).collect();
    let convergence = hierarchy.full_multigrid(&loads, 1e-9, 30).unwrap();
    assert_eq!(convergence.ended, Ended::Converged, "{:?}", convergence.residuals);
    convergence.iterations()
}

/// Cui et al. 2024, Table 1, has 9, 5, 3, 3, 3, 2, 2, 2 on level 4. The counts here are lower: what
/// the publication counts as an iteration, and what its residual is relative to, is not stated.
#[test]
fn no_more_iterations_than_published_on_squares() {
    let found: Vec<_> = (1..=8).map(|k| iterations(Dimension::Two, k, 16)).collect();
    assert_eq!(found, [5, 2, 2, 1, 1, 1, 1, 1]);
}

/// Table 2, level 4, has 6, 5, 3, 3.
#[test]
fn no_more_iterations_than_published_on_cubes() {
    let found: Vec<_> = (1..=4).map(|k| iterations(Dimension::Three, k, 8)).collect();
    assert_eq!(found, [5, 4, 3, 2]);
}
