//! Why a system cannot be set up or solved; that a solver does not converge is a report, no error.

use crate::{LinearChoice, LinearMethod, PreconditionerKind};
use kingpost_codegen::CodegenError;
use kingpost_fem::element::CellShape;
use kingpost_forms::form::FormError;
use kingpost_ir::text::ParseErrors;
use kingpost_primitives::ScriptError;
use kingpost_runtime::RuntimeError;
use kingpost_strategies::MappingError;

/// Why a system cannot be set up or solved.
#[derive(Debug, thiserror::Error)]
pub enum SolveError {
    /// The form is wrong, or does not fit the mesh or the inputs.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The device refuses, or its driver fails.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A text of this crate is no kernel.
    #[error("bug of kingpost: a kernel of the solver is malformed: {0}")]
    Text(#[from] ParseErrors),
    /// A step of a schedule of this crate is refused.
    #[error("bug of kingpost: a schedule of the solver is refused: {0}")]
    Schedule(#[from] ScriptError),
    /// A kernel of this crate has no code.
    #[error("bug of kingpost: a kernel of the solver has no code: {0}")]
    Code(#[from] CodegenError),
    /// A mapping was refused.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// No mapping suits a kernel of a form.
    #[error("no mapping that was tried suits the kernel `{kernel}`; give another one")]
    Unmapped {
        /// The kernel.
        kernel: String,
    },
    /// An argument of a form that is neither on the mesh nor among the inputs.
    #[error("argument `{name}` of the form has no value; give it one")]
    Missing {
        /// Its name.
        name: String,
    },
    /// A form that has no matrix to assemble.
    #[error(
        "the form has no matrix; needed a bilinear one, lowered with the result of a strategy of assembly"
    )]
    Assembly,
    /// A vector of another length.
    #[error("`{what}` has {found} entries, needed {needed}")]
    Length {
        /// The vector.
        what: &'static str,
        /// Its entries.
        found: usize,
        /// Those that the system has.
        needed: usize,
    },
    /// A row without an entry on the diagonal.
    #[error("row {row} of the matrix has no entry on the diagonal; needed one in each row")]
    NoDiagonal {
        /// The first such row.
        row: usize,
    },
    /// A block on the diagonal that is not stored whole.
    #[error(
        "entry ({row}, {column}) of a block on the diagonal is not stored; needed blocks that are stored whole"
    )]
    NoBlock {
        /// Row of the first such entry.
        row: usize,
        /// Its column.
        column: usize,
    },
    /// A matrix whose eigenvalues are not positive.
    #[error(
        "the matrix has no positive eigenvalue among those found ({found:?}); needed a symmetric positive definite one"
    )]
    Spectrum {
        /// What was found.
        found: Vec<f64>,
    },
    /// A preconditioner that a method does not take.
    #[error("{choice}: the method takes the preconditioners `none` and `jacobi`")]
    Choice {
        /// What was asked for.
        choice: LinearChoice,
    },
    /// A preconditioner that needs whole rows, of a matrix of which half is stored.
    #[error(
        "preconditioner {preconditioner}: found the half of a symmetric matrix, needed its rows; use another \
         assembly, or the preconditioner none, jacobi or chebyshev"
    )]
    HalfOfRows {
        /// The preconditioner.
        preconditioner: PreconditionerKind,
    },
    /// A norm of residuals that a method does not judge by.
    #[error(
        "{method} judges by the residual itself; the norm of the preconditioned residual is one of the method `cg`"
    )]
    Norm {
        /// The method.
        method: LinearMethod,
    },
    /// A number among the options that means nothing.
    #[error("`{name}` is {found}; needed a finite number from 0 on")]
    Option {
        /// The option.
        name: &'static str,
        /// Its value.
        found: f64,
    },
    /// Fewer degrees of freedom than parts.
    #[error("{dofs} degrees of freedom make no {parts} parts; use fewer devices")]
    Parts {
        /// Degrees of freedom.
        dofs: usize,
        /// The parts that were asked for.
        parts: usize,
    },
    /// A part that there is none of.
    #[error("part {part} of {parts}: needed numbers from 0 to {}", .parts.saturating_sub(1))]
    NoSuchPart {
        /// Its number.
        part: usize,
        /// How many parts there are.
        parts: usize,
    },
    /// A form that parts do not apply.
    #[error("`{kernel}` on several devices: needed integrals that add to a vector")]
    PartsForm {
        /// The kernel.
        kernel: String,
    },
    /// A part that lacks a cell that an integral over facets reads.
    #[error(
        "`{kernel}` on several devices: a cell across a facet of cell {cell} is not in its part; make the parts' meshes by `PartMesh::with_neighbours`"
    )]
    NoNeighbour {
        /// The kernel.
        kernel: String,
        /// The cell, of the whole mesh.
        cell: usize,
    },
    /// An interpolation from an unknown that the coarse level has not.
    #[error("the interpolation has column {column}; needed those of {coarse} coarse unknowns, from 0 on")]
    NoCoarse {
        /// The column.
        column: i32,
        /// Coarse unknowns.
        coarse: usize,
    },
    /// An element between whose spaces there is no interpolation.
    #[error("interpolation between elements on a {shape}: needed {needed}")]
    Element {
        /// The reference cell.
        shape: CellShape,
        /// What was needed.
        needed: &'static str,
    },
    /// A solver that needs the whole matrix.
    #[error(
        "{choice} on several devices: needed `cg` or `gmres` with `none`, `jacobi`, `block-jacobi` or `amg`"
    )]
    PartsChoice {
        /// What was asked for.
        choice: LinearChoice,
    },
    /// A degree of freedom of cells that are not in a part.
    #[error("bug of kingpost: degree of freedom {dof} of a part is not on its mesh")]
    NotInPart {
        /// The degree of freedom of the whole mesh.
        dof: i32,
    },
    /// A part whose numbers no longer come.
    #[error("part {part} of the system ended before the others; its own error says why")]
    PartEnded {
        /// The part.
        part: usize,
    },
    /// Numbers of another process that do not come, or that it does not take.
    #[error("numbers of part {part}: {reason}")]
    Messages {
        /// The part.
        part: usize,
        /// What the communicator of the processes says.
        reason: String,
    },
    /// A solve before its preconditioner was made.
    #[error("bug of kingpost: a system is solved before its preconditioner is made")]
    Unprepared,
    /// A prescribed unknown that is not there, or is prescribed twice.
    #[error("unknown {unknown} is prescribed {found}, needed each of 0 to {last} at most once")]
    Prescribed {
        /// The unknown.
        unknown: i64,
        /// What is wrong.
        found: &'static str,
        /// The last unknown.
        last: usize,
    },
    /// The arrays do not fit.
    #[error(
        "{what} would take {needed} bytes, and `{place}` has {available}; use fewer cells or a lower degree"
    )]
    Memory {
        /// What was asked for.
        what: String,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that there are.
        available: u64,
        /// Where.
        place: String,
    },
}
