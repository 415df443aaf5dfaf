//! Where matrices have blocks.

use kingpost_runtime::Buffer;
use std::sync::Arc;

/// Where a matrix has blocks, by rows.
pub(super) struct Pattern {
    pub rows: usize,
    pub columns: usize,
    pub n_blocks: usize,
    /// First block of each row, and the end of the last.
    pub starts: Arc<Buffer>,
    /// Column of each block.
    pub at: Arc<Buffer>,
    /// Row of each block.
    pub owners: Buffer,
}

impl Pattern {
    /// Of rows and columns.
    pub fn new([rows, columns]: [usize; 2], n_blocks: usize, [starts, at, owners]: [Buffer; 3]) -> Self {
        Self { rows, columns, n_blocks, starts: Arc::new(starts), at: Arc::new(at), owners }
    }

    /// Bytes of its lists.
    pub const fn bytes(&self) -> u64 {
        4 * (self.rows as u64 + 1) + 8 * self.n_blocks as u64
    }

    /// Whose block each is, as arguments.
    pub fn places(&self) -> [(&'static str, &Buffer); 2] {
        [("owners", &self.owners), ("columns", &self.at)]
    }

    /// Where its rows are, as arguments.
    pub fn lists(&self) -> [(&'static str, &Buffer); 2] {
        [("row_starts", &self.starts), ("columns", &self.at)]
    }
}
