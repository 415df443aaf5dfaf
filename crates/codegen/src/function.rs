//! A function of a target's language with everything around it, before it is printed.

use crate::ast::{Block, Name};
use kingpost_ir::calls::MapOfTensor;
use kingpost_ir::{ScalarType, TableData};

/// A function with everything around it.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name of the entry point.
    pub name: Name,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Maps of tensors, which follow the parameters.
    pub maps: Vec<TensorParam>,
    /// Tables written into the source.
    pub constants: Vec<Constant>,
    /// Work-items of a group along each axis.
    pub block: [u64; 3],
    /// Work-groups that a compute unit should have registers for.
    pub resident_groups: Option<u32>,
    /// Names of the extents of the axes of groups that the C code loops over, outermost first.
    pub grid: Vec<(u8, Name)>,
    /// Arrays in local memory that are accessed by vectors, and the bytes to whose multiples they
    /// are aligned.
    pub aligned: Vec<(Name, u64)>,
    /// Arrays in local memory that are parts of what the launch provides, one after the other.
    pub provided: Vec<Name>,
    /// Arrays of the C code that are too large for the stack.
    pub kept: Vec<Name>,
    /// In C, the number of work-items of the current group, where only that of the last group is another
    /// one than in [`block`](Self::block).
    pub items_of_last: Option<Name>,
    /// The statements.
    pub body: Block,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Type of the value or of an element.
    pub ty: ScalarType,
    /// For a buffer: whether it is only read.
    pub buffer: Option<bool>,
    /// Whether work-items tell each other something through it. Compilers may move accesses through
    /// a `restrict` pointer past a barrier, since nobody else seems to have the pointer.
    pub is_shared: bool,
    /// Whether it is written, and a loop of a work-item reads elements of such a buffer that it may
    /// have written.
    pub is_reread: bool,
    /// A remark after it.
    pub remark: Option<String>,
    /// What the address of a buffer must be a multiple of, in bytes, where the code accesses more than
    /// an element at once.
    pub aligned: Option<u64>,
    /// C code of the number of elements of a buffer, where that is a sum of parameters.
    pub elements: Option<String>,
}

/// The map of a tensor as a parameter of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorParam {
    /// Its name.
    pub name: Name,
    /// What it says.
    pub map: MapOfTensor,
}

/// A table in constant memory.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its name.
    pub name: Name,
    /// Type of an element.
    pub ty: ScalarType,
    /// Its values.
    pub data: TableData,
}
