//! Updates at places that data says, as in a histogram: each group has counts of its own in local memory.

use crate::draft::{Draft, Tried};
use kingpost_ir::{AddressSpace, AxisTag, Node};
use kingpost_steps::{Refusal, TransformError};
use kingpost_transforms::primitives::{BufferWrites, InterchangeInames, MakeAtomic, SplitIname, Tag};

/// Work-items of a group, and iterations of each.
const ITEMS: i64 = 256;
const ROUNDS: i64 = 8;

impl Draft<'_> {
    /// Shares a loop that is all of the program, and updates an array where data says, among groups.
    ///
    /// # Errors
    /// A step that is refused; another program.
    pub(super) fn count_by_groups(&mut self) -> Tried {
        let Some((l, insn, var)) = self.counted() else {
            let cause =
                Refusal::argument("loops", "data says no place of an update", "a loop of such updates");
            return Err(TransformError { operation: "count by groups".into(), cause });
        };
        self.make(MakeAtomic::insn(insn))?;
        let [block, item] = self.make(SplitIname::new(&l, ITEMS * ROUNDS))?;
        let own = self.schedule.fresh(&format!("{var}_own"));
        let step = BufferWrites::new(&var, block.name(), AddressSpace::Local).into_temporary(own);
        self.make(step.by_work_items([ITEMS]))?;
        let [round, lane] = self.make(SplitIname::new(item.name(), ITEMS))?;
        self.make(InterchangeInames::new(round.name(), lane.name()))?;
        self.make(Tag::new(block.name(), AxisTag::Group(0)))?;
        self.make(Tag::new(lane.name(), AxisTag::Local(0)))
    }

    /// The loop, the instruction and the array.
    fn counted(&self) -> Option<(String, String, String)> {
        let kernel = self.kernel();
        let [node @ Node::Loop(_, body)] = kernel.body.as_slice() else { return None };
        let [Node::Insn(insn)] = body.as_slice() else { return None };
        let insn = &kernel.insns[*insn];
        let by_data = insn.lhs.index.iter().any(|e| e.as_affine().is_none());
        (by_data && insn.update_op().is_some())
            .then(|| (self.name_of(node), insn.name.clone(), kernel.vars[insn.lhs.var].name.clone()))
    }
}
