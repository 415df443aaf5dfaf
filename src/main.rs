//! The command line of Purlin; `purlin --help` explains it.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
