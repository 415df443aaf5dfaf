//! Compiled objects on disk, found by the hash of everything they depend on.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes of the digest at the end of an entry.
const DIGEST: usize = 32;

/// Changes when the meaning of an entry does.
const FORMAT: &str = "purlin cache 1";

/// A directory of compiled objects.
///
/// Entries are written to a temporary file and renamed, so that readers see whole ones, and end in
/// a digest of key and content: one that does not match is ignored and built anew. ELF loaders
/// ignore bytes after the image, so a shared object is loaded from its entry as it stands. A
/// directory that cannot be written means no caching, never an error.
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
    /// `$PURLIN_CACHE_DIR`, else `$XDG_CACHE_HOME/purlin`, else `~/.cache/purlin`, else none.
    pub fn from_environment() -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let dir = set("PURLIN_CACHE_DIR")
            .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("purlin")))
            .or_else(|| set("HOME").map(|d| d.join(".cache").join("purlin")));
        Self { dir }
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

    fn path(&self, key: &CacheKey, extension: &str) -> Option<PathBuf> {
        self.dir.as_ref().map(|d| d.join(format!("{}.{extension}", key.0)))
    }

    /// The file of a valid entry (content, then digest).
    pub fn find(&self, key: &CacheKey, extension: &str) -> Option<PathBuf> {
        let path = self.path(key, extension)?;
        content(key, &fs::read(&path).ok()?)?;
        Some(path)
    }

    /// The content of a valid entry.
    pub fn load(&self, key: &CacheKey, extension: &str) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path(key, extension)?).ok()?;
        content(key, &bytes).map(<[u8]>::to_vec)
    }

    /// Stores an entry; `None` if the directory cannot be written.
    pub fn store(&self, key: &CacheKey, extension: &str, bytes: &[u8]) -> Option<PathBuf> {
        let (dir, path) = (self.dir.as_ref()?, self.path(key, extension)?);
        fs::create_dir_all(dir).ok()?;
        let mut file = tempfile::NamedTempFile::new_in(dir).ok()?;
        file.write_all(bytes).ok()?;
        file.write_all(&digest(key, bytes)).ok()?;
        file.persist(&path).ok()?;
        Some(path)
    }
}

fn digest(key: &CacheKey, bytes: &[u8]) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.0.as_bytes());
    hasher.update(bytes);
    *hasher.finalize().as_bytes()
}

/// The content of an entry whose digest matches.
fn content<'a>(key: &CacheKey, entry: &'a [u8]) -> Option<&'a [u8]> {
    let (bytes, stored) = entry.split_at_checked(entry.len().checked_sub(DIGEST)?)?;
    (digest(key, bytes) == stored).then_some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

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
        let path = cache.store(&key, "bin", b"content").unwrap();
        assert_eq!(cache.load(&key, "bin").unwrap(), b"content");
        assert_eq!(cache.find(&key, "bin").unwrap(), path);

        fs::copy(&path, cache.path(&other, "bin").unwrap()).unwrap();
        assert!(cache.load(&other, "bin").is_none());
        for damage in [&b"contenT"[..], b"", b"short"] {
            fs::write(&path, damage).unwrap();
            assert!(cache.find(&key, "bin").is_none());
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_means_no_caching() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::at(file.path().join("below a file"));
        let key = CacheKey::of(&["a"]);
        assert!(cache.store(&key, "bin", b"content").is_none());
        assert!(cache.load(&key, "bin").is_none());
    }
}
