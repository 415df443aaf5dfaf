//! Arrays whose entries are assumed to be outside a range.

use crate::InterpError;
use crate::integers::Integers;
use crate::memory::{Memory, Value};
use crate::node::Program;
use crate::store::element_name;
use kingpost_ir::kernel::{Assumption, Kernel};
use kingpost_ir::{Affine, Atom, OutsideRange, VarId};
use std::ops::Range;

/// Entries that are assumed outside a range and have values from the start must be; arrays that the
/// kernel fills are returned.
pub(crate) fn check_outside(
    kernel: &Kernel,
    program: &Program,
    memory: &Memory,
) -> Result<Vec<VarId>, InterpError> {
    let mut unchecked = Vec::new();
    for assumption in &kernel.assumptions {
        let Assumption::Outside(outside) = assumption else { continue };
        let Some(values) = Integers::of(kernel, program, memory, outside.array)? else {
            unchecked.push(outside.array);
            continue;
        };
        let params = kernel.with_defined(memory.params())?;
        let symbol = |atom: &Atom| {
            let Atom::Var(v) = atom else { return None };
            let name = &kernel.vars[*v].name;
            params.get(name).copied().or_else(|| memory.get(name).and_then(|value: &Value| value.integer(0)))
        };
        let end = |end: &Affine| end.eval(&mut |atom| symbol(atom));
        let refused = |at: usize, needed: String| InterpError::NotOutside {
            assumption: kernel.show_assumption(assumption).to_string(),
            element: element_name(&kernel.vars[outside.array].name, &values.shape, at),
            found: values.at(at).map_or_else(String::new, |found| found.to_string()),
            needed,
        };
        let (Some(from), Some(to)) = (end(&outside.from), end(&outside.to)) else {
            return Err(refused(0, "a range of numbers that are given and fit 64 bits".into()));
        };
        if let Some((at, needed)) = wrong(outside, outside.length(kernel), &(from..to), &values) {
            return Err(refused(at, needed));
        }
    }
    Ok(unchecked)
}

/// The first entry that is wrong, and what was needed.
fn wrong(
    outside: &OutsideRange,
    length: i64,
    range: &Range<i64>,
    values: &Integers<'_>,
) -> Option<(usize, String)> {
    let columns = values.shape.last().copied();
    (0..values.len()).find_map(|at| {
        let found = values.at(at)?;
        let place =
            columns.zip(outside.own).map(|(columns, own)| (at / columns, (at % columns) as i64 - own));
        match place.filter(|(_, k)| *k >= 0) {
            None => {
                let needed = || format!("a number outside {}..{}", range.start, range.end);
                range.contains(&found).then(|| (at, needed()))
            }
            Some((row, k)) => {
                let needed = i128::from(range.start) + i128::from(length) * row as i128 + i128::from(k);
                (i128::from(found) != needed).then(|| (at, needed.to_string()))
            }
        }
    })
}
