//! What is known while code is printed.

use super::helpers::Helper;
use super::marks::Marks;
use crate::ast::Name;
use crate::target::TargetDescription;
use kingpost_ir::ScalarType;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Printer {
    pub(super) dialect: &'static TargetDescription,
    pub(super) out: String,
    pub(super) indent: usize,
    pub(super) helpers: BTreeSet<Helper>,
    pub(super) doubles: bool,
    /// Whether threads that run already share out the groups of the functions.
    pub(super) in_region: bool,
    /// Whether this is inside a loop over groups.
    pub(super) in_groups: bool,
    /// As [`Function::items_of_last`] has it.
    pub(super) items_of_last: Option<Name>,
    /// Whether this is code of the last group alone.
    pub(super) in_last_group: bool,
    /// Arrays in the local memory that the launch provides.
    pub(super) provided: Vec<Name>,
    /// Bytes used so far of that memory.
    pub(super) provided_bytes: u64,
    /// Whether complex numbers lie in it.
    pub(super) provides_pairs: bool,
    pub(super) aligned: Vec<(Name, u64)>,
    pub(super) kept: BTreeSet<Name>,
    /// Arrays of C code of which each thread may have a copy.
    pub(super) summed: Vec<Summed>,
    /// The arrays that pointers point into.
    pub(super) pointers: BTreeMap<Name, Name>,
    /// Names of the numbers of groups.
    pub(super) grid: Vec<Name>,
    /// Where statements stand, if the caller asks.
    pub(super) marks: Option<Marks>,
}

impl Printer {
    pub(super) fn new(dialect: &'static TargetDescription) -> Self {
        Self {
            dialect,
            out: String::new(),
            indent: 0,
            helpers: BTreeSet::new(),
            doubles: false,
            in_region: false,
            in_groups: false,
            items_of_last: None,
            in_last_group: false,
            provided: Vec::new(),
            provided_bytes: 0,
            provides_pairs: false,
            aligned: Vec::new(),
            kept: BTreeSet::new(),
            summed: Vec::new(),
            pointers: BTreeMap::new(),
            grid: Vec::new(),
            marks: None,
        }
    }
}

/// An array that a kernel does nothing with but add to its elements.
#[derive(Clone, Debug)]
pub(super) struct Summed {
    pub(super) name: Name,
    pub(super) ty: ScalarType,
    /// C code of the number of its elements.
    pub(super) elements: String,
    /// How many updates a group makes at least.
    pub(super) updates: u64,
}

impl Summed {
    /// The pointer that a thread updates through.
    pub(super) fn own(&self) -> String {
        format!("kingpost_own_{}", self.name)
    }

    /// Whether threads share the array.
    pub(super) fn is_shared(&self) -> String {
        format!("kingpost_shared_{}", self.name)
    }

    pub(super) fn copies(&self) -> String {
        format!("kingpost_copies_{}", self.name)
    }
}
