//! Whether strides keep the elements of an array apart, and what of that only a launch can tell.

use crate::affine::{Affine, Atom};
use crate::domain::Constraint;
use crate::elimination::implied;
use crate::expr::{BinaryOp, Expr, UnaryOp};
use crate::ids::{Id, VarId};
use crate::kernel::{Assumption, Direction, Kernel, VarKind, Variable};
use std::collections::BTreeMap;

/// Terms of a polynomial, and products of parameters, that are looked at.
const MAX_PRODUCTS: usize = 32;

/// A condition on axes that have two elements or more, in an array that has elements at all.
///
/// With every stride at least 1, and of every two axes the stride of one no smaller than that of the
/// other times its extent, the axes in the order of their strides cover each other: different indices
/// lie in different places. Where only reads are, places may be shared, and strides are only not negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// The stride of this axis is at least this.
    Axis(usize, i64),
    /// The stride of one of these axes covers the other axis.
    Pair(usize, usize),
}

impl Kernel {
    /// What of the spacing of an array is not proved of all parameters that the kernel takes; nothing
    /// if it has no strides.
    ///
    /// # Errors
    /// What no such parameters satisfy.
    pub fn unproved_spacing(&self, array: &Variable) -> Result<Vec<Spacing>, Spacing> {
        let Some(strides) = array.layout.strides() else { return Ok(Vec::new()) };
        let least = i64::from(array.kind != VarKind::Argument(Direction::In));
        let counts = |axis: &usize| array.shape[*axis].as_constant().is_none_or(|n| n > 1);
        let axes: Vec<usize> = (0..array.shape.len().min(strides.len())).filter(counts).collect();
        let mut products = Products { kernel: self, known: Vec::new(), found: Vec::new() };
        let mut conditions = Vec::new();
        for (k, i) in axes.iter().copied().enumerate() {
            let stride = products.expanded(&strides[i]);
            let enough = stride.and_then(|s| products.affine(&s.plus(&Polynomial::constant(-least))?));
            conditions.push((Spacing::Axis(i, least), vec![enough]));
            for j in axes[..k].iter().copied().filter(|_| least > 0) {
                let mut covers = |i: usize, j: usize| {
                    let inside =
                        products.expanded(&strides[j])?.times(&products.expanded(&array.shape[j])?)?;
                    let rest = products.expanded(&strides[i])?.plus(&inside.scaled(-1)?)?;
                    products.affine(&rest)
                };
                conditions.push((Spacing::Pair(j, i), vec![covers(i, j), covers(j, i)]));
            }
        }
        products.learn(&array.shape);
        let mut open = Vec::new();
        for (spacing, ways) in conditions {
            if ways.iter().flatten().any(|way| implied(&products.known, way)) {
                continue;
            }
            if products.is_broken(array, spacing, &ways) {
                return Err(spacing);
            }
            open.push(spacing);
        }
        Ok(open)
    }
}

/// Sums of products of atoms, each with its coefficient.
#[derive(Clone)]
struct Polynomial(BTreeMap<Vec<Atom>, i64>);

impl Polynomial {
    fn constant(value: i64) -> Self {
        Self([(Vec::new(), value)].into())
    }

    fn plus(mut self, other: &Self) -> Option<Self> {
        for (product, c) in &other.0 {
            let sum = self.0.entry(product.clone()).or_insert(0);
            *sum = sum.checked_add(*c)?;
        }
        (self.0.len() <= MAX_PRODUCTS).then_some(self)
    }

    fn scaled(&self, factor: i64) -> Option<Self> {
        self.times(&Self::constant(factor))
    }

    fn times(&self, other: &Self) -> Option<Self> {
        let mut all = Self(BTreeMap::new());
        for (a, c) in &self.0 {
            for (b, d) in &other.0 {
                let mut product = [a.as_slice(), b].concat();
                product.sort();
                all = all.plus(&Self([(product, c.checked_mul(*d)?)].into()))?;
            }
        }
        Some(all)
    }
}

/// Products of parameters, each of which stands for a variable beyond those of the kernel.
struct Products<'k> {
    kernel: &'k Kernel,
    /// What is not negative.
    known: Vec<Affine>,
    found: Vec<Vec<Atom>>,
}

impl Products<'_> {
    /// With what parameters are computed as in their place.
    fn expanded(&self, e: &Affine) -> Option<Polynomial> {
        let mut sum = Polynomial::constant(e.constant_term());
        for (atom, c) in e.terms() {
            let defined = if let Atom::Var(v) = atom { self.kernel.definition(*v) } else { None };
            let value = defined.and_then(|value| self.computed(value));
            let value = value.unwrap_or_else(|| Polynomial([(vec![atom.clone()], 1)].into())); // as it is
            sum = sum.plus(&value.scaled(*c)?)?;
        }
        Some(sum)
    }

    /// What a parameter is computed as, if that is by sums and products.
    fn computed(&self, e: &Expr) -> Option<Polynomial> {
        if let Some(e) = e.as_affine() {
            return self.expanded(&e);
        }
        match e {
            Expr::Unary(UnaryOp::Neg, a) => self.computed(a)?.scaled(-1),
            Expr::Binary(BinaryOp::Add, a, b) => self.computed(a)?.plus(&self.computed(b)?),
            Expr::Binary(BinaryOp::Sub, a, b) => self.computed(a)?.plus(&self.computed(b)?.scaled(-1)?),
            Expr::Binary(BinaryOp::Mul, a, b) => self.computed(a)?.times(&self.computed(b)?),
            // its bounds are known
            Expr::Int(_)
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
            | Expr::RuleParam(_) => None,
        }
    }

    /// With variables for products.
    fn affine(&mut self, e: &Polynomial) -> Option<Affine> {
        let mut sum = Affine::default();
        for (product, c) in &e.0 {
            let value = match product.as_slice() {
                [] => Affine::constant(1),
                [atom] => of_atom(atom),
                _ => Affine::var(self.variable(product)?),
            };
            sum = sum.plus(&value.times(*c));
        }
        sum.in_bounds().then_some(sum)
    }

    fn variable(&mut self, product: &[Atom]) -> Option<VarId> {
        let k = self.found.iter().position(|p| p == product).unwrap_or(self.found.len());
        if k == self.found.len() {
            self.found.push(product.to_vec());
        }
        (k < MAX_PRODUCTS).then(|| VarId::from_index(self.kernel.vars.len() + k))
    }

    /// Notes what is assumed, that an array of this shape has elements, and what follows for products.
    fn learn(&mut self, shape: &[Affine]) {
        let mut known: Vec<Affine> = shape.iter().map(|n| n.plus_constant(-1)).collect();
        for assumption in &self.kernel.assumptions {
            if let Assumption::Params(c) = assumption {
                known.extend(c.not_negative());
            }
        }
        let defined = self.kernel.known_of_definitions(known.clone());
        known.extend(defined.iter().flat_map(Constraint::not_negative));
        for fact in known {
            let fact = self.expanded(&fact).and_then(|fact| self.affine(&fact));
            self.known.extend(fact);
        }
        let mut k = 0;
        while let Some(product) = self.found.get(k).cloned() {
            self.learn_product(&product);
            k += 1;
        }
    }

    /// A product of positive factors is no smaller than without one of them.
    fn learn_product(&mut self, product: &[Atom]) {
        let Some(whole) = self.affine(&Polynomial([(product.to_vec(), 1)].into())) else { return };
        let all = |least: i64| {
            product.iter().all(|factor| implied(&self.known, &of_atom(factor).plus_constant(-least)))
        };
        let (positive, natural) = (all(1), all(0));
        if natural {
            self.known.push(whole.clone());
        }
        for k in (0..product.len()).filter(|_| positive) {
            let rest = [&product[..k], &product[k + 1..]].concat();
            let rest = self.affine(&Polynomial([(rest, 1)].into()));
            self.known.extend(rest.map(|rest| whole.minus(&rest)));
        }
    }

    /// Whether a condition surely fails where its axes have two elements.
    fn is_broken(&self, array: &Variable, spacing: Spacing, ways: &[Option<Affine>]) -> bool {
        let axes = match spacing {
            Spacing::Axis(i, _) => vec![i],
            Spacing::Pair(i, j) => vec![i, j],
        };
        let mut known = self.known.clone();
        known.extend(axes.into_iter().map(|axis| array.shape[axis].plus_constant(-2)));
        let fails = |way: &Affine| implied(&known, &way.times(-1).plus_constant(-1));
        ways.iter().all(|way| way.as_ref().is_some_and(fails))
    }
}

fn of_atom(atom: &Atom) -> Affine {
    match atom {
        Atom::Iname(iname) => Affine::iname(*iname),
        Atom::Var(var) => Affine::var(*var),
        Atom::Floor(n, d) => n.floor_div(*d),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::text::{NamedLayout, parse};

    /// What is not proved of an array of a kernel with parameters `n`, `m`, `k`, `s`, `r`.
    fn open(lines: &str, array: &str, strides: &str) -> Result<Vec<Spacing>, Spacing> {
        let params: String = ["n", "m", "k", "s", "r"].map(|p| format!("param {p}: i64\n")).concat();
        let text = format!("kernel t\n\n{params}{lines}arg x: f64{array}\narg y: f64[1] out\n\ny[0] = 1.0\n");
        let kernel = parse(&text).unwrap();
        let strides: NamedLayout = format!("strides({strides})").parse().unwrap();
        let mut x = kernel.vars[kernel.var("x").unwrap()].clone();
        x.layout = strides.resolve(|name| kernel.var(name).ok_or(())).unwrap();
        kernel.unproved_spacing(&x)
    }

    fn proved(lines: &str, array: &str, strides: &str) -> bool {
        open(lines, array, strides) == Ok(Vec::new())
    }

    #[test]
    fn constant_strides() {
        let apart = |shape: &str, strides: &str| proved("", &format!("[{shape}] inout"), strides);
        assert!(apart("4, 4", "4, 1") && apart("4, 4", "1, 4") && apart("4, 4", "5, 1"));
        assert!(apart("2, 3, 4", "12, 4, 1") && apart("1, 4", "0, 1") && apart("4, n", "n, 1"));
        for (shape, strides) in
            [("4, 4", "1, 1"), ("4, 4", "3, 1"), ("4", "0"), ("4", "-1"), ("n, m", "1, 1")]
        {
            let found = open("", &format!("[{shape}] inout"), strides);
            assert!(found.is_err(), "[{shape}] strides({strides}): {found:?}");
        }
    }

    #[test]
    fn parametric_strides() {
        let open = |shape: &str, strides: &str| open("", &format!("[{shape}] inout"), strides);
        let apart = |shape: &str, strides: &str| open(shape, strides) == Ok(Vec::new());
        assert!(apart("4, n", "n + 1, 1") && apart("4, n", "1, 4") && apart("4, n", "2*n, 2"));
        assert!(apart("3, n, 4", "5*n, 5, 1") && apart("m, n", "n + m, 1"));
        // what only a launch tells
        let both = Ok(vec![Spacing::Axis(0, 1), Spacing::Pair(0, 1)]);
        assert_eq!(open("4, n", "n + m, 1"), both);
        assert_eq!(open("4, n", "n - 1, 1"), Err(Spacing::Pair(0, 1)));
        assert_eq!(open("n, m", "s, 1"), both);
        assert_eq!(open("4", "n"), Ok(vec![Spacing::Axis(0, 1)]));
        assert!(proved("assume n >= 1\n", "[4] inout", "n"));
    }

    #[test]
    fn products_of_parameters_are_defined() {
        let array = "[n, m, k] inout";
        let with = |lines: &str, strides: &str| open(lines, array, strides);
        let apart = |lines: &str, strides: &str| proved(lines, array, strides);
        assert!(apart("param d: i64 = s*m\nassume s >= k\nassume r >= d\n", "r, s, 1"));
        let twice = "param d: i64 = m*s\nparam e: i64 = 2*d\nassume s >= k\nassume r >= e\n";
        assert!(apart(twice, "r, s, 1"));
        // the stride along the second axis is too small, or another product is covered
        let short = "param d: i64 = s*m\nassume s >= k - 1\nassume r >= d\n";
        assert!(with(short, "r, s, 1").unwrap().contains(&Spacing::Pair(1, 2)));
        let other = "param d: i64 = s*k\nassume s >= k\nassume r >= d\n";
        assert_eq!(with(other, "r, s, 1"), Ok(vec![Spacing::Pair(0, 1)]));
        // Fortran's order, planes with a pad, and one that is too small
        assert!(apart("param d: i64 = n*m\n", "1, n, d"));
        assert!(apart("param d: i64 = s*m + 3\nassume s >= k + 2\n", "d, s, 1"));
        assert!(!apart("param d: i64 = m*k - 1\n", "d, k, 1"));
        let planes = "param d: i64 = m*k\n";
        assert!(proved(planes, "[n, m, 2, k] inout", "2*d, 2*k, k, 1"));
    }

    #[test]
    fn elements_that_are_only_read_may_share_a_place() {
        let open = |lines: &str, strides: &str| open(lines, "[n, m] in", strides);
        assert!(open("", "0, 1") == Ok(Vec::new()) && open("", "1, 1") == Ok(Vec::new()));
        assert_eq!(open("", "s, 1"), Ok(vec![Spacing::Axis(0, 0)]));
        assert_eq!(open("assume s >= 0\n", "s, 1"), Ok(Vec::new()));
        assert_eq!(open("", "-1, 1"), Err(Spacing::Axis(0, 0)));
    }
}
