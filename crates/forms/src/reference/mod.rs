//! The reference: linear forms evaluated as they are written, to check generated kernels against.
//!
//! It shares no code with the symbolic differentiation, the lowering or the code generation:
//! derivatives (by position, by coefficients, by variables) are found by evaluating with nilpotent
//! numbers, linearity in the test function by arithmetic that keeps the linear part apart, sums are
//! compensated. It does share the estimate of quadrature degrees, elements, rules and numberings,
//! which are tested on their own.
//!
//! ```
//! use kingpost_fem::{element::CellShape, mesh::Mesh};
//! use kingpost_forms::{form::*, reference};
//!
//! let mesh = Mesh::unit_square(2)?;
//! let space = FunctionSpace::scalar(CellShape::Triangle, 1);
//! let mass = inner(coefficient("u", &space), test(&space)) * dx();
//! let y = reference::action(&mass, &mesh, &Inputs::new().field("u", vec![1.0; 9]))?;
//! assert!((y.iter().sum::<f64>() - 1.0).abs() < 1e-15); // the area
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod evaluate;
mod facts;
mod nilpotent;
mod number;
mod sum;
mod tables;

use crate::form::{Form, FormError, Inputs};
use kingpost_fem::mesh::Mesh;
use sum::Sum;
use tables::Tables;

/// Cells per block: their element vectors are held at once (at most 1,024 times 3 times 84 numbers,
/// 2 MB).
const BLOCK: usize = 1024;

/// Stack of a worker, in bytes: evaluation recurses into expressions, by at most 1,000 operations.
const STACK: usize = 64 << 20;

/// The vector of a linear form: its value for each basis function of the test space.
///
/// # Shapes and units
/// `[dofs]` for scalar test functions, `[dofs, components]` row-major for vectors.
///
/// # Errors
/// A mistake in the form, a trial function left, a form not linear in its test function,
/// derivatives of order above one, missing or misshapen inputs, cells that do not fit the mesh.
///
/// # Source
/// Kulkarni & Klöckner 2025, equation (13), for any integrand.
pub fn action(form: &Form, mesh: &Mesh, inputs: &Inputs) -> Result<Vec<f64>, FormError> {
    let tables = Tables::new(form, mesh, inputs)?;
    let components = tables.components;
    let mut sums = vec![Sum::default(); tables.numbering.n_dofs() * components];
    let n_cells = mesh.n_cells();
    for start in (0..n_cells).step_by(BLOCK) {
        let vectors = block(&tables, start, n_cells.min(start + BLOCK))?;
        for (cell, vector) in (start..).zip(&vectors) {
            for (dof, values) in tables.test_dofs(cell).iter().zip(vector.chunks(components)) {
                let at = *dof as usize * components;
                sums[at..at + components].iter_mut().zip(values).for_each(|(sum, value)| sum.add(*value));
            }
        }
    }
    Ok(sums.iter().map(Sum::value).collect())
}

/// The element vectors of some cells, in order, on all processors.
fn block(tables: &Tables<'_>, start: usize, end: usize) -> Result<Vec<Vec<f64>>, FormError> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let share = (end - start).div_ceil(workers);
    let work = |from: usize| {
        let mut facts = facts::FactTable::default();
        let cells = from..end.min(from + share);
        cells.map(|cell| cell::element_vector(tables, &mut facts, cell)).collect::<Result<Vec<_>, _>>()
    };
    let parts = std::thread::scope(|scope| -> Result<Vec<_>, FormError> {
        let mut threads = Vec::new();
        for from in (start..end).step_by(share) {
            let builder = std::thread::Builder::new().stack_size(STACK);
            let thread = builder.spawn_scoped(scope, move || work(from));
            threads.push(thread.map_err(|e| FormError::Thread(e.to_string()))?);
        }
        Ok(threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect())
    })?;
    let mut all = Vec::with_capacity(end - start);
    for part in parts {
        let cells = part.map_err(|_| FormError::Bug("a thread of the reference panicked".into()))?;
        all.extend(cells?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
