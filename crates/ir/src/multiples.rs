//! Powers of two of which integers of a kernel are multiples, whatever its parameters are.
//!
//! Vectors and the code of intrinsics take addresses at multiples of some bytes. Both ask here, so
//! that what one of them proves the other proves, too. The arithmetic is that of the 2-adic
//! valuation: with `v(x)` the largest power of two that divides `x`,
//!
//! ```text
//! v(x + y) >= min(v(x), v(y))      v(x*y) = v(x)*v(y)      v(floor(x/d)) >= v(x)/d for d | v(x)
//! ```
//!
//! Integers that wrap at 32 or 64 bits keep these divisors.

use crate::affine::{Affine, Atom};
use crate::domain::Constraint;
use crate::expr::{Access, BinaryOp, Expr, UnaryOp};
use crate::ids::{Id, InameId, VarId};
use crate::kernel::{Kernel, VarKind, Variable};

/// The largest power of two that is asked for: the bytes between parts of local memory that are read by
/// descriptors.
pub const MOST: u64 = 1024;

/// The largest power of two, at most [`MOST`], that divides an integer.
#[must_use]
pub fn of_constant(c: i64) -> u64 {
    1 << c.trailing_zeros().min(MOST.trailing_zeros())
}

/// The same of a sum.
#[must_use]
pub fn of_sum(a: u64, b: u64) -> u64 {
    a.min(b)
}

/// The same of a product.
#[must_use]
pub fn of_product(a: u64, b: u64) -> u64 {
    (a * b).min(MOST)
}

/// The same of `floor(x/d)`, where `a` divides `x`; a divisor that does not divide `a` tells nothing.
#[must_use]
pub fn of_quotient(a: u64, d: i64) -> u64 {
    match u64::try_from(d) {
        Ok(d) if d > 0 && a.is_multiple_of(d) => a / d,
        Ok(_) | Err(_) => 1,
    }
}

/// What is known of the parameters and the loops of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiples {
    vars: Vec<u64>,
    inames: Vec<u64>,
}

impl Multiples {
    /// What the assumptions say of the parameters, and domains of their loops: `n mod 64 == 0`,
    /// `n == 4*m`, `i mod 2 == 0`.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Self {
        let mut known = Self { vars: vec![1; kernel.vars.len()], inames: vec![1; kernel.inames.len()] };
        // each round doubles something that is at most MOST, or is the last one
        while known.learn(kernel) {}
        known
    }

    /// Learns from every equation what the others tell; whether that is something new.
    fn learn(&mut self, kernel: &Kernel) -> bool {
        let mut grown = false;
        for constraint in kernel.known_of_parameters() {
            let Constraint::Zero(e) = &constraint else { continue };
            for (atom, _) in e.terms() {
                if let Atom::Var(v) = atom
                    && kernel.vars[*v].kind == VarKind::Param
                {
                    let found = self.solved(e, atom);
                    grown |= raise(&mut self.vars[v.index()], found);
                }
            }
        }
        for (id, iname) in kernel.inames.iter() {
            let atom = Atom::Iname(id);
            let of_disjunct = |constraints: &Vec<Constraint>| {
                let equations = constraints.iter().filter_map(|c| match c {
                    Constraint::Zero(e) => Some(self.solved(e, &atom)),
                    Constraint::NonNegative(_) => None,
                });
                equations.max().unwrap_or(1)
            };
            let found = iname.domain.disjuncts().iter().map(of_disjunct).min().unwrap_or(1);
            grown |= raise(&mut self.inames[id.index()], found);
        }
        grown
    }

    /// The divisor of an atom by `e = 0`: with `c` its coefficient, `c*atom` is minus the other terms.
    fn solved(&self, e: &Affine, atom: &Atom) -> u64 {
        let c = e.coefficient(atom);
        if c == 0 {
            return 1;
        }
        let others = e.minus(&Affine::from(atom).times(c));
        (self.of_affine(&others) / of_constant(c)).max(1)
    }

    /// The divisor of a parameter or an integer scalar.
    #[must_use]
    pub fn of_var(&self, var: VarId) -> u64 {
        self.vars[var.index()]
    }

    /// The divisor of a loop variable.
    #[must_use]
    pub fn of_iname(&self, iname: InameId) -> u64 {
        self.inames[iname.index()]
    }

    /// The divisor of a quasi-affine integer.
    #[must_use]
    pub fn of_affine(&self, e: &Affine) -> u64 {
        let terms = e.terms().iter().map(|(atom, c)| of_product(self.of_atom(atom), of_constant(*c)));
        terms.fold(of_constant(e.constant_term()), of_sum)
    }

    fn of_atom(&self, atom: &Atom) -> u64 {
        match atom {
            Atom::Iname(i) => self.of_iname(*i),
            Atom::Var(v) => self.of_var(*v),
            Atom::Floor(n, d) => of_quotient(self.of_affine(n), *d),
        }
    }

    /// The divisor of an index.
    #[must_use]
    pub fn of_index(&self, e: &Expr) -> u64 {
        if let Some(affine) = e.as_affine() {
            return self.of_affine(&affine);
        }
        match e {
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Min | BinaryOp::Max, a, b)
            | Expr::Select(_, a, b) => of_sum(self.of_index(a), self.of_index(b)),
            Expr::Binary(BinaryOp::Mul, a, b) => of_product(self.of_index(a), self.of_index(b)),
            Expr::Unary(UnaryOp::Neg, a) => self.of_index(a),
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Iname(_)
            | Expr::Load(_)
            | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Reduce(_)
            | Expr::Rule(..)
            | Expr::RuleParam(_) => 1,
        }
    }

    /// The divisor of the flat position of an element in its array: with `o` its index and `S` the strides,
    /// of `sum_k S[k] o[k]`, where strides may be products of parameters.
    #[must_use]
    pub fn of_element(&self, kernel: &Kernel, element: &Access) -> u64 {
        let array = &kernel.vars[element.var];
        let by_axes = self.of_kept(array, element, &vec![false; array.shape.len()]);
        // terms of two axes may cancel
        by_axes.max(flat_position(array, element).map_or(1, |flat| self.of_affine(&flat)))
    }

    /// The same where axes that are `sliced` are none of the array in code.
    #[must_use]
    pub fn of_kept(&self, array: &Variable, element: &Access, sliced: &[bool]) -> u64 {
        let mut of_axes: Vec<u64> = element.index.iter().map(|index| self.of_index(index)).collect();
        if let Some(swizzle) = array.layout.swizzle {
            // an exclusive-or keeps the zeros at the end that both have
            let (axis, by) = (swizzle.axis as usize, swizzle.by as usize);
            of_axes[axis] = of_sum(of_axes[axis], of_axes[by]);
        }
        let along = of_axes.into_iter().zip(self.of_strides(array, sliced)).zip(sliced);
        let along = along.filter(|(_, sliced)| !**sliced);
        along.map(|((index, stride), _)| of_product(index, stride)).fold(MOST, of_sum)
    }

    /// The divisors of the strides of an array without the axes that are `sliced`.
    pub(crate) fn of_strides(&self, array: &Variable, sliced: &[bool]) -> Vec<u64> {
        if let Some(strides) = array.layout.strides() {
            return strides.iter().map(|s| self.of_affine(s)).collect();
        }
        let mut stride = 1;
        let mut strides = vec![1; array.shape.len()];
        for k in array.layout.order(array.shape.len()).into_iter().rev().filter(|k| !sliced[*k]) {
            strides[k] = stride;
            stride = of_product(stride, self.of_affine(&array.shape[k]));
        }
        strides
    }
}

fn raise(known: &mut u64, found: u64) -> bool {
    let grown = found > *known;
    *known = found.max(*known);
    grown
}

/// The flat position of an element, if it is affine and its array has no swizzle.
#[must_use]
pub fn flat_position(array: &Variable, element: &Access) -> Option<Affine> {
    if array.layout.swizzle.is_some() {
        return None;
    }
    let along = element.index.iter().zip(strides(array));
    along.into_iter().try_fold(Affine::constant(0), |sum, (index, stride)| {
        let (index, stride) = (index.as_affine()?, stride?);
        let term = match (index.as_constant(), stride.as_constant()) {
            (_, Some(c)) => index.times(c),
            (Some(c), None) => stride.times(c),
            (None, None) => return None,
        };
        Some(sum.plus(&term))
    })
}

/// Elements between neighbours along each axis; `None` where that is a product of parameters.
#[must_use]
pub fn strides(var: &Variable) -> Vec<Option<Affine>> {
    if let Some(strides) = var.layout.strides() {
        return strides.iter().cloned().map(Some).collect();
    }
    let mut strides = vec![None; var.shape.len()];
    let mut stride = Some(Affine::constant(1));
    for axis in var.layout.order(var.shape.len()).into_iter().rev() {
        let extent = &var.shape[axis];
        strides[axis] = stride.clone();
        stride = stride.and_then(|here| match (here.as_constant(), extent.as_constant()) {
            (Some(c), _) => Some(extent.times(c)),
            (_, Some(c)) => Some(here.times(c)),
            (None, None) => None,
        });
    }
    strides
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::text::parse;

    fn kernel(assumptions: &str, shape: &str, index: &str) -> Kernel {
        let text = format!(
            "kernel k\nparam m: i32\nparam n: i32\nparam q: i32\n{assumptions}arg map: i32[n] in\n\
             arg y: f64[{shape}] out\n\nfor i in 0..n\n  for j in 0..n where j mod 4 == 0\n    \
             s: y[{index}] = 1.0\n"
        );
        parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&text)))
    }

    /// The divisor of the position of the element that the kernel writes.
    fn found(assumptions: &str, shape: &str, index: &str) -> u64 {
        let kernel = kernel(assumptions, shape, index);
        let written = kernel.insns.values().next().unwrap().lhs.clone();
        Multiples::of(&kernel).of_element(&kernel, &written)
    }

    #[test]
    fn rows_are_as_long_as_shapes_and_assumptions_say() {
        let cases = [
            ("", "q, 4*q", "i, 0", 4),
            ("", "q, 2*q", "i, 0", 2),
            ("", "q, 2*q", "i, j", 2),
            ("", "q, 2*q", "i, 2*j + 1", 1),
            ("", "n, n", "i, j", 1),
            ("assume n mod 64 == 0\n", "n, n", "i, j", 4),
            ("assume n mod 64 == 0\n", "n, n", "i, 0", 64),
            ("assume n == 2*m\nassume m mod 4 == 0\n", "n, n", "i, 0", 8),
            ("assume 3*n == 2*m\n", "n, n", "i, 0", 2),
            ("assume 2*n == m\n", "n, n", "i, 0", 1),
            ("assume n mod 2 == 1\n", "n, n", "i, 0", 1),
            ("assume n mod 6 == 0\n", "n, n", "i, 0", 2),
            ("assume n mod 8 == 4\n", "n, n", "i, 0", 4),
            ("", "m, n, 2, q", "i, i, 0, 0", 2),
            ("assume q mod 2 == 0\n", "m, n, 2, q", "i, i, 0, 0", 4),
            ("", "n, 2", "map[i], 0", 2),
            ("", "8*n", "4*map[i] + 2*i", 2),
            ("", "4*n, 3", "i, i", 4),
        ];
        for (assumptions, shape, index, expected) in cases {
            assert_eq!(found(assumptions, shape, index), expected, "y[{index}] of [{shape}], {assumptions}");
        }
    }

    /// With random sizes that keep the assumption, every element that the kernel writes is at a
    /// multiple of what was proved.
    #[test]
    fn elements_are_at_multiples() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = move |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut proved = 0;
        for _ in 0..400 {
            let c = |k: u64| [1, 2, 3, 4, 6, 8][k as usize];
            let (a, b, d, e) = (c(below(6)), c(below(6)), c(below(6)), c(below(6)));
            let (modulus, rest) = (c(below(6)), below(3));
            let assumptions = format!("assume n mod {modulus} == {}\n", rest as i64 % modulus);
            let (shape, index) = (
                format!("{a}*n, {b}*q, {d}*n"),
                format!("{e}*i, {}*floor_div(i, 2), {a}*j + {}", d, 4 * rest),
            );
            let kernel = kernel(&assumptions, &shape, &index);
            let written = kernel.insns.values().next().unwrap().lhs.clone();
            let multiple = Multiples::of(&kernel).of_element(&kernel, &written) as i64;
            proved += i64::from(multiple > 1);
            for _ in 0..8 {
                let (n, q) = (modulus * (1 + below(5) as i64) + rest as i64 % modulus, 1 + below(9) as i64);
                let (i, j) = (below(20) as i64, 4 * below(20) as i64);
                let flat = (e * i * b * q + d * (i / 2)) * d * n + a * j + 4 * rest as i64;
                assert_eq!(
                    flat % multiple,
                    0,
                    "{assumptions}y[{index}] of [{shape}]: n {n}, q {q}, i {i}, j {j}"
                );
            }
        }
        assert!(proved > 100, "only {proved} of 400 prove anything");
    }
}
