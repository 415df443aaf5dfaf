//! What a kernel costs on the card: registers, spills, shared memory, as ptxas reports them.

use super::toolkit;
use crate::error::{RuntimeError, Unavailable};
use crate::host::in_path;
pub use crate::resources::Resources;
use std::path::PathBuf;
use std::process::Command;

/// Assembles `ptx` for `arch` (`sm_90`) with ptxas and reads its report, one entry a kernel.
///
/// # Errors
/// No ptxas, PTX it refuses (with its log), or a report without any kernel.
pub fn report(arch: &str, ptx: &str) -> Result<Vec<Resources>, RuntimeError> {
    let tool = find()?;
    let dir = tempfile::tempdir().map_err(RuntimeError::io("make a temporary directory"))?;
    let (input, output) = (dir.path().join("kernel.ptx"), dir.path().join("kernel.cubin"));
    std::fs::write(&input, ptx).map_err(RuntimeError::io("write the PTX"))?;
    let run = Command::new(&tool)
        .args(["-v", &format!("-arch={arch}"), "-o"])
        .arg(&output)
        .arg(&input)
        .output()
        .map_err(RuntimeError::io(format!("run `{}`", tool.display())))?;
    let log = String::from_utf8_lossy(&run.stderr).into_owned();
    if !run.status.success() {
        return Err(RuntimeError::Compile {
            entry: "PTX".into(),
            compiler: format!("ptxas for {arch}"),
            place: None,
            log,
        });
    }
    let found = parse(&log);
    if found.is_empty() {
        let missing = "registers of any kernel";
        return Err(RuntimeError::ToolOutput { tool: "ptxas".into(), missing, output: log });
    }
    Ok(found)
}

fn find() -> Result<PathBuf, Unavailable> {
    let found = toolkit::places().into_iter().find_map(|place| {
        let here = place.tools.iter().map(|d| d.join("ptxas")).find(|p| p.is_file());
        here.or_else(|| if place.system { in_path("ptxas") } else { None })
    });
    found.ok_or_else(|| Unavailable::NoPtxas { searched: toolkit::searched() })
}

/// The kernels of a `ptxas -v` log, in its order; lines of other kinds are passed over.
pub(crate) fn parse(log: &str) -> Vec<Resources> {
    let mut found: Vec<Resources> = Vec::new();
    // Functions that are not inlined have properties too; only those of the entry count.
    let mut in_entry = false;
    for line in log.lines() {
        if let Some(rest) = after(line, "Compiling entry function '") {
            let entry = rest.split('\'').next().unwrap_or_default().to_owned();
            found.push(Resources { entry, ..Resources::default() });
        }
        let Some(last) = found.last_mut() else { continue };
        if let Some(name) = after(line, "Function properties for ") {
            in_entry = name.trim() == last.entry;
        }
        if in_entry && line.contains("bytes stack frame") {
            last.stack_bytes = before(line, "bytes stack frame");
            last.spill_stores = before(line, "bytes spill stores");
            last.spill_loads = before(line, "bytes spill loads");
        }
        if line.contains("Used ") && line.contains(" registers") {
            last.registers = before(line, "registers");
            last.barriers = before(line, "barriers");
            last.shared_bytes = before(line, "bytes smem");
        }
    }
    found
}

fn after<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    line.find(marker).and_then(|at| line.get(at + marker.len()..))
}

/// The number before `marker`; 0 if there is none.
fn before(line: &str, marker: &str) -> u64 {
    let number = line.find(marker).and_then(|at| line.get(..at)?.split_whitespace().last()?.parse().ok());
    number.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two entries and a function that is not inlined, in the format of ptxas 13.0.
    const LOG: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
ptxas         .     800 bytes stack frame, 24 bytes spill stores, 36 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 800 bytes cumulative stack size, 256 bytes smem
ptxas info    : Compile time = 27.521 ms
ptxas info    : Compiling entry function 'second' for 'sm_90'
ptxas info    : Function properties for second
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Function properties for callee
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
";

    #[test]
    fn reads_each_entry_and_no_other_function() {
        let first = Resources {
            entry: "first".into(),
            registers: 255,
            spill_stores: 24,
            spill_loads: 36,
            stack_bytes: 800,
            shared_bytes: 256,
            dynamic_shared_bytes: None,
            barriers: 1,
        };
        let second = Resources { entry: "second".into(), registers: 8, ..Resources::default() };
        assert_eq!(parse(LOG), [first, second]);
        assert_eq!(parse("nothing of the kind"), []);
    }

    #[test]
    fn figures_are_named() {
        let mut both = parse(LOG);
        both[1].dynamic_shared_bytes = Some(65536);
        let texts: Vec<String> = both.iter().map(ToString::to_string).collect();
        let first =
            "255 registers, 24 B spilled and 36 B reloaded, 800 B of stack, 256 B static shared memory";
        let second = "8 registers, 0 B spilled, 0 B static and 65536 B dynamic shared memory";
        assert_eq!(texts, [first, second]);
    }
}
