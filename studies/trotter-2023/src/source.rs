//! Where the mesh of a measurement comes from.

use kingpost::forms::mesh::{GmshError, Mesh, MeshError};
use std::fmt;
use std::path::PathBuf;

/// Where the mesh of a measurement comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Cubes of six tetrahedra each, with a given number of cubes a side of the unit cube.
    Cube(usize),
    /// A file of Gmsh's.
    File(PathBuf),
}

/// Why there is no mesh.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// No such uniform mesh.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A file that cannot be read.
    #[error(transparent)]
    File(#[from] GmshError),
}

impl Source {
    /// The mesh, as it was made.
    ///
    /// # Errors
    /// No such mesh, a file that is malformed.
    pub fn mesh(&self) -> Result<Mesh, SourceError> {
        match self {
            Self::Cube(divisions) => Ok(Mesh::unit_cube(*divisions)?),
            Self::File(path) => Ok(Mesh::read_gmsh(path)?),
        }
    }

    /// Divisions of a side; zero of a file.
    #[must_use]
    pub const fn divisions(&self) -> usize {
        match self {
            Self::Cube(divisions) => *divisions,
            Self::File(_) => 0,
        }
    }

    /// The name of the file without its folder and ending, if it is one.
    #[must_use]
    pub fn file(&self) -> Option<String> {
        match self {
            Self::Cube(_) => None,
            Self::File(path) => Some(path.file_stem().unwrap_or_default().to_string_lossy().into_owned()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cube(divisions) => write!(f, "{divisions} divisions"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}
