//! Moves a temporary or a table to other memory.

use super::Transform;
use super::tag_iname::check_placement;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{AddressSpace, Kernel, VarKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Moves a temporary to private, local or global memory or to the registers of sub-groups, or a table to global or constant memory.
///
/// # Rewrite
/// ```text
/// temp t: f64[8] private      =>   temp t: f64[8] local
/// ```
///
/// # Precondition
/// With the tags as they are, every value that flows through the variable stays where its reader sees
/// it (the table of [`purlin_analysis::placement`]); no atomic update of it becomes private.
///
/// # Errors
/// An unknown variable or address space, an argument or parameter, memory that does not suit the
/// variable, and a flow that would be cut, with two instances.
///
/// # Elsewhere
/// Loopy `set_temporary_address_space`; Exo `set_memory`; TVM `set_scope`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetAddressSpace {
    /// The variable.
    pub var: String,
    /// `global`, `constant`, `local`, `subgroup` or `private`.
    pub space: String,
}

impl SetAddressSpace {
    /// Moves `var` to `space`.
    pub fn new(var: impl Into<String>, space: AddressSpace) -> Self {
        Self { var: var.into(), space: space.name().into() }
    }
}

impl fmt::Display for SetAddressSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set address space of `{}` to {}", self.var, self.space)
    }
}

impl Transform for SetAddressSpace {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let var = lookup::var(kernel, &self.var)?;
        let space = AddressSpace::ALL.into_iter().find(|s| s.name() == self.space).ok_or_else(|| {
            Refusal::Other(format!(
                "`{}` is no address space; there is global, constant, local, subgroup, private",
                self.space
            ))
        })?;
        match kernel.vars[var].kind {
            VarKind::Temporary | VarKind::Table(_) => {}
            VarKind::Param | VarKind::Argument(_) => {
                return Err(Refusal::Other(format!(
                    "`{}` is given at launch and stays where it is; prefetch it into a temporary instead",
                    self.var
                )));
            }
        }
        let updated = |i: &purlin_ir::Insn| i.lhs.var == var && i.is_atomic();
        if space == AddressSpace::Private
            && let Some(insn) = kernel.insns.values().find(|i| updated(i))
        {
            return Err(Refusal::Other(format!(
                "`{}` updates `{}` atomically, so others see it; it cannot be private",
                insn.name, self.var
            )));
        }
        let mut moved = kernel.clone();
        moved.vars[var].space = space;
        moved.verify()?;
        check_placement(&moved)?;
        Ok(moved)
    }
}
