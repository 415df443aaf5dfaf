//! Exchange between cards by NCCL.

use super::communicator::{Parts, Turns, perform};
use super::{Communicator, Repeatable, Wire, in_parts};
use crate::{Call, Queue, SolveError};
use kingpost_runtime::cuda::nccl::{Piece, Rank, UniqueId};
use kingpost_runtime::{Begun, Buffer, Device};
use std::ops::Range;
use std::time::Instant;

/// A card that exchanges with other cards by NCCL.
///
/// Nothing is waited for but by [`Communicator::wait`]: kernels, sums and transfers are ordered on the
/// card, and transfers run concurrently with the kernels after their start.
pub struct NcclCommunicator<'d> {
    device: &'d dyn Device,
    rank: Rank,
    since: Instant,
}

impl<'d> NcclCommunicator<'d> {
    /// A part for each card, in their order.
    ///
    /// # Errors
    /// As [`Rank::of_devices`].
    pub fn of_devices(devices: &[&'d dyn Device]) -> Result<Vec<Self>, SolveError> {
        let ranks = Rank::of_devices(devices)?;
        let since = Instant::now();
        let all = ranks.into_iter().zip(devices).map(|(rank, device)| Self { device: *device, rank, since });
        let has_ended = |error: &_| matches!(error, SolveError::PartEnded { .. });
        in_parts(all, Self::connected, Self::connected, has_ended)
    }

    /// The part of a card of this process, as [`Rank::of_process`].
    ///
    /// # Errors
    /// As [`Rank::of_process`].
    pub fn of_process(
        device: &'d dyn Device,
        id: UniqueId,
        rank: usize,
        size: usize,
    ) -> Result<Self, SolveError> {
        let rank = Rank::of_process(device, id, rank, size)?;
        Self::connected(Self { device, rank, since: Instant::now() })
    }

    /// The same, connected with all other cards: NCCL does so when numbers are first exchanged,
    /// which takes 25 ms on two cards and 50 to 60 on four (H200, 2026-11-29).
    fn connected(self) -> Result<Self, SolveError> {
        let (rank, size) = (self.rank(), self.size());
        let numbers = self.device.allocate(16 * size as u64)?;
        self.device.fill(&numbers, 0)?;
        let of = |first: usize| {
            let others = (0..size).filter(|peer| *peer != rank);
            others.map(|peer| (peer, first + peer..first + peer + 1)).collect::<Vec<_>>()
        };
        self.rank.start_exchange(&pieces(&numbers, &of(0)), &pieces(&numbers, &of(size)))?;
        self.rank.finish_exchange()?;
        self.rank.sum(&[(&numbers, rank)])?;
        self.rank.wait()?;
        Ok(self)
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

    fn perform(&self, queue: &Queue<'_>) -> Result<(), SolveError> {
        perform(self, queue)
    }

    fn begin<'r>(&self, repeatable: &'r Repeatable<'_>) -> Result<Option<Begun<'r>>, SolveError> {
        let Repeatable { queue, turns, .. } = repeatable;
        match turns.take() {
            Turns::None => {
                self.perform(queue)?;
                turns.set(if queue.is_recordable() { Turns::One } else { Turns::None });
            }
            Turns::One => {
                let graph = self.rank.record(|| self.perform(queue))?;
                self.rank.replay(&graph)?;
                turns.set(Turns::Recorded(graph));
            }
            Turns::Recorded(graph) => {
                self.rank.replay(&graph)?;
                turns.set(Turns::Recorded(graph));
            }
        }
        Ok(None)
    }

    fn wait(&self) -> Result<(), SolveError> {
        Ok(self.rank.wait()?)
    }

    fn seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    fn abandon(&self) {
        self.rank.abandon();
    }
}

impl Parts for NcclCommunicator<'_> {
    fn run(&self, calls: &[&Call<'_>]) -> Result<(), SolveError> {
        for call in calls {
            let launch = call.launch();
            self.device.launch_on(launch.executable, launch.args, Some(self.rank.stream()))?;
        }
        Ok(())
    }

    fn start(&self, wire: &Wire) -> Result<(), SolveError> {
        let (sends, receives) = (pieces(&wire.packed, &wire.sends), pieces(&wire.ghosts, &wire.receives));
        Ok(self.rank.start_exchange(&sends, &receives)?)
    }

    fn finish(&self, _: &Wire) -> Result<(), SolveError> {
        Ok(self.rank.finish_exchange()?)
    }

    fn sum(&self, numbers: &[(&Buffer, usize)]) -> Result<(), SolveError> {
        if self.size() == 1 {
            return Ok(());
        }
        Ok(self.rank.sum(numbers)?)
    }
}
