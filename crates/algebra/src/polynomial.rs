//! Expressions as sums of products: equal ones modulo associativity, commutativity and
//! distributivity have the same sum.
//!
//! Operands that are neither sums nor products are *atoms*, numbered in the order in which they are
//! met. A product is the sorted list of its factors, so that like terms are one.

use kingpost_ir::{BinaryOp, Expr, ExprType, Kernel, Real, ScalarType, UnaryOp, VarId};
use std::collections::{BTreeMap, HashMap};

/// A factor of a product: the number of an atom, and whether it divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor {
    /// The number of the atom.
    pub atom: usize,
    /// Whether it divides.
    pub divides: bool,
}

/// The factors of a product, sorted.
pub type Product = Vec<Factor>;

/// A sum of products, each with its coefficient.
pub type Sum = BTreeMap<Product, f64>;

/// Most terms that an expression is expanded to.
pub const MAX_TERMS: usize = 8192;

/// Why an expression has no sum of products.
#[derive(Clone, Debug, PartialEq)]
pub enum NoSum {
    /// A part is not computed in `f64`.
    OtherType(Expr),
    /// There would be more than [`MAX_TERMS`] terms.
    TooLong,
    /// A number is an infinity or a nan, or a product of numbers is, or is zero where none of them is.
    NotFinite(f64),
}

/// The atoms of some expressions, and the sums of scalars that stand for others.
#[derive(Clone, Debug, Default)]
pub struct Atoms {
    all: Vec<Expr>,
    index: HashMap<Expr, usize>,
    /// Scalars that are replaced by their values.
    pub values: BTreeMap<VarId, Sum>,
}

impl Atoms {
    /// The expression of an atom.
    pub fn get(&self, atom: usize) -> &Expr {
        &self.all[atom]
    }

    /// The number of an atom.
    pub fn number(&mut self, e: &Expr) -> usize {
        if let Some(known) = self.index.get(e) {
            return *known;
        }
        self.all.push(e.clone());
        self.index.insert(e.clone(), self.all.len() - 1);
        self.all.len() - 1
    }

    /// The sum of products that an expression of type `f64` is.
    ///
    /// Sums, products, quotients by products and negations of `f64` are opened; literals become
    /// coefficients.
    ///
    /// # Errors
    /// A part of another type; more than [`MAX_TERMS`] terms.
    pub fn expand(&mut self, kernel: &Kernel, e: &Expr) -> Result<Sum, NoSum> {
        self.terms(kernel, e, &|_| true)
    }

    /// The terms of a sum of type `f64`, each a product; of sums that are factors of one, those that
    /// `opens` names are multiplied out, and the others are atoms.
    ///
    /// # Errors
    /// A part of another type; more than [`MAX_TERMS`] terms.
    pub fn terms(&mut self, kernel: &Kernel, e: &Expr, opens: &dyn Fn(&Expr) -> bool) -> Result<Sum, NoSum> {
        let ty = kernel.type_of(e, &[]);
        let is_literal = matches!(ty, Ok(ExprType::WeakReal | ExprType::Literal));
        if !is_literal && ty != Ok(ExprType::Scalar(ScalarType::F64)) {
            return Err(NoSum::OtherType(e.clone()));
        }
        match e {
            Expr::Int(c) => Ok(constant(*c as f64)),
            Expr::Real(c) if !c.0.is_finite() => Err(NoSum::NotFinite(c.0)),
            Expr::Real(c) => Ok(constant(c.0)),
            Expr::Unary(UnaryOp::Neg, a) => Ok(scaled(&self.terms(kernel, a, opens)?, -1.0)),
            Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
                let mut sum = self.terms(kernel, a, opens)?;
                let sign = if *op == BinaryOp::Add { 1.0 } else { -1.0 };
                add(&mut sum, &self.terms(kernel, b, opens)?, sign);
                short(sum)
            }
            Expr::Binary(BinaryOp::Mul, a, b) => {
                let (a, b) = (self.factor(kernel, a, opens)?, self.factor(kernel, b, opens)?);
                product(&a, &b)
            }
            Expr::Binary(BinaryOp::Div, a, b) => {
                let numerator = self.factor(kernel, a, opens)?;
                if numerator.is_empty() {
                    return Ok(self.atom(e)); // zero over zero is no zero
                }
                let divisor = self.divisor(kernel, b)?;
                product(&numerator, &divisor)
            }
            Expr::Load(access) if self.values.contains_key(&access.var) => {
                Ok(self.values[&access.var].clone())
            }
            Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => Ok(self.atom(e)),
        }
    }

    /// A factor of a product: one atom, if it is a sum that stays.
    fn factor(&mut self, kernel: &Kernel, e: &Expr, opens: &dyn Fn(&Expr) -> bool) -> Result<Sum, NoSum> {
        if let Expr::Unary(UnaryOp::Neg, a) = e {
            return Ok(scaled(&self.factor(kernel, a, opens)?, -1.0));
        }
        let is_sum = matches!(e, Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
        let terms = self.terms(kernel, e, opens)?;
        // its type is that of what it is a factor of, or else `terms` refuses it
        Ok(if is_sum && !opens(e) { self.atom(e) } else { terms })
    }

    fn atom(&mut self, e: &Expr) -> Sum {
        [(vec![Factor { atom: self.number(e), divides: false }], 1.0)].into()
    }

    /// One over an expression, which stays as it is unless a scalar stands for one product.
    fn divisor(&mut self, kernel: &Kernel, e: &Expr) -> Result<Sum, NoSum> {
        let sum = self.expand(kernel, e)?;
        if let Some((factors, c)) = sum.iter().next().filter(|(_, c)| sum.len() == 1 && **c != 0.0) {
            let mut factors: Product = factors.iter().map(|f| Factor { divides: !f.divides, ..*f }).collect();
            factors.sort_unstable();
            return Ok([(factors, 1.0 / c)].into());
        }
        let whole = self.rebuild(&sum);
        Ok([(vec![Factor { atom: self.number(&whole), divides: true }], 1.0)].into())
    }

    /// The product of some factors, if there are any.
    pub fn product_of(&self, factors: &[Factor]) -> Option<Expr> {
        let part = |divides| factors.iter().filter(move |f| f.divides == divides).map(|f| self.get(f.atom));
        let numerator = part(false).cloned().reduce(|a, b| a * b);
        if numerator.is_none() && part(true).next().is_none() {
            return None;
        }
        let numerator = numerator.unwrap_or(Expr::Real(Real(1.0)));
        Some(part(true).cloned().fold(numerator, |a, b| Expr::binary(BinaryOp::Div, a, b)))
    }

    /// A sum as an expression, its terms in the order of their factors.
    pub fn rebuild(&self, sum: &Sum) -> Expr {
        let terms = sum.iter().map(|(factors, c)| (self.product_of(factors), *c));
        joined(terms).unwrap_or(Expr::Real(Real(0.0)))
    }
}

/// The sum of expressions with coefficients; an expression that is absent is 1.
pub(crate) fn joined(terms: impl IntoIterator<Item = (Option<Expr>, f64)>) -> Option<Expr> {
    terms.into_iter().fold(None, |sum: Option<Expr>, (e, c)| {
        let size = Expr::Real(Real(c.abs()));
        let term = match e {
            None => size,
            Some(e) if c.abs() == 1.0 => e,
            Some(e) => size * e,
        };
        Some(match (sum, c < 0.0) {
            (None, false) => term,
            (None, true) => Expr::Unary(UnaryOp::Neg, Box::new(term)),
            (Some(sum), false) => sum + term,
            (Some(sum), true) => sum - term,
        })
    })
}

fn constant(c: f64) -> Sum {
    [(Product::new(), c)].into_iter().filter(|(_, c)| *c != 0.0).collect()
}

pub(crate) fn scaled(sum: &Sum, by: f64) -> Sum {
    sum.iter().map(|(factors, c)| (factors.clone(), c * by)).collect()
}

/// Adds one sum to another; like terms become one, and terms that cancel are gone.
pub(crate) fn add(sum: &mut Sum, other: &Sum, sign: f64) {
    for (factors, c) in other {
        let Some(known) = sum.get_mut(factors) else {
            if *c != 0.0 {
                sum.insert(factors.clone(), sign * c);
            }
            continue;
        };
        *known += sign * c;
        if *known == 0.0 {
            sum.remove(factors);
        }
    }
}

/// Every term of one sum times every term of the other.
pub(crate) fn product(a: &Sum, b: &Sum) -> Result<Sum, NoSum> {
    if a.len().saturating_mul(b.len()) > MAX_TERMS {
        return Err(NoSum::TooLong);
    }
    let mut all = Sum::new();
    for (left, c) in a {
        for (right, d) in b {
            let mut factors = Product::with_capacity(left.len() + right.len());
            factors.extend(left);
            factors.extend(right);
            factors.sort_unstable();
            let coefficient = c * d;
            if !coefficient.is_normal() {
                return Err(NoSum::NotFinite(coefficient));
            }
            *all.entry(factors).or_insert(0.0) += coefficient;
        }
    }
    all.retain(|_, c| *c != 0.0);
    Ok(all)
}

fn short(sum: Sum) -> Result<Sum, NoSum> {
    if sum.len() > MAX_TERMS { Err(NoSum::TooLong) } else { Ok(sum) }
}
