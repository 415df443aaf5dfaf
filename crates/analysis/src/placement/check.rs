//! The check that a placement keeps every dependence, and the barriers it needs.

use crate::Analysis;
use crate::answers::Answers;
use crate::deps::words::Words;
use crate::deps::{AccessSite, Dependence, DependenceKind, bounds_of};
use crate::placement::axes::{Axis, Coordinate, LaunchAxes, axis_of, first_bounded_by};
use crate::placement::refusal::{PlacementError, Refusal, RefusalReason};
use crate::placement::slices::{SUB_GROUP, lane_axis, sliced_axes};
use crate::polyhedral::{Polyhedral, Side, step};
use purlin_ir::affine::{Affine, Atom};
use purlin_ir::ids::{Id, InameId, InsnId, VarId};
use purlin_ir::kernel::{AddressSpace, AxisTag};
use purlin_isl as isl;

/// Two instructions that a barrier must separate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Barrier {
    /// What must be finished.
    pub source: InsnId,
    /// What may then start.
    pub sink: InsnId,
    /// The variable between them.
    pub var: VarId,
    /// `None`: within one iteration of their common sequential loops, `source` stands first in the
    /// text. `Some(l)`: `source` in one iteration of the sequential loop `l`, `sink` in a later one.
    pub carrier: Option<InameId>,
}

/// A kernel whose parallel loops keep every dependence.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The axes of the launch.
    pub axes: Vec<Axis>,
    /// What barriers must separate, sorted, without repetition.
    pub barriers: Vec<Barrier>,
    /// For each variable, which axes of a private array disappear: see [`sliced_axes`].
    pub sliced: Vec<Vec<bool>>,
    /// For each variable that the work-items of a sub-group hold, its [`lane_axis`].
    pub lanes: Vec<Option<(usize, i64)>>,
}

/// Checks every dependence against the axis tags, and the temporaries that share a buffer, and collects the
/// barriers needed.
///
/// # Errors
/// The first dependence that the placement breaks, with a witness.
pub(crate) fn place(analysis: &Analysis) -> Result<Placement, PlacementError> {
    analysis.check_storage()?;
    let (poly, kernel) = (analysis.polyhedral(), analysis.expanded());
    let axes = LaunchAxes::of(kernel);
    let vector = kernel.inames.values().any(|i| i.tag == AxisTag::Vector);
    let sites = analysis.all_sites();
    let sliced: Vec<_> = kernel.vars.ids().map(|v| sliced_axes(poly, v, &sites[v.index()])).collect();
    let lanes = lanes_of(poly, &axes, sites)?;
    let mut placement = Placement { axes: axes.axes.clone(), barriers: Vec::new(), sliced, lanes };
    if !axes.axes.is_empty() || vector {
        let answers = &**analysis.answers();
        let mut checker = Checker { poly, answers, axes: &axes, barriers: &mut placement.barriers };
        for d in analysis.dependences()? {
            checker.check(d)?;
            checker.check_lanes(d)?;
        }
    }
    placement.barriers.sort();
    placement.barriers.dedup();
    Ok(placement)
}

/// The lane axes of the variables that the work-items of a sub-group hold; checks that every work-item writes only
/// elements that it holds.
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

/// Where the coordinates of the ends of a dependence differ.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Difference {
    /// In no pair.
    Nowhere,
    /// In every pair, as far as is known.
    Everywhere,
    /// Where this distance is not zero.
    Where(isl::Affine),
}

struct Checker<'a, 'k> {
    poly: &'a Polyhedral<'k>,
    answers: &'a Answers,
    axes: &'a LaunchAxes,
    barriers: &'a mut Vec<Barrier>,
}

impl Checker<'_, '_> {
    fn check(&mut self, d: &Dependence) -> Result<(), PlacementError> {
        let kernel = &*self.poly.kernel;
        let space = kernel.vars[d.var].space;
        if space == AddressSpace::Private {
            // Every work-item has its copy: only values that flow matter.
            return match d.kind {
                DependenceKind::Flow => self.refuse_any(d, &self.axes.axes, RefusalReason::PrivateFlow),
                DependenceKind::Anti | DependenceKind::Output | DependenceKind::Update => Ok(()),
            };
        }
        let (groups, items): (Vec<_>, Vec<_>) =
            self.axes.axes.iter().copied().partition(|a| matches!(a, Axis::Group(_)));
        let updates = d.kind == DependenceKind::Update;
        let atomic = kernel.insns[d.source].is_atomic() && kernel.insns[d.sink].is_atomic();
        if updates && atomic {
            return Ok(());
        }
        if matches!(space, AddressSpace::Local | AddressSpace::SubGroup) {
            if d.kind == DependenceKind::Flow {
                self.refuse_any(d, &groups, RefusalReason::LocalFlow)?;
            }
            if d.kind == DependenceKind::Flow && space == AddressSpace::SubGroup {
                self.check_sub_group(d, &items)?;
            }
        } else {
            let reason = if updates { RefusalReason::NotAtomic } else { RefusalReason::AcrossGroups };
            self.refuse_any(d, &groups, reason)?;
        }
        if items.iter().all(|axis| self.difference(d, *axis) == Difference::Nowhere) {
            return Ok(());
        }
        let question = self.question(d, &groups, &items);
        let carriers = self.answers.carriers.answer(question, || self.carriers(d, &groups, &items))?;
        let loops = self.poly.common_loops(d.source, d.sink);
        for depth in carriers {
            let carrier = depth.and_then(|k| loops.get(k).copied());
            self.barriers.push(Barrier { source: d.source, sink: d.sink, var: d.var, carrier });
        }
        Ok(())
    }

    /// Refuses a flow between sub-groups: rows of work-items along `l.0`, cut into blocks.
    fn check_sub_group(&self, d: &Dependence, items: &[Axis]) -> Result<(), PlacementError> {
        for axis in items {
            if *axis != Axis::Local(0) {
                self.refuse_any(d, &[*axis], RefusalReason::SubGroupFlow)?;
            } else if !self.is_one_sub_group() {
                let distance = self.sub_group_distance(d);
                if let Some(part) = differing(&d.relation()?, distance)? {
                    self.refuse_part(d, RefusalReason::SubGroupFlow, &part)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the loops along `l.0` are known to take no more than the work-items of one sub-group.
    fn is_one_sub_group(&self) -> bool {
        let mut along = self.poly.kernel.inames.iter().filter(|(_, i)| i.tag == AxisTag::Local(0));
        along.all(|(id, iname)| match iname.domain.as_guarded_range(id) {
            Some(range) => range.length().as_constant().is_some_and(|n| n <= SUB_GROUP),
            // counted from 0
            None => bounds_of(self.poly, id, &[(Atom::Iname(id), 1)]).1.is_some_and(|last| last < SUB_GROUP),
        })
    }

    /// How many sub-groups the sink is behind the source along `l.0`.
    fn sub_group_distance(&self, d: &Dependence) -> Difference {
        let (source, sink) = self.coordinates(d, Axis::Local(0));
        let at = |c: &Coordinate, side| Some(self.position(c, side)?.floor_div(SUB_GROUP));
        let ends = at(&sink, Side::Sink).zip(at(&source, Side::Source));
        ends.map_or(Difference::Everywhere, |(sink, source)| {
            Difference::Where(crate::polyhedral::difference(&sink, &source))
        })
    }

    /// The barriers that keep a dependence between work-items of one group, or a refusal: for each the depth of its
    /// carrier, if it has one.
    fn carriers(
        &self,
        d: &Dependence,
        groups: &[Axis],
        items: &[Axis],
    ) -> Result<Vec<Option<usize>>, PlacementError> {
        match (self.crossing_items(d, groups, items)?, d.kind == DependenceKind::Update) {
            (None, _) => Ok(Vec::new()),
            (Some(crossing), false) => self.order_items(d, crossing),
            (Some(crossing), true) => {
                self.refuse_part(d, RefusalReason::NotAtomic, &crossing)?;
                Ok(Vec::new())
            }
        }
    }

    /// All that [`Checker::carriers`] goes by: the text is part of the relation, and loops on axes are where the
    /// coordinates are.
    fn question(&self, d: &Dependence, groups: &[Axis], items: &[Axis]) -> Words {
        let mut question = Words::default();
        let scopes = d.ask(self.poly, &mut question);
        question.count(groups.len());
        for axis in groups.iter().chain(items) {
            self.ask_where(d, *axis, &scopes, &mut question);
        }
        question.push(i64::from(d.kind == DependenceKind::Update));
        question
    }

    /// Adds to a question where the coordinates of the ends along an axis are, and differ.
    fn ask_where(&self, d: &Dependence, axis: Axis, scopes: &[Vec<InameId>; 2], question: &mut Words) {
        question.push(match self.difference(d, axis) {
            Difference::Nowhere => 0,
            Difference::Everywhere => 1,
            Difference::Where(_) => 2,
        });
        let (source, sink) = self.coordinates(d, axis);
        for (coordinate, scope) in [source, sink].into_iter().zip(scopes) {
            match coordinate {
                Coordinate::Iname(i, lo) => {
                    question.push(2);
                    question.affine(&Affine::iname(i).minus(&lo), scope);
                }
                Coordinate::Everywhere => question.push(1),
                Coordinate::Zero => question.push(0),
            }
        }
    }

    /// Whether a loop is sequential and may advance from source to sink.
    fn splits_at(&self, d: &Dependence, l: InameId) -> bool {
        axis_of(self.poly.kernel.inames[l].tag).is_none() && !d.agrees(l, l)
    }

    /// Refuses if source and sink differ on one of the axes.
    fn refuse_any(&self, d: &Dependence, axes: &[Axis], reason: RefusalReason) -> Result<(), PlacementError> {
        for axis in axes {
            if self.difference(d, *axis) == Difference::Nowhere {
                continue;
            }
            let mut question = Words::default();
            let scopes = d.ask(self.poly, &mut question);
            self.ask_where(d, *axis, &scopes, &mut question);
            self.answers.together.answer(question, || match self.differing(d, *axis, &d.relation()?)? {
                Some(part) => self.refuse_part(d, reason, &part),
                None => Ok(()),
            })?;
        }
        Ok(())
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
        let assumable = d.injective_map_against(part)?.map(|map| kernel.vars[map].name.clone());
        Err(PlacementError::Refused(Box::new(Refusal { reason, kind: d.kind, var, witness, assumable })))
    }

    /// The pairs of a part of a dependence whose coordinates along an axis differ; `None` if there are none.
    fn differing(
        &self,
        d: &Dependence,
        axis: Axis,
        whole: &isl::Map,
    ) -> Result<Option<isl::Map>, PlacementError> {
        differing(whole, self.difference(d, axis))
    }

    /// Where the ends of a dependence are along an axis. A scalar in the bounds of a loop is read wherever the loop
    /// runs, and not only where something inside does.
    fn coordinates(&self, d: &Dependence, axis: Axis) -> (Coordinate, Coordinate) {
        let at = |insn, reads: bool| match self.axes.coordinate(self.poly, insn, axis) {
            _ if reads && self.is_bound_everywhere(d.var, insn, axis) => Coordinate::Everywhere,
            own => own,
        };
        (at(d.source, d.kind == DependenceKind::Anti), at(d.sink, d.kind == DependenceKind::Flow))
    }

    /// Whether a scalar bounds a loop around an instruction that is in no loop on the axis.
    fn is_bound_everywhere(&self, var: VarId, insn: InsnId, axis: Axis) -> bool {
        let (kernel, loops) = (&*self.poly.kernel, self.poly.loops(insn));
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
            _ => self.distance(&source, &sink).map_or(Difference::Everywhere, Difference::Where),
        }
    }

    fn is_private(&self, d: &Dependence) -> bool {
        self.poly.kernel.vars[d.var].space == AddressSpace::Private
    }

    fn is_local(&self, d: &Dependence) -> bool {
        matches!(self.poly.kernel.vars[d.var].space, AddressSpace::Local | AddressSpace::SubGroup)
    }

    /// Sink coordinate minus source coordinate.
    fn distance(&self, source: &Coordinate, sink: &Coordinate) -> Option<isl::Affine> {
        let (sink, source) = (self.position(sink, Side::Sink)?, self.position(source, Side::Source)?);
        Some(crate::polyhedral::difference(&sink, &source))
    }

    /// A coordinate as a number.
    fn position(&self, c: &Coordinate, side: Side) -> Option<isl::Affine> {
        match c {
            Coordinate::Iname(i, lo) => {
                let i = isl::Affine::name(self.poly.name(*i, side));
                Some(crate::polyhedral::difference(&i, &self.poly.affine(lo, side)?))
            }
            Coordinate::Zero => Some(isl::Affine::constant(0)),
            Coordinate::Everywhere => None,
        }
    }

    /// The pairs in one group but in different work-items; `None` if there are none.
    fn crossing_items(
        &self,
        d: &Dependence,
        groups: &[Axis],
        items: &[Axis],
    ) -> Result<Option<isl::Map>, PlacementError> {
        // groups first: they leave few pairs
        let mut whole = d.relation()?;
        for axis in groups {
            whole = self.same_coordinate(d, *axis, whole)?;
        }
        let mut crossing: Option<isl::Map> = None;
        for axis in items {
            if let Some(part) = self.differing(d, *axis, &whole)? {
                crossing = Some(match crossing {
                    None => part,
                    Some(sum) => sum.union(&part)?,
                });
            }
        }
        Ok(crossing)
    }

    /// Orders pairs of one group and different work-items by barriers, or refuses.
    fn order_items(&self, d: &Dependence, mut rest: isl::Map) -> Result<Vec<Option<usize>>, PlacementError> {
        let mut carriers = Vec::new();
        for (depth, l) in self.poly.common_loops(d.source, d.sink).iter().enumerate() {
            if self.splits_at(d, *l) {
                let (advances, same) = self.split_at(d, *l, &rest)?;
                carriers.extend(advances.then_some(Some(depth)));
                rest = same;
            }
        }
        if rest.is_empty()? {
            return Ok(carriers);
        }
        if d.span().textual {
            carriers.push(None);
            return Ok(carriers);
        }
        self.refuse_part(d, RefusalReason::Unordered, &rest)?;
        Ok(carriers)
    }

    /// Handles the pairs that differ at a sequential loop: whether there are any, and those that agree.
    fn split_at(
        &self,
        d: &Dependence,
        l: InameId,
        rest: &isl::Map,
    ) -> Result<(bool, isl::Map), PlacementError> {
        let step = step(self.poly, l);
        let space = rest.space()?;
        let part = |c: isl::Constraint| rest.intersect(&isl::Map::from_constraints(&space, &[c])?);
        let advances = !part(isl::Constraint::non_negative(step.clone().offset(-1)))?.is_empty()?;
        let backward = part(isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &step)))?;
        self.refuse_part(d, RefusalReason::Unordered, &backward)?;
        Ok((advances, part(isl::Constraint::zero(step))?))
    }

    fn same_coordinate(
        &self,
        d: &Dependence,
        axis: Axis,
        rest: isl::Map,
    ) -> Result<isl::Map, PlacementError> {
        let (source, sink) = self.coordinates(d, axis);
        if agree(d, &source, &sink) {
            return Ok(rest);
        }
        match self.distance(&source, &sink) {
            None => Ok(rest),
            Some(e) => {
                let equal = isl::Map::from_constraints(&rest.space()?, &[isl::Constraint::zero(e)])?;
                Ok(rest.intersect(&equal)?)
            }
        }
    }

    /// Lanes of a vector run together: nothing may flow or clash between them, except the reuse of
    /// private memory, of which every lane has its copy. The copies are gone behind the vector.
    fn check_lanes(&self, d: &Dependence) -> Result<(), PlacementError> {
        let kernel = &*self.poly.kernel;
        let lanes = |l: &&InameId| kernel.inames[**l].tag == AxisTag::Vector;
        let common = self.poly.common_loops(d.source, d.sink);
        let flows = matches!(d.kind, DependenceKind::Flow | DependenceKind::Update);
        if self.is_private(d) && flows {
            let inner = &self.poly.loops(d.source)[common.len()..];
            if inner.iter().filter(lanes).any(|l| !self.has_element_of_its_own(d.source, *l)) {
                self.refuse_part(d, RefusalReason::Lanes, &d.relation()?)?;
            }
        }
        for l in common.iter().filter(lanes) {
            if (self.is_private(d) && !flows) || d.equal.contains(l) {
                continue;
            }
            let whole = d.relation()?;
            let step = step(self.poly, *l);
            let less = vec![isl::Constraint::non_negative(step.clone().offset(-1))];
            let more = vec![isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &step))];
            let part = whole.intersect(&isl::Map::from_disjuncts(&whole.space()?, &[less, more])?)?;
            self.refuse_part(d, RefusalReason::Lanes, &part)?;
        }
        Ok(())
    }

    /// Whether every iteration of a loop writes another element.
    fn has_element_of_its_own(&self, insn: InsnId, l: InameId) -> bool {
        let index = &self.poly.kernel.insns[insn].lhs.index;
        index.iter().any(|e| e.as_affine().is_some_and(|a| a.as_iname() == Some(l)))
    }
}

/// The pairs of a relation at which a distance is not zero; `None` if there are none.
fn differing(whole: &isl::Map, distance: Difference) -> Result<Option<isl::Map>, PlacementError> {
    let part = match distance {
        Difference::Nowhere => return Ok(None),
        Difference::Everywhere => whole.clone(),
        Difference::Where(e) => {
            let less = vec![isl::Constraint::non_negative(e.clone().offset(-1))];
            let more = vec![isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &e))];
            whole.intersect(&isl::Map::from_disjuncts(&whole.space()?, &[less, more])?)?
        }
    };
    Ok(if part.is_empty()? { None } else { Some(part) })
}

/// Whether both ends of every pair are at one place of an axis, as far as the indices tell.
fn agree(d: &Dependence, source: &Coordinate, sink: &Coordinate) -> bool {
    match (source, sink) {
        (Coordinate::Iname(a, lo), Coordinate::Iname(b, from)) => d.agrees(*a, *b) && d.agree_on(lo, from),
        (Coordinate::Zero, Coordinate::Zero) => true,
        (Coordinate::Iname(..) | Coordinate::Zero | Coordinate::Everywhere, _) => false,
    }
}
