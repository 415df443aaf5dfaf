//! What a kernel has to do, and how fast memory lets it: Świrydowicz et al. 2019, §5.

use crate::problem::{Problem, Sizes};
use kingpost::analysis::stats::{AccessKind, StatsError, statistics};
use kingpost::ir::{AddressSpace, Kernel};
use std::collections::BTreeMap;

/// Bytes that go each way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

impl Traffic {
    /// Both together.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.read + self.written
    }
}

/// Bytes of global memory that one element has to move: fields and factors, each once. The
/// matrices are shared by all elements and left out.
///
/// # Source
/// Świrydowicz et al. 2019, Table 2.
#[must_use]
pub fn traffic(sizes: Sizes) -> Traffic {
    let (nodes, points) = (cube(sizes.nodes()), cube(sizes.points()));
    let factors = match sizes.problem {
        Problem::Bp10 => points,
        Problem::Bp35 | Problem::Bp30 => 7 * points,
        Problem::Bp35Vertices => 24,
    };
    let word = sizes.precision.scalar().bytes();
    Traffic { read: word * (nodes + factors), written: word * nodes }
}

/// Floating-point operations of one element: two for each term of a contraction, and those at the
/// quadrature points.
///
/// A pass of interpolation or projection costs `2 (m n^3 + m^2 n^2 + m^3 n)`, six contractions with
/// the differentiation matrix `12 m^4`, the chain rule 15 a point, the mass term 3 a point.
///
/// # Source
/// Świrydowicz et al. 2019, Algorithms 1 to 5.
#[must_use]
pub fn operations(sizes: Sizes) -> u64 {
    let (n, m) = (sizes.nodes() as u64, sizes.points() as u64);
    let pass = 2 * (m * n.pow(3) + m.pow(2) * n.pow(2) + m.pow(3) * n);
    let stiffness = 12 * m.pow(4) + (15 + 3) * m.pow(3);
    match sizes.problem {
        Problem::Bp10 => 2 * pass + m.pow(3),
        Problem::Bp35 => stiffness,
        Problem::Bp30 => 2 * pass + stiffness,
        Problem::Bp35Vertices => 12 * m.pow(4) + 128 * m.pow(3) + 384,
    }
}

fn cube(n: usize) -> u64 {
    (n as u64).pow(3)
}

/// The streaming roofline, in FLOP/s: as many operations as fit in the time of a copy that moves
/// the same bytes, read and written together, at `bytes_per_s`.
///
/// # Source
/// Świrydowicz et al. 2019, equation (12).
#[must_use]
pub fn streaming_roofline(operations: u64, moved: Traffic, bytes_per_s: f64) -> f64 {
    bytes_per_s * operations as f64 / moved.total() as f64
}

/// The shared-memory roofline, in FLOP/s: `shared` are the bytes of local memory that a work-group
/// reads and writes for `operations`; infinite if there are none.
///
/// # Source
/// Świrydowicz et al. 2019, equation (13).
#[must_use]
pub fn shared_roofline(operations: u64, shared: Traffic, bytes_per_s: f64) -> f64 {
    bytes_per_s * operations as f64 / shared.total() as f64
}

/// Bytes a second of all local memories together: each multiprocessor serves 32 banks of 4 bytes a
/// cycle.
///
/// # Source
/// Świrydowicz et al. 2019, §5; the banks from the CUDA C++ Programming Guide.
#[must_use]
pub fn shared_bandwidth(multiprocessors: u32, clock_hz: f64) -> f64 {
    f64::from(multiprocessors) * 32.0 * 4.0 * clock_hz
}

/// Bytes of local memory that the work-items of a group read and write for an element, as the
/// kernel is written.
///
/// # Errors
/// As [`statistics`].
pub fn shared_traffic(kernel: &Kernel) -> Result<Traffic, StatsError> {
    let stats = statistics(kernel, &BTreeMap::from([("ne".to_owned(), 1)]))?;
    let bytes = |kind| stats.bytes(AddressSpace::Local, kind);
    Ok(Traffic { read: bytes(AccessKind::Read), written: bytes(AccessKind::Write) })
}
