//! Facts as text: what becomes of a kernel, in files that tests run.
//!
//! A file of facts belongs to a folder, of a primitive or a pass, and holds programs and what is
//! asked of them:
//!
//! ```text
//! # Blocks of a constant length.
//!
//! == kernel scale
//! kernel scale
//!
//! param n: i32
//! arg y: f64[n] inout
//!
//! for i in 0..n
//!   s: y[i] = 2.0*y[i]
//!
//! == fact refuses_factor_zero on scale
//! # A block has one iteration or more.
//! > split_iname(i, factor: 0)
//! refused: split `i` by 0: the factor is 0, needed at least 1
//! ```
//!
//! | line | meaning |
//! |---|---|
//! | `# text` | a comment: at the top of the file, or below a heading, where it says why |
//! | `== kernel NAME` | a program that several facts of the file are about, in the lines below |
//! | `== fact NAME on KERNEL` | a fact about such a program |
//! | `== fact NAME` | a fact about the program in the lines below |
//! | `> question` | a step, a target or whatever else the facts of the folder ask |
//! | other lines | the answer to the question above them |
//!
//! A test program calls
//! [`main`] with its folder and a function that answers. Tests are named `folder::file::fact`;
//! under nextest, which starts a process for each test, one test runs all facts of a file. With
//! `BLESS=1` in the environment the answers in the files become those that were found; comments and
//! order stay.

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod file;
mod run;

pub use file::{Body, Fact, FactFile, ParseError, Question};
pub use run::{Answers, load, main};
