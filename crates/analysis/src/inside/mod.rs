//! Whether accesses stay inside their arrays.
//!
//! An access at quasi-affine indices is inside for all values that the assumptions leave to the
//! parameters if, with `D` the instances of its loops under the conditions around it and `n` the
//! extent of an axis,
//!
//! ```text
//! { i in D : index(i) < 0  or  index(i) >= n }   is empty.
//! ```
//!
//! Plain integers decide the usual cases (a loop over the extent, the blocks of a split), isl the
//! rest; where the set is not empty its smallest point is the witness. An index that is read from
//! memory, a condition or a bound that isl cannot see leave the question open until the values are
//! known: [`Analysis::check_launch`].
//!
//! ```
//! use kingpost_analysis::Analysis;
//! use kingpost_ir::text;
//!
//! let shift = "kernel shift\nparam n: i32\narg a: f64[n] inout\n
//! for i in 0..n - 1\n  s: a[i] = a[i + 2]\n";
//! let kernel = text::parse(shift)?;
//! let outside = Analysis::of(&kernel).first_outside();
//! assert_eq!(outside.map(|o| o.to_string()).unwrap_or_default(), "`s[0]` accesses `a[2]` with n = 2, outside \
//!     its shape [n]; correct the index or the loops, or assume what the parameters satisfy");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod proof;
mod reach;
mod sites;

impl Analysis<'_> {
    /// The accesses to arrays, in textual order, and whether they stay inside; those of
    /// substitution rules stand where these are used.
    pub fn accesses(&self) -> Vec<AccessReach> {
        self.accesses_of(&|_| true)
    }

    /// The accesses of some instructions: see [`Analysis::accesses`].
    pub fn accesses_of(&self, wanted: &dyn Fn(InsnId) -> bool) -> Vec<AccessReach> {
        let poly = self.polyhedral();
        let mut proofs = proof::Proofs::new(poly);
        let reach = |site: sites::Site<'_>| AccessReach {
            insn: site.insn,
            var: site.access.var,
            access: poly.kernel.show_access(site.access).to_string(),
            writes: site.writes,
            reach: proofs.reach(&site),
        };
        sites::sites(poly).into_iter().filter(|site| wanted(site.insn)).map(reach).collect()
    }

    /// The first access in textual order that leaves its array for some parameters that the
    /// assumptions allow.
    pub fn first_outside(&self) -> Option<Outside> {
        self.open_arrays().err().map(|outside| *outside)
    }

    /// The arrays with accesses that only the values given at launch decide: [`Analysis::check_launch`]
    /// looks at them.
    ///
    /// # Errors
    /// What [`Analysis::first_outside`] gives.
    pub fn open_arrays(&self) -> Result<BTreeSet<VarId>, Box<Outside>> {
        let poly = self.polyhedral();
        let mut proofs = proof::Proofs::new(poly);
        let mut open = BTreeSet::new();
        for site in sites::sites(poly) {
            match proofs.reach(&site) {
                Reach::Inside => {}
                Reach::Outside(outside) => return Err(outside),
                Reach::Open(_) => {
                    open.insert(site.access.var);
                }
            }
        }
        Ok(open)
    }

    /// Which accesses stay inside their arrays for all parameters that the assumptions allow: what
    /// [`kingpost_interp::check_launch`] needs for many launches of one kernel.
    pub fn access_proofs(&self) -> Vec<AccessProof> {
        let proof = |a: &AccessReach| AccessProof { insn: a.insn, proved: a.reach == Reach::Inside };
        self.accesses().iter().map(proof).collect()
    }

    /// Checks what the kernel is about to be launched with: its assumptions, and every access that
    /// could leave its array ([`kingpost_interp::check_launch`], with what is proved here).
    ///
    /// # Errors
    /// As [`kingpost_interp::check_launch`].
    pub fn check_launch(&self, memory: &Memory) -> Result<LaunchReport, InterpError> {
        match self.kernel().scalar_form() {
            Cow::Borrowed(kernel) => kingpost_interp::check_launch(kernel, memory, &self.access_proofs()),
            Cow::Owned(kernel) => self.next(&kernel).check_launch(memory),
        }
    }
}

#[cfg(test)]
mod tests;

pub use reach::{AccessReach, Cause, Outside, Reach};

use crate::Analysis;
use kingpost_interp::{AccessProof, InterpError, LaunchReport, Memory};
use kingpost_ir::ids::{InsnId, VarId};
use std::borrow::Cow;
use std::collections::BTreeSet;
