//! Turns a kernel into CUDA, OpenCL or C source with a launch plan.

pub mod plan;

pub use plan::{
    ArgKind, ArgSpec, BufferAccess, Feature, HostExpr, LaunchPlan, Precondition, Program, Target,
};
