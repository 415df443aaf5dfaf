//! What a list of cells must satisfy to be a mesh.

use super::facets::is_mirrored;
use super::{Mesh, MeshError, Occurrence};
use crate::element::ElementTable;
use rayon::prelude::*;

/// A cell is degenerate if the determinant of its edge vectors is at most this part of its longest
/// edge to the power of the dimension: below it, rounding in the coordinates decides the sign.
const DEGENERATE: f64 = 1e-13;

impl Mesh {
    pub(super) fn check(&self) -> Result<(), MeshError> {
        self.check_lists()?;
        self.check_maps()?;
        self.check_facets()
    }

    fn check_lists(&self) -> Result<(), MeshError> {
        let (dim, corners) = (self.shape.dim(), self.shape.n_vertices());
        for (list, length, row) in
            [("coordinates", self.coordinates.len(), dim), ("cells", self.cells.len(), corners)]
        {
            if !length.is_multiple_of(row) {
                return Err(MeshError::Rows { list, length, row });
            }
        }
        if self.cells.is_empty() {
            return Err(MeshError::Empty);
        }
        if let Some(vertex) = self.coordinates.iter().position(|x| !x.is_finite()) {
            return Err(MeshError::NotFinite { vertex: vertex / dim });
        }
        let n_vertices = self.n_vertices();
        if let Some(at) = self.cells.iter().position(|v| *v as usize >= n_vertices) {
            return Err(MeshError::NoSuchVertex { cell: at / corners, vertex: self.cells[at], n_vertices });
        }
        match &self.tags {
            Some(tags) if tags.len() != self.n_cells() => {
                Err(MeshError::Tags { tags: tags.len(), cells: self.n_cells() })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses cells whose maps are degenerate or change their sign.
    pub(super) fn check_maps(&self) -> Result<(), MeshError> {
        let nodes = self.geometry_element().ok().and_then(|element| element.points());
        let table = nodes.and_then(|nodes| self.geometry_table(&nodes, 1));
        let refused = |cell| self.check_cell(cell, table.as_ref()).err();
        (0..self.n_cells()).into_par_iter().find_map_first(refused).map_or(Ok(()), Err)
    }

    /// `table` is that of the geometry at its nodes; none if cells are affine.
    fn check_cell(&self, cell: usize, table: Option<&ElementTable>) -> Result<(), MeshError> {
        let longest = self.longest_edge(cell);
        let bound = DEGENERATE * longest.powi(self.shape.dim() as i32);
        let Some(table) = table else {
            return check_determinant(cell, self.determinant(cell), bound, longest);
        };
        let determinants = self.determinants(cell, table);
        let sign = determinants.first().copied().unwrap_or_default().signum();
        for determinant in determinants {
            check_determinant(cell, determinant, bound, longest)?;
            if determinant.signum() != sign {
                return Err(MeshError::InsideOut { cell });
            }
        }
        Ok(())
    }

    /// Refuses two cells on one side of a facet: a cell given twice, or a fold.
    fn check_facets(&self) -> Result<(), MeshError> {
        let cells = (0..self.n_cells()).into_par_iter();
        let negative: Vec<bool> = cells.map(|cell| self.determinant(cell) < 0.0).collect();
        let facets = self.shape.facets();
        let outward: Vec<bool> = (0..facets.len()).map(|i| self.shape.facet_is_outward(i)).collect();
        let is_outward = |side: &Occurrence| {
            let (cell, facet) = (side.cell as usize, side.number as usize);
            let (vertices, mut own) = (self.cell(cell), [0; 4]);
            own.iter_mut().zip(facets[facet]).for_each(|(own, v)| *own = vertices[*v]);
            let mirrored = is_mirrored(&own[..facets[facet].len()]);
            outward[facet] ^ mirrored ^ negative[cell]
        };
        let overlap = |sides: &[Occurrence]| {
            let of = |wanted| sides.iter().filter(move |side| is_outward(side) == wanted);
            let pair = |wanted| Some([of(wanted).next()?.cell, of(wanted).nth(1)?.cell]);
            pair(false).or_else(|| pair(true))
        };
        match self.of_facets(overlap).first() {
            Some([other, cell]) => Err(MeshError::Overlap { cell: *cell as usize, other: *other as usize }),
            None => Ok(()),
        }
    }

    fn longest_edge(&self, cell: usize) -> f64 {
        let vertices = self.cell(cell);
        let length = |edge: &&[usize]| {
            let ends = self.vertex(vertices[edge[0]]).iter().zip(self.vertex(vertices[edge[1]]));
            ends.map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
        };
        self.shape.edges().iter().map(length).fold(0.0, f64::max)
    }
}

fn check_determinant(cell: usize, determinant: f64, bound: f64, longest: f64) -> Result<(), MeshError> {
    // Not a number: coordinates so large that the products overflow.
    if determinant.is_nan() || determinant.abs() <= bound {
        return Err(MeshError::Degenerate { cell, determinant, longest_edge: longest });
    }
    Ok(())
}
