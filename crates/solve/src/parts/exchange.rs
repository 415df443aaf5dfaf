//! How devices exchange numbers.

use crate::{Alone, Communicator, HostCommunicator, SolveError};
use kingpost_runtime::{Backend, Device};
#[cfg(not(feature = "cuda"))]
use kingpost_runtime::{RuntimeError, Unavailable};
use std::fmt;
use std::str::FromStr;

/// How the devices of a system exchange numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// From card to card by NCCL.
    Nccl,
    /// Through the memory of the host.
    Host,
}

/// A name that no exchange has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no exchange `{0}`; use nccl or host")]
pub struct UnknownExchange(String);

impl Exchange {
    /// What suits these devices: NCCL between different cards.
    #[must_use]
    pub fn between(devices: &[&dyn Device]) -> Self {
        let mut indices: Vec<usize> = devices.iter().map(|device| device.info().index).collect();
        indices.sort_unstable();
        indices.dedup();
        let are_cards = devices.iter().all(|device| device.info().backend == Backend::Cuda);
        match are_cards && indices.len() == devices.len() && devices.len() > 1 {
            true => Self::Nccl,
            false => Self::Host,
        }
    }

    /// The communicators of some devices, in their order; one has nobody to exchange with.
    ///
    /// # Errors
    /// For NCCL, as `NcclCommunicator::of_devices`; without the feature `cuda`, that it is left out.
    pub fn communicators<'d>(
        self,
        devices: &[&'d dyn Device],
    ) -> Result<Vec<Box<dyn Communicator + 'd>>, SolveError> {
        fn boxed<'d, C: Communicator + 'd>(all: Vec<C>) -> Vec<Box<dyn Communicator + 'd>> {
            all.into_iter().map(|one| Box::new(one) as Box<dyn Communicator + 'd>).collect()
        }
        Ok(match (self, devices) {
            (_, [device]) => boxed(vec![Alone::new(*device)]),
            #[cfg(feature = "cuda")]
            (Self::Nccl, _) => boxed(crate::NcclCommunicator::of_devices(devices)?),
            #[cfg(not(feature = "cuda"))]
            (Self::Nccl, _) => {
                return Err(RuntimeError::from(Unavailable::LeftOut { feature: "cuda" }).into());
            }
            (Self::Host, _) => boxed(HostCommunicator::of_devices(devices)),
        })
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nccl => "nccl",
            Self::Host => "host",
        })
    }
}

impl FromStr for Exchange {
    type Err = UnknownExchange;

    fn from_str(name: &str) -> Result<Self, UnknownExchange> {
        let found = [Self::Nccl, Self::Host].into_iter().find(|one| one.to_string() == name);
        found.ok_or_else(|| UnknownExchange(name.into()))
    }
}
