//! Values of the parameters for the first picture.

use kingpost_ir::{Affine, Assumption, Atom, Constraint, Kernel, VarKind};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Extent of a loop that nothing divides into blocks.
const PLAIN: i64 = 8;
/// The largest block of which a picture shows two and a part.
const BLOCK: i64 = 32;

/// Values that show two blocks of the largest loop and a part of a third; those that are `given` stay.
/// Where an assumption does not hold with them, its parameters are made larger.
pub fn drawn(kernels: &[&Kernel], given: &BTreeMap<String, i64>) -> BTreeMap<String, i64> {
    let mut values = given.clone();
    let block = kernels.iter().map(|kernel| largest_block(kernel)).max();
    let start = match block {
        Some(block) if block > 1 => 2 * block + block / 4 + 1,
        Some(_) | None => PLAIN,
    };
    for kernel in kernels {
        let is_given = |id| kernel.vars[id].kind == VarKind::Param && kernel.definition(id).is_none();
        for var in kernel.vars.iter().filter(|(id, _)| is_given(*id)).map(|(_, var)| var) {
            values.entry(var.name.clone()).or_insert(start);
        }
    }
    let Some(kernel) = kernels.first() else { return values };
    for _ in 0..4 {
        let broken = |assumption: &&Assumption| match assumption {
            Assumption::Params(constraint) => holds(kernel, constraint, &values) == Some(false),
            Assumption::Defined(..)
            | Assumption::Injective(_)
            | Assumption::Ascending(_)
            | Assumption::Outside(_)
            | Assumption::Symmetric(_)
            | Assumption::Lists(_) => false,
        };
        let Some(Assumption::Params(constraint)) = kernel.assumptions.iter().find(broken) else { break };
        let mut names = Vec::new();
        constraint.expr().for_each_symbol(&mut |atom| {
            if let Atom::Var(v) = atom {
                names.push(kernel.vars[*v].name.clone());
            }
        });
        for name in names.into_iter().filter(|name| !given.contains_key(name)) {
            values.entry(name).and_modify(|value| *value = value.saturating_mul(2));
        }
    }
    // what does not fit is refused where the kernel runs
    kernel.with_defined(&values).map_or_else(|_| values.clone(), Cow::into_owned)
}

fn holds(kernel: &Kernel, constraint: &Constraint, values: &BTreeMap<String, i64>) -> Option<bool> {
    let value = constraint.expr().eval(&mut |atom| match atom {
        Atom::Var(v) => values.get(&kernel.vars[*v].name).copied(),
        Atom::Iname(_) | Atom::Floor(..) => None,
    })?;
    Some(match constraint {
        Constraint::Zero(_) => value == 0,
        Constraint::NonNegative(_) => value >= 0,
    })
}

/// The largest divisor of a bound: what loops over parameters are divided by.
fn largest_block(kernel: &Kernel) -> i64 {
    let mut largest = 1;
    for iname in kernel.inames.values() {
        for constraint in iname.domain.disjuncts().iter().flatten() {
            largest = largest.max(largest_divisor(constraint.expr()));
        }
    }
    largest
}

fn largest_divisor(e: &Affine) -> i64 {
    let of = |(atom, factor): &(Atom, i64)| match atom {
        Atom::Floor(_, divisor) => *divisor,
        Atom::Iname(_) => factor.abs(),
        Atom::Var(_) => 1,
    };
    e.terms().iter().map(of).filter(|block| *block <= BLOCK).max().unwrap_or(1)
}
