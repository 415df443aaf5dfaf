//! Why a Gmsh file was refused.

use super::Place;
use crate::mesh::MeshError;
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
    /// There are no elements but points.
    #[error("the file has no cells; mesh it (`gmsh -2` or `gmsh -3`) and save its elements")]
    NoCells,
    /// An element of the mesh's dimension is of a kind that is not supported.
    #[error(
        "element {element} is a {kind}; supported are lines, triangles, tetrahedra, quadrangles and hexahedra of order 1 to 4, each with all its nodes"
    )]
    Unsupported {
        /// The element's tag in the file.
        element: u64,
        /// What it is.
        kind: &'static str,
    },
    /// The cells are of several kinds.
    #[error(
        "element {element} is a {kind} and element {first} is a {first_kind}; needed cells of one kind, so mesh with one or save them in files of their own"
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
    /// A mesh of one or two dimensions leaves the first axis or the plane z = 0.
    #[error("node {node} has {axis} = {value}, but a mesh of {cells} must lie {place}")]
    NotFlat {
        /// The tag of the node.
        node: u64,
        /// The coordinate that must be 0.
        axis: char,
        /// What it is.
        value: f64,
        /// The cells of the mesh.
        cells: &'static str,
        /// Where they must lie.
        place: &'static str,
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
