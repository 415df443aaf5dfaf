//! oclgrind, an independent checker of OpenCL kernels: data races, uninitialised and invalid
//! accesses.
//!
//! oclgrind is an OpenCL device that interprets kernels. It is chosen by environment variables that
//! the loader reads when a process first uses OpenCL, so a check runs a *child process* whose only
//! OpenCL device is oclgrind, and reads the log afterwards; the child's exit status says nothing.
//!
//! ```no_run
//! # fn demo() -> Result<(), kingpost_runtime::RuntimeError> {
//! use kingpost_runtime::oclgrind;
//! let dir = std::path::Path::new("check");
//! let child = std::process::Command::new("kingpost")
//!     .args(["run", "laplace", "--device", "opencl"])
//!     .envs(oclgrind::environment(dir)?)
//!     .status();
//! for finding in oclgrind::read_log(&oclgrind::log_file(dir))? {
//!     println!("{finding}");
//! }
//! # let _ = child;
//! # Ok(())
//! # }
//! ```

use crate::error::{RuntimeError, Unavailable};
use crate::host::in_path;
use std::fmt;
use std::path::{Path, PathBuf};

/// The library that the loader opens.
const ICD: &str = "liboclgrind-rt-icd.so";

/// What kind of mistake a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingKind {
    /// Two work-items access one element, one of them writes, and nothing orders them.
    DataRace,
    /// A value that was never written decides something or is used.
    Uninitialised,
    /// A read or write outside every buffer, or misaligned.
    InvalidAccess,
    /// Not every work-item of a group reaches a barrier.
    BarrierDivergence,
    /// A call of the host that OpenCL does not allow.
    Api,
    /// Anything else in the log.
    Other,
}

/// One entry of oclgrind's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What kind of mistake it is.
    pub kind: FindingKind,
    /// Its first line.
    pub title: String,
    /// The lines below it: kernel, work-item, source line.
    pub details: Vec<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.title)?;
        self.details.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

/// The environment of a child process whose only OpenCL device is oclgrind.
///
/// Writes the loader's configuration into `dir`; the log appears next to it ([`log_file`]). `dir` is
/// made if it is not there, and a log of an earlier child is removed.
///
/// # Errors
/// oclgrind is not installed, or `dir` cannot be written.
pub fn environment(dir: &Path) -> Result<Vec<(String, String)>, RuntimeError> {
    let library = find()?;
    std::fs::create_dir_all(dir).map_err(RuntimeError::io(format!("make `{}`", dir.display())))?;
    // The child may have another working directory.
    let dir = dir.canonicalize().map_err(RuntimeError::io(format!("find `{}`", dir.display())))?;
    let icd = dir.join("oclgrind.icd");
    std::fs::write(&icd, format!("{}\n", library.display()))
        .map_err(RuntimeError::io(format!("write `{}`", icd.display())))?;
    let log = log_file(&dir);
    std::fs::write(&log, "").map_err(RuntimeError::io(format!("write `{}`", log.display())))?;
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Ok(vec![
        set("OCL_ICD_VENDORS", &icd.to_string_lossy()),
        set("OCLGRIND_LOG", &log.to_string_lossy()),
        set("OCLGRIND_DATA_RACES", "1"),
        set("OCLGRIND_UNINITIALIZED", "1"),
        set("OCLGRIND_CHECK_API", "1"),
        set("OCLGRIND_MAX_ERRORS", "100"),
    ])
}

/// The log of a child that ran with [`environment`] of `dir`.
pub fn log_file(dir: &Path) -> PathBuf {
    dir.join("oclgrind.log")
}

/// What the log at `path` says; nothing if the log is empty.
///
/// # Errors
/// The log cannot be read: the child did not run with [`environment`].
pub fn read_log(path: &Path) -> Result<Vec<Finding>, RuntimeError> {
    let text = std::fs::read_to_string(path)
        .map_err(RuntimeError::io(format!("read oclgrind's log `{}`", path.display())))?;
    Ok(parse(&text))
}

/// Entries start in the first column, their details are indented.
fn parse(log: &str) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for line in log.lines().filter(|l| !l.trim().is_empty()) {
        let text = line.trim().to_owned();
        match found.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => last.details.push(text),
            _ => found.push(Finding { kind: kind(&text), title: text, details: Vec::new() }),
        }
    }
    found
}

/// The kind, by the words of oclgrind 21.10.
fn kind(title: &str) -> FindingKind {
    let has = |word: &str| title.contains(word);
    if has("data race") {
        FindingKind::DataRace
    } else if has("ninitialized") {
        FindingKind::Uninitialised
    } else if has("Invalid read") || has("Invalid write") || has("Unaligned") || has("Invalid memory") {
        FindingKind::InvalidAccess
    } else if has("divergence") {
        FindingKind::BarrierDivergence
    } else if has("OpenCL error") {
        FindingKind::Api
    } else {
        FindingKind::Other
    }
}

/// The ICD next to the `oclgrind` program, or where distributions put it.
fn find() -> Result<PathBuf, Unavailable> {
    let mut dirs = Vec::new();
    if let Some(prefix) = in_path("oclgrind").as_deref().and_then(Path::parent).and_then(Path::parent) {
        dirs.extend(["lib/oclgrind", "lib"].map(|d| prefix.join(d)));
    }
    dirs.extend(
        ["/usr/lib/oclgrind", "/usr/local/lib/oclgrind", "/usr/lib", "/usr/local/lib"].map(PathBuf::from),
    );
    dirs.dedup();
    dirs.iter().map(|d| d.join(ICD)).find(|p| p.is_file()).ok_or_else(|| Unavailable::NoOclgrind {
        searched: dirs.iter().map(|d| format!("`{}`", d.display())).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_start_in_the_first_column() {
        let log = "\nWrite-write data race at global memory address 0x2\n\tKernel: f\n\n\tAt line 4\n\
                   \nInvalid read of size 8 at global memory address 0x1\n\tKernel: g\n\
                   \nWork-group divergence detected (barrier):\n\nOclgrind: 100 errors generated\n";
        let found = parse(log);
        let kinds: Vec<_> = found.iter().map(|f| f.kind).collect();
        let expected = [
            FindingKind::DataRace,
            FindingKind::InvalidAccess,
            FindingKind::BarrierDivergence,
            FindingKind::Other,
        ];
        assert_eq!(kinds, expected);
        assert_eq!(found[0].details, ["Kernel: f", "At line 4"]);
        assert_eq!(parse("\n\n"), []);
    }
}
