//! The database of trials: a file of JSON lines that many processes may write and that outlives
//! their death.
//!
//! A line is written under an exclusive lock, in one piece, and is on the disk before
//! [`Database::append`] returns; where that fails, the file is as it was. A writer that is killed
//! inside its line leaves a torn one; the next writer ends it, so that it spoils nothing else, and
//! [`Database::read`] reports it.

use crate::mapping::Mapping;
use crate::record::{Key, Record};
use kingpost_runtime::Claims;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file cannot be opened, locked, read or written.
    #[error("cannot {action} `{}`: {source}; check that its directory exists and can be written", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A file of something else, to which nothing is added.
    #[error(
        "`{}` is no database of `kingpost tune`: none of its {lines} lines is a record; name another file",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its lines that are not empty.
        lines: usize,
    },
    /// A record that is no JSON.
    #[error("bug of kingpost: a record cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A line that is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// Its number, from 1.
    pub line: usize,
    /// What it holds.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What a database holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents<M> {
    /// One record a key, the last one written, where its first stood.
    pub records: Vec<Record<M>>,
    /// Lines that are no records.
    pub damaged: Vec<Damaged>,
}

impl<M> Default for Contents<M> {
    fn default() -> Self {
        Self { records: Vec::new(), damaged: Vec::new() }
    }
}

/// Reads a mapping.
type Reader<M> = Arc<dyn Fn(Value) -> Result<M, serde_json::Error> + Send + Sync>;

/// A file of records of mappings `M`.
#[derive(Clone)]
pub struct Database<M> {
    path: PathBuf,
    reader: Reader<M>,
}

impl<M> std::fmt::Debug for Database<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<M: Mapping> Database<M> {
    /// The database in `path`, which is made when the first record comes.
    pub fn at(path: impl Into<PathBuf>) -> Self
    where
        M: DeserializeOwned,
    {
        Self::read_by(path, |json| serde_json::from_value(json))
    }

    /// The same of mappings that `reader` reads: those of a set that others may have added to.
    pub fn read_by(
        path: impl Into<PathBuf>,
        reader: impl Fn(Value) -> Result<M, serde_json::Error> + Send + Sync + 'static,
    ) -> Self {
        Self { path: path.into(), reader: Arc::new(reader) }
    }

    /// Its file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Everything in it; a file that is not there is empty.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else. Lines of records that are damaged are no
    /// error: see [`Contents::damaged`].
    pub fn read(&self) -> Result<Contents<M>, DatabaseError> {
        let contents = parse(&self.bytes_from(0)?, &*self.reader);
        match contents.records.is_empty() && contents.damaged.iter().any(|d| !is_like_a_record(&d.text)) {
            true => Err(DatabaseError::Foreign { path: self.path.clone(), lines: contents.damaged.len() }),
            false => Ok(contents),
        }
    }

    /// The records after `place`, which moves after the last whole line: what others have added
    /// since it was there.
    pub(crate) fn news(&self, place: &mut u64) -> Result<Vec<Record<M>>, DatabaseError> {
        let bytes = self.bytes_from(*place)?;
        let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |last| last + 1);
        *place += whole as u64;
        Ok(parse(&bytes[..whole], &*self.reader).records)
    }

    /// The bytes from a place on; none if there is no file, or if it is shorter.
    fn bytes_from(&self, place: u64) -> Result<Vec<u8>, DatabaseError> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.failed("open")(e)),
        };
        file.lock_shared().map_err(self.failed("lock"))?;
        if place > 0 {
            file.seek(SeekFrom::Start(place)).map_err(self.failed("read"))?;
        }
        kingpost_files::read_open(file, kingpost_files::TEXT_LIMIT).map_err(self.failed("read"))
    }

    /// Who does which trial, among the processes that share the database.
    pub(crate) fn claims(&self) -> Result<Claims, DatabaseError> {
        Claims::beside(&self.path).map_err(self.failed("claim trials of"))
    }

    /// A trial that could not be claimed.
    pub(crate) fn unclaimed(&self, source: std::io::Error) -> DatabaseError {
        self.failed("claim a trial of")(source)
    }

    /// Adds a record; when it returns, the record is on the disk. If that fails, the file is as it
    /// was.
    ///
    /// # Errors
    /// The file cannot be opened, locked or written.
    pub fn append(&self, record: &Record<M>) -> Result<(), DatabaseError> {
        let line = serde_json::to_string(record)?; // JSON escapes line ends inside strings
        kingpost_files::append(&self.path, &format!("{line}\n")).map_err(self.failed("write"))
    }

    fn failed(&self, action: &'static str) -> impl Fn(std::io::Error) -> DatabaseError {
        let path = self.path.clone();
        move |source| DatabaseError::Io { action, path: path.clone(), source }
    }
}

/// Whether a line begins as a record does, or is torn before it differs.
fn is_like_a_record(line: &str) -> bool {
    // those of the first version had no version
    let begins = ["{\"version\":", "{\"workload\":"];
    begins.iter().any(|begin| line.starts_with(begin) || begin.starts_with(line))
}

fn parse<M: Mapping>(bytes: &[u8], reader: &dyn Fn(Value) -> Result<M, serde_json::Error>) -> Contents<M> {
    let mut contents = Contents::default();
    let mut places: HashMap<Key, usize> = HashMap::new();
    for (k, line) in bytes.split(|b| *b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let record = serde_json::from_slice(line).and_then(|record: Record<Value>| record.map(reader));
        let record = match record {
            Ok(record) => record,
            Err(e) => {
                let text = String::from_utf8_lossy(line).into_owned();
                contents.damaged.push(Damaged { line: k + 1, text, reason: e.to_string() });
                continue;
            }
        };
        match places.get(&record.key()) {
            Some(place) => contents.records[*place] = record,
            None => {
                places.insert(record.key(), contents.records.len());
                contents.records.push(record);
            }
        }
    }
    contents
}
