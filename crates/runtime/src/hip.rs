//! HIP: machine code for AMD's processors by the clang of ROCm, or by Debian's; no card is needed.

use crate::cache::{Cache, CacheKey};
use crate::device::Origin;
use crate::error::{RuntimeError, Unavailable};
use crate::wheels::here_or_above;
use kingpost_codegen::Program;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What clang is told besides where HIP lies, the processor and contraction.
const OPTIONS: [&str; 8] = ["-x", "hip", "--cuda-device-only", "-std=c++17", "-O3", "-S", "-o", "-"];

/// HIP source compiled for one processor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HipObject {
    /// The processor, such as `gfx942`.
    pub arch: String,
    /// The compiler's first line about itself.
    pub compiler: String,
    /// The code.
    pub assembly: String,
    /// What each entry point takes, in the order of the code.
    pub resources: Vec<HipResources>,
    /// Whether the compiler ran or the cache answered.
    pub origin: Origin,
}

/// What an entry point takes of a compute unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HipResources {
    /// The entry point.
    pub entry: String,
    /// Vector registers of 32 bits of a work-item, with accumulators.
    pub vector_registers: u64,
    /// Accumulators among them.
    pub accumulators: u64,
    /// Scalar registers of 32 bits of a wavefront.
    pub scalar_registers: u64,
    /// Vector registers that are kept in memory.
    pub vector_spills: u64,
    /// Scalar registers that are kept elsewhere.
    pub scalar_spills: u64,
    /// Bytes of memory of a work-item: spills, and arrays that are indexed at run time.
    pub scratch_bytes: u64,
    /// Bytes of local memory (LDS) of a work-group.
    pub local_bytes: u64,
}

impl fmt::Display for HipResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vector_registers: all, accumulators, scalar_registers: scalar, .. } = self;
        let Self { vector_spills, scalar_spills, scratch_bytes, local_bytes, .. } = self;
        write!(f, "{all} VGPR of which {accumulators} AGPR, {scalar} SGPR, ")?;
        write!(f, "{vector_spills} VGPR and {scalar_spills} SGPR spilled, ")?;
        write!(f, "{scratch_bytes} B of scratch, {local_bytes} B of LDS")
    }
}

/// Where HIP lies, and its compiler's first line about itself.
struct Compiler {
    root: PathBuf,
    version: String,
}

/// Where it is looked for.
const SEARCHED: &str = "`ROCM_PATH`, `/opt/rocm`, `target/amd`";

/// `ROCM_PATH`, `/opt/rocm`, and what `scripts/amd-compiler.sh` makes, here or above, as far as
/// there are such.
fn roots() -> impl Iterator<Item = PathBuf> {
    let given = std::env::var_os("ROCM_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
    given.into_iter().chain([PathBuf::from("/opt/rocm")]).chain(here_or_above("target/amd"))
}

fn clang(root: &Path) -> PathBuf {
    root.join("llvm/bin/clang")
}

fn find() -> Result<Compiler, Unavailable> {
    let answers = |root: &Path| {
        let output = Command::new(clang(root)).arg("--version").output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(text.lines().next()?.trim().to_owned())
    };
    let found = roots().find_map(|root| Some(Compiler { version: answers(&root)?, root }));
    found.ok_or_else(|| Unavailable::NoHipCompiler { searched: SEARCHED.into() })
}

/// The first line about itself of the compiler found here.
///
/// # Errors
/// There is none; the message says how to get it.
pub fn version() -> Result<String, Unavailable> {
    Ok(find()?.version)
}

/// Compiles a program for `arch` (`gfx942`) as it says of contraction, without a card.
///
/// # Errors
/// No compiler, or a source or processor it refuses (with its log).
pub fn compile_program(arch: &str, program: &Program, cache: &Cache) -> Result<HipObject, RuntimeError> {
    let Compiler { root, version } = find()?;
    let (name, source) = (&program.entry, &program.source);
    let mut command = Command::new(clang(&root));
    command.arg(format!("--rocm-path={}", root.display())).arg(format!("--offload-arch={arch}"));
    command.args(OPTIONS).args(program.contraction_option()).arg("-");
    let options = format!("{command:?}");
    let key = CacheKey::of(&["hip", &version, &options, source]);
    let object = |assembly: String, origin| {
        let resources = parse(&assembly).map_err(|line| {
            let log = format!("the metadata of its code has no number in `{line}`");
            RuntimeError::compile(name, format!("{version} for {arch}"), source, log)
        })?;
        Ok(HipObject { arch: arch.to_owned(), compiler: version.clone(), assembly, resources, origin })
    };
    if let Some(kept) = cache.load(&key, "s").and_then(|bytes| String::from_utf8(bytes).ok()) {
        return object(kept, Origin::Disk);
    }
    let run = RuntimeError::io(format!("run `{}`", clang(&root).display()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.spawn().and_then(|mut child| {
        // it reads all of its input before it writes
        let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(source.as_bytes()));
        let output = child.wait_with_output()?;
        written.map(|()| output)
    });
    let output = output.map_err(run)?;
    if !output.status.success() {
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(RuntimeError::compile(name, format!("{version} for {arch}"), source, log));
    }
    cache.store(&key, "s", &output.stdout);
    object(String::from_utf8_lossy(&output.stdout).into_owned(), Origin::Built)
}

/// The kernels of the metadata at the end of the code, or a line of it that should have a number.
fn parse(assembly: &str) -> Result<Vec<HipResources>, String> {
    let mut found: Vec<HipResources> = Vec::new();
    let metadata = assembly.lines().skip_while(|line| *line != "amdhsa.kernels:").skip(1);
    for line in metadata.take_while(|line| line.starts_with(' ')) {
        let field = match line.strip_prefix("  - ") {
            Some(first) => {
                found.push(HipResources::default());
                first
            }
            // fields of others are further in or out
            None => match line.strip_prefix("    ") {
                Some(field) => field,
                None => continue,
            },
        };
        let (Some(last), Some((field, value))) = (found.last_mut(), field.split_once(':')) else { continue };
        let value = value.trim();
        let number = || value.parse().map_err(|_| line.trim().to_owned());
        match field {
            ".name" => last.entry = value.to_owned(),
            ".vgpr_count" => last.vector_registers = number()?,
            ".agpr_count" => last.accumulators = number()?,
            ".sgpr_count" => last.scalar_registers = number()?,
            ".vgpr_spill_count" => last.vector_spills = number()?,
            ".sgpr_spill_count" => last.scalar_spills = number()?,
            ".private_segment_fixed_size" => last.scratch_bytes = number()?,
            ".group_segment_fixed_size" => last.local_bytes = number()?,
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of an assembly of clang 19, of two kernels.
    const METADATA: &str = "\
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     8
    .args:
      - .address_space:  global
        .name:           x
        .offset:         0
    .group_segment_fixed_size: 512
    .name:           first
    .private_segment_fixed_size: 24
    .sgpr_count:     16
    .sgpr_spill_count: 2
    .vgpr_count:     128
    .vgpr_spill_count: 6
  - .agpr_count:     0
    .name:           second
    .vgpr_count:     3
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
amdhsa.version:
  - 1
  - 2
...
";

    #[test]
    fn reads_each_kernel() {
        let first = HipResources {
            entry: "first".into(),
            vector_registers: 128,
            accumulators: 8,
            scalar_registers: 16,
            vector_spills: 6,
            scalar_spills: 2,
            scratch_bytes: 24,
            local_bytes: 512,
        };
        let second = HipResources { entry: "second".into(), vector_registers: 3, ..HipResources::default() };
        let printed =
            "128 VGPR of which 8 AGPR, 16 SGPR, 6 VGPR and 2 SGPR spilled, 24 B of scratch, 512 B of LDS";
        assert_eq!(first.to_string(), printed);
        assert_eq!(parse(METADATA), Ok(vec![first, second]));
        assert_eq!(parse("nothing of the kind"), Ok(vec![]));
        let broken = METADATA.replace(".vgpr_count:     3", ".vgpr_count:     none");
        assert_eq!(parse(&broken), Err(".vgpr_count:     none".into()));
    }
}
