//! `kingpost steps`: the kernel after each step of a recipe.

use super::failure::Failure;
use super::out;
use super::print::kernel_text;
use super::source::SourceArgs;
use super::stats::bank_line;
use super::step_times::{StepTimes, TimeArgs};
use super::transform::TransformArgs;
use clap::Args;
use kingpost::ir::Kernel;
use kingpost::transforms::{Recipe, RecipeError, Step};
use similar::{ChangeTag, TextDiff};
use std::collections::BTreeMap;

/// Print a kernel after each step of a recipe or strategy
///
/// Where a step is refused, the kernel it met is the last one printed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost steps laplace --degree 1               what the single-cell strategy does
  kingpost steps laplace --degree 1 --diff        only the lines that change
  kingpost steps my.kingpost --recipe mine.json     your own steps on your own kernel
  kingpost steps my.kingpost --recipe mine.json --time --device c --param n=1000
                                                and what each gains: every kernel is compared
                                                and timed

Before loops are tagged parallel, a card runs a kernel by one work-item: take few cells, or small
parameters.")]
pub struct StepsArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// Print the lines that a step removed and added, instead of the whole kernel
    #[arg(long)]
    diff: bool,
    #[command(flatten)]
    time: TimeArgs,
}

/// Runs the command.
pub fn run(args: &StepsArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    let lowered = source.lower()?;
    let (form, recipe, behind) = args.transform.recipe(&source, lowered)?;
    let kernel = form.kernel();
    let total = recipe.steps.len();
    let mut params = args.time.given()?;
    let fixed = recipe.fixed_params(&params);
    params.extend(fixed.clone());
    let (trace, refusal) = follow(&recipe, kernel);
    let mut times = args.time.time.then(|| StepTimes::new(&args.time, fixed, &source, &*form)).transpose()?;
    let (mut before, mut met) = (kernel_text(kernel, true), kernel);
    let lowering = recipe.lowering.iter().map(|lowering| format!(", of the form lowered with {lowering}"));
    let lowering: String = lowering.collect();
    let mut text =
        format!("# the kernel before any step{lowering}\n{}\n{before}", start(&mut times, kernel)?);
    for decision in args.transform.decisions(&*form)? {
        text += &format!("\n# {decision}\n");
    }
    for (number, (step, result)) in trace.iter().enumerate() {
        let after = kernel_text(result, true);
        let shown = if args.diff { line_diff(&before, &after) } else { after.clone() };
        let banks = conflicts(&params, result);
        let time = timed(&mut times, &recipe.steps[..=number], result)?;
        let laws: String = step.relies_on(met, result).iter().map(|laws| format!("# {laws}\n")).collect();
        text += &format!("\n# step {} of {total}: {step}\n{laws}{banks}{time}\n{shown}", number + 1);
        (before, met) = (after, result);
    }
    if let Some(RecipeError { number, step, .. }) = &refusal {
        text += &format!("\n# step {number} of {total} is refused: {step}\n");
        text += &match args.diff && *number > 1 {
            true => format!("# it met this kernel\n\n{before}"),
            false => "# it met the kernel above\n".into(),
        };
    }
    if refusal.is_none() && behind.is_some() {
        text += "\n# the next step is refused: it met the kernel above\n";
    }
    out(&text)?;
    refusal.map(Failure::from).or(behind.map(Failure::from)).map_or(Ok(()), Err)
}

/// Where kernels are timed, and the time of the first, as lines of comments.
fn start(times: &mut Option<StepTimes>, kernel: &Kernel) -> Result<String, Failure> {
    let device = times.as_ref().map_or_else(String::new, |times| format!("# on {}\n", times.device()));
    Ok(device + &timed(times, &[], kernel)?)
}

/// The time of a kernel as a line of a comment; nothing where none is asked for.
fn timed(times: &mut Option<StepTimes>, steps: &[Step], kernel: &Kernel) -> Result<String, Failure> {
    let line = times.as_mut().map(|times| times.line(steps, kernel)).transpose()?;
    Ok(line.map_or_else(String::new, |line| format!("# {line}\n")))
}

/// The conflicts over banks of a kernel as a line of a comment; nothing without parameters.
fn conflicts(params: &BTreeMap<String, i64>, kernel: &Kernel) -> String {
    let line = if params.is_empty() { None } else { bank_line(kernel, params) };
    line.map_or_else(String::new, |line| format!("# {line}\n"))
}

/// The steps as far as they go, and what stopped them.
pub fn follow(recipe: &Recipe, kernel: &Kernel) -> (Vec<(Step, Kernel)>, Option<RecipeError>) {
    let Recipe { lowering, steps } = recipe;
    let mut trace: Vec<(Step, Kernel)> = Vec::new();
    for (k, step) in steps.iter().enumerate() {
        let met = trace.last().map_or(kernel, |(_, result)| result);
        match step.apply(met) {
            Ok(result) => trace.push((step.clone(), result)),
            Err(source) => {
                let kernel = Box::new(met.clone());
                let (number, total) = (k + 1, steps.len());
                let (step, source) = (Box::new(step.clone()), Box::new(source));
                let lowering = lowering.clone();
                return (trace, Some(RecipeError { lowering, number, total, step, kernel, source }));
            }
        }
    }
    (trace, None)
}

/// Lines of `before` and `after` that differ, marked `-` and `+`, in order.
#[must_use]
pub fn line_diff(before: &str, after: &str) -> String {
    let diff = TextDiff::from_lines(before, after);
    let changed = diff.iter_all_changes().filter(|change| change.tag() != ChangeTag::Equal);
    changed.map(|change| format!("{} {change}", change.tag())).collect()
}

#[cfg(test)]
mod tests {
    use super::line_diff;

    #[test]
    fn only_what_differs_is_shown() {
        assert_eq!(line_diff("a\nb\nc\n", "a\nx\nc\nd\n"), "- b\n+ x\n+ d\n");
        assert_eq!(line_diff("a\n", "a\n"), "");
    }
}
