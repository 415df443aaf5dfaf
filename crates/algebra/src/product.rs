//! Products as lists of factors, and the law by which a sum of products is a product with a sum.

use kingpost_ir::{BinaryOp, Expr, ExprType, Kernel, Real, ScalarType, UnaryOp};

/// A factor or a divisor of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Factor {
    pub(crate) value: Expr,
    pub(crate) divides: bool,
}

/// A product in one real or complex type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Product {
    pub(crate) factors: Vec<Factor>,
    pub(crate) negative: bool,
    ty: ScalarType,
}

impl Product {
    /// The factors of an expression from left to right; `None` if its type is neither real nor
    /// complex. A product in a narrower type is one factor: it is rounded before the others are
    /// joined. One of real factors of a complex product is not, because its parts are as wide.
    pub(crate) fn of(kernel: &Kernel, e: &Expr) -> Option<Self> {
        let ty = match kernel.type_of(e, &[]) {
            Ok(ExprType::Scalar(ty)) if ty.is_real() || ty.is_complex() => ty,
            Ok(
                ExprType::Scalar(_)
                | ExprType::Bool
                | ExprType::Literal
                | ExprType::Index
                | ExprType::WeakReal
                | ExprType::WeakComplex,
            )
            | Err(_) => return None,
        };
        let mut product = Self { factors: Vec::new(), negative: false, ty };
        product.open(kernel, e);
        Some(product)
    }

    fn open(&mut self, kernel: &Kernel, e: &Expr) {
        let is_of = |ty| kernel.type_of(e, &[]) == Ok(ExprType::Scalar(ty));
        let opens = is_of(self.ty);
        match e {
            Expr::Binary(BinaryOp::Mul, a, b) if opens || is_of(self.ty.part()) => {
                self.open(kernel, a);
                self.open(kernel, b);
            }
            Expr::Binary(BinaryOp::Div, a, b) if opens => {
                self.open(kernel, a);
                self.factors.push(Factor { value: (**b).clone(), divides: true });
            }
            Expr::Unary(UnaryOp::Neg, a) if opens => {
                self.negative = !self.negative;
                self.open(kernel, a);
            }
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
            | Expr::RuleParam(_)) => {
                self.factors.push(Factor { value: other.clone(), divides: false });
            }
        }
    }

    /// The product of the factors that are wanted, with the sign, and that of the others.
    pub(crate) fn split(self, wanted: &dyn Fn(&Expr) -> bool) -> (Self, Self) {
        let (inside, outside) = self.factors.into_iter().partition(|f| !wanted(&f.value));
        let outside = Self { factors: outside, negative: self.negative, ty: self.ty };
        (outside, Self { factors: inside, negative: false, ty: self.ty })
    }

    /// The product as an expression of its type, with one more factor at the end of the numerator.
    pub(crate) fn times(&self, kernel: &Kernel, last: Option<Expr>) -> Expr {
        let part = |divides| self.factors.iter().filter(move |f| f.divides == divides).map(|f| &f.value);
        let first = part(false).cloned().reduce(|a, b| a * b);
        let joins = first.is_some() && (part(false).count() > 1 || last.is_none());
        let is_of = |e, ty| kernel.type_of(e, &[]) == Ok(ExprType::Scalar(ty));
        // real factors are joined as such before a complex one
        let real = last.is_some() && first.as_ref().is_some_and(|e| is_of(e, self.ty.part()));
        let typed = real || first.as_ref().is_none_or(|e| is_of(e, self.ty));
        // factors of narrower types were joined to one of this type, which may no longer be among
        // them
        let first = if joins && !typed { self.widened(part(false)) } else { first };
        let numerator = match (first, last) {
            (Some(a), Some(b)) => a * b,
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Expr::Cast(self.ty, Box::new(Expr::Real(Real(1.0)))),
        };
        let quotient = part(true).cloned().fold(numerator, |a, b| Expr::binary(BinaryOp::Div, a, b));
        if self.negative { Expr::Unary(UnaryOp::Neg, Box::new(quotient)) } else { quotient }
    }

    /// The factors joined in the type of the product.
    fn widened<'e>(&self, mut factors: impl Iterator<Item = &'e Expr>) -> Option<Expr> {
        let first = Expr::Cast(self.ty, Box::new(factors.next()?.clone()));
        Some(factors.cloned().fold(first, |a, b| a * b))
    }
}
