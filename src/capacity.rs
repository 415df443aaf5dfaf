//! Whether something fits in the memory of this machine, before any of it is allocated.

use purlin_runtime::available_memory;

/// Something does not fit in the memory of this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} would take {needed} bytes, and {available} are free here; {help}")]
pub struct OutOfMemory {
    /// What was asked for.
    pub what: String,
    /// Bytes it takes, all copies together.
    pub needed: u64,
    /// Bytes that this process may still have.
    pub available: u64,
    /// What to do.
    pub help: &'static str,
}

/// Checks that `needed` bytes are free. Allocators promise more than there is, so that only asking
/// first helps.
///
/// # Errors
/// [`OutOfMemory`].
pub fn check_memory(what: &str, needed: u64, help: &'static str) -> Result<(), OutOfMemory> {
    match available_memory() {
        Some(available) if needed > available => {
            Err(OutOfMemory { what: what.into(), needed, available, help })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
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
        assert!(error.to_string().starts_with("everything would take 18446744073709551615 bytes, and "));
    }
}
