//! What a loop sums as products of what changes with its iterations and what does not.
//!
//! Scalars that are stored once in an iteration are replaced by their values, so that the value of
//! an update is one sum of products. Of its factors, those that change with the loop are entries of
//! tables, or, where the loop stays, scalars that it computes first; everything else is the same in
//! all iterations.

use crate::polynomial::{Atoms, Factor, NoSum, Product, Sum};
use crate::proofs::sums;
use kingpost_ir::{
    Atom, BinaryOp, Expr, InameId, Insn, InsnId, Kernel, Node, ScalarType, TableData, UpdateOp, VarId,
    VarKind,
};
use kingpost_steps::Means;
use kingpost_steps::obligation::Obligation;
use kingpost_steps::proofs::elements::rule_that_reads;
use kingpost_steps::proofs::finite::FINITE;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::run::NOT_CALLED;
use kingpost_steps::tree::body_of;
use kingpost_steps::tree::inames_of;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// All iterations run alike.
pub(crate) const ALIKE: Obligation = Obligation::new(
    "separable.alike",
    "no condition, no bound of a loop inside and no index of a write changes with the iteration",
);

/// Nothing is carried but the sums.
pub(crate) const LOCAL: Obligation = Obligation::new(
    "separable.local",
    "a scalar that is stored inside the loop is stored once, before its uses, all of which are inside",
);

/// What is left of the iterations is sums.
pub(crate) const SUMS: Obligation = Obligation::new(
    "separable.sums",
    "everything else that is written inside is updated by `+=` in `f64`, and not read inside",
);

/// The iteration is seen through tables.
pub(crate) const TABLES: Obligation = Obligation::new(
    "separable.tables",
    "a factor that changes with the iteration is an entry of a table of `f64`, by loops and numbers",
);

/// Scalars of an iteration have one value where they are used.
pub(crate) const POINTS: Obligation = Obligation::new(
    "separable.points",
    "a scalar that changes with the iteration is written before all its uses in the body of the loop",
);

/// What may change with the iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changing {
    /// Entries of tables: the loop goes.
    Entries,
    /// Scalars as well, which the loop goes on to compute.
    Scalars,
}

/// An index of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Slot {
    /// The iteration of the loop.
    Point,
    /// The loop inside this number.
    Axis(InameId),
    /// A number.
    Number(i64),
}

/// An entry of a table that changes with the iteration.
pub(crate) type Entry = (VarId, Vec<Slot>);

/// A term of what an update adds: `coefficient*fixed*varying*product(entries)`.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    /// Place of the summand that it is a term of.
    pub(crate) summand: usize,
    pub(crate) coefficient: f64,
    /// The factors that are the same in all iterations.
    pub(crate) fixed: Product,
    /// The factors that change with the iteration alone, [`Changing::Scalars`].
    pub(crate) varying: Product,
    /// The entries that change, sorted.
    pub(crate) entries: Vec<Entry>,
}

/// What a loop sums.
pub(crate) struct Separated {
    pub(crate) atoms: Atoms,
    /// The updates in textual order, and the terms of each.
    pub(crate) updates: Vec<(InsnId, Vec<Term>)>,
    /// The stores of scalars whose values are put in their place.
    pub(crate) stores: BTreeSet<InsnId>,
}

/// The terms that the loop `iname` sums.
///
/// # Errors
/// The first of the obligations above that is not met.
pub(crate) fn separate(kernel: &Kernel, iname: InameId, changing: Changing) -> Result<Separated, Refusal> {
    let body = body_of(kernel, iname)?;
    let inside: BTreeSet<InameId> = inames_of(kernel, body).into_iter().collect();
    for inner in &inside {
        let inner = &kernel.inames[*inner];
        ALIKE.require(!inner.domain.mentions(iname), || {
            format!(
                "the bounds of `{}` change with it; only loops over the same values are summed",
                inner.name
            )
        })?;
    }
    let mut insns = Vec::new();
    for (place, node) in body.iter().enumerate() {
        with_loops(std::slice::from_ref(node), place, &mut Vec::new(), &mut insns);
    }
    let written = insns.iter().map(|i| kernel.insns[i.id].lhs.var).collect();
    let (atoms, points, facts) = (Atoms::default(), BTreeSet::new(), Vec::new());
    let mut of_loop = Loop { kernel, iname, changing, inside, insns, written, points, atoms, facts };
    let mut found = Separated { atoms: Atoms::default(), updates: Vec::new(), stores: BTreeSet::new() };
    for place in 0..of_loop.insns.len() {
        let id = of_loop.insns[place].id;
        let insn = &kernel.insns[id];
        of_loop.check_form(insn)?;
        if of_loop.points.contains(&insn.lhs.var) {
            continue;
        }
        if of_loop.is_local(insn) {
            match of_loop.local(place) {
                Ok(value) => {
                    // a rule may stand after the loop, where the store is gone
                    POINTS.forbid(rule_that_reads(kernel, insn.lhs.var), |rule| {
                        format!(
                            "rule `{}` reads `{}`, whose store goes; expand the rule first",
                            rule.name, kernel.vars[insn.lhs.var].name
                        )
                    })?;
                    of_loop.atoms.values.insert(insn.lhs.var, value);
                    found.stores.insert(id);
                }
                Err(_) if changing == Changing::Scalars => of_loop.keep(insn.lhs.var)?,
                Err(refusal) => return Err(refusal),
            }
        } else {
            of_loop.check_sum(insn)?;
            found.updates.push((id, of_loop.terms(insn)?));
        }
    }
    found.atoms = of_loop.atoms;
    Ok(found)
}

/// What an update adds, term by term, and whether each is subtracted; one summand where the loop
/// goes.
pub(crate) fn summands(e: &Expr, changing: Changing) -> Vec<(&Expr, bool)> {
    fn collect<'e>(e: &'e Expr, minus: bool, found: &mut Vec<(&'e Expr, bool)>) {
        if let Expr::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) = e {
            collect(a, minus, found);
            collect(b, minus != (*op == BinaryOp::Sub), found);
        } else {
            found.push((e, minus));
        }
    }
    let mut found = Vec::new();
    match changing {
        Changing::Entries => found.push((e, false)),
        Changing::Scalars => collect(e, false, &mut found),
    }
    found
}

/// An instruction inside, the loops inside around it, and the place of its statement in the body.
#[derive(Clone)]
struct Inside {
    id: InsnId,
    around: Vec<InameId>,
    statement: usize,
}

fn with_loops(nodes: &[Node], statement: usize, around: &mut Vec<InameId>, found: &mut Vec<Inside>) {
    for node in nodes {
        match node {
            Node::Insn(id) => found.push(Inside { id: *id, around: around.clone(), statement }),
            Node::Loop(iname, body) => {
                around.push(*iname);
                with_loops(body, statement, around, found);
                around.pop();
            }
        }
    }
}

struct Loop<'k> {
    kernel: &'k Kernel,
    iname: InameId,
    changing: Changing,
    /// The loops inside.
    inside: BTreeSet<InameId>,
    /// The instructions inside in textual order.
    insns: Vec<Inside>,
    written: BTreeSet<VarId>,
    /// Scalars that stay, [`Changing::Scalars`].
    points: BTreeSet<VarId>,
    atoms: Atoms,
    /// What is known of each atom by its number, for all products that have it.
    facts: Vec<Option<Rc<Facts>>>,
}

/// What is known of an atom.
#[derive(Clone, Debug)]
struct Facts {
    /// A variable that it reads and the loop writes, other than scalars that stay.
    written: Option<VarId>,
    /// Whether it has a reduction or a rule.
    opaque: bool,
    how: Seen,
}

/// How an atom depends on the iteration.
#[derive(Clone, Debug)]
enum Seen {
    /// It is the same in all iterations.
    Fixed,
    /// It changes with the iteration alone, [`Changing::Scalars`].
    Varying,
    /// It is an entry that changes.
    Entry(Entry),
    /// It changes otherwise.
    Other,
}

impl Loop<'_> {
    fn name(&self, var: VarId) -> &str {
        &self.kernel.vars[var].name
    }

    fn check_form(&self, insn: &Insn) -> Result<(), Refusal> {
        NOT_CALLED.require(insn.callee.is_none(), || {
            format!("`{}` belongs to a call; inline the call first", insn.name)
        })?;
        ALIKE.require(insn.predicate.is_none(), || {
            format!("`{}` has a condition; start and end the loops around it where it holds", insn.name)
        })?;
        let changes = insn.lhs.index.iter().any(|index| {
            let loads = |e: &Expr| e.as_load().is_some_and(|a| self.written.contains(&a.var));
            index.any(&mut |e| *e == Expr::Iname(self.iname) || loads(e))
        });
        ALIKE.require(!changes, || {
            format!("`{}` may write another element in each iteration; sum into one", insn.name)
        })?;
        SUMS.require(self.kernel.vars[insn.lhs.var].ty == ScalarType::F64, || {
            format!("`{}` writes `{}`, which is no `f64`", insn.name, self.name(insn.lhs.var))
        })
    }

    /// Whether a store is one of a scalar of an iteration.
    fn is_local(&self, insn: &Insn) -> bool {
        let var = &self.kernel.vars[insn.lhs.var];
        insn.update_op().is_none() && var.shape.is_empty() && var.kind == VarKind::Temporary
    }

    /// The value of the scalar that is stored at a place, which can be put in its place.
    fn local(&mut self, place: usize) -> Result<Sum, Refusal> {
        self.check_local(place)?;
        let insn = &self.kernel.insns[self.insns[place].id];
        let value = self.value(insn, &insn.rhs)?;
        self.check_atoms(insn, &value)?;
        Ok(value)
    }

    /// Lets a scalar stay: its value at the end of an iteration is the one of all its uses.
    fn keep(&mut self, var: VarId) -> Result<(), Refusal> {
        let writes = |i: &&Inside| self.kernel.insns[i.id].lhs.var == var;
        let last = self.insns.iter().filter(writes).map(|i| i.statement).max();
        let early = self
            .insns
            .iter()
            .filter(|i| !writes(i))
            .find(|i| Some(i.statement) <= last && self.kernel.insns[i.id].loads(var));
        POINTS.require(early.is_none(), || {
            format!(
                "`{}` is written inside, and not only before `{}`, which reads it; give each value a scalar of its own",
                self.name(var),
                early.map_or("", |i| &self.kernel.insns[i.id].name)
            )
        })?;
        self.points.insert(var);
        self.facts.clear(); // what reads it changes from here on
        Ok(())
    }

    /// The store at a place is the only one, and before all uses.
    fn check_local(&self, place: usize) -> Result<(), Refusal> {
        let Inside { id: store, around, .. } = &self.insns[place];
        let var = self.kernel.insns[*store].lhs.var;
        let reads = |insn: &Insn| insn.loads(var);
        for (id, insn) in self.kernel.insns.iter().filter(|(id, _)| id != store) {
            if insn.lhs.var != var && !reads(insn) {
                continue;
            }
            let at = self.insns.iter().position(|other| other.id == id);
            let behind = at.is_some_and(|at| at > place && self.insns[at].around.starts_with(around));
            LOCAL.require(behind && insn.lhs.var != var, || {
                format!(
                    "`{}` is also used by `{}`, otherwise than after `{}` in the same iteration; give each a scalar of \
                     its own",
                    self.name(var),
                    insn.name,
                    self.kernel.insns[*store].name
                )
            })?;
        }
        LOCAL.require(!reads(&self.kernel.insns[*store]), || {
            format!("`{}` may have its value from another iteration", self.name(var))
        })
    }

    fn check_sum(&self, insn: &Insn) -> Result<(), Refusal> {
        let var = insn.lhs.var;
        let read = self
            .insns
            .iter()
            .map(|i| &self.kernel.insns[i.id])
            .find(|other| other.lhs.index.iter().chain([&other.rhs]).any(|e| e.loads(var)));
        let adds = insn.update_op() == Some(UpdateOp::Add);
        SUMS.require(adds && read.is_none() && !insn.is_atomic(), || match read {
            Some(reader) => format!(
                "`{}` reads `{}`, which `{}` changes with the iteration; sum into it by `+=` only",
                reader.name,
                self.name(var),
                insn.name
            ),
            None => format!(
                "`{}` writes `{}`, which is no scalar of an iteration, otherwise than by `+=`",
                insn.name,
                self.name(var)
            ),
        })
    }

    /// The terms of an update.
    fn terms(&mut self, insn: &Insn) -> Result<Vec<Term>, Refusal> {
        let mut all = Vec::new();
        for (summand, (e, minus)) in summands(&insn.rhs, self.changing).into_iter().enumerate() {
            let value = self.value(insn, e)?;
            self.check_atoms(insn, &value)?;
            for (factors, c) in &value {
                all.push(self.term(insn, summand, factors, if minus { -c } else { *c })?);
            }
        }
        Ok(all)
    }

    fn value(&mut self, insn: &Insn, e: &Expr) -> Result<Sum, Refusal> {
        let value = self.atoms.expand(self.kernel, e).map_err(|why| match why {
            NoSum::OtherType(e) => SUMS.unfit(format!(
                "`{}` has a part `{}` that is not computed in `f64`",
                insn.name,
                self.kernel.show_expr(&e)
            )),
            NoSum::TooLong => SUMS.unfit(format!("the value of `{}` has too many terms", insn.name)),
            NoSum::NotFinite(_) => sums::refusal(self.kernel, insn, why),
        })?;
        SUMS.holds(Means::Form, String::new);
        FINITE.holds(Means::Form, String::new);
        Ok(value)
    }

    /// No factor reads what the loop writes, other than scalars that stay.
    fn check_atoms(&mut self, insn: &Insn, value: &Sum) -> Result<(), Refusal> {
        for factor in value.keys().flatten() {
            let (written, opaque) = {
                let facts = self.facts(factor.atom);
                (facts.written, facts.opaque)
            };
            let shown = || self.kernel.show_expr(self.atoms.get(factor.atom)).to_string();
            TABLES.forbid(written, |written| {
                let var = self.name(written);
                let is_writer = |i: &&Insn| i.lhs.var == written;
                let writer = self.insns.iter().map(|i| &self.kernel.insns[i.id]).find(is_writer);
                format!(
                    "`{}` has the factor `{}`, whose `{var}` `{}` writes in each iteration of `{}`; keep the loop",
                    insn.name,
                    shown(),
                    writer.map_or("", |i| &i.name),
                    self.kernel.inames[self.iname].name
                )
            })?;
            TABLES.require(!opaque, || {
                format!(
                    "`{}` has the factor `{}`, a reduction or a rule; realise or expand it first",
                    insn.name,
                    shown()
                )
            })?;
        }
        Ok(())
    }

    /// What is known of an atom: one walk for all products that have it.
    fn facts(&mut self, atom: usize) -> Rc<Facts> {
        if let Some(Some(known)) = self.facts.get(atom) {
            return Rc::clone(known);
        }
        let found = Rc::new(self.facts_of(self.atoms.get(atom)));
        if self.facts.len() <= atom {
            self.facts.resize(atom + 1, None);
        }
        self.facts[atom] = Some(Rc::clone(&found));
        found
    }

    fn facts_of(&self, atom: &Expr) -> Facts {
        let (mut written, mut opaque, mut changes, mut by_loops) = (None, false, false, false);
        atom.for_each(&mut |e| match e {
            Expr::Iname(i) => {
                changes |= *i == self.iname;
                by_loops |= self.inside.contains(i);
            }
            Expr::Load(a) if self.points.contains(&a.var) => changes = true,
            Expr::Load(a) if self.written.contains(&a.var) => written = Some(a.var),
            Expr::Reduce(_) | Expr::Rule(..) | Expr::RuleParam(_) => opaque = true,
            Expr::Int(_)
            | Expr::Real(_)
            | Expr::Load(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Select(..) => {}
        });
        let how = match (changes, self.changing) {
            (false, _) => Seen::Fixed,
            (true, Changing::Scalars) if !by_loops => Seen::Varying,
            (true, _) => entry_of(self.kernel, self.iname, atom).map_or(Seen::Other, Seen::Entry),
        };
        Facts { written, opaque, how }
    }

    /// A product, with the entries that change apart.
    fn term(
        &mut self,
        insn: &Insn,
        summand: usize,
        factors: &[Factor],
        coefficient: f64,
    ) -> Result<Term, Refusal> {
        let (mut fixed, mut varying, mut entries) = (Product::new(), Product::new(), Vec::new());
        for factor in factors {
            match &self.facts(factor.atom).how {
                Seen::Fixed => fixed.push(*factor),
                Seen::Varying => varying.push(*factor),
                Seen::Entry(entry) if !factor.divides => entries.push(entry.clone()),
                Seen::Entry(_) | Seen::Other => {
                    return Err(TABLES.unfit(format!(
                        "`{}` has the factor `{}`, which changes with `{}` and is no entry of a table by loops; keep the loop",
                        insn.name,
                        self.kernel.show_expr(self.atoms.get(factor.atom)),
                        self.kernel.inames[self.iname].name
                    )));
                }
            }
        }
        entries.sort();
        Ok(Term { summand, coefficient, fixed, varying, entries })
    }
}

/// What an atom is, if it is an entry of a table of `f64` by loops and numbers.
pub(crate) fn entry_of(kernel: &Kernel, iname: InameId, atom: &Expr) -> Option<Entry> {
    let Expr::Load(access) = atom else { return None };
    let var = &kernel.vars[access.var];
    let is_table = matches!(var.kind, VarKind::Table(TableData::Real(_))) && var.ty == ScalarType::F64;
    let slot = |e: &Expr| {
        if let Expr::Int(k) = e {
            return Some(Slot::Number(*k));
        }
        let Expr::Iname(i) = e else { return None };
        Some(if *i == iname { Slot::Point } else { Slot::Axis(*i) })
    };
    let slots = access.index.iter().map(slot).collect::<Option<Vec<_>>>()?;
    is_table.then_some((access.var, slots))
}

/// Loops by their extents, of those that run from 0 to a constant.
pub(crate) fn constant_extents(kernel: &Kernel) -> BTreeMap<InameId, usize> {
    let extent = |iname: InameId| {
        let (low, high) = kernel.inames[iname].domain.as_range(iname)?;
        (low.as_constant()? == 0).then_some(())?;
        usize::try_from(high.as_constant()?).ok().filter(|n| *n > 0)
    };
    kernel.inames.ids().filter_map(|i| Some((i, extent(i)?))).collect()
}

/// The values of loops around updates that index tables are below these numbers: of loops that run from
/// 0, or from the value of such a loop around, to a constant.
pub(crate) fn axis_extents(kernel: &Kernel) -> BTreeMap<InameId, usize> {
    let mut found = constant_extents(kernel);
    let whole = found.clone();
    let from_another = |iname: InameId| {
        let (low, high) = kernel.inames[iname].domain.as_range(iname)?;
        let [(Atom::Iname(outer), 1)] = low.terms() else { return None };
        let high = usize::try_from(high.as_constant()?).ok()?;
        // at least one iteration each
        (low.constant_term() == 0 && whole.get(outer).is_some_and(|n| *n <= high)).then_some(high)
    };
    found.extend(kernel.inames.ids().filter_map(|i| Some((i, from_another(i)?))));
    found
}
