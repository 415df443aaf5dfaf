//! Whether two values are the same rational function of what they are made from.
//!
//! Both are computed in the field of integers modulo the prime `2^61 - 1`, at a point where all that
//! they read has a random value. Values that differ there are no identity. Values that agree are one
//! except for a probability below `degree/2^61` at each point (Schwartz 1980; Zippel 1979); two points
//! are tried. A literal is the rational number that its bits say. A function of the mathematics
//! library, a comparison or a rounding is an unknown function, which has equal values of equal
//! arguments.

use kingpost_analysis::Analysis;
use kingpost_ir::{Access, BinaryOp, Expr, InameId, InsnId, Kernel, UnaryOp, VarId, WriteOp};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The prime.
const P: u64 = (1 << 61) - 1;

/// A number modulo the prime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Residue(u64);

impl Residue {
    pub(crate) const ZERO: Self = Self(0);

    const fn of(value: u128) -> Self {
        Self((value % P as u128) as u64)
    }

    fn of_integer(value: i64) -> Self {
        Self::of((i128::from(value).rem_euclid(i128::from(P))).unsigned_abs())
    }

    /// The rational number of a finite literal: mantissa times a power of two, whose order is 61.
    fn of_real(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let power = (exponent.max(1) - 1075).rem_euclid(61);
        let size = Self::of(u128::from(mantissa)).times(Self(1 << power));
        Some(if value.is_sign_negative() { Self::ZERO.minus(size) } else { size })
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        Self::of(self.0 as u128 + other.0 as u128)
    }

    const fn minus(self, other: Self) -> Self {
        Self::of(self.0 as u128 + (P - other.0) as u128)
    }

    const fn times(self, other: Self) -> Self {
        Self::of(self.0 as u128 * other.0 as u128)
    }

    /// The inverse, by Fermat's little theorem; none of zero.
    fn inverse(self) -> Option<Self> {
        if self.0 == 0 {
            return None;
        }
        let (mut result, mut base, mut exponent) = (Self(1), self, P - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                result = result.times(base);
            }
            base = base.times(base);
            exponent >>= 1;
        }
        Some(result)
    }
}

/// A point at which values are computed: what the loops have, and a seed for all else.
pub(crate) struct Point<'a, 'k> {
    analysis: &'a Analysis<'k>,
    seed: u64,
    /// The loop whose value a loop has here, where it is another one.
    exchanged: [InameId; 2],
    /// The loop in whose iterations values are compared: what is written inside it is another value
    /// in each of them.
    around: InameId,
    /// Scalars that were computed.
    known: BTreeMap<VarId, Residue>,
}

impl<'a, 'k> Point<'a, 'k> {
    /// The point of a seed, at which the two loops of `exchanged` have each other's values if
    /// `swapped`; values are compared between iterations of the loop `around`.
    pub(crate) fn new(
        analysis: &'a Analysis<'k>,
        seed: u64,
        [first, second]: [InameId; 2],
        swapped: bool,
        around: InameId,
    ) -> Self {
        let exchanged = if swapped { [first, second] } else { [first; 2] };
        Self { analysis, seed, exchanged, around, known: BTreeMap::new() }
    }

    fn kernel(&self) -> &Kernel {
        self.analysis.expanded()
    }

    /// The value that an instruction adds or stores.
    ///
    /// # Errors
    /// What stands in the way of knowing it: a reduction, or something that is written in between.
    pub(crate) fn value_of(&mut self, insn: InsnId) -> Result<Residue, String> {
        let rhs = self.kernel().insns[insn].rhs.clone();
        self.value(&rhs, insn)
    }

    fn value(&mut self, e: &Expr, reader: InsnId) -> Result<Residue, String> {
        match e {
            Expr::Int(value) => Ok(Residue::of_integer(*value)),
            Expr::Real(value) => {
                Ok(Residue::of_real(value.0).unwrap_or_else(|| self.unknown(&value.0.to_bits(), &[])))
            }
            Expr::Iname(iname) => {
                let [first, second] = self.exchanged;
                let other = match *iname {
                    i if i == first => second,
                    i if i == second => first,
                    i => i,
                };
                Ok(self.unknown(&("loop", other), &[]))
            }
            Expr::Load(access) => self.load(access, reader),
            Expr::Unary(UnaryOp::Neg, a) => Ok(Residue::ZERO.minus(self.value(a, reader)?)),
            Expr::Unary(op @ (UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..)), a) => {
                self.function(op, &[a], reader)
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b, reader),
            Expr::Call(function, arguments) => {
                self.function(function, &arguments.iter().collect::<Vec<_>>(), reader)
            }
            Expr::Cast(ty, a) => self.function(&("cast", ty), &[a], reader),
            Expr::Select(a, b, c) => self.function(&"select", &[a, b, c], reader),
            Expr::Reduce(_) | Expr::Rule(..) | Expr::RuleParam(_) => Err(format!(
                "`{}` holds a reduction or a rule; realise or expand it first",
                self.kernel().insns[reader].name
            )),
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, reader: InsnId) -> Result<Residue, String> {
        match op {
            BinaryOp::Add => Ok(self.value(a, reader)?.plus(self.value(b, reader)?)),
            BinaryOp::Sub => Ok(self.value(a, reader)?.minus(self.value(b, reader)?)),
            BinaryOp::Mul => Ok(self.value(a, reader)?.times(self.value(b, reader)?)),
            BinaryOp::Div => {
                let (dividend, divisor) = (self.value(a, reader)?, self.value(b, reader)?);
                Ok(match divisor.inverse() {
                    Some(inverse) => dividend.times(inverse),
                    None => self.unknown(&"quotient", &[dividend, divisor]),
                })
            }
            BinaryOp::FloorDiv
            | BinaryOp::Mod
            | BinaryOp::TruncDiv
            | BinaryOp::TruncRem
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::And
            | BinaryOp::Or => self.function(&op, &[a, b], reader),
        }
    }

    /// An unknown function of its arguments.
    fn function(&mut self, name: &impl Hash, arguments: &[&Expr], reader: InsnId) -> Result<Residue, String> {
        let values: Vec<_> = arguments.iter().map(|a| self.value(a, reader)).collect::<Result<_, _>>()?;
        Ok(self.unknown(name, &values))
    }

    fn unknown(&self, name: &impl Hash, arguments: &[Residue]) -> Residue {
        let mut hasher = DefaultHasher::new();
        self.seed.hash(&mut hasher);
        name.hash(&mut hasher);
        arguments.hash(&mut hasher);
        Residue::of(u128::from(hasher.finish()))
    }

    fn load(&mut self, access: &Access, reader: InsnId) -> Result<Residue, String> {
        let var = access.var;
        if let Some(value) = self.known.get(&var) {
            return Ok(*value);
        }
        let writers: Vec<InsnId> = {
            let insns = &self.kernel().insns;
            insns.ids().filter(|id| insns[*id].lhs.var == var).collect()
        };
        if let [definition] = writers[..]
            && self.is_definition(definition, access, reader)
        {
            let value = self.value_of(definition)?;
            self.known.insert(var, value);
            return Ok(value);
        }
        self.check_kept(var, &writers, reader)?;
        let index: Vec<_> = access.index.iter().map(|e| self.value(e, reader)).collect::<Result<_, _>>()?;
        Ok(self.unknown(&("element", var), &index))
    }

    /// Whether the only write of a scalar is what a later instruction reads in the same iteration of
    /// all loops around the write.
    fn is_definition(&self, definition: InsnId, access: &Access, reader: InsnId) -> bool {
        let insn = &self.kernel().insns[definition];
        let mut reduces = false;
        insn.rhs.for_each(&mut |e| reduces |= matches!(e, Expr::Reduce(_)));
        access.index.is_empty()
            && insn.op == WriteOp::Assign
            && insn.predicate.is_none()
            && insn.callee.is_none()
            && !reduces
            && self.kernel().vars[access.var].storage.is_none()
            && self.analysis.loops(reader).starts_with(self.analysis.loops(definition))
            && self.analysis.position(definition) < self.analysis.position(reader)
    }

    /// Every read of the variable in the iterations that are compared finds the same elements: all
    /// writes stand before the reader, and none in the loop.
    fn check_kept(&self, var: VarId, writers: &[InsnId], reader: InsnId) -> Result<(), String> {
        let kernel = self.kernel();
        let late = writers.iter().find(|w| {
            self.analysis.position(**w) >= self.analysis.position(reader)
                || self.analysis.loops(**w).contains(&self.around)
        });
        let name = |id: InsnId| &kernel.insns[id].name;
        if let Some(writer) = late {
            return Err(format!(
                "`{}` reads `{}`, which `{}` writes in between; store it once, before the loops",
                name(reader),
                kernel.vars[var].name,
                name(*writer)
            ));
        }
        if kernel.vars[var].storage.is_some() {
            return Err(format!(
                "`{}` reads `{}`, which shares its storage; give it a buffer of its own",
                name(reader),
                kernel.vars[var].name
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_rational_numbers() {
        let real = |x: f64| Residue::of_real(x).unwrap_or(Residue(P)); // which no number is
        assert_eq!(real(3.0), Residue::of_integer(3));
        assert_eq!(real(-0.75).times(Residue::of_integer(-4)), Residue::of_integer(3));
        // 0.1 is 3602879701896397 / 2^55
        assert_eq!(real(0.1).times(Residue(1 << 55)), Residue::of_integer(3_602_879_701_896_397));
        assert_ne!(real(0.1).plus(real(0.2)), real(0.3));
        assert_eq!(real(5e-324).times(Residue::of_integer(2)), real(1e-323));
        assert_eq!(real(0.0), real(-0.0));
        assert_eq!(Residue::of_real(f64::NAN), None);
    }

    #[test]
    fn every_number_but_zero_has_an_inverse() {
        for value in [1, 2, -1, 12_345, i64::MAX, i64::MIN] {
            let value = Residue::of_integer(value);
            assert_eq!(value.inverse().map(|i| i.times(value)), Some(Residue(1)), "{value:?}");
        }
        assert_eq!(Residue::of(u128::from(P)).inverse(), None);
    }
}
