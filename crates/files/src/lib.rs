//! Files that are written as a whole or not at all, and read up to a limit.
//!
//! Everything that a command leaves behind goes through [`replace()`] or [`append()`]: a write that
//! fails (a full disk, a quota, a process that is killed) leaves the file as it was.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod append;
mod read;
mod replace;

pub use append::append;
pub use read::{MESH_LIMIT, TEXT_LIMIT, read, read_open, read_text};
pub use replace::{check_writable, replace, write};

use std::io::{Error, ErrorKind};

/// Whether a write failed because the machine has no room for it: a full disk, a quota, a limit on
/// the size of files.
#[must_use]
pub fn is_lack_of_room(error: &Error) -> bool {
    [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge].contains(&error.kind())
}
