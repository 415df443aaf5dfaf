//! Random tags on random programs: what a placement accepts is free of races, by enumeration.

use super::placed;
use crate::deps::tests::trace::{Event, Touch, Trace};
use crate::placement::{Barrier, PlacementError, Scope};
use kingpost_interp::Memory;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::ids::{InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Iname, Kernel, Node, SubGroup, VarKind, WriteOp};
use kingpost_sample::{SampleConfig, arbitrary_kernel, config, is_long_run};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};
use std::cell::Cell;
use std::collections::BTreeMap;

/// Where an instance runs along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    At(i64),
    Everywhere,
}

struct Launch<'a> {
    kernel: &'a Kernel,
    memory: &'a Memory,
    loops: Vec<Vec<InameId>>,
    /// Of groups and of work-items, by the launch.
    axes: BTreeMap<Option<InameId>, [Vec<AxisTag>; 2]>,
    barriers: &'a [Barrier],
}

impl<'a> Launch<'a> {
    fn new(kernel: &'a Kernel, memory: &'a Memory, barriers: &'a [Barrier]) -> Self {
        let mut order = kernel.schedule();
        order.sort();
        let loops: Vec<Vec<InameId>> = order.into_iter().map(|(_, loops)| loops).collect();
        let mut axes: BTreeMap<_, [Vec<AxisTag>; 2]> = BTreeMap::new();
        for around in &loops {
            let [groups, items] = axes.entry(kernel.launch_among(around)).or_default();
            for tag in around.iter().map(|l| kernel.inames[*l].tag) {
                match tag {
                    AxisTag::Group(_) if !groups.contains(&tag) => groups.push(tag),
                    AxisTag::Local(_) if !items.contains(&tag) => items.push(tag),
                    _ => {}
                }
            }
        }
        Self { kernel, memory, loops, axes, barriers }
    }

    fn groups(&self, event: &Event) -> &[AxisTag] {
        &self.axes[&self.kernel.launch_among(self.loops(event.insn))][0]
    }

    fn items(&self, event: &Event) -> &[AxisTag] {
        &self.axes[&self.kernel.launch_among(self.loops(event.insn))][1]
    }

    /// The launch in which an instance runs: the loop of launches, and the values up to it.
    fn launch<'e>(&self, event: &'e Event) -> Option<(InameId, &'e [i64])> {
        let loops = self.loops(event.insn);
        let launch = self.kernel.launch_among(loops)?;
        let depth = loops.iter().position(|l| *l == launch)?;
        Some((launch, &event.point[..=depth]))
    }

    fn loops(&self, insn: InsnId) -> &[InameId] {
        use kingpost_ir::ids::Id;
        &self.loops[insn.index()]
    }

    fn place(&self, event: &Event, axis: AxisTag) -> Place {
        let loops = self.loops(event.insn);
        let Some(k) = loops.iter().position(|l| self.kernel.inames[*l].tag == axis) else {
            return match (self.kernel.vars[self.kernel.insns[event.insn].lhs.var].space, axis) {
                (AddressSpace::Private, _) | (AddressSpace::Local, AxisTag::Group(_)) => Place::Everywhere,
                _ => Place::At(0),
            };
        };
        let value = |atom: &Atom| match atom {
            Atom::Iname(i) => loops.iter().position(|l| l == i).map(|k| event.point[k]),
            Atom::Var(v) => self.memory.get_param(&self.kernel.vars[*v].name),
            Atom::Floor(..) => None,
        };
        let lower = self.kernel.inames[loops[k]].domain.as_range(loops[k]);
        let lower = lower.map_or(0, |(lo, _)| lo.eval(&mut |a| value(a)).expect("parametric"));
        Place::At(event.point[k] - lower)
    }

    fn same(&self, a: &Event, b: &Event, axes: &[AxisTag]) -> bool {
        axes.iter()
            .all(|x| matches!((self.place(a, *x), self.place(b, *x)), (Place::At(p), Place::At(q)) if p == q))
    }

    /// Whether a value of the first is there wherever the second runs.
    fn sees(&self, a: &Event, b: &Event, axes: &[AxisTag]) -> bool {
        axes.iter().all(|x| {
            let (p, q) = (self.place(a, *x), self.place(b, *x));
            p == Place::Everywhere || p == q
        })
    }

    /// Whether some place of the first is in the same group as some place of the second.
    fn groups_meet(&self, a: &Event, b: &Event) -> bool {
        self.groups(a).iter().all(|x| match (self.place(a, *x), self.place(b, *x)) {
            (Place::At(p), Place::At(q)) => p == q,
            _ => true,
        })
    }

    fn common(&self, a: &Event, b: &Event) -> Vec<(AxisTag, i64, i64, InameId)> {
        let loops = self.loops(a.insn).iter().zip(self.loops(b.insn)).take_while(|(x, y)| x == y);
        loops
            .zip(a.point.iter().zip(&b.point))
            .map(|((l, _), (p, q))| (self.kernel.inames[*l].tag, *p, *q, *l))
            .collect()
    }

    fn barrier_between(&self, a: &Event, b: &Event) -> bool {
        let common = self.common(a, b);
        let mut sequential =
            common.iter().filter(|(tag, ..)| !matches!(tag, AxisTag::Group(_) | AxisTag::Local(_)));
        let carrier = sequential.find(|(_, p, q, _)| p != q).map(|(.., l)| *l);
        let orders = |x: &Barrier| x.scope == Scope::Group || self.in_one_sub_group(a, b);
        self.barriers
            .iter()
            .any(|x| x.source == a.insn && x.sink == b.insn && x.carrier == carrier && orders(x))
    }

    fn in_one_sub_group(&self, a: &Event, b: &Event) -> bool {
        self.items(a).iter().all(|axis| {
            let block = if *axis == AxisTag::Local(0) { self.kernel.sub_group.width().into() } else { 1 };
            let (p, q) = (self.place(a, *axis), self.place(b, *axis));
            matches!((p, q), (Place::At(p), Place::At(q)) if p.div_euclid(block) == q.div_euclid(block))
        })
    }

    /// Whether two work-items write the same value to the same element in one iteration of the loops
    /// around: no expression mentions their loop, and what they read was written by the same
    /// instances, or by some that write the same value.
    fn repeats(&self, trace: &Trace, a: &Event, b: &Event) -> bool {
        let insn = &self.kernel.insns[a.insn];
        let alike = |(tag, p, q, l): (AxisTag, i64, i64, InameId)| {
            p == q || matches!(tag, AxisTag::Local(_)) && !insn.expressions().any(|e| e.mentions(l))
        };
        let same_writes = |p: usize, q: usize| self.repeats(trace, &trace.events[p], &trace.events[q]);
        let same_reads = a.reads.len() == b.reads.len()
            && a.reads.iter().zip(&b.reads).all(|(x, y)| match (x.1, y.1) {
                (Some(p), Some(q)) => x.0 == y.0 && (p == q || same_writes(p, q)),
                (None, _) | (_, None) => x == y,
            });
        a.insn == b.insn && same_reads && self.common(a, b).into_iter().all(alike)
    }

    /// Whether two instances run together in different lanes of one vector.
    fn in_lanes(&self, a: &Event, b: &Event) -> bool {
        let common = self.common(a, b);
        let first = common.iter().find(|(_, p, q, _)| p != q);
        first.is_some_and(|(tag, ..)| *tag == AxisTag::Vector)
    }
}

/// What a race looks like.
fn race(launch: &Launch, trace: &Trace) -> Option<String> {
    for ((var, at), list) in &trace.touches {
        let events: Vec<&Event> = list.iter().map(|(k, _)| &trace.events[*k]).collect();
        let touches: Vec<Touch> = list.iter().map(|(_, t)| *t).collect();
        let clash = match launch.kernel.vars[*var].space {
            AddressSpace::Private => lost_value(launch, &events, &touches, true),
            AddressSpace::Local | AddressSpace::SubGroup => lost_value(launch, &events, &touches, false)
                .or_else(|| unordered((launch, trace), &events, &touches, *var)),
            AddressSpace::Global | AddressSpace::Constant | AddressSpace::Literal => {
                unordered((launch, trace), &events, &touches, *var)
            }
        };
        if let Some((a, b)) = clash {
            let name =
                |k: usize| format!("{}{:?}", launch.kernel.insns[events[k].insn].name, events[k].point);
            let var = &launch.kernel.vars[*var].name;
            return Some(format!("{} and {} race on `{var}` element {at}", name(a), name(b)));
        }
    }
    None
}

/// A read that does not see everything that its value is made of, in other groups, work-items
/// (of a private variable) or lanes.
fn lost_value(
    launch: &Launch,
    events: &[&Event],
    touches: &[Touch],
    private: bool,
) -> Option<(usize, usize)> {
    for (b, _) in touches.iter().enumerate().filter(|(_, t)| **t == Touch::Read) {
        for a in (0..b).rev() {
            let other = !std::ptr::eq(events[a], events[b]);
            if touches[a] != Touch::Read && other {
                let (x, y) = (events[a], events[b]);
                let items = !private || launch.sees(x, y, launch.items(x));
                let lanes = private && launch.in_lanes(x, y);
                let gone = launch.launch(x) != launch.launch(y);
                if gone || !launch.sees(x, y, launch.groups(x)) || !items || lanes {
                    return Some((a, b));
                }
            }
            if touches[a] == Touch::Assign && other {
                break;
            }
        }
    }
    None
}

/// Two accesses of shared memory that nothing orders.
fn unordered(
    (launch, trace): (&Launch, &Trace),
    events: &[&Event],
    touches: &[Touch],
    var: VarId,
) -> Option<(usize, usize)> {
    let n = events.len();
    let global = launch.kernel.vars[var].space != AddressSpace::Local;
    let mut before = vec![vec![false; n]; n];
    for b in 0..n {
        for a in (0..b).rev() {
            let (x, y) = (events[a], events[b]);
            if launch.launch(x) != launch.launch(y) {
                before[a][b] = true;
                continue;
            }
            let inside = launch.groups_meet(x, y)
                && (launch.same(x, y, launch.items(x)) || launch.barrier_between(x, y));
            before[a][b] = inside || (a + 1..b).any(|c| before[a][c] && before[c][b]);
        }
    }
    // the first of the writes that this one repeats, between which nothing else is written
    let first = |b: usize| {
        let writes = (0..b).rev().filter(|c| touches[*c] != Touch::Read);
        let same = |c: &usize| touches[*c] == Touch::Assign && launch.repeats(trace, events[*c], events[b]);
        if touches[b] == Touch::Assign { writes.take_while(same).last().unwrap_or(b) } else { b }
    };
    for b in 0..n {
        for a in 0..first(b) {
            let (x, y) = (events[a], events[b]);
            let commute = matches!((touches[a], touches[b]), (Touch::Update(p), Touch::Update(q)) if p == q);
            // between launches everything is ordered
            let ordered = std::ptr::eq(x, y) || launch.launch(x) != launch.launch(y);
            if ordered || !(touches[a].conflicts(touches[b]) || commute) {
                continue;
            }
            let atomic = [x, y].iter().all(|e| launch.kernel.insns[e.insn].is_atomic());
            let groups = !launch.same(x, y, launch.groups(x));
            let meet = launch.groups_meet(x, y);
            let fine = if commute && atomic {
                !launch.in_lanes(x, y)
            } else if launch.in_lanes(x, y) || (global && groups) {
                false
            } else if commute {
                !meet || launch.same(x, y, launch.items(x))
            } else {
                !meet || before[a][b]
            };
            if !fine {
                return Some((a, b));
            }
        }
    }
    None
}

/// The kernel with tags, address spaces, atomics and a width of sub-groups drawn from picks.
fn tagged(mut kernel: Kernel, picks: &[u8]) -> Kernel {
    let mut picks = picks.iter().copied().cycle();
    let mut pick = || picks.next().unwrap_or(0);
    let tags = [
        AxisTag::Sequential,
        AxisTag::Local(0),
        AxisTag::Group(0),
        AxisTag::Sequential,
        AxisTag::Local(1),
        AxisTag::Vector,
    ];
    let loops: std::collections::BTreeSet<_> = kernel.schedule().into_iter().flat_map(|(_, l)| l).collect();
    for l in loops {
        kernel.inames[l].tag = tags[usize::from(pick()) % tags.len()];
    }
    // 32 in half of them; loops are short, so that narrow ones tell sub-groups apart
    let widths = [32, 1, 32, 2, 32, 4];
    kernel.sub_group = SubGroup::new(widths[usize::from(pick()) % widths.len()]).expect("powers of two");
    for var in kernel.vars.values_mut().filter(|v| v.kind == VarKind::Temporary) {
        let spaces = [AddressSpace::Private, AddressSpace::Local, AddressSpace::Global];
        var.space = spaces[usize::from(pick()) % 3];
    }
    let shared: Vec<bool> = kernel.vars.values().map(|v| v.space != AddressSpace::Private).collect();
    for insn in kernel.insns.values_mut() {
        use kingpost_ir::ids::Id;
        let shared = shared[insn.lhs.var.index()];
        if let WriteOp::Update { atomic, .. } = &mut insn.op {
            *atomic = shared && pick() % 3 > 0;
        }
    }
    kernel
}

/// The kernel as a sequence of launches: its outer loops are host loops, launches, or in one.
fn launched(mut kernel: Kernel, picks: &[u8]) -> Kernel {
    let mut picks = picks.iter().rev().copied().cycle();
    let body = std::mem::take(&mut kernel.body);
    kernel.body = in_launches(&mut kernel, body, &mut || picks.next().unwrap_or(0));
    kernel
}

fn in_launches(kernel: &mut Kernel, nodes: Vec<Node>, pick: &mut dyn FnMut() -> u8) -> Vec<Node> {
    let mut launches: Vec<Node> = Vec::new();
    let mut open = None;
    for node in nodes {
        let is_loop = matches!(node, Node::Loop(..));
        match (node, pick() % 4) {
            (Node::Loop(iname, body), 0) => {
                kernel.inames[iname].tag = AxisTag::Sequential;
                let body = in_launches(kernel, body, pick);
                launches.push(Node::Loop(iname, body));
                open = None;
            }
            (Node::Loop(iname, body), 1) => {
                kernel.inames[iname].tag = AxisTag::Launch;
                launches.push(Node::Loop(iname, body));
                open = None;
            }
            (node, choice) => {
                let into = open.filter(|_| choice == 2 || !is_loop);
                let k = into.unwrap_or_else(|| {
                    let name = kernel.fresh_name("launch");
                    let domain = kingpost_ir::Domain::universe();
                    let id = kernel.inames.push(Iname { name, domain, tag: AxisTag::Launch });
                    kernel.inames[id].domain =
                        kingpost_ir::Domain::range(id, &Affine::constant(0), &Affine::constant(1));
                    launches.push(Node::Loop(id, Vec::new()));
                    launches.len() - 1
                });
                if let Node::Loop(_, body) = &mut launches[k] {
                    body.push(node);
                }
                open = Some(k);
            }
        }
    }
    launches
}

#[test]
fn accepted_placements_have_no_race() {
    let small = SampleConfig { extent: 3, nests: 2, statements: 3, ..SampleConfig::default() };
    let (accepted, refused, barriers, needed) = (Cell::new(0), Cell::new(0), Cell::new(0), Cell::new(0));
    let (narrow, several) = (Cell::new(0), Cell::new(0));
    let config = config(2200);
    let share = |part: usize| config.cases as usize / part;
    let mut runner = TestRunner::new(config.clone());
    let picks = proptest::collection::vec(any::<u8>(), 12);
    let inputs = (arbitrary_kernel(small), picks, proptest::bool::weighted(0.3));
    let result = runner.run(&inputs, |(sample, picks, in_launches)| {
        let mut kernel = tagged(sample.kernel, &picks);
        if in_launches {
            kernel = launched(kernel, &picks).canonical();
        }
        if kernel.verify().is_err() {
            return Ok(()); // an axis inside itself
        }
        let placement = match placed(&kernel) {
            Ok(placement) => placement,
            Err(PlacementError::Refused(_)) => {
                refused.set(refused.get() + 1);
                return Ok(());
            }
            Err(
                error @ (PlacementError::Storage(_)
                | PlacementError::NotByLane { .. }
                | PlacementError::Awaited { .. }
                | PlacementError::Calls(_)
                | PlacementError::Isl(_)),
            ) => {
                return Err(TestCaseError::fail(error.to_string()));
            }
        };
        accepted.set(accepted.get() + 1);
        let launches = kernel.inames.values().filter(|i| i.tag == AxisTag::Launch).count();
        several.set(several.get() + usize::from(launches > 1));
        barriers.set(barriers.get() + placement.barriers.len());
        let of_sub_groups = placement.barriers.iter().filter(|b| b.scope == Scope::SubGroup);
        narrow.set(narrow.get() + of_sub_groups.count());
        let trace = Trace::of(&kernel, &sample.memory);
        if race(&Launch::new(&kernel, &sample.memory, &[]), &trace).is_some() {
            needed.set(needed.get() + 1);
        }
        let launch = Launch::new(&kernel, &sample.memory, &placement.barriers);
        match race(&launch, &trace) {
            Some(race) => Err(TestCaseError::fail(format!("{race}\n{kernel}"))),
            None => Ok(()),
        }
    });
    result.unwrap_or_else(|e| panic!("{e}"));
    // about a quarter each; the rest nests an axis in itself
    println!(
        "{} accepted with {} barriers, {} of sub-groups, {} of them race without, {} refused",
        accepted.get(),
        barriers.get(),
        narrow.get(),
        needed.get(),
        refused.get()
    );
    // the enumeration is not blind: without their barriers some programs race
    assert!(accepted.get() > share(15) && refused.get() > share(15) && needed.get() > share(110));
    assert!(several.get() > share(55), "{} of several launches", several.get());
    // both scopes are there; loops over parameters may be longer than a sub-group
    // those of sub-groups are rare
    assert!(narrow.get() > share(440) || !is_long_run());
    assert!(barriers.get() - narrow.get() > share(110));
}
