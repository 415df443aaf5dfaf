//! Gives a loop, an instruction, a variable or a rule another name.

use super::Transform;
use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{Kernel, VarKind};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Renames a loop, an instruction, a temporary or table, or a substitution rule.
///
/// # Rewrite
/// ```text
/// for i in 0..n      =>   for cell in 0..n
///   s: y[i] = 1.0           s: y[cell] = 1.0
/// ```
///
/// # Precondition
/// The new name is free: `name(x) = to  =>  x = renamed`. What is given at launch keeps its name, by which
/// the caller knows it.
///
/// # Errors
/// An unknown name, a parameter or argument, a new name that is taken or is no name.
///
/// # Elsewhere
/// Loopy `rename_iname`, `rename_argument`; Exo `rename`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rename {
    /// What kind of thing it is.
    pub kind: NameKind,
    /// Its name.
    pub from: String,
    /// The new name.
    pub to: String,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// A loop or the iname of a reduction.
    Iname,
    /// An instruction.
    Insn,
    /// A temporary or a table.
    Var,
    /// A substitution rule.
    Rule,
}

impl NameKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Iname, Self::Insn, Self::Var, Self::Rule];
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Iname => "iname",
            Self::Insn => "instruction",
            Self::Var => "variable",
            Self::Rule => "rule",
        })
    }
}

impl Rename {
    /// Renames a loop or the iname of a reduction.
    pub fn iname(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { kind: NameKind::Iname, from: from.into(), to: to.into() }
    }

    /// Renames an instruction.
    pub fn insn(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { kind: NameKind::Insn, from: from.into(), to: to.into() }
    }

    /// Renames a temporary or a table.
    pub fn var(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { kind: NameKind::Var, from: from.into(), to: to.into() }
    }

    /// Renames a substitution rule.
    pub fn rule(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self { kind: NameKind::Rule, from: from.into(), to: to.into() }
    }
}

impl fmt::Display for Rename {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rename {} `{}` to `{}`", self.kind, self.from, self.to)
    }
}

impl Transform for Rename {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let mut renamed = kernel.clone();
        let name = match self.kind {
            NameKind::Iname => &mut renamed.inames[lookup::iname(kernel, &self.from)?].name,
            NameKind::Insn => &mut renamed.insns[lookup::insn(kernel, &self.from)?].name,
            NameKind::Var => {
                let var = lookup::var(kernel, &self.from)?;
                match kernel.vars[var].kind {
                    VarKind::Temporary | VarKind::Table(_) => {}
                    VarKind::Param | VarKind::Argument(_) => {
                        return Err(Refusal::Other(format!(
                            "`{}` is given at launch, where it is known by its name; rename a temporary or a \
                             table",
                            self.from
                        )));
                    }
                }
                &mut renamed.vars[var].name
            }
            NameKind::Rule => &mut renamed.rules[lookup::rule(kernel, &self.from)?].name,
        };
        lookup::free(kernel, &self.to)?;
        name.clone_from(&self.to);
        Ok(renamed)
    }
}
