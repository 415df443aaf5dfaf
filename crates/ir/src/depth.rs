//! How deep expressions are, and stacks for recursion over deep ones.
//!
//! Two figures: how far operations are *nested*, which is what brackets, other compilers and the
//! parser's recursion see, and the length of the *path* from the root to a leaf, which is what
//! recursion over the tree sees. They differ in chains of operators of one precedence, such as sums:
//! the left operand of one needs no brackets, so that a sum of a thousand terms is two deep.

use crate::expr::{BinaryOp, Expr, MathFn};
use crate::kernel::{Insn, Kernel};
use crate::text::{Level, level_of};

/// Maximum number of operations that are nested in each other; below the 256 brackets that Clang
/// reads.
pub const MAX_DEPTH: usize = 250;

/// Maximum number of operations on a path from the root of an expression to a leaf: the terms of the
/// longest sum.
///
/// Recursion that copies, compares, prints and drops an expression costs about 1 kB of stack a level
/// in a debug build, 1 MB in all, and threads of tests and of rayon have 2 MB. Recursion that costs
/// more runs [`with_room`].
pub const MAX_PATH: usize = 1000;

/// Maximum number of operations of a rule when the rules it uses are expanded, and of an expression where
/// declared functions are what they compute.
pub(crate) const MAX_RULE_SIZE: usize = 1_000_000;

/// A path up to which recursion of any kind fits the stack of a thread.
const SHORT_PATH: usize = 32;

/// Stack of a level of recursion. Code generation takes 23 kB in a debug build (20 MB end at 900 levels,
/// 2026-11-29).
const LEVEL_BYTES: usize = 48 << 10;

/// How deep an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Depth {
    /// Operations that are nested, itself included.
    pub(crate) nested: usize,
    /// Operations on the longest path, itself included.
    pub(crate) path: usize,
}

impl Depth {
    /// Of an expression without operands.
    pub(crate) const LEAF: Self = Self { nested: 1, path: 1 };

    /// Of nothing.
    pub(crate) const NONE: Self = Self { nested: 0, path: 0 };

    /// The larger of both.
    #[must_use]
    pub(crate) fn max(self, other: Self) -> Self {
        Self { nested: self.nested.max(other.nested), path: self.path.max(other.path) }
    }

    /// With another expression instead of a leaf.
    #[must_use]
    pub(crate) fn and(self, leaf: Self) -> Self {
        Self { nested: self.nested.saturating_add(leaf.nested), path: self.path.saturating_add(leaf.path) }
    }

    /// With an operation around.
    #[must_use]
    pub(crate) fn inside(self) -> Self {
        Self { nested: self.nested.saturating_add(1), path: self.path.saturating_add(1) }
    }

    /// As the left operand of an operator: one of the same chain is nested no deeper.
    #[must_use]
    pub(crate) fn left_of(self, op: BinaryOp, operand: &Expr) -> Self {
        let inside = self.inside();
        if is_chain(op, operand) { Self { nested: self.nested, ..inside } } else { inside }
    }

    /// The limit that it exceeds, if it does.
    pub(crate) fn exceeded(self) -> Option<usize> {
        if self.path > MAX_PATH {
            return Some(MAX_PATH);
        }
        (self.nested > MAX_DEPTH).then_some(MAX_DEPTH)
    }
}

/// Whether the left operand of an operator goes on a chain of operators of one precedence.
pub(crate) fn is_chain(op: BinaryOp, left: &Expr) -> bool {
    let level = level_of(op);
    let chains = match level {
        Level::Or | Level::And | Level::Sum | Level::Product => true,
        Level::Not | Level::Comparison | Level::Unary | Level::Atom => false,
    };
    chains && matches!(left, Expr::Binary(other, ..) if level_of(*other) == level)
}

/// The limit that an expression exceeds, if it does; looks no deeper than the limits.
pub(crate) fn exceeded(e: &Expr) -> Option<usize> {
    if is_deeper(e, MAX_PATH, MAX_PATH) {
        return Some(MAX_PATH);
    }
    is_deeper(e, MAX_DEPTH, MAX_PATH).then_some(MAX_DEPTH)
}

fn is_deeper(e: &Expr, nested: usize, path: usize) -> bool {
    if nested == 0 || path == 0 {
        return true;
    }
    if let Expr::Binary(op, a, b) = e {
        let left = if is_chain(*op, a) { nested } else { nested - 1 };
        return is_deeper(a, left, path - 1) || is_deeper(b, nested - 1, path - 1);
    }
    e.operands().any(|operand| is_deeper(operand, nested - 1, path - 1))
}

impl Kernel {
    /// Operations on the longest path from the root of an expression of an instruction to a leaf.
    pub fn longest_path(&self) -> usize {
        self.longest_path_of(self.insns.values())
    }

    /// As [`Kernel::longest_path`], of some instructions.
    pub(crate) fn longest_path_of<'k>(&self, insns: impl Iterator<Item = &'k Insn>) -> usize {
        let rules = self.rules.values().map(|rule| path(&rule.body)).max().unwrap_or(0);
        // each rule may use the ones before it
        let of_insns = insns.flat_map(Insn::expressions).map(path).max().unwrap_or(0);
        of_insns.saturating_add(rules.saturating_mul(self.rules.len()))
    }
}

/// Whether not even [`with_room`] has the stack for recursion over an expression.
pub(crate) fn is_endless(e: &Expr) -> bool {
    path(e) > 4 * MAX_PATH
}

/// Without recursion: the expression may be too deep for it.
fn path(e: &Expr) -> usize {
    let (mut longest, mut open) = (0, vec![(e, 1)]);
    while let Some((e, depth)) = open.pop() {
        longest = longest.max(depth);
        // what a declared function computes may stand there instead
        let own = if let Expr::Call(MathFn::External(function), _) = e { function.size_of(&[]).1 } else { 1 };
        open.extend(e.operands().map(|operand| (operand, depth + own)));
    }
    longest
}

/// Runs work that recurs over expressions with paths of this length, and may take more stack a level
/// than other work: on a thread of its own if the paths are long.
///
/// A thread that cannot be had is no reason to refuse the work, which then runs here.
pub fn with_room<T: Send>(path: usize, work: impl Fn() -> T + Sync) -> T {
    if path <= SHORT_PATH {
        return work();
    }
    let bytes = path.min(4 * MAX_PATH).saturating_mul(LEVEL_BYTES);
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes);
        match thread.spawn_scoped(scope, &work).map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => work(),
        }
    })
}
