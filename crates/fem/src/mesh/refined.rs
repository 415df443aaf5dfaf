//! Meshes with each cell divided evenly.

use super::{CellTags, EntityKey, FacetSide, FacetTag, Mesh, MeshError, entity_key};
use crate::element::CellShape;
use std::collections::HashMap;

/// The vertices of the parent in whose middle each vertex of the children lies, `[children, corners]`.
type Children = Vec<Vec<Vec<usize>>>;

/// The two vertices of each edge, or one vertex twice: Bey's rule, by which tetrahedra have at most three shapes.
const TRIANGLE: &[&[[usize; 2]]] = &[
    &[[0, 0], [0, 1], [0, 2]],
    &[[0, 1], [1, 1], [1, 2]],
    &[[0, 2], [1, 2], [2, 2]],
    &[[0, 1], [0, 2], [1, 2]],
];
const TETRAHEDRON: &[&[[usize; 2]]] = &[
    &[[0, 0], [0, 1], [0, 2], [0, 3]],
    &[[0, 1], [1, 1], [1, 2], [1, 3]],
    &[[0, 2], [1, 2], [2, 2], [2, 3]],
    &[[0, 3], [1, 3], [2, 3], [3, 3]],
    &[[0, 1], [0, 2], [0, 3], [1, 3]],
    &[[0, 1], [0, 2], [1, 2], [1, 3]],
    &[[0, 2], [0, 3], [1, 3], [2, 3]],
    &[[0, 2], [1, 2], [1, 3], [2, 3]],
];

impl Mesh {
    /// The mesh with each cell divided evenly: intervals into 2, triangles and quadrilaterals into 4, tetrahedra,
    /// hexahedra and prisms into 8. Cell `c` has the children `c * n .. (c + 1) * n`.
    ///
    /// Vertices keep their numbers, and those of edges, faces and cells come after them. Children and parts of facets
    /// have the tags of what they are a part of. Repeated, it makes at most three shapes of each tetrahedron.
    ///
    /// ```
    /// use kingpost_fem::mesh::Mesh;
    ///
    /// let mesh = Mesh::unit_square(1)?.refined()?.refined()?; // of two triangles
    /// assert_eq!((mesh.n_cells(), mesh.n_vertices(), mesh.boundary().len()), (32, 25, 16));
    /// # Ok::<(), kingpost_fem::mesh::MeshError>(())
    /// ```
    ///
    /// # Errors
    /// [`MeshError::NotRefined`] of curved cells, of pyramids, and where numbers of 32 bits do not suffice.
    ///
    /// # Source
    /// Bey 1995.
    pub fn refined(&self) -> Result<Self, MeshError> {
        let cells = self.n_cells();
        let refused = |why| Err(MeshError::NotRefined { cells, why });
        if self.curved.is_some() {
            return refused("they are curved; needed straight ones");
        }
        if self.shape == CellShape::Pyramid {
            return refused("parts of pyramids are pyramids and tetrahedra; needed cells of one shape");
        }
        let children = parts(self.shape);
        let corners = self.shape.n_vertices();
        if cells.saturating_mul(children.len() * corners) > u32::MAX as usize {
            return refused("numbers of 32 bits do not count the parts; use fewer");
        }
        let (coordinates, fine) = self.divided(&children);
        let parents = (0..cells).flat_map(|cell| std::iter::repeat_n(cell, children.len()));
        let tags: Option<CellTags> = self.tags.as_ref().map(|tags| tags.rows(parents));
        let mut mesh = Self::unchecked(self.shape, coordinates, fine, tags);
        mesh.placement.clone_from(&self.placement);
        mesh.facet_tags = self.divided_facet_tags(&children);
        Ok(mesh)
    }

    /// Coordinates and cells of the children.
    fn divided(&self, children: &Children) -> (Vec<f64>, Vec<u32>) {
        let mut coordinates = self.coordinates.clone();
        let mut known: HashMap<EntityKey, u32> = HashMap::new();
        let mut fine = Vec::with_capacity(self.cells.len() * children.len());
        for cell in 0..self.n_cells() {
            let vertices = self.cell(cell);
            // the middle of a hexahedron is that of no other cell, and has more vertices than a key
            let mut own = None;
            for of in children.iter().flatten() {
                let around = || of.iter().map(|v| vertices[*v]);
                let mut middle = || self.push_middle(around(), &mut coordinates);
                fine.push(match of.len() {
                    1 => vertices[of[0]],
                    2 | 4 => *known.entry(entity_key(around())).or_insert_with(middle),
                    _ => *own.get_or_insert_with(&mut middle),
                });
            }
        }
        (coordinates, fine)
    }

    /// Appends the middle of some vertices, and returns its number.
    fn push_middle(
        &self,
        around: impl ExactSizeIterator<Item = u32> + Clone,
        coordinates: &mut Vec<f64>,
    ) -> u32 {
        let dim = self.shape.dim();
        let number = coordinates.len() / dim;
        for axis in 0..dim {
            let sum: f64 = around.clone().map(|vertex| self.vertex(vertex)[axis]).sum();
            coordinates.push(sum / around.len() as f64);
        }
        number as u32
    }

    /// The tags of the parts of facets, by the lowest of their cells: a child of the lowest parent.
    fn divided_facet_tags(&self, children: &Children) -> Vec<FacetTag> {
        let facets = self.shape.facets();
        let is_part = |child: &[Vec<usize>], part: &[usize], whole: &[usize]| {
            part.iter().all(|corner| child[*corner].iter().all(|v| whole.contains(v)))
        };
        let mut tags = Vec::new();
        for FacetTag { side, tag } in &self.facet_tags {
            let whole = facets[side.facet as usize];
            for (place, child) in children.iter().enumerate() {
                for (facet, part) in facets.iter().enumerate() {
                    if is_part(child, part, whole) {
                        let cell = side.cell * children.len() as u32 + place as u32;
                        tags.push(FacetTag { side: FacetSide { cell, facet: facet as u8 }, tag: *tag });
                    }
                }
            }
        }
        tags.sort_unstable();
        tags
    }
}

/// The vertices of the cells that [`Mesh::refined`] makes of one, in its reference coordinates: `[children]`, each
/// [corners, dim] row-major. None of pyramids, of which it makes nothing.
///
/// ```
/// use kingpost_fem::{element::CellShape, mesh::children};
///
/// assert_eq!(children(CellShape::Interval), Some(vec![vec![0.0, 0.5], vec![0.5, 1.0]]));
/// ```
#[must_use]
pub fn children(shape: CellShape) -> Option<Vec<Vec<f64>>> {
    let dim = shape.dim();
    let middle = |around: &Vec<usize>| -> Vec<f64> {
        let along = |axis: usize| around.iter().map(|v| shape.vertices()[v * dim + axis]).sum::<f64>();
        (0..dim).map(|axis| along(axis) / around.len() as f64).collect()
    };
    let all: Vec<Vec<f64>> =
        parts(shape).iter().map(|child| child.iter().flat_map(middle).collect()).collect();
    Some(all).filter(|all| !all.is_empty())
}

fn parts(shape: CellShape) -> Children {
    let of_pairs = |children: &[&[[usize; 2]]]| {
        let vertices = |[a, b]: &[usize; 2]| if a == b { vec![*a] } else { vec![*a, *b] };
        children.iter().map(|child| child.iter().map(vertices).collect()).collect()
    };
    match shape {
        CellShape::Triangle => of_pairs(TRIANGLE),
        CellShape::Tetrahedron => of_pairs(TETRAHEDRON),
        // those of the triangle, in the lower half and in the upper one
        CellShape::Prism => {
            let at = |around: &[usize], ends: &[usize]| {
                ends.iter().flat_map(|end| around.iter().map(move |v| v + 3 * end)).collect()
            };
            let layer = |[low, high]: [&'static [usize]; 2]| {
                let of = move |ends: &'static [usize], child: &[Vec<usize>]| -> Vec<Vec<usize>> {
                    child.iter().map(|around| at(around, ends)).collect()
                };
                let both = move |child: &Vec<Vec<usize>>| [of(low, child), of(high, child)].concat();
                parts(CellShape::Triangle).iter().map(both).collect::<Vec<_>>()
            };
            [layer([&[0], &[0, 1]]), layer([&[0, 1], &[1]])].concat()
        }
        CellShape::Pyramid => Vec::new(), // refused
        // one at each vertex: its vertex `j` is in the middle of those that differ from it along the axes along which
        // `j` does
        CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron => {
            let n = shape.n_vertices();
            let around = |at: usize, j: usize| -> Vec<usize> {
                (0..n).filter(|v| (v ^ at) & !(at ^ j) == 0).collect()
            };
            (0..n).map(|at| (0..n).map(|j| around(at, j)).collect()).collect()
        }
    }
}
