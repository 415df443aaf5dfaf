//! What a part runs kernels with, and hears of the others through.

use super::Wire;
use crate::{Call, SolveError};
use purlin_runtime::Buffer;

/// How the thread of a part runs kernels and exchanges numbers with the threads of the other parts. All
/// parts exchange and sum in the same order.
pub trait Communicator: Send {
    /// Which part it is.
    fn rank(&self) -> usize;

    /// How many parts there are.
    fn size(&self) -> usize;

    /// Runs kernels after those before; it may not wait for them.
    ///
    /// # Errors
    /// As [`Device::launch`](purlin_runtime::Device::launch).
    fn run(&self, calls: &[Call<'_>]) -> Result<(), SolveError>;

    /// Sends what is [packed](Wire::packed), beside the kernels that follow.
    ///
    /// # Errors
    /// A part that ended, a failing driver.
    fn start_exchange(&self, wire: &Wire) -> Result<(), SolveError>;

    /// Has the [ghosts](Wire::ghosts) there before the kernels that follow.
    ///
    /// # Errors
    /// As [`Communicator::start_exchange`].
    fn finish_exchange(&self, wire: &Wire) -> Result<(), SolveError>;

    /// Replaces the number at a place of each of some vectors by its sum over all parts, the same bit by
    /// bit in each.
    ///
    /// # Errors
    /// As [`Communicator::start_exchange`].
    fn sum(&self, vectors: &[&Buffer], place: usize) -> Result<(), SolveError>;

    /// Waits for all kernels.
    ///
    /// # Errors
    /// A failing driver.
    fn wait(&self) -> Result<(), SolveError>;

    /// Lets the other parts know that no more numbers come, so that they do not wait for them.
    fn abandon(&self);
}

/// Gives the others up if the part's own work ends before it is done.
pub(crate) struct Guard<'a> {
    communicator: &'a dyn Communicator,
    pub is_done: bool,
}

impl<'a> Guard<'a> {
    pub const fn new(communicator: &'a dyn Communicator) -> Self {
        Self { communicator, is_done: false }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.communicator.abandon();
        }
    }
}
