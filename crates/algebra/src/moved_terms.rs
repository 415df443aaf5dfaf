//! Terms of updates that leave a loop: the arrays that hold their sums, times what does not change.

use crate::outer_factors;
use crate::polynomial::{Atoms, Product, joined};
use crate::proofs::separable::{Changing, Term, summands};
use kingpost_ir::{
    Access, Affine, Atom, Domain, Expr, Iname, InameId, Insn, InsnId, Kernel, Node, Real, VarId,
};
use kingpost_steps::obligation::Obligation;
use kingpost_steps::refusal::Refusal;
use kingpost_steps::tree::{prune_insn, replace_loop};
use std::collections::{BTreeMap, BTreeSet};

/// What stays is written as it was.
pub(crate) const WHOLE: Obligation =
    Obligation::new("moved_terms.whole", "all terms of a summand leave the loop, or none");

/// The updates may run after the loop.
pub(crate) const LOOPS: Obligation = Obligation::new(
    "moved_terms.loops",
    "the loops around updates that lose a term run from 0, or from another one of them, to constants",
);

/// A sum, and what it is multiplied by.
pub(crate) struct Part {
    /// Place of the array that holds it.
    pub(crate) array: usize,
    /// The loops that index it.
    pub(crate) axes: Vec<InameId>,
    pub(crate) factors: Vec<(Product, f64)>,
}

/// What leaves the loop of an update.
pub(crate) struct Moved {
    pub(crate) insn: InsnId,
    /// The loops around it inside the loop.
    pub(crate) loops: Vec<InameId>,
    /// The summands that stay, and whether each is subtracted.
    pub(crate) kept: Vec<(Expr, bool)>,
    pub(crate) parts: Vec<Part>,
}

impl Moved {
    /// What stays of an update that terms leave, those at the places that `leaves` names; none if all
    /// stay. The parts are empty.
    pub(crate) fn of(
        kernel: &Kernel,
        iname: InameId,
        (id, terms): (InsnId, &[Term]),
        extents: &BTreeMap<InameId, usize>,
        leaves: &dyn Fn(usize) -> bool,
    ) -> Result<Option<Self>, Refusal> {
        let insn = &kernel.insns[id];
        let places = |wanted: bool| (0..terms.len()).filter(move |k| leaves(*k) == wanted);
        let leaving: BTreeSet<usize> = places(true).map(|k| terms[k].summand).collect();
        if leaving.is_empty() {
            return Ok(None);
        }
        let all = summands(&insn.rhs, Changing::Scalars);
        let mixed = places(false).map(|k| terms[k].summand).find(|summand| leaving.contains(summand));
        WHOLE.require(mixed.is_none(), || {
            let shown = mixed.and_then(|summand| all.get(summand));
            let shown = shown.map_or_else(String::new, |(e, _)| kernel.show_expr(e).to_string());
            format!(
                "`{shown}`, which `{}` adds, has terms of these tables and others; multiply it out first \
                 (`expand_products`)",
                insn.name
            )
        })?;
        let schedule = kernel.schedule();
        let around = schedule.iter().find(|(i, _)| *i == id).map_or(&[][..], |(_, loops)| loops.as_slice());
        let loops: Vec<InameId> = around.iter().copied().skip_while(|l| *l != iname).skip(1).collect();
        let inside = |(place, l): (usize, &InameId)| {
            let domain = &kernel.inames[*l].domain;
            let mut others = kernel.inames.ids().filter(|other| other != l && domain.mentions(*other));
            extents.contains_key(l) && others.all(|other| loops[..place].contains(&other))
        };
        let open = loops.iter().enumerate().find(|at| !inside(*at)).map(|(_, l)| l);
        LOOPS.require(open.is_none(), || {
            let name = open.map_or("", |l| &kernel.inames[*l].name);
            format!(
                "`{name}`, which is around `{}`, does not run from 0, or another loop around it, to a constant",
                insn.name
            )
        })?;
        let kept = all.into_iter().enumerate();
        let kept = kept.filter(|(k, _)| !leaving.contains(k) && terms.iter().any(|t| t.summand == *k));
        let kept = kept.map(|(_, (e, minus))| (e.clone(), minus)).collect();
        Ok(Some(Self { insn: id, loops, kept, parts: Vec::new() }))
    }
}

/// A loop that terms leave.
pub(crate) struct Leaving<'p> {
    pub(crate) iname: InameId,
    pub(crate) atoms: &'p Atoms,
    /// The stores of scalars whose values were put in their place.
    pub(crate) stores: &'p BTreeSet<InsnId>,
}

impl Leaving<'_> {
    /// Puts nodes before the loop, at the end of its body and after it, and the updates after
    /// all, where `arrays` hold the sums.
    pub(crate) fn take_out(
        &self,
        kernel: &mut Kernel,
        moved: &[Moved],
        arrays: &[VarId],
        [front, inside, mut behind]: [Vec<Node>; 3],
    ) {
        let mut updates = Updates { of: self, moved, kernel, behind: Vec::new() };
        let in_front = updates.write(arrays);
        behind.append(&mut updates.behind);
        let kept: BTreeSet<InsnId> = moved.iter().filter(|m| !m.kept.is_empty()).map(|m| m.insn).collect();
        let gone = moved.iter().map(|m| m.insn).filter(|insn| !kept.contains(insn));
        let gone: Vec<InsnId> = gone.collect();
        replace_loop(&mut kernel.body, self.iname, &mut |mut body| {
            gone.iter().for_each(|insn| prune_insn(&mut body, *insn));
            body.extend(inside.iter().cloned());
            let front = in_front.iter().map(|insn| Node::Insn(*insn)).chain(front.iter().cloned());
            front.chain([Node::Loop(self.iname, body)]).chain(behind.iter().cloned()).collect()
        });
        self.prune_unread(kernel);
    }

    /// Removes stores of scalars that nothing reads any more.
    fn prune_unread(&self, kernel: &mut Kernel) {
        loop {
            let left = kernel.schedule();
            let is_read = |var| left.iter().any(|(i, _)| kernel.insns[*i].loads(var));
            let unread = left.iter().map(|(i, _)| *i);
            let unread = unread.filter(|i| self.stores.contains(i) && !is_read(kernel.insns[*i].lhs.var));
            let unread: Vec<InsnId> = unread.collect();
            if unread.is_empty() {
                return;
            }
            unread.into_iter().for_each(|insn| prune_insn(&mut kernel.body, insn));
        }
    }
}

/// Writes the updates.
struct Updates<'p, 'k> {
    of: &'p Leaving<'p>,
    moved: &'p [Moved],
    kernel: &'k mut Kernel,
    behind: Vec<Node>,
}

impl Updates<'_, '_> {
    /// The updates with the sums in place; returns the stores of what multiplies them.
    fn write(&mut self, arrays: &[VarId]) -> Vec<InsnId> {
        let atoms = self.of.atoms;
        let mut scalars: Vec<(&[(Product, f64)], VarId)> = Vec::new();
        let mut in_front = Vec::new();
        let mut nests: Vec<(&[InameId], Vec<InameId>, Vec<Node>)> = Vec::new();
        for moved in self.moved {
            let place = nests.iter().position(|(loops, ..)| *loops == moved.loops).unwrap_or_else(|| {
                nests.push((&moved.loops, self.copies(&moved.loops), Vec::new()));
                nests.len() - 1
            });
            let copies = nests[place].1.clone();
            let renamed = |e: Expr| {
                let at = moved.loops.iter().position(|known| e == Expr::Iname(*known));
                at.map_or(e, |at| Expr::Iname(copies[at]))
            };
            let mut terms = Vec::new();
            for part in &moved.parts {
                let known = scalars.iter().find(|(of, _)| *of == part.factors).map(|(_, var)| *var);
                let scalar = known.or_else(|| {
                    outer_factors::is_worth_a_scalar(atoms, &part.factors).then(|| {
                        let users = self.moved.iter().map(|m| m.insn);
                        let (var, insn) = outer_factors::store(self.kernel, atoms, &part.factors, users);
                        in_front.push(insn);
                        scalars.push((&part.factors, var));
                        var
                    })
                });
                let entry = Expr::load(arrays[part.array], part.axes.iter().copied().map(Expr::Iname));
                terms.push(match scalar {
                    Some(scalar) => (Some(entry * Expr::scalar(scalar)), 1.0),
                    None => match outer_factors::value_of(atoms, &part.factors) {
                        Some((Some(e), c)) => (Some(entry * e), c),
                        Some((None, c)) => (Some(entry), c),
                        None => (Some(entry), 0.0),
                    },
                });
            }
            let value = joined(terms).unwrap_or(Expr::Real(Real(0.0))).map(&mut { renamed });
            let id = self.update(moved, value, &mut { renamed });
            nests[place].2.push(Node::Insn(id));
        }
        for (_, copies, body) in nests {
            let nest = copies.into_iter().rev().fold(body, |body, l| vec![Node::Loop(l, body)]);
            self.behind.extend(nest);
        }
        in_front
    }

    /// The update itself if nothing of it stays, else a copy.
    fn update(&mut self, moved: &Moved, value: Expr, renamed: &mut dyn FnMut(Expr) -> Expr) -> InsnId {
        let old = self.kernel.insns[moved.insn].clone();
        let index = old.lhs.index.iter().map(|e| e.map(renamed));
        let lhs = Access::new(old.lhs.var, index);
        if moved.kept.is_empty() {
            let insn = &mut self.kernel.insns[moved.insn];
            insn.lhs = lhs;
            insn.rhs = value;
            return moved.insn;
        }
        let kept = moved.kept.iter().map(|(e, minus)| (Some(e.clone()), if *minus { -1.0 } else { 1.0 }));
        self.kernel.insns[moved.insn].rhs = joined(kept).unwrap_or(Expr::Real(Real(0.0)));
        let name = self.kernel.fresh_name(&format!("{}_sums", old.name));
        self.kernel.insns.push(Insn { name, lhs, rhs: value, ..old })
    }

    /// Loops over the same values.
    fn copies(&mut self, loops: &[InameId]) -> Vec<InameId> {
        let mut copies: Vec<InameId> = Vec::new();
        for of in loops {
            let Iname { name, domain, tag } = self.kernel.inames[*of].clone();
            let name = self.kernel.fresh_name(&name);
            let iname = self.kernel.inames.push(Iname { name, domain: Domain::universe(), tag });
            let renamed = |atom: &Atom| match atom {
                Atom::Iname(l) => {
                    loops.iter().position(|known| known == l).and_then(|at| copies.get(at)).copied()
                }
                Atom::Var(_) | Atom::Floor(..) => None,
            };
            if let Some((low, high)) = domain.as_range(*of) {
                let low = low.substitute(&|atom| renamed(atom).map(Affine::iname));
                self.kernel.inames[iname].domain = Domain::range(iname, &low, &high);
            }
            copies.push(iname);
        }
        copies
    }
}
