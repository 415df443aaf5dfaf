//! Degrees of freedom on facets.

use super::Numbering;
use crate::mesh::{FacetSide, Mesh};
use rayon::prelude::*;

/// A degree of freedom in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlacedDof {
    /// Its number.
    pub dof: i32,
    /// The cell.
    pub cell: u32,
    /// Its place among those of the cell.
    pub place: usize,
}

impl Numbering {
    /// The degrees of freedom of those `sides`, all of whose vertices are `wanted`, ascending, each with the first
    /// cell of the sides that has it: those in the facets, on their edges, and at their vertices.
    ///
    /// ```
    /// use kingpost_fem::{mesh::Mesh, numbering::Numbering};
    ///
    /// let mesh = Mesh::unit_square(1)?; // two triangles
    /// let numbering = Numbering::new(&mesh, 2)?;
    /// let bottom = numbering.on_facets(&mesh, &mesh.boundary(), &|point| point[1] == 0.0);
    /// assert_eq!(bottom.len(), 3); // two vertices and the edge between them
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_facets(
        &self,
        mesh: &Mesh,
        sides: &[FacetSide],
        wanted: &(dyn Fn(&[f64]) -> bool + Sync),
    ) -> Vec<PlacedDof> {
        let (shape, element) = (mesh.shape(), self.element());
        let in_facet = |facet: &&[usize]| -> Vec<usize> {
            let mut dofs = Vec::new();
            for dim in 0..shape.dim() {
                for (number, vertices) in shape.entities(dim).iter().enumerate() {
                    if vertices.iter().all(|v| facet.contains(v)) {
                        dofs.extend(element.entity_dofs(dim, number));
                    }
                }
            }
            dofs
        };
        let closures: Vec<Vec<usize>> = shape.facets().iter().map(in_facet).collect();
        let of_side = |side: &FacetSide| {
            let (cell, number) = (side.cell, usize::from(side.facet));
            let vertices = mesh.cell(cell as usize);
            let is_wanted = shape.facets()[number].iter().all(|v| wanted(mesh.vertex(vertices[*v])));
            let places = if is_wanted { &closures[number][..] } else { &[] };
            let placed = move |place: &usize| {
                Some(PlacedDof { dof: self.dof(cell as usize, *place)?, cell, place: *place })
            };
            places.iter().filter_map(placed)
        };
        let mut found: Vec<PlacedDof> = sides.par_iter().flat_map_iter(of_side).collect();
        found.par_sort_unstable();
        found.dedup_by_key(|placed| placed.dof);
        found
    }

    /// The nodes of some of them, `[dofs, dim]` row-major; empty if degrees of freedom are not values at points.
    #[must_use]
    pub fn points_of(&self, mesh: &Mesh, dofs: &[PlacedDof]) -> Vec<f64> {
        let Some(nodes) = self.element().points() else { return Vec::new() };
        let (dim, map) = (mesh.shape().dim(), mesh.point_map(&nodes));
        let mut points = vec![0.0; dofs.len() * dim];
        let each = points.par_chunks_exact_mut(dim).zip(dofs);
        each.for_each(|(point, placed)| map.place(placed.cell as usize, placed.place, point));
        points
    }
}
