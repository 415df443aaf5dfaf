//! The proof of every primitive that adds a read of what may have no value yet: something has
//! written it before.

use crate::refusal::Refusal;
use kingpost_analysis::deps::AccessSite;
use kingpost_analysis::polyhedral::{Disjuncts, Polyhedral, Side, affine_condition, conjunction, difference};
use kingpost_ir::{Direction, Expr, InameId, InsnId, Kernel, VarKind};
use kingpost_isl as isl;

/// Whether an element may have no value yet.
pub fn may_be_undefined(kind: &VarKind) -> bool {
    match kind {
        VarKind::Param | VarKind::Table(_) | VarKind::Argument(Direction::In | Direction::InOut) => false,
        VarKind::Argument(Direction::Out) | VarKind::Temporary => true,
    }
}

/// Whether an expression reads only what the kernel cannot write.
pub fn reads_constants(kernel: &Kernel, e: &Expr) -> bool {
    let mut constant = true;
    e.for_each(&mut |e| {
        if let Expr::Load(access) = e {
            let kind = &kernel.vars[access.var].kind;
            constant &= match kind {
                VarKind::Param | VarKind::Table(_) | VarKind::Argument(Direction::In) => true,
                VarKind::Argument(Direction::Out | Direction::InOut) | VarKind::Temporary => false,
            };
        }
    });
    constant
}

/// A read that a step adds next to a loop: of the element that an update inside it changes.
pub struct NewRead<'a, 'k> {
    /// The kernel before the step, without rules.
    pub poly: &'a Polyhedral<'k>,
    /// The accesses of the variable.
    pub sites: &'a [AccessSite],
    /// The update.
    pub id: InsnId,
    /// The loop.
    pub iname: InameId,
    /// The loops whose values say when it runs and which element it reads: those around the loop,
    /// and perhaps some inside.
    pub loops: &'a [InameId],
    /// The condition under which it runs.
    pub condition: Option<&'a Expr>,
}

impl NewRead<'_, '_> {
    /// The values of its loops at which it runs and the update perhaps never does.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn without(&self) -> Result<isl::Set, Refusal> {
        let poly = self.poly;
        let (mut all, _) = poly.domains(self.loops, Side::Source);
        let given = self.condition.into_iter().flat_map(Expr::conjuncts);
        for holds in given.filter_map(affine_condition) {
            all = conjunction(all, poly.domain(&holds, Side::Source).0);
        }
        let space = isl::SetSpace::new(&poly.names(self.loops, Side::Source), &poly.params);
        let all = isl::Set::from_disjuncts(&space, &poly.in_context(all))?;
        Ok(match self.surely(self.id, Vec::new())? {
            Some(sure) => all.subtract(&sure)?,
            None => all,
        })
    }

    /// Those among some values of its loops at which nothing before the loop has surely
    /// written the element.
    ///
    /// Formula: `points` without the union, over the writes `w` before the loop, of
    /// `{ x : w runs surely in the iteration x of the common loops, element(w) = element(x) }`.
    ///
    /// # Errors
    /// A failure of isl.
    pub fn unwritten(&self, points: isl::Set) -> Result<isl::Set, Refusal> {
        let (poly, mut rest) = (self.poly, points);
        let before = |s: &&AccessSite| {
            s.writes()
                && !poly.loops(s.insn).contains(&self.iname)
                && poly.position(s.insn) < poly.position(self.id)
        };
        for write in self.sites.iter().filter(before) {
            let Some(same) = self.same_element(write) else { continue };
            if let Some(sure) = self.surely(write.insn, same)? {
                rest = rest.subtract(&sure)?;
            }
        }
        Ok(rest)
    }

    /// The constraints that a write is of the element that is read; `None` if nobody knows.
    fn same_element(&self, write: &AccessSite) -> Option<Vec<isl::Constraint>> {
        let insn = &self.poly.kernel.insns[self.id];
        let equal = |(own, other): (&Expr, &Option<kingpost_ir::Affine>)| {
            let own = self.poly.affine(&own.as_affine()?, Side::Source)?;
            let other = self.poly.affine(other.as_ref()?, Side::Source)?;
            Some(isl::Constraint::zero(difference(&own, &other)))
        };
        insn.lhs.index.iter().zip(write.index.iter()).map(equal).collect()
    }

    /// The values of the loops at which an instruction surely runs in the same iteration of those
    /// it shares, with some constraints; `None` if nobody knows of any.
    fn surely(&self, insn: InsnId, more: Vec<isl::Constraint>) -> Result<Option<isl::Set>, Refusal> {
        let poly = self.poly;
        let around = poly.loops(insn).iter();
        let inner: Vec<_> = around.filter(|l| !self.loops.contains(l)).copied().collect();
        let (domain, exact) = poly.domains(&inner, Side::Source);
        let Some(holds) = self.holds(insn).filter(|_| exact) else { return Ok(None) };
        let (mut all, _) = poly.domains(self.loops, Side::Source);
        for disjuncts in [domain, holds, vec![more]] {
            all = conjunction(all, disjuncts);
        }
        let dims: Vec<_> = self.loops.iter().chain(&inner).copied().collect();
        let space = isl::SetSpace::new(&poly.names(&dims, Side::Source), &poly.params);
        let set = isl::Set::from_disjuncts(&space, &poly.in_context(all))?;
        let inner = poly.names(&inner, Side::Source);
        let inner: Vec<_> = inner.iter().map(String::as_str).collect();
        Ok(Some(if inner.is_empty() { set } else { set.project_out(&inner)? }))
    }

    /// Where the predicate of an instruction holds if the condition does; `None` if nobody knows.
    fn holds(&self, insn: InsnId) -> Option<Disjuncts> {
        let (kernel, mut all) = (&*self.poly.kernel, vec![Vec::new()]);
        let given: Vec<&Expr> = self.condition.into_iter().flat_map(Expr::conjuncts).collect();
        for c in kernel.insns[insn].predicate.iter().flat_map(Expr::conjuncts) {
            // of the update itself the condition is known to say the same
            if given.contains(&c) && (insn == self.id || reads_constants(kernel, c)) {
                continue;
            }
            let (holds, exact) = self.poly.domain(&affine_condition(c)?, Side::Source);
            all = exact.then(|| conjunction(all, holds))?;
        }
        Some(all)
    }
}
