//! How the terms that a loop sums depend on its iteration: through entries of tables only.
//!
//! Every value inside a loop `q` is described by *terms*, each a product of what changes with
//! `q`: a value stands for `sum_m g_m m(q)` with the terms `m` and factors `g_m` that are the same
//! in all iterations. A term is a product of weights `w[q]` and of entries `T[q, j]`, of which it
//! holds the tables. The terms of a scalar are those of all values that it is given, so that the
//! order of the instructions does not matter.

use kingpost_ir::{
    Access, BinaryOp, Expr, InameId, Insn, InsnId, Kernel, ScalarType, TableData, UnaryOp, UpdateOp, VarId,
    VarKind,
};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::check_not_called;
use kingpost_steps::tree::body_of;
use kingpost_steps::tree::{inames_of, insns_of};
use std::collections::{BTreeMap, BTreeSet};

/// What changes in a term: tables of one axis, which are its weights, and tables of more.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    pub(crate) weights: Vec<VarId>,
    pub(crate) tables: Vec<VarId>,
}

type Terms = BTreeSet<Term>;

/// All iterations run alike.
pub(crate) const ALIKE: Obligation = Obligation::new(
    "factor_quadrature.alike",
    "no condition, no bound of a loop inside and no index of a write changes with the iteration",
);

/// Nothing is carried but the sums.
pub(crate) const LOCAL: Obligation = Obligation::new(
    "factor_quadrature.local",
    "a scalar that is stored inside the loop is stored before its other uses, all of which are inside",
);

/// What is left of the iterations is sums.
pub(crate) const SUMS: Obligation = Obligation::new(
    "factor_quadrature.sums",
    "everything else that is written inside is of type `f64`, or all of it of `f32`, updated by `+=`, and not read inside",
);

/// The iteration is seen through tables.
pub(crate) const QUADRATIC: Obligation = Obligation::new(
    "factor_quadrature.quadratic",
    "each term that is summed is a product of entries of two tables, the weight, and factors that do not change",
);

/// The terms that a loop sums.
pub(crate) struct Sums {
    /// The instructions inside.
    pub(crate) insns: Vec<InsnId>,
    /// The weights of all terms, if they have any.
    pub(crate) weights: Option<VarId>,
    /// The tables of each term, in order.
    pub(crate) pairs: BTreeSet<[VarId; 2]>,
    /// The type of the tables and of what is written.
    pub(crate) ty: ScalarType,
}

/// The terms that the loop `iname` adds up.
///
/// # Errors
/// The first of the obligations above that is not met.
pub(crate) fn sums(kernel: &Kernel, iname: InameId) -> Result<Sums, Refusal> {
    let body = body_of(kernel, iname)?;
    let insns = insns_of(body);
    let written: BTreeSet<VarId> = insns.iter().map(|s| kernel.insns[*s].lhs.var).collect();
    let is_single = written.iter().any(|var| kernel.vars[*var].ty == ScalarType::F32);
    let ty = if is_single { ScalarType::F32 } else { ScalarType::F64 };
    let mut loop_of = Loop { kernel, iname, ty, written, values: BTreeMap::new() };
    for inner in inames_of(kernel, body) {
        let inner = &kernel.inames[inner];
        ALIKE.require(!inner.domain.mentions(iname), || {
            format!(
                "the bounds of `{}` change with it; only loops over the same values are summed",
                inner.name
            )
        })?;
    }
    loop_of.check_written(&insns)?;
    loop_of.solve(&insns)?;
    let (mut weights, mut pairs) = (BTreeSet::new(), BTreeSet::new());
    for insn in insns.iter().map(|s| &kernel.insns[*s]).filter(|i| !loop_of.values.contains_key(&i.lhs.var)) {
        for term in loop_of.value(insn, &insn.rhs)? {
            let [a, b] = term.tables[..] else { return Err(loop_of.no_pair(insn, &term)) };
            weights.insert(term.weights);
            pairs.insert([a, b]);
        }
    }
    QUADRATIC.require(weights.len() == 1, || match weights.len() {
        0 => "it adds nothing that changes with it; hoist what it does".into(),
        _ => "some of its terms have weights, and others have none or other ones; distribute the loop".into(),
    })?;
    let weights = weights.into_iter().next().and_then(|weights| weights.first().copied());
    Ok(Sums { insns, weights, pairs, ty })
}

struct Loop<'k> {
    kernel: &'k Kernel,
    iname: InameId,
    ty: ScalarType,
    written: BTreeSet<VarId>,
    /// The terms of each scalar of an iteration.
    values: BTreeMap<VarId, Terms>,
}

impl Loop<'_> {
    /// Finds the scalars of an iteration; checks that the rest are sums.
    fn check_written(&mut self, insns: &[InsnId]) -> Result<(), Refusal> {
        let kernel = self.kernel;
        let schedule: Vec<_> = kernel.schedule();
        let loops: BTreeMap<InsnId, &Vec<InameId>> = schedule.iter().map(|(s, l)| (*s, l)).collect();
        let name = |v: VarId| &kernel.vars[v].name;
        for s in insns {
            let insn = &kernel.insns[*s];
            check_not_called(kernel, insn)?;
            ALIKE.require(insn.predicate.is_none(), || {
                format!("`{}` has a condition; start and end the loops around it where it holds", insn.name)
            })?;
        }
        for var in self.written.clone() {
            let uses = |s: &InsnId| {
                let insn = &kernel.insns[*s];
                insn.accesses(var)
            };
            let mut inside = insns.iter().filter(|s| uses(s));
            let data = &kernel.vars[var];
            SUMS.require(data.ty == self.ty, || {
                let ty = self.ty;
                format!("`{}` of type {} is written inside, needed `{ty}`, as the rest", data.name, data.ty)
            })?;
            let first = inside.next().map(|s| (s, &kernel.insns[*s]));
            let is_stored = |insn: &Insn| insn.lhs.var == var && insn.update_op().is_none();
            let is_local = data.shape.is_empty() && data.kind == VarKind::Temporary;
            if let Some((place, store)) = first
                && is_local
                && insns.iter().any(|s| is_stored(&kernel.insns[*s]))
            {
                let around = loops.get(place).map_or(&[][..], |l| l.as_slice());
                let follows = |s: &InsnId| loops.get(s).is_some_and(|l| l.starts_with(around));
                let outside = schedule.iter().map(|(s, _)| s).find(|s| !insns.contains(s) && uses(s));
                let holds = is_stored(store) && !store.loads(var) && inside.all(follows) && outside.is_none();
                LOCAL.require(holds, || match outside {
                    Some(s) => format!(
                        "`{}` is also used by `{}`, outside the loop; give the loop a scalar of its own",
                        name(var),
                        kernel.insns[*s].name
                    ),
                    None => {
                        format!("`{}` may have its value from another iteration; store it first", name(var))
                    }
                })?;
                self.values.insert(var, Terms::new());
                continue;
            }
            for s in insns.iter().filter(|s| uses(s)) {
                let insn = &kernel.insns[*s];
                let read = insn.lhs.index.iter().chain([&insn.rhs]).any(|e| e.loads(var));
                SUMS.require(!read && insn.update_op() == Some(UpdateOp::Add), || {
                    let how = if read { "reads" } else { "stores" };
                    format!(
                        "`{}` {how} `{}`, which is no scalar of an iteration; sum into it by `+=` only",
                        insn.name,
                        name(var)
                    )
                })?;
            }
        }
        Ok(())
    }

    /// The terms of all scalars: the smallest ones that hold for every instruction.
    fn solve(&mut self, insns: &[InsnId]) -> Result<(), Refusal> {
        loop {
            let mut grows = false;
            for s in insns {
                let insn = &self.kernel.insns[*s];
                for index in &insn.lhs.index {
                    let moves = self.names(index) || !is_fixed(&self.value(insn, index)?);
                    ALIKE.require(!moves, || {
                        format!("`{}` writes another element in each iteration; sum into one", insn.name)
                    })?;
                }
                let mut value = self.value(insn, &insn.rhs)?;
                let Some(known) = self.values.get(&insn.lhs.var) else { continue };
                match insn.update_op() {
                    None | Some(UpdateOp::Add) => {}
                    Some(UpdateOp::Mul) => value = self.product(insn, known, &value)?,
                    Some(
                        UpdateOp::Min | UpdateOp::Max | UpdateOp::Or | UpdateOp::And | UpdateOp::Named(_),
                    ) => {
                        let both: Terms = known.union(&value).cloned().collect();
                        value = self.fixed(insn, &[both])?;
                    }
                }
                let all: Terms = known.union(&value).cloned().collect();
                if all != *known {
                    grows = true;
                    self.values.insert(insn.lhs.var, all);
                }
            }
            if !grows {
                return Ok(());
            }
        }
    }

    /// The terms of an expression.
    fn value(&self, insn: &Insn, e: &Expr) -> Result<Terms, Refusal> {
        match e {
            Expr::Int(0) => Ok(Terms::new()),
            Expr::Real(value) if value.0 == 0.0 => Ok(Terms::new()),
            Expr::Int(_) | Expr::Real(_) => Ok(fixed()),
            Expr::Iname(i) => {
                QUADRATIC.require(*i != self.iname, || {
                    format!(
                        "`{}` uses the number of the iteration; put what depends on it into a table",
                        insn.name
                    )
                })?;
                Ok(fixed())
            }
            Expr::Load(access) => self.load(insn, access),
            Expr::Unary(UnaryOp::Neg, a) => self.value(insn, a),
            Expr::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) => {
                let mut all = self.value(insn, a)?;
                all.append(&mut self.value(insn, b)?);
                Ok(all)
            }
            Expr::Binary(BinaryOp::Mul, a, b) => {
                let (a, b) = (self.value(insn, a)?, self.value(insn, b)?);
                self.product(insn, &a, &b)
            }
            Expr::Binary(BinaryOp::Div, a, b) => {
                let divisor = self.value(insn, b)?;
                self.fixed(insn, &[divisor])?;
                self.value(insn, a)
            }
            Expr::Reduce(r) if r.op == UpdateOp::Add => self.value(insn, &r.body),
            Expr::Rule(..) | Expr::RuleParam(_) => Err(QUADRATIC.unfit(format!(
                "`{}` uses a substitution rule; expand the rules of the loop first",
                insn.name
            ))),
            Expr::Unary(UnaryOp::Not | UnaryOp::BitNot | UnaryOp::Bits | UnaryOp::Field(..), _)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..)
            | Expr::Reduce(_) => {
                let operands: Vec<Terms> =
                    e.operands().map(|operand| self.value(insn, operand)).collect::<Result<_, _>>()?;
                self.fixed(insn, &operands)
            }
        }
    }

    fn load(&self, insn: &Insn, access: &Access) -> Result<Terms, Refusal> {
        if let Some(value) = self.values.get(&access.var) {
            return Ok(value.clone());
        }
        let var = &self.kernel.vars[access.var];
        let is_table = matches!(var.kind, VarKind::Table(TableData::Real(_)));
        let mut index = access.index.as_slice();
        let at_point = is_table && index.first().is_some_and(|e| *e == Expr::Iname(self.iname));
        SUMS.require(!at_point || var.ty == self.ty, || {
            let (found, needed) = (var.ty, self.ty);
            format!(
                "the table `{}` is of type {found}, needed `{needed}`, as what is written inside",
                var.name
            )
        })?;
        if at_point {
            index = &index[1..];
        }
        for e in index {
            let terms = self.value(insn, e)?;
            self.fixed(insn, &[terms])?;
        }
        if !at_point {
            return Ok(fixed());
        }
        let (mut weights, mut tables) = (Vec::new(), Vec::new());
        if index.is_empty() {
            weights.push(access.var)
        } else {
            tables.push(access.var)
        }
        Ok([Term { weights, tables }].into())
    }

    /// Every term of one times every term of the other.
    fn product(&self, insn: &Insn, a: &Terms, b: &Terms) -> Result<Terms, Refusal> {
        let mut all = Terms::new();
        for left in a {
            for right in b {
                let mut term = left.clone();
                term.weights.extend(&right.weights);
                term.tables.extend(&right.tables);
                term.weights.sort_unstable();
                term.tables.sort_unstable();
                QUADRATIC.require(term.weights.len() <= 1 && term.tables.len() <= 2, || {
                    format!(
                        "`{}` multiplies {}; the sum must be linear in the values that are evaluated",
                        insn.name,
                        self.text(&term)
                    )
                })?;
                all.insert(term);
            }
        }
        Ok(all)
    }

    /// A value of operands that do not change.
    fn fixed(&self, insn: &Insn, operands: &[Terms]) -> Result<Terms, Refusal> {
        let changing = operands.iter().flatten().find(|term| **term != Term::default());
        QUADRATIC.require(changing.is_none(), || {
            let of = changing.map_or_else(String::new, |term| self.text(term));
            format!(
                "`{}` uses entries of {of} otherwise than in sums and products; keep the points of the rule",
                insn.name
            )
        })?;
        Ok(fixed())
    }

    /// Whether an index holds the iteration.
    fn names(&self, index: &Expr) -> bool {
        index.mentions(self.iname)
    }

    fn no_pair(&self, insn: &Insn, term: &Term) -> Refusal {
        let of = match term.tables.len() {
            0 => "no table".to_owned(),
            _ => format!("{} only", self.text(&Term { weights: Vec::new(), ..term.clone() })),
        };
        QUADRATIC.unfit(format!(
            "`{}` adds a term with an entry of {of}, needed entries of two tables; distribute the loop",
            insn.name
        ))
    }

    fn text(&self, term: &Term) -> String {
        let names = term.weights.iter().chain(&term.tables);
        let names: Vec<String> = names.map(|v| format!("`{}`", self.kernel.vars[*v].name)).collect();
        names.join(", ")
    }
}

/// The terms of a value that is the same in all iterations.
fn fixed() -> Terms {
    [Term::default()].into()
}

fn is_fixed(terms: &Terms) -> bool {
    terms.iter().all(|term| *term == Term::default())
}
