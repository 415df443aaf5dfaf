//! Entries of tables that proofs have to look at: a line that is small against the others, infinities,
//! zeros of either sign.

/// The lines of a table, of which the last one may be small.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    Rows,
    Columns,
}

/// Small numbers that are powers of two, so that scaling by them and back changes no bit: about `1e-20`
/// and `1e-200`.
const SMALL: [i32; 2] = [66, 664];

/// Makes a table with `columns` an unusual one in half of the picks, and says what its last line has to
/// be multiplied by to be as large as the others.
pub(super) fn unusual(values: &mut [f64], columns: usize, lines: Lines, pick: u8) -> f64 {
    let rows = values.len() / columns.max(1);
    match pick % 8 {
        4 => values.iter_mut().filter(|v| **v == 0.0).step_by(2).for_each(|v| *v = -0.0),
        5 => values.iter_mut().rev().take(1).for_each(|v| *v = f64::INFINITY),
        k @ (6 | 7) => {
            let power = SMALL[usize::from(k - 6)];
            let is_last = |at: usize| match lines {
                Lines::Rows => at / columns == rows - 1,
                Lines::Columns => at % columns == columns - 1,
            };
            for (at, value) in values.iter_mut().enumerate() {
                *value *= if is_last(at) { 2.0_f64.powi(-power) } else { 1.0 };
            }
            return 2.0_f64.powi(power);
        }
        _ => {}
    }
    1.0
}
