//! The tuner on a device that does as it is told, and its database between processes.

#![allow(clippy::panic, clippy::unwrap_used, missing_docs)]

mod database;
mod fake;
mod together;
mod trials;
