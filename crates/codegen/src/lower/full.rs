//! Full tiles: a loop that is written out a second time without guards, for groups all of whose
//! iterations run.

use super::{Lower, guarded};
use crate::ast::{Block, Expr, Op, Stmt};
use crate::error::CodegenError;
use crate::value::condition;
use kingpost_ir::{Affine, Atom, AxisTag, Constraint, InameId, Node};

/// Maximum number of statements that are written a second time: eight sums of 27 terms are 232. Under guards each
/// they take 1.92 times as long as a copy, without 1.75 (27-point stencil of 512^3 points; H200, 2026-11-29).
const MAX_STATEMENTS: usize = 512;

impl<'k> Lower<'k> {
    /// Code of a loop that holds no barrier. Where copies of an unrolled loop have guards of their
    /// own that hold together for most groups, the loop is written twice: without guards for those
    /// groups, so that the loads of all copies can be under way at a time, and as it is for the
    /// others.
    pub(super) fn with_full_tiles(
        &mut self,
        iname: InameId,
        body: &'k [Node],
    ) -> Result<Block, CodegenError> {
        if self.kernel.inames[iname].tag != AxisTag::Unrolled || self.open_guards.is_some() {
            return self.plain_loop(iname, body);
        }
        let stage = self.stage.clone();
        self.open_guards = Some(Vec::new());
        let code = self.plain_loop(iname, body);
        let code = code?;
        let guards = self.open_guards.take();
        let guards =
            guards.ok_or_else(|| self.internal("the guards of an unrolled loop were taken twice"))?;
        let Some(facts) = self.of_full_groups(&guards) else { return Ok(code) };
        if statements(&code) > MAX_STATEMENTS {
            return Ok(code);
        }
        let mark = self.env.mark();
        let end = std::mem::replace(&mut self.stage, stage);
        facts.iter().for_each(|fact| self.env.learn(fact));
        // no full version inside this one
        self.open_guards = Some(Vec::new());
        let full = self.plain_loop(iname, body);
        self.open_guards = None;
        self.env.forget(mark);
        self.stage = end;
        let full = full?;
        // what work-items of a full group leave out stays: the last round, say
        if 2 * guards_in(&full) > guards_in(&code) {
            return Ok(code);
        }
        let conditions: Vec<Expr> = facts.iter().map(|fact| condition(&self.env, fact)).collect();
        let Some(all) = conditions.iter().cloned().reduce(|a, b| Expr::binary(Op::And, a, b)) else {
            return Ok(code);
        };
        let mut both = guarded(conditions, full);
        both.extend(guarded(vec![Expr::Not(Box::new(all))], code));
        Ok(both)
    }

    /// Keeps the constraints that a guard is made of, none of which is known to hold.
    pub(super) fn note_guards(&mut self, open: &[&Constraint]) {
        if let Some(guards) = &mut self.open_guards {
            guards.extend(open.iter().map(|c| (*c).clone()));
        }
    }

    /// Conditions on groups and parameters alone under which all guards hold that mention those;
    /// none if all copies have the same guards, which go around them together.
    fn of_full_groups(&self, guards: &[Constraint]) -> Option<Vec<Constraint>> {
        let mut facts: Vec<Affine> = Vec::new();
        let mut differ = false;
        for guard in guards {
            let Constraint::NonNegative(e) = guard else { return None };
            let least = self.least(e)?;
            if least.as_constant().is_some() {
                continue;
            }
            let known = facts.iter_mut().find(|f| f.minus(&least).as_constant().is_some());
            match known {
                Some(fact) => {
                    differ |= *fact != least;
                    if least.constant_term() < fact.constant_term() {
                        *fact = least;
                    }
                }
                None => facts.push(least),
            }
        }
        differ.then(|| facts.into_iter().map(|f| Constraint::NonNegative(f).normalised()).collect())
    }

    /// The least value over all work-items and loop variables.
    fn least(&self, e: &Affine) -> Option<Affine> {
        let mut least = Affine::constant(e.constant_term());
        for (atom, c) in e.terms() {
            if self.is_of_group(atom) {
                least = least.plus(&Affine::from(atom).times(*c));
                continue;
            }
            if matches!(atom, Atom::Var(_)) {
                return None; // a bound from memory
            }
            let range = self.env.atom_range(atom);
            let end = if *c > 0 { range.finite_lo()? } else { range.finite_hi()? };
            least = least.plus_constant(c.checked_mul(end)?);
        }
        Some(least)
    }

    /// Whether all work-items of a group agree on the atom all the time.
    fn is_of_group(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Iname(i) => (0..3).any(|axis| self.env.hardware(true, axis) == *i),
            Atom::Var(v) => self.env.is_param(*v),
            Atom::Floor(n, _) => n.terms().iter().all(|(a, _)| self.is_of_group(a)),
        }
    }
}

fn guards_in(block: &Block) -> usize {
    let own = |s: &Stmt| usize::from(matches!(s, Stmt::If { .. }));
    block.iter().map(|s| own(s) + s.body().map_or(0, guards_in)).sum()
}

fn statements(block: &Block) -> usize {
    block.iter().map(|s| 1 + s.body().map_or(0, statements)).sum()
}
