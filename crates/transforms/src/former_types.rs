//! The Rust names that steps had. A program that makes steps by them gets those of today.

#![allow(clippy::new_ret_no_self, reason = "they make steps of other names")]

use crate::primitives::{Hoist, LaunchHint, Tag};
use kingpost_ir::AxisTag;
use kingpost_steps::Step;

/// What [`Tag`] of one loop was.
pub struct TagIname;

impl TagIname {
    /// [`Tag::new`], of a loop of any form.
    pub fn new(iname: impl Into<String>, tag: AxisTag) -> Tag {
        TagInames::new([iname], tag)
    }
}

/// What [`Hoist`] was called for several statements.
pub type HoistNest = Hoist;

/// What [`Tag::all`] was.
pub struct TagInames;

impl TagInames {
    /// [`Tag::all`], of loops of any form.
    pub fn new<S: Into<String>>(inames: impl IntoIterator<Item = S>, tag: AxisTag) -> Tag {
        Tag { any_form: tag == AxisTag::Vector, ..Tag::all(inames, tag) }
    }
}

/// What [`Tag`] with `unroll` was.
pub struct UnrollIname;

impl UnrollIname {
    /// [`Tag::new`] with `unroll`.
    pub fn new(iname: impl Into<String>) -> Tag {
        Tag::new(iname, AxisTag::Unrolled)
    }
}

/// What [`Tag`] with `vector` was.
pub struct VectoriseIname;

impl VectoriseIname {
    /// [`Tag::new`] with `vector`.
    pub fn new(iname: impl Into<String>) -> Tag {
        Tag::new(iname, AxisTag::Vector)
    }
}

/// What [`Hoist`] of one instruction was.
pub struct HoistInsn;

impl HoistInsn {
    /// [`Hoist::new`] of one instruction.
    pub fn new(insn: impl Into<String>) -> Hoist {
        Hoist::new([insn])
    }
}

/// What [`LaunchHint::resident_groups`] was.
pub struct SetResidentGroups;

impl SetResidentGroups {
    /// [`LaunchHint::resident_groups`].
    pub const fn new(groups: u32) -> LaunchHint {
        LaunchHint::resident_groups(groups)
    }
}

/// What [`LaunchHint::dynamic_local`] was.
pub struct SetDynamicLocal {}

impl From<SetDynamicLocal> for Step {
    fn from(_: SetDynamicLocal) -> Self {
        LaunchHint::dynamic_local().into()
    }
}
