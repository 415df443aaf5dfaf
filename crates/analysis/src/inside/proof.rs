//! The proof for one access: plain integers first, isl where they do not decide.

use super::reach::{Cause, Outside, Reach};
use super::sites::Site;
use crate::polyhedral::{Polyhedral, Side, cross, is_real, smallest_point};
use crate::witness::Instance;
use foldhash::fast::FixedState;
use kingpost_ir::affine::{Affine, Atom};
use kingpost_ir::domain::{Constraint, Domain};
use kingpost_ir::elimination::implied;
use kingpost_ir::ids::InameId;
use kingpost_ir::kernel::VarKind;
use kingpost_isl as isl;
use std::collections::HashMap;

/// Proofs for the accesses of one kernel.
pub(super) struct Proofs<'p, 'k> {
    poly: &'p Polyhedral<'k>,
    /// What is known of the parameters, each not negative.
    assumed: Vec<Affine>,
    /// What was decided under loops alone.
    decided: HashMap<(Vec<InameId>, Affine), bool, FixedState>,
}

impl<'p, 'k> Proofs<'p, 'k> {
    pub(super) fn new(poly: &'p Polyhedral<'k>) -> Self {
        let mut assumed = Vec::new();
        poly.kernel.known_of_parameters().iter().for_each(|c| push(&mut assumed, c));
        // an argument of negative extent cannot be given
        let arguments = poly.kernel.vars.values().filter(|v| matches!(v.kind, VarKind::Argument(_)));
        for extent in arguments.flat_map(|v| &v.shape).filter(|e| e.as_constant().is_none()) {
            if !assumed.contains(extent) {
                assumed.push(extent.clone());
            }
        }
        Self { poly, assumed, decided: HashMap::default() }
    }

    /// Where an access goes.
    pub(super) fn reach(&mut self, site: &Site<'_>) -> Reach {
        let shape = &self.poly.kernel.vars[site.access.var].shape;
        let mut open = None;
        for (index, extent) in site.access.index.iter().zip(shape) {
            let Some(index) = index.as_affine().filter(|e| self.poly.is_symbolic(e)) else {
                open = Some(Cause::Index);
                continue;
            };
            let beyond = extent.minus(&index).plus_constant(-1);
            for distance in [index, beyond] {
                if self.is_certain(site, &distance) {
                    continue;
                }
                match self.outside(site, &distance) {
                    Ok(None) => {}
                    Ok(Some(point)) => match self.unseen(site) {
                        None if is_real(&self.poly.kernel, &point) => return self.witness(site, &point),
                        None => open = open.or(Some(Cause::Computed)),
                        cause => open = open.or(cause),
                    },
                    Err(_) => open = open.or(Some(Cause::Solver)),
                }
            }
        }
        open.map_or(Reach::Inside, Reach::Open)
    }

    /// Whether plain integers show that the distance to an end of the axis is not negative.
    fn is_certain(&mut self, site: &Site<'_>, distance: &Affine) -> bool {
        if let Some(c) = distance.as_constant() {
            return c >= 0;
        }
        if !site.conditions.is_empty() {
            return self.follows(site, distance);
        }
        let key = (site.loops.clone(), distance.clone());
        if let Some(known) = self.decided.get(&key) {
            return *known;
        }
        let found = self.follows(site, distance);
        self.decided.insert(key, found);
        found
    }

    fn follows(&self, site: &Site<'_>, distance: &Affine) -> bool {
        let mut facts = Vec::new();
        let domains = site.loops.iter().map(|i| &self.poly.kernel.inames[*i].domain);
        for domain in domains.chain(&site.conditions) {
            // of several pieces none is known to hold
            let Some(constraints) = domain.as_conjunction() else { continue };
            constraints.iter().filter(|c| self.poly.is_symbolic(c.expr())).for_each(|c| push(&mut facts, c));
        }
        facts.extend(self.assumed.iter().cloned());
        let defined = self.poly.kernel.known_of_definitions(facts.clone());
        defined.iter().for_each(|c| push(&mut facts, c));
        let rest = |e: &Affine| facts.iter().any(|f| least(&facts, &e.minus(f)).is_some_and(|c| c >= 0));
        if least(&facts, distance).is_some_and(|c| c >= 0) || rest(distance) {
            return true;
        }
        let mut known = facts.clone();
        facts.iter().chain([distance]).for_each(|e| quotients(e, &mut known));
        implied(&known, distance)
    }

    /// Why a point outside may be none that happens: isl does not see every condition, or a scalar
    /// is given at launch of which nothing can be assumed.
    fn unseen(&self, site: &Site<'_>) -> Option<Cause> {
        let seen = |d: &Domain| self.poly.domain(d, Side::Source).1;
        let domains =
            || site.loops.iter().map(|i| &self.poly.kernel.inames[*i].domain).chain(&site.conditions);
        if !site.exact || !domains().all(seen) {
            return Some(Cause::Domain);
        }
        let mut given = None;
        let mut note = |atom: &Atom, cause| {
            if matches!(atom, Atom::Var(v) if self.poly.kernel.vars[*v].kind != VarKind::Param) {
                given = Some(cause);
            }
        };
        domains().for_each(|d| d.for_each_symbol(&mut |a| note(a, Cause::Domain)));
        let indices = site.access.index.iter().filter_map(|e| e.as_affine());
        indices.for_each(|e| e.for_each_symbol(&mut |a| note(a, Cause::Index)));
        given
    }

    /// The smallest instance where the distance is negative.
    fn outside(&self, site: &Site<'_>, distance: &Affine) -> Result<Option<isl::Point>, isl::IslError> {
        let poly = self.poly;
        let (mut all, _) = poly.domains(&site.loops, Side::Source);
        for condition in &site.conditions {
            all = cross(&all, &poly.domain(condition, Side::Source).0);
        }
        let negative = Constraint::lt(distance, &Affine::default());
        let context = self.assumed.iter().cloned().map(Constraint::NonNegative).chain([negative]);
        let context = context.filter_map(|c| poly.constraint(&c, Side::Source)).collect();
        let dims = poly.names(&site.loops, Side::Source);
        let space = isl::SetSpace::new(&dims, &poly.params);
        let set = isl::Set::from_disjuncts(&space, &cross(&all, &[context]))?;
        smallest_point(&poly.kernel, &set)
    }

    fn witness(&self, site: &Site<'_>, point: &[(String, i64)]) -> Reach {
        let kernel = &*self.poly.kernel;
        let value = |name: &str| point.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let loops = site.loops.iter().filter_map(|i| value(&kernel.inames[*i].name)).collect();
        let index = site.access.index.iter().map(|e| {
            let at = e.as_affine().and_then(|e| {
                e.eval(&mut |atom| match atom {
                    Atom::Iname(i) => value(&kernel.inames[*i].name),
                    Atom::Var(v) => value(&kernel.vars[*v].name),
                    Atom::Floor(..) => None,
                })
            });
            at.map_or_else(|| kernel.show_expr(e).to_string(), |v| v.to_string())
        });
        let var = &kernel.vars[site.access.var];
        let shape: Vec<_> = var.shape.iter().map(|e| kernel.show_affine(e).to_string()).collect();
        let params = point.iter().filter(|(name, _)| self.poly.params.contains(name));
        let params = params.filter(|(name, _)| self.matters(site, name)).cloned().collect();
        Reach::Outside(Box::new(Outside {
            instance: Instance::new(kernel, site.insn, loops),
            element: format!("{}[{}]", var.name, index.collect::<Vec<_>>().join(",")),
            shape: format!("[{}]", shape.join(", ")),
            params,
        }))
    }

    /// Whether a parameter has a part in where an access goes.
    fn matters(&self, site: &Site<'_>, name: &str) -> bool {
        let kernel = &*self.poly.kernel;
        let Some(var) = kernel.var(name) else { return false };
        let mut found = false;
        let mut visit = |atom: &Atom| found |= *atom == Atom::Var(var);
        kernel.vars[site.access.var].shape.iter().for_each(|e| e.for_each_symbol(&mut visit));
        site.access.index.iter().filter_map(|e| e.as_affine()).for_each(|e| e.for_each_symbol(&mut visit));
        let domains = site.loops.iter().map(|i| &kernel.inames[*i].domain);
        domains.chain(&site.conditions).for_each(|d| d.for_each_symbol(&mut visit));
        found
    }
}

fn push(facts: &mut Vec<Affine>, c: &Constraint) {
    match c {
        Constraint::NonNegative(e) => facts.push(e.clone()),
        Constraint::Zero(e) => facts.extend([e.clone(), e.times(-1)]),
    }
}

/// A lower bound by the constant bounds of each atom; `None` if there is none.
fn least(facts: &[Affine], e: &Affine) -> Option<i128> {
    e.terms().iter().try_fold(i128::from(e.constant_term()), |sum, (atom, c)| {
        let bounds = facts.iter().filter_map(|f| match f.terms() {
            // s*atom + b >= 0: atom >= -b for s = 1, atom <= b for s = -1
            [(a, s)] if a == atom && s.abs() == 1 && s.signum() == c.signum() => {
                Some(-i128::from(*s) * i128::from(f.constant_term()))
            }
            _ => None,
        });
        let tightest = if *c > 0 { bounds.max() } else { bounds.min() };
        Some(sum + i128::from(*c) * tightest?)
    })
}

/// What is true of the quotients of an expression: `0 <= n - d*floor(n/d) <= d - 1`.
fn quotients(e: &Affine, known: &mut Vec<Affine>) {
    for (atom, _) in e.terms() {
        if let Atom::Floor(n, d) = atom {
            let rest = n.minus(&Affine::from(atom).times(*d));
            let below = rest.times(-1).plus_constant(d - 1);
            if !known.contains(&rest) {
                known.extend([rest, below]);
                quotients(n, known);
            }
        }
    }
}
