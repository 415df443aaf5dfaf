//! Factors at quadrature points that depend on the mesh alone, as inputs.

use super::{StrategyError, applied};
use crate::program::{CellProgram, NotAnAction};
use purlin_ir::{Direction, Kernel, VarId, VarKind};
use purlin_transforms::primitives::{CollectFactors, PassValues, RemoveUnusedVars};
use purlin_transforms::schedule::Array;
use purlin_transforms::{Recipe, Step};
use std::collections::BTreeSet;

/// Passes what multiplies the values of functions at each point: geometry, weights and the
/// derivatives of the integrand, which are computed from the mesh once for all launches.
///
/// A mass operator has one such factor a point, a Laplace operator on a cube six: equal ones are one.
///
/// # Rewrite
/// ```text
/// for q in 0..Q                                =>   for q in 0..Q
///   x0_q += phi_p1_d0[q, j]*x_cell[j, 0]
///   g = inv_00*u_d0 + inv_10*u_d1
///   e0 = weights[q]*abs_det*(inv_00*g + …)            e0 = e0_u_d0[cell, q]*u_d0 + e0_u_d1[cell, q]*u_d1
/// ```
/// The recipe's [`Recipe::definitions`] are the kernels that compute the factors. Where these depend
/// on constants of the form, the definitions take those, and have to run again for others.
///
/// # Shapes and units
/// Each factor is an input `[cells, points]`.
///
/// # Errors
/// An integrand that is not linear in the values of functions, or a factor that depends on more than
/// the coordinates of the mesh and constants: a step that was refused.
///
/// # Source
/// Świrydowicz et al. 2019, §2 (the factors of BP3.5); Fischer et al. 2020.
pub fn stored_factors(kernel: &Kernel, program: &CellProgram) -> Result<(Kernel, Recipe), StrategyError> {
    let geometry = geometry(kernel, program).ok_or_else(|| {
        let found = "it gathers no coordinates of vertices, on which factors would depend".into();
        NotAnAction { kernel: kernel.name.clone(), found }
    })?;
    applied(kernel, |s| {
        let mut factors = Vec::new();
        for block in &program.blocks {
            let unknown = block.evaluations.iter().filter(|e| !e.inputs.contains(&geometry.gather));
            let scalars: Vec<&Array> = unknown.flat_map(|e| &e.outputs).collect();
            let sets = |name: &str| {
                let written = s.kernel().insn(name).map(|i| s.kernel().insns[i].lhs.var);
                written.is_some_and(|v| block.factors.iter().any(|f| f.name() == s.kernel().vars[v].name))
            };
            let setters: Vec<&str> =
                block.pointwise.iter().map(|i| i.name()).filter(|name| sets(name)).collect();
            let made = s.apply(CollectFactors::new(setters, scalars.iter().map(|a| a.name())))?;
            for factor in &made.arrays {
                s.expand(factor, [program.cells.cell.name(), block.quad.name()])?;
            }
            factors.extend(made.arrays);
        }
        let constants = kernel
            .vars
            .values()
            .filter(|v| v.kind == VarKind::Argument(Direction::In) && v.shape.is_empty() && v.ty.is_float());
        let known = geometry.inputs.iter().cloned().chain(constants.map(|v| v.name.clone()));
        s.apply(PassValues::new(&factors, known))?;
        s.apply(RemoveUnusedVars {}).map(drop)
    })
}

/// The factors that [`stored_factors`] passes; none where it is refused.
#[must_use]
pub fn stored_factor_count(kernel: &Kernel, program: &CellProgram) -> Option<usize> {
    let (_, recipe) = stored_factors(kernel, program).ok()?;
    let passed = recipe
        .steps
        .iter()
        .filter_map(|step| if let Step::PassValues(pass) = step { Some(pass.vars.len()) } else { None });
    Some(passed.sum())
}

/// The gather of the coordinates of vertices, and the inputs that it reads.
struct Geometry {
    gather: usize,
    inputs: Vec<String>,
}

/// Coordinates stand before the functions of a form.
fn geometry(kernel: &Kernel, program: &CellProgram) -> Option<Geometry> {
    let inputs = |gather: usize| -> BTreeSet<VarId> {
        let insns = program.gathers[gather].insns.iter().filter_map(|i| kernel.insn(i.name()));
        let read = insns.flat_map(|i| kernel.insns[i].reads().into_iter().map(|a| a.var).collect::<Vec<_>>());
        read.filter(|v| kernel.vars[*v].kind == VarKind::Argument(Direction::In)).collect()
    };
    let first = (0..program.gathers.len()).min_by_key(|g| inputs(*g).first().copied())?;
    // a form without geometry at points has no gather of its own for it
    let is_geometry = program.gathers[first].components.is_some();
    let inputs = inputs(first).into_iter().map(|v| kernel.vars[v].name.clone()).collect();
    is_geometry.then_some(Geometry { gather: first, inputs })
}
