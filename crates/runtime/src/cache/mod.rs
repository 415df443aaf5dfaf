//! Compiled objects on disk, found by the hash of everything they depend on.

mod folder;

use folder::{Closed, Folder};
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;

/// Bytes of the digest at the end of an entry.
const DIGEST: usize = 32;

/// Changes when the meaning of an entry does.
const FORMAT: &str = "kingpost cache 2";

/// A directory of compiled objects.
///
/// What is in it is run, so that it has to belong to this user alone: a directory or an entry that
/// another user owns or can write is not used, and a notice on standard error says so once. It is made
/// with mode 0700.
///
/// Entries are written to a temporary file and renamed, so that readers see whole ones, and end in
/// a digest of key and content: one that does not match is ignored and built again. An entry is
/// read once, and what is loaded is what was read. A directory that cannot be written means no
/// caching, never an error.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: Option<PathBuf>,
}

/// Key of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheKey(String);

impl CacheKey {
    /// Hash of `parts`, each with its length, so that no two lists of parts run together.
    pub fn of(parts: &[&str]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in std::iter::once(&FORMAT).chain(parts) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        Self(hasher.finalize().to_hex().to_string())
    }
}

impl Cache {
    /// `$KINGPOST_CACHE_DIR`, else `$XDG_CACHE_HOME/kingpost`, else `~/.cache/kingpost`, else none.
    ///
    /// `XDG_CACHE_HOME` and `HOME` count if they are absolute, as the XDG Base Directory Specification
    /// asks: else whoever owns the working directory would decide what is run.
    pub fn from_environment() -> Self {
        Self { dir: place(&|name| std::env::var_os(name)) }
    }

    /// The cache in `dir`, which is made when the first entry is stored.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()) }
    }

    /// No cache.
    pub fn disabled() -> Self {
        Self { dir: None }
    }

    /// The directory, if there is one.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// The content of a valid entry.
    pub fn load(&self, key: &CacheKey, extension: &str) -> Option<Vec<u8>> {
        let folder = self.usable(Folder::open(self.dir.as_ref()?))?;
        let mut bytes = match folder.read(&entry(key, extension)) {
            Ok(bytes) => bytes,
            Err(closed) => return self.usable(Err(closed)),
        };
        let length = content(key, extension, &bytes)?.len();
        bytes.truncate(length);
        Some(bytes)
    }

    /// Stores an entry; `None` if the directory cannot be written.
    pub fn store(&self, key: &CacheKey, extension: &str, bytes: &[u8]) -> Option<()> {
        let folder = self.usable(Folder::make(self.dir.as_ref()?))?;
        folder.write(&entry(key, extension), &[bytes, &digest(key, extension, bytes)]).ok()
    }

    /// A new directory for what is loaded by its path, open to this user alone: in the cache, where code
    /// may be run, or among temporary files.
    pub(crate) fn private_dir(&self) -> io::Result<tempfile::TempDir> {
        let cached = self.dir.as_ref().filter(|dir| self.usable(Folder::open(dir)).is_some());
        let private = Permissions::from_mode(0o700);
        let made = cached.and_then(|dir| {
            tempfile::Builder::new().prefix(".load-").permissions(private).tempdir_in(dir).ok()
        });
        made.map_or_else(temporary_dir, Ok)
    }

    /// What was opened; a notice where it belongs to others.
    fn usable<T>(&self, opened: Result<T, Closed>) -> Option<T> {
        static NOTICE: Once = Once::new();
        let dir = self.dir.as_deref()?;
        match opened {
            Ok(opened) => Some(opened),
            Err(Closed::Missing) => None,
            Err(Closed::Shared(why)) => {
                NOTICE.call_once(|| eprintln!("{}", shared(dir, &why)));
                None
            }
        }
    }
}

/// A new directory among temporary files, open to this user alone.
pub(crate) fn temporary_dir() -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o700)).tempdir()
}

/// The directory that the variables of an environment ask for.
fn place(variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| set(name).filter(|dir| dir.is_absolute());
    set("KINGPOST_CACHE_DIR")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|dir| dir.join("kingpost")))
        .or_else(|| absolute("HOME").map(|dir| dir.join(".cache").join("kingpost")))
        .and_then(|dir| std::path::absolute(dir).ok()) // of the working directory that it was given in
}

/// Why the cache is not used.
fn shared(dir: &Path, why: &str) -> String {
    format!(
        "note: the cache `{}` is not used, because {why}, and what is in it is run; `chmod -R go-w` it, or set \
         `KINGPOST_CACHE_DIR` to a folder of your own",
        dir.display().to_string().escape_debug()
    )
}

/// The name of the file of an entry.
fn entry(key: &CacheKey, extension: &str) -> String {
    format!("{}.{extension}", key.0)
}

fn digest(key: &CacheKey, extension: &str, bytes: &[u8]) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(entry(key, extension).as_bytes());
    hasher.update(bytes);
    *hasher.finalize().as_bytes()
}

/// The content of an entry whose digest matches.
fn content<'a>(key: &CacheKey, extension: &str, entry: &'a [u8]) -> Option<&'a [u8]> {
    let (bytes, stored) = entry.split_at_checked(entry.len().checked_sub(DIGEST)?)?;
    (digest(key, extension, bytes) == stored).then_some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(CacheKey::of(&["ab", "c"]), CacheKey::of(&["a", "bc"]));
        assert_eq!(CacheKey::of(&["ab", "c"]), CacheKey::of(&["ab", "c"]));
    }

    #[test]
    fn a_damaged_or_misplaced_entry_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("made/on/demand"));
        let (key, other) = (CacheKey::of(&["a"]), CacheKey::of(&["b"]));
        assert!(cache.load(&key, "bin").is_none());
        cache.store(&key, "bin", b"content").unwrap();
        assert_eq!(cache.load(&key, "bin").unwrap(), b"content");

        let file = |key: &CacheKey, extension: &str| cache.dir().unwrap().join(entry(key, extension));
        let path = file(&key, "bin");
        for (key, extension) in [(&other, "bin"), (&key, "log")] {
            fs::copy(&path, file(key, extension)).unwrap();
            assert!(cache.load(key, extension).is_none());
        }
        for damage in [&b"contenT"[..], b"", b"short"] {
            fs::write(&path, damage).unwrap();
            assert!(cache.load(&key, "bin").is_none());
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_means_no_caching() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::at(file.path().join("below a file"));
        let key = CacheKey::of(&["a"]);
        assert!(cache.store(&key, "bin", b"content").is_none());
        assert!(cache.load(&key, "bin").is_none());
        let private = cache.private_dir().unwrap();
        assert_eq!(fs::metadata(private.path()).unwrap().mode() & 0o777, 0o700);
    }

    /// The directories that are made, and the files, are open to their owner alone.
    #[test]
    fn what_is_stored_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("a/b"));
        let key = CacheKey::of(&["a"]);
        cache.store(&key, "bin", b"content").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let file = cache.dir().unwrap().join(entry(&key, "bin"));
        let modes = [&dir.path().join("a"), cache.dir().unwrap(), &file].map(mode);
        assert_eq!(modes, [0o700, 0o700, 0o600]);
        let private = cache.private_dir().unwrap();
        assert_eq!((mode(private.path()), private.path().parent()), (0o700, cache.dir()));
    }

    /// A directory or file that others can write, or that stands for another one, is not used.
    #[test]
    fn what_others_can_write_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let key = CacheKey::of(&["a"]);
        cache.store(&key, "bin", b"content").unwrap();
        let folder = cache.dir().unwrap().to_owned();
        let file = folder.join(entry(&key, "bin"));
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for (path, private) in [(&folder, 0o700), (&file, 0o600)] {
            for open in [0o020, 0o002, 0o022] {
                set(path, private | open);
                assert!(cache.load(&key, "bin").is_none(), "{open:o}");
            }
            set(path, private | 0o044); // to read does no harm
            assert!(cache.load(&key, "bin").is_some());
        }
        set(&folder, 0o777);
        assert!(cache.store(&key, "bin", b"content").is_none());
        assert_ne!(cache.private_dir().unwrap().path().parent(), Some(&*folder));
        set(&folder, 0o700);

        let elsewhere = dir.path().join("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        symlink(&elsewhere, &file).unwrap();
        assert!(cache.load(&key, "bin").is_none());
        fs::remove_file(&file).unwrap();
        fs::rename(&elsewhere, &file).unwrap();
        assert!(cache.load(&key, "bin").is_some());
    }

    #[test]
    fn what_others_own_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let key = CacheKey::of(&["a"]);
        cache.store(&key, "bin", b"content").unwrap();
        let folder = cache.dir().unwrap().to_owned();
        let own = fs::metadata(&folder).unwrap().uid();
        let give = |path: &Path, owner| std::os::unix::fs::chown(path, Some(owner), None);
        for path in [&folder.join(entry(&key, "bin")), &folder] {
            if let Err(why) = give(path, own + 1) {
                return println!("skipped: cannot give a file away: {why}");
            }
            assert!(cache.load(&key, "bin").is_none());
            give(path, own).unwrap();
            assert!(cache.load(&key, "bin").is_some());
        }
    }

    #[test]
    fn relative_directories_of_the_environment_do_not_count() {
        let at = |set: &[(&str, &str)]| {
            let find = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into());
            place(&find)
        };
        let home = ("HOME", "/home/me");
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(at(&[home]), path("/home/me/.cache/kingpost"));
        assert_eq!(at(&[("XDG_CACHE_HOME", "/cache"), home]), path("/cache/kingpost"));
        assert_eq!(at(&[("XDG_CACHE_HOME", "cache"), home]), path("/home/me/.cache/kingpost"));
        assert_eq!(at(&[("XDG_CACHE_HOME", "cache"), ("HOME", "me")]), None);
        assert_eq!(at(&[("KINGPOST_CACHE_DIR", "/here"), ("XDG_CACHE_HOME", "/cache")]), path("/here"));
        let relative = std::env::current_dir().unwrap().join("here");
        assert_eq!(at(&[("KINGPOST_CACHE_DIR", "here"), home]), Some(relative));
    }

    #[test]
    fn a_notice_says_what_to_do_and_escapes_the_name() {
        let expected = "note: the cache `/a\\u{1b}[31m` is not used, because others can write to it, and what is in \
                        it is run; `chmod -R go-w` it, or set `KINGPOST_CACHE_DIR` to a folder of your own";
        assert_eq!(shared(Path::new("/a\x1b[31m"), "others can write to it"), expected);
    }
}
