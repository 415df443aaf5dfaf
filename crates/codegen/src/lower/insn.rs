//! Instructions: guards for axes they are not on, predicate, assignment or update.

use super::{Lower, guarded};
use crate::ast::update_value;
use crate::ast::{Atomic, Block, Expr, IntFn, Op, Place, Stmt};
use crate::axes::is_replicated;
use crate::error::CodegenError;
use crate::interval::Interval;
use crate::value::Value;
use kingpost_ir::{Class, Insn, InsnId, ScalarType, UpdateOp, WriteOp};

/// `place op= value`; `min` and `max`, which C has no operator for, as an assignment.
pub(super) fn update(
    place: Place,
    op: UpdateOp,
    ty: ScalarType,
    value: Expr,
    origin: Option<InsnId>,
) -> Stmt {
    let before = Expr::Load(place.clone());
    match update_value(op, ty, before, value) {
        Ok(value) => Stmt::Assign { place, op: None, value, origin },
        Err(value) => Stmt::Assign { place, op: Some(op), value, origin },
    }
}

/// A literal as the code holds it.
fn rounded(value: f64, ty: ScalarType) -> f64 {
    if ty == ScalarType::F32 { f64::from(value as f32) } else { value }
}

/// The truth value of a condition on numbers, such as entries of a table.
fn known(condition: &Expr) -> Option<bool> {
    match condition {
        Expr::Bool(value) => Some(*value),
        Expr::Not(a) => known(a).map(|a| !a),
        Expr::Binary(Op::And, a, b) => match (known(a), known(b)) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), other) | (other, Some(true)) => other,
            (None, None) => None,
        },
        Expr::Binary(op, a, b) => {
            let order = match (&**a, &**b) {
                (Expr::Real(a, ta), Expr::Real(b, tb)) => rounded(*a, *ta).partial_cmp(&rounded(*b, *tb)),
                (Expr::Int(a, ScalarType::U64), Expr::Int(b, _)) => Some((*a as u64).cmp(&(*b as u64))),
                (Expr::Int(a, _), Expr::Int(b, _)) => Some(a.cmp(b)),
                _ => None,
            }?;
            match op {
                Op::Lt => Some(order.is_lt()),
                Op::Le => Some(order.is_le()),
                Op::Eq => Some(order.is_eq()),
                Op::Ne => Some(order.is_ne()),
                Op::Add
                | Op::Sub
                | Op::Mul
                | Op::Div
                | Op::Rem
                | Op::And
                | Op::Or
                | Op::BitAnd
                | Op::BitOr
                | Op::BitXor
                | Op::Shl
                | Op::Shr => None,
            }
        }
        Expr::Int(..)
        | Expr::Real(..)
        | Expr::Load(_)
        | Expr::Hardware { .. }
        | Expr::Neg(_)
        | Expr::Call(..)
        | Expr::IntCall(..)
        | Expr::LanesCall(..)
        | Expr::Half(..)
        | Expr::Complex(..)
        | Expr::Pair(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Vector { .. } => None,
    }
}

impl<'k> Lower<'k> {
    /// Code of an instruction.
    pub(super) fn instruction(&mut self, id: InsnId) -> Result<Block, CodegenError> {
        let insn = &self.kernel.insns[id];
        let guards = self.index_zero_guards(id);
        self.at_lane_zero = self.is_at_lane_zero(id);
        let mut code = Block::new();
        let predicate = match &insn.predicate {
            None => None,
            Some(p) => {
                self.in_predicate = true;
                let predicate = self.with_prelude(&mut code, |this| this.condition(p));
                self.in_predicate = false;
                Some(predicate?)
            }
        };
        let predicate = match predicate.map(|p| (known(&p), p)) {
            Some((Some(false), _)) => return Ok(Block::new()),
            Some((Some(true), _)) | None => None,
            Some((None, p)) => Some(p),
        };
        let mut body = Block::new();
        let statement = self.with_prelude(&mut body, |this| this.statement(id))?;
        body.push(statement);
        code.extend(guarded(predicate.into_iter().collect(), body));
        Ok(guarded(guards, code))
    }

    /// Runs `lower`; what must stand before goes to `code`.
    pub(super) fn with_prelude<T>(
        &mut self,
        code: &mut Block,
        lower: impl FnOnce(&mut Self) -> Result<T, CodegenError>,
    ) -> Result<T, CodegenError> {
        self.prelude.push(Block::new());
        let result = lower(self);
        code.extend(self.take_prelude()?);
        result
    }

    /// The statements that what was lowered since the prelude was opened needs before it.
    pub(super) fn take_prelude(&mut self) -> Result<Block, CodegenError> {
        self.prelude.pop().ok_or_else(|| self.internal("a prelude was closed that nobody opened"))
    }

    fn statement(&mut self, id: InsnId) -> Result<Stmt, CodegenError> {
        let insn: &'k Insn = &self.kernel.insns[id];
        let ty = self.kernel.vars[insn.lhs.var].ty;
        let place = self.place(&insn.lhs)?;
        if let Some(received) = self.received(&place, id)? {
            return Ok(received);
        }
        let value = self.expr_for(&insn.rhs, ty)?;
        let value = match insn.update_op() {
            // arguments of a function, which OpenCL does not convert
            Some(UpdateOp::Min | UpdateOp::Max) if ty.is_real() => value.into_real(&self.env, ty.loaded()),
            Some(_) if ty.is_real() => self.stored(value, ty.loaded()),
            op => self.stored(self.clamped(value, op, ty), ty),
        };
        if let Some(ordered) = &self.ordered
            && let Some(published) = ordered.publish(insn.lhs.var, &place, ty, &value, id)
        {
            return Ok(published);
        }
        Ok(match insn.op {
            WriteOp::Assign => Stmt::Assign { place, op: None, value, origin: Some(id) },
            WriteOp::Update { op, atomic: false } => update(place, op, ty, value, Some(id)),
            WriteOp::Update { op, atomic: true } => {
                match self.kernel.vars[insn.lhs.var].space {
                    // Nobody else writes it.
                    kingpost_ir::AddressSpace::Private | kingpost_ir::AddressSpace::SubGroup => {
                        update(place, op, ty, value, Some(id))
                    }
                    space @ (kingpost_ir::AddressSpace::Global
                    | kingpost_ir::AddressSpace::Constant
                    | kingpost_ir::AddressSpace::Literal
                    | kingpost_ir::AddressSpace::Local) => {
                        let local = space == kingpost_ir::AddressSpace::Local;
                        let (insn, var) = (&insn.name, &self.kernel.vars[insn.lhs.var].name);
                        if ty.bytes() < 4 && !self.target.is_host() {
                            let target = self.target.target;
                            let (insn, var) = (insn.clone(), var.clone());
                            return Err(CodegenError::NarrowAtomic { insn, var, ty, target });
                        }
                        if ty.is_complex() && op != UpdateOp::Add {
                            let (insn, var) = (insn.clone(), var.clone());
                            return Err(CodegenError::ComplexAtomic { insn, var, ty });
                        }
                        Stmt::Atomic(Atomic { place, op, value, ty, local, origin: id })
                    }
                }
            }
        })
    }

    /// Waits for what the instruction copies, if earlier groups write that.
    fn received(&mut self, to: &Place, id: InsnId) -> Result<Option<Stmt>, CodegenError> {
        let kingpost_ir::Expr::Load(access) = &self.kernel.insns[id].rhs else { return Ok(None) };
        if !self.placed.placement.awaited.contains(&access.var) {
            return Ok(None);
        }
        let (place, ty) = (self.place(access)?, self.kernel.vars[access.var].ty);
        Ok(self.ordered.as_ref().and_then(|ordered| ordered.receive(access.var, &place, ty, to, id)))
    }

    /// The value of an update of `ty`: where a minimum or maximum is that of its variable, the
    /// value may be beyond 32 bits on the other side, and is brought inside before it is narrowed.
    pub(super) fn clamped(&self, value: Value, op: Option<UpdateOp>, ty: ScalarType) -> Value {
        if ty.loaded() != ScalarType::I32 || !value.is_integer() {
            return value;
        }
        let (code, from, range) = value.as_integer(&self.env);
        let (function, limit, inside) = match op {
            Some(UpdateOp::Min) => (IntFn::Min, i32::MAX, range.hi <= Interval::I32.hi),
            Some(UpdateOp::Max) => (IntFn::Max, i32::MIN, range.lo >= Interval::I32.lo),
            Some(UpdateOp::Add | UpdateOp::Mul | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_))
            | None => {
                return value;
            }
        };
        if from != ScalarType::I64 || inside {
            return value;
        }
        let limit = Box::new(Expr::Int(limit.into(), ScalarType::I64));
        Value::Int(Expr::IntCall(function, from, Box::new(code), limit), from, range)
    }

    /// A value as an element of type `ty`.
    pub(super) fn stored(&self, value: Value, ty: ScalarType) -> Expr {
        match (ty.class(), value) {
            (Class::Real, Value::Real(e, ScalarType::F32)) => e.encoded(ty),
            (Class::Real, value) => value.into_real(&self.env, ty.loaded()).encoded(ty),
            (Class::Word, value) => value.into_word(&self.env, ty),
            (Class::Complex, value) => value.into_complex(&self.env, ty),
            // a record has been taken apart
            (Class::Truth | Class::Record, value) => value.into_expr(&self.env),
            (Class::Exact, value) => {
                let (e, from, _) = value.as_integer(&self.env);
                if ty != ScalarType::I64 && from == ScalarType::I64 {
                    // The kernel promises that the value fits its variable.
                    Expr::Cast(ty.loaded(), Box::new(e))
                } else {
                    e
                }
            }
        }
    }

    /// `index == 0` for each axis that the instruction is not on, if it writes what others see.
    pub(super) fn index_zero_guards(&self, id: InsnId) -> Vec<Expr> {
        let mut guards = Vec::new();
        for group in [true, false] {
            for axis in 0..3 {
                let inames = self.axes.inames(group, axis);
                let inside = self.scope.iter().any(|i| inames.contains(i));
                if inames.is_empty()
                    || inside
                    || self.axes.is_trivial(group, axis)
                    || is_replicated(self.kernel, id, group)
                {
                    continue;
                }
                let index = Expr::var(self.env.name(self.env.hardware(group, axis as u8)));
                guards.push(Expr::binary(Op::Eq, index, Expr::int(0)));
            }
        }
        guards
    }
}
