//! Sums on the work-items of a group: each adds up a part, and a tree joins the parts.

use super::map::coalesced;
use super::spread::{Cover, Site};
use crate::draft::{Draft, Tried, is_sequential};
use crate::program::{Level, Part, Reader};
use kingpost_algebra::primitives::FactorUpdate;
use kingpost_ir::{AxisTag, Node};
use kingpost_steps::tree::insns_of;
use kingpost_transforms::primitives::{InterchangeInames, ReduceInTree, SplitIname, Tag};

/// Work-items that share the sum of a row: four sub-groups, of which several groups are on a unit.
const LANES: i64 = 128;

/// Work-items that share the sums of a launch of one group.
const ITEMS: i64 = 256;

impl Draft<'_> {
    /// Whether innermost loops add up what lies side by side, and the iterations of a cover do not.
    pub(super) fn sums_rows(&self, cover: &Cover) -> bool {
        fn gain(draft: &Draft<'_>, cover: &Cover, parts: &[Part], around: &mut Vec<Level>) -> f64 {
            let mut sum = 0.0;
            for part in parts {
                match part {
                    Part::Loop(level, body) => {
                        around.push(level.clone());
                        sum += gain(draft, cover, body, around);
                        around.pop();
                    }
                    Part::Insn(work) => {
                        let name = |l: &&Level| cover.contains(&draft.kernel().inames[l.iname].name);
                        let (Some(own), Some(inner)) = (around.iter().find(name), around.last()) else {
                            continue;
                        };
                        let times: f64 = around.iter().map(|l| l.trips.max(1.0)).product();
                        let adds = work.write.stride(inner.iname) == 0.0 && work.reads.contains(&work.write);
                        if own.iname != inner.iname && adds {
                            sum += times * (coalesced(work, inner) - coalesced(work, own));
                        }
                    }
                }
            }
            sum
        }
        let parts = Reader::new(self.kernel(), self.params).parts();
        gain(self, cover, &parts, &mut Vec::new()) > 0.0
    }

    /// Gives every iteration of a cover to the work-items of a group, which share its sums.
    ///
    /// # Errors
    /// A step that is refused.
    pub(super) fn sum_by_lanes(&mut self, cover: &Cover) -> Tried {
        for l in cover {
            for inner in self.sums_inside(self.body(l)) {
                self.share_sums(&inner, LANES)?;
            }
            for inner in self.idle_inside(self.body(l)) {
                self.share_loop(&inner, LANES)?;
            }
        }
        self.make(Tag::all(cover.clone(), AxisTag::Group(0)))
    }

    /// Shares the sums of a launch among the work-items of one group.
    ///
    /// # Errors
    /// A step that is refused.
    pub(super) fn sum_in_group(&mut self, site: &Site) -> Tried {
        for inner in self.sums_inside(self.statements(site)) {
            self.share_sums(&inner, ITEMS)?;
        }
        for inner in self.idle_inside(self.statements(site)) {
            self.share_loop(&inner, ITEMS)?;
        }
        Ok(())
    }

    /// The innermost loops without work-items.
    fn idle_inside(&self, nodes: &[Node]) -> Vec<String> {
        let kernel = self.kernel();
        let mut found = Vec::new();
        for node in nodes {
            let Node::Loop(iname, body) = node else { continue };
            if body.iter().any(|node| matches!(node, Node::Loop(..))) {
                let items = matches!(kernel.inames[*iname].tag, AxisTag::Local(_));
                found.extend(if items { Vec::new() } else { self.idle_inside(body) });
            } else if is_sequential(kernel, *iname) {
                found.push(kernel.inames[*iname].name.clone());
            }
        }
        found
    }

    /// Shares the iterations of a loop among some work-items, if these wait for nothing.
    fn share_loop(&mut self, name: &str, items: i64) -> Tried {
        let before = self.schedule.clone();
        let shared = self
            .make(SplitIname::new(name, items))
            .and_then(|[_, item]| self.make(Tag::new(item.name(), AxisTag::Local(0))));
        if let Err(refused) = shared {
            self.pass(refused)?;
            self.schedule = before;
        }
        Ok(())
    }

    /// The innermost loops that do nothing but add up.
    fn sums_inside(&self, nodes: &[Node]) -> Vec<String> {
        let kernel = self.kernel();
        let mut found = Vec::new();
        for node in nodes {
            let Node::Loop(iname, body) = node else { continue };
            let insns = insns_of(body);
            let adds = |s: &kingpost_ir::InsnId| {
                let insn = &kernel.insns[*s];
                insn.update_op().is_some() && !insn.lhs.index.iter().any(|e| e.mentions(*iname))
            };
            if body.iter().any(|node| matches!(node, Node::Loop(..))) {
                found.extend(self.sums_inside(body));
            } else if is_sequential(kernel, *iname) && insns.iter().all(adds) {
                found.push(kernel.inames[*iname].name.clone());
            }
        }
        found
    }

    /// Lets each of some work-items add up a part of the sums of a loop, and joins the parts.
    pub(super) fn share_sums(&mut self, name: &str, items: i64) -> Tried {
        let kernel = self.kernel();
        let insns: Vec<String> = self.insns(name).into_iter().map(|s| kernel.insns[s].name.clone()).collect();
        let [turn, item] = self.make(SplitIname::new(name, items))?;
        self.make(InterchangeInames::new(turn.name(), item.name()))?;
        for insn in &insns {
            let derived = |name: &str| vec![format!("{name}_init"), format!("{name}_sum")];
            let part = self.schedule.fresh_with(&format!("{insn}_part"), derived);
            let made = self.make(FactorUpdate::new(insn, [item.name()]).into_temporary(part))?;
            if let Some(terms) = made.loops.last() {
                self.make(ReduceInTree::new(terms.name()).by_work_items(AxisTag::Local(0)))?;
            }
        }
        self.make(Tag::new(item.name(), AxisTag::Local(0)))
    }
}
