//! Kinds of operations and how often each was done.

use kingpost_ir::expr::{MathFn, UpdateOp};
use kingpost_ir::types::ScalarType;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A kind of operation on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OpKind {
    /// Sum or difference.
    Add,
    /// Product.
    Mul,
    /// Real quotient.
    Div,
    /// Smaller or larger of two.
    MinMax,
    /// Comparison.
    Compare,
    /// Negation.
    Neg,
    /// Integer quotient.
    FloorDiv,
    /// Remainder.
    Mod,
    /// Operation on bits or truth values.
    Bitwise,
    /// A declared function of which only the code is known.
    External,
    /// A function of the C99 mathematics library.
    Math(MathFn),
}

const PLAIN: [OpKind; 10] = [
    OpKind::Add,
    OpKind::Mul,
    OpKind::Div,
    OpKind::MinMax,
    OpKind::Compare,
    OpKind::Neg,
    OpKind::FloorDiv,
    OpKind::Mod,
    OpKind::Bitwise,
    OpKind::External,
];

impl OpKind {
    /// Number of floating-point operations that one operation of this kind on a type counts for; none
    /// of integers.
    ///
    /// Sums, products, quotients, minima, maxima and calls count once, `fma` twice; negations and
    /// comparisons are free (they fold into the operations around them). Of complex numbers a sum
    /// counts twice, a product 6 times and a quotient 11 times, as often as their formulas have
    /// operations on reals; with a real, a sum is one operation on reals and a product two.
    pub fn flops(self, ty: ScalarType) -> u64 {
        if !ty.is_real() && !ty.is_complex() {
            return 0;
        }
        match self {
            Self::Add | Self::MinMax => ty.parts() as u64,
            Self::Mul if ty.is_complex() => 6,
            Self::Div if ty.is_complex() => 11,
            Self::Mul | Self::Div => 1,
            Self::Math(MathFn::Fma) => 2,
            Self::Math(MathFn::Complex | MathFn::RealPart | MathFn::ImagPart | MathFn::Conj) => 0,
            Self::Math(_) | Self::External => 1,
            Self::Compare | Self::Neg | Self::FloorDiv | Self::Mod | Self::Bitwise => 0,
        }
    }

    /// Name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Mul => "mul",
            Self::Div => "div",
            Self::MinMax => "min/max",
            Self::Compare => "compare",
            Self::Neg => "neg",
            Self::FloorDiv => "floor_div",
            Self::Mod => "mod",
            Self::Bitwise => "bits",
            Self::External => "extern",
            Self::Math(function) => function.name(),
        }
    }

    fn index(self) -> usize {
        match self {
            Self::Add => 0,
            Self::Mul => 1,
            Self::Div => 2,
            Self::MinMax => 3,
            Self::Compare => 4,
            Self::Neg => 5,
            Self::FloorDiv => 6,
            Self::Mod => 7,
            Self::Bitwise => 8,
            Self::External => 9,
            Self::Math(function) => PLAIN.len() + place(MathFn::ALL, function),
        }
    }

    fn from_index(index: usize) -> Option<Self> {
        let plain = PLAIN.get(index).copied();
        plain.or_else(|| MathFn::ALL.get(index.checked_sub(PLAIN.len())?).copied().map(Self::Math))
    }
}

impl From<UpdateOp> for OpKind {
    fn from(op: UpdateOp) -> Self {
        match op {
            UpdateOp::Add => Self::Add,
            UpdateOp::Mul => Self::Mul,
            UpdateOp::Min | UpdateOp::Max => Self::MinMax,
            UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_) => Self::Bitwise,
        }
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The place of one of all. Records and declared functions alone are none: the former are taken apart before
/// anything counts, the latter are `External`.
fn place<T: Copy + PartialEq>(all: &[T], one: T) -> usize {
    all.iter().position(|known| *known == one).expect("a kernel in scalar form")
}

/// A kind of operation and the type it works on, as one small number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally(u16);

impl Tally {
    /// How many tallies there are.
    pub const COUNT: usize = (PLAIN.len() + MathFn::ALL.len()) * ScalarType::ALL.len();

    /// The tally of operations of this kind and type.
    pub fn new(kind: OpKind, ty: ScalarType) -> Self {
        Self((kind.index() * ScalarType::ALL.len() + place(&ScalarType::ALL, ty)) as u16)
    }

    /// The same operation in single precision.
    pub fn single(self) -> Self {
        let types = ScalarType::ALL.len() as u16;
        let (kind, ty) = (self.0 / types, ScalarType::ALL[usize::from(self.0 % types)]);
        let single = if ty.is_complex() { ScalarType::C64 } else { ScalarType::F32 };
        Self(kind * types + place(&ScalarType::ALL, single) as u16)
    }

    /// Its number, below [`Self::COUNT`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Kind and type of the tally at a position below [`Self::COUNT`].
    pub fn decode(index: usize) -> Option<(OpKind, ScalarType)> {
        let types = ScalarType::ALL.len();
        Some((OpKind::from_index(index / types)?, ScalarType::ALL[index % types]))
    }

    /// The tallies that are not zero.
    pub fn collect(counts: &[u64]) -> BTreeMap<(OpKind, ScalarType), u64> {
        let named = |(k, n): (usize, &u64)| Some((Self::decode(k)?, *n));
        counts.iter().enumerate().filter(|(_, n)| **n > 0).filter_map(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tally_decodes_to_itself() {
        for k in 0..Tally::COUNT {
            let (kind, ty) = Tally::decode(k).unwrap_or((OpKind::Neg, ScalarType::I64));
            assert_eq!(Tally::new(kind, ty).index(), k);
            let single = if ty.is_complex() { ScalarType::C64 } else { ScalarType::F32 };
            assert_eq!(Tally::decode(Tally::new(kind, ty).single().index()), Some((kind, single)));
        }
        assert_eq!(Tally::decode(Tally::COUNT), None);
    }
}
