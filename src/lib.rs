//! Kingpost turns a computation, written as a variational form or as a loop program, into GPU and CPU
//! code, by a script of small transformations, each of which is proved legal before it is applied.
//!
//! ```text
//! forms ──► ir ──► transforms ──► codegen ──► runtime
//!                      ▲                        │
//!                      └────── autotune ◄───────┘
//! ```
//!
//! This crate shows the stages under short names. Without features it has what kernels, recipes and code take:
//! `ir`, `interp`, `analysis`, `transforms`, `codegen`. Others opt in:
//!
//! | feature | what it adds |
//! |---|---|
//! | `runtime` | devices: compile, launch and time, on the host with its C compiler |
//! | `cuda`, `opencl` | `runtime` with cards, with OpenCL devices |
//! | `forms` | finite elements, variational forms, strategies, operators by name |
//! | `tune` | both, with [`Loaded`], [`jit`], known mappings and the tuner |
//! | `plots` | `tune` with pictures of measurements |
//! | `explore` | what every step of a schedule makes of a kernel, as a page |
//! | `lsp` | a language server for editors |
//! | `solve` | sparse matrices and solvers |
//! | `multigrid` | geometric multigrid |
//! | `all` | all of it |
//!
//! [`Problem`] (a form on a mesh with inputs, and what its result must be), [`Loaded`] (a kernel's
//! memory on a device) and [`Mapping`] with [`transform`]. [`prelude`] has what recipes and running
//! need.
//!
//! ```
//! use kingpost::{forms::mesh::Mesh, kernels::Operator, prelude::*};
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

pub use kingpost_analysis as analysis;
pub use kingpost_codegen as codegen;
pub use kingpost_files as files;
pub use kingpost_interp as interp;
pub use kingpost_ir as ir;
pub use kingpost_isl as isl;
pub use kingpost_primitives as transforms;

#[cfg(feature = "tune")]
pub use kingpost_autotune as autotune;
#[cfg(feature = "explore")]
pub use kingpost_explore as explore;
#[cfg(feature = "forms")]
pub use kingpost_kernels as kernels;
#[cfg(feature = "lsp")]
pub use kingpost_lsp as lsp;
#[cfg(feature = "multigrid")]
pub use kingpost_multigrid as multigrid;
#[cfg(feature = "runtime")]
pub use kingpost_runtime as runtime;
#[cfg(feature = "solve")]
pub use kingpost_solve as solve;

/// Finite elements, and variational forms with their strategies.
#[cfg(feature = "forms")]
pub mod forms {
    pub use kingpost_fem::*;
    pub use kingpost_forms::*;
    pub use kingpost_strategies::{
        self as strategies, Combinator, Mapping, MappingError, Relowering, Strategy, StrategyInfo,
        StrategySet, TakenName, relowered, strategy, tiling,
    };
}

pub mod prelude;

#[cfg(feature = "tune")]
pub use kingpost_autotune::tuning::{definitions, transform, transform_with_setup};
#[cfg(feature = "tune")]
pub use kingpost_autotune::{Compiled, Jit, JitError, auto, jit, jit_with, kernel_work, tuning};
pub use kingpost_capacity::{OutOfMemory, check_memory};
#[cfg(feature = "forms")]
pub use kingpost_forms::program::NotAnAction;
#[cfg(feature = "tune")]
pub use kingpost_run::{
    CsrMatrix, LoadError, Loaded, Problem, ProblemError, Random, RelativeError, SetUp, SetUpError,
    check_room, exclusive_room, gathered, judge, laid_out, list_room, set_up, set_up_maps, set_up_with,
    settled,
};
#[cfg(feature = "solve")]
pub use kingpost_solve::{BoundaryValueSetup, BoundaryValueSystem, ChooseMappings, Exchange, SetupTimes};
#[cfg(feature = "solve")]
pub use kingpost_solve::{BoundaryValueSetupError, UnknownExchange};
#[cfg(feature = "forms")]
pub use kingpost_strategies::Mapping;
#[cfg(feature = "forms")]
pub use kingpost_strategies::tiling::{staged_tiling_sizes, tiling_sizes};
