//! `kingpost mcp`: the engine for agents and scripts, by the Model Context Protocol or by plain lines of JSON
//! on standard input and output.

mod answer;
mod arguments;
mod engine;
mod lines;
mod log;
mod measured;
mod protocol;
mod server;
mod tools;

use super::failure::Failure;
use clap::Args;
use lines::{next_line, write_line};
use log::Log;
use protocol::answer;
use server::Server;
use std::path::PathBuf;

/// Serve agents and scripts on standard input and output: load, legal steps, apply, time, tune
///
/// Each line of standard input is a message, each answer a line of standard output. A message is one of the
/// Model Context Protocol (JSON-RPC 2.0), or a plain call such as
/// {"tool": "apply", "arguments": {"steps": "tag(i, g.0)"}}. Bad input is answered by an error and ends
/// nothing.
#[derive(Args)]
#[command(after_help = "\
Examples:
  kingpost mcp                          what an agent's configuration names as its command
  kingpost mcp --record talk.jsonl      the same; each message and its answer go into a file
  kingpost mcp --replay talk.jsonl      answers these messages again; other answers are an error
  echo '{\"tool\": \"tools\"}' | kingpost mcp      the tools with the schemas of their arguments

In a replay, what was measured (predict, time, auto, tune) is taken from the file.")]
pub struct McpArgs {
    /// Write every message and its answer to this file, a line each
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Answer the messages of such a file, or of a file of messages alone, instead of standard input
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &McpArgs) -> Result<(), Failure> {
    if let Some(path) = &args.replay {
        return log::replay(path);
    }
    let log = args.record.as_deref().map(Log::create).transpose()?;
    let (mut server, mut input) = (Server::default(), std::io::stdin().lock());
    while let Some(line) = next_line(&mut input)? {
        let answer = answer(&mut server, &line);
        if let Some(log) = &log {
            log.add(&line, answer.as_deref())?;
        }
        if answer.is_some_and(|text| !write_line(&text)) {
            break;
        }
    }
    Ok(())
}
