//! Cells that the inputs of an imported form are on: a perturbed unit mesh, or a given one.

use crate::array::Array;
use crate::tabulated::{IntegralType, TabulatedError};
use kingpost_fem::element::{CellShape, orientation_of};
use kingpost_fem::mesh::{CellTags, CellsOfVertices, FacetSide, Mesh, Occurrence};
use kingpost_interp::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Cells by their vertices, with their geometry and tags.
pub(crate) struct Grid<'m> {
    cell: CellShape,
    /// Vertices of the cells, a row a cell.
    vertices: Cow<'m, [u32]>,
    geometry: Geometry<'m>,
}

enum Geometry<'m> {
    /// The vertices are points of a lattice, the first axis fastest.
    Lattice {
        divisions: usize,
        gdim: usize,
    },
    Mesh(&'m Mesh),
}

/// What a node of a cell is known by: the vertices of the smallest sub-entity that holds it, with
/// their weights in units of 2^-20. Cells that share the sub-entity know it by the same; nodes of
/// one element are further apart, roundings far closer.
pub(crate) type NodeKey = Vec<(u32, i64)>;

/// The orders in which axes may be walked.
fn orders(dim: usize) -> Vec<Vec<usize>> {
    match dim {
        1 => vec![vec![0]],
        2 => vec![vec![0, 1], vec![1, 0]],
        _ => vec![vec![0, 1, 2], vec![0, 2, 1], vec![1, 0, 2], vec![1, 2, 0], vec![2, 0, 1], vec![2, 1, 0]],
    }
}

/// The vertices from a corner along the axes in an order.
fn path(corner: &[usize], order: &[usize]) -> Vec<Vec<usize>> {
    let mut vertices = vec![corner.to_vec()];
    for axis in order {
        let mut next = vertices[vertices.len() - 1].clone();
        next[*axis] += 1;
        vertices.push(next);
    }
    vertices
}

/// The vertices of a square or cube, the first axis fastest.
fn block(corner: &[usize]) -> Vec<Vec<usize>> {
    let vertex = |k: usize| corner.iter().enumerate().map(|(axis, c)| c + (k >> axis & 1)).collect();
    (0..1 << corner.len()).map(vertex).collect()
}

/// The weights of the vertices of a reference cell at a point.
pub(crate) fn weights(cell: CellShape, point: &[f64]) -> Vec<f64> {
    let of_simplex = |point: &[f64]| -> Vec<f64> {
        let first = 1.0 - point.iter().sum::<f64>();
        std::iter::once(first).chain(point.iter().copied()).collect()
    };
    let of_block = |point: &[f64]| -> Vec<f64> {
        let along = |k: usize| move |(axis, x): (usize, &f64)| if k >> axis & 1 == 1 { *x } else { 1.0 - x };
        (0..1 << point.len()).map(|k| point.iter().enumerate().map(along(k)).product()).collect()
    };
    let scaled = |weights: Vec<f64>, by: f64| weights.into_iter().map(move |weight| by * weight);
    match (cell, point) {
        (CellShape::Prism, [x, y, z]) => {
            let below = of_simplex(&[*x, *y]);
            scaled(below.clone(), 1.0 - z).chain(scaled(below, *z)).collect()
        }
        (CellShape::Pyramid, [x, y, z]) => {
            let width = 1.0 - z;
            let below = if width > 0.0 { of_block(&[x / width, y / width]) } else { vec![0.0; 4] };
            scaled(below, width).chain([*z]).collect()
        }
        (CellShape::Interval | CellShape::Triangle | CellShape::Tetrahedron, _) => of_simplex(point),
        (CellShape::Quadrilateral | CellShape::Hexahedron | CellShape::Prism | CellShape::Pyramid, _) => {
            of_block(point)
        }
    }
}

/// The dimension of the entity of a cell that has as many vertices.
pub(crate) fn dim_of_support(cell: CellShape, vertices: usize) -> usize {
    let dims = (0..=cell.dim()).filter(|dim| cell.entities(*dim).iter().any(|e| e.len() == vertices));
    dims.min().unwrap_or(cell.dim())
}

/// A point of the lattice in space: moved by less than a tenth of a cell, and curved out of the
/// plane where space has more dimensions than cells.
fn moved(point: &[f64], divisions: usize, gdim: usize) -> Vec<f64> {
    let n = divisions as f64;
    let wave: f64 = point.iter().enumerate().map(|(axis, p)| (1.7 + axis as f64) * p + 0.3).sum();
    let moved = point.iter().enumerate().map(|(axis, p)| (p + 0.04 * (wave + axis as f64).sin()) / n);
    let out = (point.len()..gdim).map(|axis| 0.2 / n * (0.8 * wave + axis as f64).cos());
    moved.chain(out).take(gdim).collect()
}

impl<'m> Grid<'m> {
    /// A regular mesh of the unit interval, square or cube, its points moved smoothly so that no
    /// two cells are alike. Simplices are those of Kuhn's subdivision: one a path along the axes.
    pub(crate) fn lattice(cell: CellShape, divisions: usize, gdim: usize) -> Self {
        let (dim, divisions) = (cell.dim(), divisions.max(1));
        let corner = |k: usize| -> Vec<usize> {
            (0..dim).map(|axis| k / divisions.pow(axis as u32) % divisions).collect()
        };
        let rows = divisions.pow(dim as u32 - 1);
        // cells side by side are translates of each other, as in `Mesh::unit_cube`
        let of_row = |row: usize| {
            let row = row * divisions..(row + 1) * divisions;
            orders(dim).into_iter().flat_map(move |o| row.clone().flat_map(move |k| path(&corner(k), &o)))
        };
        let prisms = |k: usize| {
            let block = block(&corner(k));
            [0, 1, 3, 4, 5, 7, 0, 3, 2, 4, 7, 6].map(|vertex: usize| block[vertex].clone())
        };
        let cells: Vec<Vec<usize>> = match cell {
            CellShape::Interval | CellShape::Triangle | CellShape::Tetrahedron => {
                (0..rows).flat_map(of_row).collect()
            }
            CellShape::Prism => (0..rows * divisions).flat_map(prisms).collect(),
            // pyramids have no lattice: those who ask are refused before
            CellShape::Quadrilateral | CellShape::Hexahedron | CellShape::Pyramid => {
                (0..rows * divisions).flat_map(|k| block(&corner(k))).collect()
            }
        };
        let number = |v: &Vec<usize>| v.iter().rev().fold(0, |n, k| n * (divisions + 1) + k) as u32;
        let vertices: Vec<u32> = cells.iter().map(number).collect();
        Self { cell, vertices: vertices.into(), geometry: Geometry::Lattice { divisions, gdim } }
    }

    /// The cells of a mesh.
    pub(crate) fn mesh(mesh: &'m Mesh) -> Self {
        Self { cell: mesh.shape(), vertices: mesh.cells().into(), geometry: Geometry::Mesh(mesh) }
    }

    pub(crate) fn n_cells(&self) -> usize {
        self.vertices.len() / self.cell.n_vertices()
    }

    fn vertices(&self, cell: usize) -> &[u32] {
        let n = self.cell.n_vertices();
        &self.vertices[cell * n..(cell + 1) * n]
    }

    /// What nodes of the reference cell are known by in a cell.
    pub(crate) fn keys(&self, nodes: &[Vec<f64>]) -> impl Fn(usize, usize) -> NodeKey + use<'_> {
        let units = |w: f64| (w * f64::from(1 << 20)).round() as i64;
        let of_node = |node: &Vec<f64>| weights(self.cell, node).into_iter().map(units).collect();
        let weights: Vec<Vec<i64>> = nodes.iter().map(of_node).collect();
        move |cell, node| {
            let pairs = self.vertices(cell).iter().copied().zip(weights[node].iter().copied());
            let mut key: NodeKey = pairs.filter(|(_, weight)| *weight != 0).collect();
            key.sort_unstable();
            key
        }
    }

    /// The dimension of the entity that a node lies on.
    pub(crate) fn dim_of(&self, key: &NodeKey) -> usize {
        dim_of_support(self.cell, key.len())
    }

    /// The points in space of nodes of cells, `(cell, node)`.
    pub(crate) fn points(&self, nodes: &[Vec<f64>], of: &[(usize, usize)]) -> Vec<Vec<f64>> {
        match &self.geometry {
            Geometry::Lattice { divisions, gdim } => {
                let weights: Vec<Vec<f64>> = nodes.iter().map(|node| weights(self.cell, node)).collect();
                let dim = self.cell.dim();
                let place = |cell: usize, node: usize| {
                    let mut point = vec![0.0; dim];
                    for (vertex, weight) in self.vertices(cell).iter().zip(&weights[node]) {
                        for (axis, p) in point.iter_mut().enumerate() {
                            let along = *vertex as usize / (divisions + 1).pow(axis as u32) % (divisions + 1);
                            *p += weight * along as f64;
                        }
                    }
                    moved(&point, *divisions, *gdim)
                };
                of.iter().map(|(cell, node)| place(*cell, *node)).collect()
            }
            Geometry::Mesh(mesh) => {
                let flat: Vec<f64> = nodes.iter().flatten().copied().collect();
                let map = mesh.point_map(&flat);
                let place = |(cell, node): &(usize, usize)| {
                    let mut point = vec![0.0; self.cell.dim()];
                    map.place(*cell, *node, &mut point);
                    point
                };
                of.iter().map(place).collect()
            }
        }
    }

    /// The cells of a part of the mesh; all of them if no part is named.
    ///
    /// # Errors
    /// [`TabulatedError::Mesh`] if a given mesh has no such part.
    pub(crate) fn cells(&self, subdomains: &[i64]) -> Result<Vec<usize>, TabulatedError> {
        let all = 0..self.n_cells();
        let Geometry::Mesh(mesh) = self.geometry else { return Ok(all.collect()) };
        if subdomains.is_empty() {
            return Ok(all.collect());
        }
        let of = |cell: usize| mesh.tags().map_or(&[][..], |tags| tags.of(cell));
        let found: Vec<usize> = all.filter(|cell| is_in(subdomains, of(*cell).iter().copied())).collect();
        none_missing(found, "cells", subdomains, mesh.tags().map(CellTags::all).into_iter().flatten())
    }

    /// The cells and local numbers of the facets of a part of the mesh, which have a given number of cells;
    /// all of them if no part is named.
    ///
    /// # Errors
    /// As [`Grid::cells`].
    pub(crate) fn facets(
        &self,
        over: IntegralType,
        subdomains: &[i64],
    ) -> Result<Vec<Vec<(usize, usize)>>, TabulatedError> {
        let (sides, words) = match over {
            IntegralType::InteriorFacet => (2, "interior facets"),
            IntegralType::ExteriorFacet | IntegralType::Cell => (1, "boundary facets"),
        };
        let n_vertices = match self.geometry {
            Geometry::Mesh(mesh) => mesh.n_vertices(),
            Geometry::Lattice { .. } => self.vertices.iter().max().map_or(0, |last| *last as usize + 1),
        };
        let around = CellsOfVertices::new(self.cell, &self.vertices, n_vertices);
        let of_facet = |cells: &[Occurrence]| {
            let side = |at: &Occurrence| (at.cell as usize, usize::from(at.number));
            (cells.len() == sides).then(|| cells.iter().map(side).collect())
        };
        let mut found: Vec<Vec<(usize, usize)>> = around.entities(self.cell.facets(), of_facet);
        let Geometry::Mesh(mesh) = self.geometry else { return Ok(found) };
        if subdomains.is_empty() {
            return Ok(found);
        }
        // a facet has its tags by the lowest of its cells, and there may be another
        let tags = |facet: &[(usize, usize)]| -> BTreeSet<i32> {
            let side = |(cell, facet): &(usize, usize)| FacetSide { cell: *cell as u32, facet: *facet as u8 };
            facet.iter().flat_map(|at| mesh.tags_of_facet(side(at))).collect()
        };
        let all: BTreeSet<i32> = found.iter().flat_map(|facet| tags(facet)).collect();
        found.retain(|facet| is_in(subdomains, tags(facet)));
        none_missing(found, words, subdomains, all)
    }

    /// The orientation of a facet in a cell.
    pub(crate) fn state(&self, cell: usize, facet: usize) -> i32 {
        let vertices: Vec<u32> = self.cell.facets()[facet].iter().map(|k| self.vertices(cell)[*k]).collect();
        orientation_of(self.cell.facet_shape(facet), &vertices) as i32
    }

    /// The arrays of the entities that a kernel is over: `listed_cells`, or `facet_cells` and
    /// `local_facets`, with `facet_states` of interior facets.
    ///
    /// # Errors
    /// [`TabulatedError::Mesh`] if there is no entity of a subdomain.
    pub(crate) fn entities(
        &self,
        over: IntegralType,
        subdomains: &[i64],
    ) -> Result<BTreeMap<String, Array>, TabulatedError> {
        let mut arrays = BTreeMap::new();
        let facets = match over {
            IntegralType::Cell if subdomains.is_empty() => return Ok(arrays),
            IntegralType::Cell => {
                let cells: Vec<i32> = self.cells(subdomains)?.into_iter().map(|c| c as i32).collect();
                arrays.insert("listed_cells".to_owned(), Array::new([cells.len()], cells));
                return Ok(arrays);
            }
            IntegralType::ExteriorFacet | IntegralType::InteriorFacet => self.facets(over, subdomains)?,
        };
        let sides = if over == IntegralType::InteriorFacet { 2 } else { 1 };
        let shape = if sides == 1 { vec![facets.len()] } else { vec![facets.len(), 2] };
        let list = |value: &dyn Fn(usize, usize) -> i32| {
            let values: Vec<i32> = facets.iter().flatten().map(|(c, f)| value(*c, *f)).collect();
            Array { shape: shape.clone(), values: Value::from(values) }
        };
        arrays.insert("facet_cells".to_owned(), list(&|c, _| c as i32));
        arrays.insert("local_facets".to_owned(), list(&|_, f| f as i32));
        if sides == 2 {
            arrays.insert("facet_states".to_owned(), list(&|c, f| self.state(c, f)));
        }
        Ok(arrays)
    }
}

/// Whether one of the tags is that of a part: an entity with two of them is in the part once.
fn is_in(subdomains: &[i64], tags: impl IntoIterator<Item = i32>) -> bool {
    tags.into_iter().any(|tag| subdomains.contains(&tag.into()))
}

/// The entities of a part of a mesh, if there are any.
fn none_missing<T>(
    found: Vec<T>,
    what: &str,
    subdomains: &[i64],
    tags: impl IntoIterator<Item = i32>,
) -> Result<Vec<T>, TabulatedError> {
    if !found.is_empty() {
        return Ok(found);
    }
    let numbers = |list: &mut dyn Iterator<Item = i64>| {
        list.map(|n| n.to_string()).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    };
    let tags = numbers(&mut tags.into_iter().map(i64::from));
    let tags =
        if tags.is_empty() { format!("{what} without tags") } else { format!("{what} of tags {tags}") };
    let needed = format!(
        "{what} of tag {}, the subdomain of an integral; give the mesh such a physical group",
        numbers(&mut subdomains.iter().copied())
    );
    Err(TabulatedError::Mesh { found: tags, needed })
}
