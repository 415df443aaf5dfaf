//! Lets temporaries share one buffer.

use super::Transform;
use crate::lookup;
use crate::proofs::elements::temporary;
use crate::refusal::Refusal;
use purlin_analysis::Analysis;
use purlin_ir::Kernel;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets arrays whose values are never alive at the same time share one buffer, as large as the largest.
///
/// # Rewrite
/// ```text
/// temp t: f64[8] local        =>   temp t: f64[8] local storage(buf)
/// temp u: f64[4] local             temp u: f64[4] local storage(buf)
/// ```
/// A name that is the storage of other temporaries already lets the new ones join them.
///
/// # Precondition
/// The arrays are temporaries of one type in local memory, or in private memory. While a value of one is alive, no
/// other is written: with `D` the flow and update dependences through one and `X` the writes of another,
/// `{ w -> r in D : exists x in X : w before x before r }` is empty. In local memory "before" leaves the loops on
/// axes out, because work-items run side by side. Every later step proves this again.
///
/// # Errors
/// Lives that overlap, with the write and the read between which another sharer is written; types or
/// address spaces that differ; scalars, globals, arguments, tables; use in the lanes of a vector; a storage name that
/// is taken.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.2 (one buffer for all prefetched tiles).
///
/// # Elsewhere
/// Loopy `alias_temporaries`; Exo `reuse_buffer`; TVM `MergeSharedMemoryAllocations`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AliasStorage {
    /// The temporaries.
    pub vars: Vec<String>,
    /// Name of the buffer.
    pub storage: String,
}

impl AliasStorage {
    /// Lets `vars` share the buffer `storage`.
    pub fn new<S: Into<String>>(vars: impl IntoIterator<Item = S>, storage: impl Into<String>) -> Self {
        Self { vars: vars.into_iter().map(Into::into).collect(), storage: storage.into() }
    }
}

impl fmt::Display for AliasStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vars: Vec<_> = self.vars.iter().map(|v| format!("`{v}`")).collect();
        write!(f, "alias {} in `{}`", vars.join(", "), self.storage)
    }
}

impl Transform for AliasStorage {
    fn rewrite(&self, kernel: &Kernel) -> Result<Kernel, Refusal> {
        let storage = Some(self.storage.clone());
        let joins = kernel.vars.values().any(|v| v.storage == storage);
        if !joins {
            lookup::free(kernel, &self.storage)?;
        }
        if self.vars.len() + usize::from(joins) < 2 {
            return Err(Refusal::Other(
                "one temporary alone shares nothing; name two or more, or a buffer there is".into(),
            ));
        }
        let mut aliased = kernel.clone();
        for name in &self.vars {
            let var = temporary(kernel, name, "only temporaries share storage")?;
            let variable = &mut aliased.vars[var];
            if variable.shape.is_empty() {
                return Err(Refusal::Other(format!("`{name}` is a scalar; only arrays share storage")));
            }
            if let Some(old) = &variable.storage {
                return Err(Refusal::Other(format!("`{name}` shares the storage `{old}` already")));
            }
            variable.storage.clone_from(&storage);
        }
        Analysis::of(&aliased).check_storage()?;
        Ok(aliased)
    }
}
