//! `kingpost fuse` and `kingpost batch`: programs made of whole ones.

use super::failure::Failure;
use super::out;
use super::print::kernel_text;
use super::source::{FormOptions, SourceArgs};
use clap::Args;
use kingpost::transforms::TransformError;
use kingpost::transforms::programs::{Batches, Fused, fuse_kernels, to_batched};
use std::collections::BTreeMap;

/// Print one kernel of several that run one after the other
///
/// Arguments of one name are one; other names that are taken get a number, which standard error
/// says. Each kernel has launches of its own, which the step fuse_launches joins.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost fuse first.kingpost second.kingpost > both.kingpost
  kingpost fuse program.kingpost#first program.kingpost#second --name both")]
pub struct FuseArgs {
    /// Forms by name, or .kingpost files, in order
    #[arg(value_name = "WHAT", num_args = 2.., required = true)]
    what: Vec<String>,
    /// Name of the kernel [default: that of the first]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    options: FormOptions,
}

/// Print a kernel that does the same for many data
///
/// The arguments named get an axis in front, and a loop stands around everything. All arguments
/// that are written need the axis.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost batch dot.kingpost --by m --over a,s     as many as a parameter says
  kingpost batch dot.kingpost --by 16 --over a,s")]
pub struct BatchArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// How many data there are: a number, or a parameter, which is declared if it is not there
    #[arg(long, value_name = "NUMBER|PARAM")]
    by: String,
    /// The arguments that differ among them
    #[arg(long, value_name = "NAMES", value_delimiter = ',', required = true)]
    over: Vec<String>,
    /// Name of the loop
    #[arg(long, default_value = "batch")]
    iname: String,
}

/// Runs `kingpost fuse`.
pub fn fuse(args: &FuseArgs) -> Result<(), Failure> {
    let mut kernels = Vec::with_capacity(args.what.len());
    for what in &args.what {
        kernels.push(args.options.source(what)?.kernel()?);
    }
    let (Some(first), rest) = (kernels.first(), kernels.iter().skip(1)) else { return Ok(()) };
    let name = args.name.as_ref().unwrap_or(&first.name);
    let mut fused = first.clone();
    for (kernel, what) in rest.zip(args.what.iter().skip(1)) {
        let Fused { kernel, first, second } = fuse_kernels(&fused, kernel, name).map_err(refused)?;
        say(&first, "what is before");
        say(&second, what);
        fused = kernel;
    }
    out(&kernel_text(&fused, false))
}

fn say(names: &BTreeMap<String, String>, of: &str) {
    for (from, to) in names {
        eprintln!("note: `{from}` of {of} is `{to}`");
    }
}

/// Runs `kingpost batch`.
pub fn batch(args: &BatchArgs) -> Result<(), Failure> {
    let batches = args.by.parse().map_or_else(|_| Batches::Param(args.by.clone()), Batches::Number);
    let over: Vec<&str> = args.over.iter().map(String::as_str).collect();
    let kernel = args.source.source()?.kernel()?;
    let batched = to_batched(&kernel, &batches, &over, &args.iname).map_err(refused)?;
    out(&kernel_text(&batched, false))
}

fn refused(error: TransformError) -> Failure {
    Failure::Refused(error.to_string())
}
