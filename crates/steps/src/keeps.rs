//! What a step keeps of the results of a kernel, and of the instances that run.

/// How far results after a step may differ from those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Every bit is kept.
    Bits,
    /// Every number is kept, though a zero may have the other sign: terms that are zero are left
    /// out or added, or an element is taken for the negative of another one.
    Numbers,
    /// Updates, reductions, sums or products may run in another order.
    Reassociated,
    /// Values are computed by other formulas that are equal for real numbers, such as
    /// `exp(a)*exp(b)` for `exp(a + b)`.
    Identities,
    /// Tables or factors are replaced by others that are equal to this many decimal digits.
    Within(u32),
}

/// What a step keeps of the results: two independent facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keeps {
    /// How far results may differ.
    pub order: Order,
    /// Whether this holds for finite values only: zero times infinity is no zero.
    pub finite_only: bool,
}

impl Keeps {
    /// Every bit.
    pub const BITS: Self = Self { order: Order::Bits, finite_only: false };
    /// Every number; zeros may have the other sign.
    pub const NUMBERS: Self = Self { order: Order::Numbers, finite_only: false };
    /// Everything up to the order of sums and products.
    pub const REASSOCIATED: Self = Self { order: Order::Reassociated, finite_only: false };
    /// Everything up to identities of the reals, for finite values.
    pub const IDENTITIES: Self = Self { order: Order::Identities, finite_only: true };

    /// Everything up to tables that are equal to a number of decimal digits.
    #[must_use]
    pub const fn within(digits: u32) -> Self {
        Self { order: Order::Within(digits), finite_only: false }
    }

    /// The same, for finite values only.
    #[must_use]
    pub const fn of_finite(self) -> Self {
        Self { finite_only: true, ..self }
    }
}

impl std::fmt::Display for Keeps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.order {
            Order::Bits => f.write_str("every bit")?,
            Order::Numbers => f.write_str("every number, except for the signs of zeros")?,
            Order::Reassociated => f.write_str("results up to the order of sums and products")?,
            Order::Identities => f.write_str("results up to identities of the reals")?,
            Order::Within(digits) => write!(f, "results to {digits} digits")?,
        }
        f.write_str(if self.finite_only { ", where values are finite" } else { "" })
    }
}

/// How often the instructions that are there before and after a step run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instances {
    /// As often as before.
    Same,
    /// An instruction and its copies share its instances: only the sum over all instructions stays.
    Copied,
    /// As often as before or less often: what is hoisted runs once for many.
    Fewer,
    /// Any number of times: a root of a tree runs once for all its terms, modes are fewer than
    /// points, zeros are added or left out.
    Free,
}
