//! Statistics as formulas in the parameters: sums of quasi-polynomials, each where its conditions hold.
//!
//! ```
//! use kingpost_analysis::stats::formulas;
//!
//! let kernel = kingpost_ir::text::parse(
//!     "kernel triangle\nparam n: i32\narg y: f64[n] inout\n\nfor i in 0..n\n  for j in 0..i\n    s: y[i] += y[j]\n",
//! )?;
//! let stats = formulas(&kernel)?;
//! assert_eq!(stats.flops.to_string(), "n*(n - 1)/2");
//! assert_eq!(stats.flops.at(&[("n".to_owned(), 1000)].into()), Some(499_500));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod polynomial;
mod setting;
mod show;
mod summation;
mod system;

use super::collect::{self, Accesses, Collector};
use super::counting::{Context, Count, Counting};
use super::error::StatsError;
use kingpost_interp::{OpKind, Tally, lower_parametric};
use kingpost_ir::affine::Atom;
use kingpost_ir::domain::Constraint;
use kingpost_ir::ids::{Id, InameId, VarId};
use kingpost_ir::kernel::{AddressSpace, Kernel, VarKind};
use kingpost_ir::types::ScalarType;
use polynomial::Polynomial;
use setting::{Amount, Symbolic};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A count in closed form: the sum of polynomials in parameters and floors of parameters, each of which
/// counts where its conditions hold.
///
/// As text, `[n >= 2]*(n - 2)` is `n - 2` where the condition holds and else 0.
#[derive(Clone, Debug, PartialEq)]
pub struct CountFormula {
    text: String,
    /// Names by variable.
    names: Arc<[String]>,
    pieces: Vec<(Vec<Constraint>, Polynomial)>,
}

impl CountFormula {
    /// The count at these parameters; none where a parameter is missing or a number exceeds 128 bits.
    pub fn at(&self, params: &BTreeMap<String, i64>) -> Option<u64> {
        let name = |v: VarId| self.names.get(v.index());
        let value = |atom: &Atom| match atom {
            Atom::Var(v) => params.get(name(*v)?).copied(),
            Atom::Iname(_) | Atom::Floor(..) => None,
        };
        let mut sum = 0_i128;
        for (conditions, polynomial) in &self.pieces {
            let mut holds = true;
            for c in conditions {
                let e = c.expr().eval(&mut |atom| value(atom))?;
                holds &= match c {
                    Constraint::Zero(_) => e == 0,
                    Constraint::NonNegative(_) => e >= 0,
                };
            }
            if holds {
                let of_atom = |atom: &Atom| match atom {
                    Atom::Var(_) => value(atom).map(i128::from),
                    Atom::Iname(_) => None,
                    Atom::Floor(numerator, d) => {
                        numerator.eval(&mut |a| value(a)).map(|n| n.div_euclid(*d).into())
                    }
                };
                sum = sum.checked_add(polynomial.eval(&of_atom)?)?;
            }
        }
        u64::try_from(sum).ok()
    }
}

impl fmt::Display for CountFormula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A count as a formula, if one was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// The formula, or why there is none.
    pub formula: Result<CountFormula, String>,
    /// Whether it is exact, not an upper bound.
    pub exact: bool,
}

impl Counted {
    /// The count at these parameters; none without a formula, and as [`CountFormula::at`].
    pub fn at(&self, params: &BTreeMap<String, i64>) -> Option<u64> {
        self.formula.as_ref().ok()?.at(params)
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.formula {
            Ok(formula) => write!(f, "{}{formula}", if self.exact { "" } else { "at most " }),
            Err(why) => write!(f, "no closed form: {why}"),
        }
    }
}

/// How often an operation is done, as a formula.
#[derive(Clone, Debug, PartialEq)]
pub struct OpFormula {
    /// Kind of operation.
    pub kind: OpKind,
    /// Type it works on; indices count as `i64`.
    pub ty: ScalarType,
    /// How often.
    pub count: Counted,
}

/// Accesses to a variable, as formulas.
#[derive(Clone, Debug, PartialEq)]
pub struct VarFormulas {
    /// Name.
    pub name: String,
    /// Type of one element.
    pub ty: ScalarType,
    /// Who shares it.
    pub space: AddressSpace,
    /// Reads; an update reads the element it writes.
    pub reads: Counted,
    /// Writes.
    pub writes: Counted,
}

/// Statistics of a kernel as formulas in its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Formulas {
    /// Floating-point operations.
    pub flops: Counted,
    /// Instances of each instruction, by name, in textual order.
    pub insns: Vec<(String, Counted)>,
    /// Operations that occur.
    pub ops: Vec<OpFormula>,
    /// Variables that are not parameters, in order of declaration.
    pub vars: Vec<VarFormulas>,
}

/// Statistics of a kernel as formulas: what [`statistics`](super::statistics) counts at given parameters,
/// distinct elements apart.
///
/// Loops whose bounds are affine have a closed form, also where a split rounds a quotient of parameters.
/// Where a bound is a quotient of other loops there may be none, and the count says so. A product of
/// parameters with loops in a condition is not affine here.
///
/// # Errors
/// A kernel that is not well formed; bounds that depend on data.
///
/// # Source
/// Faulhaber's formula, loop by loop. Loopy's counts are the same, by barvinok.
pub fn formulas(kernel: &Kernel) -> Result<Formulas, StatsError> {
    let kernel = &*kernel.scalar_form();
    let statements = lower_parametric(kernel)?;
    let setting = Symbolic::of(kernel);
    let mut collector = Collector::new(&setting);
    collector.statements(&statements)?;
    let names = names(kernel);
    let counted = |amount: &Amount, exact: bool| counted(kernel, &names, amount, exact);
    let mut flops = Amount::default();
    let mut insns = Vec::with_capacity(kernel.insns.len());
    for (insn, cost) in kernel.insns.values().zip(&collector.insns) {
        let collect::InsnCost { instances, flops: own, exact } = cost;
        flops.add(own)?;
        insns.push((insn.name.clone(), counted(instances, *exact)));
    }
    let ops_exact = !collector.ops_inexact;
    let mut ops = Vec::new();
    for (k, amount) in collector.ops.iter().enumerate().filter(|(_, amount)| !amount.is_zero()) {
        if let Some((kind, ty)) = Tally::decode(k) {
            ops.push(OpFormula { kind, ty, count: counted(amount, ops_exact) });
        }
    }
    let accesses = |a: &Accesses<Amount>| counted(&a.count, !a.inexact);
    let vars = kernel.vars.iter().filter(|(_, v)| v.kind != VarKind::Param);
    let vars = vars.map(|(id, var)| VarFormulas {
        name: var.name.clone(),
        ty: var.ty,
        space: var.space,
        reads: accesses(&collector.reads[id.index()]),
        writes: accesses(&collector.writes[id.index()]),
    });
    Ok(Formulas { flops: counted(&flops, ops_exact), insns, ops, vars: vars.collect() })
}

/// How often something runs that stands inside these loops, outermost first: the sum over all places.
///
/// # Errors
/// Bounds that depend on data.
pub fn points(kernel: &Kernel, places: &[Vec<InameId>]) -> Result<Counted, StatsError> {
    let setting = Symbolic::of(kernel);
    let mut total = Amount::default();
    for loops in places {
        total.add(&setting.enter(&Context::origin(Amount::one()), loops)?.count)?;
    }
    Ok(counted(kernel, &names(kernel), &total, true))
}

fn names(kernel: &Kernel) -> Arc<[String]> {
    kernel.vars.values().map(|v| v.name.clone()).collect()
}

fn counted(kernel: &Kernel, names: &Arc<[String]>, amount: &Amount, exact: bool) -> Counted {
    let formula = amount.pieces().map(|pieces| CountFormula {
        text: show::pieces(kernel, pieces),
        names: Arc::clone(names),
        pieces: pieces.iter().map(|(c, p)| (c.clone(), p.clone())).collect(),
    });
    Counted { formula, exact }
}
