//! What chooses the arguments of random steps.

use purlin_ir::TableData;

/// The values that a kernel would be run with, for primitives that need one.
pub trait Inputs {
    /// The value of a parameter.
    fn param(&self, name: &str) -> Option<i64>;

    /// The elements of an argument.
    fn array(&self, name: &str) -> Option<TableData>;
}

/// Bytes that choose, one after the other; zeros, which choose what is simplest, when they are used
/// up.
pub struct Picks<'a> {
    bytes: std::slice::Iter<'a, u8>,
    inputs: &'a dyn Inputs,
}

impl<'a> Picks<'a> {
    /// Choices by `bytes` for a kernel that would be run with `inputs`.
    pub fn new(bytes: &'a [u8], inputs: &'a dyn Inputs) -> Self {
        Self { bytes: bytes.iter(), inputs }
    }

    /// What the kernel would be run with.
    pub fn inputs(&self) -> &'a dyn Inputs {
        self.inputs
    }

    fn byte(&mut self) -> usize {
        self.bytes.next().copied().unwrap_or(0).into() // default: bytes may be few, and end in zeros
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.byte() % n.max(1)
    }

    /// An integer from `low` to `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// One of `n` cases.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 1
    }

    /// One of these.
    pub fn of<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.below(from.len())).cloned()
    }

    /// One of these, of which there is one.
    pub fn among<T: Clone, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N)].clone()
    }
}
