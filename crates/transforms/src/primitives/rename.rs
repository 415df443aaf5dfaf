//! Gives a loop, an instruction, a variable or a rule another name.

use kingpost_analysis::Analysis;
use kingpost_ir::{InameId, InsnId, Kernel, RuleId, VarId, VarKind};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Array, Handles, Loop, Made, RuleHandle, Statement};
use schemars::JsonSchema;
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
/// The new name is free: `name(x) = to  =>  x = renamed`. What is given at launch keeps its name,
/// by which the caller knows it.
///
/// # Errors
/// An unknown name, a parameter or argument, a new name that is taken or is no name.
///
/// # Elsewhere
/// Loopy `rename_iname`, `rename_argument`; Exo `rename`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// The caller does not know it by its name.
const OWN: Obligation = Obligation::new("rename.own", "what is renamed is not given at launch");

/// What the name stands for, and that the new one is free.
pub struct Named(Thing);

enum Thing {
    Iname(InameId),
    Insn(InsnId),
    Var(VarId),
    Rule(RuleId),
}

/// A handle to what has the new name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renamed {
    /// A loop or the iname of a reduction.
    Iname(Loop),
    /// An instruction.
    Insn(Statement),
    /// A temporary or a table.
    Var(Array),
    /// A substitution rule.
    Rule(RuleHandle),
}

impl Handles for Renamed {
    fn list(&self, made: &mut Made) {
        match self {
            Self::Iname(handle) => handle.list(made),
            Self::Insn(handle) => handle.list(made),
            Self::Var(handle) => handle.list(made),
            Self::Rule(handle) => handle.list(made),
        }
    }
}

impl Primitive for Rename {
    const NAME: &'static str = "rename";
    const SUMMARY: &'static str = "Gives a loop, an instruction, a temporary or a rule another name.";

    type Proof = Named;
    type Made = Renamed;

    const OBLIGATIONS: &'static [Obligation] = &[OWN];

    fn check(&self, analysis: &Analysis) -> Result<Named, Refusal> {
        let kernel = analysis.kernel();
        let thing = match self.kind {
            NameKind::Iname => Thing::Iname(lookup::iname(kernel, &self.from)?),
            NameKind::Insn => Thing::Insn(lookup::insn(kernel, &self.from)?),
            NameKind::Var => {
                let var = lookup::var(kernel, &self.from)?;
                let own = match kernel.vars[var].kind {
                    VarKind::Temporary | VarKind::Table(_) => true,
                    VarKind::Param | VarKind::Argument(_) => false,
                };
                OWN.require(own, || {
                    format!(
                        "`{}` is given at launch, where it is known by its name; rename a temporary or a table",
                        self.from
                    )
                })?;
                Thing::Var(var)
            }
            NameKind::Rule => Thing::Rule(lookup::rule(kernel, &self.from)?),
        };
        lookup::free(kernel, &self.to)?;
        Ok(Named(thing))
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Named) -> Renamed {
        let (name, handle) = match proof.0 {
            Thing::Iname(iname) => (&mut kernel.inames[iname].name, Renamed::Iname(Loop::named(&self.to))),
            Thing::Insn(insn) => (&mut kernel.insns[insn].name, Renamed::Insn(Statement::named(&self.to))),
            Thing::Var(var) => (&mut kernel.vars[var].name, Renamed::Var(Array::named(&self.to))),
            Thing::Rule(rule) => (&mut kernel.rules[rule].name, Renamed::Rule(RuleHandle::named(&self.to))),
        };
        name.clone_from(&self.to);
        handle
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let to = p.among(["renamed", "other", "n", "sum", "long"]);
        Some(match p.below(4) {
            0 => Self::iname(p.of(&draw::inames(kernel))?, to),
            1 => Self::insn(p.of(&draw::insns(kernel, |_| true))?, to),
            // the values of a table go by its name
            2 => Self::var(p.of(&draw::vars(kernel, |v| !matches!(v.kind, VarKind::Table(_))))?, to),
            _ => Self::rule(p.of(&draw::rules(kernel))?, to),
        })
    }
}
