//! `kingpost run`: compile, run, check, time.

use super::failure::Failure;
use super::imported::kernels_of;
use super::run_args::RunArgs;
use super::source::Source;
use super::{file_run, form_run};

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let sources = kernels_of(args.source.source()?, &args.source.what);
    let several = sources.len() > 1;
    sources.iter().try_for_each(|source| {
        // kernels of a form have arguments of the same names
        let args = match several {
            true => &args.of_kernel(&source.kernel()?.name),
            false => args,
        };
        match source {
            Source::Form(_) => form_run::run(args, source),
            Source::File(_) => file_run::run(args, source),
        }
    })
}
