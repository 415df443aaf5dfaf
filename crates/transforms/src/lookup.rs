//! Names and selections, with errors that say what there is.

use crate::error::Cause;
use purlin_ir::{InameId, InsnId, Kernel, VarId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which instructions a primitive concerns. A selection that matches nothing is an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// The instruction of this name.
    Insn(String),
    /// Every instruction with this tag.
    Tag(String),
    /// Every instruction that writes this variable.
    Writes(String),
}

impl Selection {
    /// The instructions, in textual order.
    ///
    /// # Errors
    /// [`Cause::EmptySelection`] with the names or tags there are.
    pub fn resolve(&self, kernel: &Kernel) -> Result<Vec<InsnId>, Cause> {
        let matches = |id: &InsnId| {
            let insn = &kernel.insns[*id];
            match self {
                Self::Insn(name) => insn.name == *name,
                Self::Tag(tag) => insn.tags.contains(tag),
                Self::Writes(var) => kernel.vars[insn.lhs.var].name == *var,
            }
        };
        let found: Vec<_> = kernel.insns.ids().filter(matches).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let known = match self {
            Self::Insn(_) => list(kernel.insns.values().map(|i| i.name.as_str())),
            Self::Tag(_) => list(kernel.insns.values().flat_map(|i| i.tags.iter().map(String::as_str))),
            Self::Writes(_) => list(kernel.insns.values().map(|i| kernel.vars[i.lhs.var].name.as_str())),
        };
        Err(Cause::EmptySelection { selection: self.to_string(), known })
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insn(name) => write!(f, "`{name}`"),
            Self::Tag(tag) => write!(f, "tag `{tag}`"),
            Self::Writes(var) => write!(f, "writes of `{var}`"),
        }
    }
}

/// The iname of a name.
pub(crate) fn iname(kernel: &Kernel, name: &str) -> Result<InameId, Cause> {
    kernel.iname(name).ok_or_else(|| {
        let known = list(kernel.inames.values().map(|i| i.name.as_str()));
        Cause::Unknown { kind: "iname", name: name.into(), known }
    })
}

/// The variable of a name.
pub(crate) fn var(kernel: &Kernel, name: &str) -> Result<VarId, Cause> {
    kernel.var(name).ok_or_else(|| {
        let known = list(kernel.vars.values().map(|v| v.name.as_str()));
        Cause::Unknown { kind: "variable", name: name.into(), known }
    })
}

/// Checks that a new name is free.
pub(crate) fn free(kernel: &Kernel, name: &str) -> Result<(), Cause> {
    if !purlin_ir::verify::is_name(name) {
        return Err(Cause::Kernel(purlin_ir::KernelError::BadName { name: name.into() }));
    }
    if !kernel.is_free_name(name) {
        return Err(Cause::Argument(format!("the name `{name}` is taken; choose another")));
    }
    Ok(())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.map(|n| format!("`{n}`")).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// The iname of a name, which must be a loop of the tree and not that of a reduction.
pub(crate) fn tree_loop(kernel: &Kernel, name: &str) -> Result<InameId, Cause> {
    let found = iname(kernel, name)?;
    if crate::tree::loop_body(&kernel.body, found).is_none() {
        let message = format!("`{name}` runs inside a reduction; realise the reduction first");
        return Err(Cause::Argument(message));
    }
    Ok(found)
}

/// The instructions and loops inside some nodes, for messages.
pub(crate) fn names_in(kernel: &Kernel, nodes: &[purlin_ir::Node]) -> String {
    let mut found = Vec::new();
    let mut open: Vec<_> = nodes.iter().collect();
    while let Some(node) = open.pop() {
        match node {
            purlin_ir::Node::Insn(insn) => found.push(kernel.insns[*insn].name.as_str()),
            purlin_ir::Node::Loop(iname, body) => {
                found.push(kernel.inames[*iname].name.as_str());
                open.extend(body);
            }
        }
    }
    list(found.into_iter())
}

/// The instruction of a name.
pub(crate) fn insn(kernel: &Kernel, name: &str) -> Result<InsnId, Cause> {
    kernel.insn(name).ok_or_else(|| {
        let known = list(kernel.insns.values().map(|i| i.name.as_str()));
        Cause::Unknown { kind: "instruction", name: name.into(), known }
    })
}

/// The substitution rule of a name.
pub(crate) fn rule(kernel: &Kernel, name: &str) -> Result<purlin_ir::RuleId, Cause> {
    kernel.rule(name).ok_or_else(|| {
        let known = list(kernel.rules.values().map(|r| r.name.as_str()));
        Cause::Unknown { kind: "rule", name: name.into(), known }
    })
}
