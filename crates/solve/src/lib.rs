//! Sparse systems on a device: matrices that are assembled there, and solvers that stay there.
//!
//! A product on top of the engine: every kernel is a text with a schedule, or is lowered from a
//! form, so that the same runs on CUDA, OpenCL and C. Between [setup](Newton::new) and result the
//! host reads norms, and copies nothing else ([`Traffic`](kingpost_runtime::Traffic) counts).
//!
//! | what | where |
//! |---|---|
//! | kernels of a form with their arrays on a device | [`DeviceForm`] |
//! | the matrix of a bilinear form | [`CsrOperator`], assembled by a [`MatrixAssembly`]; of blocks [`BlockCsrOperator`] |
//! | its pattern, found on the device | [`FoundPattern`], of one map [`DevicePattern`], by [`PatternKernels`] |
//! | how it is assembled | [`AssemblyStrategy`] |
//! | prescribed values | [`Constraints`] |
//! | what solvers multiply by | [`Operator`]: a matrix, or a form applied ([`FormOperator`]), in a [`Queue`] |
//! | linear systems | [`ConjugateGradients`], [`Gmres`], [`BiCgStab`], [`ChebyshevSolver`]; by name [`LinearSolver`] |
//! | preconditioners | any [`Operator`]: [`Diagonal`], [`BlockJacobi`], [`ChebyshevPreconditioner`], [`AmgPreconditioner`] |
//! | cycles over refined meshes | [`NestedLevels`], by [`Interpolation::of_refined`] |
//! | nonlinear systems | [`Newton`] |
//! | systems in parts, one a device | [`Partition`], [`PartRows`], [`Communicator`]: the same solvers, `solve_over` it |
//! | why a solver stopped | [`LinearReport`], [`NewtonReport`] |
//! | bytes, before anything is allocated | [`SystemSize`] |
//!
//! # Source
//! Trotter et al. 2023.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod amg;
mod arrays;
mod assembly;
mod bicgstab;
mod block_csr;
mod block_jacobi;
mod block_rows;
mod boundary;
mod boundary_value;
mod capacity;
mod chebyshev;
mod choice;
mod conjugate_gradients;
mod constraints;
mod csr;
mod diagonal;
mod energy;
mod error;
mod form;
mod found;
mod gmres;
mod history;
mod iteration;
mod launch;
mod linear;
mod load;
mod nested;
mod newton;
mod operator;
mod options;
mod parts;
mod pattern;
mod queue;
mod report;
mod row_options;
mod scaling;
mod sorting;
mod sparse;
mod sums;
mod texts;
mod vectors;

pub use amg::{Amg, AmgLevel, AmgPreconditioner, HierarchySize, Unknowns};
pub use arrays::Arrays;
pub use assembly::{AssemblyStrategy, MatrixAssembly, UnknownAssembly};
pub use bicgstab::BiCgStab;
pub use block_csr::{BlockCsrOperator, BlocksOfRows};
pub use block_jacobi::BlockJacobi;
pub use block_rows::BlockRows;
pub use boundary::{Side, boundary, boundary_by, facet_dofs};
pub use boundary_value::{
    BoundaryValueSetup, BoundaryValueSetupError, BoundaryValueSystem, ChooseMappings, SetupTimes,
};
pub use capacity::SystemSize;
pub use chebyshev::{Chebyshev, ChebyshevPreconditioner, ChebyshevSolver, Eigenvalues, Smoothing, Spectrum};
pub use choice::{CycleNumbers, LinearChoice, LinearMethod, PreconditionerKind, UnknownSolver};
pub use conjugate_gradients::{ConjugateGradients, Preconditioning};
pub use constraints::{Constraints, PrescribedValues};
pub use csr::CsrOperator;
pub use diagonal::Diagonal;
pub use energy::Energy;
pub use error::SolveError;
pub use form::{Argument, DeviceForm, FormPrograms};
pub use found::{FormPatterns, FoundPattern, Patterns};
pub use gmres::{Gmres, GmresOptions, PreconditionerSide};
pub use iteration::NewtonOptions;
pub(crate) use launch::put;
pub use launch::{Call, run};
pub use linear::{HierarchyTimes, LinearSolver};
pub use nested::{Interpolation, NestedLevel, NestedLevels, Transfer};
pub use newton::{Newton, NewtonSystem};
pub use operator::{Dot, FormOperator, Operator, Turn};
pub use options::{LinearOptions, ResidualNorm};
#[cfg(feature = "cuda")]
pub use parts::NcclCommunicator;
pub use parts::{
    Alone, CoarseLevel, Communicator, Exchange, ExchangeCosts, Halo, HostCommunicator, Messages, PartForm,
    PartFormOperator, PartLayout, PartMatrix, PartMesh, PartRows, Partition, Repeatable, SharedPart,
    SystemMatrix, TwoLevels, UnknownExchange, Wire, in_parts, layouts,
};
pub use pattern::{DevicePattern, DeviceTerms, PatternKernels};
pub use queue::{Item, Queue};
pub use report::{LinearReason, LinearReport, NewtonReason, NewtonReport, NewtonStep};
pub use row_options::RowOptions;
pub use scaling::PowerOfTwo;
pub use texts::compiled as compile_text;
pub use vectors::Vectors;
