//! A part of an array in a temporary: which elements, where it is filled or stored, and by which
//! loops.

mod fill;
mod flat;
mod loops;
mod region;
mod stand_in;
mod tile;

pub use fill::{Plan, Staged, Staging, Start};
pub use region::Region;
pub use stand_in::{Formula, StandIn};
pub use tile::{Limits, Tile};

use crate::lookup::{self, Selection};
use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_ir::{AddressSpace, Expr, InsnId, Kernel, VarId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No substitution rule stands between an instruction and the array.
pub const NO_RULE_READS: Obligation =
    Obligation::new("no_rule_reads", "no rule that is used in the region reads the array");

/// There is something to copy.
pub const SOMETHING_READS: Obligation =
    Obligation::new("something_reads", "an instruction of the region reads the array");

/// It is known which elements are read.
pub const AFFINE_READS: Obligation =
    Obligation::new("affine_reads", "every index of a read is affine in the loops and parameters");

/// The copy reads defined elements.
pub const DEFINED_BOX: Obligation =
    Obligation::new("defined_box", "every element of the box has a value when it is copied");

/// What is copied can be written as bounds of loops.
pub const CLOSED_FORM: Obligation =
    Obligation::new("closed_form", "the elements that are copied are a union of affine sets");

/// There is a box around the accesses.
pub const BOX_NOT_EMPTY: Obligation =
    Obligation::new("box_not_empty", "the loops around the accesses are not empty for all parameters");

/// The box is no larger than indices.
pub const BOX_SIZE: Obligation = Obligation::new("box_size", "the box has at most 2^31 elements");

/// Which elements are put into the temporary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Footprint {
    /// All of the smallest box around what is read.
    #[default]
    Box,
    /// Those that are read, as far as indices, bounds and conditions are affine; the temporary is
    /// as large as the box.
    Exact,
}

impl Footprint {
    /// Whether it is the whole box.
    pub fn is_box(&self) -> bool {
        *self == Self::Box
    }
}

/// The temporary and the loops that fill it, as the user asked for them.
#[derive(Clone, Copy, Debug)]
pub struct Temporary<'a> {
    /// Name of the temporary.
    pub name: &'a str,
    /// `global`, `local` or `private`.
    pub space: AddressSpace,
    /// Names of the loops over its axes, or none.
    pub inames: &'a [String],
    /// Work-items along `l.0`, `l.1`, `l.2` that share one flat loop, or none.
    pub work_items: &'a [i64],
    /// Which elements are filled.
    pub footprint: Footprint,
    /// What stands before its name in the name of the instruction that fills it, or [`STORE`].
    pub verb: &'a str,
}

impl Temporary<'_> {
    /// Name of the instruction that fills it.
    pub fn insn_name(&self) -> String {
        format!("{}_{}", self.verb, self.name)
    }

    /// Checks everything that does not depend on what is read.
    ///
    /// # Errors
    /// Names that are taken, sizes of a group that make no sense, memory that is none.
    pub fn check(&self, kernel: &Kernel) -> Result<AddressSpace, Refusal> {
        lookup::free(kernel, self.name)?;
        lookup::free(kernel, &self.insn_name())?;
        check_work_items(self.work_items)?;
        if !self.work_items.is_empty() && !self.inames.is_empty() {
            return Err(Refusal::argument(
                "inames",
                "a flat copy loop has no loop for each axis",
                "names or work-items, not both",
            ));
        }
        memory(self.space, "copy")
    }

    /// The name of an operation with these arguments: what it does to an array or rule, where, and to
    /// which instructions.
    pub fn describe(&self, verb: &str, of: &str, at: Option<&String>, insns: Option<&Selection>) -> String {
        let mut text = format!("{verb} `{of}`");
        if let Some(at) = at {
            text += &format!(" in `{at}`");
        }
        if let Some(insns) = insns {
            text += &format!(" for {insns}");
        }
        let into = if self.verb == STORE { "in" } else { "into" };
        text += &format!(" {into} {} `{}`", self.space.name(), self.name);
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

/// The name of a temporary that is filled, the one that is asked for or one that is free, as is that of the
/// instruction that fills it.
///
/// # Errors
/// A name that is asked for and taken.
pub fn filled_name(kernel: &Kernel, asked: Option<&str>, stem: &str, verb: &str) -> Result<String, Refusal> {
    lookup::made(kernel, asked, stem, |name| vec![name.to_owned(), format!("{verb}_{name}")])
}

/// What a temporary that is written has before its name in that of the last instruction.
pub const STORE: &str = "store";

/// Checks the work-items that are to share a flat loop.
///
/// # Errors
/// [`Refusal::Argument`] with what a group has.
pub fn check_work_items(work_items: &[i64]) -> Result<(), Refusal> {
    if work_items.len() <= 3 && work_items.iter().all(|n| (1..=1 << 20).contains(n)) {
        return Ok(());
    }
    let found: Vec<_> = work_items.iter().map(i64::to_string).collect();
    Err(Refusal::argument(
        "work_items",
        format!("the group has {} work-items", found.join(" x ")),
        "one to three sizes, each from 1 to 2^20, along l.0, l.1, l.2",
    ))
}

/// The memory, if it is one for a `copy` or a `buffer`.
///
/// # Errors
/// [`Refusal::Argument`] with what there is.
pub fn memory(space: AddressSpace, what: &str) -> Result<AddressSpace, Refusal> {
    match space {
        AddressSpace::Global | AddressSpace::Local | AddressSpace::Private => Ok(space),
        AddressSpace::Constant | AddressSpace::Literal | AddressSpace::SubGroup => Err(Refusal::argument(
            "space",
            format!("`{}` is no memory for a {what}", space.name()),
            "global, local or private",
        )),
    }
}

/// Checks that no rule that the instructions use reads a variable.
///
/// # Errors
/// [`NO_RULE_READS`] with the rule.
pub fn check_no_rule_reads(kernel: &Kernel, insns: &[InsnId], var: VarId) -> Result<(), Refusal> {
    let rule = insns.iter().find_map(|insn| rule_that_reads(kernel, *insn, var));
    NO_RULE_READS.forbid(rule, |rule| {
        format!("rule `{rule}` reads `{}`, and a rule knows no loops; expand it first", kernel.vars[var].name)
    })
}

/// The first rule an instruction uses whose body, expanded, reads the variable.
pub fn rule_that_reads(kernel: &Kernel, insn: InsnId, var: VarId) -> Option<String> {
    let insn = &kernel.insns[insn];
    let mut found = None;
    for e in insn.expressions() {
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
