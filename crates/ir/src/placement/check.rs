//! The check that a placement keeps every dependence, and the barriers it needs.

use crate::affine::Affine;
use crate::deps::words::{Words, remembered};
use crate::deps::{Dependence, DependenceKind, access_sites};
use crate::ids::{Id, InameId, InsnId, VarId};
use crate::kernel::{AddressSpace, Assumption, AxisTag, Kernel};
use crate::placement::axes::{Axis, Coordinate, LaunchAxes, axis_of, first_bounded_by};
use crate::placement::slices::sliced_axes;
use crate::placement::storage::{StorageError, check_storage};
use crate::polyhedral::{Polyhedral, Side, step};
use crate::witness::Witness;
use purlin_isl as isl;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;

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
}

/// Why a placement breaks a dependence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// A private value is needed by another work-item.
    PrivateFlow,
    /// A local value is needed by another work-group.
    LocalFlow,
    /// A global value is needed by, or clashes with, another work-group.
    AcrossGroups,
    /// A commuting update that is not atomic.
    NotAtomic,
    /// No barrier can order the two.
    Unordered,
    /// Lanes of a vector run together.
    Lanes,
}

/// A dependence that the placement breaks, with two instances that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why.
    pub reason: RefusalReason,
    /// Kind of the dependence.
    pub kind: DependenceKind,
    /// Name of the variable.
    pub var: String,
    /// Two instances that clash.
    pub witness: Witness,
    /// The map that could be assumed injective and is not yet.
    pub assumable: Option<String>,
}

/// A refusal, or a failure of isl.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The placement breaks a dependence.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// Temporaries share a buffer and must not.
    #[error("{0}")]
    Storage(Box<StorageError>),
    /// isl failed.
    #[error("{0}")]
    Isl(#[from] isl::IslError),
}

impl From<StorageError> for PlacementError {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Isl(error) => Self::Isl(error),
            other @ (StorageError::Unfit(_) | StorageError::Alive { .. }) => Self::Storage(Box::new(other)),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let w = &self.witness;
        let (source, sink, element) = (&w.source, &w.sink, &w.element);
        let (through, params, var) = (w.through_text(), w.params_text(), &self.var);
        match self.reason {
            RefusalReason::NotAtomic => {
                write!(
                    f,
                    "`{element}` is updated by {source} and {sink}{through}{params}; make the update atomic"
                )?;
                match &self.assumable {
                    Some(map) => write!(f, ", or assume injective({map})"),
                    None => Ok(()),
                }
            }
            RefusalReason::PrivateFlow => write!(
                f,
                "{sink} reads `{element}`, which {source} writes in another work-item{params}; \
                 `{var}` is private: make it local or global, or expand it over the loop"
            ),
            RefusalReason::LocalFlow => write!(
                f,
                "{sink} reads `{element}`, which {source} writes in another work-group{params}; \
                 `{var}` is local: make it global and split the kernel there"
            ),
            RefusalReason::AcrossGroups => {
                let (first, second) = verbs(self.kind);
                write!(
                    f,
                    "{source} {first} and {sink} {second} `{element}`{through} in different work-groups{params}, \
                     which nothing orders inside one launch; keep that loop sequential or split the kernel there"
                )
            }
            RefusalReason::Unordered => {
                let (first, second) = verbs(self.kind);
                write!(
                    f,
                    "{source} {first} `{element}`{through} before {sink} {second} it{params}, and no barrier can \
                     keep that order; keep the loop sequential, or distribute the instructions first"
                )
            }
            RefusalReason::Lanes => {
                let (first, second) = verbs(self.kind);
                write!(
                    f,
                    "{source} {first} `{element}`{through} before {sink} {second} it{params}, and the lanes of a \
                     vector run together; keep the loop sequential, or distribute the instructions first"
                )
            }
        }
    }
}

fn verbs(kind: DependenceKind) -> (&'static str, &'static str) {
    match kind {
        DependenceKind::Flow => ("writes", "reads"),
        DependenceKind::Anti => ("reads", "writes"),
        DependenceKind::Output => ("writes", "writes"),
        DependenceKind::Update => ("updates", "updates"),
    }
}

/// Checks every dependence against the axis tags, and the temporaries that share a buffer, and collects the
/// barriers needed.
///
/// # Errors
/// The first dependence that the placement breaks, with a witness.
pub fn place(kernel: &Kernel, dependences: &[Dependence]) -> Result<Placement, PlacementError> {
    check_storage(kernel)?;
    let expanded;
    let kernel = if kernel.rules.is_empty() {
        kernel
    } else {
        expanded = kernel.with_rules_expanded(); // their bodies hold accesses, too
        &expanded
    };
    let poly = Polyhedral::new(kernel);
    let axes = LaunchAxes::of(kernel);
    let lanes = kernel.inames.values().any(|i| i.tag == AxisTag::Vector);
    let sites = access_sites(&poly);
    let sliced: Vec<_> = kernel.vars.ids().map(|v| sliced_axes(&poly, v, &sites[v.index()])).collect();
    let mut placement = Placement { axes: axes.axes.clone(), barriers: Vec::new(), sliced };
    if !axes.axes.is_empty() || lanes {
        let mut checker = Checker { poly: &poly, axes: &axes, barriers: &mut placement.barriers };
        for d in dependences {
            checker.check(d)?;
            checker.check_lanes(d)?;
        }
    }
    placement.barriers.sort();
    placement.barriers.dedup();
    Ok(placement)
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

thread_local! {
    /// The next step of a recipe meets most dependences unchanged: the barriers they need. Refusals are not kept.
    static CARRIERS: RefCell<HashMap<Words, Vec<Option<usize>>>> = RefCell::new(HashMap::new());
    /// Likewise for pairs that differ along an axis, of which there are none.
    static TOGETHER: RefCell<HashMap<Words, ()>> = RefCell::new(HashMap::new());
}

struct Checker<'a, 'k> {
    poly: &'a Polyhedral<'k>,
    axes: &'a LaunchAxes,
    barriers: &'a mut Vec<Barrier>,
}

impl Checker<'_, '_> {
    fn check(&mut self, d: &Dependence) -> Result<(), PlacementError> {
        let kernel = self.poly.kernel;
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
        if space == AddressSpace::Local {
            if d.kind == DependenceKind::Flow {
                self.refuse_any(d, &groups, RefusalReason::LocalFlow)?;
            }
        } else {
            let reason = if updates { RefusalReason::NotAtomic } else { RefusalReason::AcrossGroups };
            self.refuse_any(d, &groups, reason)?;
        }
        if items.iter().all(|axis| self.difference(d, *axis) == Difference::Nowhere) {
            return Ok(());
        }
        let question = self.question(d, &groups, &items);
        let carriers = remembered(&CARRIERS, question, || self.carriers(d, &groups, &items))?;
        let loops = self.poly.common_loops(d.source, d.sink);
        for depth in carriers {
            let carrier = depth.and_then(|k| loops.get(k).copied());
            self.barriers.push(Barrier { source: d.source, sink: d.sink, var: d.var, carrier });
        }
        Ok(())
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

    /// All that [`Checker::carriers`] goes by.
    fn question(&self, d: &Dependence, groups: &[Axis], items: &[Axis]) -> Words {
        let mut question = Words::default();
        let scopes = d.ask(self.poly, &mut question);
        question.count(groups.len());
        for axis in groups.iter().chain(items) {
            self.ask_where(d, *axis, &scopes, &mut question);
        }
        for l in self.poly.common_loops(d.source, d.sink) {
            question.push(i64::from(self.splits_at(d, *l)));
        }
        question.push(i64::from(self.poly.position(d.source) < self.poly.position(d.sink)));
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
            remembered(&TOGETHER, question, || match self.differing(d, *axis, &d.relation()?)? {
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
        let Some(witness) = d.witness(self.poly.kernel, part)? else { return Ok(()) };
        let kernel = self.poly.kernel;
        let var = kernel.vars[d.var].name.clone();
        let assumed = |map: &String| {
            kernel.var(map).is_some_and(|v| kernel.assumptions.contains(&Assumption::Injective(v)))
        };
        let assumable = witness.through.clone().filter(|map| !assumed(map));
        Err(PlacementError::Refused(Box::new(Refusal { reason, kind: d.kind, var, witness, assumable })))
    }

    /// The pairs of a part of a dependence whose coordinates along an axis differ; `None` if there are none.
    fn differing(
        &self,
        d: &Dependence,
        axis: Axis,
        whole: &isl::Map,
    ) -> Result<Option<isl::Map>, PlacementError> {
        let distance = match self.difference(d, axis) {
            Difference::Nowhere => return Ok(None),
            Difference::Everywhere => None,
            Difference::Where(e) => Some(e),
        };
        let part = match distance {
            None => whole.clone(),
            Some(e) => {
                let less = vec![isl::Constraint::non_negative(e.clone().offset(-1))];
                let more = vec![isl::Constraint::non_negative(isl::Affine::constant(-1).add_scaled(-1, &e))];
                whole.intersect(&isl::Map::from_disjuncts(&whole.space()?, &[less, more])?)?
            }
        };
        Ok(if part.is_empty()? { None } else { Some(part) })
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
        let (kernel, loops) = (self.poly.kernel, self.poly.loops(insn));
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
        self.poly.kernel.vars[d.var].space == AddressSpace::Local
    }

    /// Sink coordinate minus source coordinate.
    fn distance(&self, source: &Coordinate, sink: &Coordinate) -> Option<isl::Affine> {
        let value = |c: &Coordinate, side| match c {
            Coordinate::Iname(i, lo) => {
                let i = isl::Affine::name(self.poly.name(*i, side));
                Some(crate::polyhedral::difference(&i, &self.poly.affine(lo, side)?))
            }
            Coordinate::Zero => Some(isl::Affine::constant(0)),
            Coordinate::Everywhere => None,
        };
        Some(crate::polyhedral::difference(&value(sink, Side::Sink)?, &value(source, Side::Source)?))
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
        if self.poly.position(d.source) < self.poly.position(d.sink) {
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
        let kernel = self.poly.kernel;
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

/// Whether both ends of every pair are at one place of an axis, as far as the indices tell.
fn agree(d: &Dependence, source: &Coordinate, sink: &Coordinate) -> bool {
    match (source, sink) {
        (Coordinate::Iname(a, lo), Coordinate::Iname(b, from)) => d.agrees(*a, *b) && d.agree_on(lo, from),
        (Coordinate::Zero, Coordinate::Zero) => true,
        (Coordinate::Iname(..) | Coordinate::Zero | Coordinate::Everywhere, _) => false,
    }
}
