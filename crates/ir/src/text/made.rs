//! What a text leaves unsaid, as far as it has been read: instructions that stand before a statement,
//! conditions of blocks, types.

use super::lex::Span;
use crate::expr::Expr;
use crate::guards::Guards;
use crate::ids::{CalleeId, InameId, InsnId, RuleId, VarId};
use crate::types::ScalarType;
use std::collections::{BTreeMap, BTreeSet};

/// An `if` and what follows it.
pub(super) type Branches = crate::guards::Branches<Span>;

/// What a text leaves unsaid.
#[derive(Default)]
pub(super) struct Made {
    /// Whether the text may compute parameters: that of a kernel, not of a callee.
    pub defines: bool,
    /// Number of loops around the statement that is read, if elements in its bounds may be read before it.
    pub outside: Option<usize>,
    /// Instructions that read such elements, to stand before the statement.
    pub reads: Vec<InsnId>,
    /// What conditions of blocks are still to be put on.
    pub guards: Guards,
    /// What loops that descend stand for.
    pub mirrored: BTreeMap<InameId, Expr>,
    /// Operations of all that rules with reductions and calls stand for.
    pub written_out: usize,
    /// Rules with reductions.
    pub reducing: BTreeSet<RuleId>,
    /// Callees that are functions.
    pub functions: BTreeSet<CalleeId>,
    /// Conditions of blocks and loops, with their places.
    pub conditions: Vec<(Expr, Span)>,
    /// Temporaries without a type.
    pub untyped: Vec<VarId>,
    /// Temporaries that `let` declares.
    pub once: BTreeSet<VarId>,
    /// Types of arguments whose declarations have none, by name; none where each needs one.
    pub types: Option<BTreeMap<String, ScalarType>>,
}
