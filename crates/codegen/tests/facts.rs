//! The facts of code generation: `facts/TOPIC/*.txt`.
//!
//! | question | answer |
//! |---|---|
//! | `cuda`, `opencl`, `c` | the source for the target, or `refused: ` and the message |
//! | `launch` and a target | the grid, the block, local memory and features |
//! | `notes` and a target | what a reader of the code would not expect, a line each |
//! | `after PASS` and a target | the code after a pass, where it is other than after the one before |
//!
//! A line `# n = 0, 1; m = 3` of a fact's comment has the sizes at which its sources run
//! (`crates/runtime/tests`).
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

use kingpost_codegen::{Options, Pass, PlacedKernel, Program, Target, generate, passes};
use kingpost_facts::{Answers, Fact};
use kingpost_ir::Kernel;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    kingpost_facts::main(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/facts")), answer)
}

fn answer(fact: &Fact) -> Result<Answers, String> {
    let text = &fact.kernel.text;
    let kernel = kingpost_ir::text::parse(text).map_err(|e| e.render(text))?;
    let mut found = Answers { kernel: Some(kernel.to_string()), answers: Vec::new() };
    for question in &fact.questions {
        let (what, target) = question.text.rsplit_once(' ').unwrap_or(("source", &question.text));
        let target = target_named(target)?;
        if let Some(pass) = what.strip_prefix("after ") {
            found.answers.push(after(&kernel, target, pass)?);
            continue;
        }
        found.answers.push(match (what, program(&kernel, target)) {
            (_, Err(message)) => format!("refused: {message}"),
            ("source", Ok(program)) => program.source,
            ("launch", Ok(program)) => launch(&program),
            ("notes", Ok(program)) => notes(&program),
            (other, Ok(_)) => return Err(format!("`{other}` is no question")),
        });
    }
    Ok(found)
}

fn target_named(name: &str) -> Result<Target, String> {
    Target::named(name).ok_or_else(|| format!("`{name}` is no target"))
}

/// The program, the same when it is generated again.
fn program(kernel: &Kernel, target: Target) -> Result<Program, String> {
    let program = generate(kernel, target, &Options::default()).map_err(|e| e.to_string());
    let again = generate(kernel, target, &Options::default()).map_err(|e| e.to_string());
    assert_eq!(program, again, "two runs must give the same bytes");
    program
}

/// The code after a pass, or that it is the same as before.
fn after(kernel: &Kernel, target: Target, name: &str) -> Result<String, String> {
    let at = passes().iter().position(|p| p.name == name).ok_or_else(|| format!("`{name}` is no pass"))?;
    let placed = PlacedKernel::new(kernel).map_err(|e| e.to_string())?;
    let code =
        |pass: &Pass| placed.source_after(target, &Options::default(), pass).map_err(|e| e.to_string());
    let code_after = code(&passes()[at])?;
    let same = at > 0 && code(&passes()[at - 1])? == code_after;
    Ok(if same { "unchanged".to_owned() } else { code_after })
}

fn notes(program: &Program) -> String {
    let lines: Vec<String> = program.plan.notes.iter().map(ToString::to_string).collect();
    if lines.is_empty() { "none".into() } else { lines.join("\n") }
}

fn launch(program: &Program) -> String {
    let plan = &program.plan;
    let [gx, gy, gz] = &plan.grid;
    let memory = format!("local {} bytes, {:?}", plan.local_bytes, plan.features);
    format!("grid {gx}, {gy}, {gz}\nblock {:?}\n{memory}", plan.block)
}
