//! Arrays of which each thread of the C code updates a copy of its own, instead of one update at a
//! time.
//!
//! An `omp atomic` of a real is a compare-and-swap, which costs as much as the arithmetic of a cell
//! of low degree, whether another thread wants the element or not. The mass action of 10,368 P1
//! tetrahedra takes 87 µs on one thread, on two 160 µs with atomic updates and 47 µs with copies (AMD
//! EPYC, two cores, GCC 12, 2026-11-23).

use super::printer::{Printer, Summed};
use crate::ast::{Atomic, Block, Expr, For, LoopKind, Name, Place, Stmt};
use crate::function::Function;
use kingpost_ir::UpdateOp;
use std::collections::BTreeSet;

/// The arrays of a function whose work-groups one loop runs over.
pub(super) fn summed(function: &Function) -> Vec<Summed> {
    let is_groups = |stmt: &&Stmt| matches!(stmt, Stmt::For(f) if f.kind == LoopKind::Groups);
    let mut loops = function.body.iter().filter(is_groups);
    let (Some(Stmt::For(groups)), None) = (loops.next(), loops.next()) else { return Vec::new() };
    let mut other = BTreeSet::new();
    for stmt in &function.body {
        touched_otherwise(stmt, &mut other);
    }
    let mut found = Vec::new();
    for p in function.params.iter().filter(|p| p.buffer == Some(false) && !other.contains(&p.name)) {
        let (Some(elements), true) = (&p.elements, p.ty.is_real() && !p.ty.is_half()) else { continue };
        let updates = updates(&groups.body, &p.name);
        if updates > 0 {
            let (name, elements) = (p.name.clone(), elements.clone());
            found.push(Summed { name, ty: p.ty, elements, updates });
        }
    }
    found
}

/// The names that are read, or written by anything but sums that are made one at a time.
fn touched_otherwise(stmt: &Stmt, names: &mut BTreeSet<Name>) {
    for e in stmt.expressions() {
        e.for_each(&mut |e| {
            if let Expr::Load(place) = e {
                names.insert(place.name.clone());
            }
        });
    }
    if !matches!(stmt, Stmt::Atomic(a) if a.op == UpdateOp::Add && !a.local) {
        names.extend(stmt.written().into_iter().cloned());
    }
    for inner in stmt.body().into_iter().flatten() {
        touched_otherwise(inner, names);
    }
}

/// How often statements update an array; loops of unknown length count once.
fn updates(block: &Block, name: &Name) -> u64 {
    let of = |stmt: &Stmt| match stmt {
        Stmt::Atomic(a) => u64::from(a.place.name == *name),
        Stmt::For(f) => updates(&f.body, name).saturating_mul(length(f)),
        Stmt::If { body, .. } => updates(body, name),
        Stmt::Comment(_)
        | Stmt::Declare(_)
        | Stmt::Assign { .. }
        | Stmt::Intrinsic(_)
        | Stmt::Iteration(_)
        | Stmt::Barrier(_) => 0,
    };
    // the branches of an `if` exclude each other: full groups, and the last
    block.iter().map(of).max().unwrap_or(0)
}

fn length(f: &For) -> u64 {
    match (&f.lower, &f.upper, f.step) {
        (Expr::Int(lower, _), Expr::Int(upper, _), 1) => upper.saturating_sub(*lower).max(1).unsigned_abs(),
        _ => 1,
    }
}

impl Printer {
    /// The array that is summed, if this is one and threads may have copies of it here.
    fn summed(&self, name: &Name) -> Option<Summed> {
        self.summed.iter().find(|s| s.name == *name && self.in_groups).cloned()
    }

    /// An update of C code, which threads make one at a time or each in its copy.
    pub(super) fn atomic_of_threads(&mut self, a: &Atomic) {
        let Some(summed) = self.summed(&a.place.name) else {
            self.line("#pragma omp atomic");
            return self.assign(&a.place, Some(a.op), &a.value);
        };
        let own = summed.own();
        self.line(&format!("if ({}) {{", summed.is_shared()));
        self.indent += 1;
        self.line("#pragma omp atomic");
        self.assign(&a.place, Some(a.op), &a.value);
        self.indent -= 1;
        self.line("} else {");
        self.indent += 1;
        let place = Place { name: own.into(), ..a.place.clone() };
        self.assign(&place, Some(a.op), &a.value);
        self.indent -= 1;
        self.line("}");
    }

    /// The loop over groups, each thread with copies of what it adds to.
    pub(super) fn groups_with_copies(&mut self, f: &For) {
        let summed = self.summed.clone();
        self.line("// each thread adds to a copy of its own, if there are few threads and many updates");
        for s in &summed {
            let (ty, copies, elements) = (self.dialect.ty(s.ty), s.copies(), &s.elements);
            let groups: Vec<String> = self.grid.iter().map(|name| format!("{name}*")).collect();
            let updates = format!("{}{}", groups.concat(), s.updates);
            let make = format!("kingpost_new_copies_{}({elements}, {updates})", s.ty.name());
            self.line(&format!("{ty} *const {copies} = {make};"));
            self.helpers.insert(super::Helper::Copies(s.ty));
        }
        self.line("#pragma omp parallel");
        self.line("{");
        self.indent += 1;
        for s in &summed {
            let (ty, own, name, elements) = (self.dialect.ty(s.ty), s.own(), &s.name, &s.elements);
            let (copies, shared) = (s.copies(), s.is_shared());
            let zeroed = format!("kingpost_zeroed_{}({name}, {copies}, {elements})", s.ty.name());
            self.line(&format!("{ty} *const {own} = {zeroed};"));
            self.line(&format!("const int {shared} = kingpost_is_shared_{}({copies});", s.ty.name()));
        }
        let pragma = super::dialect::groups_pragma(f, true);
        self.line(&pragma);
        self.loop_head(f);
        self.in_groups = true;
        self.braced(&f.body);
        for s in &summed {
            let (copies, name, elements) = (s.copies(), &s.name, &s.elements);
            self.line(&format!("kingpost_add_up_{}({name}, {copies}, {elements});", s.ty.name()));
        }
        self.indent -= 1;
        self.line("}");
        for s in &summed {
            self.line(&format!("__builtin_free({});", s.copies()));
        }
    }
}
