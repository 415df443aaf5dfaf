//! Substitution rules: expanding them, and whether they may be expanded.

use crate::depth::{Depth, MAX_RULE_SIZE};
use crate::expr::Expr;
use crate::ids::Id;
use crate::kernel::{Kernel, Rule};
use crate::keywords::is_identifier;
use crate::verify::KernelError;

impl Kernel {
    /// The expression with every use of a rule replaced by the rule's body.
    #[must_use]
    pub fn expand_rules(&self, e: &Expr) -> Expr {
        e.map(&mut |node| {
            let Expr::Rule(rule, args) = &node else { return node };
            // Rules use earlier rules only, so this ends.
            let body = self.expand_rules(&self.rules[*rule].body);
            body.map(&mut |inner| {
                if let Expr::RuleParam(k) = inner { args[k as usize].clone() } else { inner }
            })
        })
    }

    /// The same kernel without substitution rules.
    #[must_use]
    pub fn with_rules_expanded(&self) -> Self {
        let mut kernel = self.clone();
        for insn in kernel.insns.values_mut() {
            insn.lhs.index = insn.lhs.index.iter().map(|e| self.expand_rules(e)).collect();
            insn.rhs = self.expand_rules(&insn.rhs);
            insn.predicate = insn.predicate.as_ref().map(|e| self.expand_rules(e));
        }
        kernel.rules = crate::ids::Arena::default();
        kernel
    }

    /// Checks the rules: that they end, and are of a size that may be expanded.
    pub(crate) fn verify_rules(&self) -> Result<(), KernelError> {
        let mut extents = Vec::with_capacity(self.rules.len());
        for (id, rule) in self.rules.iter() {
            self.verify_rule_params(rule)?;
            let extent = Extent::of(&rule.body, &extents);
            if extent.depth.exceeded().is_some() || extent.size > MAX_RULE_SIZE {
                let why = "is too large once the rules it uses are expanded";
                return Err(KernelError::Rule { rule: rule.name.clone(), why });
            }
            extents.push(extent);
            let mut problem = None;
            rule.body.for_each(&mut |e| match e {
                Expr::Rule(r, _) if r.index() >= id.index() => {
                    problem = Some("uses a rule that is not before it")
                }
                Expr::Iname(_) => problem = Some("mentions a loop; make it a parameter of the rule"),
                Expr::Reduce(_) => problem = Some("holds a reduction; write it where the rule is used"),
                Expr::RuleParam(k) if *k as usize >= rule.params.len() => problem = Some("lacks a parameter"),
                Expr::Int(_)
                | Expr::Real(_)
                | Expr::Load(_)
                | Expr::Unary(..)
                | Expr::Binary(..)
                | Expr::Call(..)
                | Expr::Cast(..)
                | Expr::Select(..)
                | Expr::Rule(..)
                | Expr::RuleParam(_) => {}
            });
            if let Some(why) = problem {
                return Err(KernelError::Rule { rule: rule.name.clone(), why });
            }
        }
        Ok(())
    }

    fn verify_rule_params(&self, rule: &Rule) -> Result<(), KernelError> {
        for (k, param) in rule.params.iter().enumerate() {
            if !is_identifier(param) {
                return Err(KernelError::BadName { name: param.clone() });
            }
            // inames and instructions do not stand in rules, so only these could be confused
            if rule.params[..k].contains(param) || self.var(param).is_some() || self.rule(param).is_some() {
                return Err(KernelError::DuplicateName { name: param.clone() });
            }
        }
        Ok(())
    }
}

/// How large an expression is when rules are expanded.
#[derive(Clone, Copy)]
struct Extent {
    depth: Depth,
    size: usize,
}

impl Extent {
    /// Without recursion: the expression may be too deep for it.
    fn of(e: &Expr, rules: &[Self]) -> Self {
        let mut extent = Self { depth: Depth::NONE, size: 0 };
        let mut open = vec![(e, Depth::LEAF)];
        while let Some((e, depth)) = open.pop() {
            let used = if let Expr::Rule(rule, _) = e { rules.get(rule.index()).copied() } else { None };
            let inside = used.unwrap_or(Self { depth: Depth::NONE, size: 0 });
            let here = depth.and(inside.depth);
            extent.depth = extent.depth.max(here);
            extent.size = extent.size.saturating_add(1).saturating_add(inside.size);
            let mut operands = e.operands();
            if let Expr::Binary(op, left, _) = e {
                open.extend(operands.next().map(|operand| (operand, here.left_of(*op, left))));
            }
            open.extend(operands.map(|operand| (operand, here.inside())));
        }
        extent
    }
}
