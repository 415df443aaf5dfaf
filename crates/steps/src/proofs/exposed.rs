//! The proof of every primitive that runs statements once instead of many times: no run needs what
//! another one has left.

use crate::obligation::Obligation;
use crate::proofs::elements::element_at;
use crate::proofs::written::reads_constants;
use crate::refusal::{AtParameters, Refusal};
use kingpost_analysis::deps::{AccessSite, Mode};
use kingpost_analysis::polyhedral::{
    Disjuncts, Polyhedral, Side, affine_condition, conjunction, difference, equal_values, smallest_point,
};
use kingpost_analysis::{Analysis, Instance};
use kingpost_ir::{Expr, InameId, InsnId};
use kingpost_isl as isl;

/// Every run starts afresh.
pub const NOT_EXPOSED: Obligation = Obligation::new(
    "not_exposed",
    "the statements write every element that they read and write in the same iteration before they read it",
);

/// Statements of one body that would run in fewer iterations of a loop.
pub struct Rerun<'a, 'k> {
    /// What is known of the kernel.
    pub analysis: &'a Analysis<'k>,
    /// Their instructions.
    pub insns: &'a [InsnId],
    /// The loops around them, outer first.
    pub around: &'a [InameId],
}

impl Rerun<'_, '_> {
    fn poly(&self) -> &Polyhedral<'_> {
        self.analysis.polyhedral()
    }

    /// Checks that no read of the statements is upward-exposed to what they write themselves.
    ///
    /// Formula: with `o` the loops around, for every read or update `r` among the statements, the
    /// set `{ r : exists w, o = o', element(w) = element(r) }` of the writes `w` among them,
    /// without the union over their stores of `{ r : exists w, o = o', element(w) = element(r), w
    /// before r }`, is empty.
    ///
    /// # Errors
    /// [`NOT_EXPOSED`] not proved, with the smallest point of that set, or a failure of isl.
    pub fn check_not_exposed(&self) -> Result<(), Refusal> {
        let is_own = |s: &&AccessSite| self.insns.contains(&s.insn) && s.bound_of.is_none();
        for of_var in self.analysis.all_sites() {
            let writes: Vec<_> = of_var.iter().filter(is_own).filter(|s| s.writes()).collect();
            if writes.is_empty() {
                continue;
            }
            for read in of_var.iter().filter(is_own).filter(|s| s.mode != Mode::Assign) {
                let exposed = self.exposed(read, &writes)?;
                let point = smallest_point(&self.poly().kernel, &exposed)?;
                NOT_EXPOSED.refute(point.map(|point| self.clash(read, &point)))?;
            }
        }
        Ok(())
    }

    /// The instances of a read that may find what another run has left.
    fn exposed(&self, read: &AccessSite, writes: &[&AccessSite]) -> Result<isl::Set, Refusal> {
        let poly = self.poly();
        let dims = [poly.loops(read.insn), &read.reduction].concat();
        let (all, _) = poly.instances_under(read.insn, read.conditions, Side::Source);
        let (reduction, _) = poly.domains(&read.reduction, Side::Source);
        let space = isl::SetSpace::new(&poly.names(&dims, Side::Source), &poly.params);
        let all = poly.in_context(conjunction(all, reduction));
        let all = isl::Set::from_disjuncts(&space, &all)?;
        let mut touched: Option<isl::Set> = None;
        for write in writes {
            let (instances, _) = poly.instances(write.insn, Side::Sink);
            let Some(same) = self.same_element(read, write) else {
                touched = Some(all.clone());
                break;
            };
            let here = self.reaching(&dims, write, conjunction(instances, vec![same]))?;
            touched = Some(match touched {
                Some(others) => others.union(&here)?,
                None => here,
            });
        }
        let mut rest = match touched {
            Some(touched) => all.intersect(&touched)?,
            None => all,
        };
        for write in writes.iter().filter(|w| w.mode == Mode::Assign && w.is_affine()) {
            let (Some(same), Some(runs)) = (self.same_element(read, write), self.surely(read, write)) else {
                continue;
            };
            let earlier = conjunction(self.earlier(read, write), vec![same]);
            rest = rest.subtract(&self.reaching(&dims, write, conjunction(runs, earlier))?)?;
        }
        Ok(rest)
    }

    /// Points at the read for which there is one at the write, in the same iteration of the loops
    /// around.
    fn reaching(&self, dims: &[InameId], write: &AccessSite, pairs: Disjuncts) -> Result<isl::Set, Refusal> {
        let poly = self.poly();
        let at_write = poly.names(poly.loops(write.insn), Side::Sink);
        let all = [poly.names(dims, Side::Source), at_write.clone()].concat();
        let space = isl::SetSpace::new(&all, &poly.params);
        let pairs = conjunction(pairs, vec![equal_values(poly, self.around)]);
        let set = isl::Set::from_disjuncts(&space, &poly.in_context(pairs))?;
        let at_write: Vec<_> = at_write.iter().map(String::as_str).collect();
        Ok(if at_write.is_empty() { set } else { set.project_out(&at_write)? })
    }

    /// The constraints that both touch one element, as far as it is known; `None` if an index of
    /// one is not.
    fn same_element(&self, read: &AccessSite, write: &AccessSite) -> Option<Vec<isl::Constraint>> {
        let axes = read.index.iter().zip(write.index.iter());
        let equal = axes.map(|(r, w)| {
            let r = self.poly().affine(r.as_ref()?, Side::Source)?;
            let w = self.poly().affine(w.as_ref()?, Side::Sink)?;
            Some(isl::Constraint::zero(difference(&r, &w)))
        });
        equal.collect()
    }

    /// The write comes before the read.
    fn earlier(&self, read: &AccessSite, write: &AccessSite) -> Disjuncts {
        let poly = self.poly();
        let common = poly.common_loops(write.insn, read.insn).iter().skip(self.around.len());
        let (mut disjuncts, mut equal) = (Vec::new(), Vec::new());
        for l in common {
            let [r, w] = [Side::Source, Side::Sink].map(|side| isl::Affine::name(poly.name(*l, side)));
            let step = difference(&r, &w);
            let mut first = equal.clone();
            first.push(isl::Constraint::non_negative(step.clone().offset(-1)));
            disjuncts.push(first);
            equal.push(isl::Constraint::zero(step));
        }
        if poly.position(write.insn) < poly.position(read.insn) {
            disjuncts.push(equal);
        }
        disjuncts
    }

    /// Where the write surely runs if the read does; `None` if nobody knows.
    fn surely(&self, read: &AccessSite, write: &AccessSite) -> Option<Disjuncts> {
        let poly = self.poly();
        let (mut all, exact) = poly.domains(poly.loops(write.insn), Side::Sink);
        let predicate = |insn: InsnId| poly.kernel.insns[insn].predicate.as_ref();
        let given: Vec<&Expr> = predicate(read.insn).into_iter().flat_map(Expr::conjuncts).collect();
        let given = &given[..read.conditions.unwrap_or(given.len()).min(given.len())];
        for c in predicate(write.insn).into_iter().flat_map(Expr::conjuncts) {
            if given.contains(&c) && self.is_one_value(c) {
                continue;
            }
            let (holds, same) = poly.domain(&affine_condition(c)?, Side::Sink);
            all = same.then(|| conjunction(all, holds))?;
        }
        exact.then_some(all)
    }

    /// Whether a condition has one value in an iteration of the loops around.
    fn is_one_value(&self, condition: &Expr) -> bool {
        let poly = self.poly();
        let inner = self.insns.iter().flat_map(|i| &poly.loops(*i)[self.around.len()..]);
        let mut reduces = false;
        condition.for_each(&mut |e| reduces |= matches!(e, Expr::Reduce(_)));
        !reduces
            && reads_constants(&poly.kernel, condition)
            && !inner.into_iter().any(|l| condition.mentions(*l))
    }

    fn clash(&self, read: &AccessSite, point: &[(String, i64)]) -> AtParameters {
        let (kernel, poly) = (self.analysis.kernel(), self.poly());
        let value = |name: &String| point.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let loops = poly.names(poly.loops(read.insn), Side::Source);
        let at: Vec<i64> = loops.iter().filter_map(value).collect();
        let params: Vec<_> = point.iter().filter(|(n, _)| poly.params.contains(n)).cloned().collect();
        let how = match read.mode {
            Mode::Update(_) => "updates",
            Mode::Read | Mode::Assign => "reads",
        };
        let element = element_at(poly, read, &at, &params);
        let of_loop = self.around.last().map_or("", |l| kernel.inames[*l].name.as_str());
        AtParameters {
            params,
            found: format!("{} {how} `{element}`", Instance::new(kernel, read.insn, at)),
            reason: format!(
                "which the statements write, and have not surely written before in the same iteration of \
                 `{of_loop}`; name the statement that sets `{}`, too",
                kernel.vars[read.access.var].name
            ),
        }
    }
}
