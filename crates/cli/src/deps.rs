//! `kingpost deps`: the dependences of a kernel.

use super::failure::Failure;
use super::out;
use super::source::{Source, SourceArgs};
use super::transform::TransformArgs;
use clap::Args;
use kingpost::analysis::Analysis;
use kingpost::analysis::deps::{show_dependences, to_dot};
use kingpost::ir::Kernel;

/// Print the dependences of a kernel: which instances must come before which
///
/// Flow: read after write. Anti: write after read. Output: write after write. Update: two updates
/// of one element, which commute. Without --strategy, --mapping and --recipe it is the kernel as it
/// is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost deps laplace --dim 2 --degree 1
  kingpost deps my.kingpost --recipe mine.json --step 3
  kingpost deps laplace --dot | dot -Tsvg > deps.svg")]
pub struct DepsArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// A graph for Graphviz instead of text
    #[arg(long)]
    dot: bool,
    /// Take the kernel after N steps of the recipe or strategy; later steps need not be legal
    #[arg(long, value_name = "N")]
    step: Option<usize>,
}

/// Runs the command.
pub fn run(args: &DepsArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    let kernel = match args.step {
        Some(step) => after(args, &source, step)?,
        None if args.transform.is_given_for(&source) => {
            args.transform.apply(&source, &*source.lower()?)?.kernel
        }
        None => source.kernel()?,
    };
    let solver = |error| Failure::Refused(format!("the integer-set library failed: {error}"));
    let graph = Analysis::of(&kernel).dependence_graph().map_err(solver)?;
    if args.dot {
        return out(&to_dot(&kernel, &graph));
    }
    if graph.edge_count() == 0 {
        return out("no dependences: no two instances access an element that one of them writes\n");
    }
    out(&show_dependences(&kernel, &graph).map_err(solver)?)
}

/// The kernel after the first steps of a recipe; later ones need not be legal.
fn after(args: &DepsArgs, source: &Source, step: usize) -> Result<Kernel, Failure> {
    let (form, mut recipe, _) = args.transform.recipe(source, source.lower()?)?;
    let steps = recipe.steps.len();
    if step > steps {
        return Err(Failure::Usage(format!("--step {step}: there are {steps} steps")));
    }
    recipe.steps.truncate(step);
    Ok(recipe.apply(form.kernel())?)
}
