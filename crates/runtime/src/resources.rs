//! What a kernel costs on a card.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The resources of one entry point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resources {
    /// The entry point.
    pub entry: String,
    /// 32-bit registers of a work-item.
    pub registers: u64,
    /// Bytes of registers stored to memory for want of registers, per work-item.
    pub spill_stores: u64,
    /// Bytes of such registers loaded again, per work-item.
    pub spill_loads: u64,
    /// Bytes of stack of a work-item: spills, and arrays that are indexed at run time.
    pub stack_bytes: u64,
    /// Bytes of shared memory of a work-group that the source declares.
    pub shared_bytes: u64,
    /// Bytes of shared memory of a work-group that the launch provides; ptxas does not know them,
    /// the program does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_shared_bytes: Option<u64>,
    /// Hardware barriers in use.
    pub barriers: u64,
}

impl fmt::Display for Resources {
    /// As
    /// `168 registers, 24 B spilled and 36 B reloaded, 40 B of stack, 256 B static and 0 B dynamic
    /// shared memory`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} registers, ", self.registers)?;
        match (self.spill_stores, self.spill_loads) {
            (0, 0) => f.write_str("0 B spilled, ")?,
            (stores, loads) => write!(f, "{stores} B spilled and {loads} B reloaded, ")?,
        }
        if self.stack_bytes > 0 {
            write!(f, "{} B of stack, ", self.stack_bytes)?;
        }
        match self.dynamic_shared_bytes {
            Some(dynamic) => {
                write!(f, "{} B static and {dynamic} B dynamic shared memory", self.shared_bytes)
            }
            None => write!(f, "{} B static shared memory", self.shared_bytes),
        }
    }
}
