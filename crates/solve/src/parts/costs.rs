//! What exchanges between devices cost.

use super::{Communicator, Wire, in_parts};
use crate::texts::{compiled, text};
use crate::{Call, Exchange, Queue, SolveError};
use kingpost_runtime::{Device, buffer_of};
use std::time::Instant;

/// Numbers that a part sends to each other one where bandwidth is measured: 1 MiB.
const MANY: usize = 1 << 17;
/// Exchanges of a queue, and how often it is performed.
const AT_ONCE: usize = 8;
const TURNS: usize = 4;

/// What exchanges between devices cost, in seconds by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeCosts {
    /// Of a kernel that does nothing, for comparison.
    pub launch_s: f64,
    /// Of a sum of one number of each part.
    pub sum_s: f64,
    /// Of an exchange of one number with each other part.
    pub latency_s: f64,
    /// Of each further byte that a part sends.
    pub byte_s: f64,
}

impl ExchangeCosts {
    /// Measures them, with a kernel between two exchanges. Of one device there are none.
    ///
    /// # Errors
    /// As [`Exchange::communicators`]; no memory, a failing driver.
    pub fn measure(devices: &[&dyn Device], exchange: Exchange) -> Result<Self, SolveError> {
        if devices.len() < 2 {
            return Ok(Self { launch_s: 0.0, sum_s: 0.0, latency_s: 0.0, byte_s: 0.0 });
        }
        let communicators = exchange.communicators(devices)?;
        let of_part = |(device, communicator): (&&dyn Device, Box<dyn Communicator + '_>)| {
            let found = times(*device, &*communicator);
            if found.is_err() {
                communicator.abandon();
            }
            found
        };
        let has_ended = |error: &_| matches!(error, SolveError::PartEnded { .. });
        let found = in_parts(devices.iter().zip(communicators), of_part, of_part, has_ended)?;
        let longest = |k: usize| found.iter().fold(0.0_f64, |most, times| most.max(times[k]));
        let (kernel, latency) = (longest(0), longest(2));
        let more = 8.0 * ((MANY - 1) * (devices.len() - 1)) as f64;
        Ok(Self {
            launch_s: kernel,
            sum_s: (longest(1) - kernel).max(0.0),
            latency_s: (latency - kernel).max(0.0),
            byte_s: ((longest(3) - latency) / more).max(0.0),
        })
    }
}

/// Seconds of a kernel, and of one with a sum, with an exchange of one number, and of many.
fn times(device: &dyn Device, communicator: &dyn Communicator) -> Result<[f64; 4], SolveError> {
    let others = || (0..communicator.size()).filter(|peer| *peer != communicator.rank());
    let wire = |n: usize| {
        let pieces: Vec<_> = others().enumerate().map(|(k, peer)| (peer, k * n..(k + 1) * n)).collect();
        Wire::new(device, pieces.clone(), pieces)
    };
    let (one, many) = (wire(1)?, wire(MANY)?);
    let (number, clear) = (buffer_of(device, &[0.0])?, compiled(device, text!("clear"))?);
    let mut found = [0.0; 4];
    for (k, seconds) in found.iter_mut().enumerate() {
        let mut queue = Queue::new();
        for _ in 0..AT_ONCE {
            queue.push(Call::of(&clear, &[("n", 1)], &[("v", &number)]));
            match k {
                0 => {}
                1 => queue.sum(&number, 0),
                _ => {
                    let wire = if k == 2 { &one } else { &many };
                    queue.start(wire);
                    queue.finish(wire);
                }
            }
        }
        let repeatable = communicator.repeatable(&queue)?;
        // cards record in the second turn
        for turn in 0..2 + TURNS {
            let start = Instant::now();
            match communicator.begin(&repeatable)? {
                Some(begun) => communicator.finish(begun)?,
                None => communicator.wait()?,
            }
            let taken = start.elapsed().as_secs_f64() / AT_ONCE as f64;
            if turn >= 2 {
                *seconds = if turn == 2 { taken } else { f64::min(*seconds, taken) };
            }
        }
    }
    Ok(found)
}
