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
//! use purlin_analysis::Analysis;
//! use purlin_ir::text;
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
mod sites;
#[cfg(test)]
mod tests;

use crate::Analysis;
use crate::witness::{Instance, params_text};
use purlin_interp::{AccessProof, InterpError, LaunchReport, Memory};
use purlin_ir::ids::{InsnId, VarId};
use std::collections::BTreeSet;
use std::fmt;

/// An access of an instruction, and what is known of it before a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessReach {
    /// The instruction.
    pub insn: InsnId,
    /// The array.
    pub var: VarId,
    /// The access as it is written.
    pub access: String,
    /// Whether it is what the instruction writes.
    pub writes: bool,
    /// What is known.
    pub reach: Reach,
}

/// Where an access goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Inside, for all parameters that the assumptions allow.
    Inside,
    /// Outside, for some of them.
    Outside(Box<Outside>),
    /// The values that are given at launch decide.
    Open(Cause),
}

/// Why a proof has to wait for the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// An index is read from memory or not affine.
    Index,
    /// A loop's bound or a condition is read from memory or not affine.
    Domain,
    /// isl gave up.
    Solver,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index => "its index is read from memory or not affine",
            Self::Domain => "bounds or conditions around it are read from memory or not affine",
            Self::Solver => "isl gave up on it",
        })
    }
}

/// An instance that accesses an element its array does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The instance; the values of reductions around the access come last.
    pub instance: Instance,
    /// The element, such as `a[8]`.
    pub element: String,
    /// The extents as they are declared.
    pub shape: String,
    /// Values of the parameters.
    pub params: Vec<(String, i64)>,
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instance, element, shape, params } = self;
        write!(
            f,
            "{instance} accesses `{element}`{}, outside its shape {shape}; correct the index or the loops, or \
             assume what the parameters satisfy",
            params_text(params)
        )
    }
}

/// See [`Analysis::accesses_of`].
pub(crate) fn accesses_of(analysis: &Analysis, wanted: &dyn Fn(InsnId) -> bool) -> Vec<AccessReach> {
    let poly = analysis.polyhedral();
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

/// See [`Analysis::check_launch`].
pub(crate) fn check_launch(analysis: &Analysis, memory: &Memory) -> Result<LaunchReport, InterpError> {
    purlin_interp::check_launch(analysis.kernel(), memory, &access_proofs(analysis))
}

/// See [`Analysis::access_proofs`].
pub(crate) fn access_proofs(analysis: &Analysis) -> Vec<AccessProof> {
    let proof = |a: &AccessReach| AccessProof { insn: a.insn, proved: a.reach == Reach::Inside };
    analysis.accesses().iter().map(proof).collect()
}

/// See [`Analysis::open_arrays`].
pub(crate) fn open_arrays(analysis: &Analysis) -> Result<BTreeSet<VarId>, Box<Outside>> {
    let poly = analysis.polyhedral();
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
