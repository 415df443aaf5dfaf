//! Complex numbers as arrays hold them.

use std::fmt;

/// An element of type `c64` or `c128`: the real part, then the imaginary one, as C, NumPy and CuPy have
/// them.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct Complex<T> {
    /// The real part.
    pub re: T,
    /// The imaginary part.
    pub im: T,
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
