//! What the tuner asks of a mapping.

use serde::Serialize;
use std::fmt::{Debug, Display};

/// How a kernel is mapped onto a device: what the tuner chooses and records.
///
/// A mapping is plain data. Its text is for people; its JSON is what the [database] keeps and what
/// tells trials apart, so that equal mappings must have the same JSON. The tuner knows nothing else
/// of it: a [subject] applies it.
///
/// [database]: crate::Database
/// [subject]: crate::tuner::Subject
///
/// # Elsewhere
/// Halide's autoschedulers and Loopy's tuning parameters play this part.
pub trait Mapping: Clone + Debug + Display + PartialEq + Serialize + Send + Sync {}

impl<M> Mapping for M where M: Clone + Debug + Display + PartialEq + Serialize + Send + Sync {}
