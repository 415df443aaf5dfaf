//! What bounds loops and axes at a launch, and what was found to need a check there.

use crate::plan::{HostExpr, Precondition};
use kingpost_ir::{Affine, Id, InameId};
use std::cell::RefCell;

/// What bounds a loop: the iname is at least the largest of the first, below the smallest of the
/// second; one list for each piece of its domain.
#[derive(Clone, Debug)]
pub(crate) struct LoopBounds {
    pub(crate) lower: Vec<Vec<Affine>>,
    pub(crate) upper: Vec<Vec<Affine>>,
}

/// What is known of the symbols, and what was found to need a check.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reach {
    /// By iname and hardware index.
    pub(crate) bounds: Vec<Option<LoopBounds>>,
    /// Groups along an axis.
    pub(crate) extents: Vec<(InameId, HostExpr)>,
    pub(crate) found: RefCell<Vec<Precondition>>,
}

impl Reach {
    /// The bounds of a loop while its body is lowered.
    pub(crate) fn set_bounds(&mut self, iname: InameId, bounds: LoopBounds) {
        let needed = iname.index() + 1;
        if self.bounds.len() < needed {
            self.bounds.resize(needed, None);
        }
        self.bounds[iname.index()] = Some(bounds);
    }

    /// How many groups an axis has.
    pub(crate) fn set_extent(&mut self, index: InameId, extent: HostExpr) {
        self.extents.push((index, extent));
    }

    /// The conditions of the launch, each once.
    pub(crate) fn preconditions(&self) -> Vec<Precondition> {
        self.found.borrow().clone()
    }
}
