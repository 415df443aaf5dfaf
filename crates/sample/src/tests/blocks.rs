//! Blocks of an `if` around parts of random kernels: they mean what instructions mean that each ask a flag,
//! which has the condition before the block.

use crate::{SampleConfig, arbitrary_kernel, config};
use kingpost_interp::{Memory, interpret};
use kingpost_ir::expr::{BinaryOp, Expr, UnaryOp};
use kingpost_ir::text::parse;
use kingpost_ir::{Kernel, ScalarType, verify};
use proptest::prelude::*;
use std::cell::Cell;

/// Lines of a block: `[start, end)` of the text, whose first line has the indentation of all.
type Part = (usize, usize);

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The statement that starts at a line, with what is inside; none if the line is no statement.
fn statement(lines: &[&str], start: usize) -> Option<Part> {
    let line = lines.get(start)?;
    let is_loop = line.trim_start().starts_with("for ");
    let is_insn = line
        .trim_start()
        .split_once(": ")
        .is_some_and(|(name, _)| verify::is_identifier(name.trim_matches('`')));
    if !is_loop && !is_insn {
        return None;
    }
    let inner = lines[start + 1..].iter().take_while(|l| !l.is_empty() && indent(l) > indent(line)).count();
    Some((start, start + 1 + inner))
}

/// As many statements of one block as follow each other, at most `most`.
fn run(lines: &[&str], start: usize, most: usize) -> Option<Part> {
    let (_, mut end) = statement(lines, start)?;
    for _ in 1..most {
        match statement(lines, end) {
            Some((_, next)) if indent(lines[end]) == indent(lines[start]) => end = next,
            Some(_) | None => break,
        }
    }
    Some((start, end))
}

/// Conditions that may stand anywhere: on what the lines write, if they write an output, and likely to change
/// with it.
fn conditions(kernel: &Kernel, lines: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for var in kernel.vars.values().filter(|v| v.is_output() && v.ty == ScalarType::F64) {
        let index = vec!["0"; var.shape.len()].join(", ");
        let element = if var.shape.is_empty() { var.name.clone() } else { format!("{}[{index}]", var.name) };
        let is_written =
            |line: &&&str| line.split_once(": ").is_some_and(|(_, rest)| rest.starts_with(&var.name));
        if lines.iter().any(|line| is_written(&line)) {
            found.push(format!("0.0 < sin(1000.0*{element})"));
            found.push(format!("sin(1000.0*{element}) < 0.0"));
        }
    }
    if found.is_empty() { vec!["n < m".to_owned(), "2 < n".to_owned()] } else { found }
}

/// The text with an `if` around some lines, and an `else` around others that follow.
fn with_blocks(lines: &[&str], (start, end): Part, other: Option<Part>, condition: &str) -> String {
    let blanks = " ".repeat(indent(lines[start]));
    let mut text: Vec<String> = lines[..start].iter().map(ToString::to_string).collect();
    let inside = |part: Part| lines[part.0..part.1].iter().map(|line| format!("  {line}"));
    text.push(format!("{blanks}if {condition}"));
    text.extend(inside((start, end)));
    if let Some(part) = other {
        text.push(format!("{blanks}else"));
        text.extend(inside(part));
    }
    text.extend(lines[other.map_or(end, |(_, end)| end)..].iter().map(ToString::to_string));
    text.join("\n")
}

/// The same by a flag.
fn with_flag(lines: &[&str], (start, end): Part, other: Option<Part>, condition: &str) -> Option<Kernel> {
    let blanks = " ".repeat(indent(lines[start]));
    let mut text: Vec<String> = lines[..start].iter().map(ToString::to_string).collect();
    text.push(format!("{blanks}flag_of_test: condition_of_test = {condition}"));
    text.extend(lines[start..].iter().map(ToString::to_string));
    let text = text.join("\n").replacen("\n\n", "\n\ntemp condition_of_test: bool\n", 1);
    let mut kernel = parse(&text).ok()?;
    let flag = Expr::scalar(kernel.var("condition_of_test")?);
    let mut guard = |part: Part, value: &Expr| {
        for line in &lines[part.0..part.1] {
            let name = line.trim_start().split_once(": ").map_or("", |(name, _)| name.trim_matches('`'));
            if let Some(insn) = kernel.insn(name) {
                let predicate = &mut kernel.insns[insn].predicate;
                *predicate = Some(match predicate.take() {
                    Some(own) => Expr::binary(BinaryOp::And, value.clone(), own),
                    None => value.clone(),
                });
            }
        }
    };
    guard((start, end), &flag);
    if let Some(part) = other {
        guard(part, &Expr::Unary(UnaryOp::Not, Box::new(flag.clone())));
    }
    kernel.verify().ok()?;
    Some(kernel.canonical())
}

fn result(kernel: &Kernel, memory: &Memory) -> Result<Memory, String> {
    let mut memory = memory.clone();
    interpret(kernel, &mut memory).map_err(|error| error.to_string())?;
    Ok(memory)
}

#[test]
fn blocks_mean_what_a_flag_means() {
    let (compared, flags) = (Cell::new(0), Cell::new(0));
    let strategy = (arbitrary_kernel(SampleConfig::default()), any::<[u8; 4]>());
    let mut runner = proptest::test_runner::TestRunner::new(config(768));
    let ran = runner.run(&strategy, |(sample, [at, length, rest, which])| {
        let text = sample.kernel.to_string();
        let lines: Vec<&str> = text.lines().collect();
        let starts: Vec<usize> = (0..lines.len()).filter(|k| statement(&lines, *k).is_some()).collect();
        let Some(start) = starts.get(usize::from(at) % starts.len().max(1)) else { return Ok(()) };
        let Some(part) = run(&lines, *start, usize::from(length) % 4 + 1) else { return Ok(()) };
        let other = run(&lines, part.1, usize::from(rest) % 3 + 1)
            .filter(|(start, _)| rest % 2 == 0 && indent(lines[*start]) == indent(lines[part.0]));
        let conditions = conditions(&sample.kernel, &lines[part.0..part.1]);
        let condition = &conditions[usize::from(which) % conditions.len()];
        let blocks = with_blocks(&lines, part, other, condition);
        // a name may be that of a parameter that this one lacks
        let (Ok(found), Some(expected)) = (parse(&blocks), with_flag(&lines, part, other, condition)) else {
            return Ok(());
        };
        flags.set(flags.get() + usize::from(found.vars.len() > sample.kernel.vars.len()));
        // a bound under the flag may be undefined
        let Ok(expected) = result(&expected, &sample.memory) else { return Ok(()) };
        let found = result(&found, &sample.memory)
            .map_err(|error| TestCaseError::fail(format!("{error}\n{blocks}")))?;
        for (name, value) in expected.values() {
            let same =
                found.values().get(name).is_some_and(|other| format!("{other:?}") == format!("{value:?}"));
            prop_assert!(same, "{name} of\n{}", blocks);
        }
        compared.set(compared.get() + 1);
        Ok(())
    });
    ran.expect("blocks mean what a flag means");
    assert!(compared.get() > 100 && flags.get() > 20, "{compared:?} compared, {flags:?} with flags");
}
