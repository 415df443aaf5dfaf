//! The command line: arguments, subcommands, exit codes.
//!
//! What is public here is for the studies (`studies`), which have command lines of their own for
//! cases and pages that are no part of the library.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod arrays;
mod auto;
mod blame;
mod components;
mod default_mapping;
mod deps;
mod devices;
mod diff;
mod explore;
mod explore_live;
mod explore_times;
mod failure;
mod file_run;
mod fmt;
mod form_run;
mod imported;
mod inputs;
mod json_lines;
mod lists;
mod loopback;
mod lsp;
mod mcp;
mod mesh_inputs;
mod print;
mod programs;
mod progress;
mod quote;
mod report;
mod results;
mod run;
mod run_args;
#[cfg(feature = "solve")]
mod solve;
#[cfg(feature = "solve")]
mod solve_args;
#[cfg(feature = "solve")]
mod solve_domain;
#[cfg(feature = "solve")]
mod solve_multigrid;
#[cfg(feature = "solve")]
mod solve_slabs;
#[cfg(feature = "solve")]
mod solve_stokes;
#[cfg(feature = "solve")]
mod solved;
mod source;
mod space;
mod stats;
mod step_times;
mod steps;
mod table;
mod terminal;
mod text_file;
mod transform;
mod trial_args;
mod trials;
mod tune;
mod tune_args;
mod tune_file;
mod values;

pub use components::is_part;
pub use failure::{Failure, Signal};
pub use json_lines::{JsonLinesError, append_json_line, read_json_lines};
pub use progress::Progress;
pub use results::{
    best_by, best_table, mapping_json, single_cell_s, trials_table, warn_of_damage, write_pictures,
};
pub use source::Scheme;
pub use space::{SpaceBounds, find_device};
pub use steps::line_diff;
pub use table::{figure, grouped, markdown, seconds, table};
pub use trial_args::{Found, TrialArgs};
pub use values::{Order, order_of};

use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};
use kingpost::files::is_lack_of_room;
use std::ffi::OsString;
use std::process::ExitCode;

const AFTER: &str = "\
WHAT can be printed, run and studied:
  a form by name   mass, helmholtz, laplace, elasticity, hyperelasticity (`kingpost form NAME`)
  a sparse matrix  mass-matrix and so on: that of a form by name
  on hexahedra     bp1 to bp6, bp10, bp30, bp35, or a form with --cell hexahedron
  a loop program   any file that ends in .kingpost (`kingpost print FORM` writes one to start from)
  a form of UFL    any file that ends in .json, as `python -m kingpost export` writes it

A first tour:
  kingpost print laplace --strategy none       the kernel of the form, as text
  kingpost steps laplace                       the same after each step of the single-cell strategy
  kingpost explore laplace -o laplace.html     all of that as a page to look around in
  kingpost print laplace --target cuda         what comes out for a GPU
  kingpost run laplace --degree 4 --cells 8    compiled, run, checked against a reference, timed
  kingpost space laplace --degree 4            its tilings, counted and ranked by a cost model
  kingpost tune laplace --degree 3 --cells 16  the fastest mapping on this machine
  kingpost solve hyperelasticity --cells 8     a nonlinear problem, assembled and solved on a device
  kingpost auto matmul.kingpost --param n=1000   a schedule for a loop program
  kingpost devices                             where that can happen here
  kingpost fmt my.kingpost                     the file in the usual layout

Exit codes:
  0  done
  1  refused or wrong: an illegal step, code that cannot be generated, a result that is off
  2  usage: unknown names, files that are missing or malformed
  3  this machine lacks a device, a compiler, a tool or room on a disk; the message says what
  4  a result that is off by the fault of a compiler: its source is right without optimisation
  130, 143  stopped by Ctrl-C, or by a request to terminate";

/// A polyhedral loop-transformation engine: variational forms and loop programs to CUDA, OpenCL and
/// C.
#[derive(Parser)]
#[command(name = "kingpost", version, after_help = AFTER, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run_args::RunArgs),
    #[cfg(feature = "solve")]
    Solve(solve_args::SolveArgs),
    Print(print::PrintArgs),
    Steps(steps::StepsArgs),
    Explore(explore::ExploreArgs),
    Diff(diff::DiffArgs),
    Deps(deps::DepsArgs),
    Stats(stats::StatsArgs),
    Fuse(programs::FuseArgs),
    Batch(programs::BatchArgs),
    Space(space::SpaceArgs),
    Devices(devices::DevicesArgs),
    Tune(tune_args::TuneArgs),
    Auto(auto::AutoArgs),
    Results(results::ResultsArgs),
    Form(lists::FormArgs),
    Recipe(lists::RecipeArgs),
    Fmt(fmt::FmtArgs),
    Lsp(lsp::LspArgs),
    Primitives(lists::PrimitivesArgs),
    Mcp(mcp::McpArgs),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    ExitCode::from(run(std::env::args_os()))
}

/// Runs a command line, its first argument the name of the program, and gives the code with which the process is to
/// end. Help, and mistakes in the arguments, end it at once.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // both exit with 2 on a mistake
    let cli =
        Cli::from_arg_matches(&command().get_matches_from(arguments)).unwrap_or_else(|error| error.exit());
    code(dispatch(&cli.command))
}

/// The command line, where `-1` after an option is its value, for the option to refuse.
fn command() -> clap::Command {
    let numbers = |arg: Arg| match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    Cli::command().mut_subcommands(|command| command.mut_args(numbers))
}

/// Prints a failure and says with which code the process ends.
#[must_use]
pub fn end(result: Result<(), Failure>) -> ExitCode {
    ExitCode::from(code(result))
}

fn code(result: Result<(), Failure>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(failure) => {
            failure.print();
            failure.code()
        }
    }
}

fn dispatch(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Run(args) => run::run(args),
        #[cfg(feature = "solve")]
        Command::Solve(args) => solve::run(args),
        Command::Print(args) => print::run(args),
        Command::Steps(args) => steps::run(args),
        Command::Explore(args) => explore::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Deps(args) => deps::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Fuse(args) => programs::fuse(args),
        Command::Batch(args) => programs::batch(args),
        Command::Space(args) => space::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Tune(args) => tune::run(args),
        Command::Auto(args) => auto::run(args),
        Command::Results(args) => results::run(args),
        Command::Form(args) => lists::form(args),
        Command::Recipe(args) => lists::recipe(args),
        Command::Fmt(args) => fmt::run(args),
        Command::Lsp(args) => lsp::run(args),
        Command::Primitives(args) => lists::primitives(args),
        Command::Mcp(args) => mcp::run(args),
    }
}

/// Writes to standard output, control characters escaped; a reader that has gone away is no error.
///
/// # Errors
/// What the system says.
pub fn out(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(terminal::shown(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            let message = format!("cannot write to standard output: {error}");
            Err(if is_lack_of_room(&error) { Failure::Missing(message) } else { Failure::Usage(message) })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        command().debug_assert();
    }

    /// Longer lines would be broken after what is aligned in them.
    #[test]
    fn examples_fit_a_terminal() {
        let command = command();
        for part in command.get_subcommands().chain([&command]) {
            let text = part.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", part.get_name());
            }
        }
    }
}
