//! Bounds of the rounding errors of a program, by a running error analysis.

use crate::{checked, refused};
use kingpost_ir::{
    AddressSpace, Arithmetic, AxisTag, BinaryOp, Direction, Expr, ExprType, Kernel, MathFn, Node, Real,
    ScalarType, UnaryOp, UpdateOp, VarId, VarKind, WriteOp,
};
use kingpost_steps::refusal::{Refusal, TransformError};
use std::collections::BTreeMap;

/// A program with what bounds its errors.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundedErrors {
    /// The program.
    pub kernel: Kernel,
    /// The argument that bounds the errors of each result, by the name of that.
    pub errors: BTreeMap<String, String>,
}

/// Makes a program that computes, with the results of `kernel` in `f64`, a bound of how far those
/// of `kernel` are from them: a running error analysis (Higham 2002, section 3.3).
///
/// Each real has an error of its own, which each instruction bounds by those of its operands and of
/// its own roundings: `2^-24` of a result in `f32`, `2^-53` in `f64`, `2^-44` of the sizes of the
/// operands in double-single numbers, and what is lost where a number or an entry of a table is
/// first represented. Results of any order of a sum, and of fused products, are within it. The new
/// arguments are added to; they start with the errors of what results start from.
///
/// ```text
/// temp t: f32 private                  =>   temp t: f64 private
///                                           temp t_error: f64 private
/// arg y: f64[n] inout                       arg y: f64[n] inout
///                                           arg y_error: f64[n] inout
///
/// for i in 0..n                             for i in 0..n
///   s: t = f32(a[i])                          s_error: t_error = 6e-8*fabs(a[i])
///                                             s: t = a[i]
///   r: y[i] += t                              r_error: y_error[i] += t_error + 1.2e-16*(…)
///                                             r: y[i] += t
/// ```
/// The program runs in the order of its text: tags of axes are taken away.
///
/// # Errors
/// A reduction, which has to be realised first; conditions on reals, which another rounding may
/// turn; functions other than absolute values, extrema and square roots.
pub fn bound_errors(kernel: &Kernel) -> Result<BoundedErrors, TransformError> {
    let operation = format!("bound the errors of `{}`", kernel.name);
    let source = kernel.with_rules_expanded();
    let mut made = source.clone();
    made.arithmetic = Arithmetic::Native;
    made.callees = kingpost_ir::Arena::default();
    made.inames.values_mut().for_each(|iname| iname.tag = AxisTag::Sequential);
    let mut errors = BTreeMap::new();
    let mut bounds: BTreeMap<VarId, VarId> = BTreeMap::new();
    for (id, var) in source.vars.iter().filter(|(_, var)| var.ty.is_real()) {
        let own = &mut made.vars[id];
        if !matches!(var.kind, VarKind::Argument(_)) {
            own.ty = ScalarType::F64;
        }
        own.storage = None;
        if own.space == AddressSpace::SubGroup {
            own.space = AddressSpace::Local;
        }
        let is_bounded = match var.kind {
            VarKind::Temporary => true,
            VarKind::Argument(direction) => direction != Direction::In,
            VarKind::Param | VarKind::Table(_) => false,
        };
        if is_bounded {
            let mut error = made.vars[id].clone();
            error.ty = ScalarType::F64;
            error.name = made.fresh_name(&format!("{}_error", var.name));
            if let VarKind::Argument(_) = var.kind {
                error.kind = VarKind::Argument(Direction::InOut);
                errors.insert(var.name.clone(), error.name.clone());
            }
            bounds.insert(id, made.vars.push(error));
        }
    }
    let analysis = Errors { kernel: &source, bounds: &bounds };
    let mut before = BTreeMap::new();
    for (id, insn) in source.insns.iter() {
        made.insns[id].callee = None;
        made.insns[id].rhs = in_f64(&insn.rhs);
        if let WriteOp::Update { op, .. } = insn.op {
            made.insns[id].op = WriteOp::Update { op, atomic: false };
        }
        if insn.predicate.as_ref().is_some_and(|p| analysis.mentions_reals(p)) {
            return Err(refused(&operation, undecided(&format!("the condition of `{}`", insn.name))));
        }
        let Some(error) = bounds.get(&insn.lhs.var) else { continue };
        let (op, rhs) = analysis.of_insn(insn).map_err(|cause| refused(&operation, cause))?;
        let mut own = insn.clone();
        own.name = made.fresh_name(&format!("{}_error", insn.name));
        (own.lhs.var, own.op, own.rhs, own.callee) = (*error, op, rhs, None);
        before.insert(id, made.insns.push(own));
    }
    insert(&mut made.body, &before);
    Ok(BoundedErrors { kernel: checked(&operation, made)?, errors })
}

/// Puts instructions before others.
fn insert(nodes: &mut Vec<Node>, before: &BTreeMap<kingpost_ir::InsnId, kingpost_ir::InsnId>) {
    for mut node in std::mem::take(nodes) {
        match &mut node {
            Node::Loop(_, body) => insert(body, before),
            Node::Insn(id) => nodes.extend(before.get(id).map(|error| Node::Insn(*error))),
        }
        nodes.push(node);
    }
}

/// The expression without conversions of reals to `f32`.
fn in_f64(e: &Expr) -> Expr {
    e.map(&mut |node| match node {
        Expr::Cast(ScalarType::F32, inner) => Expr::Cast(ScalarType::F64, inner),
        other @ (Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_)) => other,
    })
}

fn undecided(what: &str) -> Refusal {
    Refusal::argument("kernel", format!("{what} depends on reals"), "values that no rounding turns")
}

fn number(x: f64) -> Expr {
    Expr::Real(Real(x))
}

fn abs(e: Expr) -> Expr {
    Expr::Call(MathFn::Fabs, vec![e])
}

fn sum(terms: impl IntoIterator<Item = Expr>) -> Expr {
    let is_zero = |e: &Expr| matches!(e, Expr::Real(x) if x.0 == 0.0);
    let terms = terms.into_iter().filter(|e| !is_zero(e));
    terms.reduce(|a, b| Expr::binary(BinaryOp::Add, a, b)).unwrap_or_else(|| number(0.0))
}

fn times(a: Expr, b: Expr) -> Expr {
    let is_zero = |e: &Expr| matches!(e, Expr::Real(x) if x.0 == 0.0);
    if is_zero(&a) || is_zero(&b) { number(0.0) } else { Expr::binary(BinaryOp::Mul, a, b) }
}

/// The errors of a kernel's reals.
struct Errors<'k> {
    kernel: &'k Kernel,
    /// The variable that bounds the error of each.
    bounds: &'k BTreeMap<VarId, VarId>,
}

/// What the run in `f64` that results are compared with rounds itself.
const OF_REFERENCE: f64 = 1.2e-16;

impl Errors<'_> {
    fn type_of(&self, e: &Expr, context: ScalarType) -> ScalarType {
        match self.kernel.type_of(e, &[]) {
            Ok(ExprType::Scalar(ty)) => ty,
            // literals have the type of their context; the kernel is well formed
            Ok(_) | Err(_) => context,
        }
    }

    fn mentions_reals(&self, e: &Expr) -> bool {
        let mut found = false;
        e.for_each(&mut |e| {
            found |= matches!(e, Expr::Load(access) if self.kernel.vars[access.var].ty.is_real());
        });
        found
    }

    /// The error of an operation in parts of its result, or of its operands' sizes.
    fn unit(&self, ty: ScalarType) -> f64 {
        OF_REFERENCE
            + match (ty, self.kernel.arithmetic) {
                (ScalarType::F32, _) => 2.0_f64.powi(-24),
                // `PairOp::bound`, that of `a + b*c`
                (_, Arithmetic::DoubleSingle) => 2.0_f64.powi(-44),
                (_, Arithmetic::Native) => 2.0_f64.powi(-53),
            }
    }

    /// What representing a number of a type loses, in parts of it.
    fn representation(&self, ty: ScalarType) -> f64 {
        match (ty, self.kernel.arithmetic) {
            (ScalarType::F32, _) => 2.0_f64.powi(-24),
            (_, Arithmetic::DoubleSingle) => 2.0_f64.powi(-48),
            (_, Arithmetic::Native) => 0.0,
        }
    }

    /// The size of a value, with its error.
    fn size(&self, e: &Expr, ty: ScalarType) -> Result<Expr, Refusal> {
        Ok(sum([abs(in_f64(e)), self.error(e, ty)?]))
    }

    /// How an instruction changes the error of what it writes.
    fn of_insn(&self, insn: &kingpost_ir::Insn) -> Result<(WriteOp, Expr), Refusal> {
        let ty = self.kernel.vars[insn.lhs.var].ty;
        let before = || Expr::Load(insn.lhs.clone());
        // what is stored in global memory is rounded to `f64` once more
        let stored = |e: Expr, size: Expr| sum([e, times(number(OF_REFERENCE), size)]);
        Ok(match insn.op {
            WriteOp::Assign => {
                (WriteOp::Assign, stored(self.error(&insn.rhs, ty)?, self.size(&insn.rhs, ty)?))
            }
            WriteOp::Update { op: UpdateOp::Add, .. } => {
                let is_held = self.kernel.vars[insn.lhs.var].space != AddressSpace::Global;
                let unit = if is_held { self.unit(ty) } else { 2.0 * OF_REFERENCE };
                let sizes = sum([self.size(&before(), ty)?, self.size(&insn.rhs, ty)?]);
                let error = sum([self.error(&insn.rhs, ty)?, times(number(unit), sizes)]);
                (WriteOp::Update { op: UpdateOp::Add, atomic: false }, error)
            }
            WriteOp::Update { op: UpdateOp::Mul, .. } => {
                let product = Expr::binary(BinaryOp::Mul, before(), insn.rhs.clone());
                (WriteOp::Assign, stored(self.error(&product, ty)?, self.size(&product, ty)?))
            }
            WriteOp::Update { op: UpdateOp::Min | UpdateOp::Max, .. } => {
                (WriteOp::Update { op: UpdateOp::Max, atomic: false }, self.error(&insn.rhs, ty)?)
            }
            WriteOp::Update { op: UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_), .. } => {
                return Err(undecided(&format!("`{}`", insn.name)));
            }
        })
    }

    /// A bound of the error of an expression in a context of a type.
    fn error(&self, e: &Expr, context: ScalarType) -> Result<Expr, Refusal> {
        let ty = self.type_of(e, context);
        Ok(match e {
            Expr::Int(_) | Expr::Iname(_) => number(0.0),
            Expr::Real(x) if f64::from(x.0 as f32) == x.0 => number(0.0),
            Expr::Real(_) => times(number(self.representation(ty)), abs(e.clone())),
            Expr::Load(access) => match self.bounds.get(&access.var) {
                Some(error) => {
                    let mut access = access.clone();
                    access.var = *error;
                    Expr::Load(access)
                }
                None if !self.kernel.vars[access.var].ty.is_real() => number(0.0),
                None if matches!(self.kernel.vars[access.var].kind, VarKind::Argument(_))
                    && ty == ScalarType::F32 =>
                {
                    number(0.0)
                }
                None => times(number(self.representation(ty)), abs(e.clone())),
            },
            Expr::Unary(UnaryOp::Neg, a) => self.error(a, ty)?,
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => self.of_sum(e, ty)?,
            Expr::Binary(BinaryOp::Mul, ..) => self.of_product(e, ty)?,
            Expr::Binary(BinaryOp::Div, a, b) => self.of_quotient(a, b, ty)?,
            Expr::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => {
                Expr::binary(BinaryOp::Max, self.error(a, ty)?, self.error(b, ty)?)
            }
            Expr::Call(MathFn::Fabs, args) => self.error(&args[0], ty)?,
            Expr::Call(MathFn::Fmin | MathFn::Fmax, args) => {
                Expr::binary(BinaryOp::Max, self.error(&args[0], ty)?, self.error(&args[1], ty)?)
            }
            Expr::Call(MathFn::Sqrt, args) => {
                let root = in_f64(e);
                let of_operand = Expr::binary(BinaryOp::Div, self.error(&args[0], ty)?, root.clone());
                sum([of_operand.clone(), times(number(self.unit(ty)), sum([root, of_operand]))])
            }
            Expr::Cast(to, a) if to.is_real() && self.type_of(a, ScalarType::F64).is_real() => {
                // a cast is no context
                let ty = ScalarType::F64;
                let narrows = *to == ScalarType::F32 && self.type_of(a, ty) == ty;
                let rounding =
                    if narrows { times(number(self.unit(*to)), self.size(a, ty)?) } else { number(0.0) };
                sum([self.error(a, ty)?, rounding])
            }
            Expr::Cast(to, a) if to.is_real() => times(number(self.representation(*to)), abs(in_f64(a))),
            Expr::Select(c, a, b) if !self.mentions_reals(c) => {
                Expr::Select(c.clone(), Box::new(self.error(a, ty)?), Box::new(self.error(b, ty)?))
            }
            Expr::Select(..) => return Err(undecided("a choice")),
            Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => {
                let found = "an operation whose error has no bound here";
                let needed = "sums, products, quotients, roots, extrema; realise reductions first";
                return Err(Refusal::argument("kernel", found, needed));
            }
        })
    }

    /// Of `n` terms, `n - 1` roundings of the sum of their sizes.
    fn of_sum(&self, e: &Expr, ty: ScalarType) -> Result<Expr, Refusal> {
        let mut terms = Vec::new();
        self.operands(e, &[BinaryOp::Add, BinaryOp::Sub], ty, &mut terms);
        let errors: Vec<Expr> = terms.iter().map(|t| self.error(t, ty)).collect::<Result<_, _>>()?;
        let sizes: Vec<Expr> = terms.iter().map(|t| self.size(t, ty)).collect::<Result<_, _>>()?;
        let roundings = self.unit(ty) * (terms.len() - 1) as f64;
        Ok(sum(errors.into_iter().chain([times(number(roundings), sum(sizes))])))
    }

    /// `prod (|f| + e) - prod |f|`, factor by factor, and a rounding of the product of sizes for
    /// each.
    fn of_product(&self, e: &Expr, ty: ScalarType) -> Result<Expr, Refusal> {
        let mut factors = Vec::new();
        self.operands(e, &[BinaryOp::Mul], ty, &mut factors);
        let product = |parts: Vec<Expr>| parts.into_iter().reduce(times).unwrap_or_else(|| number(1.0));
        let mut terms = Vec::new();
        for k in 0..factors.len() {
            let mut parts: Vec<Expr> =
                factors[..k].iter().map(|f| self.size(f, ty)).collect::<Result<_, _>>()?;
            parts.push(self.error(factors[k], ty)?);
            parts.extend(factors[k + 1..].iter().map(|f| abs(in_f64(f))));
            terms.push(product(parts));
        }
        let sizes = factors.iter().map(|f| self.size(f, ty)).collect::<Result<_, _>>()?;
        let roundings = self.unit(ty) * (factors.len() - 1) as f64;
        Ok(sum(terms.into_iter().chain([times(number(roundings), product(sizes))])))
    }

    /// `(ea + |a/b| eb)/(|b| - eb)`, and a rounding; infinite where the divisor may be zero.
    fn of_quotient(&self, a: &Expr, b: &Expr, ty: ScalarType) -> Result<Expr, Refusal> {
        let quotient = abs(Expr::binary(BinaryOp::Div, in_f64(a), in_f64(b)));
        let above = sum([self.error(a, ty)?, times(quotient.clone(), self.error(b, ty)?)]);
        let left = Expr::binary(BinaryOp::Sub, abs(in_f64(b)), self.error(b, ty)?);
        let least = Expr::binary(BinaryOp::Max, left, number(0.0));
        let of_operands = Expr::binary(BinaryOp::Div, above, least);
        Ok(sum([of_operands.clone(), times(number(self.unit(ty)), sum([quotient, of_operands]))]))
    }

    /// The operands of a sum or product whose parts have its type.
    fn operands<'e>(&self, e: &'e Expr, ops: &[BinaryOp], ty: ScalarType, found: &mut Vec<&'e Expr>) {
        if let Expr::Binary(op, a, b) = e
            && ops.contains(op)
            && self.type_of(e, ty) == ty
        {
            self.operands(a, ops, ty, found);
            self.operands(b, ops, ty, found);
        } else {
            found.push(e);
        }
    }
}
