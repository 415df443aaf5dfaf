//! `kingpost diff`: what two recipes do differently.

use super::failure::Failure;
use super::out;
use super::print::kernel_text;
use super::source::FormOptions;
use super::steps::follow;
use super::transform::read_recipe;
use clap::Args;
use kingpost::ir::Kernel;
use kingpost::transforms::{Recipe, RecipeError, Step};
use similar::{Algorithm, DiffOp, TextDiff, capture_diff_slices};
use std::path::PathBuf;

/// Compare two recipes: steps that were removed, added or changed
///
/// With a kernel: after which step the kernels part, and what is different at the end.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost diff mine.json yours.json                       the steps alone
  kingpost diff mine.json yours.json --kernel laplace      what they make of a form
  kingpost diff mine.json yours.json --kernel my.kingpost    what they make of a loop program")]
pub struct DiffArgs {
    /// A recipe: a file with JSON, or with the text of a schedule
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The recipe it is compared with
    #[arg(value_name = "B")]
    second: PathBuf,
    /// A form by name, or a .kingpost file, to apply both recipes to
    #[arg(long, value_name = "WHAT")]
    kernel: Option<String>,
    #[command(flatten)]
    options: FormOptions,
}

/// Runs the command.
pub fn run(args: &DiffArgs) -> Result<(), Failure> {
    let source = args.kernel.as_ref().map(|what| args.options.source(what)).transpose()?;
    let named = source.map(|source| source.lower().map(|form| (source, form))).transpose()?;
    let read = |path| read_recipe(path, named.as_ref().map(|(source, form)| (source, &**form as _)));
    let ((first, one), (second, other)) = (read(&args.first)?, read(&args.second)?);
    let names = [args.first.display().to_string(), args.second.display().to_string()];
    let mut text = steps_diff(&first, &second);
    let (Some(one), Some(other)) = (one, other) else { return out(&text) };
    let (first, second) = (Trace::of(&first, &one), Trace::of(&second, &other));
    text += &kernels_diff(&first, &second, &names);
    out(&text)?;
    match [first.refusal, second.refusal].into_iter().flatten().next() {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// The steps of both recipes, those of one only marked `-` or `+`, those with other arguments `~`.
fn steps_diff(first: &Recipe, second: &Recipe) -> String {
    if first == second {
        return format!("the same {} steps\n", first.steps.len());
    }
    let (a, b) = (lines(first), lines(second));
    let mut text = lowering_diff(first, second);
    let mut counts = [0_usize; 3]; // removed, added, changed
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        if let DiffOp::Equal { old_index, len, .. } = op {
            for (k, step) in first.steps.iter().enumerate().skip(old_index).take(len) {
                text += &format!("  {}. {step}\n", k + 1);
            }
            continue;
        }
        let numbered = |steps: &[Step], range: std::ops::Range<usize>| -> Vec<(usize, Step)> {
            steps.iter().cloned().enumerate().skip(range.start).take(range.len()).collect()
        };
        let mut added = numbered(&second.steps, op.new_range());
        for (k, old) in numbered(&first.steps, op.old_range()) {
            match added.iter().position(|(_, new)| same_primitive(&old, new)) {
                Some(found) => {
                    // what comes before the step it has become was added
                    for (n, new) in added.drain(..found) {
                        text += &format!("+ {}. {new}\n", n + 1);
                        counts[1] += 1;
                    }
                    let (n, new) = added.remove(0);
                    text += &format!("~ {}. {old}\n  {}. {new}\n", k + 1, n + 1);
                    counts[2] += 1;
                }
                None => {
                    text += &format!("- {}. {old}\n", k + 1);
                    counts[0] += 1;
                }
            }
        }
        for (n, new) in added {
            text += &format!("+ {}. {new}\n", n + 1);
            counts[1] += 1;
        }
    }
    let [removed, added, changed] = counts;
    text + &format!("\n{removed} removed, {added} added, {changed} changed\n")
}

/// What the form is lowered with for both, and for one only marked `-` or `+`.
fn lowering_diff(first: &Recipe, second: &Recipe) -> String {
    let marked = |mark: &str, recipe: &Recipe| -> String {
        recipe.lowering.iter().map(|lowering| format!("{mark} lowering {lowering}\n")).collect()
    };
    match first.lowering == second.lowering {
        true => marked(" ", first),
        false => marked("-", first) + &marked("+", second),
    }
}

/// Each step with all its arguments, also those that its name leaves out.
fn lines(recipe: &Recipe) -> Vec<String> {
    recipe.steps.iter().map(|step| serde_json::to_string(step).unwrap_or_else(|_| step.to_string())).collect()
}

fn same_primitive(a: &Step, b: &Step) -> bool {
    a.name() == b.name()
}

/// What a recipe makes of a kernel, as far as it goes.
struct Trace {
    /// Names of the steps that were applied.
    steps: Vec<String>,
    /// The kernel before any step, and after each one.
    kernels: Vec<Kernel>,
    refusal: Option<RecipeError>,
}

impl Trace {
    fn of(recipe: &Recipe, kernel: &Kernel) -> Self {
        let (trace, refusal) = follow(recipe, kernel);
        let steps = trace.iter().map(|(step, _)| step.to_string()).collect();
        let kernels = std::iter::once(kernel.clone()).chain(trace.into_iter().map(|(_, k)| k)).collect();
        Self { steps, kernels, refusal }
    }

    /// What it did at a step, counted from 1.
    fn at(&self, number: usize) -> String {
        if number == 0 {
            return "the kernel it starts from".into();
        }
        match (self.steps.get(number - 1), &self.refusal) {
            (Some(step), _) => step.clone(),
            (None, Some(error)) if error.number == number => format!("refused: {}", error.source),
            (None, _) => "nothing, it has ended".into(),
        }
    }

    fn last(&self) -> &Kernel {
        &self.kernels[self.kernels.len() - 1] // never empty: the kernel before any step
    }
}

/// After which step the kernels part, and how they differ there and at the end.
fn kernels_diff(first: &Trace, second: &Trace, names: &[String; 2]) -> String {
    let both = first.kernels.iter().zip(&second.kernels);
    let common = both.take_while(|(a, b)| a == b).count();
    let (longest, same) = (first.kernels.len().max(second.kernels.len()), first.last() == second.last());
    if common == longest {
        return format!("\nthe kernels are the same after each of {} steps\n", longest - 1);
    }
    let [a, b] = [(first, &names[0]), (second, &names[1])];
    let mut text = match common {
        0 => "\nthe kernels differ before any step\n".to_owned(),
        common => format!("\nthe kernels part at step {common}\n"),
    };
    for (trace, name) in [a, b] {
        text += &format!("  {name}: {}\n", trace.at(common));
    }
    let here = |trace: &Trace| kernel_text(trace.kernels.get(common).unwrap_or_else(|| trace.last()), true);
    text += &unified(&here(first), &here(second), names);
    let at_the_end = first.kernels.len() <= common + 1 && second.kernels.len() <= common + 1;
    if same {
        text += "\nat the end they are the same again\n";
    } else if !at_the_end {
        text += "\nat the end\n";
        text += &unified(&kernel_text(first.last(), true), &kernel_text(second.last(), true), names);
    }
    text
}

fn unified(a: &str, b: &str, names: &[String; 2]) -> String {
    let diff = TextDiff::from_lines(a, b);
    diff.unified_diff().context_radius(2).header(&names[0], &names[1]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kingpost::ir::AxisTag;
    use kingpost::transforms::primitives::{ReverseIname, SplitIname, Tag};

    fn recipe(steps: impl IntoIterator<Item = Step>) -> Recipe {
        Recipe::new(steps)
    }

    #[test]
    fn steps_are_removed_added_and_changed() {
        let split = |factor| Step::from(SplitIname::new("i", factor));
        let tag = |name: &str| Step::from(Tag::new(name, AxisTag::Group(0)));
        let a = recipe([split(4), tag("i_o"), ReverseIname::new("i_i").into()]);
        let b = recipe([split(8), tag("i_o"), tag("j")]);
        let text = steps_diff(&a, &b);
        let expected = "~ 1. split `i` by 4 into `i_o`, `i_i`\n  1. split `i` by 8 into `i_o`, `i_i`\n  \
                        2. tag `i_o` g.0\n- 3. reverse `i_i`\n+ 3. tag `j` g.0\n\n1 removed, 1 added, 1 changed\n";
        assert_eq!(text, expected);
        assert_eq!(steps_diff(&a, &a), "the same 3 steps\n");
    }

    #[test]
    fn what_comes_before_a_changed_step_was_added() {
        let split = |name: &str, factor| Step::from(SplitIname::new(name, factor));
        let text = steps_diff(
            &recipe([split("i", 4)]),
            &recipe([Tag::new("k", AxisTag::Unrolled).into(), split("i", 2)]),
        );
        assert!(text.starts_with("+ 1. tag `k` unroll\n~ 1. split `i` by 4"), "{text}");
    }
}
