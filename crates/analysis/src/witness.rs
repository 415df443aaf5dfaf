//! Witnesses: two concrete instances that clash, and where.

use kingpost_ir::ids::InsnId;
use kingpost_ir::kernel::Kernel;
use std::fmt;

/// One instance of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Name of the instruction.
    pub insn: String,
    /// Values of the loops around it, outer first.
    pub point: Vec<i64>,
}

/// Two instances that clash on an element of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The one that comes first in textual order.
    pub source: Instance,
    /// The one that comes second.
    pub sink: Instance,
    /// The variable, with the element where it is known (`a[1]`), else as a whole (`y`).
    pub element: String,
    /// The array through which the element is found, if any.
    pub through: Option<String>,
    /// Values of the parameters.
    pub params: Vec<(String, i64)>,
}

impl Instance {
    /// An instance of an instruction of a kernel.
    pub fn new(kernel: &Kernel, insn: InsnId, point: Vec<i64>) -> Self {
        Self { insn: kernel.insns[insn].name.clone(), point }
    }
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.point.is_empty() {
            return write!(f, "`{}`", self.insn);
        }
        let values: Vec<_> = self.point.iter().map(i64::to_string).collect();
        write!(f, "`{}[{}]`", self.insn, values.join(","))
    }
}

impl Witness {
    /// `` through `dof` `` or nothing.
    pub fn through_text(&self) -> String {
        self.through.as_ref().map_or_else(String::new, |map| format!(" through `{map}`"))
    }

    /// `` with n = 4 `` or nothing.
    pub fn params_text(&self) -> String {
        params_text(&self.params)
    }
}

/// `` with n = 4 `` or nothing.
pub fn params_text(params: &[(String, i64)]) -> String {
    if params.is_empty() {
        return String::new();
    }
    let values: Vec<_> = params.iter().map(|(name, v)| format!("{name} = {v}")).collect();
    format!(" with {}", values.join(", "))
}
