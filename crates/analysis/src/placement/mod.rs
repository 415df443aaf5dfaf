//! Where instances run: work-groups, work-items, and what must be synchronised.
//!
//! An instance's work-group and work-item along an axis are the values of its inames with that tag,
//! counted from the loop's lower bound. Along an axis the launch has but the instruction is not in,
//! an instruction that writes only private variables runs everywhere; one that writes a local
//! variable runs in every group, on work-item 0; any other runs at index 0.
//!
//! For each dependence whose ends run in different places (Kulkarni & Klöckner 2025, §4.2.3, and
//! the project's own rules):
//!
//! | through | different groups | same group, different work-items |
//! |---|---|---|
//! | private | a flow is refused, reuse does not matter | likewise |
//! | local | a flow is refused, reuse does not matter | a barrier |
//! | sub-group | as local | as local, and between sub-groups a flow is refused |
//! | global | commuting updates, which must be atomic | atomic updates, or a barrier |
//!
//! In kernels with ordered groups a global value may flow to a later group along `g.0`, which then
//! waits for it: see `awaited`.
//!
//! Between launches everything in global memory is ordered, and nothing else lives on: a flow
//! through the other spaces is refused, reuse does not matter. What is said here holds within one
//! launch; only the axes of its own loops count.
//!
//! A scalar in the bounds of a loop is read wherever the loop runs, before everything inside.
//!
//! A sub-group's arrays are registers: every write goes to the element at the work-item's own index
//! along `l.0`, and the others read it by a shuffle, which orders what it reads like a barrier
//! would. A sub-group is as many neighbours along `l.0` as the kernel says (32 by default), or all
//! of them where they are fewer.
//!
//! A barrier orders two instances only if the source comes strictly first once the parallel loops
//! are left out of the loop tree.
//!
//! Where all pairs that a barrier orders are in one sub-group, it says so ([`Scope`]): work-items
//! of different sub-groups then need not wait for each other.
//!
//! What a call of [asynchronous](kingpost_ir::calls::Callee::is_asynchronous) code touches is done
//! only after a completion by the work-item that made the call. The pairs that need one are among
//! the barriers, those of a single work-item with the scope of it.
//!
//! Lanes of a vector run together: between them nothing may flow or clash, and no private value but
//! an array element of its own leaves a lane.

mod asynchronous;
mod awaited;
mod axes;
mod barriers;
mod carried;
mod check;
mod one_launch;
mod places;
mod refusal;
mod repeated;
mod reuse;
mod slices;
mod storage;
#[cfg(test)]
mod tests;

pub use crate::origin::index_origin;
pub use axes::{Axis, Coordinate, LaunchAxes, first_bounded_by};
pub(crate) use barriers::Carried;
pub use barriers::{Barrier, Placement, Scope};
pub(crate) use carried::{carried, open_vars};
pub use refusal::{PlacementError, Refusal, RefusalReason};
pub use slices::{lane_axis, sliced_axes};
pub use storage::StorageError;
