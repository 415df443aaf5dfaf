//! What a part runs kernels with, and hears of the others through.

use super::Wire;
use crate::{Call, Item, Queue, SolveError};
#[cfg(feature = "cuda")]
use kingpost_runtime::cuda::nccl::RankGraph;
use kingpost_runtime::{Begun, Buffer, Device, Recorded, download_values};
use std::cell::Cell;

/// How the thread of a part runs kernels and exchanges numbers with the threads of the other parts. All
/// parts exchange and sum in the same order. A system on one device is that of one part, [`Alone`].
pub trait Communicator: Send {
    /// Which part it is.
    fn rank(&self) -> usize;

    /// How many parts there are.
    fn size(&self) -> usize;

    /// Does what a queue asks for after all before; it may not wait for the kernels. Sums next to
    /// each other are one message.
    ///
    /// # Errors
    /// As [`Device::launch`](kingpost_runtime::Device::launch); a part that ended.
    fn perform(&self, queue: &Queue<'_>) -> Result<(), SolveError>;

    /// A queue for [`Communicator::begin`].
    ///
    /// # Errors
    /// As [`Communicator::perform`].
    fn repeatable<'q>(&self, queue: &'q Queue<'q>) -> Result<Repeatable<'q>, SolveError> {
        Ok(Repeatable::of(queue))
    }

    /// Does what a queue asks for once more. What was begun and has not been [finished](Communicator::finish)
    /// runs concurrently with the host; none where that waits.
    ///
    /// # Errors
    /// As [`Communicator::perform`].
    fn begin<'r>(&self, repeatable: &'r Repeatable<'_>) -> Result<Option<Begun<'r>>, SolveError> {
        self.perform(repeatable.queue)?;
        Ok(None)
    }

    /// Waits for what was begun.
    ///
    /// # Errors
    /// A failing driver.
    fn finish(&self, begun: Begun<'_>) -> Result<(), SolveError> {
        begun.finish()?;
        Ok(())
    }

    /// Waits for all kernels.
    ///
    /// # Errors
    /// A failing driver.
    fn wait(&self) -> Result<(), SolveError>;

    /// Seconds since a moment of its own: by the clock of the device, which stands still between
    /// kernels, if there is one part, else by the wall clock.
    fn seconds(&self) -> f64;

    /// Lets the other parts know that no more numbers come, so that they do not wait for them.
    fn abandon(&self);
}

/// A queue that is performed often.
pub struct Repeatable<'q> {
    pub(super) queue: &'q Queue<'q>,
    /// Its kernels, where it has nothing else.
    recorded: Option<Recorded<'q>>,
    /// What a card among others made of it.
    #[cfg(feature = "cuda")]
    pub(super) turns: Cell<Turns>,
}

/// How often a card among others did a queue.
#[cfg(feature = "cuda")]
#[derive(Default)]
pub(super) enum Turns {
    #[default]
    None,
    /// Cards are connected.
    One,
    /// The driver has all of it: a launch a turn, where kernels and messages took one each.
    Recorded(RankGraph),
}

impl<'q> Repeatable<'q> {
    /// One of which nothing was recorded.
    fn of(queue: &'q Queue<'q>) -> Self {
        Self {
            queue,
            recorded: None,
            #[cfg(feature = "cuda")]
            turns: Cell::default(),
        }
    }
}

/// What communicators do with neighbouring entries of a queue.
pub(super) trait Parts {
    fn run(&self, calls: &[&Call<'_>]) -> Result<(), SolveError>;
    fn start(&self, wire: &Wire) -> Result<(), SolveError>;
    fn finish(&self, wire: &Wire) -> Result<(), SolveError>;
    fn sum(&self, numbers: &[(&Buffer, usize)]) -> Result<(), SolveError>;
}

/// Does what a queue asks for: kernels, and sums, as far as they are next to each other, at once.
pub(super) fn perform(parts: &dyn Parts, queue: &Queue<'_>) -> Result<(), SolveError> {
    let (mut calls, mut numbers): (Vec<&Call<'_>>, Vec<(&Buffer, usize)>) = Default::default();
    let mut items = queue.items().iter().peekable();
    while let Some(item) = items.next() {
        match item {
            Item::Call(call) => {
                calls.push(call);
                if !matches!(items.peek(), Some(Item::Call(_))) {
                    parts.run(&calls)?;
                    calls.clear();
                }
            }
            Item::Sum(vector, place) => {
                numbers.push((*vector, *place));
                if !matches!(items.peek(), Some(Item::Sum(..))) {
                    parts.sum(&numbers)?;
                    numbers.clear();
                }
            }
            Item::Start(wire) => parts.start(wire)?,
            Item::Finish(wire) => parts.finish(wire)?,
        }
    }
    Ok(())
}

/// A system of one part: a queue is one list of launches.
pub struct Alone<'d> {
    device: &'d dyn Device,
    seconds: Cell<f64>,
}

impl<'d> Alone<'d> {
    /// On a device.
    #[must_use]
    pub const fn new(device: &'d dyn Device) -> Self {
        Self { device, seconds: Cell::new(0.0) }
    }
}

impl Communicator for Alone<'_> {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn perform(&self, queue: &Queue<'_>) -> Result<(), SolveError> {
        self.seconds.set(self.seconds.get() + queue.run(self.device)?);
        Ok(())
    }

    fn repeatable<'q>(&self, queue: &'q Queue<'q>) -> Result<Repeatable<'q>, SolveError> {
        Ok(Repeatable { recorded: Some(queue.record(self.device)?), ..Repeatable::of(queue) })
    }

    fn begin<'r>(&self, repeatable: &'r Repeatable<'_>) -> Result<Option<Begun<'r>>, SolveError> {
        let Some(recorded) = &repeatable.recorded else {
            self.perform(repeatable.queue)?;
            return Ok(None);
        };
        let begun = self.device.begin(recorded)?;
        if begun.is_none() {
            self.seconds.set(self.seconds.get() + self.device.rerun(recorded)?);
        }
        Ok(begun)
    }

    fn finish(&self, begun: Begun<'_>) -> Result<(), SolveError> {
        self.seconds.set(self.seconds.get() + begun.finish()?);
        Ok(())
    }

    fn wait(&self) -> Result<(), SolveError> {
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.seconds.get()
    }

    fn abandon(&self) {}
}

/// The number of all parts to which kernels add; copies 8 bytes to the host.
pub(crate) fn number<'a>(
    communicator: &dyn Communicator,
    device: &dyn Device,
    sum: &'a Buffer,
    calls: impl FnOnce(&'a Buffer, &mut Queue<'a>),
) -> Result<f64, SolveError> {
    device.fill(sum, 0)?;
    let mut queue = Queue::new();
    calls(sum, &mut queue);
    queue.sum(sum, 0);
    communicator.perform(&queue)?;
    communicator.wait()?;
    let sum: Vec<f64> = download_values(device, sum)?;
    sum.first().copied().ok_or(SolveError::Length { what: "sum", found: 0, needed: 1 })
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
