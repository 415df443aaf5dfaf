//! The assembled matrix, which the result of the operator is compared with.

use crate::error::BenchmarkError;
use crate::problem::Problem;
use kingpost::forms::form::Inputs;
use kingpost::runtime::open;
use kingpost::{CsrMatrix, jit};

/// The assembled matrix in double precision. Rows and columns of prescribed unknowns are those of the identity.
pub struct AssembledMatrix {
    matrix: CsrMatrix,
    /// Where each of its rows stands in vectors.
    places: Vec<i32>,
    /// The first place of a prescribed unknown.
    free: usize,
}

impl AssembledMatrix {
    /// Assembles it on the host, whatever device the operator is on.
    ///
    /// # Errors
    /// A mesh that is too large, a failing compiler.
    pub fn new(problem: &Problem) -> Result<Self, BenchmarkError> {
        let host = open("c")?;
        let matrix =
            jit(&problem.discretisation.stiffness(), &*host)?.assemble(&problem.mesh, &Inputs::new())?;
        Ok(Self { matrix, places: problem.places().to_vec(), free: problem.free })
    }

    /// Its product with a vector.
    #[must_use]
    pub fn multiply(&self, u: &[f64]) -> Vec<f64> {
        let free = |place: &i32| (*place as usize) < self.free;
        let own = |place: &i32| if free(place) { u[*place as usize] } else { 0.0 };
        let product = self.matrix.multiply(&self.places.iter().map(own).collect::<Vec<_>>());
        let mut result = u.to_vec();
        for (place, y) in self.places.iter().zip(product).filter(|(place, _)| free(place)) {
            result[*place as usize] = y;
        }
        result
    }

    /// As many iterations of conjugate gradients from zero.
    #[must_use]
    pub fn solve(&self, b: &[f64], iterations: usize) -> Vec<f64> {
        let dot = |v: &[f64], w: &[f64]| v.iter().zip(w).map(|(v, w)| v * w).sum::<f64>();
        let (mut x, mut r, mut p) = (vec![0.0; b.len()], b.to_vec(), b.to_vec());
        let mut square = dot(&r, &r);
        for _ in 0..iterations {
            let q = self.multiply(&p);
            let alpha = square / dot(&p, &q);
            x.iter_mut().zip(&p).for_each(|(x, p)| *x += alpha * p);
            r.iter_mut().zip(&q).for_each(|(r, q)| *r -= alpha * q);
            let before = std::mem::replace(&mut square, dot(&r, &r));
            p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + square / before * *p);
        }
        x
    }
}
