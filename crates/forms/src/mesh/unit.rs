//! The unit square and cube, split as in the experiments of document 000, section 6.2.

use super::{Mesh, MeshError};
use crate::element::CellShape;

/// 65,535² vertices can be named with 32 bits, and one number is left over for `none`.
const MAX_SQUARE: usize = 65_534;
/// 1,625³ likewise.
const MAX_CUBE: usize = 1_624;

impl Mesh {
    /// The unit square: `n` × `n` squares, each cut along its diagonal from (0,0) to (1,1) into 2 triangles.
    ///
    /// Vertices and squares are numbered with x fastest; the two triangles of a square follow each other.
    ///
    /// # Errors
    /// [`MeshError::Divisions`] if `n` is 0 or the vertices cannot be numbered with 32 bits.
    ///
    /// # Source
    /// Document 000, section 6.2: 2·n² triangles.
    pub fn unit_square(n: usize) -> Result<Self, MeshError> {
        check("square", n, MAX_SQUARE)?;
        let axis = |i: usize| i as f64 / n as f64;
        let row = (n + 1) as u32;
        let coordinates = (0..=n).flat_map(|j| (0..=n).flat_map(move |i| [axis(i), axis(j)])).collect();
        let mut cells = Vec::with_capacity(6 * n * n);
        for j in 0..n as u32 {
            for i in 0..n as u32 {
                let corner = i + row * j;
                cells.extend([corner, corner + 1, corner + row + 1]);
                cells.extend([corner, corner + row + 1, corner + row]);
            }
        }
        Ok(Self { shape: CellShape::Triangle, coordinates, cells, tags: None })
    }

    /// The unit cube: `n`³ cubes, each cut around its diagonal from (0,0,0) to (1,1,1) into 6 tetrahedra, one for each
    /// order in which a path can step along the axes (Kuhn's subdivision).
    ///
    /// Vertices and cubes are numbered with x fastest; the six tetrahedra of a cube follow each other.
    ///
    /// # Errors
    /// [`MeshError::Divisions`] if `n` is 0 or the vertices cannot be numbered with 32 bits.
    ///
    /// # Source
    /// Document 000, section 6.2: 6·n³ tetrahedra.
    pub fn unit_cube(n: usize) -> Result<Self, MeshError> {
        check("cube", n, MAX_CUBE)?;
        let axis = |i: usize| i as f64 / n as f64;
        let line = |k: usize, j: usize| (0..=n).flat_map(move |i| [axis(i), axis(j), axis(k)]);
        let coordinates = (0..=n).flat_map(|k| (0..=n).flat_map(move |j| line(k, j))).collect();
        let row = (n + 1) as u32;
        let steps = [1, row, row * row];
        let mut cells = Vec::with_capacity(24 * n * n * n);
        for k in 0..n as u32 {
            for j in 0..n as u32 {
                for i in 0..n as u32 {
                    kuhn(i + row * (j + row * k), steps, &mut cells);
                }
            }
        }
        Ok(Self { shape: CellShape::Tetrahedron, coordinates, cells, tags: None })
    }
}

fn check(domain: &'static str, n: usize, max: usize) -> Result<(), MeshError> {
    if n == 0 || n > max { Err(MeshError::Divisions { domain, n, max }) } else { Ok(()) }
}

/// The six tetrahedra of the cube with lowest corner `corner`; odd paths have two vertices swapped, so that all are
/// positively oriented.
fn kuhn(corner: u32, steps: [u32; 3], cells: &mut Vec<u32>) {
    const PATHS: [[usize; 3]; 6] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];
    let last = corner + steps[0] + steps[1] + steps[2];
    for (number, path) in PATHS.iter().enumerate() {
        let first = corner + steps[path[0]];
        let second = first + steps[path[1]];
        if number < 3 {
            cells.extend([corner, first, second, last]);
        } else {
            cells.extend([corner, first, last, second]);
        }
    }
}
