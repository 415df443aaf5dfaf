//! Reading with a limit: a device or a pipe may never end.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek};
use std::path::Path;

/// Bytes of a kernel, a recipe, a form, values or a database that are read: 1 GiB. The largest file
/// of the repository has 5 MB.
pub const TEXT_LIMIT: u64 = 1 << 30;

/// Bytes of a mesh that are read: 16 GiB.
pub const MESH_LIMIT: u64 = 1 << 34;

/// Bytes of a device or a pipe that are read, which have no length: 256 MiB.
const STREAM_LIMIT: u64 = 1 << 28;

/// The content of a file of at most `limit` bytes; of a device or a pipe at most 256 MiB of that.
///
/// # Errors
/// What the system says; more bytes than that.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    read_open(File::open(path)?, limit)
}

/// [`read`] of a file that is open, from where it stands.
///
/// # Errors
/// As [`read`].
pub fn read_open(mut file: File, limit: u64) -> Result<Vec<u8>> {
    let found = file.metadata()?;
    let limit = if found.is_file() { limit } else { limit.min(STREAM_LIMIT) };
    let mut bytes = Vec::new();
    if found.is_file() {
        let length = found.len().saturating_sub(file.stream_position()?);
        if length > limit {
            return Err(too_long(limit));
        }
        bytes.try_reserve_exact(length as usize + 1).map_err(|_| Error::from(ErrorKind::OutOfMemory))?;
    }
    // one more byte tells a longer one
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_long(limit)) } else { Ok(bytes) }
}

/// [`read`] of a text of at most [`TEXT_LIMIT`] bytes.
///
/// # Errors
/// As [`read`]; bytes that are no UTF-8.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path, TEXT_LIMIT)?).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        Error::new(ErrorKind::InvalidData, format!("byte {at} is no UTF-8, so this is no text"))
    })
}

fn too_long(limit: u64) -> Error {
    Error::new(ErrorKind::InvalidData, format!("it has more than the {} MiB that are read", limit >> 20))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_has_no_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, [b'x'; 100]).unwrap();
        assert_eq!(read(&path, 100).unwrap().len(), 100);
        assert_eq!(read(&path, 99).unwrap_err().kind(), ErrorKind::InvalidData);
        // a hole of a terabyte
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let error = read_text(&path).unwrap_err().to_string();
        assert_eq!(error, "it has more than the 1024 MiB that are read");
        let error = read(Path::new("/dev/zero"), 5000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(read(Path::new("/dev/null"), 5000).unwrap(), b"");
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, b"abc\xff").unwrap();
        assert!(read_text(&path).unwrap_err().to_string().contains("byte 3 is no UTF-8"));
        std::fs::write(&path, "äöü").unwrap();
        assert_eq!(read_text(&path).unwrap(), "äöü");
    }
}
