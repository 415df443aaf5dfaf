//! The unit square and cube, split as in the experiments of Kulkarni & Klöckner 2025, section 6.2.

use super::{Mesh, MeshCounts, MeshError};
use crate::element::CellShape;
use kingpost_capacity::OutOfMemory;
use rayon::prelude::*;

/// 2³² - 1 vertices can be named with 32 bits, and one number is left over for `none`.
const MAX_INTERVAL: usize = u32::MAX as usize - 2;
/// 65,535² vertices can be named with 32 bits, and one number is left over for `none`.
const MAX_SQUARE: usize = 65_534;
/// 1,625³ likewise.
const MAX_CUBE: usize = 1_624;

impl Mesh {
    /// The unit interval, square or cube, whose cells have this shape.
    ///
    /// Intervals, quadrilaterals and hexahedra, like vertices, are numbered with x fastest. Prisms are two for
    /// each cube, cut as [squares](Mesh::unit_square) are; pyramids are six, whose apex is the middle of the cube.
    ///
    /// # Errors
    /// As [`Mesh::unit_square`] and [`Mesh::unit_cube`].
    pub fn unit(shape: CellShape, n: usize) -> Result<Self, MeshError> {
        match shape {
            CellShape::Interval | CellShape::Quadrilateral | CellShape::Hexahedron => {
                Self::unit_product(shape, n)
            }
            CellShape::Triangle => Self::unit_square(n),
            CellShape::Tetrahedron => Self::unit_cube(n),
            CellShape::Prism | CellShape::Pyramid => Self::unit_of_cubes(shape, n),
        }
    }

    /// The unit square: `n` × `n` squares, each cut along its diagonal from (0,0) to (1,1) into 2
    /// triangles.
    ///
    /// Vertices are numbered with x fastest. In each row of squares along x the triangles below the
    /// diagonal come first, then those above, so that consecutive cells have consecutive vertices.
    ///
    /// # Errors
    /// [`MeshError::Divisions`] if `n` is 0 or the vertices cannot be numbered with 32 bits;
    /// [`MeshError::Memory`].
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, section 6.2: 2·n² triangles.
    pub fn unit_square(n: usize) -> Result<Self, MeshError> {
        let counts = MeshCounts::unit(CellShape::Triangle, n)?;
        let (mut coordinates, mut cells) = lists(counts)?;
        let axis = |i: usize| i as f64 / n as f64;
        let row = (n + 1) as u32;
        coordinates.extend((0..=n).flat_map(|j| (0..=n).flat_map(move |i| [axis(i), axis(j)])));
        for j in 0..n as u32 {
            let corners = (0..n as u32).map(|i| i + row * j);
            cells.extend(corners.clone().flat_map(|c| [c, c + 1, c + row + 1]));
            cells.extend(corners.flat_map(|c| [c, c + row + 1, c + row]));
        }
        Ok(Self::unchecked(CellShape::Triangle, coordinates, cells, None))
    }

    /// The unit cube: `n`³ cubes, each cut around its diagonal from (0,0,0) to (1,1,1) into 6
    /// tetrahedra, one for each order in which a path can step along the axes (Kuhn's subdivision).
    ///
    /// Vertices are numbered with x fastest. In each row of cubes along x the tetrahedra of one
    /// kind follow each other, so that consecutive cells have consecutive vertices.
    ///
    /// # Errors
    /// [`MeshError::Divisions`] if `n` is 0 or the vertices cannot be numbered with 32 bits;
    /// [`MeshError::Memory`].
    ///
    /// # Source
    /// Kulkarni & Klöckner 2025, section 6.2: 6·n³ tetrahedra.
    pub fn unit_cube(n: usize) -> Result<Self, MeshError> {
        let counts = MeshCounts::unit(CellShape::Tetrahedron, n)?;
        drop(lists(counts)?); // there is memory
        let (row, axis) = (n + 1, |i: usize| i as f64 / n as f64);
        let point = |v: usize| [axis(v % row), axis(v / row % row), axis(v / (row * row))];
        let coordinates: Vec<[f64; 3]> = (0..row.pow(3)).into_par_iter().map(point).collect();
        let steps = [1, row, row * row].map(|step| step as u32);
        let cell = |k: usize| {
            let (i, number, of_row) = (k % n, k / n % PATHS.len(), k / n / PATHS.len());
            kuhn((i + row * (of_row % n + row * (of_row / n))) as u32, steps, number)
        };
        let cells: Vec<[u32; 4]> = (0..PATHS.len() * n.pow(3)).into_par_iter().map(cell).collect();
        let (coordinates, cells) = (coordinates.into_flattened(), cells.into_flattened());
        Ok(Self::unchecked(CellShape::Tetrahedron, coordinates, cells, None))
    }

    fn unit_product(shape: CellShape, n: usize) -> Result<Self, MeshError> {
        let dim = shape.dim();
        let (mut coordinates, mut cells) = lists(MeshCounts::unit(shape, n)?)?;
        let (rows, corners) = (n + 1, shape.n_vertices());
        let place = |number: usize, of: usize, axis: usize| number / of.pow(axis as u32) % of;
        for vertex in 0..rows.pow(dim as u32) {
            coordinates.extend((0..dim).map(|axis| place(vertex, rows, axis) as f64 / n as f64));
        }
        for cell in 0..n.pow(dim as u32) {
            cells.extend((0..corners).map(|corner| {
                let at = |axis: usize| (place(cell, n, axis) + (corner >> axis & 1)) * rows.pow(axis as u32);
                (0..dim).map(at).sum::<usize>() as u32
            }));
        }
        Ok(Self::unchecked(shape, coordinates, cells, None))
    }

    /// Prisms or pyramids in the cubes of the unit cube.
    fn unit_of_cubes(shape: CellShape, n: usize) -> Result<Self, MeshError> {
        let (_, mut cells) = lists(MeshCounts::unit(shape, n)?)?;
        let cubes = Self::unit_product(CellShape::Hexahedron, n)?;
        let mut coordinates = cubes.coordinates.clone();
        for cube in 0..cubes.n_cells() {
            let corners = cubes.cell(cube);
            if shape == CellShape::Prism {
                for prism in [[0, 1, 3, 4, 5, 7], [0, 3, 2, 4, 7, 6]] {
                    cells.extend(prism.map(|corner: usize| corners[corner]));
                }
                continue;
            }
            let apex = cubes.n_vertices() + cube;
            coordinates.extend(cubes.point(cube, &[0.5; 3]));
            for facet in CellShape::Hexahedron.facets() {
                cells.extend(facet.iter().map(|corner| corners[*corner]).chain([apex as u32]));
            }
        }
        Ok(Self::unchecked(shape, coordinates, cells, None))
    }

    /// Whether the unit interval (`dim` is 1), square or cube can have `n` divisions a side.
    ///
    /// # Errors
    /// [`MeshError::Divisions`] if `n` is 0 or the vertices cannot be numbered with 32 bits.
    pub fn check_divisions(dim: usize, n: usize) -> Result<(), MeshError> {
        let (domain, max) = match dim {
            1 => ("interval", MAX_INTERVAL),
            2 => ("square", MAX_SQUARE),
            _ => ("cube", MAX_CUBE),
        };
        if (1..=max).contains(&n) { Ok(()) } else { Err(MeshError::Divisions { domain, n, max }) }
    }
}

/// Empty lists with room for the coordinates of vertices and for the vertices of cells.
fn lists(counts: MeshCounts) -> Result<(Vec<f64>, Vec<u32>), MeshError> {
    counts.check()?;
    let refused = || OutOfMemory::new("the mesh", counts.bytes(), "use fewer cells");
    let length =
        |n: u64, each: usize| usize::try_from(n).ok().and_then(|n| n.checked_mul(each)).ok_or_else(refused);
    let (mut coordinates, mut cells) = (Vec::new(), Vec::new());
    coordinates
        .try_reserve_exact(length(counts.vertices, counts.shape.dim())?)
        .and(cells.try_reserve_exact(length(counts.cells, counts.shape.n_vertices())?))
        .map_err(|_| refused())?;
    Ok((coordinates, cells))
}

/// The orders in which a path can step along the axes.
const PATHS: [[usize; 3]; 6] = [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]];

/// One of the six tetrahedra of the cube with lowest corner `corner`; odd paths have two vertices
/// swapped, so that all are positively oriented.
fn kuhn(corner: u32, steps: [u32; 3], number: usize) -> [u32; 4] {
    let path = PATHS[number];
    let last = corner + steps[0] + steps[1] + steps[2];
    let first = corner + steps[path[0]];
    let second = first + steps[path[1]];
    if number < 3 { [corner, first, second, last] } else { [corner, first, last, second] }
}
