//! What the work-items of a group do a term ahead, so that products wait for nothing.

use super::factors::{Copy, Parts};
use super::nest::{Nests, statements};
use super::places::{Applied, Places};
use kingpost_steps::schedule::{Loop, Schedule};
use kingpost_transforms::primitives::{
    DistributeLoop, ExpandArray, MoveInsns, PeelIname, PipelineLoop, Rename, SeparateArray, WriteOut,
};

/// An iteration in parts: `reads` of the first term; products of it, with reads of the next two; what is
/// between, from `rest` on; `last` products.
pub(super) struct Ahead {
    /// What the first term is multiplied from.
    arrays: Vec<String>,
    reads: String,
    rest: String,
    last: String,
}

/// Writes out the loop over terms, in which a term is read before the products of the one before, and cuts it
/// where something comes in between.
pub(super) fn cut_terms(
    s: &mut Schedule,
    nests: &Nests,
    [sub_groups, work_items]: [&String; 2],
    places: &Places,
    parts: &Parts,
) -> Applied<Ahead> {
    let mut terms = Vec::new();
    for part in &parts.arrays {
        // its own loops have the names that its terms would get
        let derived = |name: &str| (0..places.terms).map(|k| format!("{name}_{k}")).collect();
        let name = s.fresh_with(&format!("{part}_of"), derived);
        s.make(Rename::var(part, &name))?;
        s.make(ExpandArray::new(&name, [sub_groups, work_items]))?;
        s.make(ExpandArray::new(&name, [&nests.terms]))?;
        terms.push(name);
    }
    s.make(WriteOut::new(&nests.terms))?;
    let products = statements(s.kernel(), work_items, &nests.sum.held);
    let mut arrays = Vec::new();
    let mut reads: Vec<Vec<String>> = Vec::new();
    for term in &terms {
        let made = s.make(SeparateArray::new(term, 0))?;
        arrays.extend(made.first().map(|array| array.name().to_owned()));
        reads.resize(made.len(), Vec::new());
        for (of_term, array) in reads.iter_mut().zip(&made) {
            of_term.extend(statements(s.kernel(), work_items, array.name()));
        }
    }
    for (read, product) in reads.iter().skip(1).zip(&products) {
        s.make(MoveInsns::before(read, product))?;
    }
    let second = reads.get(1).and_then(|read| read.first());
    let cuts = second.into_iter().chain(products.get(1)).chain(products.last());
    let within = s.make(DistributeLoop::new(work_items, cuts))?;
    let around = s.make(DistributeLoop::new(sub_groups, within.iter().map(Loop::name)))?;
    let made = <[Loop; 3]>::try_from(around).ok();
    let [_, rest, last] =
        s.expected(made, "loop for each part of an iteration")?.map(|l| l.name().to_owned());
    Ok(Ahead { arrays, reads: sub_groups.clone(), rest, last })
}

impl Ahead {
    /// Reads the first term of the next tile before the last products of this one, and copies tiles after the
    /// first products: those need neither.
    ///
    /// The last iteration reads nothing ahead, and stands after the loop: under a condition, the products after
    /// it are scheduled worse. 8 by 8 entries have 1164 instead of 1172 instructions an iteration, and 0 instead
    /// of 40 products with three registers of a bank (NVRTC 13.0, 2026-11-30).
    pub(super) fn run(&self, s: &mut Schedule, nests: &Nests, copies: &[Copy]) -> Applied<()> {
        s.make(PipelineLoop::new(&nests.tiles, &self.arrays).with_buffers(1))?;
        s.make(MoveInsns::before([&self.reads], &self.last))?;
        let first = copies.iter().filter_map(|copy| copy.turns.first());
        s.make(MoveInsns::before(first, &self.rest))?;
        s.make(PeelIname::last(&nests.tiles, 1))?;
        Ok(())
    }
}
