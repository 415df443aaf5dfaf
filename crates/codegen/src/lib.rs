//! Turns a kernel into CUDA, OpenCL or C source with a launch plan.
//!
//! ```text
//! Kernel ──place──► PlacedKernel ──lower──► code (ast) ──print──► Program { source, plan }
//! ```

pub mod ast;
mod axes;
mod barriers;
mod bounds;
mod declare;
mod elimination;
mod env;
pub mod error;
mod interval;
mod launch;
mod lower;
mod names;
pub mod placed;
pub mod plan;
pub mod print;
pub mod program;
mod race;
mod regions;
mod storage;
mod tidy;
mod value;

pub use error::CodegenError;
pub use placed::PlacedKernel;
pub use plan::{
    ArgKind, ArgSpec, BufferAccess, Feature, HostExpr, LaunchPlan, Precondition, Program, Target,
};
pub use program::{Code, Options, generate};
