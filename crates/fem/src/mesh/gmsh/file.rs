//! What is kept of a file.

use super::kind::Kind;
use std::collections::BTreeMap;

/// Tag and coordinates.
pub(super) type Node = (u64, [f64; 3]);

/// What is kept of a file.
#[derive(Default)]
pub(super) struct File {
    pub(super) binary: bool,
    /// Whether the version is 2.2.
    pub(super) old: bool,
    /// The physical groups of a geometric entity, or of a part of one, by dimension and number.
    pub(super) groups: BTreeMap<(usize, i32), Vec<i32>>,
    /// The names of groups, with their dimensions and numbers.
    pub(super) names: BTreeMap<String, (usize, i32)>,
    pub(super) nodes: Vec<Node>,
    pub(super) elements: Vec<Element>,
    /// The nodes of the elements one after the other.
    pub(super) corners: Vec<u64>,
}

pub(super) struct Element {
    pub(super) element: u64,
    pub(super) kind: Kind,
    /// The geometric entity.
    pub(super) entity: i32,
    /// The physical group, if the file has it here.
    pub(super) group: Option<i32>,
    /// Where its nodes start.
    pub(super) first: usize,
}
