//! The system's C compiler: found, identified, run.

use crate::cache::{Cache, CacheKey, temporary_dir};
use crate::device::{Backend, Optimisation, Origin};
use crate::error::{RuntimeError, Unavailable};
use crate::host::openmp::threads;
use crate::interrupt::{check_interrupt, is_watched};
use kingpost_codegen::Program;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// IEEE arithmetic is kept; how far it is optimised and contracted is the program's.
///
/// GCC 12 with AVX-512 takes a guarded read of an array, `if (1 <= i) y[i] *= t[i - 1]` in a vector
/// loop, for a proof that `i` is at least 1 in every lane, and computes nonsense; without the
/// propagation of ranges it does not. It then distributes a loop over statements that may not be
/// parted (`y[i] += …; y[0] = fmin(y[0], …)`), unless told not to.
///
/// For a load of private memory it looks through up to 1000 stores for the one that it reads, a tenth to a
/// quarter of its time where cells in lanes are gathered. With 50 the operators of
/// `scripts/compile_time.py` run as fast (GCC 12, AVX-512, 2026-11-28).
///
/// Functions may set `errno`, which nobody reads: without (`-fno-math-errno`) n-body takes 0.62 of the time, and
/// GCC 12 makes 0 of `cos(atan(NAN))`.
const OPTIONS: [&str; 7] = [
    "-march=native",
    "-std=c11",
    "-fno-tree-vrp",
    "-fno-tree-loop-distribution",
    "--param=sccvn-max-alias-queries-per-access=50",
    "-fPIC",
    "-shared",
];

/// GCC 12 keeps a sum `w[1 - i] += …` of a triangle in a register over iterations that it is not of.
/// A program without such loops has the optimisation, with which adi of `PolyBench` takes 0.74 of the
/// time, and seidel-2d 0.85 (GCC 12, AVX-512, 2026-11-28).
fn commoning(program: &Program) -> Option<&'static str> {
    program.repeated_writes.then_some("-fno-predictive-commoning")
}

/// GCC 12 without the propagation of ranges moves a condition on one axis of work-items out of the loop over
/// lanes of another wrongly, and threads jumps over the conditions of a sum in a tree: such sums lose terms,
/// or have some that nobody wrote. Operators with cells in lanes run as fast without both (3-D P3 Laplace, P2
/// hyperelasticity; GCC 12, AVX-512, 2026-11-28 and 29).
fn conditions_on_lanes(program: &Program) -> &'static [&'static str] {
    let entries = program.launches.iter().flat_map(|launches| &launches.entries);
    let mut plans = entries.map(|entry| &entry.plan).chain([&program.plan]);
    match plans.any(|plan| plan.block.iter().any(|items| *items > 1)) {
        true => &["-fno-unswitch-loops", "-fno-thread-jumps"],
        false => &[],
    }
}

/// One thread has no other one to exclude from its updates: of OpenMP's directives it needs those
/// of lanes alone, and `omp atomic` would cost it a locked instruction an update (3-D P3 Laplace
/// action: 0.93 of FFCx's speed with, 1.13 without; GCC 12, Zen 4, 2026-11-22).
fn openmp(threads: usize) -> &'static str {
    if threads == 1 { "-fopenmp-simd" } else { "-fopenmp" }
}

/// What Clang does not know, or calls a mistake: answers to faults that are GCC's.
const OF_GCC: [&str; 6] = [
    "-fno-tree-vrp",
    "-fno-tree-loop-distribution",
    "--param=sccvn-max-alias-queries-per-access=50",
    "-fno-predictive-commoning",
    "-fno-unswitch-loops",
    "-fno-thread-jumps",
];

/// All options for a program.
fn options(program: &Program, optimisation: Optimisation, is_clang: bool) -> Vec<String> {
    let first = optimisation.options(Backend::C).iter().chain(&OPTIONS).copied();
    let by_program = commoning(program).into_iter().chain(conditions_on_lanes(program).iter().copied());
    let ours = first.chain(by_program).chain([openmp(threads())]).chain(program.contraction_option());
    let known = ours.filter(|option| !is_clang || !OF_GCC.contains(option));
    known.map(str::to_owned).chain(of_user(optimisation)).collect()
}

/// The words of `KINGPOST_CC_OPTIONS`, which come last, so that `-O2` there wins. They are left out where
/// little or nothing is to be optimised, which tells whose fault a wrong result is.
fn of_user(optimisation: Optimisation) -> Vec<String> {
    let is_asked = matches!(optimisation, Optimisation::Full | Optimisation::Defined);
    let words = std::env::var("KINGPOST_CC_OPTIONS").ok().filter(|_| is_asked);
    words.iter().flat_map(|words| words.split_whitespace()).map(str::to_owned).collect()
}

/// Names that are looked for when `CC` is not set.
const NAMES: [&str; 3] = ["cc", "gcc", "clang"];

/// A C compiler that answered.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    path: PathBuf,
    /// Words of `CC` after the first.
    arguments: Vec<String>,
    /// First line of `--version`.
    pub(crate) version: String,
}

/// A compiled shared object.
pub(crate) struct Object {
    pub(crate) code: Vec<u8>,
    pub(crate) origin: Origin,
}

impl Compiler {
    /// `$CC`, else `cc`, `gcc` or `clang` in the search path.
    pub(crate) fn find() -> Result<Self, Unavailable> {
        let cc = std::env::var("CC").unwrap_or_default();
        let mut words = cc.split_whitespace().map(str::to_owned);
        if let Some(first) = words.next() {
            let path =
                in_path(&first).ok_or(Unavailable::NoCompiler { searched: format!("`CC` = `{first}`") })?;
            return Self::at(path, words.collect());
        }
        let path = NAMES.iter().find_map(|name| in_path(name));
        let searched = format!("`{}` in `PATH`", NAMES.join("`, `"));
        Self::at(path.ok_or(Unavailable::NoCompiler { searched })?, Vec::new())
    }

    /// The compiler at `path`, asked for its version.
    pub(crate) fn at(path: PathBuf, arguments: Vec<String>) -> Result<Self, Unavailable> {
        let broken = |reason: String| Unavailable::BrokenCompiler { path: path.clone(), reason };
        let output = Command::new(&path)
            .args(&arguments)
            .arg("--version")
            .output()
            .map_err(|e| broken(e.to_string()))?;
        if !output.status.success() {
            return Err(broken(format!("`--version` ended with {}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap_or("unknown version").trim().to_owned();
        Ok(Self { path, arguments, version })
    }

    /// The shared object of `program`: compiled, or from `cache` unless it is to be `fresh`.
    pub(crate) fn object(
        &self,
        program: &Program,
        optimisation: Optimisation,
        arch: &str,
        cache: &Cache,
        fresh: bool,
    ) -> Result<Object, RuntimeError> {
        let options = options(program, optimisation, self.version.contains("clang"));
        let key = CacheKey::of(&[
            "c",
            &self.path.to_string_lossy(),
            &self.arguments.join(" "),
            &self.version,
            arch,
            &options.join(" "),
            &program.source,
        ]);
        if !fresh && let Some(code) = cache.load(&key, "so") {
            return Ok(Object { code, origin: Origin::Disk });
        }
        let dir = temporary_dir().map_err(RuntimeError::io("make a temporary directory"))?;
        let path = self.run(program, &options, dir.path())?;
        let code = std::fs::read(&path).map_err(RuntimeError::io("read the compiled object"))?;
        cache.store(&key, "so", &code);
        Ok(Object { code, origin: Origin::Built })
    }

    /// The compiler with the words of `CC`, to be told more.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        command
    }

    fn run(&self, program: &Program, options: &[String], dir: &Path) -> Result<PathBuf, RuntimeError> {
        let (source, object) = (dir.join("kernel.c"), dir.join("kernel.so"));
        std::fs::write(&source, &program.source).map_err(RuntimeError::io("write the C source"))?;
        let mut command = self.command();
        command.args(options).arg("-o").arg(&object).arg(&source).arg("-lm");
        let output = self.output(&mut command)?;
        if output.status.success() {
            return Ok(object);
        }
        // Paths of the temporary directory would differ from run to run.
        let log = String::from_utf8_lossy(&output.stderr).replace(&format!("{}/", dir.display()), "");
        Err(RuntimeError::compile(&program.entry, &self.version, &program.source, log))
    }
}

/// The first question whether a compiler has ended, and the longest pause between two.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

impl Compiler {
    /// What a run of it prints. One that may be interrupted is killed then.
    fn output(&self, command: &mut Command) -> Result<Output, RuntimeError> {
        let failed = || RuntimeError::io(format!("run `{}`", self.path.display()));
        if !is_watched() {
            return command.output().map_err(failed());
        }
        // files, because nobody reads a pipe meanwhile
        let mut printed = tempfile::tempfile().map_err(failed())?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(printed.try_clone().map_err(failed())?);
        #[cfg(unix)] // so that what it starts ends with it
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = command.spawn().map_err(failed())?;
        let [mut pause, longest] = PAUSES;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(failed())? {
                break status;
            }
            if let Err(stop) = check_interrupt() {
                end(&mut child).map_err(failed())?;
                return Err(stop);
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(longest);
        };
        let mut stderr = Vec::new();
        printed.rewind().and_then(|()| printed.read_to_end(&mut stderr)).map_err(failed())?;
        Ok(Output { status, stdout: Vec::new(), stderr })
    }
}

/// Ends a compiler and what it has started, which may remove its files before.
fn end(child: &mut Child) -> std::io::Result<()> {
    for signal in [TERMINATE, KILL] {
        #[cfg(unix)]
        if let Ok(group) = std::ffi::c_int::try_from(child.id()) {
            // SAFETY: it takes any numbers; the group is that of a child that nobody has waited for.
            let _ = unsafe { kill(-group, signal) }; // it may have ended meanwhile
        }
        for _ in 0..20 {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    child.kill()?;
    child.wait().map(drop)
}

/// `SIGTERM` of POSIX.
const TERMINATE: std::ffi::c_int = 15;

/// `SIGKILL` of POSIX.
const KILL: std::ffi::c_int = 9;

#[cfg(unix)]
unsafe extern "C" {
    /// Of POSIX; the C library that std links has it.
    fn kill(pid: std::ffi::c_int, signal: std::ffi::c_int) -> std::ffi::c_int;
}

/// The file that running `name` would start.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|p| p.is_file());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|p| p.is_file())
}
