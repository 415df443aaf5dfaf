//! Lets temporaries share one buffer.

use kingpost_analysis::Analysis;
use kingpost_ir::{Kernel, VarId};
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::elements::{TEMPORARY, temporary};
use kingpost_steps::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Lets arrays share one buffer, as large as the largest, if no two values are alive in one place
/// of it at the same time.
///
/// # Rewrite
/// ```text
/// temp t: f64[8] local        =>   temp t: f64[8] local storage(buf)
/// temp u: f64[4] local             temp u: f64[4] local storage(buf)
/// ```
/// A name that is the storage of other temporaries already lets the new ones join them.
///
/// # Precondition
/// The arrays are temporaries of one type in local memory, or in private memory. While a value of
/// one is alive, no other is written to its place: with `D` the flow and update dependences through
/// one, `X` the writes of another and `p` the places that writes touch,
/// `{ w -> r in D : exists x in X : w before x before r, p(w) = p(x) }` is empty. Arrays begin
/// where the buffer does; a place is an element of the buffer of a work-item, or of a work-group in
/// local memory, and any where its index is not affine. In local memory "before" leaves the loops
/// on axes out, because work-items run side by side. Every later step proves this again.
///
/// # Errors
/// Lives that overlap, with the write and the read between which another sharer is written; types
/// or address spaces that differ; scalars, globals, arguments, tables; use in the lanes of a
/// vector; a storage name that is taken.
///
/// # Source
/// Kulkarni & Klöckner 2025, §4.2 (one buffer for all prefetched tiles).
///
/// # Elsewhere
/// Loopy `alias_temporaries`; Exo `reuse_buffer`; TVM `MergeSharedMemoryAllocations`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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

/// One array alone shares nothing.
const SEVERAL: Obligation = Obligation::new("alias_storage.several", "at least two arrays share the buffer");

/// A scalar lives in a register.
const ARRAYS: Obligation = Obligation::new("alias_storage.arrays", "the temporaries have axes");

/// A temporary is in one buffer.
const UNSHARED: Obligation = Obligation::new("alias_storage.unshared", "no temporary shares storage already");

/// The temporaries that will share the buffer.
pub struct Sharers {
    vars: Vec<VarId>,
}

impl Primitive for AliasStorage {
    const NAME: &'static str = "alias_storage";
    const SUMMARY: &'static str = "Lets temporaries share one buffer.";

    type Proof = Sharers;
    type Made = ();

    // that their lives do not meet is what every result must keep
    const OBLIGATIONS: &'static [Obligation] = &[SEVERAL, ARRAYS, UNSHARED, TEMPORARY];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Sharers, Refusal> {
        let kernel = analysis.kernel();
        let joins = kernel.vars.values().any(|v| v.storage.as_ref() == Some(&self.storage));
        if !joins {
            lookup::free(kernel, &self.storage)?;
        }
        SEVERAL.require(self.vars.len() + usize::from(joins) >= 2, || {
            "one temporary alone shares nothing; name two or more, or a buffer there is".into()
        })?;
        let mut vars = Vec::new();
        for name in &self.vars {
            let var = temporary(kernel, name, "only temporaries share storage")?;
            let variable = &kernel.vars[var];
            ARRAYS.require(!variable.shape.is_empty(), || {
                format!("`{name}` is a scalar; only arrays share storage")
            })?;
            let named_before = vars.contains(&var).then_some(&self.storage);
            UNSHARED.forbid(variable.storage.as_ref().or(named_before), |old| {
                format!("`{name}` shares the storage `{old}` already")
            })?;
            vars.push(var);
        }
        Ok(Sharers { vars })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Sharers) {
        for var in &proof.vars {
            kernel.vars[*var].storage = Some(self.storage.clone());
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all = draw::temporaries(kernel, 1);
        let apart: Vec<_> = draw::one_after_the_other(kernel)
            .into_iter()
            .map(|(first, second)| Self::new([first, second], "one"))
            .collect();
        Some(if apart.is_empty() || p.one_in(4) {
            Self::new([p.of(&all)?, p.of(&all)?], p.among(["one", "two"]))
        } else {
            draw::possible(kernel, apart, p)?
        })
    }
}
