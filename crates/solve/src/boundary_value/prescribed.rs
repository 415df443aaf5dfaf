//! What boundary value problems prescribe on a mesh.

use super::BoundaryValueSetupError;
use crate::boundary::facet_places;
use crate::{PrescribedValues, Side, bounds};
use kingpost_fem::mesh::{FacetSide, Mesh};
use kingpost_fem::numbering::Numbering;
use kingpost_kernels::{BoundaryValueProblem, Prescribed};

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
    let (dim, bounds) = (mesh.shape().dim(), bounds(mesh));
    // elements whose degrees of freedom are no values at points have nothing prescribed
    let nodes = numbering.element().points().unwrap_or_default();
    let map = mesh.point_map(&nodes);
    let mut all = PrescribedValues::default();
    for part in problem.prescribed() {
        let on_part = |point: &[f64]| match part {
            Prescribed::Everywhere => true,
            Prescribed::Near => Side { axis: 0, high: false }.holds(point, &bounds),
            Prescribed::Far => Side { axis: 0, high: true }.holds(point, &bounds),
        };
        let found = facet_places(mesh, numbering, sides, &on_part);
        let mut points = vec![0.0; found.len() * dim];
        for ((_, cell, place), point) in found.iter().zip(points.chunks_exact_mut(dim)) {
            map.place(*cell as usize, *place, point);
        }
        let middle = |axis: usize| {
            let along = points.iter().skip(axis).step_by(dim);
            let (low, high) =
                along.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(*x), h.max(*x)));
            (low + high) / 2.0
        };
        let center: Vec<f64> = (0..dim).map(middle).collect();
        for ((dof, ..), point) in found.iter().zip(points.chunks_exact(dim)) {
            for (component, value) in problem.value(*part, point, &center).into_iter().enumerate() {
                all.unknowns.push(dof * components as i32 + component as i32);
                all.values.push(value);
            }
        }
    }
    all
}
