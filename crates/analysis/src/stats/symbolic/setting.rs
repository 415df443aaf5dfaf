//! Counts as formulas: what the walk over the instructions adds up.

use super::super::counting::{Context, Count, Counting};
use super::super::error::StatsError;
use super::super::formula::{Bound, Formula, Region};
use super::polynomial::{Polynomial, Ratio};
use super::summation::{Pieces, Summation};
use kingpost_ir::affine::Atom;
use kingpost_ir::ids::{InameId, VarId};
use kingpost_ir::kernel::{Kernel, VarKind};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A sum of pieces, or why there is none.
#[derive(Clone, Debug)]
pub(super) struct Amount(Result<Pieces, Rc<str>>);

impl Amount {
    /// The pieces.
    pub(super) fn pieces(&self) -> Result<&Pieces, String> {
        self.0.as_ref().map_err(|why| why.to_string())
    }
}

impl Default for Amount {
    fn default() -> Self {
        Self(Ok(Pieces::new()))
    }
}

impl Count for Amount {
    fn one() -> Self {
        Self(Ok([(Vec::new(), Polynomial::constant(Ratio::ONE))].into()))
    }

    fn add(&mut self, other: &Self) -> Result<(), StatsError> {
        let Ok(sum) = &mut self.0 else { return Ok(()) };
        match &other.0 {
            Ok(pieces) => {
                for (conditions, polynomial) in pieces {
                    let entry = sum.entry(conditions.clone()).or_default();
                    *entry = entry.plus(polynomial).ok_or(StatsError::Overflow)?;
                }
                sum.retain(|_, polynomial| !polynomial.is_zero());
            }
            Err(why) => self.0 = Err(Rc::clone(why)),
        }
        Ok(())
    }

    fn times(&self, factor: u64) -> Result<Self, StatsError> {
        let Ok(pieces) = &self.0 else { return Ok(if factor == 0 { Self::default() } else { self.clone() }) };
        let mut result = Self::default();
        if factor != 0 {
            let scaled = pieces.iter().map(|(conditions, polynomial)| {
                let polynomial = polynomial.scaled(Ratio::whole(factor.into()))?;
                Some((conditions.clone(), polynomial))
            });
            result.0 = Ok(scaled.collect::<Option<_>>().ok_or(StatsError::Overflow)?);
        }
        Ok(result)
    }

    fn is_zero(&self) -> bool {
        self.0.as_ref().is_ok_and(Pieces::is_empty)
    }
}

/// A kernel at parameters that are not known.
pub(super) struct Symbolic<'k> {
    kernel: &'k Kernel,
    /// Sets that were counted.
    counted: RefCell<BTreeMap<(Vec<InameId>, Formula), Amount>>,
}

impl<'k> Symbolic<'k> {
    pub(super) fn of(kernel: &'k Kernel) -> Self {
        Self { kernel, counted: RefCell::default() }
    }

    fn context(&self, region: Region, formula: Formula, exact: bool) -> Context<Amount> {
        let dims: Vec<InameId> = region.bounds().iter().map(|(dim, ..)| *dim).collect();
        let key = (dims, formula);
        let known = self.counted.borrow().get(&key).cloned();
        let count = known.unwrap_or_else(|| {
            let found = Summation::of(self.kernel).count(&key.1, &key.0);
            Amount(found.map_err(Rc::from))
        });
        self.counted.borrow_mut().insert(key.clone(), count.clone());
        Context { region, formula: key.1, exact, count }
    }
}

impl Counting for Symbolic<'_> {
    type Count = Amount;

    fn kernel(&self) -> &Kernel {
        self.kernel
    }

    fn is_symbol(&self, var: VarId) -> bool {
        self.kernel.vars[var].kind == VarKind::Param
    }

    fn enter(&self, outer: &Context<Amount>, inames: &[InameId]) -> Result<Context<Amount>, StatsError> {
        let mut region = outer.region.clone();
        let mut parts = vec![outer.formula.clone()];
        for iname in inames {
            let this = &self.kernel.inames[*iname];
            let mut unknown = None;
            this.domain.for_each_symbol(&mut |atom| match atom {
                Atom::Var(v) if !self.is_symbol(*v) => unknown = Some(self.kernel.vars[*v].name.clone()),
                Atom::Var(_) | Atom::Iname(_) | Atom::Floor(..) => {}
            });
            if let Some(var) = unknown {
                return Err(StatsError::DataDependent { iname: this.name.clone(), var });
            }
            // the bounds are in the formula
            region.push(*iname, i64::MIN.into(), i64::MAX.into());
            parts.push(Formula::of_domain(&this.domain));
        }
        Ok(self.context(region, Formula::all(parts), outer.exact))
    }

    fn restrict(&self, outer: &Context<Amount>, condition: &Bound) -> Result<Context<Amount>, StatsError> {
        let (set, exact) = condition;
        let exact = *exact && outer.exact;
        if *set == Formula::TRUE {
            return Ok(Context { exact, ..outer.clone() });
        }
        let formula = Formula::all([outer.formula.clone(), set.clone()]);
        Ok(self.context(outer.region.clone(), formula, exact))
    }
}
