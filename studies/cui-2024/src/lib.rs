//! The study of Cui et al. 2024: throughput of a smoothing step, by structure.
//!
//! The library does not depend on it; its commands are those of the binary of this crate.

pub mod bars;
pub mod breakdown;
pub mod data;
pub mod deformed;
pub mod measure;
pub mod page;
pub mod picture;
pub mod published;
pub mod resources;
pub mod scale;
pub mod smoother;
pub mod solve;

use crate::smoother::{Structure, Variant};
use kingpost_multigrid::{Dimension, Element, Precision};
use serde::{Deserialize, Serialize};

/// The time of a smoothing step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Dimension and degree.
    pub element: Element,
    /// Cells a side.
    pub cells: usize,
    /// Nodes of the mesh, those at the boundary among them.
    pub nodes: usize,
    /// The kernels of the smoother.
    #[serde(default)]
    pub variant: Variant,
    /// Their structure.
    pub structure: Structure,
    /// Their numbers.
    #[serde(default)]
    pub precision: Precision,
    /// The device, as it calls itself.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// Its highest clock, in MHz.
    pub clock_mhz: u32,
    /// BLAKE3 hash of the smoother's source.
    pub source: String,
    /// Registers, spills and local memory, where the compiler tells.
    pub resources: Option<String>,
    /// Median of the steps, all colours, in seconds.
    pub median_s: f64,
    /// Shortest.
    pub min_s: f64,
    /// Longest.
    pub max_s: f64,
    /// Steps that count.
    pub runs: usize,
    /// Largest difference from a step in C on four cells a side, in units of its largest value.
    pub error: f64,
    /// Floating-point operations of a step.
    pub flops: f64,
}

impl Record {
    /// Billions of nodes a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.nodes as f64 / self.median_s * 1e-9
    }
}

/// Operations of a patch as the kernels are written: contractions with dense matrices, a
/// multiplication and an addition an entry.
///
/// # Source
/// Counted from `crates/multigrid/kernels/smooth_2d.kingpost` and `smooth_3d.kingpost`; a test compares it
/// with the statistics of the kernels.
#[must_use]
pub fn flops_of_patch(element: Element) -> f64 {
    let (p, q) = ((2 * element.degree + 1) as f64, (2 * element.degree - 1) as f64);
    match element.dimension {
        Dimension::Two => {
            // two products, each M and A; scaled and subtracted, divided, added
            let residual = 2.0 * 2.0 * p * p * q + q * q * (4.0 * p + 2.0);
            residual + 4.0 * 2.0 * q.powi(3) + q * q * 4.0
        }
        Dimension::Three => {
            let along0 = 2.0 * 2.0 * p * p * p * q;
            let along1 = p * q * q * (2.0 * p + 4.0 * p);
            let along2 = q.powi(3) * (4.0 * p + 2.0);
            along0 + along1 + along2 + 6.0 * 2.0 * q.powi(4) + q.powi(3) * 5.0
        }
    }
}

/// Operations that matrix instructions execute of a patch in three dimensions: thirteen contractions
/// of lines that are filled up to tiles of eight nodes.
#[must_use]
pub fn flops_of_instructions(element: Element) -> f64 {
    13.0 * 2.0 * ((2 * element.degree + 1).next_multiple_of(8) as f64).powi(4)
}
