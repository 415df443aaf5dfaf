//! Exchange between cards by NCCL.

use super::{Communicator, Wire};
use crate::{Call, SolveError};
use purlin_runtime::cuda::nccl::{Piece, Rank};
use purlin_runtime::{Buffer, Device};
use std::ops::Range;

/// A card that exchanges with other cards by NCCL.
///
/// Nothing is waited for but by [`Communicator::wait`]: kernels, sums and transfers are ordered on the
/// card, and transfers run beside the kernels after their start.
pub struct NcclCommunicator<'d> {
    device: &'d dyn Device,
    rank: Rank,
}

impl<'d> NcclCommunicator<'d> {
    /// A part for each card, in their order.
    ///
    /// # Errors
    /// As [`Rank::of_devices`].
    pub fn of_devices(devices: &[&'d dyn Device]) -> Result<Vec<Self>, SolveError> {
        let ranks = Rank::of_devices(devices)?;
        Ok(ranks.into_iter().zip(devices).map(|(rank, device)| Self { device: *device, rank }).collect())
    }
}

fn pieces<'b>(buffer: &'b Buffer, ranges: &[(usize, Range<usize>)]) -> Vec<Piece<'b>> {
    let piece = |(peer, range): &(usize, Range<usize>)| Piece {
        peer: *peer,
        buffer,
        first: range.start,
        count: range.len(),
    };
    ranges.iter().map(piece).collect()
}

impl Communicator for NcclCommunicator<'_> {
    fn rank(&self) -> usize {
        self.rank.rank()
    }

    fn size(&self) -> usize {
        self.rank.size()
    }

    fn run(&self, calls: &[Call<'_>]) -> Result<(), SolveError> {
        for call in calls {
            let launch = call.launch();
            self.device.launch_on(launch.executable, launch.args, Some(self.rank.stream()))?;
        }
        Ok(())
    }

    fn start_exchange(&self, wire: &Wire) -> Result<(), SolveError> {
        let (sends, receives) = (pieces(&wire.packed, &wire.sends), pieces(&wire.ghosts, &wire.receives));
        Ok(self.rank.start_exchange(&sends, &receives)?)
    }

    fn finish_exchange(&self, _: &Wire) -> Result<(), SolveError> {
        Ok(self.rank.finish_exchange()?)
    }

    fn sum(&self, vectors: &[&Buffer], place: usize) -> Result<(), SolveError> {
        if self.size() == 1 {
            return Ok(());
        }
        let numbers: Vec<(&Buffer, usize)> = vectors.iter().map(|vector| (*vector, place)).collect();
        Ok(self.rank.sum(&numbers)?)
    }

    fn wait(&self) -> Result<(), SolveError> {
        Ok(self.rank.wait()?)
    }

    fn abandon(&self) {
        self.rank.abandon();
    }
}
