//! Sums of conjugate gradients, and what they say of eigenvalues.

use nalgebra::DMatrix;

/// The sums of some iterations.
pub(crate) struct Sums {
    /// Squares of residuals, in the norm that they are judged by.
    pub rr: Vec<f64>,
    /// Those in the norm of the preconditioner.
    pub rz: Vec<f64>,
    /// Squares of directions in the norm of the operator.
    pub pq: Vec<f64>,
}

impl Sums {
    /// The eigenvalues of the tridiagonal matrix of these iterations, ascending.
    pub fn eigenvalues(&self) -> Vec<f64> {
        let (mut diagonal, mut beside): (Vec<f64>, Vec<f64>) = Default::default();
        let first = self.rz.first().copied().unwrap_or(0.0);
        let mut carried = 0.0;
        for ((rz, next), pq) in self.rz.iter().zip(self.rz.iter().skip(1)).zip(&self.pq) {
            // what is left of the right-hand side is rounding
            if !(*pq > 0.0 && *rz > f64::EPSILON.powi(2) * first) {
                break;
            }
            let (length, turn) = (rz / pq, next / rz);
            diagonal.push(1.0 / length + carried);
            beside.push(turn.max(0.0).sqrt() / length);
            carried = turn / length;
        }
        let n = diagonal.len();
        if n == 0 {
            return Vec::new();
        }
        let entry = |i: usize, j: usize| match i.abs_diff(j) {
            0 => diagonal[i],
            1 => beside[i.min(j)],
            _ => 0.0,
        };
        let mut values = DMatrix::from_fn(n, n, entry).symmetric_eigenvalues().as_slice().to_vec();
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        values
    }
}
