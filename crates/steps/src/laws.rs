//! What a step takes for granted of declared operators.

use crate::keeps::Order;
use crate::step::Step;
use kingpost_ir::{Expr, InsnId, Kernel, NamedOperator, Node, UpdateOp};
use std::fmt;

/// An operator whose operands a step joins in another order or grouping, for which its laws must hold.
///
/// As text it says which laws these are, and whether they are proved or sampled:
/// ``relies on `argmin` being associative and commutative: proved, by all 729 orders of its operands``.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reliance(pub NamedOperator);

impl fmt::Display for Reliance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let laws = if self.0.commutes() { "associative and commutative" } else { "associative" };
        write!(f, "relies on `{}` being {laws}: {}", self.0, self.0.proof())
    }
}

impl Step {
    /// The declared operators whose operands the step joins in another order or grouping, given the kernel that
    /// it met and the one that it made.
    ///
    /// ```
    /// use kingpost_steps::Step;
    /// use kingpost_transforms::primitives::ReduceInTree;
    ///
    /// let kernel = kingpost_ir::text::parse(
    ///     "kernel k
    /// record Best(value: f64)
    /// operator least(a: Best, b: Best) := select(b.value < a.value, b, a) identity Best(inf) {associative, no_nan}
    /// arg x: f64[8] in
    /// arg best: Best inout
    ///
    /// for i in 0..8
    ///   s: best least= Best(x[i])
    /// ",
    /// )?;
    /// let step = Step::from(ReduceInTree::new("i"));
    /// let after = step.apply(&kernel)?;
    /// let relied = step.relies_on(&kernel, &after).into_iter().map(|r| r.to_string()).collect::<Vec<_>>();
    /// assert_eq!(relied, ["relies on `least` being associative: proved, by all 27 orders of its operands"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn relies_on(&self, before: &Kernel, after: &Kernel) -> Vec<Reliance> {
        match self.keeps().order {
            Order::Bits | Order::Numbers => return Vec::new(),
            Order::Reassociated | Order::Identities | Order::Within(_) => {}
        }
        let (before, after) = (joins(before), joins(after));
        let of = |all: &[(NamedOperator, String)], op| -> Vec<String> {
            all.iter().filter(|(other, _)| *other == op).map(|(_, join)| join.clone()).collect()
        };
        let mut found: Vec<NamedOperator> = before.iter().map(|(op, _)| *op).collect();
        found.sort();
        found.dedup();
        found.retain(|op| of(&before, *op) != of(&after, *op));
        found.into_iter().map(Reliance).collect()
    }
}

/// The operator of each update and each reduction by a declared one, with what is joined and the loops around, in
/// textual order.
fn joins(kernel: &Kernel) -> Vec<(NamedOperator, String)> {
    fn visit(kernel: &Kernel, nodes: &[Node], around: &str, found: &mut Vec<(NamedOperator, String)>) {
        for node in nodes {
            match node {
                Node::Loop(iname, body) => {
                    let this = &kernel.inames[*iname];
                    let around =
                        format!("{around}{} {}; ", this.name, kernel.show_domain(*iname, &this.domain));
                    visit(kernel, body, &around, found);
                }
                Node::Insn(id) => found.extend(
                    operators(kernel, *id)
                        .into_iter()
                        .map(|op| (op, format!("{around}{}", kernel.show_insn(&kernel.insns[*id])))),
                ),
            }
        }
    }
    let mut found = Vec::new();
    visit(kernel, &kernel.body, "", &mut found);
    found
}

fn operators(kernel: &Kernel, id: InsnId) -> Vec<NamedOperator> {
    let insn = &kernel.insns[id];
    let mut found: Vec<NamedOperator> = insn.update_op().and_then(UpdateOp::named).into_iter().collect();
    for e in insn.expressions() {
        e.for_each(&mut |e| {
            if let Expr::Reduce(r) = e {
                found.extend(r.op.named());
            }
        });
    }
    found
}
