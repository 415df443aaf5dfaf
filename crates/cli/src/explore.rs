//! `kingpost explore`: what every step does, as one page to look around in.

use super::failure::Failure;
use super::out;
use super::source::SourceArgs;
use super::table::grouped;
use super::transform::TransformArgs;
use super::values::ParamArg;
use clap::Args;
use kingpost::explore::{Exploration, Subject, page};
use kingpost::files;
use kingpost::forms::CellKernel;
use std::path::PathBuf;

/// Write a page that shows what a kernel is after each step: dependences, iterations, sources
///
/// The page is one file that needs no server and no network. A step that is refused is its last, with
/// the two instances that clash.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost explore laplace --dim 2 --degree 1 -o laplace.html     the single-cell strategy of a form
  kingpost explore my.kingpost -o my.html                           a file with its schedule
  kingpost explore my.kingpost --recipe mine.json -o my.html      your own steps on your own kernel
  kingpost explore my.kingpost --recipe mine.json --param n=70 -o my.html
                                                                the first picture with n = 70")]
pub struct ExploreArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// Value of a parameter, for counts and for the first picture; repeat it for each [default: small
    /// ones]
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<ParamArg>,
    /// File to write
    #[arg(long, short, value_name = "FILE.html")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(args: &ExploreArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    let lowered = source.lower()?;
    let (form, recipe, behind) = args.transform.recipe(&source, lowered)?;
    let given = args.source.given();
    let params: String = args.param.iter().map(|param| format!(" --param {param}")).collect();
    let command = format!("kingpost explore {given}{}{params}", args.transform.given_text());
    let subject = Subject::new(given, form.kernel(), &recipe)
        .with_command(command)
        .with_refusal(behind.as_ref().map(|step| &step.source))
        .with_params(ParamArg::collect(&args.param)?);
    let explored = Exploration::of(&subject).map_err(|error| Failure::Usage(error.to_string()))?;
    let page = page(&explored).map_err(|error| Failure::Refused(error.to_string()))?;
    files::write(&args.output, &page).map_err(|error| Failure::of_write(&args.output, &error))?;
    let (number, size) = (explored.steps.len() - 1, grouped(page.len().div_ceil(1024) as u64));
    out(&format!("wrote {}: {number} steps, {size} KiB\n", args.output.display()))?;
    let Some(last) = explored.steps.last() else { return Ok(()) };
    let Some(refusal) = &last.refusal else { return Ok(()) };
    let help = if refusal.help.is_empty() { String::new() } else { format!("; {}", refusal.help) };
    let id = refusal.obligation.map_or_else(String::new, |id| format!(" [{id}]"));
    let found = format!("step {number}: {}: {}{help}{id}", last.label, refusal.clash);
    Err(Failure::Refused(format!("{found}\n  help: `{}` shows it", args.output.display())))
}
