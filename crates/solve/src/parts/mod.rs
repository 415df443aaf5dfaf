//! Systems whose unknowns are divided among devices: domain decomposition.
//!
//! Each [part](Partition) owns unknowns, and has the rows of the matrix that are theirs: the entries in
//! its own columns apart from those in columns of other parts, whose numbers are its *ghosts*. A product
//! sends what others need, multiplies by its own columns meanwhile, and adds the ghosts after that. Each
//! part is run by a thread of its own, and hears of the others through a [`Communicator`]. Solvers know no
//! other systems: that of one part is [`Alone`].
//!
//! # Source
//! Saad 2003, §11.5.6: distributed sparse products. The division is that of Berger & Bokhari 1987.

mod coarse;
mod communicator;
mod costs;
mod exchange;
mod form;
mod halo;
mod host;
mod layout;
mod matrix;
#[cfg(feature = "cuda")]
mod nccl;
mod partition;
mod shared;
mod threads;
mod wire;

pub use coarse::{CoarseLevel, TwoLevels};
pub use communicator::{Alone, Communicator, Repeatable};
pub(crate) use communicator::{Guard, number};
pub use costs::ExchangeCosts;
pub use exchange::{Exchange, UnknownExchange};
pub use form::{PartForm, PartFormOperator};
pub use halo::Halo;
pub use host::{HostCommunicator, Messages};
pub use layout::{PartLayout, PartMesh, layouts};
pub(crate) use matrix::own_pattern;
pub use matrix::{PartMatrix, PartRows, SystemMatrix};
#[cfg(feature = "cuda")]
pub use nccl::NcclCommunicator;
pub use partition::Partition;
pub use shared::SharedPart;
pub use threads::in_parts;
pub use wire::Wire;
