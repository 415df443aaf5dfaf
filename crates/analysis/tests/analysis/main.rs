//! What tests of the analysis say beyond facts, which are in `facts`.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

mod calls;
mod known;
mod launch;
mod shared_places;
mod witnesses;
