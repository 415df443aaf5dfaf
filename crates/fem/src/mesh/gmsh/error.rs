//! Why a Gmsh file was refused.

use crate::element::CellShape;
use crate::mesh::MeshError;
use kingpost_capacity::OutOfMemory;
use std::fmt;
use thiserror::Error;

/// Why a Gmsh file was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GmshError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Io {
        /// The path as given.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The machine has too little memory for the file.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// Something stands where something else should.
    #[error("{place}: expected {expected}, found {found}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the format asks for.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// A section has no end.
    #[error("{place}: section `${section}` is never closed by `$End{section}`")]
    Unclosed {
        /// Where the section starts.
        place: Place,
        /// Its name.
        section: String,
    },
    /// The file is of another version or kind.
    #[error("{place}: {found} is not supported; save the mesh as MSH 4.1 or 2.2 (`gmsh -format msh41`)")]
    Format {
        /// Where.
        place: Place,
        /// What was found.
        found: String,
    },
    /// A section that holds part of the mesh in a way that is not read.
    #[error(
        "{place}: section `${section}` of MSH {version} is not supported; save nodes without parameters (`Mesh.SaveParametric = 0`) or as MSH 4.1 (`gmsh -format msh41`)"
    )]
    Section {
        /// Where.
        place: Place,
        /// Its name.
        section: String,
        /// The version of the format.
        version: &'static str,
    },
    /// There are no elements but points.
    #[error("the file has no cells; mesh it (`gmsh -2` or `gmsh -3`) and save its elements")]
    NoCells,
    /// An element of the mesh's dimension is of a kind that is not supported.
    #[error(
        "element {element} is a {kind}; supported are lines, triangles, tetrahedra, quadrangles and hexahedra of order 1 to 4, prisms and pyramids of order 1 and 2, each with all its nodes"
    )]
    Unsupported {
        /// The element's tag in the file.
        element: u64,
        /// What it is.
        kind: &'static str,
    },
    /// The cells are of several kinds.
    #[error(
        "element {element} is a {kind} and element {first} is a {first_kind}; needed cells of one kind, so mesh with one, save them in files of their own, or take `kingpost.meshes` of the Python package"
    )]
    Mixed {
        /// The first element of another kind than the first.
        element: u64,
        /// What it is.
        kind: String,
        /// The first element.
        first: u64,
        /// What that is.
        first_kind: String,
    },
    /// An element type that the manual does not list.
    #[error(
        "{place}: element type {number} is not known; save triangles, tetrahedra, quadrangles or hexahedra"
    )]
    UnknownType {
        /// Where.
        place: Place,
        /// The number found.
        number: i32,
    },
    /// Two nodes have one tag.
    #[error("node {node} is defined twice")]
    DuplicateNode {
        /// The tag.
        node: u64,
    },
    /// An element names a node that the file does not define.
    #[error("element {element} has node {node}, which the file does not define")]
    UnknownNode {
        /// The element's tag in the file.
        element: u64,
        /// The tag of the node.
        node: u64,
    },
    /// A node has a coordinate that is infinite or not a number.
    #[error("node {node} has a coordinate that is not finite")]
    NotFinite {
        /// The tag of the node.
        node: u64,
    },
    /// Lines that are not on one straight line, or a surface that curves in space.
    #[error("{}", not_flat(*node, *distance, of, *shape))]
    NotFlat {
        /// The tag of the node that is farthest off.
        node: u64,
        /// How far it is off.
        distance: f64,
        /// The nodes whose line or plane that is.
        of: Vec<u64>,
        /// The cells of the mesh.
        shape: CellShape,
    },
    /// A cell is degenerate, or overlaps another.
    #[error("element {element}: {source}")]
    Cell {
        /// The element's tag in the file.
        element: u64,
        /// What is wrong, by the number of the cell.
        source: MeshError,
    },
    /// The cells do not make a mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

fn not_flat(node: u64, distance: f64, of: &[u64], shape: CellShape) -> String {
    let cells = match shape {
        CellShape::Interval => "lines",
        CellShape::Triangle => "triangles",
        CellShape::Quadrilateral => "quadrangles",
        CellShape::Tetrahedron => "tetrahedra",
        CellShape::Hexahedron => "hexahedra",
        CellShape::Prism => "prisms",
        CellShape::Pyramid => "pyramids",
    };
    let (flat, needed) = match shape {
        CellShape::Interval => ("line", "on one straight line"),
        CellShape::Triangle
        | CellShape::Quadrilateral
        | CellShape::Tetrahedron
        | CellShape::Hexahedron
        | CellShape::Prism
        | CellShape::Pyramid => ("plane", "in one plane"),
    };
    let of: Vec<String> = of.iter().map(u64::to_string).collect();
    format!(
        "node {node} lies {distance:.3e} off the {flat} through nodes {}, but a mesh of {cells} must lie {needed}; what curves in space is for `kingpost.meshes` of the Python package, so mesh a flat part, or the volume (`gmsh -3`)",
        of.join(", ")
    )
}

/// Where in a file something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1, of a text file.
    Line(usize),
    /// A byte, counted from 0, of a binary file.
    Byte(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}
