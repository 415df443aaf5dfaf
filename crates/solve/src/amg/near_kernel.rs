//! What an operator nearly takes to zero: the functions that coarse levels have to have.

use nalgebra::DMatrix;

/// Degrees of freedom whose near kernel is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unknowns {
    /// Components of each degree of freedom.
    pub components: usize,
    /// Where they are, `[degrees of freedom, dim]` row-major; may be empty if no rigid motions are
    /// wanted.
    pub points: Vec<f64>,
    /// Dimension of the points.
    pub dim: usize,
}

/// Vectors of a near kernel, `[unknowns, vectors]`.
pub(super) type NearKernel = DMatrix<f64>;

impl Unknowns {
    /// Unknowns of a number of components, anywhere.
    #[must_use]
    pub const fn of_components(components: usize) -> Self {
        Self { components, points: Vec::new(), dim: 0 }
    }

    /// Whether they are displacements of points of the plane or space, so that rigid motions of the
    /// points strain nothing.
    #[must_use]
    pub const fn are_displacements(&self) -> bool {
        self.components == self.dim && (self.dim == 2 || self.dim == 3)
    }

    /// A vector for each component that is constant there; of displacements rotations about the middle
    /// too, of the points moved by `u` (nothing if it is empty).
    pub(super) fn near_kernel(&self, n: usize, u: &[f64]) -> NearKernel {
        let side = self.components.max(1);
        let rotations: &[[usize; 2]] = match (self.are_displacements(), self.dim) {
            (true, 2) => &[[0, 1]],
            (true, _) => &[[0, 1], [1, 2], [2, 0]],
            (false, _) => &[],
        };
        let dim = self.dim;
        let place = |dof: usize, axis: usize| {
            let at = dof * dim + axis;
            self.points.get(at).copied().unwrap_or(0.0) + u.get(at).copied().unwrap_or(0.0)
        };
        let dofs = n / side;
        let middle: Vec<f64> = (0..dim)
            .map(|axis| (0..dofs).map(|dof| place(dof, axis)).sum::<f64>() / dofs.max(1) as f64)
            .collect();
        DMatrix::from_fn(n, side + rotations.len(), |row, vector| {
            let (dof, component) = (row / side, row % side);
            match vector.checked_sub(side).and_then(|k| rotations.get(k)) {
                None => f64::from(u8::from(component == vector)),
                Some([a, b]) if component == *a => middle[*b] - place(dof, *b),
                Some([a, b]) if component == *b => place(dof, *a) - middle[*a],
                Some(_) => 0.0,
            }
        })
    }
}
