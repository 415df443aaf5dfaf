//! Purlin turns a computation, written as a variational form or as a loop program, into GPU and CPU
//! code, by a script of small transformations, each of which is proved legal before it is applied.
//!
//! ```text
//! forms ──► ir ──► transforms ──► codegen ──► runtime
//!                      ▲                        │
//!                      └────── autotune ◄───────┘
//! ```
//!
//! This crate re-exports the stages under short names and adds what joins them:
//! [`Problem`] (a form on a mesh with inputs, and what its result must be), [`Loaded`] (a kernel's
//! memory on a device) and [`Mapping`] with [`transform`]. [`prelude`] has what recipes and running
//! need.
//!
//! ```
//! use purlin::{forms::mesh::Mesh, kernels::Operator, prelude::*};
//!
//! let problem = Problem::operator(Operator::Laplace, 2, None, Mesh::unit_square(4)?, 7)?;
//! let (kernel, _recipe) = transform(&problem.lowered, &Mapping::single_cell())?;
//! let device = open("c")?;
//! let program = generate(&kernel, device.info().backend.target(), &Options::default())?;
//! let loaded = Loaded::new(&*device, &program, &problem.memory)?;
//! loaded.launch()?;
//! let error = problem.relative_error(&loaded.f64s("y")?)?;
//! assert!(error.max < 1e-12 && error.l2 < 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub use purlin_analysis as analysis;
pub use purlin_autotune as autotune;
pub use purlin_codegen as codegen;
pub use purlin_files as files;
pub use purlin_interp as interp;
pub use purlin_ir as ir;
pub use purlin_isl as isl;
pub use purlin_kernels as kernels;
pub use purlin_multigrid as multigrid;
pub use purlin_primitives as transforms;
pub use purlin_runtime as runtime;
pub use purlin_solve as solve;

/// Finite elements, and variational forms with their strategies.
pub mod forms {
    pub use purlin_fem::*;
    pub use purlin_forms::*;
    pub use purlin_strategies::{
        self as strategies, Combinator, Mapping, MappingError, Relowering, Strategy, StrategyInfo,
        StrategySet, TakenName, relowered, strategy, tiling,
    };
}

pub mod auto;
mod boundary_value;
mod jit;
pub mod judge;
mod layout;
mod loaded;
mod matrix;
pub mod prelude;
mod problem;
mod random;
mod setup;
pub mod tuning;
mod work;

pub use boundary_value::{
    BoundaryValueSetupError, BoundaryValueSystem, Exchange, SetupTimes, UnknownExchange,
};
pub use jit::{Compiled, Jit, JitError, jit, jit_with};
pub use layout::{gathered, laid_out};
pub use loaded::{LoadError, Loaded};
pub use matrix::CsrMatrix;
pub use problem::{Problem, ProblemError, RelativeError};
pub use purlin_capacity::{OutOfMemory, check_memory};
pub use purlin_forms::program::NotAnAction;
pub use purlin_strategies::Mapping;
pub use purlin_strategies::tiling::{staged_tiling_sizes, tiling_sizes};
pub use random::Random;
pub use setup::{
    SetUp, SetUpError, check_room, definitions, exclusive_room, list_room, set_up, set_up_maps, set_up_with,
    transform_with_setup,
};
pub use tuning::transform;
pub use work::kernel_work;
