//! Computes equal subexpressions once.

use crate::outer_factors::common_tags;
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::{AccessSite, Mode};
use kingpost_analysis::polyhedral::{Polyhedral, Side, cross};
use kingpost_ir::{
    Access, AddressSpace, BinaryOp, Expr, ExprType, InameId, Insn, InsnId, Kernel, Node, ScalarType, VarKind,
    Variable, WriteOp,
};
use kingpost_isl as isl;
use kingpost_steps::Means;
use kingpost_steps::draw::Picks;
use kingpost_steps::lookup::Selection;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::primitive::check_placement;
use kingpost_steps::proofs::CURRENT;
use kingpost_steps::proofs::stale::{Place, check_unchanged};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::schedule::{Array, Statement};
use kingpost_steps::tree::{edit_siblings, insns_of, siblings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

/// Computes subexpressions that occur several times in some instructions once, into private
/// temporaries, as deep in the loops as their uses allow; the largest first, until none is left.
///
/// # Rewrite
/// ```text
/// for i in 0..n                          =>   for i in 0..n
///   s: y[i] = (a[i] + 1.0)*b[i]                 compute_common: common = a[i] + 1.0
///   for j in 0..m                               s: y[i] = common*b[i]
///     t: z[i, j] = (a[i] + 1.0)*c[j]            for j in 0..m
///                                                 t: z[i, j] = common*c[j]
/// ```
/// Subexpressions are equal if they are written alike. They are of type `f32` or `f64`, hold an
/// operation and no reduction or rule, stand in no call, and count by their operations:
/// `least_size` of them in `least_uses` places. Further temporaries are called
/// `common_1`, `common_2`, …. A value that no loop changes leaves it by `hoist_insn`.
///
/// # Precondition
/// With `L` the loops around all uses `U` of a temporary: (1) nothing writes an operand between the
/// temporary and a use, `{ w -> u : u in U, L = L', element(w) = element(u), w before u }` is empty
/// for writes after the temporary; (2) one use is surely evaluated in every iteration of
/// `L`: it stands under no condition, and the loops between `L` and it are not empty. The value is
/// the same bit by bit. If loops are on axes, the placement must hold. Uses that a write separates
/// get temporaries of their own, or stay.
///
/// # Errors
/// A selection that matches nothing, sizes below 1, no subexpression that occurs often enough; a
/// write between all there are, with the write and the use.
///
/// # Elsewhere
/// Loopy `collect_common_factors_on_increment` and pymbolic's `CommonSubexpression`; LLVM's GVN;
/// Halide's CSE pass; MLIR `cse`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EliminateCommonSubexpressions {
    /// The instructions; all if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insns: Option<Selection>,
    /// Name of the temporaries; `common` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary: Option<String>,
    /// Operations a subexpression has at least.
    #[serde(default = "one")]
    pub least_size: u32,
    /// Places in which it stands at least.
    #[serde(default = "two")]
    pub least_uses: u32,
}

fn one() -> u32 {
    1
}

fn two() -> u32 {
    2
}

impl Default for EliminateCommonSubexpressions {
    fn default() -> Self {
        Self { insns: None, temporary: None, least_size: one(), least_uses: two() }
    }
}

impl EliminateCommonSubexpressions {
    /// Looks at these instructions only.
    pub fn of(insns: Selection) -> Self {
        Self { insns: Some(insns), ..Self::default() }
    }
}

impl fmt::Display for EliminateCommonSubexpressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("eliminate common subexpressions")?;
        if let Some(insns) = &self.insns {
            write!(f, " of {insns}")?;
        }
        if self.least_size != one() {
            write!(f, " with {} operations or more", self.least_size)?;
        }
        if self.least_uses != two() {
            write!(f, " in {} places or more", self.least_uses)?;
        }
        self.temporary.as_ref().map_or(Ok(()), |name| write!(f, " in `{name}`"))
    }
}

/// There is something to compute once.
const COMMON: Obligation = Obligation::new(
    "eliminate_common_subexpressions.common",
    "a subexpression that is large enough stands often enough where it is surely computed",
);

/// Places for temporaries, each in the kernel that holds those before it.
pub struct Places {
    spots: Vec<Spot>,
}

impl Primitive for EliminateCommonSubexpressions {
    const NAME: &'static str = "eliminate_common_subexpressions";
    const SUMMARY: &'static str = "Computes equal subexpressions once.";

    type Proof = Places;
    /// The temporaries, the largest subexpression first, and in textual order what computes them.
    type Made = (Vec<Array>, Vec<Statement>);

    const OBLIGATIONS: &'static [Obligation] = &[COMMON, CURRENT];
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Places, Refusal> {
        let kernel = analysis.kernel();
        if self.least_size < 1 {
            return Err(Refusal::argument("least_size", "the least size is 0", "at least 1 operation"));
        }
        if self.least_uses < 2 {
            let found = format!("the least number of uses is {}", self.least_uses);
            return Err(Refusal::argument("least_uses", found, "at least 2"));
        }
        let (spots, all) = self.eliminate(kernel, false)?;
        if check_placement(&all).is_ok() {
            return Ok(Places { spots });
        }
        // some of them would carry a value between places: find out which
        self.eliminate(kernel, true).map(|(spots, _)| Places { spots })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Places) -> (Vec<Array>, Vec<Statement>) {
        let new: Vec<_> = proof.spots.iter().map(|spot| self.introduce(kernel, spot)).collect();
        let array = |insn: &InsnId| Array::named(&kernel.vars[kernel.insns[*insn].lhs.var].name);
        let in_text = insns_of(&kernel.body).into_iter().filter(|insn| new.contains(insn));
        let insns = in_text.map(|insn| Statement::named(&kernel.insns[insn].name)).collect();
        (new.iter().map(array).collect(), insns)
    }

    fn draw(_: &Kernel, _: &mut Picks<'_>) -> Option<Self> {
        Some(Self::default())
    }
}

/// A use of a subexpression.
#[derive(Clone, Copy)]
struct Use {
    insn: InsnId,
    /// Whether it may not be evaluated although its instruction is reached.
    conditional: bool,
}

/// A subexpression, its operations, and its uses in textual order.
struct Candidate {
    e: Expr,
    ty: ScalarType,
    size: u32,
    uses: Vec<Use>,
}

/// A place for a temporary: before a node in the body of the last of the loops.
struct Spot {
    e: Expr,
    ty: ScalarType,
    insns: Vec<InsnId>,
    /// The node before which it is computed, without its body.
    node: Node,
}

impl EliminateCommonSubexpressions {
    /// Places for temporaries until none is left, and the kernel that holds them all.
    fn eliminate(&self, kernel: &Kernel, placed: bool) -> Result<(Vec<Spot>, Kernel), Refusal> {
        let mut selected: BTreeSet<InsnId> = match &self.insns {
            Some(selection) => selection.resolve(kernel)?.into_iter().collect(),
            None => kernel.insns.ids().collect(),
        };
        // what a call holds is what its kernel says; nothing is put between its instructions, as
        // none is a use
        let called = selected.iter().copied().find(|insn| kernel.insns[*insn].callee.is_some());
        selected.retain(|insn| kernel.insns[*insn].callee.is_none());
        let mut search =
            Search { step: self, defined: HashSet::new(), failed: HashSet::new(), refusal: None };
        let mut current = kernel.clone();
        let mut spots = Vec::new();
        while let Some(spot) = search.next(&current, &selected)? {
            let mut result = current.clone();
            let insn = self.introduce(&mut result, &spot);
            if placed && let Err(cause) = check_placement(&result) {
                search.failed.insert(spot.e);
                search.refusal.get_or_insert(cause);
                continue;
            }
            selected.insert(insn);
            search.defined.insert(insn);
            spots.push(spot);
            current = result;
        }
        match (search.defined.is_empty(), search.refusal) {
            (false, _) => {
                COMMON.holds(Means::Form, String::new);
                Ok((spots, current))
            }
            (true, Some(refusal)) => Err(refusal),
            (true, None) => Err(COMMON.unfit(format!(
                "no subexpression that is surely computed counts (operations: {} or more, places: {} or more){}",
                self.least_size,
                self.least_uses,
                called.map_or(String::new(), |insn| format!(
                    "; `{}` stands in a call, inline it first",
                    kernel.insns[insn].name
                ))
            ))),
        }
    }

    /// Computes the subexpression into a temporary at its place, and lets its uses read that.
    fn introduce(&self, kernel: &mut Kernel, spot: &Spot) -> InsnId {
        let name = kernel.fresh_name(self.temporary.as_deref().unwrap_or("common"));
        let temporary = Variable::new(&name, spot.ty, VarKind::Temporary, [], AddressSpace::Private);
        let access = Access::scalar(kernel.vars.push(temporary));
        let value = Expr::Load(access.clone());
        let mut replace = |e: Expr| if e == spot.e { value.clone() } else { e };
        for insn in &spot.insns {
            kernel.insns[*insn].map_expressions(&mut replace);
        }
        let tags = common_tags(kernel, spot.insns.iter().copied());
        let insn = Insn {
            name: kernel.fresh_name(&format!("compute_{name}")),
            lhs: access,
            op: WriteOp::Assign,
            rhs: spot.e.clone(),
            predicate: None,
            tags,
            callee: None,
        };
        let insn = kernel.insns.push(insn);
        edit_siblings(&mut kernel.body, &|n| is_same(n, &spot.node), &mut |nodes| {
            if let Some(at) = nodes.iter().position(|n| is_same(n, &spot.node)) {
                nodes.insert(at, Node::Insn(insn));
            }
        });
        insn
    }
}

fn is_same(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Insn(a), Node::Insn(b)) => a == b,
        (Node::Loop(a, _), Node::Loop(b, _)) => a == b,
        (Node::Insn(_), Node::Loop(..)) | (Node::Loop(..), Node::Insn(_)) => false,
    }
}

/// What is known of the subexpressions of a kernel that is being changed.
struct Search<'s> {
    step: &'s EliminateCommonSubexpressions,
    /// Instructions that compute temporaries: their whole right-hand sides are no uses.
    defined: HashSet<InsnId>,
    /// Subexpressions for which there is no place.
    failed: HashSet<Expr>,
    /// Why there is no place for the first of them.
    refusal: Option<Refusal>,
}

impl Search<'_> {
    /// The largest subexpression that a temporary can hold, and where.
    fn next(&mut self, kernel: &Kernel, selected: &BTreeSet<InsnId>) -> Result<Option<Spot>, Refusal> {
        let mut found = self.candidates(kernel, selected);
        if found.is_empty() {
            return Ok(None);
        }
        found.sort_by_key(|c| std::cmp::Reverse(c.size)); // stable: textual order among equals
        let analysis = Analysis::of(kernel);
        for candidate in found {
            if let Some(spot) = self.place(analysis.polyhedral(), analysis.all_sites(), &candidate)? {
                return Ok(Some(spot));
            }
            self.failed.insert(candidate.e);
        }
        Ok(None)
    }

    /// The subexpressions that occur often enough.
    fn candidates(&self, kernel: &Kernel, selected: &BTreeSet<InsnId>) -> Vec<Candidate> {
        let mut found =
            Collector { kernel, least: self.step.least_size, index: HashMap::new(), all: Vec::new() };
        for (insn, loops) in kernel.schedule().into_iter().filter(|(i, _)| selected.contains(i)) {
            let at = (insn, loops.as_slice());
            let data = &kernel.insns[insn];
            let conditional = data.predicate.is_some();
            if self.defined.contains(&insn) {
                for operand in operands_with_conditions(&data.rhs, conditional) {
                    found.visit(at, operand.0, operand.1);
                }
            } else {
                found.visit(at, &data.rhs, conditional);
            }
            if let Some(predicate) = &data.predicate {
                found.visit(at, predicate, false);
            }
        }
        let often = |c: &Candidate| c.uses.len() >= self.step.least_uses as usize;
        found.all.into_iter().filter(|c| often(c) && !self.failed.contains(&c.e)).collect()
    }

    /// The first group of uses, in textual order, that one temporary can serve.
    fn place(
        &mut self,
        poly: &Polyhedral,
        sites: &[Vec<AccessSite>],
        candidate: &Candidate,
    ) -> Result<Option<Spot>, Refusal> {
        let least = self.step.least_uses as usize;
        let mut uses = candidate.uses.as_slice();
        while uses.len() >= least {
            let mut count = 0;
            for end in 1..=uses.len() {
                match check_unchanged_for(poly, sites, &candidate.e, &uses[..end]) {
                    Ok(()) => count = end,
                    Err(Refusal::Solver(error)) => return Err(Refusal::Solver(error)),
                    Err(cause) => {
                        self.refusal.get_or_insert(cause);
                        break;
                    }
                }
            }
            let group = &uses[..count];
            if count >= least && is_surely_evaluated(poly, group)? {
                let insns: BTreeSet<_> = group.iter().map(|u| u.insn).collect();
                return Ok(point(poly, group).map(|(_, node)| Spot {
                    e: candidate.e.clone(),
                    ty: candidate.ty,
                    insns: insns.into_iter().collect(),
                    node,
                }));
            }
            uses = &uses[count.max(1)..];
        }
        Ok(None)
    }
}

/// The loops around all uses, outer first.
fn loops_around<'p>(poly: &'p Polyhedral, uses: &[Use]) -> &'p [InameId] {
    let Some((first, others)) = uses.split_first() else { return &[] };
    let all = poly.loops(first.insn);
    let depth =
        others.iter().map(|u| poly.common_loops(first.insn, u.insn).len()).fold(all.len(), usize::min);
    &all[..depth]
}

/// The instruction that comes first after the place of a temporary, and the node that holds it.
fn point(poly: &Polyhedral, uses: &[Use]) -> Option<(InsnId, Node)> {
    let first = uses.first()?.insn;
    let around = loops_around(poly, uses);
    let node = match poly.loops(first).get(around.len()) {
        None => Node::Insn(first),
        Some(l) => Node::Loop(*l, Vec::new()),
    };
    let beside = siblings(&poly.kernel.body, &|n| is_same(n, &node))?;
    let whole = beside.iter().find(|n| is_same(n, &node))?;
    insns_of(std::slice::from_ref(whole)).first().map(|insn| (*insn, node))
}

/// Nothing writes an operand between the place of the temporary and a use.
fn check_unchanged_for(
    poly: &Polyhedral,
    sites: &[Vec<AccessSite>],
    e: &Expr,
    uses: &[Use],
) -> Result<(), Refusal> {
    let Some((first, _)) = point(poly, uses) else { return Ok(()) };
    let mut operands = Vec::new();
    e.for_each(&mut |e| {
        if let Expr::Load(access) = e {
            operands.push(access.clone());
        }
    });
    let what = format!("`{}`", poly.kernel.insns[first].name);
    let what = format!("the start of {what}");
    let place = Place { loops: loops_around(poly, uses), position: poly.position(first), what: &what };
    for of_var in sites.iter().filter(|s| s.iter().any(AccessSite::writes)) {
        let read = |s: &&AccessSite| {
            s.mode == Mode::Read && operands.contains(&s.access) && uses.iter().any(|u| u.insn == s.insn)
        };
        let reads: Vec<_> = of_var.iter().filter(read).collect();
        check_unchanged(poly, of_var, &reads, place, "keep both, or copy that operand first")?;
    }
    Ok(())
}

/// Whether one of the uses is evaluated in every iteration of the loops around them.
///
/// Formula: `D(L)` is a subset of `D(L, M)` with the loops `M` between `L` and the use projected
/// out.
fn is_surely_evaluated(poly: &Polyhedral, uses: &[Use]) -> Result<bool, isl::IslError> {
    let around = loops_around(poly, uses);
    for site in uses.iter().filter(|u| !u.conditional) {
        let loops = poly.loops(site.insn);
        let inner = poly.names(&loops[around.len()..], Side::Source);
        if inner.is_empty() {
            return Ok(true);
        }
        let (outer, _) = poly.domains(around, Side::Source);
        let (between, exact) = poly.domains(&loops[around.len()..], Side::Source);
        if !exact {
            continue;
        }
        let dims = poly.names(around, Side::Source);
        let outer = poly.in_context(outer);
        let reached = isl::Set::from_disjuncts(&isl::SetSpace::new(&dims, &poly.params), &outer)?;
        let space = isl::SetSpace::new(&poly.names(loops, Side::Source), &poly.params);
        let inner: Vec<_> = inner.iter().map(String::as_str).collect();
        let some = isl::Set::from_disjuncts(&space, &cross(&outer, &between))?.project_out(&inner)?;
        if reached.is_subset(&some)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gathers subexpressions in textual order, equal ones together.
struct Collector<'k> {
    kernel: &'k Kernel,
    least: u32,
    index: HashMap<&'k Expr, Option<usize>>,
    all: Vec<Candidate>,
}

impl<'k> Collector<'k> {
    fn visit(&mut self, at: (InsnId, &[InameId]), e: &'k Expr, conditional: bool) {
        self.record(at, e, conditional);
        for (operand, conditional) in operands_with_conditions(e, conditional) {
            self.visit(at, operand, conditional);
        }
    }

    fn record(&mut self, (insn, loops): (InsnId, &[InameId]), e: &'k Expr, conditional: bool) {
        let at = match self.index.get(e) {
            Some(known) => *known,
            None => {
                let at = self.candidate(loops, e).map(|candidate| {
                    self.all.push(candidate);
                    self.all.len() - 1
                });
                self.index.insert(e, at);
                at
            }
        };
        if let Some(candidate) = at.and_then(|k| self.all.get_mut(k)) {
            candidate.uses.push(Use { insn, conditional });
        }
    }

    /// The subexpression, if it can stand elsewhere in the loops around its instruction.
    fn candidate(&self, loops: &[InameId], e: &Expr) -> Option<Candidate> {
        let size = operations(e);
        if size < self.least {
            return None;
        }
        let Ok(ExprType::Scalar(ty)) = self.kernel.type_of(e, &[]) else { return None };
        let mut movable = ty.part().is_real();
        e.for_each(&mut |e| match e {
            // the iname of a reduction around has no value outside it
            Expr::Iname(i) => movable &= loops.contains(i),
            Expr::Reduce(_) | Expr::Rule(..) | Expr::RuleParam(_) => movable = false,
            _ => {}
        });
        movable.then(|| Candidate { e: e.clone(), ty, size, uses: Vec::new() })
    }
}

/// Operations of an expression, those of indices left out.
fn operations(e: &Expr) -> u32 {
    if matches!(e, Expr::Load(_)) {
        return 0;
    }
    let own = u32::from(matches!(e, Expr::Binary(..) | Expr::Call(..) | Expr::Select(..)));
    e.operands().map(operations).fold(own, u32::saturating_add)
}

/// The operands, and whether each may not be evaluated although the expression is.
fn operands_with_conditions(e: &Expr, conditional: bool) -> Vec<(&Expr, bool)> {
    let of = |k: usize| match e {
        Expr::Select(..) | Expr::Binary(BinaryOp::And | BinaryOp::Or, ..) => k > 0,
        Expr::Reduce(_) | Expr::Rule(..) => true,
        _ => false,
    };
    match e {
        Expr::Load(_) => Vec::new(), // indices are integers
        _ => e.operands().enumerate().map(|(k, o)| (o, conditional || of(k))).collect(),
    }
}
