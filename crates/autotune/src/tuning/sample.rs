//! The reference at a few degrees of freedom of a large mesh.

use kingpost_fem::mesh::{Mesh, MeshError};
use kingpost_fem::numbering::Numbering;
use kingpost_forms::form::{FormError, Inputs};
use kingpost_forms::lowering::ArgumentRole;
use kingpost_forms::reference;
use kingpost_interp::Value;
use kingpost_run::{Problem, ProblemError, Random, RelativeError};
use std::collections::BTreeMap;

/// Some entries of a result and what they must be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    entries: Vec<usize>,
    expected: Vec<f64>,
}

impl Sample {
    /// The reference at `n` random degrees of freedom.
    ///
    /// The cells around them are a mesh of their own; the reference on it has the right values
    /// there, because nothing else contributes to them.
    pub(super) fn draw(problem: &Problem, n: usize, seed: u64) -> Result<Self, ProblemError> {
        let degree = problem.lowered.test.degree();
        let components = problem.lowered.test.components();
        let map = problem.lowered.arguments.iter().find(|a| a.role == ArgumentRole::DofMap { degree });
        let Some(Value::I32(dofs)) = map.and_then(|a| problem.memory.get(&a.name)) else {
            let message = format!("no map to the degrees of freedom of degree {degree}");
            return Err(ProblemError::Form(FormError::Discretisation(message)));
        };
        let mut random = Random::new(seed ^ 0x5eed);
        let n_nodes = (problem.n_dofs / components) as u64;
        let mut chosen: Vec<i32> = (0..n).map(|_| random.below(n_nodes) as i32).collect();
        chosen.sort_unstable();
        chosen.dedup();
        let (expected, whole) = around(problem, dofs, &chosen, degree)?;
        let mut sample = Self { entries: Vec::new(), expected: Vec::new() };
        for (local, node) in whole.iter().enumerate() {
            if chosen.binary_search(&(*node as i32)).is_ok() {
                sample.entries.extend(node * components..(node + 1) * components);
                sample.expected.extend_from_slice(&expected[local * components..(local + 1) * components]);
            }
        }
        Ok(sample)
    }

    /// Largest error among the sampled entries of a result, relative to the largest of them.
    pub(super) fn error(&self, result: &[f64]) -> f64 {
        let found: Vec<f64> =
            self.entries.iter().map(|k| result.get(*k).copied().unwrap_or(f64::NAN)).collect();
        RelativeError::between(&found, &self.expected).max
    }
}

/// The reference on the cells around the chosen nodes, and for each node of their mesh its number
/// in the whole one.
fn around(
    problem: &Problem,
    dofs: &[i32],
    chosen: &[i32],
    degree: usize,
) -> Result<(Vec<f64>, Vec<usize>), ProblemError> {
    let per_cell = dofs.len() / problem.mesh.n_cells().max(1);
    let cells: Vec<usize> = dofs
        .chunks_exact(per_cell.max(1))
        .enumerate()
        .filter(|(_, cell)| cell.iter().any(|d| chosen.binary_search(d).is_ok()))
        .map(|(c, _)| c)
        .collect();
    let discretisation = |e: MeshError| ProblemError::Form(FormError::Discretisation(e.to_string()));
    let part = part_of(&problem.mesh, &cells).map_err(discretisation)?;
    let numbering = Numbering::new(&part, degree)?;
    // Vertices keep their order, so the k-th degree of freedom of a cell is the same in both
    // meshes.
    let mut whole = vec![0_usize; numbering.n_dofs()];
    for (local, c) in cells.iter().enumerate() {
        for (d, w) in numbering.cell(local).iter().zip(&dofs[c * per_cell..]) {
            whole[*d as usize] = *w as usize;
        }
    }
    let mut inputs = Inputs::new();
    for argument in &problem.lowered.arguments {
        if let ArgumentRole::Coefficient(coefficient) = &argument.role
            && let Some(Value::F64(values)) = problem.memory.get(&argument.name)
        {
            let m = coefficient.space.components();
            let restricted = whole.iter().flat_map(|w| values[w * m..(w + 1) * m].iter().copied());
            inputs = inputs.field(&coefficient.name, restricted.collect::<Vec<_>>());
        }
    }
    Ok((reference::action(&problem.lowered.form, &part, &inputs)?, whole))
}

/// The mesh of some cells, with their vertices in the same order.
fn part_of(mesh: &Mesh, cells: &[usize]) -> Result<Mesh, MeshError> {
    let dim = mesh.shape().dim();
    let mut vertices: Vec<u32> = cells.iter().flat_map(|c| mesh.cell(*c).iter().copied()).collect();
    vertices.sort_unstable();
    vertices.dedup();
    let new: BTreeMap<u32, u32> = vertices.iter().enumerate().map(|(k, v)| (*v, k as u32)).collect();
    let coordinates = vertices.iter().flat_map(|v| mesh.vertex(*v)[..dim].to_vec()).collect();
    let cells = cells.iter().flat_map(|c| mesh.cell(*c).iter().map(|v| new[v]).collect::<Vec<_>>()).collect();
    Mesh::new(mesh.shape(), coordinates, cells, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingpost_fem::element::CellShape;
    use kingpost_fem::quadrature::QuadratureScheme;
    use kingpost_kernels::Operator;

    #[test]
    fn a_few_cells_of_a_mesh_have_the_right_reference() -> Result<(), Box<dyn std::error::Error>> {
        for (shape, operator) in
            [(CellShape::Triangle, Operator::Elasticity), (CellShape::Tetrahedron, Operator::Helmholtz)]
        {
            let (mesh, degree) = (Mesh::unit(shape, 3)?, 4);
            let seed = Random::fresh_seed();
            let scheme = Some(QuadratureScheme::XiaoGimbutas);
            let problem = Problem::operator(operator, degree, scheme, mesh, seed)?;
            let sample = Sample::draw(&problem, 5, seed)?;
            let mut exact = problem.reference()?;
            // 1e-13: two orders of summation of the same few cells in f64
            assert!(sample.error(&exact) < 1e-13, "seed {seed}");
            exact.iter_mut().for_each(|x| *x *= 1.0 + 1e-6);
            assert!(sample.error(&exact) > 1e-7, "seed {seed}");
            assert!(sample.error(&[]).is_nan());
        }
        Ok(())
    }
}
