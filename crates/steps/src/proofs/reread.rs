//! The proof of every primitive that stores a part of a value before the rest of it is computed:
//! the rest does not read that part.

use crate::expected::Expected;
use crate::obligation::Obligation;
use crate::proofs::stale::witness;
use crate::refusal::{LostValue, Refusal};
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_ir::{InsnId, Kernel};

/// The parts of a value are those that the whole had.
pub const UNREAD: Obligation = Obligation::new(
    "unread",
    "what is computed later of a value, its index and its condition do not read what is stored of it earlier",
);

/// Instructions that store the parts of one value one after the other, where one instruction stored
/// it before.
pub struct Parts<'a> {
    /// The kernel with the parts, which nobody else sees.
    pub draft: &'a Kernel,
    /// The instructions, in textual order.
    pub insns: &'a [InsnId],
    /// How many loops were around the instruction.
    pub depth: usize,
}

impl Parts<'_> {
    /// Checks that no part reads what a part has stored in the same iteration of the loops that
    /// were around.
    ///
    /// Formula: with `o` these loops, for every part `w` and every read `r` of a part,
    /// `{ w -> r : o = o', element(w) = element(r), w before r }` is empty. The bounds of the loops
    /// around were read before the first part; those of a loop over parts and of reductions count.
    ///
    /// # Errors
    /// [`UNREAD`] not proved, with the smallest pair of that set, or a failure of isl.
    pub fn check_unread(&self, analysis: &Analysis, help: &str) -> Result<(), Refusal> {
        let Some(first) = self.insns.first() else { return Ok(()) };
        let draft = analysis.next(self.draft);
        let poly = draft.polyhedral();
        let around = poly.loops(*first).get(..self.depth).expected("loop around parts", self.draft)?;
        let is_part = |s: &&AccessSite| self.insns.contains(&s.insn);
        let is_read = |s: &&AccessSite| !s.writes() && s.bound_of.is_none_or(|l| !around.contains(&l));
        let of_var = draft.sites(self.draft.insns[*first].lhs.var);
        for write in of_var.iter().filter(is_part).filter(|s| s.writes()) {
            for read in of_var.iter().filter(is_part).filter(is_read) {
                let Some(pair) = pair_relation(poly, write, read, Order::Within(around)) else { continue };
                let found = witness(&poly.kernel, write, read, &pair.map(poly)?)?;
                UNREAD.refute(found.map(|witness| {
                    let found = format!(
                        "{} would read `{}`, in which {} would already have stored a part",
                        witness.sink, witness.element, witness.source
                    );
                    LostValue { witness, found, help: help.to_owned() }
                }))?;
            }
        }
        Ok(())
    }
}
