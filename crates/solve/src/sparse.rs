//! Patterns of matrices by rows.

use crate::SolveError;
use rayon::prelude::*;

/// Where the entry on the diagonal of each row stands.
///
/// # Errors
/// [`SolveError::NoDiagonal`].
pub(crate) fn diagonal_of(row_starts: &[i32], columns: &[i32]) -> Result<Vec<i32>, SolveError> {
    let of_row = |(row, bounds): (usize, &[i32])| {
        let own = &columns[bounds[0] as usize..bounds[1] as usize];
        own.binary_search(&(row as i32)).map_or(-1, |place| bounds[0] + place as i32)
    };
    let found: Vec<i32> = row_starts.par_windows(2).enumerate().map(of_row).collect();
    match found.iter().position(|place| *place < 0) {
        Some(row) => Err(SolveError::NoDiagonal { row }),
        None => Ok(found),
    }
}
