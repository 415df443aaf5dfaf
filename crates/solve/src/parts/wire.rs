//! What is under way between parts: numbers in the order in which they are sent and received.

use crate::SolveError;
use kingpost_runtime::{Buffer, Device};
use std::ops::Range;

/// Buffers of what a part sends and of what it receives, with the pieces of each other part.
pub struct Wire {
    /// What is sent, f64.
    pub(crate) packed: Buffer,
    /// What is received, f64 `[ghosts]`, by sender.
    pub(crate) ghosts: Buffer,
    pub(crate) sends: Vec<(usize, Range<usize>)>,
    pub(crate) receives: Vec<(usize, Range<usize>)>,
}

impl Wire {
    /// Buffers for pieces that are sent, which may overlap, and for pieces that are received, one after the
    /// other. Each piece is that of a part by its rank; the other part has a piece as long.
    ///
    /// # Errors
    /// No memory.
    pub fn new(
        device: &dyn Device,
        sends: Vec<(usize, Range<usize>)>,
        receives: Vec<(usize, Range<usize>)>,
    ) -> Result<Self, SolveError> {
        let bytes = |pieces: &[(usize, Range<usize>)]| {
            8 * pieces.iter().map(|(_, range)| range.end as u64).max().unwrap_or(0)
        };
        Ok(Self {
            packed: device.allocate(bytes(&sends))?,
            ghosts: device.allocate(bytes(&receives))?,
            sends,
            receives,
        })
    }

    /// What is sent by the next exchange: to be filled before it.
    #[must_use]
    pub const fn packed(&self) -> &Buffer {
        &self.packed
    }

    /// What the last exchange brought.
    #[must_use]
    pub const fn ghosts(&self) -> &Buffer {
        &self.ghosts
    }

    /// Numbers that are sent each time, once for each part that they are sent to.
    #[must_use]
    pub fn n_sent(&self) -> usize {
        self.sends.iter().map(|(_, range)| range.len()).sum()
    }
}
