//! The part of a program that says where some instructions go.

use crate::node::{
    Complex, Disjunct, Form, Int, Number, Place, Program, Real, Statement, Step, Touch, Truth,
};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use std::collections::BTreeSet;

/// Reduces a program to the places that `follow` goes to and to what these depend on; the variables
/// that are still read or written.
pub(super) fn reduce_to(program: &mut Program, follow: &BTreeSet<InsnId>) -> BTreeSet<VarId> {
    let mut needed = Needed { domains: &program.domains, vars: BTreeSet::new() };
    let touches: Vec<_> = program.statements.iter().map(touches).collect();
    for insn in follow {
        needed.around(&program.statements[insn.index()]);
        needed.touches(&touches[insn.index()]);
    }
    // what writes a variable that matters runs as it is, and what it reads matters, too
    let mut kept = BTreeSet::new();
    loop {
        let writers = program.statements.iter().enumerate();
        let more: Vec<_> = writers
            .filter(|(k, s)| needed.vars.contains(&s.lhs.var) && !kept.contains(k))
            .map(|(k, _)| k)
            .collect();
        if more.is_empty() {
            break;
        }
        for k in more {
            kept.insert(k);
            needed.statement(&program.statements[k]);
        }
    }
    let vars = needed.vars;
    for ((k, statement), touches) in program.statements.iter_mut().enumerate().zip(touches) {
        statement.touches = (!kept.contains(&k)).then_some(touches);
    }
    let stays = |insn: &InsnId| follow.contains(insn) || kept.contains(&insn.index());
    program.body = steps(std::mem::take(&mut program.body), &stays);
    vars
}

fn steps(all: Vec<Step>, stays: &dyn Fn(&InsnId) -> bool) -> Vec<Step> {
    let kept = all.into_iter().filter_map(|step| match step {
        Step::Insn(insn) => stays(&insn).then_some(Step::Insn(insn)),
        Step::Loop { iname, outer, body } => {
            let body = steps(body, stays);
            (!body.is_empty()).then_some(Step::Loop { iname, outer, body })
        }
    });
    kept.collect()
}

/// The elements that an instruction goes to where its predicate holds.
fn touches(statement: &Statement) -> Vec<Touch> {
    let mut found = vec![Touch::At(statement.lhs.clone())];
    match &statement.rhs {
        Number::Real(e) => real(e, &mut found),
        Number::Complex(e) => complex(e, &mut found),
        Number::Int(e) => int(e, &mut found),
    }
    found
}

fn real(e: &Real, found: &mut Vec<Touch>) {
    match e {
        Real::Const(_) => {}
        Real::Load(place) => found.push(Touch::At(place.clone())),
        Real::FromInt(a, _) | Real::FromU64(a, _) => int(a, found),
        Real::Round(a) | Real::Half(a, _) | Real::Neg(a, _) => real(a, found),
        Real::Arith { a, b, .. } => [a, b].into_iter().for_each(|e| real(e, found)),
        Real::Call { args, .. } => args.iter().for_each(|e| real(e, found)),
        Real::Select(c, a, b) => select(c, [&mut |f| real(a, f), &mut |f| real(b, f)], found),
        Real::Part { of, .. } => complex(of, found),
        Real::Reduce { inames, body, .. } => over(inames, &mut |f| real(body, f), found),
    }
}

fn complex(e: &Complex, found: &mut Vec<Touch>) {
    match e {
        Complex::Load(place) => found.push(Touch::At(place.clone())),
        Complex::Op { reals, args, .. } => {
            reals.iter().for_each(|e| real(e, found));
            args.iter().for_each(|e| complex(e, found));
        }
        Complex::Select(c, a, b) => select(c, [&mut |f| complex(a, f), &mut |f| complex(b, f)], found),
        Complex::Reduce { inames, body, .. } => over(inames, &mut |f| complex(body, f), found),
    }
}

fn int(e: &Int, found: &mut Vec<Touch>) {
    match e {
        Int::Const(_) | Int::Iname(_) => {}
        Int::Load(place) => found.push(Touch::At(place.clone())),
        Int::FromReal(a, _) => real(a, found),
        Int::Converted(_, a) | Int::Neg(a, _) => int(a, found),
        Int::FromTruth(a) => found.push(Touch::When((**a).clone(), true, Vec::new())),
        Int::Arith { a, b, .. } => [a, b].into_iter().for_each(|e| int(e, found)),
        Int::Select(c, a, b) => select(c, [&mut |f| int(a, f), &mut |f| int(b, f)], found),
        Int::Reduce { inames, body, .. } => over(inames, &mut |f| int(body, f), found),
    }
}

type Collect<'c> = &'c mut dyn FnMut(&mut Vec<Touch>);

/// The condition is evaluated even if neither side goes anywhere: so are the accesses in it.
fn select(c: &Truth, sides: [Collect<'_>; 2], found: &mut Vec<Touch>) {
    for (collect, needed) in sides.into_iter().zip([true, false]) {
        let mut inside = Vec::new();
        collect(&mut inside);
        found.push(Touch::When(c.clone(), needed, inside));
    }
}

fn over(inames: &[InameId], collect: Collect<'_>, found: &mut Vec<Touch>) {
    let mut inside = Vec::new();
    collect(&mut inside);
    if !inside.is_empty() {
        found.push(Touch::Over(inames.to_vec(), inside));
    }
}

/// The variables whose values decide where instructions go.
struct Needed<'p> {
    domains: &'p [Vec<Disjunct>],
    vars: BTreeSet<VarId>,
}

impl Needed<'_> {
    /// Bounds and condition of an instruction.
    fn around(&mut self, statement: &Statement) {
        statement.loops.iter().for_each(|i| self.domain(*i));
        statement.predicate.iter().for_each(|p| self.truth(p));
    }

    /// Everything an instruction reads or writes.
    fn statement(&mut self, statement: &Statement) {
        self.around(statement);
        self.place(&statement.lhs);
        match &statement.rhs {
            Number::Real(e) => self.real(e),
            Number::Complex(e) => self.complex(e),
            Number::Int(e) => self.int(e),
        }
    }

    fn touches(&mut self, touches: &[Touch]) {
        for touch in touches {
            match touch {
                Touch::At(place) => place.index.iter().for_each(|e| self.int(e)),
                Touch::When(c, _, inside) => {
                    self.truth(c);
                    self.touches(inside);
                }
                Touch::Over(inames, inside) => {
                    inames.iter().for_each(|i| self.domain(*i));
                    self.touches(inside);
                }
            }
        }
    }

    fn domain(&mut self, iname: InameId) {
        for disjunct in &self.domains[iname.index()] {
            disjunct.bounds.iter().for_each(|b| self.form(&b.rest));
            disjunct.checks.iter().for_each(|c| self.form(&c.form));
        }
    }

    fn form(&mut self, form: &Form) {
        self.vars.extend(form.vars.iter().map(|(v, _)| *v));
        form.floors.iter().for_each(|(numerator, ..)| self.form(numerator));
    }

    fn place(&mut self, place: &Place) {
        self.vars.insert(place.var);
        place.index.iter().for_each(|e| self.int(e));
    }

    fn int(&mut self, e: &Int) {
        match e {
            Int::Const(_) | Int::Iname(_) => {}
            Int::Load(place) => self.place(place),
            Int::FromReal(a, _) => self.real(a),
            Int::Converted(_, a) | Int::Neg(a, _) => self.int(a),
            Int::FromTruth(a) => self.truth(a),
            Int::Arith { a, b, .. } => [a, b].into_iter().for_each(|e| self.int(e)),
            Int::Select(c, a, b) => {
                self.truth(c);
                [a, b].into_iter().for_each(|e| self.int(e));
            }
            Int::Reduce { inames, body, .. } => {
                inames.iter().for_each(|i| self.domain(*i));
                self.int(body);
            }
        }
    }

    fn real(&mut self, e: &Real) {
        match e {
            Real::Const(_) => {}
            Real::Load(place) => self.place(place),
            Real::FromInt(a, _) | Real::FromU64(a, _) => self.int(a),
            Real::Round(a) | Real::Half(a, _) | Real::Neg(a, _) => self.real(a),
            Real::Arith { a, b, .. } => [a, b].into_iter().for_each(|e| self.real(e)),
            Real::Call { args, .. } => args.iter().for_each(|e| self.real(e)),
            Real::Select(c, a, b) => {
                self.truth(c);
                [a, b].into_iter().for_each(|e| self.real(e));
            }
            Real::Part { of, .. } => self.complex(of),
            Real::Reduce { inames, body, .. } => {
                inames.iter().for_each(|i| self.domain(*i));
                self.real(body);
            }
        }
    }

    fn complex(&mut self, e: &Complex) {
        match e {
            Complex::Load(place) => self.place(place),
            Complex::Op { reals, args, .. } => {
                reals.iter().for_each(|e| self.real(e));
                args.iter().for_each(|e| self.complex(e));
            }
            Complex::Select(c, a, b) => {
                self.truth(c);
                [a, b].into_iter().for_each(|e| self.complex(e));
            }
            Complex::Reduce { inames, body, .. } => {
                inames.iter().for_each(|i| self.domain(*i));
                self.complex(body);
            }
        }
    }

    fn truth(&mut self, e: &Truth) {
        match e {
            Truth::Int { a, b, .. } => [a, b].into_iter().for_each(|e| self.int(e)),
            Truth::Real { a, b, .. } => [a, b].into_iter().for_each(|e| self.real(e)),
            Truth::Complex { a, b, .. } => [a, b].into_iter().for_each(|e| self.complex(e)),
            Truth::Nonzero(a) => self.int(a),
            Truth::Not(a) => self.truth(a),
            Truth::And(a, b) | Truth::Or(a, b) => [a, b].into_iter().for_each(|e| self.truth(e)),
        }
    }
}
