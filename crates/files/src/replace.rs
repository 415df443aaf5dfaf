//! Files that are replaced as a whole.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a content goes.
enum Target {
    /// Into a new file next to this one, which then takes its name.
    Beside(PathBuf),
    /// Straight into a device, a pipe, or a link that leads to nothing yet: there is no content to
    /// keep.
    Straight,
}

/// Replaces a file by what `content` writes, or makes it; if anything fails, the file is as it was.
///
/// The content goes to a new file in the same folder, reaches the disk, and then takes the name.
/// Links are followed and permissions kept. Devices and pipes are written straight.
///
/// # Errors
/// What the system says; a file that may not be written is not replaced either.
pub fn replace(path: &Path, content: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    match target(path)? {
        Target::Straight => {
            let mut file = BufWriter::new(File::create(path)?);
            content(&mut file)?;
            file.flush()
        }
        Target::Beside(path) => {
            let file = beside(&path)?;
            let mut buffered = BufWriter::new(file.as_file());
            content(&mut buffered)?;
            buffered.flush()?;
            drop(buffered);
            // without this, some file systems rename before the content is safe, and report a full
            // disk only when it is too late
            file.as_file().sync_all()?;
            file.persist(&path).map_err(|e| e.error).map(drop)
        }
    }
}

/// [`replace`] with bytes that are there.
///
/// # Errors
/// As [`replace`].
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    replace(path, |file| file.write_all(bytes.as_ref()))
}

/// Whether [`replace`] may write there; the file stays as it is.
///
/// # Errors
/// As [`replace`].
pub fn check_writable(path: &Path) -> Result<()> {
    match target(path)? {
        Target::Straight => OpenOptions::new().append(true).create(true).open(path).map(drop),
        Target::Beside(path) => beside(&path).map(drop),
    }
}

fn target(path: &Path) -> Result<Target> {
    // `/dev/stdout` may lead to a file that another process has open
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return Ok(Target::Straight);
    }
    match path.metadata() {
        _ if path.as_os_str().as_encoded_bytes().ends_with(b"/") => Err(Error::from(ErrorKind::IsADirectory)),
        Ok(found) if found.is_dir() => Err(Error::from(ErrorKind::IsADirectory)),
        Ok(found) if !found.is_file() => Ok(Target::Straight),
        Ok(_) => {
            // whoever may not write a file does not replace it
            OpenOptions::new().append(true).open(path)?;
            path.canonicalize().map(Target::Beside)
        }
        Err(e) if e.kind() != ErrorKind::NotFound => Err(e),
        Err(_) if path.is_symlink() => Ok(Target::Straight),
        Err(_) => Ok(Target::Beside(path.to_owned())),
    }
}

/// A new file next to another, with its permissions, or those of any new file.
fn beside(path: &Path) -> Result<NamedTempFile> {
    let folder = path.parent().filter(|f| *f != Path::new("")).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kingpost-").suffix(".part");
    let file = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder);
    // the error names a file that nobody has asked for
    let file = file.map_err(|e| Error::from(e.kind()))?;
    if let Ok(found) = path.metadata() {
        file.as_file().set_permissions(found.permissions())?;
    }
    Ok(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_write_that_fails_midway_leaves_the_file_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old"), dir.path().join("new"));
        std::fs::write(&old, "what was there").unwrap();
        for path in [&old, &new] {
            let failed = replace(path, |file| {
                file.write_all(&[7; 100_000])?;
                Err(Error::from(ErrorKind::StorageFull))
            });
            assert!(crate::is_lack_of_room(&failed.unwrap_err()));
        }
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "what was there");
        assert_eq!(names(dir.path()), ["old"], "nothing is left behind");
        write(&old, "what is there now").unwrap();
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "what is there now");
        assert_eq!(names(dir.path()), ["old"]);
    }

    #[test]
    fn a_full_device_is_a_lack_of_room() {
        let error = write(Path::new("/dev/full"), "anything").unwrap_err();
        assert!(crate::is_lack_of_room(&error), "{error}");
        write(Path::new("/dev/null"), "anything").unwrap();
        check_writable(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn links_are_followed_and_permissions_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link, loose) =
            (dir.path().join("file"), dir.path().join("link"), dir.path().join("loose"));
        write(&file, "one").unwrap();
        let fresh = dir.path().join("fresh");
        File::create(&fresh).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), mode(&fresh), "a new file is as any other");
        file.metadata().unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        symlink("later", &loose).unwrap();
        check_writable(&link).unwrap();
        write(&link, "two").unwrap();
        write(&loose, "three").unwrap();
        assert!(link.is_symlink() && loose.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
        assert_eq!(std::fs::read_to_string(dir.path().join("later")).unwrap(), "three");
        assert_eq!(mode(&file), 0o640);
    }

    #[test]
    fn what_is_no_file_is_refused_before_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        for path in [dir.path().to_owned(), dir.path().join("no/such/folder"), dir.path().join("no/")] {
            assert!(check_writable(&path).is_err(), "{}", path.display());
            let error = write(&path, "x").unwrap_err();
            assert!(!error.to_string().contains(".kingpost-"), "{error}");
        }
        assert_eq!(names(dir.path()), [""; 0]);
    }
}
