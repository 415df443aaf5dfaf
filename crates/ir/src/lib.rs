//! Kernels as plain data: expressions, types, domains, the loop tree, the text format, the verifier
//! and the builder.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod affine;
mod assumed;
pub mod build;
mod build_blocks;
pub mod calls;
pub mod canonical;
mod closed;
mod complex;
pub mod constant;
mod defined;
pub mod depth;
pub mod domain;
pub mod elimination;
pub mod expr;
mod expr_type;
pub mod fix;
pub mod functions;
mod guards;
pub mod half;
mod host_expr;
pub mod ids;
pub mod intrinsics;
pub mod kernel;
mod keywords;
mod launches;
pub mod layout;
pub mod lists;
pub mod math;
pub mod multiples;
pub mod neutral;
mod operators;
pub mod outside;
mod places;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod record_tests;
pub mod records;
mod references;
pub mod rules;
mod scalar_form;
mod spacing;
pub mod symmetry;
mod terms;
pub mod text;
pub mod types;
pub mod typing;
mod update_op;
pub mod user_operator;
mod user_operator_laws;
pub mod verify;

pub use affine::{Affine, Atom};
pub use build::KernelBuilder;
pub use calls::{Call, Callee};
pub use complex::Complex;
pub use constant::{Real, TableData};
pub use defined::DefinitionError;
pub use domain::{Constraint, Domain, GuardedRange};
pub use expr::{Access, BinaryOp, Expr, MathFn, Reduction, UnaryOp, UpdateOp};
pub use functions::{Closed, External, ExternalCode, ExternalError, ExternalFn};
pub use half::{Bf16, F16};
pub use host_expr::{HostExpr, HostExprError};
pub use ids::{Arena, CalleeId, Id, InameId, InsnId, RuleId, VarId};
pub use kernel::{
    AddressSpace, Arithmetic, Assumption, AxisTag, Direction, Iname, Insn, Kernel, Launch, NoSubGroup, Node,
    RESIDENT_GROUPS, Rule, SubGroup, VarKind, Variable, WriteOp,
};
pub use lists::{BlockLists, ExclusiveItems, InverseLists};
pub use multiples::Multiples;
pub use outside::OutsideRange;
pub use places::{Layout, Places};
pub use records::Declared;
pub use spacing::Spacing;
pub use symmetry::{AxisImage, NoSymmetry, Symmetry};
pub use types::{Class, Field, Flag, Record, RecordError, RecordType, ScalarType};
pub use typing::{ExprType, TypeError, TypedExpr};
pub use user_operator::{Law, NamedOperator, Operator, OperatorError};
pub use user_operator_laws::Proof;
pub use verify::KernelError;
