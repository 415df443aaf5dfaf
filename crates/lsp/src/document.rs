//! A text with its kernels, and what its schedules make of them.

use crate::position::Lines;
use crate::problem::{Problem, Statements};
use kingpost_analysis::Analysis;
use kingpost_ir::Kernel;
use kingpost_ir::text::{parse_with_statements, sections};
use kingpost_primitives::primitive::kept;
use kingpost_primitives::schedule::{AppliedStep, ScriptProblem, heading};
use kingpost_primitives::{Script, StepSet};
use std::ops::Range;

/// A text that is open.
pub struct Document {
    pub text: String,
    pub lines: Lines,
    pub sections: Vec<Section>,
    pub problems: Vec<Problem>,
    pub steps: StepSet,
}

/// A kernel of a text, and its schedule.
pub struct Section {
    /// Its place, with the schedule.
    pub span: Range<usize>,
    /// Where the steps of its schedule start.
    pub schedule: Option<usize>,
    /// Nothing if it has mistakes.
    pub kernel: Option<Kernel>,
    pub statements: Statements,
    /// The steps that are legal.
    pub applied: Vec<AppliedStep>,
}

impl Document {
    pub fn new(text: String, steps: &StepSet) -> Self {
        let lines = Lines::of(&text);
        let mut problems = Vec::new();
        let mut start = 0;
        let mut parts: Vec<String> = sections(&text).into_iter().map(|(_, part)| part).collect();
        if parts.is_empty() {
            parts.push(text.clone()); // for what is wrong with it
        }
        let mut sections = Vec::new();
        for part in &parts {
            let span = start..part.len();
            start = span.end;
            sections.push(Section::new(part, span, steps, &mut problems));
        }
        Self { text, lines, sections, problems, steps: steps.clone() }
    }

    /// The section around a byte.
    pub fn section(&self, at: usize) -> Option<&Section> {
        let end = self.sections.iter().position(|section| at < section.span.end);
        end.map_or_else(|| self.sections.last(), |k| self.sections.get(k))
    }
}

impl Section {
    fn new(text: &str, span: Range<usize>, steps: &StepSet, problems: &mut Vec<Problem>) -> Self {
        let heading = heading(text);
        let end = heading.map_or(text.len(), |(end, _)| end);
        let schedule = heading.map(|(_, start)| start);
        let (kernel, statements) = match parse_with_statements(&text[..end]) {
            Ok((kernel, statements)) => (Some(kernel), statements),
            Err(errors) => {
                problems.extend(errors.errors().iter().map(Problem::parsed));
                (None, Statements::new())
            }
        };
        let mut section = Self { span, schedule, kernel, statements, applied: Vec::new() };
        if let Some(kernel) = &section.kernel {
            problems.extend(checked(kernel, &section.statements));
        }
        let script = schedule.map(|start| Script::parse_in(steps, text, start));
        match (script, &section.kernel) {
            (Some(Err(errors)), _) => problems.extend(errors.errors().iter().map(Problem::parsed)),
            (Some(Ok(script)), Some(kernel)) => {
                let (applied, problem) = traced(&script, kernel, &section.statements);
                section.applied = applied;
                problems.extend(problem);
            }
            (Some(Ok(_)) | None, _) => {}
        }
        section
    }

    /// The kernel that the step after a byte meets, and the handles up to there.
    pub fn before(&self, at: usize) -> (Option<&Kernel>, &[AppliedStep]) {
        let before = &self.applied[..self.applied.partition_point(|step| step.span.end <= at)];
        (before.last().map(|step| &step.kernel).or(self.kernel.as_ref()), before)
    }

    /// What a word stands for at a byte of the schedule: the name in the kernel.
    pub fn meaning<'w>(&'w self, word: &'w str, at: usize) -> &'w str {
        let before = self.applied.iter().take_while(|step| step.span.start <= at);
        let handles = before.flat_map(|step| &step.handles);
        handles.filter(|(name, ..)| name == word).last().map_or(word, |(_, _, thing)| thing)
    }
}

/// What is wrong with a kernel as it is written, besides its text.
fn checked(kernel: &Kernel, statements: &Statements) -> Vec<Problem> {
    let analysis = Analysis::of(kernel);
    let mut problems = Vec::new();
    if let Err(refusal) = kept(&analysis) {
        problems.push(Problem::refused(None, refusal.to_string(), &refusal, statements));
    }
    if let Some(outside) = analysis.first_outside() {
        let place = statements.get(&outside.instance.insn).cloned();
        problems.push(Problem::new(place.unwrap_or(0..0), outside.to_string())); // default: of a statement of a callee
    }
    problems
}

/// The steps of a script that are legal, and what is wrong with the next one. Holes have their first values.
fn traced(script: &Script, kernel: &Kernel, statements: &Statements) -> (Vec<AppliedStep>, Option<Problem>) {
    let Some(choice) = script.choices().next() else {
        let problem = "no values of the holes satisfy what the schedule requires".to_owned();
        return (Vec::new(), script.places().next().map(|first| Problem::new(first, problem)));
    };
    let (applied, result) = script.trace(kernel, &choice);
    let problem = result.err().map(|error| {
        let place = script.places().nth(applied.len());
        match &error.problem {
            ScriptProblem::Refused(refused) => {
                Problem::refused(place, refused.to_string(), &refused.cause, statements)
            }
            ScriptProblem::Hole { .. } | ScriptProblem::Choice { .. } | ScriptProblem::Handles { .. } => {
                Problem::new(place.unwrap_or(0..0), error.problem.to_string()) // default: there is a step, or nothing is wrong
            }
        }
    });
    (applied, problem)
}
