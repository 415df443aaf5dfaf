//! Double-single numbers: unevaluated sums of two `f32`, of which the second is at most half a unit
//! in the last place of the first (Dekker 1971; *double-word arithmetic* in Joldes et al. 2017).
//!
//! They have 48 bits, on hardware whose operations on `f64` are few. Code holds one as it holds a
//! `c64`. A kernel with [`Arithmetic::DoubleSingle`](kingpost_ir::Arithmetic) is lowered as any
//! other, with reals of 64 bits; one pass, [`rewrite`], then makes pairs of them.

pub(crate) mod rewrite;

use kingpost_ir::ScalarType;

/// The type as which code holds a pair.
pub(crate) const HELD: ScalarType = ScalarType::C64;

/// An operation on pairs `z`, `w`, `a`, `f32` `x`, `y` and `f64`, in the order of its operands.
///
/// With `u = 2^-24`, sums and products err by no more than their [`bound`](Self::bound), where no
/// operation overflows and no part of a result is below `2^-126`. As sums leave out the step that
/// makes them exact under cancellation (Joldes et al. 2017, Algorithm 5), that of a sum is relative
/// to the sizes of its terms, as the bound of any sum of several terms is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PairOp {
    /// The pair with parts `x` and `y`.
    Make,
    /// The sum of two `f32` as a pair (Knuth 1998; six operations).
    TwoSum,
    /// The same where the first is not smaller (Dekker 1971; three operations).
    FastTwoSum,
    /// The pair of an `f64`, up to `2^-48` of it.
    Split,
    /// The `f64` that an `f32` is.
    Widen,
    /// The `f64` nearest to a pair.
    Join,
    /// The `f32` nearest to a pair: its first part.
    High,
    /// `-z`.
    Neg,
    /// `|z|`.
    Abs,
    /// `z + w`.
    Add,
    /// `z*w`.
    Mul,
    /// `z*x`.
    Scale,
    /// `a + z*w`, without making a pair of the product first.
    AddProduct,
    /// `z/w`, by two quotients of `f32` (as Joldes et al. 2017, Algorithm 17).
    Div,
    /// The square root of `z`, one step of Newton's from that of its first part.
    Sqrt,
    /// Whether `z < w`.
    Less,
    /// Whether `z <= w`.
    LessEqual,
    /// Whether `z` and `w` are equal.
    Equal,
    /// The smaller of two, the other one if one is no number.
    Min,
    /// The larger of two, the other one if one is no number.
    Max,
}

impl PairOp {
    /// Operations that its function calls, and what those call, first.
    pub(crate) fn calls(self) -> &'static [Self] {
        match self {
            Self::Add | Self::AddProduct => &[Self::TwoSum, Self::FastTwoSum],
            Self::Mul | Self::Scale | Self::Div | Self::Sqrt => &[Self::FastTwoSum],
            Self::Split => &[Self::FastTwoSum],
            Self::Join => &[Self::Widen],
            Self::Abs => &[Self::Neg],
            Self::Min | Self::Max => &[Self::Less],
            Self::Make
            | Self::TwoSum
            | Self::FastTwoSum
            | Self::Widen
            | Self::High
            | Self::Neg
            | Self::Less
            | Self::LessEqual
            | Self::Equal => &[],
        }
    }

    /// The type of its value, none of a truth value.
    pub(crate) fn value(self) -> Option<ScalarType> {
        match self {
            Self::Less | Self::LessEqual | Self::Equal => None,
            Self::High => Some(ScalarType::F32),
            Self::Widen | Self::Join => Some(ScalarType::F64),
            Self::Make
            | Self::TwoSum
            | Self::FastTwoSum
            | Self::Split
            | Self::Neg
            | Self::Abs
            | Self::Add
            | Self::Mul
            | Self::Scale
            | Self::AddProduct
            | Self::Div
            | Self::Sqrt
            | Self::Min
            | Self::Max => Some(HELD),
        }
    }

    /// The error in parts of the sizes of what is added up, or of the result of a product, quotient
    /// or root; of `a + z*w` in parts of `|a| + |z*w|`. None of operations that are exact or no
    /// arithmetic.
    ///
    /// Quotients and roots of `f32` are taken to be rounded correctly, as CUDA and C do.
    #[must_use]
    pub fn bound(self) -> Option<f64> {
        match self {
            // 2u² of the two roundings of small parts and 1u² of their sum, more under cancellation
            Self::Add => Some(2.0_f64.powi(-45)),
            // 1u² of the product that is left out, 2u² and 3u² of the two that are rounded
            Self::Mul | Self::Scale => Some(2.0_f64.powi(-45)),
            // both: 3u² of `a`, 15u² of the product
            Self::AddProduct => Some(2.0_f64.powi(-44)),
            // 11u² of the rest and 10u² of its quotient
            Self::Div => Some(2.0_f64.powi(-43)),
            Self::Sqrt => Some(2.0_f64.powi(-45)),
            Self::Make
            | Self::TwoSum
            | Self::FastTwoSum
            | Self::Split
            | Self::Widen
            | Self::Join
            | Self::High
            | Self::Neg
            | Self::Abs
            | Self::Min
            | Self::Max
            | Self::Less
            | Self::LessEqual
            | Self::Equal => None,
        }
    }

    /// Operations on `f32` that it takes, and quotients, roots and conversions.
    pub(crate) fn cost(self) -> (f64, f64) {
        match self {
            // a sign is part of the operand
            Self::Make | Self::High | Self::Neg => (0.0, 0.0),
            Self::Abs => (2.0, 0.0),
            Self::FastTwoSum => (3.0, 0.0),
            Self::TwoSum | Self::Scale => (6.0, 0.0),
            Self::Mul => (7.0, 0.0),
            Self::Add => (11.0, 0.0),
            Self::AddProduct => (15.0, 0.0),
            Self::Div => (9.0, 2.0),
            Self::Sqrt => (6.0, 2.0),
            Self::Min | Self::Max => (5.0, 0.0),
            Self::Less | Self::LessEqual => (3.0, 0.0),
            Self::Equal => (2.0, 0.0),
            // conversions, and a sum or difference of `f64`
            Self::Split => (0.0, 4.0),
            Self::Widen => (0.0, 1.0),
            Self::Join => (0.0, 3.0),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Make => "of",
            Self::TwoSum => "two_sum",
            Self::FastTwoSum => "fast_two_sum",
            Self::Split => "split",
            Self::Widen => "widen",
            Self::Join => "join",
            Self::High => "high",
            Self::Neg => "neg",
            Self::Abs => "abs",
            Self::Add => "add",
            Self::Mul => "mul",
            Self::Scale => "scale",
            Self::AddProduct => "add_product",
            Self::Div => "div",
            Self::Sqrt => "sqrt",
            Self::Min => "min",
            Self::Max => "max",
            Self::Less => "less",
            Self::LessEqual => "less_equal",
            Self::Equal => "equal",
        }
    }

    /// The name of its function.
    pub(crate) fn name(self) -> String {
        format!("kingpost_ds_{}", self.word())
    }
}

/// The parts of the pair nearest to a number; the second of what is not finite is zero.
pub(crate) fn parts(value: f64) -> [f64; 2] {
    let high = f64::from(value as f32);
    let low = if high.is_finite() { f64::from((value - high) as f32) } else { 0.0 };
    [high, low]
}
