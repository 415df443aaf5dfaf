//! Pieces of work that one of several processes does: claims that end with their process.
//!
//! A claim is the lock of one byte of a file that stays empty, at the place that the hash of its
//! name says. So nothing is left of a process that was killed, whatever it had claimed, and the
//! file needs no care. Locks of this kind belong to an open file, not to a process: two users in
//! one process exclude each other, too.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Claims on the records of a file.
#[derive(Debug)]
pub struct Claims(File);

/// A claim, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Claim<'c> {
    file: &'c File,
    place: i64,
}

impl Claims {
    /// Claims on the records of `path`, by locks of `path.claims`.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub fn beside(path: &Path) -> Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".claims");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).open(PathBuf::from(name)).map(Self)
    }

    /// Claims what has this name; none if another process has claimed it.
    ///
    /// # Errors
    /// A file system without locks.
    pub fn claim(&self, name: &str) -> Result<Option<Claim<'_>>> {
        let place = place(name);
        match control(&self.0, libc::F_OFD_SETLK, &mut byte(place, libc::F_WRLCK)) {
            Ok(()) => Ok(Some(Claim { file: &self.0, place })),
            Err(e) if e.kind() == ErrorKind::WouldBlock || e.raw_os_error() == Some(libc::EACCES) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Whether nobody else has claimed what has this name.
    ///
    /// # Errors
    /// As [`Claims::claim`].
    pub fn is_free(&self, name: &str) -> Result<bool> {
        let mut found = byte(place(name), libc::F_WRLCK);
        control(&self.0, libc::F_OFD_GETLK, &mut found)?;
        Ok(i32::from(found.l_type) == libc::F_UNLCK)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // what cannot be given back ends with the process
        let _ = control(self.file, libc::F_OFD_SETLK, &mut byte(self.place, libc::F_UNLCK));
    }
}

/// 62 bits of a hash: two of a million names share a place once in ten million times, and then one
/// of the two waits for the other.
fn place(name: &str) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(name.as_bytes()).as_bytes();
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]) >> 2) as i64
}

fn byte(place: i64, kind: i32) -> libc::flock {
    // SAFETY: a structure of numbers, of which all may be zero.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = place;
    lock.l_len = 1;
    lock
}

fn control(file: &File, command: i32, lock: &mut libc::flock) -> Result<()> {
    // SAFETY: the descriptor is open, and the structure outlives the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut *lock) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_claimed_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records");
        let (one, other) = (Claims::beside(&path).unwrap(), Claims::beside(&path).unwrap());
        let names: Vec<String> = (0..1000).map(|k| format!("trial {k}")).collect();
        let claims: Vec<_> = names.iter().step_by(2).map(|n| one.claim(n).unwrap().unwrap()).collect();
        for (k, name) in names.iter().enumerate() {
            assert_eq!(other.is_free(name).unwrap(), k % 2 == 1, "{name}");
            assert_eq!(other.claim(name).unwrap().is_some(), k % 2 == 1, "{name}");
        }
        drop(claims);
        assert!(names.iter().all(|name| other.claim(name).unwrap().is_some()));
        let held = other.claim("x").unwrap();
        drop((other.0.try_clone().unwrap(), held));
        assert!(one.claim("x").unwrap().is_some(), "a claim that was dropped is free");
        assert!(!path.exists() && path.with_extension("claims").metadata().unwrap().len() == 0);
    }
}
