//! Makes a substitution rule of a subexpression.

use kingpost_analysis::Analysis;
use kingpost_ir::{Expr, Id, Insn, InsnId, Kernel, Rule, RuleId};
use kingpost_steps::draw::Picks;
use kingpost_steps::lookup::{self, Selection};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::RuleHandle;
use kingpost_steps::template::{same_head, with_lines};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes a rule of a template and replaces every subexpression that the template matches by a use
/// of it. The parameters of the template match any subexpression, the same one everywhere.
///
/// # Rewrite
/// ```text
/// s: y[i] = a[i + 1]*b[i] + a[k]*b[3]   =>   rule f(p, q) := a[p]*b[q]
///                                            s: y[i] = f(i + 1, i) + f(k, 3)
/// ```
/// Innermost matches are replaced first. With `only` the other matches stay, also in the same
/// instruction: `extract_rule(f, [p], "a[p]", only: ["a[j + 1]"])`.
///
/// # Precondition
/// With the arguments `e` that unification finds put into the template `b(x)`, every use expands to
/// what stood there: `s = b[x := e]`.
///
/// # Errors
/// A template that does not parse, that is a parameter only, that mentions a loop which is no
/// parameter, or that lacks a parameter; a template that matches nothing in the selection; a name
/// that is taken.
///
/// # Elsewhere
/// Loopy `extract_subst`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtractRule {
    /// Name of the rule.
    pub name: String,
    /// Its parameters, usually the loop variables of the subexpression.
    pub params: Vec<String>,
    /// The subexpression in the text format.
    pub template: String,
    /// The instructions; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insns: Option<Selection>,
    /// The texts of the subexpressions, such as `a[j]*b[*]`; all that match if absent. In them `*` stands for
    /// any number of letters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

impl ExtractRule {
    /// Extracts `name(params) := template` from all instructions.
    pub fn new<S: Into<String>>(
        name: impl Into<String>,
        params: impl IntoIterator<Item = S>,
        template: impl Into<String>,
    ) -> Self {
        let params = params.into_iter().map(Into::into).collect();
        Self { name: name.into(), params, template: template.into(), insns: None, only: Vec::new() }
    }
}

impl fmt::Display for ExtractRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extract rule `{}({}) := {}`", self.name, self.params.join(", "), self.template)?;
        self.insns.as_ref().map_or(Ok(()), |insns| write!(f, " from {insns}"))?;
        f.write_str(&lookup::with_texts(&self.only))
    }
}

/// The template is the body of a rule of this kernel.
const TEMPLATE: Obligation = Obligation::new(
    "extract_rule.template",
    "the template is an expression of its parameters and of variables",
);

/// There is something to extract.
const MATCHES: Obligation =
    Obligation::new("extract_rule.matches", "the template matches a subexpression of the instructions");

/// A rule, and the instructions that use it where its template matches.
pub struct Matches {
    rule: Rule,
    insns: Vec<(InsnId, Insn)>,
}

impl Primitive for ExtractRule {
    const NAME: &'static str = "extract_rule";
    const SUMMARY: &'static str = "Makes a substitution rule of a subexpression.";

    type Proof = Matches;
    type Made = RuleHandle;

    const OBLIGATIONS: &'static [Obligation] = &[TEMPLATE, MATCHES];

    fn check(&self, analysis: &Analysis) -> Result<Matches, Refusal> {
        let kernel = analysis.kernel();
        lookup::free(kernel, &self.name)?;
        let insns = match &self.insns {
            Some(selection) => selection.resolve(kernel)?,
            None => kernel.insns.ids().collect(),
        };
        let rule = self.declaration(kernel)?;
        self.check_template(&rule.body)?;
        let id = RuleId::from_index(kernel.rules.len()); // rules use earlier rules only
        let mut matches = 0;
        let mut rewrite = |e: Expr| {
            let mut args = vec![None; self.params.len()];
            if !(unify(&rule.body, &e, &mut args) && lookup::has_text(kernel, &e, &self.only)) {
                return e;
            }
            matches += 1;
            Expr::Rule(id, args.into_iter().flatten().collect())
        };
        let mut extracted = |id: InsnId| {
            let mut insn = kernel.insns[id].clone();
            insn.map_expressions(&mut rewrite);
            (id, insn)
        };
        let insns = insns.into_iter().map(&mut extracted).collect();
        MATCHES.require(matches > 0, || format!("the template `{}` matches nothing there", self.template))?;
        Ok(Matches { rule, insns })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Matches) -> RuleHandle {
        kernel.rules.push(proof.rule.clone());
        for (id, insn) in &proof.insns {
            kernel.insns[*id] = insn.clone();
        }
        RuleHandle::named(&self.name)
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let template = p.among(["u[p]", "sin(p)", "p*0.5", "p + q", "a[p, q]", "x[p]", "p*q", "cos(p)"]);
        let params = if template.contains('q') { vec!["p", "q"] } else { vec!["p"] };
        Some(Self::new(kernel.fresh_name("r"), params, template))
    }
}

impl ExtractRule {
    /// The rule, which is declared after all others.
    fn declaration(&self, kernel: &Kernel) -> Result<Rule, Refusal> {
        let line = format!("rule {}({}) := {}", self.name, self.params.join(", "), self.template);
        let no_template = |why: &str| format!("`{}` is no template: {why}", self.template);
        let parsed = TEMPLATE.met(with_lines(kernel, &[line]), |why| no_template(&why))?;
        let added = parsed.rules.iter().last().filter(|(_, r)| r.name == self.name);
        // a text writes them out where they are used
        let why = "a rule with a reduction has no name in a kernel";
        let (_, rule) = TEMPLATE.find(added, || no_template(why))?;
        Ok(rule.clone())
    }

    fn check_template(&self, body: &Expr) -> Result<(), Refusal> {
        if matches!(body, Expr::RuleParam(_)) {
            let found = "a template that is a parameter matches everything";
            return Err(Refusal::argument("template", found, "one with an operation"));
        }
        let mut used = vec![false; self.params.len()];
        body.for_each(&mut |e| {
            if let Expr::RuleParam(k) = e
                && let Some(used) = used.get_mut(*k as usize)
            {
                *used = true;
            }
        });
        match used.iter().position(|u| !u) {
            None => Ok(()),
            Some(k) => Err(Refusal::argument(
                "params",
                format!(
                    "the template `{}` does not mention the parameter `{}`",
                    self.template, self.params[k]
                ),
                "parameters that it mentions",
            )),
        }
    }
}

/// Whether an expression is the template with some arguments, which are noted.
fn unify(template: &Expr, e: &Expr, args: &mut [Option<Expr>]) -> bool {
    if let Expr::RuleParam(k) = template {
        let Some(slot) = args.get_mut(*k as usize) else { return false };
        return match slot {
            Some(bound) => bound == e,
            None => {
                *slot = Some(e.clone());
                true
            }
        };
    }
    let is_loop = matches!((template, e), (Expr::Iname(a), Expr::Iname(b)) if a == b);
    (is_loop || same_head(template, e))
        && template.operands().zip(e.operands()).all(|(a, b)| unify(a, b, args))
}
