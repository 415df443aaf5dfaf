//! Solving for the window that each argument is of an array.
//!
//! For each access `A[f]` of the callee and `B[g]` of the statements, `g = o + M f`: in each axis
//! of `B` one linear equation for each loop of the statements, and one between any two accesses for
//! what they have besides.

use super::solve::{Equation, solve};
use super::state::{Matched, Site, State};
use super::{Window, WindowAxis};
use crate::affine::{Affine, Atom};
use crate::expr::{Access, Expr};
use crate::ids::{Id, VarId};

impl State<'_> {
    /// Solves for the windows of all arguments. Those whose indices mention a parameter that
    /// nothing else gives a value come last: there the whole axis is passed, which gives the
    /// parameter its value.
    pub(super) fn solve_windows(&mut self) -> Matched {
        let arguments: Vec<VarId> =
            self.callee.vars.ids().filter(|v| self.arrays[v.index()].is_some()).collect();
        for v in &arguments {
            if self.is_known(*v) {
                self.solve_window(*v)?;
            }
        }
        for v in arguments {
            if self.windows[v.index()].is_none() {
                self.pass_whole_axes(v)?;
                self.solve_window(v)?;
            }
        }
        Ok(())
    }

    fn sites_of(&self, var: VarId) -> Vec<Site<'_>> {
        self.sites.iter().filter(|s| s.var == var).copied().collect()
    }

    fn is_known(&self, var: VarId) -> bool {
        let known = |e: &Expr| e.as_affine().is_none_or(|e| self.known(&e).is_some());
        self.sites_of(var).iter().all(|s| s.needed.iter().all(known))
    }

    /// Gives parameters in indices the values they have if the axes are those of the array.
    fn pass_whole_axes(&mut self, var: VarId) -> Matched {
        let mut pairs = Vec::new();
        for site in self.sites_of(var) {
            for (e, g) in site.needed.iter().zip(site.found) {
                if let (Some(e), Some(g)) = (e.as_affine(), g.as_affine()) {
                    pairs.push((e, g));
                }
            }
        }
        for (e, g) in pairs {
            if self.known(&e).is_none() {
                self.equal(&e, &g)?;
            }
        }
        Ok(())
    }

    fn solve_window(&mut self, var: VarId) -> Matched {
        let Some(array) = self.arrays[var.index()] else { return Ok(()) };
        let axes = (0..self.kernel.vars[array].shape.len()).map(|axis| self.solve_axis(var, axis));
        let axes = axes.collect::<Result<Vec<_>, _>>()?;
        self.windows[var.index()] = Some(Window { var: array, axes });
        Ok(())
    }

    /// The axis `axis` of the array as a function of the index of the window.
    fn solve_axis(&self, var: VarId, axis: usize) -> Result<WindowAxis, super::Mismatch> {
        let rank = self.callee.vars[var].shape.len();
        let sites = self.sites_of(var);
        let differs = |site: &Site<'_>| {
            let array = self.arrays[var.index()].unwrap_or(var);
            self.differs(
                format!("`{}`", self.kernel.show_access(&Access::new(array, site.found.iter().cloned()))),
                format!(
                    "a window `{}`",
                    self.callee.show_access(&Access::new(var, site.needed.iter().cloned()))
                ),
            )
        };
        let Some(first) = sites.first() else {
            return Ok(WindowAxis { offset: Expr::Int(0), steps: vec![0; rank] });
        };
        // The axis as it is, if that fits: what no access tells stays in its place.
        let fits = |s: &&Site<'_>| match (s.needed[axis].as_affine(), s.found[axis].as_affine()) {
            (Some(f), Some(g)) => self.known(&f).as_ref() == Some(&g),
            (None, _) => true, // matched as expressions
            (Some(_), None) => false,
        };
        let by_value = sites.iter().any(|s| s.needed.get(axis).is_some_and(|e| e.as_affine().is_none()));
        if by_value || first.needed.len() == first.found.len() {
            let steps = (0..rank).map(|a| i64::from(a == axis)).collect();
            match sites.iter().find(|s| !fits(s)) {
                None => return Ok(WindowAxis { offset: Expr::Int(0), steps }),
                Some(site) if by_value => return Err(differs(site)),
                Some(_) => {}
            }
        }
        if sites.iter().any(|s| s.found[axis].as_affine().is_none()) {
            let offset = first.found[axis].clone();
            let mut inside = false;
            offset.for_each(&mut |e| {
                inside |= matches!(e, Expr::Iname(i) if self.is_inside(*i)) || matches!(e, Expr::Reduce(_));
            });
            return match sites.iter().find(|s| inside || s.found[axis] != offset) {
                Some(site) => Err(differs(site)),
                None => Ok(WindowAxis { offset, steps: vec![0; rank] }),
            };
        }
        let parts: Option<Vec<Parts>> = sites.iter().map(|s| self.parts(s, axis)).collect();
        let Some(parts) = parts else { return Err(differs(first)) };
        let steps = solve(equations(&parts, rank), rank).ok_or_else(|| differs(first))?;
        let offset = parts[0].offset(&steps);
        match sites.iter().zip(&parts).find(|(_, p)| !p.holds(&offset, &steps)) {
            Some((site, _)) => Err(differs(site)),
            None => Ok(WindowAxis { offset: Expr::from_affine(&offset), steps }),
        }
    }

    /// `f` and one axis of `g`, split into what depends on the loops of the statements and the
    /// rest; `None` for an index of the callee that has no affine value.
    fn parts(&self, site: &Site<'_>, axis: usize) -> Option<Parts> {
        let needed = site.needed.iter().map(|e| match e.as_affine() {
            Some(e) => self.known(&e).map(|e| e.split(&|i| self.is_inside(i))),
            None => Some((Affine::constant(0), Affine::constant(0))), // the same axis of both: another one than this
        });
        Some(Parts {
            needed: needed.collect::<Option<_>>()?,
            found: site.found[axis].as_affine()?.split(&|i| self.is_inside(i)),
        })
    }
}

/// An index of the window and one of the array: what depends on the loops of the statements, and
/// the rest.
struct Parts {
    needed: Vec<(Affine, Affine)>,
    found: (Affine, Affine),
}

impl Parts {
    /// `o = g - M f`, outside the loops.
    fn offset(&self, steps: &[i64]) -> Affine {
        let terms = self.needed.iter().zip(steps).map(|((_, f), step)| f.times(*step));
        terms.fold(self.found.1.clone(), |o, term| o.minus(&term))
    }

    fn holds(&self, offset: &Affine, steps: &[i64]) -> bool {
        let terms = self.needed.iter().zip(steps).map(|((f, _), step)| f.times(*step));
        let inside = terms.fold(self.found.0.clone(), |rest, term| rest.minus(&term));
        inside.as_constant() == Some(0) && self.offset(steps) == *offset
    }
}

fn equations(parts: &[Parts], rank: usize) -> Vec<Equation> {
    let mut equations = Vec::new();
    for p in parts {
        let mut atoms: Vec<&Atom> = Vec::new();
        for e in p.needed.iter().map(|(f, _)| f).chain([&p.found.0]) {
            atoms.extend(e.terms().iter().map(|(atom, _)| atom));
        }
        atoms.sort_unstable();
        atoms.dedup();
        for atom in atoms {
            let coefficients = p.needed.iter().map(|(f, _)| f.coefficient(atom)).collect();
            equations.push(Equation { coefficients, value: p.found.0.coefficient(atom) });
        }
    }
    // Between two accesses: the constants by which they differ.
    let Some((first, rest)) = parts.split_first() else { return equations };
    for p in rest {
        let constant = |a: &Affine, b: &Affine| a.minus(b).as_constant();
        let coefficients: Option<Vec<i64>> =
            p.needed.iter().zip(&first.needed).map(|((_, f), (_, g))| constant(f, g)).collect();
        if let (Some(coefficients), Some(value)) = (coefficients, constant(&p.found.1, &first.found.1)) {
            equations.push(Equation { coefficients, value });
        }
    }
    assert!(equations.iter().all(|e| e.coefficients.len() == rank));
    equations
}
