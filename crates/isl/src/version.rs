//! How the isl that is linked computes with integers.

use crate::ffi;
use std::ffi::CStr;

/// Whether isl holds integers of at most 32 bits in the pointer to a long one
/// (`--with-int=imath-32`).
///
/// Without them isl allocates for each number. The setting must be in the environment in which
/// isl-rs is built, whose own is `imath`.
#[must_use]
pub fn has_small_integers() -> bool {
    // SAFETY: isl gives a static string: a version, which is `UNKNOWN` outside its repository, and
    // the arithmetic.
    let version = unsafe { CStr::from_ptr(ffi::isl_version()) };
    is_small(&version.to_string_lossy())
}

/// By isl's `isl_version.c`.
fn is_small(version: &str) -> bool {
    version.trim_end().ends_with("-IMath-32")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `.cargo/config.toml` of this repository sets it.
    #[test]
    fn isl_is_built_with_small_integers_here() {
        assert!(has_small_integers());
    }

    #[test]
    fn arithmetic_is_read_from_the_version() {
        assert!(is_small("UNKNOWN-IMath-32\n"));
        assert!(!is_small("UNKNOWN-IMath\n") && !is_small("isl-0.27-GMP\n"));
    }
}
