//! Turns a sum over the earlier iterations, or a recurrence, into a running total.

use super::convert_to_update::{joined, terms_beside};
use super::realise_reduction::search;
use kingpost_analysis::Analysis;
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::deps::pair::{Order, pair_relation};
use kingpost_analysis::polyhedral::{Polyhedral, Side, cross};
use kingpost_ir::neutral::of_nothing;
use kingpost_ir::{
    Access, AddressSpace, Affine, Atom, BinaryOp, Constraint, Domain, Expr, ExprType, GuardedRange, InameId,
    Insn, InsnId, Kernel, Node, Reduction, ScalarType, UpdateOp, VarKind, Variable, WriteOp,
};
use kingpost_isl as isl;
use kingpost_steps::condition::range_runs;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::accumulation::{NO_REDUCTIONS, refuse_reductions};
use kingpost_steps::proofs::bounds::{CONSTANT_BOUNDS, check_constant_value};
use kingpost_steps::proofs::elements::TEMPORARY;
use kingpost_steps::proofs::length::always;
use kingpost_steps::proofs::stale;
use kingpost_steps::proofs::width::{NO_WIDE_UPDATE, accumulator_type, cast_stored, stores_wide};
use kingpost_steps::refusal::{LostValue, Refusal};
use kingpost_steps::schedule::{Array, Statement};
use kingpost_steps::substitute::with_value;
use kingpost_steps::tree::{body_of, edit_siblings, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Computes prefix sums in one pass: a reduction whose range grows by one with every iteration of
/// the loop around, or a recurrence, becomes a running total.
///
/// # Rewrite
/// ```text
///                                                   s_acc_init: s_acc = 0.0
/// for i in 0..n                                =>   for i in 0..n
///   s: y[i] = 2.0*sum(j in 0..i + 1: a[j])            s_acc_update: s_acc += a[i]
///                                                     s: y[i] = 2.0*s_acc
/// ```
/// ```text
///                                                   s_acc_init: s_acc = select(1 < n, y[0], 0.0)
/// for i in 1..n                                =>   for i in 1..n
///   s: y[i] = y[i - 1] + a[i]                         s_acc_update: s_acc += a[i]
///                                                     s: y[i] = s_acc
/// ```
/// An exclusive sum (`j in 0..i`) adds `a[i - 1] if i >= 1`; a range that starts with several terms
/// gets a loop in front that adds all but the last of them. The total is private and has the type
/// of the reduction or of `y`; `i64` if a sum of type `i32` may not fit one, as in
/// `realise_reduction`.
///
/// # Precondition
/// The loop `i` is a plain range `i0..i1` directly around the instruction, which has no predicate.
///
/// A reduction: its range is `lo..i + c`, neither `lo` nor the body mentions `i`, and it is
/// evaluated whenever the instruction runs. Its terms come in the same order, so that the result is
/// the same bit by bit. A term is read once and earlier: with `o` the loops around `i`, no write
/// `w` inside `i` follows a read `r` of the new update: `{ r -> w : o = o', element(r) = element(w)
/// }` is empty.
///
/// A recurrence: seen as a sum (product, minimum, maximum), the right-hand side has exactly one
/// term `y[f(i - 1)]` where `y[f(i)]` is stored; nothing inside `i` writes what `f` reads,
/// `reads(f) ∩ written(i) = {}`; and no other instruction inside `i` writes what is read there:
/// `{ w -> r : o = o', element(w) = element(r), w before r }` is empty. Equal up to the
/// reassociation that updates declare, exactly so with one other term.
///
/// If loops are on axes, the placement must hold.
///
/// # Errors
/// A term that is written after it is read, or an element of the recurrence that another instruction
/// writes, with two instances; an index of the recurrence that changes inside the loop; an
/// instruction that is neither; a range that does not grow by one; a reduction under a condition;
/// an update of an `i32` by a sum in 64 bits; names that are taken.
///
/// # Elsewhere
/// Loopy realises prefix sums as scans; Halide has update definitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RealiseScan {
    /// The instruction.
    pub insn: String,
    /// Name of the running total; `{insn}_acc` if absent. Instructions are named after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<String>,
}

impl RealiseScan {
    /// Makes a running total of what `insn` sums.
    pub fn new(insn: impl Into<String>) -> Self {
        Self { insn: insn.into(), total: None }
    }

    /// Calls the running total `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.total = Some(name.into());
        self
    }

    /// Name of the running total.
    fn name(&self, kernel: &Kernel) -> Result<String, Refusal> {
        let all = |name: &str| ["", "_init", "_first", "_update"].map(|end| format!("{name}{end}")).to_vec();
        lookup::made(kernel, self.total.as_deref(), &format!("{}_acc", self.insn), all)
    }
}

impl fmt::Display for RealiseScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "realise the scan of `{}`", self.insn)?;
        self.total.as_ref().map_or(Ok(()), |name| write!(f, " in `{name}`"))
    }
}

/// A running total needs every term.
const UNCONDITIONAL: Obligation =
    Obligation::new("realise_scan.unconditional", "the instruction has no predicate");

/// There is something to run along, one value after the other.
const RANGE: Obligation =
    Obligation::new("realise_scan.range", "the loop directly around the instruction is a plain range");

/// There is one newest term.
const ONE_INAME: Obligation = Obligation::new("realise_scan.one_iname", "the reduction is over one iname");

/// The total exists whenever the instruction runs.
const EVALUATED: Obligation = Obligation::new(
    "realise_scan.evaluated",
    "the reduction is evaluated once whenever the instruction runs",
);

/// Every iteration adds one term.
const GROWS: Obligation =
    Obligation::new("realise_scan.grows", "the range of the reduction is `lo..i + c`, and `lo` stays");

/// Every iteration keeps the terms of the one before.
const SAME_TERMS: Obligation = Obligation::new("realise_scan.same_terms", "no term mentions the loop");

/// The total has a type.
const TYPED: Obligation = Obligation::new("realise_scan.typed", "the reduction has a type of its own");

/// A term is read once.
const TERMS_STAY: Obligation =
    Obligation::new("realise_scan.terms_stay", "nothing inside the loop writes a term after it is read");

/// There is a total.
const RECURRENCE: Obligation = Obligation::new(
    "realise_scan.recurrence",
    "the instruction sums over a range that grows, or joins a value to what the iteration before stored",
);

/// The total is not rounded less often.
const SAME_TYPE: Obligation =
    Obligation::new("realise_scan.same_type", "the value of the recurrence has the type of what is stored");

/// `reads(f) ∩ written(i) = {}`: `f(i - 1)` is what the iteration before stored to.
const INDEX_STAYS: Obligation = Obligation::new(
    "realise_scan.index_stays",
    "nothing inside the loop writes what the index of the store reads",
);

/// The total is what the element holds.
const OWN_ELEMENT: Obligation = Obligation::new(
    "realise_scan.own_element",
    "nobody else inside the loop writes the element that the recurrence takes over",
);

/// An instruction whose value a running total gives.
pub struct RunningTotal {
    scan: Scan,
    of: Of,
}

impl Primitive for RealiseScan {
    const NAME: &'static str = "realise_scan";
    const SUMMARY: &'static str =
        "Turns a sum over the earlier iterations, or a recurrence, into a running total.";

    type Proof = RunningTotal;
    type Made = (Array, Vec<Statement>);

    const OBLIGATIONS: &'static [Obligation] = &[
        UNCONDITIONAL,
        RANGE,
        ONE_INAME,
        EVALUATED,
        GROWS,
        SAME_TERMS,
        CONSTANT_BOUNDS,
        TYPED,
        NO_WIDE_UPDATE,
        TERMS_STAY,
        RECURRENCE,
        SAME_TYPE,
        INDEX_STAYS,
        OWN_ELEMENT,
        TEMPORARY,
        NO_REDUCTIONS,
    ];
    const KEEPS: Keeps = Keeps::REASSOCIATED;
    const WEIGHT: usize = 3;

    fn check(&self, analysis: &Analysis) -> Result<RunningTotal, Refusal> {
        let kernel = analysis.kernel();
        let scan = self.find(analysis)?;
        let Some(prefix) = prefix(kernel, &scan)? else {
            let step = recurrence(kernel, &scan)?;
            check_index_stays(kernel, &scan, &step.before)?;
            check_own_element(analysis, &scan, &step)?;
            return Ok(RunningTotal { scan, of: Of::Recurrence(step) });
        };
        let from = format!("the reduction over `{}`", kernel.inames[prefix.term].name);
        let sum = Sum::of(analysis, &scan, prefix)?;
        let narrow = RunningTotal { scan, of: Of::Prefix(sum.clone()) };
        let draft = self.draft(kernel, &narrow);
        let cast = stores_wide(&draft, narrow.scan.id, &from)?;
        self.check_terms(&analysis.next(&draft), &narrow.scan)?;
        Ok(RunningTotal { of: Of::Prefix(Sum { cast, ..sum }), ..narrow })
    }

    fn edit(&self, kernel: &mut Kernel, proof: &RunningTotal) -> (Array, Vec<Statement>) {
        let insns = match &proof.of {
            Of::Prefix(sum) => Self::edit_prefix(kernel, &proof.scan, sum),
            Of::Recurrence(step) => Self::edit_recurrence(kernel, &proof.scan, step),
        };
        let insns = insns.iter().map(|i| Statement::named(&kernel.insns[*i].name));
        (Array::named(&proof.scan.name), insns.collect())
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let all = draw::insns(kernel, |i| i.predicate.is_none()).into_iter().map(Self::new).collect();
        Some(draw::possible(kernel, all, p)?.into_temporary(kernel.fresh_name("total")))
    }
}

/// What a running total gives.
enum Of {
    /// A reduction over a range that grows.
    Prefix(Sum),
    /// What the iteration before stored, joined with a value.
    Recurrence(Recurrence),
}

/// The instruction and the loop directly around it.
struct Scan {
    id: InsnId,
    /// Name of the running total.
    name: String,
    /// Loops around the loop.
    outer: Vec<InameId>,
    iname: InameId,
    range: GuardedRange,
}

impl Scan {
    /// Declares the running total.
    fn total(&self, kernel: &mut Kernel, ty: ScalarType) -> Access {
        let total = Variable::new(&self.name, ty, VarKind::Temporary, [], AddressSpace::Private);
        Access::scalar(kernel.vars.push(total))
    }
}

/// A reduction over the range `lo..end`, where `end` grows with the loop.
#[derive(Clone)]
struct Prefix {
    reduction: Reduction,
    term: InameId,
    lo: Affine,
    end: Affine,
    ty: ScalarType,
}

/// A prefix and how it is summed.
#[derive(Clone)]
struct Sum {
    prefix: Prefix,
    /// Type of the total.
    wide: ScalarType,
    /// Values of the term's iname before the loop, if there are any.
    first: Option<Domain>,
    /// Where there is a newest term, if it is not everywhere.
    condition: Option<Expr>,
    /// Whether the instruction stores a wider value now.
    cast: bool,
}

/// `y[f(i)] = y[f(i - 1)] op value`.
struct Recurrence {
    op: UpdateOp,
    before: Access,
    value: Expr,
}

impl RealiseScan {
    fn find(&self, analysis: &Analysis) -> Result<Scan, Refusal> {
        let kernel = analysis.kernel();
        let id = lookup::insn(kernel, &self.insn)?;
        let insn = &kernel.insns[id];
        UNCONDITIONAL.require(insn.predicate.is_none(), || {
            format!(
                "`{}` has a predicate, and a running total needs every term; make it a condition of the value",
                self.insn
            )
        })?;
        let mut around = analysis.loops(id).to_vec();
        let iname = RANGE.find(around.pop(), || {
            format!("`{}` stands in no loop; there is nothing to run along", self.insn)
        })?;
        let range = RANGE.find(kernel.inames[iname].domain.as_guarded_range(iname), || {
            format!(
                "the loop over `{}` is no plain range; a running total needs one value after the other",
                kernel.inames[iname].name
            )
        })?;
        Ok(Scan { id, name: self.name(kernel)?, outer: around, iname, range })
    }

    fn edit_prefix(kernel: &mut Kernel, scan: &Scan, sum: &Sum) -> Vec<InsnId> {
        let (old, prefix) = (kernel.insns[scan.id].clone(), &sum.prefix);
        let total = scan.total(kernel, sum.wide);
        let insn = |end: &str, op, rhs, predicate| Insn {
            name: format!("{}{end}", scan.name),
            lhs: total.clone(),
            op,
            rhs,
            predicate,
            tags: old.tags.clone(),
            callee: None,
        };
        let step = WriteOp::Update { op: prefix.reduction.op, atomic: false };
        let body = &prefix.reduction.body;
        let init = insn("_init", WriteOp::Assign, of_nothing(prefix.reduction.op, prefix.ty), None);
        let mut insns = vec![kernel.insns.push(init)];
        let mut before = vec![Node::Insn(insns[0])];
        if let Some(domain) = &sum.first {
            kernel.inames[prefix.term].domain = domain.clone();
            let first = kernel.insns.push(insn("_first", step, (**body).clone(), None));
            insns.push(first);
            before.push(Node::Loop(prefix.term, vec![Node::Insn(first)]));
        }
        let term = with_value(body, prefix.term, &prefix.newest());
        let update = kernel.insns.push(insn("_update", step, term, sum.condition.clone()));
        insns.push(update);
        let (whole, value) = (Expr::Reduce(prefix.reduction.clone()), Expr::Load(total.clone()));
        kernel.insns[scan.id].map_expressions(&mut |e| if e == whole { value.clone() } else { e });
        if sum.cast {
            cast_stored(kernel, scan.id);
        }
        insert(kernel, scan, &before, update);
        insns
    }

    fn edit_recurrence(kernel: &mut Kernel, scan: &Scan, step: &Recurrence) -> Vec<InsnId> {
        let old = kernel.insns[scan.id].clone();
        let ty = kernel.vars[old.lhs.var].ty;
        let total = scan.total(kernel, ty);
        let first = with_value(&Expr::Load(step.before.clone()), scan.iname, &scan.range.lo);
        let condition = range_runs(&scan.range);
        let some = Constraint::lt(&scan.range.lo, &scan.range.hi).as_constant() == Some(true);
        let runs = some && scan.range.guard.is_empty();
        let insn = |end: &str, op, rhs| Insn {
            name: format!("{}{end}", scan.name),
            lhs: total.clone(),
            op,
            rhs,
            predicate: None,
            tags: old.tags.clone(),
            callee: None,
        };
        let nothing = of_nothing(step.op, ty);
        let first = if runs { first } else { Expr::Select(condition.into(), first.into(), nothing.into()) };
        let init = kernel.insns.push(insn("_init", WriteOp::Assign, first));
        let op = WriteOp::Update { op: step.op, atomic: false };
        let update = kernel.insns.push(insn("_update", op, step.value.clone()));
        kernel.insns[scan.id].rhs = Expr::Load(total.clone());
        insert(kernel, scan, &[Node::Insn(init)], update);
        vec![init, update]
    }

    /// `{ r -> w : o = o', element(r) = element(w), r before w }` is empty for what the new updates
    /// read.
    fn check_terms(&self, realised: &Analysis, scan: &Scan) -> Result<(), Refusal> {
        let (expanded, poly) = (realised.expanded(), realised.polyhedral());
        let names = ["_first", "_update"].map(|end| format!("{}{end}", scan.name));
        let total = expanded.var(&scan.name);
        let sites = realised.all_sites();
        let is_term = |s: &AccessSite| {
            !s.writes() && Some(s.access.var) != total && names.contains(&expanded.insns[s.insn].name)
        };
        let inside = |s: &AccessSite| poly.loops(s.insn).contains(&scan.iname);
        for of_var in sites {
            for read in of_var.iter().filter(|s| is_term(s)) {
                for write in of_var.iter().filter(|s| s.writes() && inside(s)) {
                    let order = Order::Within(&scan.outer);
                    let Some(pair) = pair_relation(poly, read, write, order) else { continue };
                    let witness = stale::witness(expanded, read, write, &pair.map(poly)?)?;
                    TERMS_STAY.refute(witness.map(|witness| {
                        let found = format!(
                            "{} would read the term `{}` once, and {} overwrites it, so that later sums have another \
                             one",
                            witness.source, witness.element, witness.sink
                        );
                        let help = "realise the reduction as a loop of its own".into();
                        LostValue { witness, found, help }
                    }))?;
                }
            }
        }
        Ok(())
    }
}

impl Prefix {
    /// The last value of its iname.
    fn newest(&self) -> Affine {
        self.end.plus_constant(-1)
    }
}

impl Sum {
    fn of(analysis: &Analysis, scan: &Scan, prefix: Prefix) -> Result<Self, Refusal> {
        let (kernel, poly) = (analysis.kernel(), analysis.polyhedral());
        let exists = Constraint::le(&prefix.lo, &prefix.newest());
        let needed = !always(poly, &[scan.outer.as_slice(), &[scan.iname]].concat(), &exists)?;
        // lo <= i + c - 1, with the loop alone on its side
        let first = prefix.lo.minus(&prefix.end).plus(&Affine::iname(scan.iname)).plus_constant(1);
        let condition = Expr::binary(BinaryOp::Le, Expr::from_affine(&first), Expr::Iname(scan.iname));
        let wide = accumulator_type(kernel, &kernel.insns[scan.id], &prefix.reduction, prefix.ty);
        let first = first_terms(poly, scan, &prefix)?;
        Ok(Self { prefix, wide, first, condition: needed.then_some(condition), cast: false })
    }
}

/// The first reduction of the value with the loop in its upper bound.
fn prefix(kernel: &Kernel, scan: &Scan) -> Result<Option<Prefix>, Refusal> {
    let insn = &kernel.insns[scan.id];
    let mut found = None;
    insn.rhs.for_each(&mut |e| {
        if let Expr::Reduce(r) = e
            && found.is_none()
            && r.inames.iter().any(|j| kernel.inames[*j].domain.mentions(scan.iname))
        {
            found = Some(r.clone());
        }
    });
    let Some(reduction) = found else { return Ok(None) };
    let i = &kernel.inames[scan.iname].name;
    let term = match *reduction.inames {
        [term] => Some(term),
        _ => None,
    };
    let term = ONE_INAME.find(term, || {
        format!("`{}` sums over several inames at once; a running total has one", insn.name)
    })?;
    let j = &kernel.inames[term].name;
    EVALUATED.forbid(search(&insn.rhs, term, None).and_then(|(_, obstacle)| obstacle), |obstacle| {
        format!("the reduction over `{j}` in `{}` {obstacle}", insn.name)
    })?;
    let range = kernel.inames[term].domain.as_range(term);
    let grows = |end: &Affine| end.minus(&Affine::iname(scan.iname));
    let range = range.filter(|(lo, end)| !lo.mentions(scan.iname) && !grows(end).mentions(scan.iname));
    let (lo, end) = GROWS.find(range, || {
        format!("the range of `{j}` does not grow by one with `{i}`; needed `lo..{i} + c`")
    })?;
    SAME_TERMS.require(!kernel.expand_rules(&reduction.body).mentions(scan.iname), || {
        format!("the terms over `{j}` mention `{i}`, so that every sum has terms of its own")
    })?;
    refuse_reductions(kernel, insn, &[&reduction.body])?;
    check_constant_value(kernel, term, &lo)?;
    check_constant_value(kernel, term, &end)?;
    let ty = kernel.type_of(&Expr::Reduce(reduction.clone()), &[]).ok().and_then(ExprType::stored);
    let ty = TYPED.find(ty, || {
        format!(
            "the reduction over `{j}` takes its type from where it stands; cast its body, for example to f64"
        )
    })?;
    Ok(Some(Prefix { reduction, term, lo, end, ty }))
}

/// The value as `y[f(i - 1)] op rest`.
fn recurrence(kernel: &Kernel, scan: &Scan) -> Result<Recurrence, Refusal> {
    let insn = &kernel.insns[scan.id];
    let neither = || {
        format!(
            "`{}` neither sums over a range that grows with `{}` nor joins a value to the element that the iteration \
             before stored",
            insn.name, kernel.inames[scan.iname].name
        )
    };
    let moves = insn.lhs.index.iter().any(|e| e.mentions(scan.iname));
    RECURRENCE.require(insn.op == WriteOp::Assign && moves, neither)?;
    let earlier = Affine::iname(scan.iname).plus_constant(-1);
    let replace = |atom: &Atom| (*atom == Atom::Iname(scan.iname)).then(|| earlier.clone());
    let index = insn.lhs.index.iter().map(|e| Some(Expr::from_affine(&e.as_affine()?.substitute(&replace))));
    let before = Access::new(insn.lhs.var, RECURRENCE.find(index.collect::<Option<Vec<_>>>(), neither)?);
    let (op, rest) = RECURRENCE.find(terms_beside(&insn.rhs, &before), neither)?;
    let ty = kernel.vars[insn.lhs.var].ty;
    SAME_TYPE.require(kernel.type_of(&insn.rhs, &[]) == Ok(ExprType::Scalar(ty)), || {
        format!(
            "`{}` rounds its value to {ty} in every iteration, which a running total would not; keep it in the type of its values",
            insn.name
        )
    })?;
    let value = joined(kernel, insn, op, &rest);
    Ok(Recurrence { op, before, value })
}

fn check_index_stays(kernel: &Kernel, scan: &Scan, before: &Access) -> Result<(), Refusal> {
    let mut read = Vec::new();
    before.index.iter().for_each(|e| {
        kernel.expand_rules(e).for_each(&mut |e| {
            if let Expr::Load(access) = e {
                read.push(access.var);
            }
        });
    });
    let inside = insns_of(body_of(kernel, scan.iname)?);
    INDEX_STAYS.forbid(inside.into_iter().find(|i| read.contains(&kernel.insns[*i].lhs.var)), |writer| {
        let (writer, name) = (&kernel.insns[writer], &kernel.insns[scan.id].name);
        format!(
            "the index at which `{name}` stores mentions `{}`, which `{}` writes inside the loop over `{}`, so that the \
             iteration before stored to another element; keep the recurrence, or set it outside the loop",
            kernel.vars[writer.lhs.var].name, writer.name, kernel.inames[scan.iname].name
        )
    })
}

/// Nobody else inside the loop writes the element that the recurrence takes over:
/// `{ w -> r : o = o', element(w) = element(r), w before r }` is empty.
fn check_own_element(analysis: &Analysis, scan: &Scan, step: &Recurrence) -> Result<(), Refusal> {
    let (poly, expanded) = (analysis.polyhedral(), analysis.expanded());
    let own = |s: &AccessSite| {
        let affine = |index: &[Expr]| index.iter().map(Expr::as_affine).collect::<Vec<_>>();
        s.insn == scan.id && !s.writes() && affine(&s.access.index) == affine(&step.before.index)
    };
    let of_var = analysis.sites(step.before.var);
    for read in of_var.iter().filter(|s| own(s)) {
        let others = of_var
            .iter()
            .filter(|s| s.writes() && s.insn != scan.id && poly.loops(s.insn).contains(&scan.iname));
        for write in others {
            let Some(pair) = pair_relation(poly, write, read, Order::Within(&scan.outer)) else { continue };
            let witness = stale::witness(expanded, write, read, &pair.map(poly)?)?;
            OWN_ELEMENT.refute(witness.map(|witness| {
                let found = format!(
                    "{} takes `{}` from {}, and not from the iteration before",
                    witness.sink, witness.element, witness.source
                );
                let help = "keep the recurrence, or distribute the loop first".into();
                LostValue { witness, found, help }
            }))?;
        }
    }
    Ok(())
}

/// Values of the term's iname before the loop: all but the newest of the first iteration, if
/// it runs; `None` if there are none.
fn first_terms(poly: &Polyhedral, scan: &Scan, prefix: &Prefix) -> Result<Option<Domain>, Refusal> {
    let replace = |atom: &Atom| (*atom == Atom::Iname(scan.iname)).then(|| scan.range.lo.clone());
    let last = prefix.end.substitute(&replace).plus_constant(-1);
    let j = Affine::iname(prefix.term);
    let runs = Constraint::lt(&scan.range.lo, &scan.range.hi);
    let values = [Constraint::le(&prefix.lo, &j), Constraint::lt(&j, &last), runs];
    let all: Vec<_> = values.into_iter().chain(scan.range.guard.iter().cloned()).collect();
    let mut loops = scan.outer.clone();
    loops.push(prefix.term);
    let space = isl::SetSpace::new(&poly.names(&loops, Side::Source), &poly.params);
    let known: Vec<_> = all.iter().filter_map(|c| poly.constraint(c, Side::Source)).collect();
    let values = cross(&poly.domains(&scan.outer, Side::Source).0, &[known]);
    if isl::Set::from_disjuncts(&space, &poly.in_context(values))?.is_empty()? {
        return Ok(None);
    }
    Ok(Some(Domain::conjunction(all)))
}

/// Puts nodes before the loop, and the update before the instruction.
fn insert(kernel: &mut Kernel, scan: &Scan, before: &[Node], update: InsnId) {
    let own = Node::Insn(scan.id);
    edit_siblings(&mut kernel.body, &|n| *n == own, &mut |siblings| {
        if let Some(at) = siblings.iter().position(|n| *n == own) {
            siblings.insert(at, Node::Insn(update));
        }
    });
    let wanted = |n: &Node| matches!(n, Node::Loop(l, _) if *l == scan.iname);
    edit_siblings(&mut kernel.body, &wanted, &mut |siblings| {
        if let Some(at) = siblings.iter().position(wanted) {
            siblings.splice(at..at, before.iter().cloned());
        }
    });
}
