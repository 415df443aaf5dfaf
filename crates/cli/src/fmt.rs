//! `kingpost fmt`: kernels and schedules in one layout.

use super::failure::Failure;
use super::text_file::read;
use clap::Args;
use kingpost::files;
use kingpost::transforms::steps;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Lay out files of kernels and schedules: blanks, indentation, empty lines
///
/// Comments and line breaks inside brackets stay. What is written parses to the kernels and steps that
/// were there; a file with mistakes stays as it is.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost fmt my.kingpost
  kingpost fmt --check examples/*.kingpost     which files would change; exit code 1 if any
  kingpost fmt - < my.kingpost                 from standard input to standard output")]
pub struct FmtArgs {
    /// Files to lay out in place; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write nothing; name the files that would change
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(args: &FmtArgs) -> Result<(), Failure> {
    let (mut changed, mut failed) = (Vec::new(), Vec::new());
    for file in &args.files {
        match format(file, args.check) {
            Ok(true) => changed.push(file.display().to_string()),
            Ok(false) => {}
            Err(failure) => failed.push(failure),
        }
    }
    if args.check && !changed.is_empty() {
        let files: String = changed.iter().map(|file| format!("\n  {file}")).collect();
        failed.push(Failure::Refused(format!("`kingpost fmt` would change{files}")));
    }
    let last = failed.pop();
    failed.iter().for_each(Failure::print);
    last.map_or(Ok(()), Err)
}

/// Lays out a file, unless it is only to be checked; whether it changes.
fn format(file: &Path, check: bool) -> Result<bool, Failure> {
    let is_stdin = file == Path::new("-");
    let source = read(if is_stdin { Path::new("/dev/stdin") } else { file })?;
    let text = steps().format(&source).map_err(|errors| Failure::Text {
        name: if is_stdin { "standard input".into() } else { file.display().to_string() },
        source: source.clone(),
        errors,
    })?;
    let changes = text != source;
    match (check, is_stdin) {
        (true, _) => {}
        // as it is, with what stands in comments
        (false, true) => std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Failure::of_write(Path::new("standard output"), &error))?,
        (false, false) if changes => {
            files::write(file, &text).map_err(|error| Failure::of_write(file, &error))?;
        }
        (false, false) => {}
    }
    Ok(changes)
}
