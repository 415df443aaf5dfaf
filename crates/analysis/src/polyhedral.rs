//! From kernels to isl: instance sets and constraints by name.
//!
//! The only place where kernels meet `kingpost_isl`. Names of the sink side of a relation end in `'`.
//! Symbols are parameters and integer scalar inputs, which keep their value while the kernel runs;
//! a constraint on any other scalar is dropped, which makes a set larger and is reported as
//! inexact.

use crate::origin::index_origin;
use crate::question::{Instances, Shared, Symbols, Union, union_of};
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::{Constraint, Domain};
use kingpost_ir::expr::{BinaryOp, Expr, UnaryOp};
use kingpost_ir::ids::{Id, InameId, InsnId, VarId};
use kingpost_ir::kernel::{Direction, Kernel, VarKind};
use kingpost_ir::types::ScalarType;
use kingpost_isl as isl;
use std::borrow::Cow;
use std::cell::OnceCell;

/// A disjunction of conjunctions in isl's terms.
pub type Disjuncts = Vec<Vec<isl::Constraint>>;

/// Which end of a relation a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The input of a map, or a plain set.
    Source,
    /// The output of a map: names end in `'`.
    Sink,
}

/// A kernel seen as integer sets.
#[derive(Debug)]
pub struct Polyhedral<'k> {
    /// The kernel, or its normal form.
    pub kernel: Cow<'k, Kernel>,
    /// Names of the symbols: parameters and integer scalar inputs.
    pub params: Vec<String>,
    /// What is assumed of the symbols.
    pub context: Vec<isl::Constraint>,
    positions: Vec<usize>,
    /// The instructions in textual order.
    order: Vec<InsnId>,
    loops: Vec<Vec<InameId>>,
    /// The number of each variable among the symbols.
    numbers: Vec<Option<usize>>,
    symbols: OnceCell<Shared<Symbols>>,
    /// The values of each loop of the tree, in which the loops around it have their numbers.
    values: Vec<OnceCell<Shared<Union>>>,
    /// The value of each loop at index 0 of its axis.
    origins: Vec<OnceCell<Affine>>,
    /// The value of each loop that has one iteration.
    only_values: Vec<OnceCell<Option<i64>>>,
    /// The constraints on each loop with those values put in.
    settled: Vec<OnceCell<Vec<Constraint>>>,
    /// Where each instruction runs.
    instances: Vec<OnceCell<Shared<Instances>>>,
}

/// What the types of 32-bit symbols can hold, ends included. A launch refuses other values, so that
/// a witness has none.
pub fn symbol_ranges(kernel: &Kernel) -> Vec<(String, i64, i64)> {
    let narrow = |v: &VarId| is_symbol(kernel, *v) && kernel.vars[*v].ty == ScalarType::I32;
    let range = |v: VarId| (kernel.vars[v].name.clone(), i32::MIN.into(), i32::MAX.into());
    kernel.vars.ids().filter(narrow).map(range).collect()
}

/// Values of all parameters that are tried for a witness.
const TRIED: [i64; 4] = [1, 2, 3, 0];

/// Whether parameters that are computed have the values that they are computed as.
pub fn is_real(kernel: &Kernel, point: &[(String, i64)]) -> bool {
    let of_param = |name: &String| kernel.var(name).is_some_and(|v| kernel.vars[v].kind == VarKind::Param);
    let params = point.iter().filter(|(name, _)| of_param(name)).cloned().collect();
    kernel.with_defined(&params).is_ok()
}

/// The smallest point of a set, with symbols that fit their types. Of parameters that are computed by
/// products isl knows bounds alone: if the point [is not real](is_real), small values of the other parameters
/// are tried, and where none of them has a point it stays the answer.
///
/// # Errors
/// A failure of isl.
pub fn smallest_point(kernel: &Kernel, set: &isl::Set) -> Result<Option<isl::Point>, isl::IslError> {
    smallest(kernel, |point: &isl::Point| point, |ranges| set.lexmin_point_within(ranges))
}

/// The smallest pair of a map, as [`smallest_point`].
///
/// # Errors
/// A failure of isl.
pub fn smallest_pair(kernel: &Kernel, map: &isl::Map) -> Result<Option<isl::Pair>, isl::IslError> {
    smallest(kernel, |pair: &isl::Pair| &pair.params, |ranges| map.lexmin_pair_within(ranges))
}

fn smallest<P>(
    kernel: &Kernel,
    values: impl Fn(&P) -> &[(String, i64)],
    find: impl Fn(&[(String, i64, i64)]) -> Result<Option<P>, isl::IslError>,
) -> Result<Option<P>, isl::IslError> {
    let ranges = symbol_ranges(kernel);
    let Some(point) = find(&ranges)? else { return Ok(None) };
    if is_real(kernel, values(&point)) {
        return Ok(Some(point));
    }
    for n in TRIED {
        let is_given = |id: VarId| kernel.vars[id].kind == VarKind::Param && kernel.definition(id).is_none();
        let given = kernel.vars.iter().filter(|(id, _)| is_given(*id)).map(|(_, v)| (v.name.clone(), n));
        let given = given.collect();
        let Ok(all) = kernel.with_defined(&given) else { continue };
        let others = ranges.iter().filter(|(name, ..)| !all.contains_key(name)).cloned();
        let fixed = all.iter().map(|(name, value)| (name.clone(), *value, *value));
        if let Some(point) = find(&fixed.chain(others).collect::<Vec<_>>())? {
            return Ok(Some(point));
        }
    }
    Ok(Some(point))
}

impl<'k> Polyhedral<'k> {
    /// Looks at a well-formed kernel.
    pub fn new(kernel: &'k Kernel) -> Self {
        Self::of(Cow::Borrowed(kernel))
    }

    /// Looks at a well-formed kernel that was made for this.
    pub(crate) fn of(kernel: Cow<'k, Kernel>) -> Self {
        let mut positions = vec![0; kernel.insns.len()];
        let mut loops = vec![Vec::new(); kernel.insns.len()];
        let mut order = Vec::with_capacity(kernel.insns.len());
        for (position, (insn, around)) in kernel.schedule().into_iter().enumerate() {
            order.push(insn);
            positions[insn.index()] = position;
            loops[insn.index()] = around;
        }
        let symbols = kernel.vars.ids().filter(|v| is_symbol(&kernel, *v));
        let params = symbols.map(|v| kernel.vars[v].name.clone()).collect();
        let mut numbers = vec![None; kernel.vars.len()];
        let symbols = kernel.vars.ids().filter(|v| is_symbol(&kernel, *v));
        symbols.enumerate().for_each(|(k, v)| numbers[v.index()] = Some(k));
        let values = vec![OnceCell::new(); kernel.inames.len()];
        let origins = vec![OnceCell::new(); kernel.inames.len()];
        let only_values = vec![OnceCell::new(); kernel.inames.len()];
        let settled = vec![OnceCell::new(); kernel.inames.len()];
        let instances = vec![OnceCell::new(); kernel.insns.len()];
        let (context, symbols) = (Vec::new(), OnceCell::new());
        let mut this = Self {
            kernel,
            params,
            context,
            positions,
            order,
            loops,
            numbers,
            symbols,
            values,
            origins,
            only_values,
            settled,
            instances,
        };
        let known = this.kernel.known_of_parameters();
        this.context = known.iter().filter_map(|c| this.constraint(c, Side::Source)).collect();
        this
    }

    /// Position of an instruction in textual order.
    pub fn position(&self, insn: InsnId) -> usize {
        self.positions[insn.index()]
    }

    /// The instructions of the tree in textual order.
    pub(crate) fn in_order(&self) -> &[InsnId] {
        &self.order
    }

    /// Loops around an instruction, outer first.
    pub fn loops(&self, insn: InsnId) -> &[InameId] {
        &self.loops[insn.index()]
    }

    /// Loops around both instructions, outer first.
    pub fn common_loops(&self, a: InsnId, b: InsnId) -> &[InameId] {
        let (a, b) = (self.loops(a), self.loops(b));
        let n = a.iter().zip(b).take_while(|(x, y)| x == y).count();
        &a[..n]
    }

    /// The [`index_origin`] of a loop.
    pub(crate) fn origin(&self, iname: InameId) -> &Affine {
        self.origins[iname.index()].get_or_init(|| index_origin(&self.kernel, iname))
    }

    /// An expression with the values of loops of one iteration put in.
    pub(crate) fn settled(&self, e: &Affine) -> Affine {
        if e.any_symbol(&mut |atom| self.only_value(atom).is_some()) {
            e.substitute(&|atom| self.only_value(atom).map(Affine::constant))
        } else {
            e.clone()
        }
    }

    /// The same for a constraint.
    pub(crate) fn settled_constraint(&self, c: &Constraint) -> Constraint {
        let e = self.settled(c.expr());
        match c {
            Constraint::Zero(_) => Constraint::Zero(e),
            Constraint::NonNegative(_) => Constraint::NonNegative(e),
        }
        .normalised()
    }

    /// The constraints on a loop with the values of loops of one iteration put in; none if they are
    /// no conjunction.
    pub(crate) fn settled_domain(&self, iname: InameId) -> &[Constraint] {
        self.settled[iname.index()].get_or_init(|| {
            let domain = self.kernel.inames[iname].domain.as_conjunction().unwrap_or_default();
            domain.iter().map(|c| self.settled_constraint(c)).collect()
        })
    }

    /// The value of a loop that has one iteration wherever it runs.
    pub(crate) fn only_value(&self, atom: &Atom) -> Option<i64> {
        let Atom::Iname(l) = atom else { return None };
        *self.only_values[l.index()].get_or_init(|| match bounds_of(self, *l, &[(atom.clone(), 1)]) {
            (Some(lo), Some(hi)) if lo == hi => Some(lo),
            _ => None,
        })
    }

    /// The number of a variable among the symbols, if it is one.
    pub(crate) fn symbol(&self, var: VarId) -> Option<usize> {
        self.numbers[var.index()]
    }

    /// The symbols, and what is known of them.
    pub(crate) fn symbols(&self) -> &Shared<Symbols> {
        self.symbols.get_or_init(|| Shared::new(Symbols::of(self)))
    }

    /// Where an instruction runs, as far as the first parts of its condition say, or all, and what
    /// stands in these reductions.
    pub(crate) fn instances_of(
        &self,
        insn: InsnId,
        conditions: Option<usize>,
        reductions: &[InameId],
    ) -> Shared<Instances> {
        let find = || Shared::new(Instances::of(self, insn, conditions, reductions));
        match conditions.is_none() && reductions.is_empty() {
            true => self.instances[insn.index()].get_or_init(find).clone(),
            false => find(),
        }
    }

    /// The values of a loop, in which the loops around it go by their number in `scope`.
    pub(crate) fn loop_values(&self, iname: InameId, scope: &[InameId], in_tree: bool) -> Shared<Union> {
        let find = || Shared::new(union_of(self, &self.kernel.inames[iname].domain, scope));
        // a loop of the tree has the same loops around it wherever it is met
        if in_tree { self.values[iname.index()].get_or_init(find).clone() } else { find() }
    }

    /// The name of an iname on one side.
    pub fn name(&self, iname: InameId, side: Side) -> String {
        let name = &self.kernel.inames[iname].name;
        match side {
            Side::Source => name.clone(),
            Side::Sink => format!("{name}'"),
        }
    }

    /// Names of inames on one side.
    pub fn names(&self, inames: &[InameId], side: Side) -> Vec<String> {
        inames.iter().map(|i| self.name(*i, side)).collect()
    }

    /// An expression by names; `None` if it mentions a scalar that may change.
    pub fn affine(&self, e: &Affine, side: Side) -> Option<isl::Affine> {
        let mut result = isl::Affine::constant(e.constant_term());
        for (atom, c) in e.terms() {
            match atom {
                Atom::Iname(i) => result.terms.push((self.name(*i, side), *c)),
                Atom::Var(v) if is_symbol(&self.kernel, *v) => {
                    result.terms.push((self.kernel.vars[*v].name.clone(), *c));
                }
                Atom::Var(_) => return None,
                Atom::Floor(n, d) => {
                    let numerator = self.affine(n, side)?;
                    result.divs.push((isl::FloorDiv { numerator, denominator: *d }, *c));
                }
            }
        }
        Some(result)
    }

    /// Whether an expression mentions no scalar that may change.
    pub fn is_symbolic(&self, e: &Affine) -> bool {
        e.terms().iter().all(|(atom, _)| match atom {
            Atom::Iname(_) => true,
            Atom::Var(v) => is_symbol(&self.kernel, *v),
            Atom::Floor(n, _) => self.is_symbolic(n),
        })
    }

    /// A constraint by names; `None` if it mentions a scalar that may change.
    pub fn constraint(&self, c: &Constraint, side: Side) -> Option<isl::Constraint> {
        Some(match c {
            Constraint::Zero(e) => isl::Constraint::zero(self.affine(e, side)?),
            Constraint::NonNegative(e) => isl::Constraint::non_negative(self.affine(e, side)?),
        })
    }

    /// Whether the values of a loop depend on loops and symbols alone.
    pub(crate) fn is_known(&self, iname: InameId) -> bool {
        self.kernel.inames[iname].domain.disjuncts().iter().flatten().all(|c| self.is_symbolic(c.expr()))
    }

    /// A domain by names, and whether nothing was dropped.
    pub fn domain(&self, domain: &Domain, side: Side) -> (Disjuncts, bool) {
        let mut exact = true;
        let disjuncts = domain.disjuncts().iter().map(|d| {
            let kept: Vec<_> = d.iter().filter_map(|c| self.constraint(c, side)).collect();
            exact &= kept.len() == d.len();
            kept
        });
        (disjuncts.collect(), exact)
    }

    /// The values some inames take together, in the context of the assumptions.
    pub fn domains(&self, inames: &[InameId], side: Side) -> (Disjuncts, bool) {
        let mut exact = true;
        let mut all: Disjuncts = vec![Vec::new()];
        for iname in inames {
            let (disjuncts, same) = self.domain(&self.kernel.inames[*iname].domain, side);
            exact &= same;
            all = conjunction(all, disjuncts);
        }
        (all, exact)
    }

    /// The points of an instruction's loops where it runs, and whether that is exact.
    pub fn instances(&self, insn: InsnId, side: Side) -> (Disjuncts, bool) {
        let (all, exact) = self.instances_under(insn, None, side);
        let predicate = self.kernel.insns[insn].predicate.as_ref();
        (all, exact && predicate.is_none_or(|p| affine_condition(p).is_some()))
    }

    /// The points of an instruction's loops where the first `conditions` parts of its condition
    /// hold, joined by `and`, as far as they are known; all parts if there is no number. Whether
    /// what is known is exact.
    pub fn instances_under(&self, insn: InsnId, conditions: Option<usize>, side: Side) -> (Disjuncts, bool) {
        let (mut all, mut exact) = self.domains(self.loops(insn), side);
        for holds in self.conditions(insn, conditions) {
            let (holds, same) = self.domain(&holds, side);
            all = conjunction(all, holds);
            exact &= same;
        }
        (all, exact)
    }

    /// What is known of the first parts of an instruction's condition, or of all.
    pub(crate) fn conditions(&self, insn: InsnId, first: Option<usize>) -> Vec<Domain> {
        let Some(predicate) = &self.kernel.insns[insn].predicate else { return Vec::new() };
        let parts = predicate.conjuncts().into_iter().take(first.unwrap_or(usize::MAX));
        parts.filter_map(affine_condition).collect()
    }

    /// Whether the condition of an instruction depends on loops and symbols alone, and is quasi-affine.
    pub(crate) fn is_condition_known(&self, insn: InsnId) -> bool {
        let Some(predicate) = &self.kernel.insns[insn].predicate else { return true };
        predicate.conjuncts().into_iter().all(|part| {
            affine_condition(part)
                .is_some_and(|domain| domain.disjuncts().iter().flatten().all(|c| self.is_symbolic(c.expr())))
        })
    }

    /// Constraints by names as a domain; `None` if a name is neither an iname nor a variable.
    pub fn to_domain(&self, disjuncts: &[Vec<isl::Constraint>]) -> Option<Domain> {
        let one = |c: &isl::Constraint| {
            let e = self.to_affine(&c.expr)?;
            Some(match c.kind {
                isl::ConstraintKind::Zero => Constraint::equal(&e, &Affine::default()),
                isl::ConstraintKind::NonNegative => Constraint::le(&Affine::default(), &e),
            })
        };
        let all: Option<Vec<Vec<_>>> = disjuncts.iter().map(|d| d.iter().map(one).collect()).collect();
        all.map(Domain::union)
    }

    /// An expression by names as a quasi-affine value.
    pub fn to_affine(&self, e: &isl::Affine) -> Option<Affine> {
        let mut result = Affine::constant(e.constant);
        for (name, c) in &e.terms {
            let symbol = match self.kernel.iname(name) {
                Some(i) => Affine::iname(i),
                None => Affine::var(self.kernel.var(name)?),
            };
            result = result.plus(&symbol.times(*c));
        }
        for (div, c) in &e.divs {
            let floor = self.to_affine(&div.numerator)?.floor_div(div.denominator);
            result = result.plus(&floor.times(*c));
        }
        Some(result)
    }

    /// Adds the assumptions to every disjunct.
    pub fn in_context(&self, disjuncts: Disjuncts) -> Disjuncts {
        if self.context.is_empty() { disjuncts } else { conjunction(disjuncts, vec![self.context.clone()]) }
    }
}

/// Whether a variable keeps its value while the kernel runs and sets may mention it.
pub fn is_symbol(kernel: &Kernel, var: VarId) -> bool {
    let var = &kernel.vars[var];
    var.is_integer_scalar()
        && match var.kind {
            VarKind::Param | VarKind::Argument(Direction::In) => true,
            VarKind::Argument(Direction::Out | Direction::InOut) | VarKind::Temporary | VarKind::Table(_) => {
                false
            }
        }
}

/// The conjunction of two disjunctions, without copies where the second one is a conjunction.
pub fn conjunction(mut all: Disjuncts, mut more: Disjuncts) -> Disjuncts {
    match (all.as_mut_slice(), more.as_mut_slice()) {
        ([one], [only]) => one.append(only),
        (_, [only]) => all.iter_mut().for_each(|one| one.extend_from_slice(only)),
        _ => return cross(&all, &more),
    }
    all
}

/// The conjunction of two disjunctions.
pub fn cross(a: &[Vec<isl::Constraint>], b: &[Vec<isl::Constraint>]) -> Disjuncts {
    a.iter().flat_map(|x| b.iter().map(move |y| x.iter().chain(y).cloned().collect())).collect()
}

/// Equal values of the loops on both sides.
pub fn equal_values(poly: &Polyhedral, loops: &[InameId]) -> Vec<isl::Constraint> {
    loops.iter().map(|l| isl::Constraint::zero(step(poly, *l))).collect()
}

/// How far a loop advances from source to sink.
pub fn step(poly: &Polyhedral, l: InameId) -> isl::Affine {
    isl::Affine::name(poly.name(l, Side::Sink)).plus(-1, poly.name(l, Side::Source))
}

/// `a - b` by names.
pub fn difference(a: &isl::Affine, b: &isl::Affine) -> isl::Affine {
    a.clone().add_scaled(-1, b)
}

/// The set on which a condition holds, if it compares quasi-affine integers.
pub fn affine_condition(e: &Expr) -> Option<Domain> {
    match e {
        Expr::Binary(BinaryOp::And, a, b) => Some(affine_condition(a)?.intersect(&affine_condition(b)?)),
        Expr::Binary(BinaryOp::Or, a, b) => {
            let (a, b) = (affine_condition(a)?, affine_condition(b)?);
            Some(Domain::union(a.disjuncts().iter().chain(b.disjuncts()).cloned()))
        }
        Expr::Binary(op, a, b) => comparison(*op, &a.as_affine()?, &b.as_affine()?),
        Expr::Unary(UnaryOp::Not, a) => {
            // not (x < y) is y <= x
            let Expr::Binary(op, x, y) = &**a else { return None };
            comparison(negated(*op)?, &y.as_affine()?, &x.as_affine()?)
        }
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Load(_)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => None,
    }
}

/// The comparison of the swapped operands that holds where `op` does not.
fn negated(op: BinaryOp) -> Option<BinaryOp> {
    match op {
        BinaryOp::Lt => Some(BinaryOp::Le),
        BinaryOp::Le => Some(BinaryOp::Lt),
        BinaryOp::Eq => Some(BinaryOp::Ne),
        BinaryOp::Ne => Some(BinaryOp::Eq),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::Mod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::And
        | BinaryOp::Or => None,
    }
}

fn comparison(op: BinaryOp, a: &Affine, b: &Affine) -> Option<Domain> {
    match op {
        BinaryOp::Lt => Some(Domain::conjunction([Constraint::lt(a, b)])),
        BinaryOp::Le => Some(Domain::conjunction([Constraint::le(a, b)])),
        BinaryOp::Eq => Some(Domain::conjunction([Constraint::equal(a, b)])),
        BinaryOp::Ne => Some(Domain::union([vec![Constraint::lt(a, b)], vec![Constraint::lt(b, a)]])),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::Mod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncRem
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::And
        | BinaryOp::Or => None,
    }
}

/// Constant bounds of a sum among the constraints on a loop, both included.
pub fn bounds_of(poly: &Polyhedral, iname: InameId, sum: &[(Atom, i64)]) -> (Option<i64>, Option<i64>) {
    let (mut lo, mut hi): (Option<i64>, Option<i64>) = (None, None);
    let Some(constraints) = poly.kernel.inames[iname].domain.as_conjunction() else { return (lo, hi) };
    for constraint in constraints {
        let e = constraint.expr();
        let scaled = |sign: i64| {
            e.terms().len() == sum.len()
                && e.terms().iter().zip(sum).all(|((a, c), (b, d))| a == b && Some(*c) == d.checked_mul(sign))
        };
        let c = e.constant_term();
        let fixed = matches!(constraint, Constraint::Zero(_));
        if scaled(1)
            && let Some(least) = c.checked_neg()
        {
            lo = Some(lo.map_or(least, |l| l.max(least)));
            hi = if fixed { Some(hi.map_or(least, |h| h.min(least))) } else { hi };
        }
        if scaled(-1) {
            hi = Some(hi.map_or(c, |h| h.min(c)));
            lo = if fixed { Some(lo.map_or(c, |l| l.max(c))) } else { lo };
        }
    }
    (lo, hi)
}
