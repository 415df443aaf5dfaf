//! What editors run: `kingpost fmt` and `kingpost lsp`.

#![allow(clippy::unwrap_used)]

use crate::schedules::run;
use crate::{root, write};
use std::io::Write;
use std::process::{Command, Output, Stdio};

const UNTIDY: &str = "kernel k # of\nparam n:i32\narg y : f64[n] inout\nfor i in 0 .. n\n    y[i]*=2\nschedule\nlet a,b=split( i,4 )\n";
const TIDY: &str = "kernel k  # of\n\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  y[i] *= 2\n\nschedule\nlet a, b = split(i, 4)\n";

/// The binary with this standard input.
fn piped(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kingpost"));
    command
        .args(args)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn files_get_the_layout() {
    let dir = tempfile::tempdir().unwrap();
    let untidy = write(dir.path(), "untidy.kingpost", UNTIDY);
    let tidy = write(dir.path(), "tidy.kingpost", TIDY);
    let broken = write(dir.path(), "broken.kingpost", "kernel k\nfor i in\n");
    let (_, error) = run(&["fmt", "--check", &untidy, &tidy], 1);
    assert!(error.contains(&untidy) && !error.contains(&tidy), "{error}");
    assert_eq!(std::fs::read_to_string(&untidy).unwrap(), UNTIDY, "it was only checked");
    // one with mistakes keeps no other from its layout
    let (out, error) = run(&["fmt", &broken, &untidy, &tidy], 2);
    assert!(out.is_empty() && error.contains("`") && error.contains("mistake"), "{error}");
    assert_eq!(std::fs::read_to_string(&untidy).unwrap(), TIDY);
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "kernel k\nfor i in\n");
    assert_eq!(run(&["fmt", "--check", &untidy, &tidy], 0), (String::new(), String::new()));
    run(&["fmt", "missing.kingpost"], 2);
    run(&["fmt"], 2);
}

#[test]
fn standard_input_gets_the_layout() {
    let output = piped(&["fmt", "-"], UNTIDY.as_bytes());
    assert_eq!((output.status.code(), String::from_utf8(output.stdout).unwrap().as_str()), (Some(0), TIDY));
    let output = piped(&["fmt", "--check", "-"], UNTIDY.as_bytes());
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    let output = piped(&["fmt", "-"], b"\xff");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn the_server_speaks_on_standard_input_and_output() {
    let message = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let script = [
        r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}"#,
        r#"{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": "file:///k", "text": "kernel k\nfor"}}}"#,
        r#"{"jsonrpc": "2.0", "id": 2, "method": "shutdown"}"#,
        r#"{"jsonrpc": "2.0", "method": "exit"}"#,
    ];
    let session: String = script.map(message).concat();
    let output = piped(&["lsp", "--stdio"], session.as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("codeLensProvider") && text.contains(r#""id":2"#), "{text}");
    let output = piped(&["lsp"], message(script[0]).as_bytes());
    assert_eq!(output.status.code(), Some(1));
}
