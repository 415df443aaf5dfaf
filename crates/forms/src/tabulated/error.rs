//! What can be wrong with a tabulated form.

use crate::form::FormError;
use kingpost_capacity::OutOfMemory;
use kingpost_fem::mesh::MeshError;
use kingpost_fem::sparse::PatternError;

/// Why a tabulated form is not read, checked, lowered or bound.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TabulatedError {
    /// The text is no JSON of the format.
    #[error("line {line}, column {column}: {message}")]
    Json {
        /// Line in the text, from 1.
        line: usize,
        /// Column in the line, from 1.
        column: usize,
        /// What the reader found.
        message: String,
    },
    /// Another version of the format.
    #[error("`kingpost_form`: found version {found}, needed {needed}; export the form again")]
    Version {
        /// The version of the text.
        found: u32,
        /// The version that is read.
        needed: u32,
    },
    /// A part of the form that does not fit the others.
    #[error("`{place}`: found {found}, needed {needed}")]
    Invalid {
        /// Path to the part, such as `integrals[0].nodes[3]`.
        place: String,
        /// What stands there.
        found: String,
        /// What would be accepted.
        needed: String,
    },
    /// Something that is correct and not supported.
    #[error("`{place}`: {what} is not supported; {hint}")]
    Unsupported {
        /// Path to the part.
        place: String,
        /// What is not supported.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// An array that an argument needs was not given, is unknown, or has another shape.
    #[error("argument `{name}`: found {found}, needed {needed}")]
    Binding {
        /// Name of the argument.
        name: String,
        /// What was given.
        found: String,
        /// What is needed.
        needed: String,
    },
    /// A mesh that the form cannot be put on.
    #[error("the mesh has {found}, needed {needed}")]
    Mesh {
        /// What the mesh has.
        found: String,
        /// What the form needs.
        needed: String,
    },
    /// A sparse matrix without such a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// There is no such unit mesh.
    #[error(transparent)]
    UnitMesh(#[from] MeshError),
    /// The machine has too little memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// Lowering refused it.
    #[error(transparent)]
    Form(#[from] FormError),
}

impl TabulatedError {
    pub(crate) fn of_json(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let whole = error.to_string();
        let end = whole.rfind(" at line ").unwrap_or(whole.len());
        Self::Json { line, column, message: whole[..end].to_owned() }
    }

    pub(crate) fn invalid(place: impl Into<String>, found: impl ToString, needed: impl Into<String>) -> Self {
        Self::Invalid { place: place.into(), found: found.to_string(), needed: needed.into() }
    }
}
