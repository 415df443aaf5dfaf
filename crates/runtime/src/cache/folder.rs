//! A directory that belongs to this user alone, and its files.
//!
//! It is opened once, and files are opened in what was opened: nobody can put another directory in
//! its place between a check and a use.

use rustix::fs::{AtFlags, Mode, OFlags, fstat, open, openat, renameat, unlinkat};
use rustix::process::geteuid;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open directory.
pub(super) struct Folder(OwnedFd);

/// Why a directory or file is not used.
#[derive(Debug)]
pub(super) enum Closed {
    /// It is not there, cannot be opened, or is of another kind.
    Missing,
    /// Others own it or can write to it, in words.
    Shared(String),
}

impl Folder {
    /// The directory at a path; a symbolic link may lead there.
    pub(super) fn open(dir: &Path) -> Result<Self, Closed> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(dir, flags, Mode::empty()).map_err(|_| Closed::Missing)?;
        check_private(&opened, "it")?;
        Ok(Self(opened))
    }

    /// The same, made with mode 0700 if it is not there.
    pub(super) fn make(dir: &Path) -> Result<Self, Closed> {
        match DirBuilder::new().recursive(true).mode(0o700).create(dir) {
            Ok(()) => Self::open(dir),
            Err(_) => Err(Closed::Missing),
        }
    }

    /// The content of a file in it.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, Closed> {
        // without waiting for who writes to a pipe
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&self.0, name, flags, Mode::empty()).map_err(|_| Closed::Missing)?;
        check_private(&opened, "a file in it")?;
        let mut file = File::from(opened);
        let is_file = file.metadata().is_ok_and(|found| found.is_file());
        let mut bytes = Vec::new();
        match file.read_to_end(&mut bytes) {
            Ok(_) if is_file => Ok(bytes),
            Ok(_) | Err(_) => Err(Closed::Missing),
        }
    }

    /// Writes a file, of which readers see all or nothing.
    pub(super) fn write(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let beside = format!(".{name}.{}.{number}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, &beside, flags, Mode::RUSR | Mode::WUSR)?);
        let written = parts.iter().try_for_each(|part| file.write_all(part));
        let renamed = written.and_then(|()| Ok(renameat(&self.0, &beside, &self.0, name)?));
        if renamed.is_err() {
            let _ = unlinkat(&self.0, &beside, AtFlags::empty());
        }
        renamed
    }
}

/// Refuses what others own or can write.
fn check_private(opened: &impl AsFd, what: &str) -> Result<(), Closed> {
    let found = fstat(opened).map_err(|_| Closed::Missing)?;
    if found.st_uid != geteuid().as_raw() {
        return Err(Closed::Shared(format!("user {} owns {what}", found.st_uid)));
    }
    match found.st_mode & 0o022 {
        0 => Ok(()),
        _ => Err(Closed::Shared(format!("others can write to {what}"))),
    }
}
