//! Degrees of freedom of a cell in sums and differences of those that symmetric vertices exchange.

use super::modes::split_terms;
use kingpost_forms::lowering::Orbits;
use kingpost_forms::program::CellProgram;
use kingpost_ir::Kernel;
use kingpost_primitives::primitives::{CombineOrbits, FactorQuadrature, RemoveUnusedVars};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};

/// Replaces the degrees of freedom in `values`, which quadrature loops evaluate, and the element
/// vectors by combinations in orbits, and the points of the loops by modes. Tables over modes then
/// have blocks of zeros: one block of modes for each combination. Terms that share no value get loops
/// of their own first.
///
/// # Rewrite
/// ```text
/// for q in 0..Q                          =>  for o in 0..n/2
///   for j in 0..n                              u_0[o] = u[p[0, o]] + u[p[1, o]]
///     e += phi[q, j]*u[j]                      u_1[o] = u[p[0, o]] - u[p[1, o]]
///                                            for q in 0..m
///                                              for j in 0..n/2
///                                                e += phi_0[q, j]*u_0[j]
///                                                e += phi_1[q, j]*u_1[j]  # zero in half of the modes
/// ```
///
/// # Errors
/// Other uses of these arrays, integrands without modes.
pub(super) fn orbit_basis(
    s: &mut Schedule,
    program: &CellProgram,
    values: &[Array],
    orbits: &[Orbits],
) -> Result<Vec<Loop>, TransformError> {
    let mut quads = Vec::new();
    for block in &program.blocks {
        quads.extend(split_terms(s, block)?);
    }
    for array in values.iter().chain(program.results.iter().map(|r| &r.array)) {
        if let Some(orbits) = orbits_of(s.kernel(), array, orbits) {
            s.make(CombineOrbits::new(array, orbits.clone()))?;
        }
    }
    for quad in &quads {
        s.apply(FactorQuadrature::new(quad).in_blocks_of(1))?;
    }
    s.apply(RemoveUnusedVars {})?;
    Ok(quads)
}

/// The orbits that hold as many elements as an array has along its first axis.
pub(super) fn orbits_of<'o>(kernel: &Kernel, array: &Array, orbits: &'o [Orbits]) -> Option<&'o Orbits> {
    let extent = kernel.vars[kernel.var(array.name())?].shape.first()?.as_constant()?;
    let elements = |orbits: &Orbits| orbits.iter().flatten().max().map_or(0, |most| i64::from(*most) + 1);
    orbits.iter().find(|orbits| elements(orbits) == extent)
}
