//! What a primitive is, and the frame that applies it.

use crate::former::Former;
use crate::keeps::{Instances, Keeps};
use crate::lists::Definition;
use crate::obligation::Obligation;
use crate::picks::Picks;
use crate::proved::Means;
use crate::refusal::{PLACEMENT, Refusal, STORAGE, TransformError};
use crate::schedule::Handles;
use kingpost_analysis::{Analysis, Known};
use kingpost_ir::{AxisTag, Kernel};
use kingpost_isl as isl;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::hash::Hash;

/// Operations of the solver that a step may take: some seconds.
const STEP_LIMIT: u64 = 50_000_000;

/// A transformation of kernels: typed arguments, a check that yields a proof, an edit that relies
/// on it.
///
/// [`Display`](fmt::Display) is the operation as error messages name it: ``split
/// `i` by 4 into `i_o`, `i_i` ``.
///
/// ```
/// use kingpost_steps::Primitive;
/// use kingpost_transforms::primitives::SplitIname;
///
/// let kernel = kingpost_ir::text::parse(
///     "kernel scale\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  s: y[i] = 2.0*y[i]\n",
/// )?;
/// let after = SplitIname::new("i", 4).apply(&kernel)?;
/// assert!(after.iname("i_o").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Primitive:
    Clone
    + fmt::Debug
    + fmt::Display
    + Eq
    + Hash
    + Serialize
    + DeserializeOwned
    + JsonSchema
    + Send
    + Sync
    + 'static
{
    /// The name in recipes and schedules: `split_iname`; one of another crate has that in front, as
    /// in `acme.skew_rows`.
    const NAME: &'static str;
    /// What it does, in a sentence.
    const SUMMARY: &'static str;

    /// The verb by which schedules may call it, too: `split` for `split_iname`.
    const VERB: Option<&'static str> = None;
    /// The names that it had, and what becomes of the arguments that it took.
    const FORMER: &'static [Former] = &[];

    /// What the check found out and the edit relies on. Only the check makes one.
    type Proof;
    /// Handles to what the edit makes.
    type Made: Handles;

    /// What the check proves. Every refusal that is no matter of names and arguments names one of
    /// them.
    const OBLIGATIONS: &'static [Obligation];

    /// What it keeps of the results, if its arguments say nothing else.
    const KEEPS: Keeps = Keeps::BITS;

    /// How often instructions run after it, if its arguments say nothing else.
    const INSTANCES: Instances = Instances::Same;

    /// Whether [`Primitive::definition`] may give something.
    const DEFINES: bool = false;

    /// What it keeps of the results.
    fn keeps(&self) -> Keeps {
        Self::KEEPS
    }

    /// How often instructions run after it.
    fn instances(&self) -> Instances {
        Self::INSTANCES
    }

    /// The parameter that it gives a value for good, and the value, if those of other parameters
    /// that it needs are known.
    fn fixes(&self, _known: &dyn Fn(&str) -> Option<i64>) -> Option<(&str, i64)> {
        None
    }

    /// What computes the inputs that the step adds to `kernel`, for those that add any.
    ///
    /// # Errors
    /// What the step is refused for.
    fn definition(&self, _kernel: &Kernel) -> Result<Option<Definition>, Refusal> {
        Ok(None)
    }

    /// Proves every obligation for the kernel of `analysis`.
    ///
    /// # Errors
    /// The first obligation that is not met, with a counterexample where there is one; unknown
    /// names; arguments that make no sense.
    fn check(&self, analysis: &Analysis) -> Result<Self::Proof, Refusal>;

    /// Edits the kernel that was checked. The result need not be canonical.
    fn edit(&self, kernel: &mut Kernel, proof: &Self::Proof) -> Self::Made;

    /// How often random recipes draw it, in proportion: more often what makes room for others or
    /// seldom finds a chance.
    const WEIGHT: usize = 1;

    /// Arguments that have a chance on a kernel, for random recipes; none where it has nothing that
    /// the primitive could be tried on.
    fn draw(_kernel: &Kernel, _picks: &mut Picks<'_>) -> Option<Self> {
        None
    }

    /// The kernel as the edit would leave it, for checks that compare both. Not canonical, and
    /// nothing is checked.
    fn draft(&self, kernel: &Kernel, proof: &Self::Proof) -> Kernel {
        let mut draft = kernel.clone();
        self.edit(&mut draft, proof);
        draft
    }

    /// Checks, edits, and checks what every result must keep; returns the result in canonical form,
    /// with what was found out of it, and handles.
    ///
    /// # Errors
    /// The operation as the user wrote it, and why it is refused.
    fn apply_to(&self, analysis: &Analysis) -> Result<(Known, Self::Made), TransformError> {
        self.apply_keeping(analysis, kept)
    }

    /// [`Primitive::apply_to`] with another check of what the result keeps.
    ///
    /// # Errors
    /// As [`Primitive::apply_to`].
    fn apply_keeping(
        &self,
        analysis: &Analysis,
        kept: impl Fn(&Analysis) -> Result<(), Refusal>,
    ) -> Result<(Known, Self::Made), TransformError> {
        let refused = |cause| TransformError { operation: self.to_string(), cause };
        let apply = || -> Result<_, Refusal> {
            let proof = self.check(analysis)?;
            let mut after = analysis.kernel().clone();
            let made = self.edit(&mut after, &proof);
            // canonical first: an edit may leave a loop behind that nothing uses any more
            let after = Known::after(analysis, after);
            kept(&after.analysis())?;
            Ok((after, made))
        };
        isl::with_operation_limit(STEP_LIMIT, apply).map_err(refused)
    }

    /// The kernel after this step.
    ///
    /// # Errors
    /// As [`Primitive::apply_to`].
    fn apply(&self, kernel: &Kernel) -> Result<Kernel, TransformError> {
        self.apply_to(&Analysis::of(kernel)).map(|(after, _)| after.into_kernel())
    }
}

/// What every step keeps: the kernel is well formed, storage is shared by values that are not alive
/// together, and the placement keeps every dependence.
pub fn kept(after: &Analysis) -> Result<(), Refusal> {
    kept_unplaced(after)?;
    kept_placement(after)
}

/// What every step keeps, the placement excepted.
pub(crate) fn kept_unplaced(after: &Analysis) -> Result<(), Refusal> {
    after.verify()?;
    after.check_storage()?;
    let kernel = after.kernel();
    match kernel.vars.values().any(|var| var.storage.is_some()) {
        true => STORAGE.holds_in(kernel, Means::Empty, String::new),
        false => STORAGE.holds(Means::Nothing, || "no two temporaries share a buffer".into()),
    }
    Ok(())
}

fn kept_placement(after: &Analysis) -> Result<(), Refusal> {
    after.check_placement()?;
    let kernel = after.kernel();
    let placed = |tag| matches!(tag, AxisTag::Group(_) | AxisTag::Local(_));
    match kernel.inames.values().any(|iname| placed(iname.tag)) {
        true => PLACEMENT.holds_in(kernel, Means::Empty, String::new),
        false => PLACEMENT.holds(Means::Nothing, || "no loop runs on an axis".into()),
    }
    Ok(())
}

/// Checks the placement after several steps, within the operations of one.
pub(crate) fn placed_in_the_end(after: &Analysis) -> Result<(), Refusal> {
    isl::with_operation_limit(STEP_LIMIT, || kept_placement(after))
}

/// Checks that the tags of a kernel keep every dependence.
pub fn check_placement(kernel: &Kernel) -> Result<(), Refusal> {
    Ok(Analysis::of(kernel).check_placement()?)
}
