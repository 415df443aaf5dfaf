//! Makes a substitution rule of a subexpression.

use super::Transform;
use crate::lookup::{self, Selection};
use crate::refusal::Refusal;
use purlin_ir::{Expr, Kernel, RuleId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Makes a rule of a template and replaces every subexpression that the template matches by a use of it. The
/// parameters of the template match any subexpression, the same one everywhere.
///
/// # Rewrite
/// ```text
/// s: y[i] = a[i + 1]*b[i] + a[k]*b[3]   =>   rule f(p, q) := a[p]*b[q]
///                                            s: y[i] = f(i + 1, i) + f(k, 3)
/// ```
/// Innermost matches are replaced first.
///
/// # Precondition
/// With the arguments `e` that unification finds put into the template `b(x)`, every use expands to what stood there:
/// `s = b[x := e]`.
///
/// # Errors
/// A template that does not parse, that is a parameter only, that mentions a loop which is no parameter, or that
/// lacks a parameter; a template that matches nothing in the selection; a name that is taken.
///
/// # Elsewhere
/// Loopy `extract_subst`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
}

impl ExtractRule {
    /// Extracts `name(params) := template` from all instructions.
    pub fn new<S: Into<String>>(
        name: impl Into<String>,
        params: impl IntoIterator<Item = S>,
        template: impl Into<String>,
    ) -> Self {
        let params = params.into_iter().map(Into::into).collect();
        Self { name: name.into(), params, template: template.into(), insns: None }
    }
}

impl fmt::Display for ExtractRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "extract rule `{}({}) := {}`", self.name, self.params.join(", "), self.template)?;
        self.insns.as_ref().map_or(Ok(()), |insns| write!(f, " from {insns}"))
    }
}

impl Transform for ExtractRule {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        lookup::free(kernel, &self.name)?;
        let insns = match &self.insns {
            Some(selection) => selection.resolve(kernel)?,
            None => kernel.insns.ids().collect(),
        };
        let (mut extracted, rule) = self.declare(kernel)?;
        self.check_template(&extracted, rule)?;
        let template = extracted.rules[rule].body.clone();
        let mut matches = 0;
        let mut rewrite = |e: Expr| {
            let mut args = vec![None; self.params.len()];
            if !unify(&template, &e, &mut args) {
                return e;
            }
            matches += 1;
            Expr::Rule(rule, args.into_iter().flatten().collect())
        };
        for insn in insns {
            extracted.insns[insn].map_expressions(&mut rewrite);
        }
        if matches == 0 {
            return Err(Refusal::Other(format!("the template `{}` matches nothing there", self.template)));
        }
        Ok(extracted)
    }
}

impl ExtractRule {
    /// The kernel with the rule declared last.
    fn declare(&self, kernel: &Kernel) -> Result<(Kernel, RuleId), Refusal> {
        let line = format!("rule {}({}) := {}", self.name, self.params.join(", "), self.template);
        let no_template = |why: &str| Refusal::Other(format!("`{}` is no template: {why}", self.template));
        if line.contains(['\n', '\r', '#']) {
            return Err(no_template("it is one line without comments"));
        }
        let mut bare = kernel.clone();
        bare.body.clear();
        bare.insns = purlin_ir::Arena::default();
        bare.inames = purlin_ir::Arena::default();
        let text = purlin_ir::text::print(&bare);
        let mut lines: Vec<&str> = text.lines().collect();
        // rules use earlier rules only
        let last = lines.iter().rposition(|l| l.starts_with("rule ")).unwrap_or(0);
        lines.insert(last + 1, &line);
        let parsed = purlin_ir::text::parse(&(lines.join("\n") + "\n"))
            .map_err(|e| no_template(e.errors().first().map_or("", |e| e.message.as_str())))?;
        let added = parsed.rules.iter().last().filter(|(_, r)| r.name == self.name);
        let Some((_, rule)) = added else { return Err(no_template("it declares no rule")) };
        let mut declared = kernel.clone();
        let id = declared.rules.push(rule.clone());
        Ok((declared, id))
    }

    fn check_template(&self, kernel: &Kernel, rule: RuleId) -> Result<(), Refusal> {
        let body = &kernel.rules[rule].body;
        if matches!(body, Expr::RuleParam(_)) {
            return Err(Refusal::Other(
                "a template that is a parameter matches everything; give it an operation".into(),
            ));
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
            Some(k) => Err(Refusal::Other(format!(
                "the template `{}` does not mention the parameter `{}`; leave it out",
                self.template, self.params[k]
            ))),
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
    let same_head = match (template, e) {
        (Expr::Int(a), Expr::Int(b)) => a == b,
        (Expr::Real(a), Expr::Real(b)) => a == b,
        (Expr::Iname(a), Expr::Iname(b)) => a == b,
        (Expr::Load(a), Expr::Load(b)) => a.var == b.var,
        (Expr::Unary(a, _), Expr::Unary(b, _)) => a == b,
        (Expr::Binary(a, ..), Expr::Binary(b, ..)) => a == b,
        (Expr::Call(a, _), Expr::Call(b, _)) => a == b,
        (Expr::Cast(a, _), Expr::Cast(b, _)) => a == b,
        (Expr::Select(..), Expr::Select(..)) => true,
        (Expr::Rule(a, _), Expr::Rule(b, _)) => a == b,
        // rules hold no reductions
        _ => false,
    };
    let same_count = template.operands().count() == e.operands().count();
    same_head && same_count && template.operands().zip(e.operands()).all(|(a, b)| unify(a, b, args))
}
