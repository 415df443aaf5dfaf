//! The database of trials: a file of JSON lines that many processes may write and that outlives
//! their death.
//!
//! A line is written under an exclusive lock, in one piece, and is on the disk before
//! [`Database::append`] returns. A writer that dies inside its line leaves a torn one; the next
//! writer ends it, so that it spoils nothing else, and [`Database::read`] reports it.

use crate::mapping::Mapping;
use crate::record::{Key, Record};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

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
        "`{}` is no database of `purlin tune`: none of its {lines} lines is a record; name another file",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its lines that are not empty.
        lines: usize,
    },
    /// A record that is no JSON.
    #[error("bug of purlin: a record cannot be written as JSON: {0}")]
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

/// A file of records of mappings `M`.
#[derive(Clone, Debug)]
pub struct Database<M> {
    path: PathBuf,
    holds: PhantomData<fn() -> M>,
}

impl<M: Mapping> Database<M> {
    /// The database in `path`, which is made when the first record comes.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), holds: PhantomData }
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
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Contents::default()),
            Err(e) => return Err(self.failed("open")(e)),
        };
        file.lock_shared().map_err(self.failed("lock"))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(self.failed("read"))?;
        let contents = parse(&bytes);
        match contents.records.is_empty() && contents.damaged.iter().any(|d| !is_like_a_record(&d.text)) {
            true => Err(DatabaseError::Foreign { path: self.path.clone(), lines: contents.damaged.len() }),
            false => Ok(contents),
        }
    }

    /// Adds a record; when it returns, the record is on the disk.
    ///
    /// # Errors
    /// The file cannot be opened, locked or written.
    pub fn append(&self, record: &Record<M>) -> Result<(), DatabaseError> {
        let line = serde_json::to_string(record)?; // JSON escapes line ends inside strings
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).read(true).append(true).open(&self.path).map_err(self.failed("open"))?;
        file.lock().map_err(self.failed("lock"))?;
        let start = if ends_inside_a_line(&mut file).map_err(self.failed("read"))? { "\n" } else { "" };
        file.write_all(format!("{start}{line}\n").as_bytes()).map_err(self.failed("write"))?;
        file.sync_data().map_err(self.failed("write"))
    }

    fn failed(&self, action: &'static str) -> impl Fn(std::io::Error) -> DatabaseError {
        let path = self.path.clone();
        move |source| DatabaseError::Io { action, path: path.clone(), source }
    }
}

/// Whether the writer of the last line died inside it.
fn ends_inside_a_line(file: &mut File) -> std::io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Whether a line begins as a record does, or is torn before it differs.
fn is_like_a_record(line: &str) -> bool {
    // those of the first version had no version
    let begins = ["{\"version\":", "{\"workload\":"];
    begins.iter().any(|begin| line.starts_with(begin) || begin.starts_with(line))
}

fn parse<M: Mapping>(bytes: &[u8]) -> Contents<M> {
    let mut contents = Contents::default();
    let mut places: HashMap<Key, usize> = HashMap::new();
    for (k, line) in bytes.split(|b| *b == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let record: Record<M> = match serde_json::from_slice(line) {
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
