//! Gives a part of the program temporaries of its own.

use kingpost_analysis::Analysis;
use kingpost_ir::{Expr, InameId, InsnId, Kernel, VarId, VarKind, Variable};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{NO_RULE, ONLY_ACCESSED, check_no_rule, check_only_accessed};
use kingpost_steps::refusal::{LostValue, Refusal};
use kingpost_steps::schedule::Array;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Gives the instructions inside a loop temporaries of their own instead of those that others use,
/// too.
///
/// # Rewrite
/// ```text
/// temp t: f64 private             =>   temp t: f64 private
///                                      temp t_rest: f64 private
/// for i in 0..n                        for i in 0..n
///   set: t = a[i]                        set: t = a[i]
///   use: b[i] = t*t                      use: b[i] = t*t
/// for j in n..m                        for j in n..m
///   set_1: t = a[j]                      set_1: t_rest = a[j]
///   use_1: b[j] = t*t                    use_1: b[j] = t_rest*t_rest
/// ```
/// Without names all temporaries that are used inside and outside, and whose values stay on their
/// side, get a second one. They have the type, shape, layout and address space of the first; a
/// buffer that it shares with others is not theirs.
///
/// # Precondition
/// With `D` the flow and update dependences through each of the temporaries, `I` the instances of
/// instructions inside the loop: `{ s -> t in D : (s in I) /= (t in I) }` is empty.
///
/// # Errors
/// An unknown loop or variable; what is no temporary, or mentioned by a bound, an assumption or a
/// rule; a temporary that is not used on both sides; no temporary left; a value that passes from
/// one side to the other, with two instances.
///
/// # Elsewhere
/// Array renaming before loop fission; register allocators split the live ranges of scalars.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SplitLives {
    /// The loop.
    pub iname: String,
    /// What the names of the new temporaries end with, after `_`.
    pub suffix: String,
    /// The temporaries; all whose values stay on one side if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vars: Vec<String>,
}

impl SplitLives {
    /// Temporaries of its own for everything inside `iname`.
    pub fn new(iname: impl Into<String>, suffix: impl Into<String>) -> Self {
        Self { iname: iname.into(), suffix: suffix.into(), vars: Vec::new() }
    }

    /// These temporaries alone.
    #[must_use]
    pub fn of<S: Into<String>>(mut self, vars: impl IntoIterator<Item = S>) -> Self {
        self.vars = vars.into_iter().map(Into::into).collect();
        self
    }
}

impl fmt::Display for SplitLives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<_> = self.vars.iter().map(|v| format!("`{v}`")).collect();
        let what = if vars.is_empty() { "all temporaries".to_owned() } else { vars.join(", ") };
        write!(f, "split the lives of {what} inside `{}`", self.iname)
    }
}

/// Values stay on their side.
const STAYS: Obligation =
    Obligation::new("split_lives.stays", "no value passes from inside the loop to outside, or back");

/// Otherwise there is one life.
const BOTH_SIDES: Obligation =
    Obligation::new("split_lives.both_sides", "a temporary is used inside the loop and outside");

/// Temporaries with the instructions that get others.
pub struct Lives {
    inside: BTreeSet<InsnId>,
    vars: Vec<VarId>,
}

impl Primitive for SplitLives {
    const NAME: &'static str = "split_lives";
    const SUMMARY: &'static str = "Gives a part of the program temporaries of its own.";

    type Proof = Lives;
    type Made = Vec<Array>;

    const OBLIGATIONS: &'static [Obligation] = &[STAYS, BOTH_SIDES, ONLY_ACCESSED, NO_RULE];

    fn check(&self, analysis: &Analysis) -> Result<Lives, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let inside = insns_inside(kernel, iname);
        if self.vars.is_empty() {
            let all = kernel.vars.iter().filter(|(_, v)| v.kind == VarKind::Temporary).map(|(id, _)| id);
            let mut vars = Vec::new();
            for var in all.filter(|var| is_on_both_sides(kernel, &inside, *var)) {
                let eligible = check_only_accessed(kernel, var).is_ok() && check_no_rule(kernel, var).is_ok();
                if eligible && self.crossing(analysis, &inside, var)?.is_none() {
                    vars.push(var);
                }
            }
            BOTH_SIDES.require(!vars.is_empty(), || {
                format!("no temporary has values of its own inside `{}` and outside", self.iname)
            })?;
            return Ok(Lives { inside, vars });
        }
        let mut vars = Vec::new();
        for name in &self.vars {
            let var = lookup::var(kernel, name)?;
            if kernel.vars[var].kind != VarKind::Temporary {
                return Err(Refusal::argument("vars", format!("`{name}` is no temporary"), "temporaries"));
            }
            BOTH_SIDES.require(is_on_both_sides(kernel, &inside, var), || {
                format!("`{name}` is not used both inside `{}` and outside", self.iname)
            })?;
            check_only_accessed(kernel, var)?;
            check_no_rule(kernel, var)?;
            STAYS.refute(self.crossing(analysis, &inside, var)?)?;
            if !vars.contains(&var) {
                vars.push(var);
            }
        }
        Ok(Lives { inside, vars })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Lives) -> Vec<Array> {
        let mut made: BTreeMap<VarId, VarId> = BTreeMap::new();
        let mut arrays = Vec::new();
        for var in &proof.vars {
            let name = kernel.fresh_name(&format!("{}_{}", kernel.vars[*var].name, self.suffix));
            arrays.push(Array::named(&name));
            let own = Variable { name, storage: None, ..kernel.vars[*var].clone() };
            made.insert(*var, kernel.vars.push(own));
        }
        for id in &proof.inside {
            let insn = &mut kernel.insns[*id];
            if let Some(own) = made.get(&insn.lhs.var) {
                insn.lhs.var = *own;
            }
            insn.map_expressions(&mut |e| match e {
                Expr::Load(mut access) => {
                    access.var = made.get(&access.var).copied().unwrap_or(access.var);
                    Expr::Load(access)
                }
                other => other,
            });
        }
        arrays
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all = draw::loops(kernel).into_iter().map(|iname| Self::new(iname, "own")).collect();
        draw::possible(kernel, all, p)
    }
}

impl SplitLives {
    /// A value that passes from one side to the other.
    fn crossing(
        &self,
        analysis: &Analysis,
        inside: &BTreeSet<InsnId>,
        var: VarId,
    ) -> Result<Option<LostValue>, Refusal> {
        let kernel = analysis.kernel();
        for d in analysis.dependences_of(&|v| v == var)?.into_iter().filter(|d| d.carries_value()) {
            if inside.contains(&d.source) == inside.contains(&d.sink) {
                continue;
            }
            if let Some(witness) = d.witness(kernel, &d.relation()?)? {
                let found = format!(
                    "{} takes the value of `{}` from {}, on the other side of `{}`",
                    witness.sink, witness.element, witness.source, self.iname
                );
                let help = format!("leave `{}` as it is", kernel.vars[var].name);
                return Ok(Some(LostValue { witness, found, help }));
            }
        }
        Ok(None)
    }
}

fn insns_inside(kernel: &Kernel, iname: InameId) -> BTreeSet<InsnId> {
    let schedule = kernel.schedule();
    schedule.into_iter().filter(|(_, loops)| loops.contains(&iname)).map(|(insn, _)| insn).collect()
}

fn is_on_both_sides(kernel: &Kernel, inside: &BTreeSet<InsnId>, var: VarId) -> bool {
    let uses = |insn: &kingpost_ir::Insn| insn.accesses(var);
    let users = kernel.insns.iter().filter(|(_, insn)| uses(insn));
    let sides: BTreeSet<bool> = users.map(|(id, _)| inside.contains(&id)).collect();
    sides.len() == 2
}
