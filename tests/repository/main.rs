//! The repository itself: its shape, its words, its pages.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

mod architecture;
mod bibliography;
mod changelog;
mod circles;
mod editors;
mod formatted;
mod mutations;
mod obligations;
mod readme;
mod stubs;
mod words;
