//! Values as sums of products, each with one of some scalars.

use kingpost_ir::{
    BinaryOp, Expr, ExprType, InsnId, Kernel, Node, ScalarType, UnaryOp, VarId, VarKind, WriteOp,
};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::proofs::finite::FINITE;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::tree::insns_of;
use std::collections::{BTreeMap, BTreeSet};

/// Each term has one of the scalars.
pub(crate) const LINEAR: Obligation = Obligation::new(
    "collect_factors.linear",
    "each value is a sum of products of type `f64`, in each of which one of the scalars is a factor",
);

/// Sums that are written out stay short.
pub(crate) const SHORT: Obligation =
    Obligation::new("collect_factors.short", "a value has at most 1,024 products when it is written out");

/// Operands have the values that they had.
pub(crate) const SAME: Obligation = Obligation::new(
    "collect_factors.same",
    "what a product reads is not written between the place where it was read and the place where it is",
);

const MOST: usize = 1024;

/// A sum of products: by the texts of its factors, its coefficient and its factors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sum(BTreeMap<Vec<String>, (f64, Vec<Expr>)>);

impl Sum {
    fn constant(value: f64) -> Self {
        Self([(Vec::new(), (value, Vec::new()))].into())
    }

    fn atom(e: Expr) -> Self {
        Self([(vec![format!("{e:?}")], (1.0, vec![e]))].into())
    }

    fn add(&mut self, other: Self) {
        for (key, (c, factors)) in other.0 {
            self.0.entry(key).or_insert((0.0, factors)).0 += c;
        }
        self.0.retain(|_, (c, _)| *c != 0.0);
    }

    fn scaled(mut self, by: f64) -> Self {
        self.0.values_mut().for_each(|(c, _)| *c *= by);
        self
    }

    fn times(&self, other: &Self) -> Self {
        let mut product = Self::default();
        for (a, (c, left)) in &self.0 {
            for (b, (d, right)) in &other.0 {
                let mut pairs: Vec<(String, Expr)> = a.iter().cloned().zip(left.iter().cloned()).collect();
                pairs.extend(b.iter().cloned().zip(right.iter().cloned()));
                pairs.sort_by(|x, y| x.0.cmp(&y.0));
                let (key, factors): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
                product.add(Self([(key, (c * d, factors))].into()));
            }
        }
        product
    }

    /// What tells it from others.
    pub(crate) fn key(&self) -> String {
        self.0.iter().map(|(key, (c, _))| format!("{c:?}*{key:?}")).collect::<Vec<_>>().join("+")
    }

    /// The sum as an expression.
    pub(crate) fn expr(&self) -> Expr {
        let product = |(c, factors): &(f64, Vec<Expr>)| {
            let literal = (*c != 1.0 || factors.is_empty()).then(|| Expr::from(*c));
            literal.into_iter().chain(factors.iter().cloned()).reduce(|a, b| a * b)
        };
        self.0.values().filter_map(product).reduce(|a, b| a + b).unwrap_or(Expr::from(0.0))
    }

    /// Whether it is one scalar.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A value: the factor of each scalar, and what has none of them.
#[derive(Clone, Debug, Default)]
struct Value {
    terms: BTreeMap<VarId, Sum>,
    rest: Sum,
}

/// A body, in which scalars are replaced by what they were given.
pub(crate) struct Body<'k> {
    kernel: &'k Kernel,
    nodes: &'k [Node],
    of: Vec<VarId>,
    /// Where each variable is read by what ends up in a factor.
    read: BTreeMap<VarId, BTreeSet<usize>>,
    /// Stores whose values were put instead of their scalars.
    pub(crate) replaced: BTreeSet<InsnId>,
}

impl<'k> Body<'k> {
    pub(crate) fn new(kernel: &'k Kernel, nodes: &'k [Node], of: &[VarId]) -> Self {
        Self { kernel, nodes, of: of.to_vec(), read: BTreeMap::new(), replaced: BTreeSet::new() }
    }

    /// The factor of each of the scalars in the value of the instruction at a place of the body.
    pub(crate) fn factors(&mut self, place: usize) -> Result<BTreeMap<VarId, Sum>, Refusal> {
        let Node::Insn(insn) = self.nodes[place] else { return Ok(BTreeMap::new()) };
        let insn = &self.kernel.insns[insn];
        let value = self.value(&insn.rhs, place)?;
        LINEAR.require(value.rest.is_empty(), || {
            format!("`{}` adds a term without any of the scalars; name what it depends on, too", insn.name)
        })?;
        Ok(value.terms)
    }

    /// Checks that what factors read has one value from the place where it was read to `place`, where
    /// they are computed; that of the scalars, to `last`.
    pub(crate) fn check_same(&self, place: usize, last: usize) -> Result<(), Refusal> {
        for (var, reads) in &self.read {
            let end = if self.of.contains(var) { last } else { place };
            let from = reads.iter().copied().chain([end]).min().unwrap_or(end);
            let to = reads.iter().copied().chain([end]).max().unwrap_or(end);
            let inside = self.nodes[from..to].iter().flat_map(|node| insns_of(std::slice::from_ref(node)));
            let writer = inside.map(|s| &self.kernel.insns[s]).find(|i| i.lhs.var == *var);
            SAME.require(writer.is_none(), || {
                let name = writer.map_or("", |i| &i.name);
                let var = &self.kernel.vars[*var].name;
                format!("`{name}` writes `{var}` between the places where it is read; move it before them")
            })?;
        }
        Ok(())
    }

    fn value(&mut self, e: &Expr, place: usize) -> Result<Value, Refusal> {
        match e {
            Expr::Real(v) => {
                FINITE.require(v.0.is_finite(), || {
                    format!(
                        "a value is computed with {}, which is no factor that sums have in common; pass it as an \
                         argument",
                        v.0
                    )
                })?;
                Ok(Value { rest: Sum::constant(v.0), ..Value::default() })
            }
            Expr::Load(access) if access.index.is_empty() => self.scalar(e, access.var, place),
            Expr::Unary(UnaryOp::Neg, a) => Ok(map(self.value(a, place)?, &|s| s.scaled(-1.0))),
            Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
                let (mut sum, other) = (self.value(a, place)?, self.value(b, place)?);
                let sign = if *op == BinaryOp::Sub { -1.0 } else { 1.0 };
                let other = map(other, &|s| s.scaled(sign));
                sum.rest.add(other.rest);
                for (var, factor) in other.terms {
                    sum.terms.entry(var).or_default().add(factor);
                }
                self.short(&sum)?;
                Ok(sum)
            }
            Expr::Binary(BinaryOp::Mul, a, b) => {
                let (a, b) = (self.value(a, place)?, self.value(b, place)?);
                let (with, without) = if a.terms.is_empty() { (b, a) } else { (a, b) };
                LINEAR.require(without.terms.is_empty(), || {
                    "a product has two of the scalars as factors; values must be linear in them".into()
                })?;
                let product = map(with, &|s| s.times(&without.rest));
                self.short(&product)?;
                Ok(product)
            }
            Expr::Binary(BinaryOp::Div, a, b) => {
                let divisor =
                    self.atom(&Expr::binary(BinaryOp::Div, Expr::from(1.0), (**b).clone()), place)?;
                Ok(map(self.value(a, place)?, &|s| s.times(&divisor.rest)))
            }
            Expr::Int(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => self.atom(e, place),
        }
    }

    /// A scalar: one of those that are wanted, what it was given in the body if that depends on them, or
    /// itself.
    fn scalar(&mut self, e: &Expr, var: VarId, place: usize) -> Result<Value, Refusal> {
        if self.of.contains(&var) {
            self.read.entry(var).or_default().insert(place);
            return Ok(Value { terms: [(var, Sum::constant(1.0))].into(), rest: Sum::default() });
        }
        let kernel = self.kernel;
        let mut writers = kernel.insns.iter().filter(|(_, i)| i.lhs.var == var);
        let (Some((writer, insn)), None) = (writers.next(), writers.next()) else {
            return self.atom(e, place);
        };
        let stored = self.nodes[..place].iter().position(|n| matches!(n, Node::Insn(s) if *s == writer));
        let plain = insn.op == WriteOp::Assign && insn.predicate.is_none() && insn.callee.is_none();
        let (Some(at), true, VarKind::Temporary) = (stored, plain, &kernel.vars[var].kind) else {
            return self.atom(e, place);
        };
        if !self.depends(&insn.rhs, at) {
            return self.atom(e, place);
        }
        self.replaced.insert(writer);
        self.value(&insn.rhs, at)
    }

    /// Whether an expression at a place depends on the scalars, also through stores of the body.
    fn depends(&self, e: &Expr, place: usize) -> bool {
        let mut loads = BTreeSet::new();
        self.kernel.expand_rules(e).for_each(&mut |e| {
            if let Expr::Load(access) = e {
                loads.insert(access.var);
            }
        });
        loads.iter().any(|var| {
            let of_writer = |at: usize| {
                let writes = |s: &InsnId| self.kernel.insns[*s].lhs.var == *var;
                let written = insns_of(std::slice::from_ref(&self.nodes[at]));
                written.iter().filter(|s| writes(s)).any(|s| self.depends(&self.kernel.insns[*s].rhs, at))
            };
            self.of.contains(var) || (0..place).any(of_writer)
        })
    }

    /// A factor that stays as it is.
    fn atom(&mut self, e: &Expr, place: usize) -> Result<Value, Refusal> {
        let known = self.kernel.type_of(e, &[]) == Ok(ExprType::Scalar(ScalarType::F64));
        LINEAR.require(known && !self.depends(e, place), || {
            "a factor depends on the scalars otherwise than in sums and products, or is not of type `f64`"
                .into()
        })?;
        let mut fits = true;
        e.for_each(&mut |e| {
            if let Expr::Load(access) = e {
                self.read.entry(access.var).or_default().insert(place);
            }
            fits &= !matches!(e, Expr::Reduce(_) | Expr::Rule(..));
        });
        LINEAR.require(fits, || "a factor holds a rule or a reduction; expand it first".into())?;
        Ok(Value { rest: Sum::atom(e.clone()), ..Value::default() })
    }

    fn short(&self, value: &Value) -> Result<(), Refusal> {
        let all: usize = value.terms.values().chain([&value.rest]).map(|s| s.0.len()).sum();
        SHORT.require(all <= MOST, || format!("a value has {all} products; name fewer scalars"))
    }
}

fn map(value: Value, f: &dyn Fn(Sum) -> Sum) -> Value {
    let terms = value.terms.into_iter().map(|(v, s)| (v, f(s))).collect();
    Value { terms, rest: f(value.rest) }
}
