//! Messages with their answers in a file, and the same messages once more.

use super::super::failure::Failure;
use super::super::json_lines::append_json_line;
use super::super::text_file::read;
use super::lines::write_line;
use super::protocol::{answer, called};
use super::server::Server;
use kingpost::files;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A message and what was said to it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    message: String,
    answer: Option<String>,
}

/// A file that a dialogue is written to as it goes on.
pub struct Log(PathBuf);

impl Log {
    /// An empty file.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        files::write(path, "").map_err(|e| Failure::of_write(path, &e))?;
        Ok(Self(path.to_owned()))
    }

    /// Adds a message and its answer.
    pub fn add(&self, line: &[u8], answer: Option<&str>) -> Result<(), Failure> {
        let message = String::from_utf8_lossy(line).trim_end().to_owned();
        Ok(append_json_line(&self.0, &Entry { message, answer: answer.map(str::to_owned) })?)
    }
}

/// Answers the messages of a file again, and compares the answers where the file has them.
pub fn replay(path: &Path) -> Result<(), Failure> {
    let (mut server, mut differ, mut compared) = (Server::default(), Vec::new(), 0);
    for (k, line) in read(path)?.lines().enumerate() {
        let entry: Option<Entry> = serde_json::from_str(line).ok();
        let message = entry.as_ref().map_or(line, |entry| &entry.message).as_bytes();
        let answer = match &entry {
            // another day has another time: what follows was chosen by this one
            Some(entry) if called(message).is_some_and(|tool| tool.measures) => entry.answer.clone(),
            Some(_) | None => answer(&mut server, message),
        };
        if let Some(entry) = entry {
            compared += 1;
            if entry.answer != answer {
                differ.push(k + 1);
            }
        }
        if answer.is_some_and(|text| !write_line(&text)) {
            return Ok(());
        }
    }
    match differ.first() {
        Some(first) => Err(Failure::Refused(format!(
            "{} of {compared} answers differ from those in `{}`; the first is that of line {first}",
            differ.len(),
            path.display()
        ))),
        None => Ok(()),
    }
}
