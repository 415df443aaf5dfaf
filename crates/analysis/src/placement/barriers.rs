//! What a placement says: where barriers are needed.

use super::axes::Axis;
use kingpost_ir::ids::{InameId, InsnId, VarId};

/// Which work-items of a group wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// None: a work-item waits for calls that it made itself and that complete later.
    WorkItem,
    /// The work-items of a sub-group: neighbours along `l.0` in blocks of the kernel's width
    /// ([`Kernel::sub_group`](kingpost_ir::Kernel::sub_group)), at one index of the
    /// other axes.
    SubGroup,
    /// All.
    Group,
}

/// Two instructions that a barrier must separate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Barrier {
    /// What must be finished.
    pub source: InsnId,
    /// What may then start.
    pub sink: InsnId,
    /// The variable between them.
    pub var: VarId,
    /// `None`: within one iteration of their common sequential loops, `source` stands first in the
    /// text. `Some(l)`: `source` in one iteration of the sequential loop `l`, `sink` in a later
    /// one.
    pub carrier: Option<InameId>,
    /// The smallest scope in which both ends of every pair run.
    pub scope: Scope,
}

/// A kernel whose parallel loops keep every dependence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The axes of the launch.
    pub axes: Vec<Axis>,
    /// What barriers must separate, sorted, without repetition.
    pub barriers: Vec<Barrier>,
    /// For each variable, which axes of a private array disappear: see
    /// [`sliced_axes`](super::sliced_axes).
    pub sliced: Vec<Vec<bool>>,
    /// For each variable that the work-items of a sub-group hold, its
    /// [`lane_axis`](super::lane_axis).
    pub lanes: Vec<Option<(usize, i64)>>,
    /// The temporaries of which groups wait for elements that earlier ones write, sorted.
    pub awaited: Vec<VarId>,
}

/// For each variable the barriers that its dependences need, if they are those of the kernel
/// before; else they are checked again.
pub(crate) type Carried = Vec<Option<Vec<Barrier>>>;
