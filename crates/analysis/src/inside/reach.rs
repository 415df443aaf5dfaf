//! Where accesses go.

use crate::witness::{Instance, params_text};
use kingpost_ir::ids::{InsnId, VarId};
use std::fmt;

/// An access of an instruction, and what is known of it before a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReach {
    /// The instruction.
    pub insn: InsnId,
    /// The array.
    pub var: VarId,
    /// The access as it is written.
    pub access: String,
    /// Whether it is what the instruction writes.
    pub writes: bool,
    /// What is known.
    pub reach: Reach,
}

/// Where an access goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Inside, for all parameters that the assumptions allow.
    Inside,
    /// Outside, for some of them.
    Outside(Box<Outside>),
    /// The values that are given at launch decide.
    Open(Cause),
}

/// Why a proof has to wait for the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// An index is read from memory or not affine.
    Index,
    /// A loop's bound or a condition is read from memory or not affine.
    Domain,
    /// Of a parameter that is computed only bounds are known.
    Computed,
    /// isl gave up.
    Solver,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "its index is read from memory or not affine",
            Self::Domain => "bounds or conditions around it are read from memory or not affine",
            Self::Computed => "of a parameter that is computed only bounds are known",
            Self::Solver => "isl gave up on it",
        })
    }
}

/// An instance that accesses an element its array does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The instance; the values of reductions around the access come last.
    pub instance: Instance,
    /// The element, such as `a[8]`.
    pub element: String,
    /// The extents as they are declared.
    pub shape: String,
    /// Values of the parameters.
    pub params: Vec<(String, i64)>,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, element, shape, params } = self;
        write!(
            f,
            "{instance} accesses `{element}`{}, outside its shape {shape}; correct the index or the loops, or \
             assume what the parameters satisfy",
            params_text(params)
        )
    }
}
