//! The pass that makes pairs of the reals of 64 bits that a work-item or group holds.
//!
//! Arrays in global memory and scalar arguments stay `f64`: what is read there is split into a
//! pair, what is stored joined. So do arrays in local memory that are updated atomically, as no
//! device updates a pair at once. Functions that pairs lack are those of `f64`.

use super::{HELD, PairOp, parts};
use crate::ast::{Atomic, Block, CodePiece, Declare, Expr, Extent, Name, Op, Place, Stmt};
use crate::complex::ComplexOp;
use crate::function::Function;
use crate::vectors::offset::type_of;
use kingpost_ir::{Arithmetic, Kernel, MathFn, ScalarType, TableData, UpdateOp, VarKind, Variable};
use std::collections::{BTreeMap, BTreeSet};

/// What a pass meets that it does not know.
type Unexpected = String;

/// Rewrites a function; `tables` are names of what is declared as pairs already.
///
/// # Errors
/// Code that a pass after this one writes.
pub(crate) fn rewrite(function: &mut Function, tables: &BTreeSet<Name>) -> Result<(), Unexpected> {
    let mut names = Names::default();
    let params = function.params.iter().map(|p| (&p.name, p.ty));
    for (name, ty) in params.chain(function.constants.iter().map(|c| (&c.name, c.ty))) {
        let is_pair = tables.contains(name);
        names.types.insert(name.clone(), if is_pair { ScalarType::F64 } else { ty });
        names.pairs.extend(is_pair.then(|| name.clone()));
    }
    let mut updated = BTreeSet::new();
    atomics(&function.body, &mut updated);
    names.declared(&function.body, &updated);
    names.block(&mut function.body)
}

/// Whether code holds a variable of the kernel as pairs although its memory is not the code's own:
/// a table, whose entries are split before.
pub(crate) fn is_split(kernel: &Kernel, var: &Variable) -> bool {
    kernel.arithmetic == Arithmetic::DoubleSingle
        && var.ty == ScalarType::F64
        && matches!(var.kind, VarKind::Table(_))
}

/// Type and entries of a table as code has them.
pub(crate) fn held_table(kernel: &Kernel, var: &Variable, data: &TableData) -> (ScalarType, TableData) {
    match data {
        TableData::Real(values) if is_split(kernel, var) => {
            (HELD, TableData::complex(values.iter().map(|v| parts(v.0))))
        }
        TableData::Real(_) | TableData::Int(_) | TableData::Complex(_) => (var.ty, data.clone()),
    }
}

/// Names of what is updated atomically.
fn atomics(block: &Block, updated: &mut BTreeSet<Name>) {
    for stmt in block {
        if let Stmt::Atomic(Atomic { place, .. }) = stmt {
            updated.insert(place.name.clone());
        }
        stmt.body().into_iter().for_each(|body| atomics(body, updated));
    }
}

/// What names stand for.
#[derive(Default)]
struct Names {
    /// Types before the pass.
    types: BTreeMap<Name, ScalarType>,
    /// Those that hold pairs after it.
    pairs: BTreeSet<Name>,
}

fn of(op: PairOp, args: impl IntoIterator<Item = Expr>) -> Expr {
    Expr::Pair(op, args.into_iter().collect())
}

fn boxed(e: Expr) -> Box<Expr> {
    Box::new(e)
}

impl Names {
    fn declared(&mut self, block: &Block, updated: &BTreeSet<Name>) {
        for stmt in block {
            match stmt {
                Stmt::Declare(d) => {
                    self.types.insert(d.name.clone(), d.ty);
                    if d.ty == ScalarType::F64 && !updated.contains(&d.name) {
                        self.pairs.insert(d.name.clone());
                    }
                }
                Stmt::For(f) => drop(self.types.insert(f.name.clone(), f.ty)),
                Stmt::Comment(_)
                | Stmt::Assign { .. }
                | Stmt::Atomic(_)
                | Stmt::Intrinsic(_)
                | Stmt::If { .. }
                | Stmt::Iteration(_)
                | Stmt::Barrier(_) => {}
            }
            stmt.body().into_iter().for_each(|body| self.declared(body, updated));
        }
    }

    fn block(&self, block: &mut Block) -> Result<(), Unexpected> {
        for stmt in block {
            self.stmt(stmt)?;
            if let Some(body) = stmt.body_mut() {
                self.block(body)?;
            }
        }
        Ok(())
    }

    fn stmt(&self, stmt: &mut Stmt) -> Result<(), Unexpected> {
        match stmt {
            Stmt::Declare(Declare { name, ty, value, .. }) => {
                let is_pair = self.pairs.contains(name);
                if let Some(found) = value.take() {
                    *value = Some(if is_pair { self.pair(found)? } else { self.stored(found, *ty)? });
                }
                if is_pair {
                    *ty = HELD;
                }
            }
            Stmt::Assign { place, op, value, .. } => {
                let found = std::mem::replace(value, Expr::Bool(false));
                *place = self.place(place.clone())?;
                if !self.pairs.contains(&place.name) {
                    let ty = self.types.get(&place.name).ok_or_else(|| format!("`{}`", place.name))?;
                    *value = self.stored(found, *ty)?;
                    return Ok(());
                }
                let before = || Expr::Load(place.clone());
                *value = match op.take() {
                    None => self.pair(found)?,
                    Some(UpdateOp::Add) => self.sum(before(), found)?,
                    Some(UpdateOp::Mul) => of(PairOp::Mul, [before(), self.pair(found)?]),
                    Some(
                        other @ (UpdateOp::Min
                        | UpdateOp::Max
                        | UpdateOp::Or
                        | UpdateOp::And
                        | UpdateOp::Named(_)),
                    ) => return Err(format!("the update {other:?}")),
                };
            }
            Stmt::Atomic(Atomic { place, value, ty, .. }) => {
                *place = self.place(place.clone())?;
                *value = self.stored(std::mem::replace(value, Expr::Bool(false)), *ty)?;
            }
            Stmt::Intrinsic(i) => {
                for piece in &mut i.pieces {
                    if let CodePiece::Value(e) | CodePiece::Address(e) = piece {
                        *e = self.native(std::mem::replace(e, Expr::Bool(false)))?;
                    }
                }
            }
            Stmt::If { condition, .. } => {
                *condition = self.native(std::mem::replace(condition, Expr::Bool(false)))?;
            }
            // ends of loops are integers
            Stmt::For(_) | Stmt::Comment(_) | Stmt::Iteration(_) | Stmt::Barrier(_) => {}
        }
        Ok(())
    }

    fn place(&self, mut place: Place) -> Result<Place, Unexpected> {
        if place.extent != Extent::Whole {
            return Err("a vector".into());
        }
        if let Some(offset) = place.offset.take() {
            place.offset = Some(boxed(self.native(*offset)?));
        }
        Ok(place)
    }

    fn type_of(&self, e: &Expr) -> Option<ScalarType> {
        type_of(e, &|name| self.types.get(name).copied())
    }

    /// A value as one of `ty` that is no pair.
    fn stored(&self, e: Expr, ty: ScalarType) -> Result<Expr, Unexpected> {
        if self.type_of(&e) == Some(ScalarType::F64) && ty == ScalarType::F32 {
            return Ok(of(PairOp::High, [self.pair(e)?]));
        }
        self.native(e)
    }

    /// A value as the language has it: what is of 64 bits is joined.
    fn native(&self, mut e: Expr) -> Result<Expr, Unexpected> {
        let is_wide = |e: &Expr| self.type_of(e) == Some(ScalarType::F64);
        if is_wide(&e) {
            return self.joined(e);
        }
        if let Expr::Load(place) = e {
            return Ok(Expr::Load(self.place(place)?));
        }
        if let Expr::Binary(op, a, b) = e {
            if is_wide(&a) || is_wide(&b) {
                return self.condition(op, *a, *b);
            }
            return Ok(Expr::Binary(op, boxed(self.native(*a)?), boxed(self.native(*b)?)));
        }
        if let Expr::Complex(ComplexOp::Real | ComplexOp::Imag, HELD, args) = &e
            && let [Expr::Load(held)] = args.as_slice()
            && self.pairs.contains(&held.name)
        {
            // a part of a pair, which is shuffled
            return Ok(e);
        }
        if matches!(e, Expr::Vector { .. } | Expr::LanesCall(..)) {
            return Err("a vector".into());
        }
        if let Expr::Cast(ScalarType::F32, a) = &mut e
            && is_wide(a)
        {
            return Ok(of(PairOp::High, [self.pair(std::mem::replace(a, Expr::Bool(false)))?]));
        }
        for operand in e.operands_mut() {
            *operand = self.native(std::mem::replace(operand, Expr::Bool(false)))?;
        }
        Ok(e)
    }

    /// A real of 64 bits as the language has it.
    fn joined(&self, e: Expr) -> Result<Expr, Unexpected> {
        if matches!(&e, Expr::Real(..)) {
            return Ok(e);
        }
        if let Expr::Load(place) = &e
            && !self.pairs.contains(&place.name)
        {
            return Ok(Expr::Load(self.place(place.clone())?));
        }
        let mut pair = self.pair(e)?;
        if let Expr::Pair(PairOp::Split, whole) = &mut pair
            && let Some(whole) = whole.pop()
        {
            return Ok(whole);
        }
        Ok(of(PairOp::Join, [pair]))
    }

    /// A comparison of reals, of which one has 64 bits.
    fn condition(&self, op: Op, a: Expr, b: Expr) -> Result<Expr, Unexpected> {
        let equal = |a, b| Ok(of(PairOp::Equal, [self.pair(a)?, self.pair(b)?]));
        match op {
            Op::Lt => Ok(of(PairOp::Less, [self.pair(a)?, self.pair(b)?])),
            Op::Le => Ok(of(PairOp::LessEqual, [self.pair(a)?, self.pair(b)?])),
            Op::Eq => equal(a, b),
            Op::Ne => Ok(Expr::Not(boxed(equal(a, b)?))),
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
            | Op::Shr => Err(format!("{op:?} of reals")),
        }
    }

    /// A real, of 64 bits or less, or an integer as a pair.
    fn pair(&self, e: Expr) -> Result<Expr, Unexpected> {
        if self.type_of(&e) != Some(ScalarType::F64) {
            let ty = self.type_of(&e);
            let value = self.native(e)?;
            return Ok(match ty {
                Some(ScalarType::F32) => of(PairOp::Make, [value, Expr::Real(0.0, ScalarType::F32)]),
                Some(_) | None => of(PairOp::Split, [Expr::Cast(ScalarType::F64, boxed(value))]),
            });
        }
        Ok(match e {
            Expr::Real(value, _) => {
                of(PairOp::Make, parts(value).map(|part| Expr::Real(part, ScalarType::F32)))
            }
            Expr::Load(place) => {
                let is_pair = self.pairs.contains(&place.name);
                let held = Expr::Load(self.place(place)?);
                if is_pair { held } else { of(PairOp::Split, [held]) }
            }
            Expr::Neg(a) => of(PairOp::Neg, [self.pair(*a)?]),
            Expr::Binary(Op::Add, a, b) if is_product(&a) && !is_product(&b) => {
                self.sum(self.pair(*b)?, *a)?
            }
            Expr::Binary(Op::Add, a, b) => self.sum(self.pair(*a)?, *b)?,
            Expr::Binary(Op::Sub, a, b) if is_product(&a) && !is_product(&b) => {
                self.sum(of(PairOp::Neg, [self.pair(*b)?]), *a)?
            }
            Expr::Binary(Op::Sub, a, b) => self.sum(self.pair(*a)?, Expr::Neg(b))?,
            Expr::Binary(Op::Mul, a, b) => self.product(*a, *b)?,
            Expr::Binary(Op::Div, a, b) => of(PairOp::Div, [self.pair(*a)?, self.pair(*b)?]),
            Expr::Select(c, a, b) => {
                Expr::Select(boxed(self.native(*c)?), boxed(self.pair(*a)?), boxed(self.pair(*b)?))
            }
            Expr::Cast(_, a) if self.type_of(&a).is_some_and(ScalarType::is_real) => self.pair(*a)?,
            Expr::Call(f, ty, args) => self.call(f, ty, args)?,
            // by the operations of `f64`
            mut other @ (Expr::Cast(..) | Expr::IntCall(..) | Expr::Complex(..) | Expr::Pair(..)) => {
                for operand in other.operands_mut() {
                    *operand = self.native(std::mem::replace(operand, Expr::Bool(false)))?;
                }
                of(PairOp::Split, [other])
            }
            other @ (Expr::Int(..)
            | Expr::Bool(_)
            | Expr::Hardware { .. }
            | Expr::Not(_)
            | Expr::Binary(..)
            | Expr::LanesCall(..)
            | Expr::Half(..)
            | Expr::Vector { .. }) => return Err(format!("{other:?} of 64 bits")),
        })
    }

    /// `a + e`; one operation where `e` is a product.
    fn sum(&self, a: Expr, e: Expr) -> Result<Expr, Unexpected> {
        if self.type_of(&e) != Some(ScalarType::F64) {
            return Ok(of(PairOp::Add, [a, self.pair(e)?]));
        }
        if let Expr::Neg(inner) = e {
            if let Expr::Binary(Op::Mul, x, y) = *inner {
                return self.sum(a, Expr::Binary(Op::Mul, boxed(Expr::Neg(x)), y));
            }
            return Ok(of(PairOp::Add, [a, of(PairOp::Neg, [self.pair(*inner)?])]));
        }
        if let Expr::Binary(Op::Mul, x, y) = e {
            return Ok(of(PairOp::AddProduct, [a, self.pair(*x)?, self.pair(*y)?]));
        }
        Ok(of(PairOp::Add, [a, self.pair(e)?]))
    }

    /// `a*b`; a number that is an `f32` multiplies as one.
    fn product(&self, a: Expr, b: Expr) -> Result<Expr, Unexpected> {
        Ok(match (single(&a), single(&b)) {
            (_, Some(x)) => of(PairOp::Scale, [self.pair(a)?, x]),
            (Some(x), None) => of(PairOp::Scale, [self.pair(b)?, x]),
            (None, None) => of(PairOp::Mul, [self.pair(a)?, self.pair(b)?]),
        })
    }

    fn call(&self, f: MathFn, ty: ScalarType, args: Vec<Expr>) -> Result<Expr, Unexpected> {
        let known = [
            (MathFn::Sqrt, PairOp::Sqrt),
            (MathFn::Fabs, PairOp::Abs),
            (MathFn::Fmin, PairOp::Min),
            (MathFn::Fmax, PairOp::Max),
        ];
        if let Some((_, op)) = known.into_iter().find(|(known, _)| *known == f) {
            return Ok(of(op, args.into_iter().map(|a| self.pair(a)).collect::<Result<Vec<_>, _>>()?));
        }
        let args = args.into_iter().map(|a| self.native(a)).collect::<Result<_, _>>()?;
        Ok(of(PairOp::Split, [Expr::Call(f, ty, args)]))
    }
}

/// Whether an expression is a product, which one operation adds to a sum.
fn is_product(e: &Expr) -> bool {
    if let Expr::Neg(a) = e { is_product(a) } else { matches!(e, Expr::Binary(Op::Mul, ..)) }
}

/// A literal that an `f32` is.
fn single(e: &Expr) -> Option<Expr> {
    let Expr::Real(value, _) = e else { return None };
    let [high, low] = parts(*value);
    (low == 0.0).then_some(Expr::Real(high, ScalarType::F32))
}
