//! What isl would be asked, as a sequence of numbers: the key under which its answer is remembered.
//!
//! Loops are numbered by where they stand around an instruction and nothing is told by name, so that the same
//! question about another variable, or after loops were renamed, is the same key. All that isl is told is in it, each
//! list behind its length, so that equal keys are equal questions.

use crate::polyhedral::Polyhedral;
use purlin_ir::affine::{Affine, Atom};
use purlin_ir::domain::{Constraint, Domain};
use purlin_ir::ids::{Id, InameId, InsnId};
use purlin_ir::kernel::Assumption;

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Words(Vec<i64>);

impl Words {
    /// Adds a number.
    pub fn push(&mut self, word: i64) {
        self.0.push(word);
    }

    /// Adds a length, or the position of something.
    pub fn count(&mut self, n: usize) {
        self.0.push(n as i64); // of loops, constraints and terms
    }

    /// Adds where an instruction runs, or as far as the first `conditions` parts of its condition say, without what the relation of the loops of two instructions says, and returns
    /// the loops that expressions at it may mention, in the order in which they are numbered.
    pub fn instances(
        &mut self,
        poly: &Polyhedral,
        (insn, conditions): (InsnId, Option<usize>),
        reduction: &[InameId],
    ) -> Vec<InameId> {
        let scope = [poly.loops(insn), reduction].concat();
        self.count(poly.loops(insn).len());
        self.count(reduction.len());
        for iname in &scope {
            self.domain(poly, &poly.kernel.inames[*iname].domain, &scope);
        }
        let holds = poly.conditions(insn, conditions);
        self.count(holds.len());
        for holds in holds {
            self.domain(poly, &holds, &scope);
        }
        scope
    }

    /// Adds what is assumed of the symbols.
    pub fn context(&mut self, poly: &Polyhedral) {
        let assumed = poly.kernel.assumptions.iter().filter_map(|a| match a {
            Assumption::Params(c) => Some(c),
            Assumption::Injective(_) => None,
        });
        self.conjunction(poly, assumed, &[]);
    }

    fn domain(&mut self, poly: &Polyhedral, domain: &Domain, scope: &[InameId]) {
        self.count(domain.disjuncts().len());
        for constraints in domain.disjuncts() {
            self.conjunction(poly, constraints, scope);
        }
    }

    /// The constraints that isl is told: those on symbols.
    fn conjunction<'c>(
        &mut self,
        poly: &Polyhedral,
        constraints: impl IntoIterator<Item = &'c Constraint>,
        scope: &[InameId],
    ) {
        let length = self.0.len();
        self.push(0);
        for constraint in constraints {
            if poly.is_symbolic(constraint.expr()) {
                self.0[length] += 1;
                self.push(i64::from(matches!(constraint, Constraint::Zero(_))));
                self.affine(constraint.expr(), scope);
            }
        }
    }

    /// Adds an expression at an instruction whose loops are `scope`.
    pub fn affine(&mut self, e: &Affine, scope: &[InameId]) {
        self.count(e.terms().len());
        for (atom, c) in e.terms() {
            match atom {
                Atom::Iname(i) => {
                    // one that is not around is told apart from all others by its own number
                    let position = scope.iter().position(|l| l == i);
                    self.count(position.map_or(1 + scope.len() + i.index(), |p| 1 + p));
                }
                Atom::Var(v) => self.push(-1 - v.index() as i64),
                Atom::Floor(numerator, d) => {
                    self.push(0);
                    self.push(*d);
                    self.affine(numerator, scope);
                }
            }
            self.push(*c);
        }
        self.push(e.constant_term());
    }
}
