//! What a search for the arguments of a call has found so far.

use super::Window;
use crate::affine::Affine;
use crate::expr::Expr;
use crate::ids::{InameId, InsnId, VarId};
use crate::kernel::{Kernel, Node};

/// The first difference between some statements and a callee.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: found {found}, needed {needed}")]
pub struct Mismatch {
    /// Where it is.
    pub what: String,
    /// What the statements have.
    pub found: String,
    /// What the callee has.
    pub needed: String,
}

impl Mismatch {
    pub(crate) fn new(what: impl Into<String>, found: impl Into<String>, needed: impl Into<String>) -> Self {
        Self { what: what.into(), found: found.into(), needed: needed.into() }
    }
}

pub(super) type Matched = Result<(), Mismatch>;

/// Something that is still to be matched: the callee's side first.
#[derive(Clone, Copy)]
pub(super) enum Goal<'a> {
    Nodes(&'a [Node], &'a [Node]),
    Expr(&'a Expr, &'a Expr),
    Windows,
}

/// An access of the callee and the one that stands for it.
#[derive(Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) var: VarId,
    pub(super) needed: &'a [Expr],
    pub(super) found: &'a [Expr],
}

/// What has been found so far.
#[derive(Clone)]
pub(super) struct State<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) callee: &'a Kernel,
    pub(super) goals: Vec<Goal<'a>>,
    /// By iname of the callee: the caller's, and the value of the callee's.
    pub(super) inames: Vec<Option<(InameId, Affine)>>,
    pub(super) params: Vec<Option<Affine>>,
    pub(super) values: Vec<Option<&'a Expr>>,
    /// The array that an argument is a window of.
    pub(super) arrays: Vec<Option<VarId>>,
    pub(super) sites: Vec<Site<'a>>,
    pub(super) windows: Vec<Option<Window>>,
    pub(super) insns: Vec<Option<InsnId>>,
    /// The instruction that is being matched.
    pub(super) current: Option<(InsnId, InsnId)>,
}
