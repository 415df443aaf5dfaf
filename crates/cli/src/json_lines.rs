//! Files of lines of JSON, one a measurement.

use kingpost::files;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;

/// A file of lines of JSON that cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JsonLinesError {
    /// The file system refuses.
    #[error("cannot {action} `{path}`: {cause}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// A line is something else.
    #[error("line {line} of `{path}` is no record: {cause}; remove it")]
    Line {
        /// The file.
        path: String,
        /// From 1.
        line: usize,
        /// Why not.
        #[source]
        cause: serde_json::Error,
    },
}

/// The values of a file, one a line that is not blank.
///
/// # Errors
/// A file that cannot be read, a line that is no such value.
pub fn read_json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, JsonLinesError> {
    let name = path.display().to_string();
    let unreadable = |cause| JsonLinesError::Io { action: "read", path: name.clone(), cause };
    let text = files::read_text(path).map_err(unreadable)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let value = |(k, line): (usize, &str)| {
        let damaged = |cause| JsonLinesError::Line { path: name.clone(), line: k + 1, cause };
        serde_json::from_str(line).map_err(damaged)
    };
    lines.map(value).collect()
}

/// Adds a line to a file, which is made if there is none; if that fails, the file is as it was.
///
/// # Errors
/// A file that cannot be written.
pub fn append_json_line<T: Serialize>(path: &Path, value: &T) -> Result<(), JsonLinesError> {
    let failed = |cause| JsonLinesError::Io { action: "write", path: path.display().to_string(), cause };
    let line = serde_json::to_string(value).map_err(|e| failed(e.into()))?;
    files::append(path, &format!("{line}\n")).map_err(failed)
}
