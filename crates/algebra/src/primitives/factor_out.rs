//! Multiplies a sum once instead of each of its terms.

use crate::product::Product;
use kingpost_analysis::Analysis;
use kingpost_ir::neutral::of_nothing;
use kingpost_ir::{
    Access, AddressSpace, Expr, ExprType, GuardedRange, InameId, Insn, InsnId, Kernel, Node, Reduction,
    ScalarType, UpdateOp, VarId, VarKind, Variable, WriteOp,
};
use kingpost_steps::condition::where_runs;
use kingpost_steps::draw::{self, Picks};
use kingpost_steps::expected::Expected;
use kingpost_steps::keeps::Keeps;
use kingpost_steps::lookup;
use kingpost_steps::lookup::NO_REDUCTION;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::primitive::Primitive;
use kingpost_steps::proofs::accumulation::{Delayed, IS_UPDATE, NO_REDUCTIONS, refuse_reductions, update};
use kingpost_steps::proofs::bounds::{BOUNDS_STAY, check_bounds_stay};
use kingpost_steps::proofs::finite::{FINITE, check_finite_in};
use kingpost_steps::proofs::length::{have_values, never_empty, runs_if};
use kingpost_steps::proofs::{ORDER, VALUES};
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::schedule::{Array, Handles, Made, Statement};
use kingpost_steps::tree::body_of;
use kingpost_steps::tree::{edit_siblings, insns_of};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Takes the factors that do not change out of a sum: of a reduction, or of an update in a loop.
///
/// # Rewrite
/// Of a reduction, the sum over `iname` and the inames after it becomes a sum of its own:
/// ```text
/// s: y[i] = sum(l in 0..n, m in 0..n: b[i, l]*c[m]*u[l, m])   =>   s: y[i] = sum(l in 0..n: b[i, l]*sum(m in 0..n: c[m]*u[l, m]))
/// ```
/// Of an update `insn` in a loop, the terms are summed apart and multiplied after the loop:
/// ```text
/// for k in 0..n              =>   s_part_init: s_part = 0.0
///   s: t[i] += c[i]*x[k]          for k in 0..n
///                                   s: s_part += x[k]
///                                 s_part_sum: t[i] += c[i]*s_part
/// ```
/// All factors and divisors that do not change go; those that stay keep their order, and so do
/// those that go. The sum may be nested deeper inside the loop. An atomic update leaves its
/// atomicity to the last one; where the loop may be empty, the last one has its bounds as a
/// condition. Equal up to the distributive law, where values are finite: an infinity times a sum is
/// no sum of infinities times terms of which one is zero.
///
/// # Precondition
/// The sum is one of reals or complex numbers, and computed in the type of what is updated. With
/// `i` the inames of the sum, a factor `c` that goes mentions none of them, `{ i in c } = {}`;
/// another one stays. The sum of a reduction has a term wherever it is evaluated.
///
/// In a loop, a factor that goes reads no variable that is written inside. With `o` the loops
/// around and `t` the element that is updated: its index and the condition mention no loop of the
/// sum. Nobody sees `t` between a term and the end of the loop: `{ s -> r : o = o', element(s) =
/// element(r), s before r }` is empty for every access `r` inside that is no update by `+=`. What
/// the index and the condition read stays until the end of the loop: `{ r -> w : o = o', element(r)
/// = element(w), r before w }` is empty for every write `w` inside. The loops inside the outermost
/// one are not empty; that one is not, or is a range, whose bounds stay. If loops are on axes, the
/// placement must hold.
///
/// # Errors
/// Another operator, a sum of integers; an infinity or a nan as a number or in a table; no factor that
/// stays the same, or none that changes; a sum that may have no term; an index or a condition that
/// changes; an element that is seen, or an operand of these that is written inside the loop, with two
/// instances; names that are taken.
///
/// # Elsewhere
/// Loop-invariant code motion of products; TSFC's and COFFEE's sum factorisation and expansion;
/// Loopy has none; the hand-written tensor contractions of MFEM, libCEED and Nek.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FactorOut {
    /// An iname of a reduction, or a loop.
    pub iname: String,
    /// The update in the loop; absent for a reduction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub insn: Option<String>,
    /// Name of the sum without the factors; `{insn}_part` if absent. Instructions are named after
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

impl FactorOut {
    /// Out of the sum over `iname` and the inames after it in the same reduction.
    pub fn of_reduction(iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), insn: None, partial: None }
    }

    /// Out of the update `insn` in the loop `iname`.
    pub fn of_update(insn: impl Into<String>, iname: impl Into<String>) -> Self {
        Self { iname: iname.into(), insn: Some(insn.into()), partial: None }
    }

    /// Calls the sum without the factors `name`.
    #[must_use]
    pub fn into_temporary(mut self, name: impl Into<String>) -> Self {
        self.partial = Some(name.into());
        self
    }
}

impl fmt::Display for FactorOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.insn {
            None => write!(f, "factor out of the sum over `{}`", self.iname)?,
            Some(insn) => write!(f, "factor `{insn}` out of `{}`", self.iname)?,
        }
        self.partial.as_ref().map_or(Ok(()), |name| write!(f, " into `{name}`"))
    }
}

/// The distributive law is one of sums.
const SUM: Obligation = Obligation::new("factor_out.sum", "what is factored is a sum");

/// Integers may not fit without the factor.
const REAL: Obligation = Obligation::new(
    "factor_out.real",
    "the terms are products of reals or complex numbers, in the type in which they are summed",
);

/// There is something to take out.
const FACTOR: Obligation = Obligation::new(
    "factor_out.factor",
    "a factor of the terms mentions no iname of the sum and nothing that is written in it",
);

/// There is something to sum.
const TERM: Obligation = Obligation::new("factor_out.term", "a factor of the terms changes in the sum");

/// What is multiplied is read where it was.
const HAS_TERM: Obligation = Obligation::new(
    "factor_out.has_term",
    "the sum has a term wherever it is evaluated, or the bounds of its loop say when",
);

/// The update is inside.
const AROUND: Obligation = Obligation::new("factor_out.around", "the loop is around the update");

/// One element is updated, or none.
const SAME: Obligation = Obligation::new(
    "factor_out.same",
    "the index and the condition of the update mention no loop of the sum",
);

/// A sum whose terms have factors in common.
pub struct Factored {
    insn: InsnId,
    form: Form,
}

enum Form {
    /// A reduction, and what stands for it.
    Reduction { whole: Expr, value: Expr },
    /// An update in a loop.
    Loop(FactoredUpdate),
}

/// What becomes of an update.
struct FactoredUpdate {
    iname: InameId,
    /// Names of the sum, of what starts it and of what adds it up.
    names: [String; 3],
    /// What is summed, and the factors.
    term: Expr,
    factors: Product,
    /// The values of the loop, if they may be none.
    bounds: Option<GuardedRange>,
}

/// The sum without the factors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactoredSum {
    /// Its temporary; none of a reduction.
    pub partial: Option<Array>,
    /// What starts it, and what multiplies it; none of a reduction.
    pub insns: Vec<Statement>,
}

impl Handles for FactoredSum {
    fn list(&self, made: &mut Made) {
        made.arrays.extend(self.partial.clone());
        self.insns.list(made);
    }
}

impl Primitive for FactorOut {
    const NAME: &'static str = "factor_out";
    const SUMMARY: &'static str = "Multiplies a sum once instead of each of its terms.";

    type Proof = Factored;
    type Made = FactoredSum;

    const OBLIGATIONS: &'static [Obligation] = &[
        SUM,
        REAL,
        FACTOR,
        TERM,
        HAS_TERM,
        AROUND,
        SAME,
        IS_UPDATE,
        NO_REDUCTIONS,
        NO_REDUCTION,
        NOT_CALLED,
        ORDER,
        VALUES,
        BOUNDS_STAY,
        FINITE,
    ];
    const KEEPS: Keeps = Keeps::REASSOCIATED.of_finite();
    const WEIGHT: usize = 2;

    fn check(&self, analysis: &Analysis) -> Result<Factored, Refusal> {
        match &self.insn {
            None => self.check_reduction(analysis),
            Some(insn) => self.check_update(analysis, insn),
        }
    }

    fn edit(&self, kernel: &mut Kernel, proof: &Factored) -> FactoredSum {
        match &proof.form {
            Form::Reduction { whole, value } => {
                let mut replace = |e: Expr| if e == *whole { value.clone() } else { e };
                kernel.insns[proof.insn].map_expressions(&mut replace);
                FactoredSum { partial: None, insns: Vec::new() }
            }
            Form::Loop(of) => of.edit(kernel, proof.insn),
        }
    }

    fn draw(kernel: &Kernel, p: &mut Picks<'_>) -> Option<Self> {
        let product = |i: &Insn| i.update_op() == Some(UpdateOp::Add);
        let mut all: Vec<_> = draw::reductions(kernel).into_iter().map(Self::of_reduction).collect();
        for insn in draw::insns(kernel, product) {
            let name = kernel.fresh_name(&format!("{insn}_part"));
            let of = |l| Self::of_update(&insn, l).into_temporary(&name);
            all.extend(draw::loops_of(kernel, &insn).into_iter().map(of));
        }
        draw::possible(kernel, all, p)
    }
}

impl FactorOut {
    fn check_reduction(&self, analysis: &Analysis) -> Result<Factored, Refusal> {
        let kernel = analysis.kernel();
        let iname = lookup::iname(kernel, &self.iname)?;
        if self.partial.is_some() {
            let found = "a temporary is named, and a reduction needs none";
            return Err(Refusal::argument("partial", found, "no name"));
        }
        let Some((insn, around, reduction)) = find(kernel, iname) else {
            let found = format!("`{}` is a loop, and no update in it is named", self.iname);
            return Err(Refusal::argument("insn", found, "an update inside the loop"));
        };
        NOT_CALLED.require(kernel.insns[insn].callee.is_none(), || {
            format!("`{}` belongs to a call; inline the call first", kernel.insns[insn].name)
        })?;
        SUM.require(reduction.op == UpdateOp::Add, || {
            format!("the reduction over `{}` is no sum", self.iname)
        })?;
        let at = reduction.inames.iter().position(|i| *i == iname);
        let at = at.expected("iname of that name in the reduction", kernel)?;
        let (outer, inner) = reduction.inames.split_at(at);
        let ty = kernel.type_of(&Expr::Reduce(reduction.clone()), &[]);
        let (factors, term) = self.split(kernel, &reduction.body, ty.ok(), &|e| changes(kernel, e, inner))?;
        let around = [analysis.loops(insn), &around, outer].concat();
        HAS_TERM.decide(have_values(analysis.polyhedral(), &around, inner)?, || {
            format!(
                "the sum over `{}` may have no term, where its factors would be evaluated all the same; assume that \
                 it has one",
                self.iname
            )
        })?;
        let sum = Expr::reduce(UpdateOp::Add, inner.iter().copied(), term);
        let value = factors.times(kernel, Some(sum));
        let value =
            if outer.is_empty() { value } else { Expr::reduce(UpdateOp::Add, outer.iter().copied(), value) };
        Ok(Factored { insn, form: Form::Reduction { whole: Expr::Reduce(reduction), value } })
    }

    /// The factors that do not change, and the product of the others.
    fn split(
        &self,
        kernel: &Kernel,
        term: &Expr,
        ty: Option<ExprType>,
        changes: &dyn Fn(&Expr) -> bool,
    ) -> Result<(Product, Expr), Refusal> {
        let typed = kernel.type_of(term, &[]).ok();
        let product = REAL.find(Product::of(kernel, term).filter(|_| typed == ty), || {
            let found = typed.map_or_else(|| "nothing".to_owned(), |ty| ty.to_string());
            let needed = ty.map_or_else(|| "a real".to_owned(), |ty| ty.to_string());
            format!(
                "the terms of the sum over `{}` have the type {found}, and are summed as {needed}; cast them to one \
                 real type",
                self.iname
            )
        })?;
        check_finite_in(kernel, &format!("the sum over `{}`", self.iname), term)?;
        let (factors, term) = product.split(&|e| !changes(e));
        FACTOR.require(!factors.factors.is_empty(), || {
            let what = if term.factors.len() == 1 { "they are no product" } else { "every factor changes" };
            format!(
                "the terms of the sum over `{}` have no factor that stays the same, {what}; split sums first, or \
                 interchange the loops",
                self.iname
            )
        })?;
        TERM.require(!term.factors.is_empty(), || {
            format!(
                "the terms of the sum over `{}` are all the same, so that nothing is left to sum; multiply by the \
                 number of terms",
                self.iname
            )
        })?;
        let term = term.times(kernel, None);
        Ok((factors, term))
    }

    fn check_update(&self, analysis: &Analysis, name: &str) -> Result<Factored, Refusal> {
        let kernel = analysis.kernel();
        let (id, op) = update(kernel, name)?;
        let iname = lookup::tree_loop(kernel, &self.iname)?;
        let insn = &kernel.insns[id];
        let loops = analysis.loops(id).to_vec();
        let outer = loops.iter().position(|l| *l == iname);
        let outer = AROUND.find(outer, || format!("`{}` is not around `{name}`", self.iname))?;
        NOT_CALLED.require(insn.callee.is_none(), || {
            format!("`{name}` belongs to a call; inline the call first")
        })?;
        SUM.require(op == UpdateOp::Add, || {
            format!("`{name}` is an update by `{}`, needed `+=`", op.update_symbol())
        })?;
        let all = |name: &str| ["", "_init", "_sum"].map(|end| format!("{name}{end}"));
        let stem = format!("{name}_part");
        let names = all(&lookup::made(kernel, self.partial.as_deref(), &stem, |name| all(name).to_vec())?);
        let swept = &loops[outer..];
        refuse_reductions(kernel, insn, &insn.predicate.iter().collect::<Vec<_>>())?;
        self.check_same(kernel, insn, swept)?;
        let ty = ExprType::Scalar(kernel.vars[insn.lhs.var].ty);
        let body = body_of(kernel, iname)?;
        let written: Vec<_> = insns_of(body).into_iter().map(|i| kernel.insns[i].lhs.var).collect();
        let stays = |e: &Expr| changes(kernel, e, swept) || reads_one_of(kernel, e, &written);
        let (factors, term) = self.split(kernel, &insn.rhs, Some(ty), &stays)?;
        check_bounds_stay(kernel, iname, body)?;
        let bounds = self.check_has_term(analysis, swept)?;
        let delayed = Delayed { analysis, id, outer };
        delayed.check_unseen(&format!(
            "distribute the loops, or factor `{name}` out of a loop further inside"
        ))?;
        let expanded = &analysis.expanded().insns[id];
        let operands: Vec<_> = expanded.lhs.index.iter().chain(&expanded.predicate).collect();
        delayed.check_operands_stay(&operands)?;
        Ok(Factored { insn: id, form: Form::Loop(FactoredUpdate { iname, names, term, factors, bounds }) })
    }

    /// One element is updated under one condition.
    fn check_same(&self, kernel: &Kernel, insn: &Insn, swept: &[InameId]) -> Result<(), Refusal> {
        let changing = |what: &str| {
            format!(
                "{what} of `{}` mentions a loop of the sum over `{}`; factor out of a loop further inside, or \
                 interchange the loops",
                insn.name, self.iname
            )
        };
        let index = insn.lhs.index.iter().any(|e| changes(kernel, e, swept));
        SAME.require(!index, || changing("the index"))?;
        let condition = insn.predicate.iter().any(|e| changes(kernel, e, swept));
        SAME.require(!condition, || changing("the condition"))
    }

    /// Some term is added, or the bounds of the outermost loop say when.
    fn check_has_term(
        &self,
        analysis: &Analysis,
        swept: &[InameId],
    ) -> Result<Option<GuardedRange>, Refusal> {
        let [outermost, inside @ ..] = swept else { return Ok(None) };
        for l in inside {
            HAS_TERM.decide(never_empty(analysis, *l)?, || {
                format!(
                    "the loop `{}` may be empty, where the sum over `{}` has no term; assume that it is not",
                    analysis.kernel().inames[*l].name,
                    self.iname
                )
            })?;
        }
        runs_if(analysis, *outermost, HAS_TERM)
    }
}

/// Whether an expression, or a reduction in it, mentions one of some inames.
fn changes(kernel: &Kernel, e: &Expr, inames: &[InameId]) -> bool {
    let bounds = |i: &InameId| inames.iter().any(|of| kernel.inames[*i].domain.mentions(*of));
    let reduces = |e: &Expr| matches!(e, Expr::Reduce(r) if r.inames.iter().any(bounds));
    e.any(&mut |e| matches!(e, Expr::Iname(i) if inames.contains(i)) || reduces(e))
}

/// Whether an expression reads one of some variables.
fn reads_one_of(kernel: &Kernel, e: &Expr, vars: &[VarId]) -> bool {
    kernel.expand_rules(e).any(&mut |e| e.as_load().is_some_and(|access| vars.contains(&access.var)))
}

/// The reduction over an iname, the instruction it is in, and the inames of the reductions around.
fn find(kernel: &Kernel, iname: InameId) -> Option<(InsnId, Vec<InameId>, Reduction)> {
    fn search(e: &Expr, iname: InameId, around: &mut Vec<InameId>) -> Option<Reduction> {
        let depth = around.len();
        if let Expr::Reduce(r) = e {
            if r.inames.contains(&iname) {
                return Some(r.clone());
            }
            around.extend(&r.inames);
        }
        let found = e.operands().find_map(|e| search(e, iname, around));
        if found.is_none() {
            around.truncate(depth);
        }
        found
    }
    kernel.insns.iter().find_map(|(id, insn)| {
        let mut around = Vec::new();
        let mut all = insn.expressions();
        all.find_map(|e| search(e, iname, &mut around)).map(|r| (id, around, r))
    })
}

impl FactoredUpdate {
    fn edit(&self, kernel: &mut Kernel, id: InsnId) -> FactoredSum {
        let old = kernel.insns[id].clone();
        let ty: ScalarType = kernel.vars[old.lhs.var].ty;
        let [partial, init, sum] = &self.names;
        let temporary = Variable::new(partial, ty, VarKind::Temporary, [], AddressSpace::Private);
        let partial_sum = Access::scalar(kernel.vars.push(temporary));
        let value = self.factors.times(kernel, Some(Expr::Load(partial_sum.clone())));
        let start = Insn {
            name: init.clone(),
            lhs: partial_sum.clone(),
            op: WriteOp::Assign,
            rhs: of_nothing(UpdateOp::Add, ty),
            predicate: None,
            ..old.clone()
        };
        let bounds = self.bounds.as_ref();
        let predicate = match bounds {
            Some(range) => Some(where_runs(range, old.predicate.clone())),
            None => old.predicate.clone(),
        };
        let whole = Insn { name: sum.clone(), rhs: value, predicate, ..old };
        let insn = &mut kernel.insns[id];
        insn.lhs = partial_sum;
        insn.op = WriteOp::Update { op: UpdateOp::Add, atomic: false };
        insn.rhs = self.term.clone();
        let (start, whole) = (kernel.insns.push(start), kernel.insns.push(whole));
        let is_loop = |n: &Node| matches!(n, Node::Loop(l, _) if *l == self.iname);
        edit_siblings(&mut kernel.body, &is_loop, &mut |nodes| {
            if let Some(at) = nodes.iter().position(is_loop) {
                nodes.insert(at + 1, Node::Insn(whole));
                nodes.insert(at, Node::Insn(start));
            }
        });
        let insns = vec![Statement::named(init), Statement::named(sum)];
        FactoredSum { partial: Some(Array::named(partial)), insns }
    }
}
