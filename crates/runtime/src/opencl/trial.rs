//! A compiler that may end the process is tried in another one first.
//!
//! pocl compiles the work-groups of a kernel when it is launched, in the process of whoever launches
//! it, and some of its passes over barriers end in a failed assertion or in no end at all (pocl 3.1
//! and 5.0, some programs in ten thousand random ones). So a source with barriers is compiled by a
//! process of its own at first, for the size of its work-groups. Intel's vectoriser of 2026.2 ends it at loops with a
//! function of a condition's value, so that sources with such values are tried, too. What comes of it is kept in the
//! cache of compiled objects; pocl keeps the code in its own cache, where the launch finds it.
//!
//! The process is a small program in C, which needs nothing of the program that uses this crate.
//! Without a C compiler nothing is tried.

use crate::cache::{Cache, CacheKey, temporary_dir};
use crate::error::RuntimeError;
use crate::host::Compiler;
use kingpost_codegen::Program;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The program that compiles.
const SOURCE: &str = include_str!("trial.c");

/// What names of files of a loader begin with.
const LOADER: &str = "libOpenCL.so";

/// Intel's.
const INTELS: &str = "libintelocl.so";

/// How long it may take: 3.1 has been seen to take 9 s for a kernel of 600 lines, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Set to 0, sources are compiled at once.
const SWITCH: &str = "KINGPOST_OPENCL_TRIAL";

/// What makes pocl compile for some sizes of work-groups when it is asked for a binary.
const SIZES: &str = "POCL_BINARY_SPECIALIZE_WG";

/// What a compilation is about.
pub(crate) struct Trial<'a> {
    pub(crate) program: &'a Program,
    /// Of the compiler.
    pub(crate) options: &'a str,
    /// Number of the device among what the loader lists.
    pub(crate) device: usize,
    /// Device, platform and driver, with version.
    pub(crate) driver: &'a str,
}

impl Trial<'_> {
    /// Refuses a program at which the compiler ends its process.
    ///
    /// # Errors
    /// [`RuntimeError::CompilerEnds`].
    pub(crate) fn run(&self, cache: &Cache) -> Result<(), RuntimeError> {
        if !self.is_due() {
            return Ok(());
        }
        let key = self.key();
        let kept = cache.load(&key, "trial").and_then(|bytes| String::from_utf8(bytes).ok());
        let said = kept.or_else(|| {
            let said = self.compile(SOURCE, PATIENCE)?;
            cache.store(&key, "trial", said.as_bytes());
            Some(said)
        });
        match said.filter(|said| !said.is_empty()) {
            None => Ok(()),
            Some(reason) => Err(RuntimeError::CompilerEnds {
                entry: self.program.entry.clone(),
                compiler: self.driver.to_owned(),
                reason,
            }),
        }
    }

    /// Whether the compiler is one that is known to end its process, and the source has what it is
    /// known to end at. Without optimisation none has been seen.
    fn is_due(&self) -> bool {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let is_plain = |options: &str| options.contains("-cl-opt-disable");
        let is_suspect = if self.is_intels() {
            self.program.source.contains(" ? ")
        } else {
            self.driver.to_lowercase().contains("pocl")
                && self.program.source.contains("barrier(")
                && !is_plain(&variable("POCL_EXTRA_BUILD_FLAGS"))
        };
        is_suspect && !is_plain(self.options) && variable(SWITCH) != "0"
    }

    fn is_intels(&self) -> bool {
        self.driver.contains("(Intel(R) OpenCL)")
    }

    fn key(&self) -> CacheKey {
        // where it keeps its files is no matter
        let chosen = std::env::vars_os().filter_map(|(name, value)| {
            let is_choice =
                |n: &String| n.starts_with("CL_CONFIG_") || n.starts_with("POCL_") && n != "POCL_CACHE_DIR";
            let name = name.into_string().ok().filter(is_choice)?;
            Some(format!("{name}={}", value.to_string_lossy()))
        });
        let mut chosen: Vec<_> = chosen.collect();
        chosen.sort_unstable();
        let block = format!("{:?}", self.program.plan.block);
        let parts = [
            "opencl trial",
            self.driver,
            &self.device.to_string(),
            self.options,
            &chosen.join("\n"),
            &block,
            &self.program.source,
        ];
        CacheKey::of(&parts)
    }

    /// What ended the process; empty if nothing did, none if nothing could be tried.
    fn compile(&self, tool: &str, patience: Duration) -> Option<String> {
        // pocl leaves pictures of what it aborts at where it runs
        let dir = temporary_dir().ok()?;
        let (code, source) = (dir.path().join("trial.c"), dir.path().join("kernel.cl"));
        std::fs::write(&code, tool).ok()?;
        std::fs::write(&source, &self.program.source).ok()?;
        let trial = dir.path().join("trial");
        let compiler = Compiler::find().ok()?;
        compiler.command().arg("-o").arg(&trial).arg(&code).arg("-ldl").output().ok()?;
        let log = dir.path().join("log");
        let [x, y, z] = self.program.plan.block;
        // Intel's library is a loader of its one device
        let (library, device) = if self.is_intels() { (INTELS, 0) } else { (LOADER, self.device) };
        let child = Command::new(&trial)
            .arg(loaded(library))
            .arg(device.to_string())
            .arg(&source)
            .arg(self.options)
            .env(SIZES, format!("{x}-{y}-{z}-goffs0-smallgrid"))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log).ok()?)
            .spawn()
            .ok()?;
        match wait(child, patience)? {
            None => Some(format!("no end within {} s", patience.as_secs())),
            Some(status) if status.code().is_none() => Some(last_words(&log, status)),
            Some(_) => Some(String::new()),
        }
    }
}

/// How a process ended; it is ended itself if it takes longer.
fn wait(mut child: Child, patience: Duration) -> Option<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().ok()? {
            return Some(Some(status));
        }
        if start.elapsed() > patience {
            child.kill().ok()?;
            child.wait().ok()?;
            return Some(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The last line that a process wrote before a signal ended it, from the failed assertion on.
fn last_words(log: &Path, status: ExitStatus) -> String {
    let text = std::fs::read(log).unwrap_or_default(); // it may have written none
    let text = String::from_utf8_lossy(&text);
    match text.lines().rfind(|line| !line.trim().is_empty()) {
        Some(line) => line.find("Assertion").map_or(line, |at| &line[at..]).trim().to_owned(),
        None => status.to_string(),
    }
}

/// The path of a library of this process.
fn loaded(name: &str) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default(); // then by name
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..]));
    let is_it = |path: &&str| {
        Path::new(path).file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
    };
    paths.into_iter().find(is_it).unwrap_or(name).to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)] // how a test fails
mod tests {
    use super::*;
    use kingpost_codegen::{Options, Target, generate};

    /// A program that says something instead of the compiler, and what comes of it.
    fn tried(body: &str, patience: Duration) -> Option<String> {
        let kernel = kingpost_ir::text::parse(
            "kernel k\narg y: f64[4] inout\n\nfor i in 0..4 {l.0}\n  s: y[i] = 1.0\n",
        );
        let program = generate(&kernel.unwrap(), Target::OpenCl, &Options::default()).unwrap();
        let trial = Trial { program: &program, options: "-cl-std=CL1.2", device: 0, driver: "PoCL" };
        let includes = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\n";
        let tool = format!("{includes}int main(int n, char **a) {{ {body} }}\n");
        trial.compile(&tool, patience)
    }

    #[test]
    fn what_ends_the_other_process_is_told() {
        let long = Duration::from_secs(60);
        assert_eq!(tried("return 0;", long).unwrap(), "");
        assert_eq!(tried("return 2;", long).unwrap(), "");
        let says = "fputs(\"a.cc:3: f: Assertion `exit != NULL' failed.\\n\", stderr); abort();";
        assert_eq!(tried(says, long).unwrap(), "Assertion `exit != NULL' failed.");
        assert!(tried("abort();", long).unwrap().starts_with("signal: 6"));
        assert_eq!(tried("for (;;) sleep(1);", Duration::from_secs(1)).unwrap(), "no end within 1 s");
        // it is told what to compile, and for which work-groups
        let checks = "return n != 5 || strcmp(a[2], \"0\") || strcmp(a[4], \"-cl-std=CL1.2\") || \
                      strcmp(getenv(\"POCL_BINARY_SPECIALIZE_WG\"), \"4-1-1-goffs0-smallgrid\") || access(a[3], 4) \
                      ? (abort(), 1) : 0;";
        assert_eq!(tried(checks, long).unwrap(), "");
        assert_eq!(tried("this is no C", long), None);
    }
}
