//! Meshes of quadrilaterals or hexahedra that are mapped boxes: cells in rows, columns and layers.

use crate::mesh::DeformedMesh;
use crate::{Dimension, MultigridError};
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;

/// A mesh whose cells lie in rows, columns and layers, such as that of a Gmsh file, in any order
/// and with vertices numbered anyhow.
///
/// Every vertex has as many cells around it as in a box. So vertex patches have two cells a side,
/// and the patches of a colour share no node.
#[derive(Clone, Debug)]
pub struct MappedBox<'m> {
    mesh: &'m Mesh,
    dimension: Dimension,
    counts: Vec<usize>,
    /// The cell of each place, the first axis fastest.
    cells: Vec<Placed>,
}

/// A cell of the mesh, turned as the box is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placed {
    cell: usize,
    /// The cell's own vertex at the corner where all coordinates in the box are least.
    first: usize,
    /// The cell's own axis along each axis of the box.
    axes: [usize; 3],
}

impl Placed {
    /// The cell's own vertex at a corner, bit `a` of which is its place along axis `a` of the box.
    fn local(&self, corner: usize) -> usize {
        (0..3).filter(|a| corner >> a & 1 == 1).fold(self.first, |vertex, a| vertex ^ (1 << self.axes[a]))
    }

    fn vertex(&self, mesh: &Mesh, corner: usize) -> u32 {
        mesh.cell(self.cell)[self.local(corner)]
    }
}

impl<'m> MappedBox<'m> {
    /// Finds the place of each cell. The box begins at the corner whose coordinates have the least
    /// sum, and its axes point along those of space as far as they can.
    ///
    /// # Errors
    /// Cells that are no quadrilaterals or hexahedra; a vertex with another number of cells around
    /// it than those of a box have; cells that do not fill a box.
    pub fn of(mesh: &'m Mesh) -> Result<Self, MultigridError> {
        let dimension = match mesh.shape() {
            CellShape::Quadrilateral => Dimension::Two,
            CellShape::Hexahedron => Dimension::Three,
            shape @ (CellShape::Interval
            | CellShape::Triangle
            | CellShape::Tetrahedron
            | CellShape::Prism
            | CellShape::Pyramid) => {
                return Err(MultigridError::MeshCells { found: shape.to_string() });
            }
        };
        let around = cells_around(mesh);
        check_vertices(mesh, &around)?;
        let neighbours = neighbours(mesh);
        let start = start(mesh, &around)?;
        let places = walk(mesh, &neighbours, start)?;
        let axes = dimension.axes();
        let counts: Vec<usize> =
            (0..axes).map(|a| 1 + places.iter().map(|(place, _)| place[a]).max().unwrap_or(0)).collect();
        let mut cells = vec![None; mesh.n_cells()];
        for (place, placed) in places {
            let at = (0..axes).rev().fold(0, |at, a| at * counts[a] + place[a]);
            match cells.get_mut(at) {
                Some(free @ None) => *free = Some(placed),
                Some(Some(_)) | None => return Err(no_box(mesh, placed.cell)),
            }
        }
        let cells: Option<Vec<Placed>> = cells.into_iter().collect();
        let cells = cells.filter(|cells| cells.len() == counts.iter().product::<usize>());
        let found = Self { mesh, dimension, counts, cells: cells.ok_or_else(|| no_box(mesh, start.cell))? };
        found.check_corners()?;
        Ok(found)
    }

    /// Cells along each axis of the box.
    #[must_use]
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The dimension.
    #[must_use]
    pub const fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// The mesh with `cells` cells along each axis: each cell is divided evenly in its own
    /// coordinates, along each axis as often as that takes. Vertices lie where the map of the cell
    /// has them, curved or not.
    ///
    /// # Errors
    /// A number of cells that those of the mesh do not divide; as [`DeformedMesh::new`].
    pub fn refined(&self, cells: usize) -> Result<DeformedMesh, MultigridError> {
        if self.counts.iter().any(|count| !cells.is_multiple_of(*count)) || cells == 0 {
            return Err(MultigridError::BoxCells { cells, counts: self.counts.clone() });
        }
        crate::mesh::check_size(self.dimension, cells)?;
        let axes = self.dimension.axes();
        let parts: Vec<usize> = self.counts.iter().map(|count| cells / count).collect();
        let digits = |mut at: usize, of: &dyn Fn(usize) -> usize| -> Vec<usize> {
            (0..axes).map(|a| (at % of(a), at /= of(a)).0).collect()
        };
        let in_layer: usize = parts[..axes - 1].iter().map(|p| p + 1).product();
        let element = self.mesh.geometry_element()?;
        let mut vertices = vec![0.0; axes * (cells + 1).pow(axes as u32)];
        let layers =
            self.cells.iter().enumerate().flat_map(|cell| (0..=parts[axes - 1]).map(move |l| (cell, l)));
        // layer by layer, so that tables are small compared with the vertices
        for ((place, placed), layer) in layers {
            let place = digits(place, &|a| self.counts[a]);
            let mut points: Vec<Vec<usize>> =
                (0..in_layer).map(|point| digits(point, &|a| parts[a] + 1)).collect();
            points.iter_mut().for_each(|point| point[axes - 1] = layer);
            let mut reference = vec![0.0; axes * points.len()];
            for (at, point) in points.iter().enumerate() {
                for a in 0..axes {
                    let (own, along) = (placed.axes[a], point[a] as f64 / parts[a] as f64);
                    let is_last = placed.first >> own & 1 == 1;
                    reference[axes * at + own] = if is_last { 1.0 - along } else { along };
                }
            }
            let table = element.tabulate(&reference, 0)?;
            for (at, point) in points.iter().enumerate() {
                let vertex = (0..axes).rev().fold(0, |v, a| v * (cells + 1) + place[a] * parts[a] + point[a]);
                let found = &mut vertices[axes * vertex..axes * (vertex + 1)];
                found.fill(0.0);
                for (dof, node) in self.mesh.cell_nodes(placed.cell).iter().enumerate() {
                    let of_node = &self.mesh.nodes()[axes * *node as usize..];
                    let value = table.value(0, at, dof, 0);
                    found.iter_mut().zip(of_node).for_each(|(x, y)| *x += value * y);
                }
            }
        }
        DeformedMesh::new(self.dimension, cells, vertices)
    }

    /// Shows that cells of the box that share a corner share the vertex there, and no others.
    fn check_corners(&self) -> Result<(), MultigridError> {
        let axes = self.dimension.axes();
        let mut of_corners = vec![None; self.counts.iter().map(|n| n + 1).product()];
        let mut of_vertices = vec![None; self.mesh.n_vertices()];
        for (at, placed) in self.cells.iter().enumerate() {
            for corner in 0..1_usize << axes {
                let mut rest = at;
                let (mut place, mut stride) = (0, 1);
                for a in 0..axes {
                    place += (rest % self.counts[a] + (corner >> a & 1)) * stride;
                    rest /= self.counts[a];
                    stride *= self.counts[a] + 1;
                }
                let vertex = placed.vertex(self.mesh, corner);
                let known = of_corners[place].get_or_insert(vertex);
                let there = of_vertices[vertex as usize].get_or_insert(place);
                if *known != vertex || *there != place {
                    return Err(no_box(self.mesh, placed.cell));
                }
            }
        }
        Ok(())
    }
}

/// Cells at each vertex, and whether it lies on the boundary.
fn cells_around(mesh: &Mesh) -> Vec<(usize, bool)> {
    let mut around = vec![(0, false); mesh.n_vertices()];
    mesh.cells().iter().for_each(|vertex| around[*vertex as usize].0 += 1);
    for facet in mesh.facets().iter().filter(|facet| facet.other.is_none()) {
        let vertices = mesh.shape().facets()[usize::from(facet.side.facet)];
        for local in vertices {
            around[mesh.cell(facet.side.cell as usize)[*local] as usize].1 = true;
        }
    }
    around
}

/// Refuses a vertex that no box has.
fn check_vertices(mesh: &Mesh, around: &[(usize, bool)]) -> Result<(), MultigridError> {
    let inside = mesh.shape().n_vertices();
    for (vertex, (cells, on_boundary)) in around.iter().enumerate() {
        let is_right = match on_boundary {
            true => cells.is_power_of_two() && *cells < inside,
            false => *cells == inside || *cells == 0, // a vertex of no cell
        };
        if !is_right {
            return Err(MultigridError::IrregularVertex {
                place: mesh.vertex(vertex as u32).to_vec(),
                cells: *cells,
                on_boundary: *on_boundary,
                needed: inside,
            });
        }
    }
    Ok(())
}

/// The other cell at each facet of each cell.
fn neighbours(mesh: &Mesh) -> Vec<Vec<Option<usize>>> {
    let facets = mesh.shape().facets().len();
    let mut neighbours = vec![vec![None; facets]; mesh.n_cells()];
    for facet in mesh.facets() {
        if let Some(other) = facet.other {
            for (one, two) in [(facet.side, other), (other, facet.side)] {
                neighbours[one.cell as usize][usize::from(one.facet)] = Some(two.cell as usize);
            }
        }
    }
    neighbours
}

/// The cell at the corner that the box begins at.
fn start(mesh: &Mesh, around: &[(usize, bool)]) -> Result<Placed, MultigridError> {
    let axes = mesh.shape().dim();
    let is_corner = |vertex: &u32| around[*vertex as usize].0 == 1;
    let sum = |vertex: u32| mesh.vertex(vertex).iter().sum::<f64>();
    let corner = mesh.cells().iter().copied().enumerate().filter(|(_, vertex)| is_corner(vertex));
    let first = corner.min_by(|(_, a), (_, b)| sum(*a).total_cmp(&sum(*b)));
    let (at, _) = first.ok_or_else(|| no_box(mesh, 0))?;
    let (cell, first) = (at / mesh.shape().n_vertices(), at % mesh.shape().n_vertices());
    let orders: &[[usize; 3]] = match axes {
        2 => &[[0, 1, 2], [1, 0, 2]],
        _ => &[[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [2, 1, 0], [1, 0, 2]],
    };
    let turned = |axes: &[usize; 3]| Placed { cell, first, axes: *axes };
    let edges = |placed: &Placed| -> Vec<Vec<f64>> {
        let origin = mesh.vertex(placed.vertex(mesh, 0));
        let edge = |a: usize| {
            let end = mesh.vertex(placed.vertex(mesh, 1 << a));
            let edge: Vec<f64> = end.iter().zip(origin).map(|(x, y)| x - y).collect();
            let length = edge.iter().map(|x| x * x).sum::<f64>().sqrt();
            edge.iter().map(|x| x / length).collect()
        };
        (0..axes).map(edge).collect()
    };
    let along = |placed: &Placed| edges(placed).iter().enumerate().map(|(a, edge)| edge[a]).sum::<f64>();
    let is_right_handed = |placed: &Placed| {
        let e = edges(placed);
        let minor = |i: usize, j: usize| e[0][i] * e[1][j] - e[0][j] * e[1][i];
        let volume = match e.get(2) {
            None => minor(0, 1),
            Some(e) => minor(1, 2) * e[0] + minor(2, 0) * e[1] + minor(0, 1) * e[2],
        };
        volume > 0.0
    };
    let right_handed = orders.iter().map(turned).filter(is_right_handed);
    right_handed.max_by(|a, b| along(a).total_cmp(&along(b))).ok_or_else(|| no_box(mesh, cell))
}

/// The place of each cell, from that of the first one on, facet by facet.
fn walk(
    mesh: &Mesh,
    neighbours: &[Vec<Option<usize>>],
    start: Placed,
) -> Result<Vec<([usize; 3], Placed)>, MultigridError> {
    let axes = mesh.shape().dim();
    let mut places: Vec<Option<([usize; 3], Placed)>> = vec![None; mesh.n_cells()];
    places[start.cell] = Some(([0; 3], start));
    let mut queue = vec![([0; 3], start)];
    while let Some((place, placed)) = queue.pop() {
        for (axis, side) in (0..axes).flat_map(|axis| [(axis, 0), (axis, 1)]) {
            let Some(cell) = neighbours[placed.cell][facet(mesh.shape(), &placed, axis, side)] else {
                continue;
            };
            let mut next: [usize; 3] = place;
            let refused = || no_box(mesh, cell);
            next[axis] =
                if side == 1 { place[axis] + 1 } else { place[axis].checked_sub(1).ok_or_else(refused)? };
            let turned = beside(mesh, &placed, (axis, side), cell).ok_or_else(refused)?;
            match places[cell] {
                Some(known) if known == (next, turned) => {}
                Some(_) => return Err(refused()),
                None => {
                    places[cell] = Some((next, turned));
                    queue.push((next, turned));
                }
            }
        }
    }
    let alone = places.iter().position(Option::is_none);
    let all: Option<Vec<_>> = places.into_iter().collect();
    all.ok_or_else(|| no_box(mesh, alone.unwrap_or(0)))
}

/// The facet of a cell at one side along an axis of the box.
fn facet(shape: CellShape, placed: &Placed, axis: usize, side: usize) -> usize {
    let own = placed.axes[axis];
    let bit = placed.first >> own & 1 ^ side;
    let lies_there = |facet: &[usize]| facet.iter().all(|vertex| vertex >> own & 1 == bit);
    shape.facets().iter().position(|facet| lies_there(facet)).unwrap_or(0)
}

/// The cell after a facet of another, turned as that one; none if they share no facet so.
fn beside(mesh: &Mesh, placed: &Placed, (axis, side): (usize, usize), cell: usize) -> Option<Placed> {
    let axes = mesh.shape().dim();
    let own = |corner: usize| {
        let vertex = placed.vertex(mesh, corner);
        mesh.cell(cell).iter().position(|other| *other == vertex)
    };
    // the corner of the facet with the least coordinates, and its neighbours
    let corner = side << axis;
    let at = own(corner)?;
    let mut found = Placed { cell, first: at, axes: [0, 1, 2] };
    for other in (0..axes).filter(|other| *other != axis) {
        let step = own(corner | 1 << other)? ^ at;
        found.axes[other] = step.is_power_of_two().then(|| step.trailing_zeros() as usize)?;
    }
    let is_free = |own: &usize| (0..axes).all(|other| other == axis || found.axes[other] != *own);
    found.axes[axis] = (0..axes).find(is_free)?;
    if side == 0 {
        found.first ^= 1 << found.axes[axis];
    }
    Some(found)
}

fn no_box(mesh: &Mesh, cell: usize) -> MultigridError {
    let corner = mesh.cell(cell).first().map_or(&[][..], |vertex| mesh.vertex(*vertex));
    MultigridError::NoBox { place: corner.to_vec() }
}
