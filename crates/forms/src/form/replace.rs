//! Replacing the trial function by a coefficient.

use super::error::FormError;
use super::expr::{Compared, Expr, Kind};
use super::role::Role;
use super::walk::{operands, operands_first};
use std::collections::HashMap;

/// `expr` with `replacement` instead of the trial function; shared nodes stay shared.
pub(crate) fn replace_trial(expr: &Expr, replacement: &Expr) -> Expr {
    let mut replace = Replace { replacement, done: HashMap::new() };
    for node in operands_first(expr) {
        let rebuilt = replace.rebuild(node);
        replace.done.insert(node.address(), rebuilt);
    }
    replace.visit(expr)
}

struct Replace<'a> {
    replacement: &'a Expr,
    done: HashMap<usize, Expr>,
}

impl Replace<'_> {
    /// An operand, which was rebuilt before.
    fn visit(&self, expr: &Expr) -> Expr {
        self.done.get(&expr.address()).unwrap_or(expr).clone()
    }

    fn rebuild(&self, expr: &Expr) -> Expr {
        let kind = match expr.kind() {
            Kind::Argument(Role::Trial, _) => return self.substitute(expr),
            Kind::Literal(_)
            | Kind::Identity(_)
            | Kind::Constant(_)
            | Kind::Coefficient(_)
            | Kind::Argument(Role::Test, _)
            | Kind::Coordinate
            | Kind::FacetNormal
            | Kind::Size(_)
            | Kind::Error(_) => return expr.clone(),
            Kind::Components(list) => Kind::Components(list.iter().map(|e| self.visit(e)).collect()),
            Kind::Unary(op, a) => Kind::Unary(*op, self.visit(a)),
            Kind::Binary(op, a, b) => Kind::Binary(*op, self.visit(a), self.visit(b)),
            Kind::Math(f, a) => Kind::Math(*f, self.visit(a)),
            Kind::Index(a, i, j) => Kind::Index(self.visit(a), *i, *j),
            Kind::Conditional(c, a, b) => {
                let (left, right) = (self.visit(&c.left), self.visit(&c.right));
                let condition = Compared { comparison: c.comparison, left, right };
                Kind::Conditional(Box::new(condition), self.visit(a), self.visit(b))
            }
            Kind::Restricted(side, a) => Kind::Restricted(*side, self.visit(a)),
            Kind::Variable(label, a) => Kind::Variable(*label, self.visit(a)),
            Kind::Diff(f, by) => Kind::Diff(self.visit(f), self.visit(by)),
            Kind::Gateaux(f, by, to) => Kind::Gateaux(self.visit(f), self.visit(by), self.visit(to)),
        };
        let rebuilt = Expr::terminal(kind, expr.shape(), None);
        let operands = operands(&rebuilt);
        Expr::build(&operands, Ok(expr.shape()), rebuilt.kind().clone())
    }

    fn substitute(&self, trial: &Expr) -> Expr {
        if let Some(error) = self.replacement.error() {
            return Expr::poison(error.clone());
        }
        let (left, right) = (trial.shape(), self.replacement.shape());
        if left == right {
            return self.replacement.clone();
        }
        let needed = "a function of the shape of the trial function";
        Expr::poison(FormError::Shapes { operation: "action", left, right, needed })
    }
}
