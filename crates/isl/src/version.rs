//! How the isl that is linked computes with integers.

use crate::ffi;
use std::ffi::{CStr, OsString};
use std::sync::Once;

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

/// What is to be said, and done, where isl has no small integers.
pub const WITHOUT_SMALL_INTEGERS: &str = "isl, which proves each step, was built without its small integers and \
    takes 1.7 to 3.6 times as long: set `CONFIG_SITE` to Purlin's `isl.config.site` in `.cargo/config.toml`, then \
    `cargo clean -p isl-rs`";

/// Set to 0, nothing is said.
const SWITCH: &str = "PURLIN_ISL_NOTE";

/// Says once in a process, on standard error, that isl is slow, if it is. Cargo shows no warning of a
/// build script to a crate that has Purlin as a git dependency.
pub(crate) fn note_once() {
    static NOTE: Once = Once::new();
    NOTE.call_once(|| {
        if let Some(note) = note(has_small_integers(), std::env::var_os(SWITCH)) {
            eprintln!("{note}");
        }
    });
}

fn note(has_small_integers: bool, switch: Option<OsString>) -> Option<String> {
    if has_small_integers || switch.is_some_and(|value| value == "0") {
        return None;
    }
    Some(format!(
        "note: {WITHOUT_SMALL_INTEGERS} (docs/book/src/library.md); {SWITCH}=0 leaves this note out"
    ))
}

/// By isl's `isl_version.c`.
fn is_small(version: &str) -> bool {
    version.trim_end().ends_with("-IMath-32")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// `.cargo/config.toml` of this repository sets it.
    #[test]
    fn isl_is_built_with_small_integers_here() {
        assert!(has_small_integers());
    }

    #[test]
    fn a_slow_isl_is_said_unless_nobody_wants_to_know() {
        assert_eq!(note(true, None), None);
        let said = note(false, None).unwrap();
        for words in [WITHOUT_SMALL_INTEGERS, "library.md", "PURLIN_ISL_NOTE=0"] {
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(note(false, Some("1".into())), Some(said));
        assert_eq!(note(false, Some("0".into())), None);
    }

    #[test]
    fn arithmetic_is_read_from_the_version() {
        assert!(is_small("UNKNOWN-IMath-32\n"));
        assert!(!is_small("UNKNOWN-IMath\n") && !is_small("isl-0.27-GMP\n"));
    }
}
