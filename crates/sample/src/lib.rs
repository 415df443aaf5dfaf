//! Random small programs that run: the food of property tests.
//!
//! [`arbitrary_kernel`] makes well-formed, canonical kernels with values for their parameters and
//! arguments. They run in at most a few thousand steps, every access is in bounds, nothing is read
//! before it is written, and no finite value overflows: whatever a transformation or a code
//! generator makes of them, results can be compared.
//!
//! What occurs: one to three nests of one to three loops with one to four statements in all,
//! perfect and imperfect; in half of the samples one idiom after them (a sum in a scalar, values
//! handed over in an array or in the columns of one, a recurrence, a prefix sum, a sum of products,
//! one over the points of a rule, a scalar that instructions of a loop share, a loop that a flag ends); rectangular,
//! triangular, banded, strided, split (union) and data-dependent (`for j in 0..count`) bounds,
//! parametric and constant, also under conditions on a loop around and on parameters; unrolled
//! loops and reductions; arrays with one and two axes, a table, a temporary array, scalar
//! temporaries; gathers and scatters through integer arrays, one of them a permutation that is
//! assumed injective; stores and updates with every operator; reductions, also nested and over
//! triangles; predicates; conditionals, calls and casts; arrays and scalars of `f32`, of `i64` and
//! of `i32`; arithmetic of literals only; inputs with nans and infinities; inputs and tables with
//! zeros of either sign, with numbers near `1e-20` and `1e-200` among others, and with infinities;
//! quotients by elements of inputs and tables, and their signs. In a quarter of the samples about
//! half of the names are words that a target, isl or the engine uses, and some labels would be
//! code. Where launches are asked for ([`SampleConfig::launches`]), about half of the samples have two
//! or more, some of them repeated by a loop of the host; where records are ([`SampleConfig::records`]), some
//! idioms join them in a loop, in any order or in theirs, calls are those of a declared function, and
//! conditions compare truth values.
//!
//! A sample is made from a [`Plan`](plan::Plan), which is what shrinks: fewer nests and statements,
//! smaller expressions, and picks towards the first (simplest) choice.
//!
//! ```
//! use proptest::prelude::*;
//! use kingpost_interp::interpret;
//! use kingpost_sample::{SampleConfig, arbitrary_kernel};
//!
//! proptest!(|(mut sample in arbitrary_kernel(SampleConfig::default()))| {
//!     interpret(&sample.kernel, &mut sample.memory)?;
//! });
//! ```

#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

mod arithmetic;
mod draw;
mod entries;
mod expression;
mod idiom;
mod launches;
mod names;
mod nest;
pub mod plan;
mod range;
mod records;
mod sample;
mod seed;
mod typed;

pub use draw::memory;
pub use names::under_names;
pub use sample::{Sample, SampleConfig};
pub use seed::{Random, config, is_long_run, of_run, seed};

use proptest::prelude::*;
use std::collections::BTreeMap;

/// Random kernels; see the head of this crate.
pub fn arbitrary_kernel(config: SampleConfig) -> impl Strategy<Value = Sample> {
    plan::arbitrary_plan(config).prop_map(move |plan| sample(&plan, config))
}

/// The kernel of a plan.
pub fn sample(plan: &plan::Plan, config: SampleConfig) -> Sample {
    names::renamed(draw::draw(plan, config), plan.names)
}

/// What the parts of a plan's kernel are called, by the names that [`memory`] gives its arguments
/// and by others; those that are not in it keep theirs.
pub fn names(plan: &plan::Plan, config: SampleConfig) -> BTreeMap<String, String> {
    names::names(&draw::draw(plan, config).kernel, plan.names)
}

#[cfg(test)]
mod tests;
