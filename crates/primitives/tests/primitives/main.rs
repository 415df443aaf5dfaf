//! What tests of primitives say beyond facts, which are in `facts`.
#![allow(clippy::panic, clippy::unwrap_used)] // what a failed test does

use kingpost_step_facts::story;

mod budget;
mod corpus;
mod documented;
mod fix_argument;
mod integers;
mod inverse;
mod loop_conditions;
mod nan;
mod page;
mod pipeline_loop;
mod product;
mod programs;
mod random_calls;
mod recipes;
mod schedule;
mod selections;
mod separate;
