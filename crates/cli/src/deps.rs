//! `purlin deps`: the dependences of a kernel.

use super::failure::Failure;
use super::out;
use super::source::SourceArgs;
use super::transform::TransformArgs;
use clap::Args;
use purlin::analysis::Analysis;
use purlin::analysis::deps::{show_dependences, to_dot};

/// Print the dependences of a kernel: which instances must come before which
///
/// Flow: read after write. Anti: write after read. Output: write after write. Update: two updates
/// of one element, which commute. Without --strategy, --mapping and --recipe it is the kernel as it
/// is written.
#[derive(Args)]
#[command(after_help = "\
Examples:
  purlin deps laplace --dim 2 --degree 1
  purlin deps laplace --dot | dot -Tsvg > deps.svg")]
pub struct DepsArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    transform: TransformArgs,
    /// A graph for Graphviz instead of text
    #[arg(long)]
    dot: bool,
}

/// Runs the command.
pub fn run(args: &DepsArgs) -> Result<(), Failure> {
    let source = args.source.source()?;
    let kernel = match args.transform.is_given_for(&source) {
        true => args.transform.apply(&source, &source.lower()?)?.kernel,
        false => source.kernel()?,
    };
    let solver = |error| Failure::Refused(format!("the integer-set library failed: {error}"));
    let graph = Analysis::of(&kernel).dependence_graph().map_err(solver)?;
    if args.dot {
        return out(&to_dot(&kernel, &graph));
    }
    out(&show_dependences(&kernel, &graph).map_err(solver)?)
}
