//! Constraints by name to isl's constraint matrices, without a string in between.
//!
//! A floor division `floor(e/d)` becomes an existential column `q` with `0 <= e - d q <= d - 1`,
//! which isl recognises as an explicit definition.

use std::rc::Rc;

use crate::affine::{Affine, Constraint, ConstraintKind, FloorDiv, OVERFLOWED};
use crate::context::{Context, Owned, value};
use crate::error::IslError;
use crate::ffi;

/// One row: dense over the names and the constant, sparse over the divisions.
struct Row {
    names: Vec<i64>,
    divs: Vec<(usize, i64)>,
    constant: i64,
}

/// Rows under construction, with the floor divisions met so far.
struct Encoder<'a, F: Fn() -> String> {
    groups: &'a [&'a [String]],
    width: usize,
    space: F,
    divs: Vec<&'a FloorDiv>,
    equalities: Vec<Row>,
    inequalities: Vec<Row>,
}

fn overflow() -> IslError {
    IslError::Overflow { operation: "encode a constraint", needed: "`i64`" }
}

fn add_to(cell: &mut i64, coefficient: i64) -> Result<(), IslError> {
    *cell = cell.checked_add(coefficient).ok_or_else(overflow)?;
    Ok(())
}

impl<'a, F: Fn() -> String> Encoder<'a, F> {
    fn column(&self, name: &str) -> Result<usize, IslError> {
        let mut all = self.groups.iter().flat_map(|group| group.iter());
        all.position(|other| other == name)
            .ok_or_else(|| IslError::UnknownName { name: name.to_owned(), space: (self.space)() })
    }

    fn row(&mut self, expr: &'a Affine) -> Result<Row, IslError> {
        let mut row = Row { names: vec![0; self.width], divs: Vec::new(), constant: expr.constant };
        for (name, coefficient) in &expr.terms {
            let column = self.column(name)?;
            add_to(&mut row.names[column], *coefficient)?;
        }
        for (div, coefficient) in &expr.divs {
            let position = self.div(div)?;
            match row.divs.iter_mut().find(|(other, _)| *other == position) {
                Some((_, sum)) => add_to(sum, *coefficient)?,
                None => row.divs.push((position, *coefficient)),
            }
        }
        Ok(row)
    }

    /// The existential column of a division, with its two defining rows.
    fn div(&mut self, div: &'a FloorDiv) -> Result<usize, IslError> {
        if div.denominator == OVERFLOWED {
            return Err(overflow());
        }
        if div.denominator < 1 {
            return Err(IslError::Denominator { denominator: div.denominator });
        }
        if let Some(position) = self.divs.iter().position(|other| *other == div) {
            return Ok(position);
        }
        let mut lower = self.row(&div.numerator)?;
        // Numbered after the divisions in its numerator, so that definitions only look back.
        let position = self.divs.len();
        self.divs.push(div);
        lower.divs.push((position, -div.denominator));
        let negate = |v: i64| v.checked_neg().ok_or_else(overflow);
        let upper = Row {
            names: lower.names.iter().map(|v| negate(*v)).collect::<Result<_, _>>()?,
            divs: lower.divs.iter().map(|(p, v)| Ok((*p, negate(*v)?))).collect::<Result<_, IslError>>()?,
            constant: negate(lower.constant)?.checked_add(div.denominator - 1).ok_or_else(overflow)?,
        };
        self.inequalities.push(lower);
        self.inequalities.push(upper);
        Ok(position)
    }

    fn matrix(&self, ctx: &Rc<Context>, rows: &[Row]) -> Result<Owned<ffi::isl_mat>, IslError> {
        let columns = self.width + self.divs.len() + 1;
        let size = |n: usize| u32::try_from(n).map_err(|_| overflow());
        // SAFETY: plain arguments; null is checked by `Owned`.
        let raw = unsafe { ffi::isl_mat_alloc(ctx.raw(), size(rows.len())?, size(columns)?) };
        // SAFETY: `raw` is null or owned here.
        let mut matrix = unsafe { Owned::new(ctx, raw, "allocate a matrix")? };
        let mut cells = vec![0; columns];
        for (position, row) in rows.iter().enumerate() {
            cells.fill(0);
            cells[..self.width].copy_from_slice(&row.names);
            for (div, coefficient) in &row.divs {
                cells[self.width + div] = *coefficient;
            }
            cells[columns - 1] = row.constant;
            // isl does not clear a new matrix: every cell is written.
            matrix = set_row(matrix, position, &cells)?;
        }
        Ok(matrix)
    }
}

/// Writes one row; its position and length were checked to fit `u32`, isl takes `int` and checks
/// the range.
fn set_row(matrix: Owned<ffi::isl_mat>, row: usize, cells: &[i64]) -> Result<Owned<ffi::isl_mat>, IslError> {
    const OPERATION: &str = "fill a matrix";
    let ctx = Rc::clone(matrix.ctx());
    let mut raw = matrix.into_raw();
    for (column, number) in cells.iter().enumerate() {
        let (row, column) = (row as i32, column as i32);
        // SAFETY: the matrix, and the value if any, are handed over and come back; null passes
        // through.
        raw = unsafe {
            match i32::try_from(*number) {
                Ok(small) => ffi::isl_mat_set_element_si(raw, row, column, small),
                Err(_) => {
                    let matrix = Owned::new(&ctx, raw, OPERATION)?;
                    let large = value(&ctx, *number)?.into_raw();
                    ffi::isl_mat_set_element_val(matrix.into_raw(), row, column, large)
                }
            }
        };
    }
    // SAFETY: `raw` is null or the matrix that was handed over.
    unsafe { Owned::new(&ctx, raw, OPERATION) }
}

/// The equality and the inequality matrix of a conjunction.
///
/// Columns: the names of `groups` in order, then existential divisions, then the constant.
///
/// # Errors
/// [`IslError::UnknownName`], [`IslError::Denominator`], [`IslError::Overflow`].
pub(crate) fn matrices(
    ctx: &Rc<Context>,
    groups: &[&[String]],
    constraints: &[Constraint],
    space: impl Fn() -> String,
) -> Result<(Owned<ffi::isl_mat>, Owned<ffi::isl_mat>), IslError> {
    let width = groups.iter().map(|group| group.len()).sum();
    let mut encoder =
        Encoder { groups, width, space, divs: Vec::new(), equalities: Vec::new(), inequalities: Vec::new() };
    for constraint in constraints {
        let row = encoder.row(&constraint.expr)?;
        match constraint.kind {
            ConstraintKind::NonNegative => encoder.inequalities.push(row),
            ConstraintKind::Zero => encoder.equalities.push(row),
        }
    }
    let equalities = encoder.matrix(ctx, &encoder.equalities)?;
    Ok((equalities, encoder.matrix(ctx, &encoder.inequalities)?))
}
