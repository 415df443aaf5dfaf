//! Nests and statements of samples.

use super::draw::{Array, Draw, Extent};
use super::plan::{NestPlan, RangePlan, StatementPlan};
use super::range::pick;
use kingpost_ir::affine::Affine;
use kingpost_ir::domain::Domain;
use kingpost_ir::expr::{Access, BinaryOp, Expr, MathFn, UpdateOp};
use kingpost_ir::ids::InameId;
use kingpost_ir::kernel::WriteOp;
use kingpost_ir::types::{Class, ScalarType};

impl Draw {
    /// Adds the nest of a plan at the end of the kernel.
    pub(super) fn nest(&mut self, plan: &NestPlan) {
        let depths: Vec<usize> = plan.statements.iter().map(|s| loops_around(s, plan.loops.len())).collect();
        let deepest = depths.iter().copied().max().unwrap_or(0);
        self.level(plan, &depths, 0, deepest);
    }

    /// Statements inside `depth` loops, with the deeper ones between them.
    fn level(&mut self, plan: &NestPlan, depths: &[usize], depth: usize, deepest: usize) {
        let here = |after| {
            let at =
                depths.iter().zip(&plan.statements).filter(move |(d, s)| **d == depth && s.after == after);
            at.map(|(_, s)| s)
        };
        for statement in here(false) {
            self.statement(statement);
        }
        if depth < deepest {
            let (iname, extent) = self.loop_of(plan.loops[depth]);
            self.b.open(iname);
            self.scope.push((iname, extent));
            self.level(plan, depths, depth + 1, deepest);
            self.change_bound((iname, plan.loops[depth]), false);
            self.scope.pop();
            self.b.close_loop();
        }
        for statement in here(true) {
            self.statement(statement);
        }
        if depth == deepest {
            let around: Vec<InameId> = self.scope.iter().map(|(i, _)| *i).collect();
            around.into_iter().zip(plan.loops.clone()).for_each(|own| self.change_bound(own, true));
        }
    }

    /// A loop; one of several shapes is `0..count[i]` through a scalar that is loaded before it, in
    /// half of them the scalar of an earlier such loop.
    pub(super) fn loop_of(&mut self, plan: RangePlan) -> (InameId, Extent) {
        let rows: Vec<InameId> =
            self.scope.iter().filter(|(_, e)| *e == Extent::N).map(|(i, _)| *i).collect();
        let row = rows.last().filter(|_| self.config.data_dependent && plan.shape % 8 == 7);
        let Some(row) = row.copied() else { return self.range(plan) };
        let earlier = self.bounds.last().filter(|_| plan.shape & 8 != 0).map(|(_, stop)| *stop);
        let stop = earlier.unwrap_or_else(|| {
            let name = self.name("rows");
            self.b.temporary(name, ScalarType::I32, [])
        });
        let name = self.name("s");
        self.b.assign(name, Access::scalar(stop), Expr::load(self.count, [row.into()]));
        let (name, guard) = (self.name("i"), self.guard(plan.condition));
        let rows = |i| Domain::range(i, &Affine::constant(0), &Affine::var(stop)).intersect(&guard);
        let iname = self.b.iname(name, rows);
        self.bounds.push((iname, stop));
        (iname, Extent::M)
    }

    /// Writes the scalar at which a loop ends, which was read on entry: in some loops, always or in
    /// the first iteration of all loops around.
    fn change_bound(&mut self, (iname, plan): (InameId, RangePlan), first: bool) {
        let stop = self.bounds.iter().find(|(i, _)| *i == iname).map(|(_, stop)| *stop);
        let wanted = if first { 48 } else { 16 };
        let Some(stop) = stop.filter(|_| plan.shape & 48 == wanted) else { return };
        let name = self.name("s");
        let insn = self.b.assign(name, Access::scalar(stop), i64::from(plan.shape >> 6) % 2);
        let firsts = self.scope.iter().map(|(i, _)| Expr::binary(BinaryOp::Lt, *i, 1));
        let all = firsts.reduce(|a, b| Expr::binary(BinaryOp::And, a, b));
        self.b.insn_mut(insn).predicate = all.filter(|_| first);
    }

    fn statement(&mut self, plan: &StatementPlan) {
        let targets: Vec<&Array> = self
            .arrays
            .iter()
            .chain(&self.integers)
            .chain(&self.others)
            .filter(|array| array.written)
            .collect();
        let target = pick(&targets, plan.target);
        let (lhs, ty) = (self.element(target, plan.index), target.ty);
        let mut value = match ty.class() {
            Class::Real => self.expression(&plan.value),
            Class::Exact => self.integer(&plan.value),
            Class::Word => self.word(&plan.value, plan.index),
            Class::Truth | Class::Record => self.condition(plan.index[0]),
            Class::Complex => self.complex(&plan.value, plan.index),
        };
        if plan.staged {
            value = self.staged(plan, value, ty);
        }
        let op = pick(
            &[None, Some(UpdateOp::Add), Some(UpdateOp::Min), Some(UpdateOp::Max), Some(UpdateOp::Mul)],
            plan.op,
        );
        let op = match op {
            Some(_) if ty == ScalarType::Bool => Some(pick(&[UpdateOp::Or, UpdateOp::And], plan.op)),
            // what is stored has to fit
            Some(UpdateOp::Add | UpdateOp::Mul) if ty.is_storage() => Some(UpdateOp::Max),
            Some(UpdateOp::Mul) if ty.is_exact() => Some(UpdateOp::Add),
            // complex numbers have no order
            Some(UpdateOp::Min | UpdateOp::Max) if ty.is_complex() => Some(UpdateOp::Add),
            op => op,
        };
        if ty.is_storage() && ty.is_exact() {
            value = Expr::Cast(ScalarType::I32, Box::new(Expr::binary(BinaryOp::Mod, value, 100)));
        }
        if op == Some(UpdateOp::Mul) && ty.is_real() {
            value = Expr::call(MathFn::Cos, [value]); // a factor within [-1, 1]: products stay small
        }
        if op == Some(UpdateOp::Mul) && ty.is_complex() {
            // a factor of size 1
            let turn = [Expr::from(0.0), Expr::call(MathFn::RealPart, [value])];
            value = Expr::call(MathFn::Exp, [Expr::call(MathFn::Complex, turn)]);
        }
        let value = self.stored(ty, value);
        let name = self.name("s");
        let insn = match op {
            None => self.b.assign(name, lhs, value),
            Some(op) => self.b.update(name, lhs, op, value),
        };
        let predicate = plan.predicate.map(|k| self.condition(k));
        let insn = self.b.insn_mut(insn);
        assert!(matches!(insn.op, WriteOp::Assign | WriteOp::Update { atomic: false, .. }));
        insn.predicate = predicate;
    }

    /// The value by way of a scalar, in half of the typed samples one of 32 bits.
    fn staged(&mut self, plan: &StatementPlan, value: Expr, of: ScalarType) -> Expr {
        let narrow = self.config.typed && plan.index[1] & 32 != 0;
        let (ty, value) = match (of.class(), narrow) {
            (Class::Real, false) => (ScalarType::F64, value),
            (Class::Real, true) => (ScalarType::F32, value),
            (Class::Exact, false) => (ScalarType::I64, value),
            (Class::Exact, true) => (ScalarType::I32, Expr::binary(BinaryOp::Mod, value, 1000)),
            (Class::Word | Class::Truth | Class::Complex | Class::Record, _) => (of, value),
        };
        let name = self.name("t");
        let stage = self.b.temporary(name, ty, []);
        let (name, value) = (self.name("s"), self.stored(ty, value));
        self.b.assign(name, Access::scalar(stage), value);
        if of.is_real() { Expr::scalar(stage) * 0.5 } else { Expr::scalar(stage) }
    }
}

fn loops_around(statement: &StatementPlan, loops: usize) -> usize {
    // mostly inside all loops, as in real programs; 0 picks that, so that shrinking does
    match usize::from(statement.depth) % (2 * loops) {
        k if k < loops => loops,
        k => k - loops,
    }
}
