//! Points of quadrature rules in sums and differences of those that symmetric vertices exchange.

use super::blocks::statements;
use super::orbit_basis::orbits_of;
use kingpost_forms::lowering::Orbits;
use kingpost_forms::program::{Block, CellProgram};
use kingpost_ir::{Kernel, VarKind};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    CombineOrbits, DropZeroTerms, RemoveUnusedVars, SplitArrayAxis, TransposeArrayAxes,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};
use std::collections::BTreeSet;

/// Replaces the degrees of freedom in `values` and the element vectors by combinations in orbits, and
/// so the values at the points of an orbit and what these points add. Of integrands that are not linear,
/// whose points stay: half of the entries of tables are then zero on triangles, three quarters on
/// tetrahedra. Points of the rules have to stand in orbits
/// ([`Rule::in_orbits`](kingpost_fem::quadrature::Rule::in_orbits)).
///
/// # Rewrite
/// ```text
/// for q in 0..Q                   =>  for orbit in 0..Q/2
///   for j in 0..n                       for j in 0..n/2
///     e += phi[q, j]*u[j]                 e_0 += phi_0[orbit, j]*u_0[j]
///   f = g(e)                              e_1 += phi_1[orbit, j]*u_1[j]
///   for i in 0..n                       f[0] = g(e_0 + e_1)
///     y[i] += phi[q, i]*f               f[1] = g(e_0 - e_1)
///                                       ...
/// ```
///
/// # Errors
/// Other uses of these arrays, tables of other shapes.
pub(super) fn point_orbits(
    s: &mut Schedule,
    program: &CellProgram,
    values: &[Array],
    orbits: &[Orbits],
) -> Result<(), TransformError> {
    let mut points = 1;
    for array in values.iter().chain(program.results.iter().map(|r| &r.array)) {
        if let Some(orbits) = orbits_of(s.kernel(), array, orbits) {
            points = orbits.first().map_or(1, Vec::len);
            s.make(CombineOrbits::new(array, orbits.clone()).with_zeros())?;
        }
    }
    let mut nests = Vec::new();
    for block in &program.blocks {
        nests.push(split_points(s, block, points as i64)?);
    }
    let mut tables: Vec<String> = Vec::new();
    for insn in nests.iter().flat_map(|nest| &nest.products) {
        for table in tables_of(s.kernel(), insn) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
    }
    for table in tables {
        s.apply(SplitArrayAxis { var: table.clone(), axis: 0, factor: points as i64 })?;
        s.apply(TransposeArrayAxes { var: table, order: vec![0, 2, 1] })?;
    }
    let orbit = vec![(0..points as u32).collect::<Vec<_>>()];
    for array in nests.iter().flat_map(|nest| &nest.arrays) {
        s.make(CombineOrbits::new(array, orbit.clone()).with_zeros())?;
    }
    s.apply(RemoveUnusedVars {})?;
    for nest in &nests {
        let Some(orbit) = s.kernel().iname(nest.orbit.name()) else { continue };
        let schedule = s.kernel().schedule().into_iter().filter(|(_, loops)| loops.contains(&orbit));
        let insns: Vec<String> = schedule.map(|(insn, _)| s.kernel().insns[insn].name.clone()).collect();
        for insn in insns {
            if !tables_of(s.kernel(), &insn).is_empty() {
                s.attempt(DropZeroTerms::new(insn))?; // refused where an entry is not zero
            }
        }
    }
    Ok(())
}

/// A quadrature loop over orbits of points.
struct Points {
    orbit: Loop,
    /// Values at the points of an orbit, and factors.
    arrays: Vec<Array>,
    /// Products with tables.
    products: Vec<String>,
}

/// Splits a loop over points into orbits and the points of one, with a loop over these around each
/// product alone and around the pointwise group.
fn split_points(s: &mut Schedule, block: &Block, points: i64) -> Result<Points, TransformError> {
    let [orbit, first] = s.split_as(&block.quad, points, ["point_orbit", "point"])?;
    let outputs = block.evaluations.iter().flat_map(|e| &e.outputs);
    let arrays: Vec<Array> = outputs.chain(&block.factors).cloned().collect();
    for array in &arrays {
        s.expand(array, [&first])?;
    }
    let sums = block.evaluations.iter().map(|e| &e.dofs).chain(block.products.iter().map(|p| &p.rows));
    let sums: Vec<Loop> = sums.cloned().collect();
    let pointwise = block.pointwise.first().map(String::from);
    let named: BTreeSet<String> = sums.iter().map(String::from).chain(pointwise).collect();
    let body = statements(s.kernel(), first.name());
    let starts: Vec<String> = body.iter().skip(1).filter(|name| named.contains(*name)).cloned().collect();
    let stems = vec!["point"; starts.len()];
    let nests = s.distribute_as(&first, starts.clone(), &stems)?;
    alone(s, &first)?;
    let mut products = Vec::new();
    for (nest, start) in nests.iter().zip(&starts) {
        if !sums.iter().any(|sum| sum.name() == start) {
            continue;
        }
        let terms = Loop::named(start.clone());
        alone(s, nest)?;
        s.interchange(nest, &terms)?;
        products.extend(alone(s, nest)?);
    }
    Ok(Points { orbit, arrays, products })
}

/// Gives each statement in a loop a loop of its own; returns them.
fn alone(s: &mut Schedule, iname: &Loop) -> Result<Vec<String>, TransformError> {
    let all = statements(s.kernel(), iname.name());
    if all.len() > 1 {
        s.distribute(iname, all.iter().skip(1))?;
    }
    Ok(all)
}

/// The tables of an axis of points that an instruction reads.
fn tables_of(kernel: &Kernel, insn: &str) -> Vec<String> {
    let Some(id) = kernel.insn(insn) else { return Vec::new() };
    let vars = kernel.insns[id].reads().into_iter().map(|a| &kernel.vars[a.var]);
    let tables = vars.filter(|v| matches!(v.kind, VarKind::Table(_)) && v.shape.len() >= 2);
    tables.map(|v| v.name.clone()).collect()
}
