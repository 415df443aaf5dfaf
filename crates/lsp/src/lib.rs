//! A language server for texts of kernels and schedules, by the Language Server Protocol 3.17: diagnostics,
//! hover, completion, definitions, formatting, and the kernel after each step of a schedule.
//!
//! ```
//! use std::io::Cursor;
//!
//! let message = r#"{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}"#;
//! let input = format!("Content-Length: {}\r\n\r\n{message}", message.len());
//! let mut output = Vec::new();
//! let end = kingpost_lsp::serve(Cursor::new(input), &mut output, kingpost_primitives::steps())?;
//! assert_eq!(end, kingpost_lsp::End::Abandoned); // nobody asked for the end
//! assert!(String::from_utf8_lossy(&output).contains("hoverProvider"));
//! # Ok::<(), std::io::Error>(())
//! ```

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod completion;
mod describe;
mod document;
mod documentation;
mod hover;
mod lens;
mod position;
mod problem;
mod server;
mod wire;

pub use server::{End, serve};
