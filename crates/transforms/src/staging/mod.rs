//! A part of an array in a temporary: which elements, where it is filled or stored, and by which loops.

mod fill;
mod flat;
mod loops;
mod region;
mod tile;

pub(crate) use region::Region;
pub(crate) use tile::Tile;

use crate::lookup;
use crate::refusal::Refusal;
use purlin_ir::{AddressSpace, Expr, InsnId, Kernel, VarId};
use serde::{Deserialize, Serialize};

/// Which elements are put into the temporary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Footprint {
    /// All of the smallest box around what is read.
    #[default]
    Box,
    /// Those that are read, as far as indices, bounds and conditions are affine; the temporary is as large as the
    /// box.
    Exact,
}

impl Footprint {
    pub(crate) fn is_box(&self) -> bool {
        *self == Self::Box
    }
}

/// The temporary and the loops that fill it, as the user asked for them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Temporary<'a> {
    /// Name of the temporary.
    pub(crate) name: &'a str,
    /// `global`, `local` or `private`.
    pub(crate) space: &'a str,
    /// Names of the loops over its axes, or none.
    pub(crate) inames: &'a [String],
    /// Work-items along `l.0`, `l.1`, `l.2` that share one flat loop, or none.
    pub(crate) work_items: &'a [i64],
    /// Which elements are filled.
    pub(crate) footprint: Footprint,
    /// What stands before its name in the name of the instruction that fills it.
    pub(crate) verb: &'a str,
}

impl Temporary<'_> {
    /// Name of the instruction that fills it.
    pub(crate) fn insn_name(&self) -> String {
        format!("{}_{}", self.verb, self.name)
    }

    /// Checks everything that does not depend on what is read.
    ///
    /// # Errors
    /// Names that are taken, sizes of a group that make no sense, memory that is none.
    pub(crate) fn check(&self, kernel: &Kernel) -> Result<AddressSpace, Refusal> {
        lookup::free(kernel, self.name)?;
        lookup::free(kernel, &self.insn_name())?;
        check_work_items(self.work_items)?;
        if !self.work_items.is_empty() && !self.inames.is_empty() {
            return Err(Refusal::Other(
                "a flat copy loop has no loop for each axis; leave out the names or the work-items".into(),
            ));
        }
        memory(self.space, "copy")
    }

    /// The arguments as they stand in the name of an operation.
    pub(crate) fn describe(&self) -> String {
        let mut text = format!(" into {} `{}`", self.space, self.name);
        if !self.inames.is_empty() {
            let names: Vec<_> = self.inames.iter().map(|n| format!("`{n}`")).collect();
            text += &format!(" by {}", names.join(", "));
        }
        if !self.work_items.is_empty() {
            let sizes: Vec<_> = self.work_items.iter().map(i64::to_string).collect();
            text += &format!(" by {} work-items", sizes.join(" x "));
        }
        if !self.footprint.is_box() {
            text += ", exactly what is needed";
        }
        text
    }
}

/// Checks the work-items that are to share a flat loop.
///
/// # Errors
/// [`Refusal::Argument`] with what a group has.
pub(crate) fn check_work_items(work_items: &[i64]) -> Result<(), Refusal> {
    if work_items.len() <= 3 && work_items.iter().all(|n| (1..=1 << 20).contains(n)) {
        return Ok(());
    }
    Err(Refusal::Other(
        "a group has one to three sizes, each from 1 to 2^20; give the work-items along l.0, l.1, l.2".into(),
    ))
}

/// The memory of a name, for a `copy` or a `buffer`.
///
/// # Errors
/// [`Refusal::Argument`] with what there is.
pub(crate) fn memory(name: &str, what: &str) -> Result<AddressSpace, Refusal> {
    match AddressSpace::ALL.into_iter().find(|s| s.name() == name) {
        Some(space @ (AddressSpace::Global | AddressSpace::Local | AddressSpace::Private)) => Ok(space),
        Some(AddressSpace::Constant | AddressSpace::SubGroup) | None => Err(Refusal::Other(format!(
            "`{name}` is no memory for a {what}; there is global, local, private"
        ))),
    }
}

/// Checks that no rule that the instructions use reads a variable.
///
/// # Errors
/// [`Refusal::Argument`] with the rule.
pub(crate) fn check_no_rule_reads(kernel: &Kernel, insns: &[InsnId], var: VarId) -> Result<(), Refusal> {
    match insns.iter().find_map(|insn| rule_that_reads(kernel, *insn, var)) {
        None => Ok(()),
        Some(rule) => Err(Refusal::Other(format!(
            "rule `{rule}` reads `{}`, and a rule knows no loops; expand it first",
            kernel.vars[var].name
        ))),
    }
}

/// The first rule an instruction uses whose body, expanded, reads the variable.
pub(crate) fn rule_that_reads(kernel: &Kernel, insn: InsnId, var: VarId) -> Option<String> {
    let insn = &kernel.insns[insn];
    let mut found = None;
    for e in insn.lhs.index.iter().chain([&insn.rhs]).chain(&insn.predicate) {
        e.for_each(&mut |e| {
            let Expr::Rule(rule, _) = e else { return };
            kernel.expand_rules(&kernel.rules[*rule].body).for_each(&mut |inner| {
                if matches!(inner, Expr::Load(a) if a.var == var) {
                    found.get_or_insert_with(|| kernel.rules[*rule].name.clone());
                }
            });
        });
    }
    found
}
