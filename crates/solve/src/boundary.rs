//! Degrees of freedom on parts of the boundary.

use kingpost_fem::mesh::{FacetSide, Mesh};
use kingpost_fem::numbering::Numbering;

/// A side of the box that holds a mesh: along an axis, where the coordinate is least or greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    /// The axis.
    pub axis: usize,
    /// Whether it is where the coordinate is greatest.
    pub high: bool,
}

/// Coordinates that differ by this part of the box lie on one plane.
const ON_PLANE: f64 = 1e-9;

/// The least and the greatest coordinates along each axis.
#[must_use]
pub fn bounds(mesh: &Mesh) -> [Vec<f64>; 2] {
    let dim = mesh.shape().dim();
    let mut bounds = [vec![f64::INFINITY; dim], vec![f64::NEG_INFINITY; dim]];
    for point in mesh.coordinates().chunks_exact(dim) {
        for (axis, x) in point.iter().enumerate() {
            bounds[0][axis] = bounds[0][axis].min(*x);
            bounds[1][axis] = bounds[1][axis].max(*x);
        }
    }
    bounds
}

impl Side {
    /// Whether a point lies on it.
    #[must_use]
    pub fn holds(self, point: &[f64], bounds: &[Vec<f64>; 2]) -> bool {
        let (Some(x), Some(low), Some(high)) =
            (point.get(self.axis), bounds[0].get(self.axis), bounds[1].get(self.axis))
        else {
            return false;
        };
        let plane = if self.high { high } else { low };
        (x - plane).abs() <= ON_PLANE * (high - low)
    }
}

/// The degrees of freedom of those `sides`, as a rule of the [boundary](Mesh::boundary), all of whose
/// vertices are `wanted`, in ascending order: those in the facets, on their edges, and at their vertices.
#[must_use]
pub fn facet_dofs(
    mesh: &Mesh,
    numbering: &Numbering,
    sides: &[FacetSide],
    wanted: &dyn Fn(&[f64]) -> bool,
) -> Vec<i32> {
    let shape = mesh.shape();
    let element = numbering.element();
    let closures: Vec<Vec<usize>> = shape
        .facets()
        .iter()
        .map(|facet| {
            let mut dofs = Vec::new();
            for dim in 0..shape.dim() {
                for (number, vertices) in shape.entities(dim).iter().enumerate() {
                    if vertices.iter().all(|v| facet.contains(v)) {
                        dofs.extend(element.entity_dofs(dim, number));
                    }
                }
            }
            dofs
        })
        .collect();
    let mut found = Vec::new();
    for side in sides {
        let (cell, number) = (side.cell as usize, usize::from(side.facet));
        let vertices = mesh.cell(cell);
        if shape.facets()[number].iter().all(|v| wanted(mesh.vertex(vertices[*v]))) {
            found.extend(closures[number].iter().map(|dof| numbering.cell(cell)[*dof]));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
