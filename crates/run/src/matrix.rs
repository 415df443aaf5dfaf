//! Sparse matrices of bilinear forms.

/// A sparse matrix by rows, as SciPy's `csr_matrix` has it.
#[derive(Clone, Debug, PartialEq)]
pub struct CsrMatrix {
    /// Number of columns.
    pub n_columns: usize,
    /// Place of the first entry of each row, and after them the number of entries.
    pub row_starts: Vec<i32>,
    /// The column of each entry, ascending in a row.
    pub columns: Vec<i32>,
    /// The entries.
    pub values: Vec<f64>,
}

impl CsrMatrix {
    /// Number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.row_starts.len().saturating_sub(1)
    }

    /// Columns and values of the entries of a row; none of a row that is not there.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let bound = |k: usize| self.row_starts.get(k).map_or(0, |start| *start as usize);
        let range = if row < self.n_rows() { bound(row)..bound(row + 1) } else { 0..0 };
        range.map(|k| (self.columns[k] as usize, self.values[k]))
    }

    /// The product with a vector of [`CsrMatrix::n_columns`] numbers; what a shorter one lacks is 0.
    #[must_use]
    pub fn multiply(&self, x: &[f64]) -> Vec<f64> {
        let of_row = |row| self.row(row).map(|(column, a)| a * x.get(column).copied().unwrap_or(0.0)).sum();
        (0..self.n_rows()).map(of_row).collect()
    }
}
