//! Reference cells: their vertices, edges and faces in one fixed order.

mod orbits;

pub use orbits::orbits_of_points;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reference cell: the unit simplex with one vertex at the origin and one at the end of each
/// axis, the unit square or cube, the unit triangle times the unit interval, or the unit square with
/// an apex over the origin.
///
/// Sub-entities are lists of vertices in ascending order. Entity `i` of the highest proper
/// dimension of a simplex is the one that does not hold vertex `i`. Vertices of a square or cube
/// are numbered with the first coordinate fastest.
///
/// # Source
/// The reference cells and numbering of basix (Scroggs et al. 2022).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellShape {
    /// Vertices (0), (1).
    Interval,
    /// Vertices (0,0), (1,0), (0,1).
    Triangle,
    /// Vertices (0,0,0), (1,0,0), (0,1,0), (0,0,1).
    Tetrahedron,
    /// Vertices (0,0), (1,0), (0,1), (1,1).
    Quadrilateral,
    /// Vertices (0,0,0), (1,0,0), (0,1,0), (1,1,0), and the same with third coordinate 1.
    Hexahedron,
    /// Vertices (0,0,0), (1,0,0), (0,1,0), and the same with third coordinate 1: three squares
    /// between two triangles.
    Prism,
    /// Vertices (0,0,0), (1,0,0), (0,1,0), (1,1,0), (0,0,1): a square and four triangles.
    Pyramid,
}

type Entities = &'static [&'static [usize]];

const VERTICES: Entities = &[&[0], &[1], &[2], &[3], &[4], &[5], &[6], &[7]];
const INTERVAL_CELL: Entities = &[&[0, 1]];
const TRIANGLE_EDGES: Entities = &[&[1, 2], &[0, 2], &[0, 1]];
const TRIANGLE_CELL: Entities = &[&[0, 1, 2]];
const TETRAHEDRON_EDGES: Entities = &[&[2, 3], &[1, 3], &[1, 2], &[0, 3], &[0, 2], &[0, 1]];
const TETRAHEDRON_FACES: Entities = &[&[1, 2, 3], &[0, 2, 3], &[0, 1, 3], &[0, 1, 2]];
const TETRAHEDRON_CELL: Entities = &[&[0, 1, 2, 3]];
const QUADRILATERAL_EDGES: Entities = &[&[0, 1], &[0, 2], &[1, 3], &[2, 3]];
const QUADRILATERAL_CELL: Entities = &[&[0, 1, 2, 3]];
const HEXAHEDRON_EDGES: Entities = &[
    &[0, 1],
    &[0, 2],
    &[0, 4],
    &[1, 3],
    &[1, 5],
    &[2, 3],
    &[2, 6],
    &[3, 7],
    &[4, 5],
    &[4, 6],
    &[5, 7],
    &[6, 7],
];
const HEXAHEDRON_FACES: Entities =
    &[&[0, 1, 2, 3], &[0, 1, 4, 5], &[0, 2, 4, 6], &[1, 3, 5, 7], &[2, 3, 6, 7], &[4, 5, 6, 7]];
const HEXAHEDRON_CELL: Entities = &[&[0, 1, 2, 3, 4, 5, 6, 7]];
const PRISM_EDGES: Entities =
    &[&[0, 1], &[0, 2], &[0, 3], &[1, 2], &[1, 4], &[2, 5], &[3, 4], &[3, 5], &[4, 5]];
const PRISM_FACES: Entities = &[&[0, 1, 2], &[0, 1, 3, 4], &[0, 2, 3, 5], &[1, 2, 4, 5], &[3, 4, 5]];
const PRISM_CELL: Entities = &[&[0, 1, 2, 3, 4, 5]];
const PYRAMID_EDGES: Entities = &[&[0, 1], &[0, 2], &[0, 4], &[1, 3], &[1, 4], &[2, 3], &[2, 4], &[3, 4]];
const PYRAMID_FACES: Entities = &[&[0, 1, 2, 3], &[0, 1, 4], &[0, 2, 4], &[1, 3, 4], &[2, 3, 4]];
const PYRAMID_CELL: Entities = &[&[0, 1, 2, 3, 4]];

impl CellShape {
    /// All shapes.
    pub const ALL: [Self; 7] = [
        Self::Interval,
        Self::Triangle,
        Self::Tetrahedron,
        Self::Quadrilateral,
        Self::Hexahedron,
        Self::Prism,
        Self::Pyramid,
    ];

    /// The dimension of the cell, and of the space it lies in.
    #[must_use]
    pub const fn dim(self) -> usize {
        match self {
            Self::Interval => 1,
            Self::Triangle | Self::Quadrilateral => 2,
            Self::Tetrahedron | Self::Hexahedron | Self::Prism | Self::Pyramid => 3,
        }
    }

    /// Whether the cell is a simplex, so that a first-order map of it is affine.
    #[must_use]
    pub const fn is_simplex(self) -> bool {
        match self {
            Self::Interval | Self::Triangle | Self::Tetrahedron => true,
            Self::Quadrilateral | Self::Hexahedron | Self::Prism | Self::Pyramid => false,
        }
    }

    /// Whether the cell is a product of intervals, so that tables on it may be products of tables
    /// on a line.
    #[must_use]
    pub const fn is_product(self) -> bool {
        match self {
            Self::Interval | Self::Quadrilateral | Self::Hexahedron => true,
            Self::Triangle | Self::Tetrahedron | Self::Prism | Self::Pyramid => false,
        }
    }

    /// The number of vertices: `dim + 1` of a simplex, `2^dim` of a square or cube.
    #[must_use]
    pub const fn n_vertices(self) -> usize {
        match self {
            Self::Interval => 2,
            Self::Triangle => 3,
            Self::Tetrahedron | Self::Quadrilateral => 4,
            Self::Hexahedron => 8,
            Self::Prism => 6,
            Self::Pyramid => 5,
        }
    }

    /// The reference vertices, [vertices, dim] row-major.
    #[must_use]
    pub const fn vertices(self) -> &'static [f64] {
        match self {
            Self::Interval => &[0.0, 1.0],
            Self::Triangle => &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0],
            Self::Tetrahedron => &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            Self::Quadrilateral => &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0],
            Self::Hexahedron => &[
                0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0,
                0.0, 1.0, 1.0, 1.0, 1.0, 1.0,
            ],
            Self::Prism => {
                &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
            }
            Self::Pyramid => &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0],
        }
    }

    /// The edges as pairs of vertices, such as (1,2), (0,2), (0,1) of a triangle; the cell itself
    /// of an interval.
    #[must_use]
    pub const fn edges(self) -> Entities {
        match self {
            Self::Interval => INTERVAL_CELL,
            Self::Triangle => TRIANGLE_EDGES,
            Self::Tetrahedron => TETRAHEDRON_EDGES,
            Self::Quadrilateral => QUADRILATERAL_EDGES,
            Self::Hexahedron => HEXAHEDRON_EDGES,
            Self::Prism => PRISM_EDGES,
            Self::Pyramid => PYRAMID_EDGES,
        }
    }

    /// The faces as lists of vertices: the cell itself in two dimensions, none of an interval;
    /// (1,2,3), (0,2,3), (0,1,3), (0,1,2) of a tetrahedron.
    #[must_use]
    pub const fn faces(self) -> Entities {
        match self {
            Self::Interval => &[],
            Self::Triangle => TRIANGLE_CELL,
            Self::Tetrahedron => TETRAHEDRON_FACES,
            Self::Quadrilateral => QUADRILATERAL_CELL,
            Self::Hexahedron => HEXAHEDRON_FACES,
            Self::Prism => PRISM_FACES,
            Self::Pyramid => PYRAMID_FACES,
        }
    }

    /// The facets: the entities of dimension `dim() - 1`.
    #[must_use]
    pub const fn facets(self) -> Entities {
        self.entities(self.dim() - 1)
    }

    /// The shape of a facet; none of a vertex, and none if there is no such facet.
    #[must_use]
    pub fn facet_shape(self, facet: usize) -> Option<Self> {
        shape_of(self, self.facets().get(facet)?)
    }

    /// The entities of dimension `dim`, each as its vertices in ascending order; none above the
    /// cell's dimension.
    #[must_use]
    pub const fn entities(self, dim: usize) -> Entities {
        match (self, dim) {
            (_, 0) => VERTICES.split_at(self.n_vertices()).0,
            (_, 1) => self.edges(),
            (_, 2) => self.faces(),
            (Self::Tetrahedron, 3) => TETRAHEDRON_CELL,
            (Self::Hexahedron, 3) => HEXAHEDRON_CELL,
            (Self::Prism, 3) => PRISM_CELL,
            (Self::Pyramid, 3) => PYRAMID_CELL,
            (
                Self::Interval
                | Self::Triangle
                | Self::Tetrahedron
                | Self::Quadrilateral
                | Self::Hexahedron
                | Self::Prism
                | Self::Pyramid,
                _,
            ) => &[],
        }
    }

    /// The shape of the entities of dimension `dim`: none of vertices, and none above the cell's
    /// dimension. Of a prism's and a pyramid's faces it is that of their squares.
    #[must_use]
    pub const fn entity_shape(self, dim: usize) -> Option<Self> {
        match (dim, self) {
            (1, _) => Some(Self::Interval),
            (2, Self::Triangle | Self::Tetrahedron) => Some(Self::Triangle),
            (2, Self::Quadrilateral | Self::Hexahedron | Self::Prism | Self::Pyramid) => {
                Some(Self::Quadrilateral)
            }
            (3, Self::Tetrahedron | Self::Hexahedron | Self::Prism | Self::Pyramid) => Some(self),
            (
                _,
                Self::Interval
                | Self::Triangle
                | Self::Tetrahedron
                | Self::Quadrilateral
                | Self::Hexahedron
                | Self::Prism
                | Self::Pyramid,
            ) => None,
        }
    }

    /// The entities of dimension `dim` that have the shape [`Self::entity_shape`]: all, but of the
    /// faces of a prism or pyramid the squares.
    #[must_use]
    pub const fn entities_of_shape(self, dim: usize) -> Entities {
        match (self, dim) {
            (Self::Prism, 2) => PRISM_FACES.split_at(4).0.split_at(1).1,
            (Self::Pyramid, 2) => PYRAMID_FACES.split_at(1).0,
            (
                Self::Interval
                | Self::Triangle
                | Self::Tetrahedron
                | Self::Quadrilateral
                | Self::Hexahedron
                | Self::Prism
                | Self::Pyramid,
                _,
            ) => self.entities(dim),
        }
    }

    /// Whether all facets have one shape.
    #[must_use]
    pub const fn has_one_facet_shape(self) -> bool {
        let dim = self.dim() - 1;
        self.entities_of_shape(dim).len() == self.entities(dim).len()
    }

    /// The middle of the vertices.
    #[must_use]
    pub fn centre(self) -> Vec<f64> {
        let along = |axis| self.vertices().iter().skip(axis).step_by(self.dim()).sum::<f64>();
        (0..self.dim()).map(|axis| along(axis) / self.n_vertices() as f64).collect()
    }

    /// Whether the axes of a facet, and the normal that they define, point out of the cell: of a
    /// vertex, whether it is the end of the interval.
    #[must_use]
    pub fn facet_is_outward(self, facet: usize) -> bool {
        let dim = self.dim();
        let vertices = self.facets()[facet];
        if dim == 1 {
            return facet == 1;
        }
        let corner = |v: usize| &self.vertices()[v * dim..(v + 1) * dim];
        let normal = facet_normal(self, vertices);
        let inside = self.vertices().chunks(dim).enumerate().filter(|(v, _)| !vertices.contains(v));
        // the other vertices lie on the inner side
        let distance = |point: &[f64]| {
            let steps = point.iter().zip(corner(vertices[0])).zip(&normal);
            steps.map(|((x, origin), n)| (x - origin) * n).sum::<f64>()
        };
        inside.map(|(_, point)| distance(point)).sum::<f64>() < 0.0
    }

    /// The normal of a facet of the reference cell, out of it, and as long as the reference facet is
    /// stretched: of a simplex, minus the gradient of the barycentric coordinate of the vertex that
    /// the facet does not hold.
    #[must_use]
    pub fn outward_normal(self, facet: usize) -> Vec<f64> {
        let sign = if self.facet_is_outward(facet) { 1.0 } else { -1.0 };
        if self.dim() == 1 {
            return vec![sign];
        }
        // adding 0 turns -0 into 0
        facet_normal(self, self.facets()[facet]).into_iter().map(|x| sign * x + 0.0).collect()
    }

    /// The vertex at the end of an axis: the one whose coordinates are 1 along `axis` and else 0.
    #[must_use]
    pub const fn axis_vertex(self, axis: usize) -> usize {
        match self {
            Self::Interval | Self::Triangle | Self::Tetrahedron | Self::Prism => axis + 1,
            Self::Quadrilateral | Self::Hexahedron | Self::Pyramid => 1 << axis,
        }
    }

    /// The length, area or volume of the reference cell: 1/2 of a triangle or prism, 1/6 of a
    /// tetrahedron, 1/3 of a pyramid, else 1.
    #[must_use]
    pub const fn volume(self) -> f64 {
        match self {
            Self::Interval | Self::Quadrilateral | Self::Hexahedron => 1.0,
            Self::Triangle | Self::Prism => 0.5,
            Self::Tetrahedron => 1.0 / 6.0,
            Self::Pyramid => 1.0 / 3.0,
        }
    }

    /// The name used in messages and files, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::Triangle => "triangle",
            Self::Tetrahedron => "tetrahedron",
            Self::Quadrilateral => "quadrilateral",
            Self::Hexahedron => "hexahedron",
            Self::Prism => "prism",
            Self::Pyramid => "pyramid",
        }
    }

    /// The shape of a name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }
}

impl fmt::Display for CellShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The shape of an entity of a cell with these vertices; none of a vertex.
pub(crate) fn shape_of(cell: CellShape, vertices: &[usize]) -> Option<CellShape> {
    let of_dims = (1..=cell.dim()).filter_map(|d| cell.entity_shape(d));
    // the other faces of a prism or pyramid
    let mut all = of_dims.chain((!cell.has_one_facet_shape()).then_some(CellShape::Triangle));
    all.find(|s| s.n_vertices() == vertices.len())
}

/// The axes of an entity: from its first vertex to those at the ends of its own axes.
pub(crate) fn axes(cell: CellShape, vertices: &[usize]) -> Vec<Vec<f64>> {
    let dim = cell.dim();
    let corner = |v: usize| &cell.vertices()[v * dim..(v + 1) * dim];
    let shape = shape_of(cell, vertices);
    let n = shape.map_or(0, CellShape::dim);
    let axis = |i: usize| {
        let end = corner(vertices[shape.map_or(0, |shape| shape.axis_vertex(i))]);
        end.iter().zip(corner(vertices[0])).map(|(a, b)| a - b).collect()
    };
    (0..n).map(axis).collect()
}

/// The normal of a facet by its first vertices: as long as the facet is wide.
fn facet_normal(cell: CellShape, vertices: &[usize]) -> Vec<f64> {
    normal(&axes(cell, vertices))
}

/// The normal of a facet with these axes: as long as they are wide, to the left of an edge.
pub(crate) fn normal(axes: &[Vec<f64>]) -> Vec<f64> {
    match axes {
        [t] => vec![-t[1], t[0]],
        [a, b, ..] => {
            vec![a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        }
        [] => Vec::new(),
    }
}
