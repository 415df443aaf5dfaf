//! What the work-items of a group do a term ahead, so that products wait for nothing.

use super::factors::{Copy, Factor, Parts};
use super::nest::{Nests, statements};
use super::places::{Applied, Places};
use kingpost_ir::AxisTag;
use kingpost_steps::schedule::{Loop, Schedule};
use kingpost_transforms::primitives::{
    DistributeLoop, ExpandArray, MoveInsns, PeelIname, PipelineLoop, Rename, SeparateArray, SplitIname, Tag,
    WriteOut,
};

/// Turns of a copy that come together, and the terms from one such group to the next.
const TOGETHER: i64 = 2;
const APART: usize = 3;

/// An iteration in parts: `reads` of the first term; its products, with reads of the next two
/// terms; what begins with each of `rest`; `last` products.
pub(super) struct Ahead {
    /// What the first term is multiplied from.
    arrays: Vec<String>,
    reads: String,
    rest: Vec<String>,
    last: String,
    /// What copies tiles, one for each of `rest`, or more for the last one.
    copies: Vec<String>,
}

/// Writes out the loop over terms, in which a term is read before the products of the one before,
/// and cuts it where something comes in between.
pub(super) fn cut_terms(
    s: &mut Schedule,
    nests: &Nests,
    [sub_groups, work_items]: [&String; 2],
    places: &Places,
    parts: &Parts,
    tiles: &[(&Factor, &Copy)],
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
    let copies = groups(s, nests, tiles)?;
    let second = reads.get(1).and_then(|read| read.first());
    let before_last = products.len().saturating_sub(1);
    let later = reads.iter().take(before_last).skip(2 + APART).step_by(APART).filter_map(|read| read.first());
    let between = products.get(1).into_iter().chain(later).take(copies.len());
    let cuts = second.into_iter().chain(between).chain(products.last());
    let within = s.make(DistributeLoop::new(work_items, cuts))?;
    let around = s.make(DistributeLoop::new(sub_groups, within.iter().map(Loop::name)))?;
    let mut rest: Vec<String> = around.iter().skip(1).map(|l| l.name().to_owned()).collect();
    let last = rest.pop();
    let last = s.expected(last, "loop for the last products")?;
    Ok(Ahead { arrays, reads: sub_groups.clone(), rest, last, copies })
}

/// Makes statements of groups of turns of the copies.
fn groups(s: &mut Schedule, nests: &Nests, tiles: &[(&Factor, &Copy)]) -> Applied<Vec<String>> {
    let mut groups = Vec::new();
    for (factor, copy) in tiles {
        for turn in copy.turns.iter().take(1) {
            // what is unrolled is not split
            s.make(Tag::new(turn, AxisTag::Sequential))?;
            let [together, one] = s.make(SplitIname::new(turn, TOGETHER))?;
            s.make(Tag::new(one.name(), AxisTag::Unrolled))?;
            s.make(WriteOut::new(together.name()))?;
        }
        groups.extend(statements(s.kernel(), &nests.tiles, &factor.tile));
    }
    Ok(groups)
}

impl Ahead {
    /// Reads the first term of the next tile before the last products of this one, and copies tiles
    /// between products, a few turns at a time: all at once, they wait for each other (8 by 8
    /// entries, 4096 rows on an H200: 0.97 of cuBLAS after the first products, 1.01 in three
    /// groups, 2026-11-30).
    ///
    /// The last iteration reads nothing ahead, and stands after the loop: under a condition, the
    /// products after it are scheduled worse, 40 instead of none with three registers of a bank
    /// (NVRTC 13.0).
    pub(super) fn run(&self, s: &mut Schedule, nests: &Nests) -> Applied<()> {
        s.make(PipelineLoop::new(&nests.tiles, &self.arrays).with_buffers(1))?;
        s.make(MoveInsns::before([&self.reads], &self.last))?;
        for (k, copy) in self.copies.iter().enumerate() {
            if let Some(rest) = self.rest.get(k).or(self.rest.last()) {
                s.make(MoveInsns::before([copy], rest))?;
            }
        }
        s.make(PeelIname::last(&nests.tiles, 1))?;
        Ok(())
    }
}
