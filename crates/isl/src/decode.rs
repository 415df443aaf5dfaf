//! isl's basic sets and affine expressions back to constraints by name.

use std::rc::Rc;

use crate::affine::{Affine, Constraint, ConstraintKind, FloorDiv};
use crate::context::{Context, Owned, fraction};
use crate::error::IslError;
use crate::ffi::{self, CST, DIV, IN, PARAM, SET};

const OPERATION: &str = "export constraints";

/// The names of the columns of a set: parameters and dimensions in isl's order.
pub(crate) struct Columns<'a> {
    pub(crate) params: &'a [String],
    pub(crate) dims: &'a [String],
}

/// An affine expression over a common denominator: `numerator / denominator`.
pub(crate) fn quotient(
    ctx: &Rc<Context>,
    aff: &Owned<ffi::isl_aff>,
    columns: &Columns<'_>,
) -> Result<(Affine, i64), IslError> {
    // SAFETY: isl keeps `aff` and hands out a value.
    let denominator = unsafe { fraction(ctx, ffi::isl_aff_get_denominator_val(aff.keep()), OPERATION)?.0 };
    let scaled = |(num, den): (i64, i64)| -> Result<i64, IslError> {
        let overflow = IslError::Overflow { operation: OPERATION, needed: "`i64`" };
        // The denominator is common: `den` divides it.
        denominator.checked_div(den).and_then(|factor| num.checked_mul(factor)).ok_or(overflow)
    };
    // SAFETY: as above.
    let constant = unsafe { fraction(ctx, ffi::isl_aff_get_constant_val(aff.keep()), OPERATION)? };
    let mut result = Affine::constant(scaled(constant)?);
    for (kind, names) in [(IN, columns.dims), (PARAM, columns.params)] {
        for (position, name) in names.iter().enumerate() {
            let coefficient = scaled(coefficient(ctx, aff, kind, position)?)?;
            if coefficient != 0 {
                result.terms.push((name.clone(), coefficient));
            }
        }
    }
    // SAFETY: isl keeps `aff`.
    let n_div = ctx.size(unsafe { ffi::isl_aff_dim(aff.keep(), DIV) }, OPERATION)?;
    for position in 0..n_div {
        let coefficient = scaled(coefficient(ctx, aff, DIV, position)?)?;
        if coefficient != 0 {
            // SAFETY: isl keeps `aff`; the position is in range; null is checked.
            let div =
                unsafe { Owned::new(ctx, ffi::isl_aff_get_div(aff.keep(), position as i32), OPERATION)? };
            result.divs.push((floor_div(ctx, &div, columns)?, coefficient));
        }
    }
    Ok((result, denominator))
}

fn coefficient(
    ctx: &Rc<Context>,
    aff: &Owned<ffi::isl_aff>,
    kind: ffi::DimType,
    position: usize,
) -> Result<(i64, i64), IslError> {
    // SAFETY: isl keeps `aff` and checks the position.
    unsafe { fraction(ctx, ffi::isl_aff_get_coefficient_val(aff.keep(), kind, position as i32), OPERATION) }
}

fn floor_div(
    ctx: &Rc<Context>,
    aff: &Owned<ffi::isl_aff>,
    columns: &Columns<'_>,
) -> Result<FloorDiv, IslError> {
    let (numerator, denominator) = quotient(ctx, aff, columns)?;
    Ok(FloorDiv { numerator, denominator })
}

/// The constraints of one basic set whose divisions are all explicit.
fn basic_set(
    ctx: &Rc<Context>,
    set: &Owned<ffi::isl_basic_set>,
    columns: &Columns<'_>,
) -> Result<Vec<Constraint>, IslError> {
    // SAFETY: isl keeps `set`.
    let n_div = ctx.size(unsafe { ffi::isl_basic_set_dim(set.keep(), DIV) }, OPERATION)?;
    let mut divs = Vec::with_capacity(n_div);
    for position in 0..n_div {
        // SAFETY: isl keeps `set`; the position is in range; an unknown division gives null.
        let div =
            unsafe { Owned::new(ctx, ffi::isl_basic_set_get_div(set.keep(), position as i32), OPERATION)? };
        divs.push(floor_div(ctx, &div, columns)?);
    }
    // SAFETY: isl keeps `set`; the four kinds are a permutation of its columns.
    let (equalities, inequalities) = unsafe {
        let eq = ffi::isl_basic_set_equalities_matrix(set.keep(), SET, PARAM, DIV, CST);
        let eq = Owned::new(ctx, eq, OPERATION)?;
        let ineq = ffi::isl_basic_set_inequalities_matrix(set.keep(), SET, PARAM, DIV, CST);
        (eq, Owned::new(ctx, ineq, OPERATION)?)
    };
    let mut result = Vec::new();
    read_rows(ctx, &equalities, ConstraintKind::Zero, columns, &divs, &mut result)?;
    read_rows(ctx, &inequalities, ConstraintKind::NonNegative, columns, &divs, &mut result)?;
    result.retain(|constraint| !defines_division(constraint));
    Ok(result)
}

/// Reads every row of a matrix.
fn read_rows(
    ctx: &Rc<Context>,
    matrix: &Owned<ffi::isl_mat>,
    kind: ConstraintKind,
    columns: &Columns<'_>,
    divs: &[FloorDiv],
    result: &mut Vec<Constraint>,
) -> Result<(), IslError> {
    // SAFETY: isl keeps the matrix.
    let rows = ctx.size(unsafe { ffi::isl_mat_rows(matrix.keep()) }, OPERATION)?;
    let cell = |row: usize, column: usize| -> Result<i64, IslError> {
        // SAFETY: isl keeps the matrix and checks the position.
        let raw = unsafe { ffi::isl_mat_get_element_val(matrix.keep(), row as i32, column as i32) };
        // SAFETY: the value was handed out just now.
        Ok(unsafe { fraction(ctx, raw, OPERATION)? }.0)
    };
    for row in 0..rows {
        let mut expr = Affine::default();
        let names = columns.dims.iter().chain(columns.params);
        let mut column = 0;
        for name in names {
            let coefficient = cell(row, column)?;
            column += 1;
            if coefficient != 0 {
                expr.terms.push((name.clone(), coefficient));
            }
        }
        for div in divs {
            let coefficient = cell(row, column)?;
            column += 1;
            if coefficient != 0 {
                expr.divs.push((div.clone(), coefficient));
            }
        }
        expr.constant = cell(row, column)?;
        result.push(Constraint { expr, kind });
    }
    Ok(())
}

/// Whether the constraint says no more than `d * floor(e/d) <= e <= d * floor(e/d) + d - 1`.
fn defines_division(constraint: &Constraint) -> bool {
    let is_definition = |(div, coefficient): &(FloorDiv, i64)| {
        let sign: i128 = if *coefficient == -div.denominator {
            1
        } else if *coefficient == div.denominator {
            -1
        } else {
            return false;
        };
        let slack = if sign == 1 { 0 } else { div.denominator - 1 };
        let e = &div.numerator;
        let same_terms = constraint.expr.terms.len() == e.terms.len()
            && constraint
                .expr
                .terms
                .iter()
                .zip(&e.terms)
                .all(|(a, b)| a.0 == b.0 && i128::from(a.1) == sign * i128::from(b.1));
        let others = constraint.expr.divs.iter().filter(|(other, _)| other != div);
        let same_divs = constraint.expr.divs.len() == e.divs.len() + 1
            && others.zip(&e.divs).all(|(a, b)| a.0 == b.0 && i128::from(a.1) == sign * i128::from(b.1));
        same_terms
            && same_divs
            && i128::from(constraint.expr.constant) >= sign * i128::from(e.constant) + i128::from(slack)
    };
    matches!(constraint.kind, ConstraintKind::NonNegative) && constraint.expr.divs.iter().any(is_definition)
}

/// The disjuncts of a set as conjunctions of constraints, divisions explicit.
pub(crate) fn disjuncts(
    set: &Owned<ffi::isl_set>,
    columns: &Columns<'_>,
) -> Result<Vec<Vec<Constraint>>, IslError> {
    let ctx = set.ctx();
    // SAFETY: a reference is handed over; the list is owned here.
    let list = unsafe {
        let explicit = Owned::new(ctx, ffi::isl_set_compute_divs(set.give()), OPERATION)?;
        Owned::new(ctx, ffi::isl_set_get_basic_set_list(explicit.keep()), OPERATION)?
    };
    // SAFETY: isl keeps the list.
    let size = ctx.size(unsafe { ffi::isl_basic_set_list_size(list.keep()) }, OPERATION)?;
    let mut result = Vec::with_capacity(size);
    for position in 0..size {
        // SAFETY: isl keeps the list; the position is in range.
        let one = unsafe {
            Owned::new(ctx, ffi::isl_basic_set_list_get_at(list.keep(), position as i32), OPERATION)?
        };
        result.push(basic_set(ctx, &one, columns)?);
    }
    Ok(result)
}
