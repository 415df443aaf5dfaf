//! `kingpost lsp`: a language server on standard input and output.

use super::failure::Failure;
use clap::Args;
use kingpost::lsp::{End, serve};
use kingpost::transforms::steps;
use std::io::{BufReader, stdin, stdout};

/// Serve an editor: mistakes and refusals as it types, what a name is, steps and their arguments
///
/// It speaks the Language Server Protocol on standard input and output, and is started by an editor;
/// editors/vscode is the extension for Visual Studio Code.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost lsp                                 as an editor starts it, for files .kingpost

Neovim: vim.lsp.start({ name = 'kingpost', cmd = { 'kingpost', 'lsp' } })
Helix:  [language-server.kingpost] command = \"kingpost\" args = [\"lsp\"]")]
pub struct LspArgs {
    /// Standard input and output, which is the default; editors pass it
    #[arg(long)]
    stdio: bool,
}

/// Runs the command.
pub fn run(args: &LspArgs) -> Result<(), Failure> {
    let LspArgs { stdio: _ } = args; // there is nothing else
    // a lock of standard input stays with its thread
    match serve(BufReader::new(stdin()), stdout().lock(), steps()) {
        Ok(End::Asked) => Ok(()),
        Ok(End::Abandoned) => Err(Failure::Refused("the editor ended the session without `shutdown`".into())),
        Err(error) => Err(Failure::Usage(format!("cannot speak with the editor: {error}"))),
    }
}
