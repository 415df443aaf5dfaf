//! The bounds of loops that run over a union of sets.

use crate::obligation::Obligation;
use crate::refusal::Refusal;
use kingpost_analysis::polyhedral::{Polyhedral, Side};
use kingpost_ir::{Affine, Atom, Constraint, Domain, InameId};
use kingpost_isl as isl;

const NO_CLOSED_FORM: &str = "the bounds of the mapped nest have no closed form; keep the nest";

/// Loops that are still to have bounds, and what is known around them.
pub struct Loops<'a, 'k> {
    /// Their kernel.
    pub poly: &'a Polyhedral<'k>,
    /// The loops, outer first.
    pub loops: &'a [InameId],
    /// What holds around them.
    pub around: &'a isl::Set,
    /// That they have bounds.
    pub closed_form: Obligation,
}

impl Loops<'_, '_> {
    /// Domains of the loops that together hold all points of `parts`, whose dimensions are those of
    /// `around`, then the loops.
    ///
    /// Formula: the hull of the parts, made of translates of their constraints, or, where no translate
    /// bounds a loop, the union of what each part says of it; of those the constraints on a loop are
    /// the ones with the loops inside eliminated over the rationals. No elimination leaves remainders
    /// or unions. An outer loop may hold iterations in which an inner one is empty. One part whose
    /// constraints all mention a loop is what its domains say.
    ///
    /// # Errors
    /// `closed_form` undecided if a part bounds a loop only through a quotient, or not at all; a failure
    /// of isl.
    pub fn domains(&self, parts: &[isl::Set]) -> Result<Vec<Domain>, Refusal> {
        let mut filled = Vec::with_capacity(parts.len());
        for part in parts {
            if !part.is_empty()? {
                filled.push(part);
            }
        }
        let Some((first, others)) = filled.split_first() else {
            let zero = Affine::default();
            return Ok(self.loops.iter().map(|i| Domain::range(*i, &zero, &zero)).collect());
        };
        let mut union = (*first).clone();
        for part in others {
            union = union.union(part)?;
        }
        let hull = if others.is_empty() { union } else { union.coalesce()?.simple_hull()? };
        let mut domains = self.levels(&hull)?;
        let mut single: Option<Vec<Vec<Domain>>> = None;
        for (k, iname) in self.loops.iter().enumerate() {
            if has_linear_bounds(&domains[k], *iname) {
                continue;
            }
            let single = match &single {
                Some(single) => single,
                None => single.insert(filled.iter().map(|part| self.levels(part)).collect::<Result<_, _>>()?),
            };
            let all = single.iter().flat_map(|levels| levels[k].disjuncts()).cloned();
            domains[k] = Domain::union(all);
            self.closed_form.decide(has_linear_bounds(&domains[k], *iname), || NO_CLOSED_FORM.into())?;
        }
        Ok(domains)
    }

    /// Domains of the loops that together say all that `set` says: what [`Loops::domains`] finds, and what
    /// is left. What no loop says, because it is about the loops around and parameters alone, the outermost
    /// one says. Nothing is known around.
    ///
    /// # Errors
    /// As [`Loops::domains`].
    pub fn exact_domains(&self, set: &isl::Set) -> Result<Vec<Domain>, Refusal> {
        let mut domains = self.domains(std::slice::from_ref(set))?;
        let mut said = isl::Set::universe(&set.space()?)?;
        for domain in &domains {
            let (disjuncts, _) = self.poly.domain(domain, Side::Source);
            said = said.intersect(&isl::Set::from_disjuncts(&set.space()?, &disjuncts)?)?;
        }
        let left = self.domain(&simplified(&set.gist(&said)?)?)?;
        let level = self.loops.iter().rposition(|l| left.mentions(*l)).unwrap_or(0); // default: of no loop, by the outermost
        domains[level] = domains[level].intersect(&left);
        Ok(domains)
    }

    /// What a set says of each loop, given those around it.
    fn levels(&self, set: &isl::Set) -> Result<Vec<Domain>, Refusal> {
        let dims = self.poly.names(self.loops, Side::Source);
        let dims: Vec<&str> = dims.iter().map(String::as_str).collect();
        let mut domains = Vec::with_capacity(dims.len());
        let mut rest = set.clone();
        for k in (0..dims.len()).rev() {
            let outer = shadow(&rest, &dims[k..=k])?;
            let known = outer.intersect(&self.around.add_dims(&dims[..k])?)?.add_dims(&dims[k..=k])?;
            domains.push(self.domain(&simplified(&rest.gist(&known)?)?)?);
            rest = outer;
        }
        domains.reverse();
        Ok(domains)
    }

    /// A set as a domain.
    fn domain(&self, set: &isl::Set) -> Result<Domain, Refusal> {
        self.closed_form.known(self.poly.to_domain(&set.disjuncts()?), || NO_CLOSED_FORM.into())
    }
}

/// The set without some dimensions, which are eliminated over the rationals: no point is lost, and no
/// remainder is left.
///
/// # Errors
/// A failure of isl.
pub fn shadow(set: &isl::Set, dims: &[&str]) -> Result<isl::Set, isl::IslError> {
    set.project_out(dims)?.remove_unknown_divs()?.remove_redundancies()
}

/// The same points in as few constraints as isl finds.
///
/// # Errors
/// A failure of isl.
pub fn simplified(set: &isl::Set) -> Result<isl::Set, isl::IslError> {
    set.coalesce()?.remove_redundancies()
}

/// Whether every disjunct bounds the iname from both sides by constraints without floors of it: a
/// loop needs them, and the projection of strided bounds may leave only quotients.
pub fn has_linear_bounds(domain: &Domain, iname: InameId) -> bool {
    let side = |c: &Constraint, sign: i64| {
        let factor = c.expr().coefficient(&Atom::Iname(iname));
        let rest = c.expr().minus(&Affine::iname(iname).times(factor));
        let towards = match c {
            Constraint::Zero(_) => factor != 0,
            Constraint::NonNegative(_) => factor.signum() == sign,
        };
        towards && !rest.mentions(iname)
    };
    domain.disjuncts().iter().all(|d| [1, -1].iter().all(|sign| d.iter().any(|c| side(c, *sign))))
}
