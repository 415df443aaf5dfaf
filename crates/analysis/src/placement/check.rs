//! The check that a placement keeps every dependence, and the barriers it needs.

use crate::Analysis;
use crate::answers::Answers;
use crate::deps::{AccessSite, Dependence, DependenceKind, Kinds};
use crate::placement::asynchronous::Later;
use crate::placement::awaited::{check_awaited, may_await};
use crate::placement::axes::{Axis, Coordinate, LaunchAxes, axis_of, first_bounded_by};
use crate::placement::barriers::{Barrier, Placement, Scope};
use crate::placement::one_launch::{Difference, OneLaunch, launches};
use crate::placement::refusal::{PlacementError, Refusal, RefusalReason};
use crate::placement::repeated::is_repeated;
use crate::placement::slices::{lane_axis, sliced_axes};
use crate::polyhedral::{Polyhedral, bounds_of};
use crate::question::{Apart, Linear, NoPair, Order, Ordered, Part};
use kingpost_ir::affine::Atom;
use kingpost_ir::expr::{Access, BinaryOp, Expr};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::{AddressSpace, AxisTag, Kernel};
use kingpost_isl as isl;
use std::collections::{BTreeMap, BTreeSet};

impl Analysis<'_> {
    /// Checks every dependence against the axis tags, and the temporaries that share a buffer, and
    /// collects the barriers needed.
    ///
    /// # Errors
    /// The first dependence that the placement breaks, with a witness.
    pub fn place(&self) -> Result<&Placement, PlacementError> {
        self.check_storage()?;
        if let Some(known) = self.facts.placement.get() {
            return Ok(known);
        }
        let placement = placement_of(self)?;
        Ok(self.facts.placement.get_or_init(|| placement))
    }

    /// Checks that the tags of the loops keep every dependence; without parallel loops they do.
    ///
    /// # Errors
    /// As [`Analysis::place`].
    pub fn check_placement(&self) -> Result<(), PlacementError> {
        let sequential = |tag| match tag {
            AxisTag::Sequential | AxisTag::Unrolled | AxisTag::Rolled => true,
            AxisTag::Vector | AxisTag::Group(_) | AxisTag::Local(_) | AxisTag::Launch => false,
        };
        if self.kernel.inames.values().all(|i| sequential(i.tag)) {
            return Ok(());
        }
        self.place().map(|_| ())
    }
}

/// Checks every dependence against the axis tags and collects the barriers needed. That temporaries
/// may share a buffer is checked before, separately.
///
/// # Errors
/// The first dependence that the placement breaks, with a witness.
fn placement_of(analysis: &Analysis) -> Result<Placement, PlacementError> {
    let (poly, kernel) = (analysis.polyhedral(), analysis.expanded());
    let axes = LaunchAxes::of(kernel);
    let vector = kernel.inames.values().any(|i| i.tag == AxisTag::Vector);
    let sites = analysis.all_sites();
    let sliced: Vec<_> = kernel.vars.ids().map(|v| sliced_axes(poly, v, &sites[v.index()])).collect();
    let lanes = lanes_of(poly, &axes, sites)?;
    let (barriers, awaited) = (Vec::new(), Vec::new());
    let mut placement = Placement { axes: axes.axes.clone(), barriers, sliced, lanes, awaited };
    let later = Later::of(analysis)?;
    if !axes.axes.is_empty() || vector || later.any() || kernel.has_launches() {
        let answers = &**analysis.answers();
        let carried = kernel.vars.ids().filter_map(|v| analysis.carried(v)).flatten().cloned();
        placement.barriers.extend(carried);
        let mut checker = Checker {
            poly,
            answers,
            launches: launches(poly),
            later: &later,
            barriers: &mut placement.barriers,
            awaited: BTreeSet::new(),
        };
        // every work-item has its copy of what is private, and lanes of a vector run together
        let private = |v: VarId| kernel.vars[v].space == AddressSpace::Private;
        let flows = |v| private(v) && !vector && !later.touches(v);
        let kinds = |v| if flows(v) { Kinds::Flows } else { Kinds::All };
        let kinds = |v| analysis.carried(v).is_none().then(|| kinds(v));
        let dependences = analysis.dependences_of_kinds(&kinds)?;
        for d in &dependences {
            let Some(launch) = checker.launch_of(d)? else { continue };
            checker.check(d, &launch)?;
            checker.check_lanes(d, &launch, &dependences)?;
        }
        placement.awaited = checker.awaited.into_iter().collect();
        placement.awaited.iter().try_for_each(|var| check_awaited(analysis, *var, &dependences))?;
    }
    placement.barriers.sort();
    placement.barriers.dedup();
    Ok(placement)
}

/// The lane axes of the variables that the work-items of a sub-group hold; checks that every
/// work-item writes only elements that it holds.
fn lanes_of(
    poly: &Polyhedral,
    axes: &LaunchAxes,
    sites: &[Vec<AccessSite>],
) -> Result<Vec<Option<(usize, i64)>>, PlacementError> {
    let kernel = &*poly.kernel;
    let lane = |id: VarId| {
        let (var, sites) = (&kernel.vars[id], &sites[id.index()]);
        let held = var.space == AddressSpace::SubGroup && axes.axes.contains(&Axis::Local(0));
        let Some(write) = sites.iter().find(|s| held && s.writes()) else { return Ok(None) };
        let insn = || kernel.insns[write.insn].name.clone();
        let lane = lane_axis(poly, id, sites);
        lane.map(Some).ok_or_else(|| PlacementError::NotByLane { var: var.name.clone(), insn: insn() })
    };
    kernel.vars.ids().map(lane).collect()
}

struct Checker<'a, 'k> {
    poly: &'a Polyhedral<'k>,
    answers: &'a Answers,
    launches: BTreeMap<Option<InameId>, Vec<Axis>>,
    later: &'a Later,
    barriers: &'a mut Vec<Barrier>,
    /// What groups wait for.
    awaited: BTreeSet<VarId>,
}

impl Checker<'_, '_> {
    /// Checks the pairs in different launches; returns what those in one launch have in common, if
    /// there may be any.
    fn launch_of(&self, d: &Dependence) -> Result<Option<OneLaunch>, PlacementError> {
        let kernel = &*self.poly.kernel;
        let [source, sink] = [d.source, d.sink].map(|insn| kernel.launch_among(self.poly.loops(insn)));
        let in_launch = self.is_private(d) || self.is_local(d);
        let flows = in_launch && d.kind == DependenceKind::Flow;
        if source != sink {
            if flows {
                self.refuse_pairs(d, Part::whole(), RefusalReason::AcrossLaunches)?;
            }
            return Ok(None);
        }
        let common = self.poly.common_loops(d.source, d.sink);
        let outer = source.and_then(|l| common.iter().position(|c| *c == l)).map_or(0, |k| k + 1);
        let around: Vec<_> = (0..outer).filter(|k| !d.agrees(common[*k], common[*k])).collect();
        if flows && !around.is_empty() {
            self.refuse_pairs(d, Part::across(&around), RefusalReason::AcrossLaunches)?;
        }
        let Some(axes) = self.launches.get(&source).cloned() else { return Ok(None) };
        Ok(Some(OneLaunch { axes, around, outer }))
    }

    fn check(&mut self, d: &Dependence, launch: &OneLaunch) -> Result<(), PlacementError> {
        let kernel = &*self.poly.kernel;
        let space = kernel.vars[d.var].space;
        let is_private = space == AddressSpace::Private;
        if is_private {
            // Every work-item has its copy: only values that flow matter, and what is not done yet.
            match d.kind {
                DependenceKind::Flow => {
                    self.refuse_any(d, launch, &launch.axes, RefusalReason::PrivateFlow)?;
                }
                DependenceKind::Anti | DependenceKind::Output | DependenceKind::Update => {}
            }
            if !self.later.separates(d) {
                return Ok(());
            }
        }
        let (groups, items) = (launch.axes(true), launch.axes(false));
        let updates = d.kind == DependenceKind::Update;
        let atomic = kernel.insns[d.source].is_atomic() && kernel.insns[d.sink].is_atomic();
        if updates && atomic {
            return Ok(());
        }
        if matches!(space, AddressSpace::Local | AddressSpace::SubGroup) {
            if d.kind == DependenceKind::Flow {
                self.refuse_any(d, launch, &groups, RefusalReason::LocalFlow)?;
            }
            if d.kind == DependenceKind::Flow && space == AddressSpace::SubGroup {
                self.check_sub_group(d, launch, &items)?;
            }
        } else if !is_private {
            let reason = if updates { self.not_atomic(d) } else { RefusalReason::AcrossGroups };
            if may_await(self.poly, d) && self.crosses(d, launch, &groups)? {
                self.awaited.insert(d.var);
            } else {
                self.refuse_any(d, launch, &groups, reason)?;
            }
        }
        let mut apart: Vec<_> = items.iter().filter_map(|axis| self.part_along(d, *axis)).collect();
        if self.later.separates(d) {
            // also a work-item waits for its own calls, and for its accesses through another way
            apart = vec![Part::whole()];
        }
        if apart.is_empty() {
            return Ok(());
        }
        let pairs = self.apart(d, launch, apart);
        let question = self.order(d, launch, pairs);
        let answer = self.answers.order.answer(&question)?;
        let carriers = match &answer {
            Ordered::Barriers(carriers) => carriers,
            Ordered::NotAtomic => return self.refuse_order(d, self.not_atomic(d), &question, &answer),
            Ordered::Unordered(_) => {
                return self.refuse_order(d, RefusalReason::Unordered, &question, &answer);
            }
        };
        if carriers.is_empty() {
            return Ok(());
        }
        let scope = self.scope(d, launch, &items)?;
        let loops = self.poly.common_loops(d.source, d.sink);
        for depth in carriers {
            let carrier = depth.and_then(|k| loops.get(k).copied());
            self.barriers.push(Barrier { source: d.source, sink: d.sink, var: d.var, carrier, scope });
        }
        Ok(())
    }

    /// Why updates that are not atomic may not meet.
    fn not_atomic(&self, d: &Dependence) -> RefusalReason {
        match self.poly.kernel.vars[d.var].ty.record() {
            Some(_) => RefusalReason::OfRecords,
            None => RefusalReason::NotAtomic,
        }
    }

    /// The pairs that run apart along an axis of work-items. What one of them repeats in an
    /// iteration of the loops around changes nothing: not what another has written before, nor what
    /// that has read since.
    fn part_along(&self, d: &Dependence, axis: Axis) -> Option<Part> {
        if let Axis::Local(along) = axis
            && self.later.reads_for_others(d, along)
        {
            return Some(Part::whole());
        }
        let position = |insn| self.poly.position(insn);
        let again = match d.kind {
            DependenceKind::Output => d.source == d.sink,
            DependenceKind::Anti => position(d.source) > position(d.sink),
            DependenceKind::Flow | DependenceKind::Update => false,
        };
        if !(again && is_repeated(self.poly, d.sink, axis)) {
            return self.difference(d, axis).part();
        }
        let common = self.poly.common_loops(d.source, d.sink).iter().enumerate();
        let around: Vec<_> = common.filter(|(_, l)| self.splits_at(d, **l)).map(|(k, _)| k).collect();
        (!around.is_empty()).then(|| Part::across(&around))
    }

    /// The smallest scope in which both ends of every pair of one group run.
    fn scope(&self, d: &Dependence, launch: &OneLaunch, items: &[Axis]) -> Result<Scope, PlacementError> {
        let separates = self.later.separates(d);
        if separates && self.is_private(d) {
            return Ok(Scope::WorkItem);
        }
        let reads_for_others = |axis: &Axis| match axis {
            Axis::Local(along) => *along > 0 && self.later.reads_for_others(d, *along),
            Axis::Group(_) => false,
        };
        let runs_apart = |parts: Vec<Part>| {
            Ok::<_, isl::IslError>(
                !parts.is_empty() && self.answers.apart.answer(&self.apart(d, launch, parts))?,
            )
        };
        let of_items = || items.iter().filter_map(|axis| self.difference(d, *axis).part()).collect();
        let others = items.iter().any(reads_for_others);
        // what is in two sub-groups is in two work-items, too
        if separates && others && !runs_apart(of_items())? {
            return Ok(Scope::WorkItem);
        }
        let between = |axis: &Axis| match (axis, self.difference(d, *axis)) {
            (Axis::Local(0), Difference::Where(..)) => self.between_sub_groups(d).part(),
            (axis, _) if reads_for_others(axis) => Some(Part::whole()),
            (_, difference) => difference.part(),
        };
        let leaves = runs_apart(items.iter().filter_map(between).collect())?;
        if separates && !leaves && !others && !runs_apart(of_items())? {
            return Ok(Scope::WorkItem);
        }
        Ok(if leaves { Scope::Group } else { Scope::SubGroup })
    }

    /// The pairs in one group of one launch that run apart as `items` say.
    fn apart(&self, d: &Dependence, launch: &OneLaunch, items: Vec<Part>) -> Apart {
        let same = |axis: &Axis| {
            let (source, sink) = self.coordinates(d, *axis);
            if agree(d, &source, &sink) { None } else { self.positions(d, &source, &sink) }
        };
        let around = launch.around.iter().map(|k| (Linear::of_loop(*k), Linear::of_loop(*k)));
        let groups = around.chain(launch.axes(true).iter().filter_map(same)).collect();
        Apart { relation: d.told().clone(), groups, items }
    }

    /// How pairs in one group but in different work-items are kept in order.
    fn order(&self, d: &Dependence, launch: &OneLaunch, apart: Apart) -> Order {
        let loops = self.poly.common_loops(d.source, d.sink).iter().enumerate().skip(launch.outer);
        Order {
            apart,
            // those of one work-item need not be atomic
            updates: d.kind == DependenceKind::Update && !self.is_private(d),
            splits: loops.filter(|(_, l)| self.splits_at(d, **l)).map(|(k, _)| k).collect(),
        }
    }

    /// Refuses with the smallest of the pairs that no barrier orders.
    fn refuse_order(
        &self,
        d: &Dependence,
        reason: RefusalReason,
        order: &Order,
        answer: &Ordered,
    ) -> Result<(), PlacementError> {
        match order.pairs_against(answer)? {
            Some(part) => self.refuse_part(d, reason, &d.name(&part)?),
            None => Ok(()),
        }
    }

    /// Refuses a flow between sub-groups: rows of work-items along `l.0`, cut into blocks.
    fn check_sub_group(
        &self,
        d: &Dependence,
        launch: &OneLaunch,
        items: &[Axis],
    ) -> Result<(), PlacementError> {
        for axis in items {
            if *axis != Axis::Local(0) {
                self.refuse_any(d, launch, &[*axis], RefusalReason::SubGroupFlow)?;
            } else if !self.is_one_sub_group() {
                self.refuse(d, launch, self.between_sub_groups(d), RefusalReason::SubGroupFlow)?;
            }
        }
        Ok(())
    }

    /// Whether the loops along `l.0` are known to take no more than the work-items of one
    /// sub-group.
    fn is_one_sub_group(&self) -> bool {
        let width = self.width();
        let mut along = self.poly.kernel.inames.iter().filter(|(_, i)| i.tag == AxisTag::Local(0));
        along.all(|(id, iname)| match iname.domain.as_guarded_range(id) {
            Some(range) => range.length().as_constant().is_some_and(|n| n <= width),
            // counted from 0
            None => bounds_of(self.poly, id, &[(Atom::Iname(id), 1)]).1.is_some_and(|last| last < width),
        })
    }

    /// Work-items of a sub-group.
    fn width(&self) -> i64 {
        self.poly.kernel.sub_group.width().into()
    }

    /// Whether source and sink are in different sub-groups along `l.0`.
    fn between_sub_groups(&self, d: &Dependence) -> Difference {
        let (source, sink) = self.coordinates(d, Axis::Local(0));
        let at = |c: &Coordinate, insn| {
            let row = c.index()?.floor_div(self.width());
            Linear::of(&row, self.poly.loops(insn), &|v| self.poly.symbol(v))
        };
        let ends = at(&source, d.source).zip(at(&sink, d.sink));
        ends.map_or(Difference::Everywhere, |(source, sink)| Difference::Where(source, sink))
    }

    /// Whether a loop is sequential and may advance from source to sink.
    fn splits_at(&self, d: &Dependence, l: InameId) -> bool {
        axis_of(self.poly.kernel.inames[l].tag).is_none() && !d.agrees(l, l)
    }

    /// Refuses if source and sink differ on one of the axes.
    fn refuse_any(
        &self,
        d: &Dependence,
        launch: &OneLaunch,
        axes: &[Axis],
        reason: RefusalReason,
    ) -> Result<(), PlacementError> {
        // one question of all axes has the answer in most cases
        let parts = || axes.iter().filter_map(|axis| launch.part(self.difference(d, *axis)));
        let part = Part(parts().flat_map(|Part(cases)| cases).collect());
        let relation = d.told().clone();
        if part.0.is_empty() || self.answers.no_pair.answer(&NoPair { relation, part })? {
            return Ok(());
        }
        parts().try_for_each(|part| self.refuse_pairs(d, part, reason))
    }

    /// Whether there may be pairs that differ on one of the axes.
    fn crosses(&self, d: &Dependence, launch: &OneLaunch, axes: &[Axis]) -> Result<bool, PlacementError> {
        for axis in axes {
            let Some(part) = launch.part(self.difference(d, *axis)) else { continue };
            if !self.answers.no_pair.answer(&NoPair { relation: d.told().clone(), part })? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Refuses if there are pairs in one launch that differ so.
    fn refuse(
        &self,
        d: &Dependence,
        launch: &OneLaunch,
        differ: Difference,
        reason: RefusalReason,
    ) -> Result<(), PlacementError> {
        launch.part(differ).map_or(Ok(()), |part| self.refuse_pairs(d, part, reason))
    }

    /// Refuses if there are such pairs.
    fn refuse_pairs(&self, d: &Dependence, part: Part, reason: RefusalReason) -> Result<(), PlacementError> {
        let question = NoPair { relation: d.told().clone(), part };
        if self.answers.no_pair.answer(&question)? {
            return Ok(());
        }
        self.refuse_part(d, reason, &d.name(&question.pairs()?)?)
    }

    /// Refuses with the smallest pair of a part of a dependence, unless it is empty.
    fn refuse_part(
        &self,
        d: &Dependence,
        reason: RefusalReason,
        part: &isl::Map,
    ) -> Result<(), PlacementError> {
        let Some(witness) = d.witness(&self.poly.kernel, part)? else { return Ok(()) };
        let kernel = &*self.poly.kernel;
        let var = kernel.vars[d.var].name.clone();
        let assumable = d.injective_map_against(self.poly, part)?.map(|map| kernel.vars[map].name.clone());
        let multiplied = [d.source, d.sink].iter().any(|insn| multiplies(kernel, *insn, d.var));
        let refusal = Refusal { reason, kind: d.kind, var, witness, assumable, multiplied };
        Err(PlacementError::Refused(Box::new(refusal)))
    }

    /// Where the ends of a dependence are along an axis. A scalar in the bounds of a loop is read
    /// wherever the loop runs, and not only where something inside does. What all work-items write
    /// alike is written by the last of them.
    fn coordinates(&self, d: &Dependence, axis: Axis) -> (Coordinate, Coordinate) {
        let at = |insn, reads: bool| match LaunchAxes::coordinate(self.poly, insn, axis) {
            _ if reads && self.is_bound_everywhere(d.var, insn, axis) => Coordinate::Everywhere,
            _ if !reads && is_repeated(self.poly, insn, axis) => Coordinate::Everywhere,
            own @ (Coordinate::Iname(..) | Coordinate::Everywhere | Coordinate::Zero) => own,
        };
        (at(d.source, d.kind == DependenceKind::Anti), at(d.sink, d.kind == DependenceKind::Flow))
    }

    /// Whether a scalar bounds a loop around an instruction that is in no loop on the axis.
    fn is_bound_everywhere(&self, var: VarId, insn: InsnId, axis: Axis) -> bool {
        let (kernel, loops) = (&*self.poly.kernel, self.poly.loops(insn));
        if !kernel.vars[var].is_integer_scalar() {
            return false;
        }
        let on_axis = |l: &InameId| axis_of(kernel.inames[*l].tag) == Some(axis);
        first_bounded_by(kernel, loops, var).is_some_and(|k| !loops[..k].iter().any(on_axis))
    }

    fn difference(&self, d: &Dependence, axis: Axis) -> Difference {
        let (source, sink) = self.coordinates(d, axis);
        if agree(d, &source, &sink) {
            return Difference::Nowhere;
        }
        match (&source, &sink) {
            // Each copy feeds its own work-item.
            (Coordinate::Everywhere, _) if self.is_private(d) => Difference::Nowhere,
            (Coordinate::Everywhere, Coordinate::Everywhere) if matches!(axis, Axis::Group(_)) => {
                Difference::Nowhere
            }
            (Coordinate::Everywhere, _) if self.is_local(d) && matches!(axis, Axis::Group(_)) => {
                Difference::Nowhere
            }
            (Coordinate::Everywhere, _) | (_, Coordinate::Everywhere) => Difference::Everywhere,
            _ => match self.positions(d, &source, &sink) {
                None => Difference::Everywhere,
                Some((source, sink)) => Difference::Where(source, sink),
            },
        }
    }

    fn is_private(&self, d: &Dependence) -> bool {
        self.poly.kernel.vars[d.var].space == AddressSpace::Private
    }

    fn is_local(&self, d: &Dependence) -> bool {
        matches!(self.poly.kernel.vars[d.var].space, AddressSpace::Local | AddressSpace::SubGroup)
    }

    /// The coordinates of both ends as numbers.
    fn positions(&self, d: &Dependence, source: &Coordinate, sink: &Coordinate) -> Option<(Linear, Linear)> {
        let at =
            |c: &Coordinate, insn| Linear::of(&c.index()?, self.poly.loops(insn), &|v| self.poly.symbol(v));
        Some((at(source, d.source)?, at(sink, d.sink)?))
    }

    /// Lanes of a vector run together: nothing may flow or clash between them, except the reuse of
    /// private memory, of which every lane has its copy. The copies are gone after the vector, and
    /// have nothing before it: what lanes read from there is in one memory.
    fn check_lanes(
        &self,
        d: &Dependence,
        launch: &OneLaunch,
        all: &[&Dependence],
    ) -> Result<(), PlacementError> {
        let kernel = &*self.poly.kernel;
        let lanes = |l: &&InameId| kernel.inames[**l].tag == AxisTag::Vector;
        let common = self.poly.common_loops(d.source, d.sink);
        let of_a_lane = self.is_private(d) && is_flow(d);
        if of_a_lane {
            let inner = &self.poly.loops(d.source)[common.len()..];
            if inner.iter().filter(lanes).any(|l| !self.has_element_of_its_own(d.source, *l)) {
                self.refuse(d, launch, Difference::Everywhere, RefusalReason::Lanes)?;
            }
        }
        for (k, l) in common.iter().enumerate().filter(|(_, l)| lanes(l)) {
            let reuse = self.is_private(d) && !is_flow(d);
            if d.equal.contains(l) || (reuse && !self.reads_from_before(d, *l, all)?) {
                continue;
            }
            // lanes of other iterations around do not run together; copies are gone by then
            let around = if of_a_lane { 0 } else { k };
            self.refuse(d, launch, Difference::OfLanes { lane: k, around }, RefusalReason::Lanes)?;
        }
        Ok(())
    }

    /// Whether the source reads what it has from before a loop of lanes, and the sink writes it.
    fn reads_from_before(
        &self,
        d: &Dependence,
        lanes: InameId,
        all: &[&Dependence],
    ) -> Result<bool, PlacementError> {
        let comes = |flow: &&&Dependence| {
            is_flow(flow)
                && (flow.sink, flow.var) == (d.source, d.var)
                && !self.poly.loops(flow.source).contains(&lanes)
        };
        if d.kind == DependenceKind::Anti {
            for flow in all.iter().filter(comes) {
                let question = NoPair { relation: flow.told().clone(), part: Part::whole() };
                if !self.answers.no_pair.answer(&question)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether every iteration of a loop writes another element.
    fn has_element_of_its_own(&self, insn: InsnId, l: InameId) -> bool {
        let index = &self.poly.kernel.insns[insn].lhs.index;
        index.iter().any(|e| e.as_affine().is_some_and(|a| a.as_iname() == Some(l)))
    }
}

fn is_flow(d: &Dependence) -> bool {
    matches!(d.kind, DependenceKind::Flow | DependenceKind::Update)
}

/// Whether both ends of every pair are at one place of an axis, as far as the indices tell.
fn agree(d: &Dependence, source: &Coordinate, sink: &Coordinate) -> bool {
    match (source, sink) {
        (Coordinate::Iname(a, lo), Coordinate::Iname(b, from)) => d.agrees(*a, *b) && d.agree_on(lo, from),
        (Coordinate::Zero, Coordinate::Zero) => true,
        (Coordinate::Iname(..) | Coordinate::Zero | Coordinate::Everywhere, _) => false,
    }
}

/// Whether an instruction has an index of a variable that multiplies what is no number.
fn multiplies(kernel: &Kernel, insn: InsnId, var: VarId) -> bool {
    let is_number = |e: &Expr| e.as_affine().is_some_and(|e| e.as_constant().is_some());
    let is_product =
        |e: &Expr| matches!(e, Expr::Binary(BinaryOp::Mul, a, b) if !is_number(a) && !is_number(b));
    let is = |access: &Access| {
        access.var == var && access.index.iter().any(|index| index.any(&mut |e| is_product(e)))
    };
    let insn = &kernel.insns[insn];
    is(&insn.lhs) || insn.rhs.any(&mut |e| e.as_load().is_some_and(is))
}
