//! Running totals in one launch: groups start in order, and wait for the sums of the blocks before theirs.

use super::blocks::none;
use crate::draft::{Draft, Tried};
use kingpost_algebra::primitives::FactorUpdate;
use kingpost_ir::{AddressSpace, AxisTag, Node};
use kingpost_steps::TransformError;
use kingpost_transforms::primitives::{
    AliasStorage, BufferWrites, LaunchHint, MoveInsns, PadArray, ParalleliseScan, PrefetchArray, RealiseScan,
    ReduceInTree, SplitArrayAxis, SplitIname, Tag,
};

/// Work-items of a group, which are as many as the sums of a chunk.
const ITEMS: i64 = 256;

/// Values of a work-item.
const VALUES: i64 = 32;

fn nothing() -> TransformError {
    none("scan in one launch", "the program is no loop of running totals")
}

impl Draft<'_> {
    /// Runs a loop of running totals in one launch.
    ///
    /// # Errors
    /// A step that is refused; a program that is no such loop.
    pub(super) fn scan_in_one_launch(&mut self) -> Tried {
        let [node @ Node::Loop(_, body)] = self.kernel().body.as_slice() else { return Err(nothing()) };
        let [Node::Insn(insn)] = body.as_slice() else { return Err(nothing()) };
        let (all, store) = (self.name_of(node), self.kernel().insns[*insn].name.clone());
        let (_, made) = self.make(RealiseScan::new(&store))?;
        let [_, update, ..] = made.as_slice() else { return Err(nothing()) };
        let [block, item] = self.make(SplitIname::new(all, ITEMS * VALUES))?;
        self.make(ParalleliseScan::new(block.name(), update.name()).in_chunks(ITEMS))?;
        self.make(LaunchHint::ordered_groups())?;
        let made: Vec<String> = self.body(block.name()).iter().map(|node| self.name_of(node)).collect();
        let [_, own, _, start, _, earlier, end, _] = <[String; 8]>::try_from(made).map_err(|_| nothing())?;
        let [parts, _] = self.make(SplitIname::new(own, VALUES))?;
        for summed in [parts.name(), &earlier] {
            self.add_by_items(summed)?;
        }
        let [runs, _] = self.make(SplitIname::new(item.name(), VALUES))?;
        self.make(ParalleliseScan::new(runs.name(), update.name()).by_work_items(AxisTag::Local(0)))?;
        // what waits for others comes after all that does not
        let names = self.body(block.name()).iter().map(|node| self.name_of(node));
        let mut waits: Vec<String> = names.skip_while(|name| *name != start).collect();
        waits.truncate(waits.iter().position(|name| *name == end).map_or(0, |k| k + 1));
        self.make(MoveInsns::before(waits, runs.name()))?;
        self.pass_through_local_memory(block.name(), update.name(), &store)?;
        self.write_out_constant()?;
        self.make(Tag::new(block.name(), AxisTag::Group(0)))
    }

    /// Adds the terms of a loop by a work-item each, and joins them.
    fn add_by_items(&mut self, name: &str) -> Tried {
        let insns = self.insns(name).into_iter().map(|insn| &self.kernel().insns[insn]);
        let update = insns.filter(|insn| insn.update_op().is_some()).map(|insn| insn.name.clone()).next();
        let update = update.ok_or_else(nothing)?;
        let derived = |name: &str| vec![format!("{name}_init"), format!("{name}_sum")];
        let part = self.schedule.fresh_with(&format!("{update}_part"), derived);
        let made = self.make(FactorUpdate::new(update, [name]).into_temporary(part))?;
        let terms = made.loops.last().map(|l| l.name().to_owned()).ok_or_else(nothing)?;
        self.make(ReduceInTree::new(terms).by_work_items(AxisTag::Local(0)))?;
        self.make(Tag::new(name, AxisTag::Local(0)))
    }

    /// Neighbouring work-items read and write neighbours; each has a row in local memory, in other banks than the
    /// others.
    fn pass_through_local_memory(&mut self, block: &str, update: &str, store: &str) -> Tried {
        let kernel = self.kernel();
        let written = kernel.insns.values().find(|insn| insn.name == store).map(|insn| insn.lhs.var);
        let written = written.map(|var| kernel.vars[var].name.clone()).ok_or_else(nothing)?;
        let mut rows = Vec::new();
        for (var, _) in self.reads_of(update, |_| true) {
            let tile = self.schedule.fresh(&format!("{var}_tile"));
            let step = PrefetchArray::new(&var, block, AddressSpace::Local).into_temporary(&tile);
            self.make(step.by_work_items([ITEMS]))?;
            rows.push(tile);
        }
        let tile = self.schedule.fresh(&format!("{written}_tile"));
        let step = BufferWrites::new(&written, block, AddressSpace::Local).into_temporary(&tile);
        self.make(step.by_work_items([ITEMS]))?;
        rows.push(tile);
        for tile in &rows {
            self.make(SplitArrayAxis::new(tile, 0, VALUES))?;
            self.make(PadArray::new(tile, 1, 1))?;
        }
        // one array, where what is read once lies where results go
        let [.., read, result] = rows.as_slice() else { return Err(nothing()) };
        let storage = self.schedule.fresh("values");
        match self.make(AliasStorage::new([read, result], storage)) {
            Ok(()) => Ok(()),
            Err(refused) => self.pass(refused),
        }
    }
}
