//! Inlines a substitution rule.

use kingpost_analysis::Analysis;
use kingpost_ir::{Expr, Id, Kernel, RuleId};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Replaces every use of a substitution rule, also in other rules, by its body; the rule is gone.
///
/// # Rewrite
/// ```text
/// rule f(k) := 2.0*a[k]        =>   s: y[i] = 2.0*a[i + 1] + 1.0
/// s: y[i] = f(i + 1) + 1.0
/// ```
///
/// # Precondition
/// That is what a rule means: `r(e) = body[x := e]` for every use. A reduction among the arguments
/// must stay one loop, so a parameter it stands for occurs once in the body.
///
/// # Errors
/// An unknown rule; an argument that is a reduction and would be repeated or lost.
///
/// # Elsewhere
/// Loopy `expand_subst`; Exo `inline`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpandRule {
    /// The rule.
    pub rule: String,
}

impl ExpandRule {
    /// Expands `rule`.
    pub fn new(rule: impl Into<String>) -> Self {
        Self { rule: rule.into() }
    }
}

impl fmt::Display for ExpandRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expand rule `{}`", self.rule)
    }
}

/// The loop of a reduction stands in one place.
const REDUCED_ONCE: Obligation = Obligation::new(
    "expand_rule.reduced_once",
    "a parameter that stands for a reduction occurs once in the rule",
);

/// A rule whose body can stand wherever it is used.
pub struct Expandable {
    rule: RuleId,
}

impl Primitive for ExpandRule {
    const NAME: &'static str = "expand_rule";
    const SUMMARY: &'static str = "Inlines a substitution rule.";

    type Proof = Expandable;
    type Made = ();

    const OBLIGATIONS: &'static [Obligation] = &[REDUCED_ONCE];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Expandable, Refusal> {
        let rule = lookup::rule(analysis.kernel(), &self.rule)?;
        self.check_reductions(analysis.kernel(), rule)?;
        Ok(Expandable { rule })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Expandable) {
        let rule = proof.rule;
        let body = kernel.rules[rule].body.clone();
        let mut rewrite = |e: Expr| match e {
            Expr::Rule(used, args) if used == rule => body.map(&mut |inner| match inner {
                Expr::RuleParam(k) => args[k as usize].clone(),
                Expr::Rule(other, args) => Expr::Rule(without(other, rule), args),
                other => other,
            }),
            Expr::Rule(used, args) => Expr::Rule(without(used, rule), args),
            other => other,
        };
        for insn in kernel.insns.values_mut() {
            insn.map_expressions(&mut rewrite);
        }
        let kept = kernel.rules.iter().filter(|(id, _)| *id != rule).map(|(_, r)| {
            let mut r = r.clone();
            r.body = r.body.map(&mut rewrite);
            r
        });
        kernel.rules = kept.collect();
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        Some(Self::new(p.of(&draw::rules(kernel))?))
    }
}

impl ExpandRule {
    fn check_reductions(&self, kernel: &Kernel, rule: RuleId) -> Result<(), Refusal> {
        let data = &kernel.rules[rule];
        let mut uses = vec![0_usize; data.params.len()];
        data.body.for_each(&mut |e| {
            if let Expr::RuleParam(k) = e
                && let Some(count) = uses.get_mut(*k as usize)
            {
                *count += 1;
            }
        });
        for insn in kernel.insns.values() {
            let mut bad = None;
            for e in insn.expressions() {
                e.for_each(&mut |e| {
                    let Expr::Rule(used, args) = e else { return };
                    let repeated =
                        args.iter().zip(&uses).position(|(a, n)| *used == rule && *n != 1 && reduces(a));
                    bad = bad.or(repeated);
                });
            }
            REDUCED_ONCE.forbid(bad, |k| {
                format!(
                    "`{}` gives rule `{}` a reduction as `{}`, which occurs {} times in the rule, needed once; store \
                     the reduction in a temporary first",
                    insn.name, self.rule, data.params[k], uses[k]
                )
            })?;
        }
        Ok(())
    }
}

fn reduces(e: &Expr) -> bool {
    e.any(&mut |e| matches!(e, Expr::Reduce(_)))
}

/// The id of another rule once one is gone.
fn without(rule: RuleId, gone: RuleId) -> RuleId {
    RuleId::from_index(rule.index() - usize::from(rule.index() > gone.index()))
}
