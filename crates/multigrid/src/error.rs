//! What can go wrong.

use crate::operation::{Operation, Variant};
use kingpost_capacity::OutOfMemory;
use kingpost_codegen::CodegenError;
use kingpost_fem::element::ElementError;
use kingpost_fem::quadrature::QuadratureError;
use kingpost_ir::text::ParseErrors;
use kingpost_primitives::TransformError;
use kingpost_runtime::RuntimeError;
use kingpost_solve::SolveError;

/// Why there is no hierarchy, or no solution.
#[derive(Debug, thiserror::Error)]
pub enum MultigridError {
    /// A degree that there is no element of.
    #[error("elements of degree {degree}: needed a degree from 1 to {highest}")]
    Degree {
        /// What was asked for.
        degree: usize,
        /// The highest there is.
        highest: usize,
    },
    /// Cells that do not halve down to two a side.
    #[error("{cells} cells a side do not nest: needed a power of two, at least 2, such as {nearest}")]
    Cells {
        /// What was asked for.
        cells: usize,
        /// A number that suits.
        nearest: usize,
    },
    /// A vector that is not of the finest level.
    #[error("a right-hand side of {found} values, needed one for each of the {needed} nodes")]
    Length {
        /// Its values.
        found: usize,
        /// Nodes of the finest level.
        needed: usize,
    },
    /// Nodes or points that do not lie in rows.
    #[error("the {of} of {element} do not lie in rows, columns and layers: needed those of squares or cubes")]
    NoRows {
        /// `nodes` or `points`.
        of: String,
        /// The family of the element.
        element: String,
    },
    /// An entry of a table that is no product over the axes.
    #[error(
        "{} at point {point} is {found}: needed {needed}, the product of those along each axis",
        .function.map_or("the weight".to_owned(), |function| format!("function {function} or a derivative"))
    )]
    NoProduct {
        /// The point of the rule.
        point: usize,
        /// The function of the basis; none of weights.
        function: Option<usize>,
        /// The entry.
        found: f64,
        /// The product.
        needed: f64,
    },
    /// There is no such rule.
    #[error(transparent)]
    Quadrature(#[from] QuadratureError),
    /// Another number of coordinates than the mesh has.
    #[error("{found} coordinates of vertices, needed {needed}")]
    Vertices {
        /// What was given.
        found: usize,
        /// Vertices times the dimension.
        needed: usize,
    },
    /// Another number of values of the coefficient than the mesh has corners of cells.
    #[error("{found} values of the coefficient, needed {needed}, one for each corner of each cell")]
    Coefficients {
        /// What was given.
        found: usize,
        /// Cells times their corners.
        needed: usize,
    },
    /// A coefficient for which the problem has no solution, or none that is unique.
    #[error("the coefficient is {value} at corner {corner} of cell {cell:?}: needed a positive number")]
    Coefficient {
        /// The cell by its place along each axis.
        cell: Vec<usize>,
        /// The corner, bit `a` its place along axis `a`.
        corner: usize,
        /// The value.
        value: f64,
    },
    /// A cell that is turned inside out, or that cannot be shown not to be.
    #[error(
        "cell {cell:?} of the mesh with {cells} cells a side is not shown to keep its orientation: its Jacobian's \
         determinant, or a bound of it from below, is {determinant}; move its vertices less"
    )]
    Inverted {
        /// Cells a side of the mesh, which may be a coarser one of a hierarchy.
        cells: usize,
        /// The cell by its place along each axis.
        cell: Vec<usize>,
        /// The determinant at a point, or a Bernstein coefficient of it.
        determinant: f64,
    },
    /// A smoother that there is not on a deformed mesh.
    #[error("the smoother `{0:?}` on a deformed mesh: needed patches by fast diagonalisation")]
    DeformedSmoother(Variant),
    /// A mesh of another dimension than the elements.
    #[error("a mesh in {found} dimensions, and elements in {needed}")]
    MeshDimension {
        /// Of the mesh.
        found: usize,
        /// Of the elements.
        needed: usize,
    },
    /// A mesh whose indices do not fit.
    #[error(
        "a deformed mesh with {cells} cells a side: needed at most 2147483647 coordinates and corners of cells"
    )]
    MeshSize {
        /// Cells a side.
        cells: usize,
    },
    /// A mesh of cells that have no tensor-product elements.
    #[error("a mesh with cells of the shape {found}: needed quadrilateral or hexahedron")]
    MeshCells {
        /// The shape.
        found: String,
    },
    /// A vertex with another number of cells around it than in a box.
    #[error(
        "the vertex at {place:?} has {cells} cells around it, {}: needed a mesh in rows, columns and layers, \
         with {} there",
        if *.on_boundary { "on the boundary" } else { "inside" },
        if *.on_boundary { format!("a power of two below {needed}") } else { needed.to_string() }
    )]
    IrregularVertex {
        /// Its coordinates.
        place: Vec<f64>,
        /// Cells that have it as a vertex.
        cells: usize,
        /// Whether it lies on the boundary.
        on_boundary: bool,
        /// Cells around a vertex inside.
        needed: usize,
    },
    /// Cells that fill no box.
    #[error(
        "the cell with a vertex at {place:?} has no place in rows, columns and layers of cells: needed a mesh in \
         one piece that is a mapped square or cube"
    )]
    NoBox {
        /// The coordinates of its first vertex.
        place: Vec<f64>,
    },
    /// Cells a side that those of a mesh do not divide.
    #[error(
        "{} cells of the mesh along its axes do not divide into {cells} a side: needed numbers that divide it",
        .counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ")
    )]
    BoxCells {
        /// What was asked for.
        cells: usize,
        /// Cells of the mesh along each axis.
        counts: Vec<usize>,
    },
    /// The maps of cells cannot be evaluated.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// A term of a force that does not suit the dimension.
    #[error(
        "a force along axis {component}, a product of functions of {coordinates} coordinates: needed an axis \
         below {axes} and {axes} functions"
    )]
    Source {
        /// The axis.
        component: usize,
        /// Functions of the term.
        coordinates: usize,
        /// The dimension.
        axes: usize,
    },
    /// Integrals on a mesh without a deformed mesh.
    #[error("a source by its values at the nodes: needed a solver on a deformed mesh")]
    NoMesh,
    /// A mesh does not fit in the memory of the host.
    #[error(transparent)]
    Host(#[from] OutOfMemory),
    /// The vectors do not fit.
    #[error(
        "the vectors take {needed} bytes, and `{device}` has {available}; take fewer cells or a lower degree"
    )]
    Memory {
        /// Bytes of all vectors.
        needed: u64,
        /// Bytes of the device.
        available: u64,
        /// The device.
        device: String,
    },
    /// Slabs that are none, or that do not nest.
    #[error(
        "{layers} layers of {cells} cells a side in {parts} slabs: needed an even number of layers each, such as \
         in {nearest} slabs"
    )]
    Slabs {
        /// Cells a side.
        cells: usize,
        /// Layers of cells.
        layers: usize,
        /// What was asked for.
        parts: usize,
        /// A number of slabs that suits.
        nearest: usize,
    },
    /// An operation that slabs do not have.
    #[error("bug of kingpost: `{0:?}` is no operation on a slab")]
    NoSlab(Operation),
    /// A cycle that smooths nowhere.
    #[error("0 smoothing steps before the coarser level and 0 after it: needed one of them at least")]
    NoSteps,
    /// A polynomial of degree 0.
    #[error("a polynomial of degree 0 smooths nothing: needed a degree of at least 1")]
    NoPolynomial,
    /// Points all at once.
    #[error("point Gauss–Seidel takes one node after the other: needed patches for an additive smoother")]
    AdditivePoints,
    /// Tiles of matrix instructions do not suit.
    #[error(
        "matrix instructions for {0}: needed the fused kernel in double precision, three dimensions, a degree of \
         2, 3, 5, 6 or 7, and sub-groups that share its planes, 8 or 16, in pairs"
    )]
    NoTiles(String),
    /// A matrix has no factors; mass matrices are positive definite.
    #[error("bug of kingpost: the mass matrix of degree {0} is not positive definite")]
    NotPositive(usize),
    /// A text is no kernel.
    #[error("bug of kingpost: {0}")]
    Kernel(#[from] ParseErrors),
    /// A step is refused.
    #[error("bug of kingpost: {0}")]
    Step(#[from] TransformError),
    /// A kernel has no code, as where its local arrays do not fit.
    #[error(transparent)]
    Code(#[from] CodegenError),
    /// The solver around the cycles refuses.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The device refuses.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}
