//! Complex numbers as arrays hold them.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An element of type `c64` or `c128`: the real part, then the imaginary one, as C, NumPy and CuPy have
/// them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
}

impl<T> Complex<T> {
    /// The number whose parts are those of this one under `f`.
    pub fn map<U>(self, f: impl Fn(T) -> U) -> Complex<U> {
        Complex { re: f(self.re), im: f(self.im) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Complex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "complex({:?}, {:?})", self.re, self.im)
    }
}

impl<T: fmt::Display> fmt::Display for Complex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "complex({}, {})", self.re, self.im)
    }
}
