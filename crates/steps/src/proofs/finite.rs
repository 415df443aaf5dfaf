//! What a step computes with that is known not to be finite.
//!
//! Many laws of sums and products hold where values are finite: zero times an infinity is no zero,
//! and the difference of two infinities is none. Values of arrays are known at run time. Numbers of
//! the program and entries of tables are known here.

use crate::obligation::Obligation;
use crate::proofs::entries::constant_shape;
use crate::refusal::Refusal;
use kingpost_ir::{Expr, Kernel, VarId, VarKind, Variable};
use std::collections::BTreeSet;

/// The laws of sums and products hold.
pub const FINITE: Obligation = Obligation::new(
    "finite",
    "no number and no entry of a table that is computed with is an infinity or a nan",
);

/// Checks the numbers and the tables of an expression of an instruction, also those of rules.
pub fn check_finite(kernel: &Kernel, insn: &str, e: &Expr) -> Result<(), Refusal> {
    check_finite_in(kernel, &format!("`{insn}`"), e)
}

/// The same for what is not the value of one instruction.
pub fn check_finite_in(kernel: &Kernel, what: &str, e: &Expr) -> Result<(), Refusal> {
    let (mut number, mut tables) = (None, BTreeSet::new());
    kernel.expand_rules(e).for_each(&mut |e| {
        if let Expr::Real(value) = e
            && !value.0.is_finite()
        {
            number = Some(value.0);
        }
        tables.extend(e.as_load().map(|access| access.var));
    });
    FINITE.forbid(number, |number| {
        format!("{what} computes with {number}; pass it as an argument, or keep what computes with it")
    })?;
    tables.into_iter().try_for_each(|var| check_finite_table(kernel, var))
}

/// Checks the entries of a variable, if it is a table.
pub fn check_finite_table(kernel: &Kernel, var: VarId) -> Result<(), Refusal> {
    let table = &kernel.vars[var];
    let VarKind::Table(data) = &table.kind else { return Ok(()) };
    let extents = constant_shape(kernel, table)?;
    FINITE.forbid(data.not_finite(), |at| {
        let element = element(table, &extents, at);
        format!("`{element}` is {}; pass the table as an argument, or keep it as it is", data.show(at))
    })
}

/// The name of an element by its place, row by row.
pub fn element(table: &Variable, extents: &[usize], mut at: usize) -> String {
    let mut index = Vec::new();
    for extent in extents.iter().rev() {
        index.push((at % extent).to_string());
        at /= extent;
    }
    index.reverse();
    format!("{}[{}]", table.name, index.join(", "))
}
