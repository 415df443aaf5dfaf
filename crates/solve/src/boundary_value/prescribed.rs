//! What boundary value problems prescribe on a mesh.

use super::BoundaryValueSetupError;
use crate::{PrescribedValues, Side};
use kingpost_fem::mesh::{FacetSide, Mesh};
use kingpost_fem::numbering::{Numbering, PlacedDof};
use kingpost_kernels::{BoundaryValueProblem, Prescribed};
use rayon::prelude::*;

/// Refuses cells that a problem is not for.
pub(super) fn check_cells(problem: BoundaryValueProblem, mesh: &Mesh) -> Result<(), BoundaryValueSetupError> {
    let refuse = |needed| {
        Err(BoundaryValueSetupError::Cells {
            problem,
            found: format!("cells of the shape `{}`", mesh.shape()),
            needed,
        })
    };
    let dim = mesh.shape().dim();
    if !mesh.shape().is_simplex() {
        return refuse("triangles or tetrahedra");
    }
    match problem {
        BoundaryValueProblem::Hyperelasticity | BoundaryValueProblem::Twist if dim != 3 => {
            refuse("tetrahedra")
        }
        BoundaryValueProblem::Poisson
        | BoundaryValueProblem::Hyperelasticity
        | BoundaryValueProblem::Twist => Ok(()),
    }
}

/// The unknowns with prescribed values, on the sides of the boundary.
pub(super) fn prescribed(
    problem: BoundaryValueProblem,
    mesh: &Mesh,
    numbering: &Numbering,
    components: usize,
    sides: &[FacetSide],
) -> PrescribedValues {
    let (dim, bounds) = (mesh.shape().dim(), mesh.bounds());
    let mut all = PrescribedValues::default();
    for part in problem.prescribed() {
        let on_part = |point: &[f64]| match part {
            Prescribed::Everywhere => true,
            Prescribed::Near => Side { axis: 0, high: false }.holds(point, &bounds),
            Prescribed::Far => Side { axis: 0, high: true }.holds(point, &bounds),
        };
        let found = numbering.on_facets(mesh, sides, &on_part);
        let points = numbering.points_of(mesh, &found);
        let middle = |axis: usize| {
            let along = points.iter().skip(axis).step_by(dim);
            let (low, high) =
                along.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
            (low + high) / 2.0
        };
        let center: Vec<f64> = (0..dim).map(middle).collect();
        let of_dof = |(placed, point): (&PlacedDof, &[f64])| {
            let values = problem.value(*part, point, &center).into_iter().zip(0..);
            let first = placed.dof * components as i32;
            values.map(move |(value, component)| (first + component, value))
        };
        let each = found.par_iter().zip(points.par_chunks_exact(dim));
        let (unknowns, values): (Vec<i32>, Vec<f64>) = each.flat_map_iter(of_dof).unzip();
        all.unknowns.extend(unknowns);
        all.values.extend(values);
    }
    all
}
