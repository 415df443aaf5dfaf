//! Exchange through the memory of the host, between any devices.

use super::communicator::{Parts, perform};
use super::{Communicator, Wire};
use crate::{Call, Queue, SolveError};
use kingpost_runtime::{Buffer, Device, Launch, download_values, upload_values};
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

/// How numbers come from one part to another: what is sent to a part arrives there in this order.
pub trait Messages: Send {
    /// Sends numbers to a part, which need not have asked for them yet.
    ///
    /// # Errors
    /// [`SolveError::PartEnded`], [`SolveError::Messages`].
    fn send(&self, peer: usize, numbers: Vec<f64>) -> Result<(), SolveError>;

    /// Waits for the next numbers of a part.
    ///
    /// # Errors
    /// As [`Messages::send`].
    fn receive(&self, peer: usize) -> Result<Vec<f64>, SolveError>;

    /// Lets the other parts know that no more numbers come.
    fn abandon(&self);
}

/// Between threads of a process.
struct Channels {
    /// To each part; empty once the part is given up.
    to: RefCell<Vec<Sender<Vec<f64>>>>,
    from: Vec<Receiver<Vec<f64>>>,
}

impl Messages for Channels {
    fn send(&self, peer: usize, numbers: Vec<f64>) -> Result<(), SolveError> {
        let ended = SolveError::PartEnded { part: peer };
        match self.to.borrow().get(peer) {
            Some(to) => to.send(numbers).map_err(|_| ended),
            None => Err(ended),
        }
    }

    fn receive(&self, peer: usize) -> Result<Vec<f64>, SolveError> {
        self.from[peer].recv().map_err(|_| SolveError::PartEnded { part: peer })
    }

    fn abandon(&self) {
        self.to.borrow_mut().clear();
    }
}

/// A part that exchanges through the memory of the host.
///
/// Numbers are copied from the device to the host, handed to the thread or process of the other
/// part, and copied to its device; kernels are waited for.
pub struct HostCommunicator<'d> {
    device: &'d dyn Device,
    rank: usize,
    size: usize,
    messages: Box<dyn Messages + 'd>,
    since: Instant,
}

impl<'d> HostCommunicator<'d> {
    /// A part for each device, in their order.
    #[must_use]
    pub fn of_devices(devices: &[&'d dyn Device]) -> Vec<Self> {
        let size = devices.len();
        let channels = || Channels { to: RefCell::default(), from: Vec::new() };
        let mut all: Vec<Channels> = (0..size).map(|_| channels()).collect();
        for from in 0..size {
            for to in 0..size {
                // each part receives from the others in their order, as it lists those it sends to
                let (sender, receiver) = channel();
                all[from].to.get_mut().push(sender);
                all[to].from.push(receiver);
            }
        }
        let part = |(rank, (messages, device)): (usize, (Channels, &&'d dyn Device))| {
            Self::new(*device, (rank, size), Box::new(messages))
        };
        all.into_iter().zip(devices).enumerate().map(part).collect()
    }

    /// One of `size` parts on a device, whose numbers come and go as `messages`: those of other
    /// processes.
    #[must_use]
    pub fn new(
        device: &'d dyn Device,
        (rank, size): (usize, usize),
        messages: Box<dyn Messages + 'd>,
    ) -> Self {
        Self { device, rank, size, messages, since: Instant::now() }
    }
}

impl Communicator for HostCommunicator<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn perform(&self, queue: &Queue<'_>) -> Result<(), SolveError> {
        perform(self, queue)
    }

    fn wait(&self) -> Result<(), SolveError> {
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.since.elapsed().as_secs_f64()
    }

    fn abandon(&self) {
        self.messages.abandon();
    }
}

impl Parts for HostCommunicator<'_> {
    fn run(&self, calls: &[&Call<'_>]) -> Result<(), SolveError> {
        let launches: Vec<Launch<'_>> = calls.iter().map(|call| call.launch()).collect();
        self.device.launch_all(&launches)?;
        Ok(())
    }

    fn start(&self, wire: &Wire) -> Result<(), SolveError> {
        let packed: Vec<f64> = download_values(self.device, &wire.packed)?;
        wire.sends
            .iter()
            .try_for_each(|(peer, range)| self.messages.send(*peer, packed[range.clone()].to_vec()))
    }

    fn finish(&self, wire: &Wire) -> Result<(), SolveError> {
        let mut ghosts: Vec<f64> = Vec::new();
        for (peer, range) in &wire.receives {
            let numbers = self.messages.receive(*peer)?;
            if numbers.len() != range.len() {
                let (found, needed) = (numbers.len(), range.len());
                return Err(SolveError::Length { what: "ghosts", found, needed });
            }
            ghosts.extend(numbers);
        }
        Ok(upload_values(self.device, &wire.ghosts, &ghosts)?)
    }

    fn sum(&self, numbers: &[(&Buffer, usize)]) -> Result<(), SolveError> {
        if self.size() == 1 {
            return Ok(());
        }
        let mut all: Vec<Vec<f64>> = Vec::new();
        for (vector, _) in numbers {
            all.push(download_values(self.device, vector)?);
        }
        let own: Vec<f64> = all.iter().zip(numbers).map(|(v, (_, place))| v[*place]).collect();
        for peer in (0..self.size()).filter(|peer| *peer != self.rank) {
            self.messages.send(peer, own.clone())?;
        }
        // in the order of the parts, so that all have the same sums
        let mut sums = vec![0.0; own.len()];
        for peer in 0..self.size() {
            let numbers = if peer == self.rank { own.clone() } else { self.messages.receive(peer)? };
            for (sum, number) in sums.iter_mut().zip(numbers) {
                *sum += number;
            }
        }
        for (((buffer, place), mut vector), sum) in numbers.iter().zip(all).zip(sums) {
            vector[*place] = sum;
            upload_values(self.device, buffer, &vector)?;
        }
        Ok(())
    }
}
