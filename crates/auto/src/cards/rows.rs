//! Rows in the registers of a group: each work-item holds elements that lie a group's length apart, whose sums go
//! through a sub-group by shuffles and through the group in local memory. The length of rows is fixed, as in a kernel that is compiled
//! for it.

use crate::draft::{Draft, Tried};
use kingpost_algebra::primitives::FactorUpdate;
use kingpost_ir::{AddressSpace, Affine, Atom, AxisTag, InameId, Node, VarKind};
use kingpost_steps::{Refusal, TransformError};
use kingpost_transforms::primitives::{
    FixParameter, InterchangeInames, PrefetchArray, ReduceInTree, SetAddressSpace, SplitArrayAxis,
    SplitIname, Tag,
};

/// Work-items of a sub-group.
const LANES: i64 = 32;

/// Elements of a row that a work-item holds, at most.
const HELD: i64 = 32;

/// A loop over rows that holds nothing but loops along them.
struct Rows {
    row: String,
    /// Their length: a parameter.
    length: String,
    along: Vec<String>,
    /// Arrays that several loops read along a row.
    again: Vec<String>,
}

/// The loops over a row's elements: those of a work-item, sub-groups and lanes.
#[derive(Default)]
struct Places {
    turns: Vec<String>,
    sub_groups: Vec<String>,
    lanes: Vec<String>,
}

impl Draft<'_> {
    /// Gives each row to a group of some sub-groups.
    ///
    /// # Errors
    /// A step that is refused; another program; rows that the group has no whole number of turns for.
    pub(super) fn hold_rows(&mut self, sub_groups: i64) -> Tried {
        let rows = self.rows().ok_or_else(no_rows)?;
        let items = LANES * sub_groups;
        let length = self.params.get(&rows.length).copied().filter(|n| n % items == 0 && n / items <= HELD);
        self.make(FixParameter::new(&rows.length, length.filter(|n| *n > 0).ok_or_else(no_rows)?))?;
        let mut along = rows.along;
        for var in rows.again {
            let derived = |name: &str| vec![format!("{name}_0"), format!("fetch_{name}")];
            let held = self.schedule.fresh_with(&format!("{var}_row"), derived);
            let copy = PrefetchArray::new(var, &rows.row, AddressSpace::Private).into_temporary(&held);
            along.extend(self.make(copy)?.loops.iter().map(|l| l.name().to_owned()));
            self.make(SplitArrayAxis::new(&held, 0, items))?;
            self.make(SplitArrayAxis::new(&held, 1, LANES))?;
        }
        let mut places = Places::default();
        for l in along {
            let [turn, within] = self.make(SplitIname::new(l, items))?;
            let [sub_group, lane] = self.make(SplitIname::new(within.name(), LANES))?;
            for inner in [&sub_group, &lane] {
                self.make(InterchangeInames::new(turn.name(), inner.name()))?;
            }
            self.sum_in_sub_groups(turn.name(), sub_group.name(), lane.name())?;
            places.turns.push(turn.name().to_owned());
            places.sub_groups.push(sub_group.name().to_owned());
            places.lanes.push(lane.name().to_owned());
        }
        self.make(Tag::all(places.lanes, AxisTag::Local(0)))?;
        self.make(Tag::all(places.sub_groups, AxisTag::Local(1)))?;
        self.make(Tag::all(places.turns, AxisTag::Unrolled))?;
        self.make(Tag::new(rows.row, AxisTag::Group(0)))
    }

    /// Adds up what loops sum: of a work-item, of a sub-group, of the group.
    fn sum_in_sub_groups(&mut self, turn: &str, sub_group: &str, lane: &str) -> Tried {
        let kernel = self.kernel();
        let Some(along) = kernel.iname(lane) else { return Ok(()) };
        let insns = self.insns(turn).into_iter().map(|s| &kernel.insns[s]);
        let sums: Vec<String> = insns
            .filter(|insn| insn.update_op().is_some() && !insn.lhs.index.iter().any(|e| e.mentions(along)))
            .map(|insn| insn.name.clone())
            .collect();
        for sum in sums {
            let derived = |name: &str| vec![format!("{name}_init"), format!("{name}_sum")];
            let own = self.schedule.fresh_with(&format!("{sum}_own"), derived);
            let made = self.make(FactorUpdate::new(&sum, [sub_group, lane]).into_temporary(own))?;
            let [.., across, lanes] = made.loops.as_slice() else { continue };
            let joined = self.schedule.fresh_with(&format!("{sum}_joined"), derived);
            let [_, total] = &made.insns;
            let step = FactorUpdate::new(total.name(), [across.name()]).into_temporary(&joined);
            self.make(step)?;
            self.make(SetAddressSpace::new(joined, AddressSpace::Local))?;
            self.make(Tag::new(across.name(), AxisTag::Local(1)))?;
            self.make(ReduceInTree::new(lanes.name()).by_work_items(AxisTag::Local(0)).by_shuffles())?;
        }
        Ok(())
    }

    /// The rows of a program that goes along each of them more than once.
    fn rows(&self) -> Option<Rows> {
        let kernel = self.kernel();
        let [row @ Node::Loop(iname, body)] = kernel.body.as_slice() else { return None };
        let mut found =
            Rows { row: self.name_of(row), length: String::new(), along: Vec::new(), again: Vec::new() };
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for node in body {
            let Node::Loop(l, inner) = node else { continue };
            let length = self.parameter_of(*l)?;
            if inner.iter().any(|node| matches!(node, Node::Loop(..)))
                || !(found.along.is_empty() || length == found.length)
            {
                return None;
            }
            found.length = length;
            found.along.push(self.name_of(node));
            let mut here = Vec::new();
            for insn in self.insns(&self.name_of(node)).into_iter().map(|s| &kernel.insns[s]) {
                written.push(insn.lhs.var);
                for access in insn.reads() {
                    let last = access.index.last().and_then(|e| e.as_affine());
                    let along = last.is_some_and(|e| e == Affine::iname(*l));
                    let argument = matches!(kernel.vars[access.var].kind, VarKind::Argument(_));
                    let of_row = access.index.iter().any(|e| e.mentions(*iname));
                    if along && argument && of_row && !here.contains(&access.var) {
                        here.push(access.var);
                    }
                }
            }
            read.extend(here);
        }
        let twice = |v: &kingpost_ir::VarId| read.iter().filter(|other| *other == v).count() > 1;
        let mut again: Vec<_> = read.iter().filter(|v| twice(v) && !written.contains(v)).copied().collect();
        again.sort();
        again.dedup();
        found.again = again.into_iter().map(|v| kernel.vars[v].name.clone()).collect();
        (!found.again.is_empty()).then_some(found)
    }

    /// The parameter up to which a loop goes from zero.
    fn parameter_of(&self, l: InameId) -> Option<String> {
        let kernel = self.kernel();
        let range = kernel.inames[l].domain.as_guarded_range(l)?;
        let mut of = None;
        range.hi.for_each_symbol(&mut |atom| {
            if let Atom::Var(v) = atom {
                of = Some(*v);
            }
        });
        let whole = of.filter(|v| {
            range.lo.as_constant() == Some(0) && range.guard.is_empty() && range.hi == Affine::var(*v)
        })?;
        matches!(kernel.vars[whole].kind, VarKind::Param).then(|| kernel.vars[whole].name.clone())
    }
}

fn no_rows() -> TransformError {
    let cause = Refusal::argument(
        "rows",
        "no loops go along rows again whose length is a multiple of the work-items of a group",
        "such rows, of at most 32 elements for each work-item",
    );
    TransformError { operation: "hold rows".into(), cause }
}
