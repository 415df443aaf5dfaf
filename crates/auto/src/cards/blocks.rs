//! Long sums in blocks: sums of blocks on groups of their own, which the next launch adds. Running totals likewise.

use crate::draft::{Draft, Tried};
use crate::program::{Level, Part, Reader, Work};
use kingpost_algebra::primitives::FactorUpdate;
use kingpost_ir::{AddressSpace, AxisTag, InameId, Node};
use kingpost_steps::{Refusal, TransformError};
use kingpost_transforms::primitives::{
    DistributeLoop, ExpandArray, MoveInsns, ParalleliseScan, RealiseScan, SetAddressSpace, SplitIname,
    SplitLaunch, Tag,
};

/// Terms of a block of a sum.
const TERMS: i64 = 128;

/// Terms from which on a sum is long.
const LONG: f64 = 1024.0;

/// Sums from which on there is one for each work-item that a card runs at a time.
const MANY: f64 = 65536.0;

/// Terms of a block of running totals, those of a work-item, and work-items that add a block up.
const BLOCK: i64 = 512;
const OWN: i64 = 8;
const ITEMS: i64 = 64;

/// A long sum: the instruction, and the loops around it with that along the terms as the last one.
struct LongSum {
    insn: String,
    loops: Vec<String>,
}

impl Draft<'_> {
    /// Adds up long sums in blocks where there are few of them, and neighbours read neighbours.
    ///
    /// # Errors
    /// A step that is refused; a program without such sums.
    pub(super) fn sum_in_blocks(&mut self) -> Tried {
        let sums = self.long_sums();
        if sums.is_empty() {
            return Err(none("sum in blocks", "no sum along columns is long, and one of few"));
        }
        for LongSum { insn, loops } in sums {
            let Some((along, around)) = loops.split_last() else { continue };
            let [block, _] = self.make(SplitIname::new(along, TERMS))?;
            let derived = |name: &str| vec![format!("{name}_init"), format!("{name}_sum")];
            let part = self.schedule.fresh_with(&format!("{insn}_part"), derived);
            let made = self.make(FactorUpdate::new(insn, [block.name()]).into_temporary(&part))?;
            self.make(SetAddressSpace::new(&part, AddressSpace::Global))?;
            self.make(ExpandArray::new(part, around.to_vec()))?;
            let Some(mut rest) = made.loops.last().map(|l| l.name().to_owned()) else { continue };
            for outer in around.iter().rev() {
                let parts = self.make(DistributeLoop::new(outer, [&rest]))?;
                rest = parts.first().map_or(rest, |l| l.name().to_owned());
            }
        }
        Ok(())
    }

    fn long_sums(&self) -> Vec<LongSum> {
        let parts = Reader::new(self.kernel(), self.params).parts();
        let mut found = Vec::new();
        for loops in self.innermost() {
            let Some((along, _)) = loops.split_last() else { continue };
            let Some(iname) = self.kernel().iname(along) else { continue };
            let insns = self.insns(along);
            let [insn] = insns.as_slice() else { continue };
            let insn = &self.kernel().insns[*insn];
            let mut around = Vec::new();
            let Some(work) = only_work(&parts, iname, &mut around) else { continue };
            let Some((level, outer)) = around.split_last() else { continue };
            let adds = insn.update_op().is_some() && work.write.stride(iname) == 0.0;
            let is_column = work.reads.iter().any(|read| read.stride(iname).abs() > read.bytes);
            let count: f64 = outer.iter().map(|l| l.trips).product();
            let is_each = outer.iter().all(|l| work.write.stride(l.iname) != 0.0);
            if adds && is_column && is_each && level.trips >= LONG && count < MANY {
                found.push(LongSum { insn: insn.name.clone(), loops });
            }
        }
        found
    }

    /// Runs a loop of running totals in three launches: sums of blocks, the totals of these by one group, and
    /// those in each block.
    ///
    /// # Errors
    /// A step that is refused; a program that is no such loop.
    pub(super) fn scan_in_blocks(&mut self) -> Tried {
        let nothing = || none("scan in blocks", "the program is no loop of running totals");
        let [node @ Node::Loop(_, body)] = self.kernel().body.as_slice() else { return Err(nothing()) };
        let [Node::Insn(insn)] = body.as_slice() else { return Err(nothing()) };
        let (all, insn) = (self.name_of(node), self.kernel().insns[*insn].name.clone());
        let (_, made) = self.make(RealiseScan::new(insn))?;
        let [start, update, ..] = made.as_slice() else { return Err(nothing()) };
        let [block, item] = self.make(SplitIname::new(all, BLOCK))?;
        self.make(ParalleliseScan::new(block.name(), update.name()).in_global_memory())?;
        let names: Vec<String> = self.kernel().body.iter().map(|node| self.name_of(node)).collect();
        let Some([sums, totals, _]) = names.last_chunk::<3>() else { return Err(nothing()) };
        self.make(MoveInsns::before([start.name()], totals))?;
        self.make(SplitLaunch::new([start.name(), block.name()]))?;
        self.make(Tag::all([sums.as_str(), block.name()], AxisTag::Group(0)))?;
        let inner = self.body(sums).iter().find(|node| matches!(node, Node::Loop(..)));
        let inner = inner.map(|node| self.name_of(node)).ok_or_else(nothing)?;
        self.share_sums(&inner, ITEMS)?;
        let adds = self.body(totals).last().map(|node| self.name_of(node)).ok_or_else(nothing)?;
        let [_, place] = self.make(SplitIname::new(totals, ITEMS))?;
        self.make(ParalleliseScan::new(place.name(), adds).by_work_items(AxisTag::Local(0)))?;
        let [own, _] = self.make(SplitIname::new(item.name(), OWN))?;
        self.make(ParalleliseScan::new(own.name(), update.name()).by_work_items(AxisTag::Local(0)))?;
        Ok(())
    }
}

/// What the only instruction in a loop does, with the loops around it, that one last.
fn only_work<'p>(parts: &'p [Part], iname: InameId, around: &mut Vec<&'p Level>) -> Option<&'p Work> {
    for part in parts {
        let Part::Loop(level, body) = part else { continue };
        around.push(level);
        if let ([Part::Insn(work)], true) = (body.as_slice(), level.iname == iname) {
            return Some(work);
        }
        if let Some(work) = only_work(body, iname, around) {
            return Some(work);
        }
        around.pop();
    }
    None
}

pub(super) fn none(operation: &str, found: &str) -> TransformError {
    let cause = Refusal::argument("loops", found, "such a loop");
    TransformError { operation: operation.into(), cause }
}
