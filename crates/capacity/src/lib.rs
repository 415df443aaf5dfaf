//! Whether something fits in the memory of this machine, before any of it is allocated.
//!
//! Allocators promise more than there is, and a process that takes them at their word ends without a
//! message. What may be large is therefore counted before it is made.
//!
//! ```
//! use kingpost_capacity::{OutOfMemory, check_memory};
//!
//! assert_eq!(check_memory("a number", 8, "use fewer"), Ok(()));
//! let OutOfMemory { needed, help, .. } = OutOfMemory::new("all numbers", 8 << 40, "use fewer");
//! assert_eq!((needed, help), (8 << 40, "use fewer"));
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod available;

pub use available::available_memory;

/// Something does not fit in the memory of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} would take {needed} bytes, and {}; {help}", free(*available))]
pub struct OutOfMemory {
    /// What was asked for.
    pub what: String,
    /// Bytes it takes, all copies together.
    pub needed: u64,
    /// Bytes that this process may still have; none if the system does not say.
    pub available: Option<u64>,
    /// What to do.
    pub help: &'static str,
}

impl OutOfMemory {
    /// That `what` was refused.
    #[must_use]
    pub fn new(what: impl Into<String>, needed: u64, help: &'static str) -> Self {
        Self { what: what.into(), needed, available: available_memory(), help }
    }
}

/// What a message says is free.
fn free(available: Option<u64>) -> String {
    match available {
        Some(bytes) => format!("{bytes} are free here"),
        None => "the allocator refused them".into(),
    }
}

/// What no system is asked about: less than the memory of its smallest process.
const SMALL: u64 = 1 << 20;

/// Checks that `needed` bytes are free.
///
/// # Errors
/// [`OutOfMemory`].
pub fn check_memory(what: &str, needed: u64, help: &'static str) -> Result<(), OutOfMemory> {
    if needed <= SMALL {
        return Ok(());
    }
    match available_memory() {
        available @ Some(bytes) if needed > bytes => {
            Err(OutOfMemory { what: what.into(), needed, available, help })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // how a test fails
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_is_refused() {
        assert_eq!(check_memory("a byte", 1, "ask for less"), Ok(()));
        let Err(error) = check_memory("everything", u64::MAX, "ask for less") else {
            println!("skipped: the system does not say how much is free");
            return;
        };
        assert_eq!((error.needed, error.help), (u64::MAX, "ask for less"));
        let free = format!("and {} are free here; ask for less", error.available.unwrap());
        assert_eq!(error.to_string(), format!("everything would take 18446744073709551615 bytes, {free}"));
    }

    #[test]
    fn a_system_that_does_not_say_is_not_quoted() {
        let error =
            OutOfMemory { what: "the mesh".into(), needed: 5, available: None, help: "use fewer cells" };
        let expected = "the mesh would take 5 bytes, and the allocator refused them; use fewer cells";
        assert_eq!(error.to_string(), expected);
        assert_eq!(
            OutOfMemory::new("the mesh", 5, "use fewer cells").available.is_some(),
            available_memory().is_some()
        );
    }
}
