//! Expanding substitution rules.

use crate::expr::Expr;
use crate::kernel::Kernel;

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
}
