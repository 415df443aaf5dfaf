//! Whose fault a wrong result is: the same kernel compiled in other ways.

use super::failure::Failure;
use kingpost::codegen::{Options, Program, generate};
use kingpost::files;
use kingpost::interp::Memory;
use kingpost::ir::Kernel;
use kingpost::runtime::cuda::nvrtc;
use kingpost::runtime::{Backend, Device, Optimisation};
use kingpost::{Loaded, laid_out};
use std::path::{Path, PathBuf};

/// Where a wrong result comes from, as far as other ways to compile the program tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It is right where each operation is rounded.
    Contraction,
    /// It is right without optimisation, and wrong with optimisation that relies on no promise of
    /// the source.
    Compiler,
    /// It is right where the compiler does not rely on `restrict`, types of pointers and overflow, and wrong
    /// where it does and optimises little.
    Promise,
    /// It is right either way: the source breaks a promise, or the optimiser is wrong where it has one. GCC 12
    /// threads jumps wrongly on such a condition.
    Either,
    /// It is wrong however it is compiled.
    Kingpost,
}

/// A program on a device that gave a wrong result.
pub struct Accused<'a> {
    pub device: &'a dyn Device,
    /// The kernel that the program is the code of.
    pub kernel: &'a Kernel,
    pub program: &'a Program,
    pub memory: &'a Memory,
}

impl Accused<'_> {
    /// Compiles and runs the program in other ways; `right` launches one and says whether its
    /// results are right.
    pub fn blame(&self, right: &dyn Fn(&Loaded<'_>) -> Result<bool, Failure>) -> Blame {
        // a way that cannot be compiled or run tells nothing
        let is_right = |program: &Program, optimisation| {
            let attempt = || -> Result<bool, Failure> {
                let executable = self.device.compile_as(program, optimisation)?;
                right(&Loaded::compiled(self.device, executable, &laid_out(self.kernel, self.memory))?)
            };
            attempt().ok()
        };
        if self.program.contraction {
            let options =
                Options::default().with_contraction(false).with_trust(self.program.untrusted.is_empty());
            let rounded = generate(self.kernel, self.program.target, &options);
            if rounded.is_ok_and(|p| is_right(&p, Optimisation::Full) == Some(true)) {
                return Blame::Contraction;
            }
        }
        match (is_right(self.program, Optimisation::Off), is_right(self.program, Optimisation::Defined)) {
            (_, Some(true)) if is_right(self.program, Optimisation::Light) == Some(true) => Blame::Either,
            (_, Some(true)) => Blame::Promise,
            (Some(true), Some(false)) => Blame::Compiler,
            (Some(true), None) | (Some(false) | None, _) => Blame::Kingpost,
        }
    }

    /// The verdict on a result that is off as `what` says; writes the source where that is of use.
    pub fn verdict(&self, blame: &Blame, what: &str, save_dir: Option<&Path>) -> Failure {
        let options = |way: Optimisation| way.options(self.device.info().backend).join(" ");
        let (off, light) = (options(Optimisation::Off), options(Optimisation::Light));
        match blame {
            Blame::Contraction => Failure::Refused(format!(
                "wrong result by contraction: {what}; compilers may round `a*b + c` once, and without that the result \
                 is right: add --no-contraction, or rewrite what one rounding decides"
            )),
            Blame::Compiler => {
                let (compiler, level) = self.compiler();
                let wrote = self.wrote(save_dir);
                Failure::Compiler(format!(
                    "wrong result of {compiler}, which miscompiles `{}`{level}: {what}; with {off} the same source is \
                     right; {wrote}, and try another compiler or recipe",
                    self.program.entry
                ))
            }
            Blame::Promise => Failure::Refused(format!(
                "wrong result: {what}; right where the compiler does not rely on `restrict` and signed overflow, and \
                 wrong where it does with {light}: rather a bug of kingpost, or arrays that overlap, than one of the \
                 compiler; please report it with the kernel and the recipe"
            )),
            Blame::Either => Failure::Refused(format!(
                "wrong result: {what}; right where {} does not rely on `restrict` and signed overflow, and right \
                 where it does with {light}: either the compiler's fault, or one of kingpost or arrays that overlap; \
                 {}, with the kernel and the recipe, and try another compiler",
                self.compiler().0,
                self.wrote(save_dir)
            )),
            Blame::Kingpost => Failure::Refused(format!(
                "wrong result: {what}; with {off} and without contraction, too: please report it with the kernel and \
                 the recipe"
            )),
        }
    }

    /// The compiler, and how it was told to optimise.
    fn compiler(&self) -> (String, &'static str) {
        let info = self.device.info();
        match info.backend {
            Backend::C => (format!("the C compiler ({})", info.driver), " at -O3"),
            Backend::OpenCl => (format!("the OpenCL compiler of {} ({})", info.name, info.driver), ""),
            Backend::Cuda => (nvrtc::version().unwrap_or_else(|_| "NVRTC".into()), ""),
        }
    }

    /// Writes the source, and says where it is.
    fn wrote(&self, save_dir: Option<&Path>) -> String {
        self.write_source(save_dir).map_or_else(|e| e, |path| format!("wrote {} to report", path.display()))
    }

    fn write_source(&self, save_dir: Option<&Path>) -> Result<PathBuf, String> {
        let dir = save_dir.map_or_else(|| std::env::temp_dir().join("kingpost-miscompiled"), Path::to_owned);
        let extension = match self.device.info().backend {
            Backend::C => "c",
            Backend::OpenCl => "cl",
            Backend::Cuda => "cu",
        };
        let path = dir.join(format!("{}.{extension}", self.program.entry));
        let written = std::fs::create_dir_all(&dir).and_then(|()| files::write(&path, &self.program.source));
        written
            .map(|()| path)
            .map_err(|e| format!("the source could not be written to `{}`: {e}", dir.display()))
    }
}
