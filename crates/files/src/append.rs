//! Files that grow by whole pieces.

use std::fs::{File, OpenOptions};
use std::io::{Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

/// Adds lines to a file, which is made if there is none, under an exclusive lock; when it returns,
/// they are on the disk. If that fails, the file is as it was.
///
/// A writer that was killed inside its line has left a torn one: it is ended first, so that it
/// spoils nothing else.
///
/// # Errors
/// What the system says.
pub fn append(path: &Path, lines: &str) -> Result<()> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    file.lock()?;
    let before = file.metadata()?.len();
    let start = if ends_inside_a_line(&mut file, before)? { "\n" } else { "" };
    add(&mut file, before, format!("{start}{lines}").as_bytes())
}

/// Writes at the end, or takes back what was written of it.
fn add(file: &mut File, before: u64, bytes: &[u8]) -> Result<()> {
    let written = file.write_all(bytes).and_then(|()| file.sync_data());
    if written.is_err() && file.metadata().is_ok_and(|found| found.is_file()) {
        // the first error is the one to report
        let _ = file.set_len(before);
    }
    written
}

/// Whether the writer of the last line died inside it.
fn ends_inside_a_line(file: &mut File, length: u64) -> Result<bool> {
    if length == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_added_and_a_torn_one_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        append(&path, "a\n").unwrap();
        append(&path, "b\nc").unwrap();
        append(&path, "d\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\nb\nc\nd\n");
        let error = append(Path::new("/dev/full"), "a\n").unwrap_err();
        assert!(crate::is_lack_of_room(&error), "{error}");
    }
}
