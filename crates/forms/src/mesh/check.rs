//! What a list of cells must satisfy to be a mesh.

use super::{Mesh, MeshError};

/// A cell is degenerate if the determinant of its edge vectors is at most this part of its longest
/// edge to the power of the dimension: below it, rounding in the coordinates decides the sign.
const DEGENERATE: f64 = 1e-13;

impl Mesh {
    pub(super) fn check(&self) -> Result<(), MeshError> {
        self.check_lists()?;
        for cell in 0..self.n_cells() {
            self.check_cell(cell)?;
        }
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

    fn check_cell(&self, cell: usize) -> Result<(), MeshError> {
        let determinant = self.determinant(cell);
        let longest = self.longest_edge(cell);
        let bound = DEGENERATE * longest.powi(self.shape.dim() as i32);
        // Not a number: coordinates so large that the products overflow.
        if determinant.is_nan() || determinant.abs() <= bound {
            return Err(MeshError::Degenerate { cell, determinant, longest_edge: longest });
        }
        Ok(())
    }

    /// Refuses two cells on one side of a facet: a cell given twice, or a fold.
    fn check_facets(&self) -> Result<(), MeshError> {
        let mut sides: Vec<(Side, usize)> =
            (0..self.n_cells()).flat_map(|cell| self.sides(cell).map(move |side| (side, cell))).collect();
        sides.sort_unstable();
        match sides.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(MeshError::Overlap { cell: pair[1].1, other: pair[0].1 }),
            None => Ok(()),
        }
    }

    /// The sides of the facets that a cell takes up.
    fn sides(&self, cell: usize) -> impl Iterator<Item = Side> {
        let vertices = self.cell(cell);
        let facets = self.shape.entities(self.shape.dim() - 1);
        let negative = usize::from(self.determinant(cell) < 0.0);
        // Facet i lacks vertex i, so its vertices in ascending order have the orientation (-1)^i of
        // the boundary, turned round where the determinant is negative.
        facets.iter().enumerate().map(move |(i, facet)| {
            let mut corners = [u32::MAX; 3];
            for (corner, local) in corners.iter_mut().zip(*facet) {
                *corner = vertices[*local];
            }
            let descending = |(a, b): (usize, usize)| usize::from(corners[a] > corners[b]);
            let odd =
                (i + negative + [(0, 1), (0, 2), (1, 2)].map(descending).iter().sum::<usize>()) % 2 == 1;
            corners.sort_unstable();
            (corners, odd)
        })
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

/// The ascending vertices of a facet (an edge's third is `u32::MAX`) and which of its two sides.
type Side = ([u32; 3], bool);
