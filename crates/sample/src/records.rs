//! Records that an operator joins in a loop, and calls of a declared function.

use super::draw::Draw;
use super::plan::{ExprPlan, IdiomPlan};
use kingpost_ir::expr::{Access, BinaryOp, Expr, MathFn, UnaryOp, UpdateOp};
use kingpost_ir::types::ScalarType;
use kingpost_ir::{NamedOperator, text};

/// One whose operands may come in any order, and one that keeps theirs: a sum of segments.
const OPERATORS: [&str; 2] = [
    "record Ends(low: f64, last: i64)\noperator ends(a: Ends, b: Ends) := \
     Ends(min(a.low, b.low), max(a.last, b.last)) identity Ends(nan, -9223372036854775808) \
     {associative, commutative}\narg all: Ends inout\ns: all ends= Ends(1.0, 1)\n",
    "record Run(total: f64, first: bool)\noperator run(a: Run, b: Run) := \
     Run(select(b.first, b.total, a.total + b.total), a.first or b.first) identity Run(0.0, false) \
     {associative}\narg all: Run inout\ns: all run= Run(1.0, true)\n",
];

fn operator(of: usize) -> Option<NamedOperator> {
    let kernel = text::parse(&format!("kernel k\n{}", OPERATORS[of])).ok()?;
    kernel.declared().operators.first().copied()
}

/// Whose code rounds as what it computes.
const EXTERNAL: &str = "kernel k\nextern damped(x: f64, k: i32) -> f64 := x/(1.0 + x*x)*f64(k) \
     code (\"return x/(1.0 + x*x)*k;\")\narg y: f64 inout\ny = damped(y, 2)\n";

impl Draw {
    /// A call of a declared function.
    pub(super) fn external(&mut self, plan: &ExprPlan) -> Expr {
        let value = self.expression(plan);
        let kernel = text::parse(EXTERNAL).ok();
        let Some(function) = kernel.and_then(|k| k.declared().externals.first().copied()) else {
            return value;
        };
        let k = self.scope.last().map_or(Expr::Int(2), |(iname, _)| Expr::binary(BinaryOp::Mod, *iname, 3));
        Expr::call(MathFn::External(function), [self.stored(ScalarType::F64, value), k])
    }

    /// Whether the idiom of a plan is one of records.
    pub(super) fn is_of_records(&self, plan: &IdiomPlan) -> bool {
        self.config.records && plan.index[0] & 16 != 0 && plan.op & 16 != 0
    }

    /// A record that is nothing, a loop that joins records to it, and elements that get its first field:
    /// after the loop, or in it, as a scan.
    pub(super) fn joined(&mut self, plan: &IdiomPlan) {
        let commutes = plan.op & 1 == 0;
        let Some(operator) = operator(usize::from(!commutes)) else { return };
        let (record, op) = (operator.record, UpdateOp::Named(operator));
        let name = self.name("t");
        let total = Access::scalar(self.b.temporary(name, ScalarType::Record(record), []));
        let field = Expr::Unary(UnaryOp::Field(record, 0), Box::new(Expr::Load(total.clone())));
        // what is ends of nothing is nan, which a minimum ignores
        let value = Expr::binary(BinaryOp::Min, field, 1.0);
        let scans = plan.kind & 64 != 0;
        self.inside(plan.outer, |this, _| {
            let name = this.name("s");
            this.b.assign(name, total.clone(), operator.identity());
            this.inside(plan.inner, |this, (iname, _)| {
                let term = this.expression(&plan.value);
                let second = if commutes { Expr::Iname(iname) } else { this.condition(plan.kind / 16) };
                let term = this.stored(ScalarType::F64, term);
                let name = this.name("s");
                this.b.update(name, total.clone(), op, Expr::call(MathFn::Record(record), [term, second]));
                if scans {
                    this.joined_to_target(plan, value.clone());
                }
            });
            if !scans {
                this.joined_to_target(plan, value.clone());
            }
        });
    }

    fn joined_to_target(&mut self, plan: &IdiomPlan, value: Expr) {
        let ((lhs, ty), name) = (self.target(plan), self.name("s"));
        let value = self.stored(ty, value);
        self.b.update(name, lhs, UpdateOp::Add, value);
    }
}
