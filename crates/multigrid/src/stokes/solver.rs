//! Stokes' equations by GMRES in double precision around a V-cycle in double or single.

use super::hierarchy::{StokesCycle, StokesHierarchy, StokesOperator, bytes, numbers, zeros};
use super::line::{integrals, legendre};
use crate::hierarchy::fits;
use crate::{Dimension, Element, MultigridError, Precision};
use kingpost_fem::quadrature::gauss_jacobi;
use kingpost_runtime::{Buffer, Device, download_values, upload_values};
use kingpost_solve::{Gmres, GmresOptions, LinearReport, Operator, Queue};

/// A part of the force on the fluid: along an axis, a product of functions of one coordinate each.
#[derive(Clone, Debug)]
pub struct SourceTerm {
    /// The axis that it acts along.
    pub component: usize,
    /// What the product is multiplied with.
    pub factor: f64,
    /// A function of each coordinate.
    pub along: Vec<fn(f64) -> f64>,
}

impl SourceTerm {
    /// A force that turns the fluid about the middle, in the plane of the first two axes.
    #[must_use]
    pub fn swirl(dimension: Dimension) -> Vec<Self> {
        let one: fn(f64) -> f64 = |_| 1.0;
        let from_the_middle: fn(f64) -> f64 = |x| x - 0.5;
        let term = |component: usize, factor: f64| {
            let function = |axis: usize| if axis == 1 - component { from_the_middle } else { one };
            Self { component, factor, along: (0..dimension.axes()).map(function).collect() }
        };
        vec![term(0, -1.0), term(1, 1.0)]
    }
}

/// Solves Stokes' equations on the unit square or cube.
pub struct StokesSolver<'d> {
    device: &'d dyn Device,
    element: Element,
    cells: usize,
    hierarchy: StokesHierarchy<'d>,
    operator: StokesOperator,
    gmres: Gmres<'d>,
    x: Buffer,
    b: Buffer,
}

impl<'d> StokesSolver<'d> {
    /// Compiles all kernels and allocates the vectors of all levels, the cycle's in `precision`.
    ///
    /// # Errors
    /// As [`StokesHierarchy::new`].
    pub fn new(
        device: &'d dyn Device,
        element: Element,
        cells: usize,
        precision: Precision,
        options: GmresOptions,
    ) -> Result<Self, MultigridError> {
        // solution, right-hand side, two vectors of the basis and a direction
        let own = (numbers(element, cells) as u64).saturating_mul(5 * 8);
        fits(device, bytes(element, cells, precision).saturating_add(own))?;
        let hierarchy = StokesHierarchy::new(device, element, cells, precision, [1, 1])?;
        let n = numbers(element, cells);
        Ok(Self {
            device,
            element,
            cells,
            hierarchy,
            operator: StokesOperator::new(device, element, cells)?,
            gmres: Gmres::new(device, n, options)?,
            x: zeros(device, 8 * n as u64)?,
            b: zeros(device, 8 * n as u64)?,
        })
    }

    /// Unknowns: those of velocities inside, and of the pressure with its constant.
    #[must_use]
    pub fn unknowns(&self) -> usize {
        let (axes, side) = (self.element.dimension.axes() as u32, (self.element.degree + 1) * self.cells);
        axes as usize * (side - 1) * side.pow(axes - 1) + side.pow(axes)
    }

    /// The levels of the cycle.
    #[must_use]
    pub const fn hierarchy(&self) -> &StokesHierarchy<'d> {
        &self.hierarchy
    }

    /// Sets the force on the fluid to a sum of terms, integrated by k + 4 Gauss points a cell and
    /// axis.
    ///
    /// # Errors
    /// A term with an axis that there is not, or with functions of another number of coordinates; a
    /// failing driver.
    pub fn set_source(&self, terms: &[SourceTerm]) -> Result<(), MultigridError> {
        let axes = self.element.dimension.axes();
        let m = self.element.degree + 1;
        let side = m * (self.cells + 2);
        let of_component = side.pow(axes as u32);
        let h = 1.0 / self.cells as f64;
        let mut b = vec![0.0; numbers(self.element, self.cells)];
        for SourceTerm { component, factor, along } in terms {
            if along.len() != axes || *component >= axes {
                return Err(MultigridError::Source { component: *component, coordinates: along.len(), axes });
            }
            let lines: Vec<Vec<f64>> =
                along.iter().enumerate().map(|(axis, f)| self.integrals(*f, axis == *component)).collect();
            for (at, value) in b[component * of_component..][..of_component].iter_mut().enumerate() {
                // h^d of the integral, less h^(d - 2) of the operator
                let product = |axis: usize| lines[axis][at / side.pow(axis as u32) % side];
                *value += factor * h * h * (0..axes).map(product).product::<f64>();
            }
        }
        Ok(upload_values(self.device, &self.b, &b)?)
    }

    /// Integrals of a function of one coordinate times the functions of a line, on cells of length
    /// 1.
    fn integrals(&self, function: fn(f64) -> f64, is_normal: bool) -> Vec<f64> {
        let m = self.element.degree + 1;
        let (points, weights) = gauss_jacobi(m + 3, 0);
        let h = 1.0 / self.cells as f64;
        let mut line = vec![0.0; m * (self.cells + 2)];
        for cell in 0..self.cells {
            for (x, weight) in points.iter().zip(&weights) {
                let basis = if is_normal { integrals(m, *x).0 } else { legendre(m, *x).0 };
                let value = weight * function((cell as f64 + x) * h);
                let functions = if is_normal { m + 1 } else { m };
                (0..functions).for_each(|i| line[m * (cell + 1) + i] += value * basis[i]);
            }
        }
        if is_normal {
            // no flow through the boundary
            line[m] = 0.0;
            line[m * (self.cells + 1)] = 0.0;
        }
        line
    }

    /// Solves from zero. Velocities and pressures are zero where the force is a gradient's, which
    /// has pressures alone; those have a mean of zero.
    ///
    /// # Errors
    /// No memory for another vector, a failing driver. That it does not converge is in the report.
    pub fn solve(&mut self) -> Result<LinearReport, MultigridError> {
        let cycle = StokesCycle(&self.hierarchy);
        Ok(self.gmres.solve(&self.operator, Some(&cycle), &self.b, &self.x)?)
    }

    /// Coefficients of the solution, by component and lexicographically, with zeros around them;
    /// those of the pressure are multiplied with the length of a cell.
    ///
    /// # Errors
    /// A failing driver.
    pub fn solution(&self) -> Result<Vec<f64>, MultigridError> {
        Ok(download_values(self.device, &self.x)?)
    }

    /// The L2 norm of the divergence of the velocity.
    ///
    /// # Errors
    /// No memory for another vector, a failing driver.
    pub fn divergence(&self) -> Result<f64, MultigridError> {
        let y = zeros(self.device, self.x.bytes())?;
        let mut queue = Queue::new();
        self.operator.apply(&self.x, &y, &mut queue);
        queue.run(self.device)?;
        let y: Vec<f64> = download_values(self.device, &y)?;
        let axes = self.element.dimension.axes();
        // orthonormal on cells of length 1: a derivative is 1/h of that there
        let of_pressure = &y[y.len() / (axes + 1) * axes..];
        let scale = (self.cells as f64).powi(2 - axes as i32);
        Ok((scale * of_pressure.iter().map(|value| value * value).sum::<f64>()).sqrt())
    }
}
