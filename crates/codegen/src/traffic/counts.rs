//! What is counted.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The integers that a launch is given.
pub trait Integers {
    /// The value of a parameter.
    fn param(&self, name: &str) -> Option<i64>;
    /// An entry of an input array of integers, at a flat offset; none if the array has none there, or
    /// is not known.
    fn entry(&self, array: &str, offset: i64) -> Option<i64>;
}

/// Accesses to global memory by the sub-groups of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GlobalAccesses {
    /// Instructions of sub-groups.
    pub instructions: f64,
    /// Sectors of 32 bytes that they touch, each counted once an instruction.
    pub sectors: f64,
    /// Sectors that the group touches, each counted once.
    pub distinct: f64,
    /// Elements of single work-items.
    pub elements: f64,
}

/// What the work-items of a group ask of arithmetic and memory.
///
/// # Shapes and units
/// Instructions are those of sub-groups, as wide as the kernel says; a sub-group of which some work-items are
/// idle counts whole. Counts are not integers where iterations of a loop stand for others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Traffic {
    /// Additions, multiplications and fused pairs of them in floating point, instructions.
    pub arithmetic: f64,
    /// Quotients, roots and other functions in floating point, instructions.
    pub functions: f64,
    /// Operations on integers whose results differ among work-items, instructions.
    pub integer: f64,
    /// Calls of the target's instructions by name.
    pub calls: BTreeMap<String, f64>,
    /// Reads of global memory.
    pub reads: GlobalAccesses,
    /// Writes of global memory.
    pub writes: GlobalAccesses,
    /// Atomic updates of global memory.
    pub reductions: GlobalAccesses,
    /// Sectors of each array of global memory that the group touches, each counted once.
    pub arrays: BTreeMap<String, f64>,
    /// Instructions that access local memory.
    pub local_instructions: f64,
    /// Wavefronts that these need over 32 banks of 4 bytes.
    pub local_wavefronts: f64,
    /// Atomic updates of local memory, instructions.
    pub local_atomics: f64,
    /// Rounds of these, in each of which no two work-items of a sub-group update one element.
    pub local_rounds: f64,
    /// Reads of constant memory, one for each distinct address of a sub-group.
    pub constant_reads: f64,
    /// Accesses to private arrays at indices that differ among work-items, instructions.
    pub stack: f64,
    /// Accesses to private arrays at indices that a loop of the code decides, instructions: registers
    /// hold such arrays only where the compiler writes the loop out.
    pub indexed: f64,
    /// Operations in floating point that stand in the code, those of a loop once.
    pub code: u64,
    /// Numbers that stand in the code where they are operands, instructions.
    pub literals: f64,
    /// Barriers of the group.
    pub barriers: f64,
    /// Most words of 4 bytes of private values that are alive at a time in a work-item.
    pub live_words: u64,
    /// Most words of private arrays that are declared at a time, whatever of them is alive.
    #[serde(default)]
    pub array_words: u64,
    /// Sub-groups of the group.
    pub sub_groups: u64,
    /// Whether the walk came to the end of the code.
    pub complete: bool,
}

impl Traffic {
    /// Counts operations on reals and functions of them.
    pub(super) fn issue(&mut self, (arithmetic, functions): (f64, f64), times: f64) {
        self.arithmetic += arithmetic * times;
        self.functions += functions * times;
    }
}
