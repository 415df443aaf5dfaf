//! The code of a kernel before it is printed.

use crate::function::Function;
use crate::notes::Note;
use crate::plan::Precondition;
use crate::target::Banks;
use kingpost_ir::SubGroup;

/// The code of a kernel for a target, before it is printed: what statistics count.
#[derive(Clone, Debug)]
pub struct Code {
    /// The function, target's loops and declarations included.
    pub function: Function,
    /// Bytes of local memory of a group.
    pub local_bytes: u64,
    /// The part of them that the launch provides: see [`Function::provided`].
    pub dynamic_local_bytes: u64,
    /// Integers that parameters may take beyond 64 bits.
    pub integers: Vec<Precondition>,
    /// Bytes of private arrays of a work-item.
    pub private_bytes: u64,
    /// What a reader of the code would not expect.
    pub notes: Vec<Note>,
    /// Work-items of a sub-group.
    pub sub_group: SubGroup,
    /// How the target's memory serves them.
    pub banks: Banks,
}
