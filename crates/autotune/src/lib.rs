//! Device models, rooflines, the tuner and its database, for kernels and mappings of any kind.
//!
//! ```
//! use kingpost_autotune::{DeviceModel, Work, known_devices};
//!
//! let models = known_devices()?;
//! let card = models.iter().find(|m| m.name == "H200 NVL").ok_or("no such model")?;
//! // 1,000 cells of 2-D P2 elasticity (Kulkarni & Klöckner 2025): 440 FLOP a cell, 140.2 bytes of
//! // memory, 576 bytes of tables.
//! let work = Work { flops: 440_000, dram_bytes: 140_219, table_bytes: 576_000 };
//! assert_eq!((work.true_roofline(card) / 1e9).round(), 15062.0);
//! assert_eq!(work.table_roofline(card), work.true_roofline(card));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// a new variant must not fall into an old arm unseen
#![cfg_attr(not(test), warn(clippy::wildcard_enum_match_arm))]

pub mod auto;
mod database;
mod device_model;
#[cfg(feature = "plots")]
mod figures;
mod jit;
#[cfg(feature = "plots")]
mod lettering;
mod mapping;
#[cfg(feature = "plots")]
mod plot;
mod record;
mod roofline;
pub mod tuner;
pub mod tuning;
mod work;

pub use database::{Contents, Damaged, Database, DatabaseError};
pub use device_model::{DeviceModelError, known_devices};
#[cfg(feature = "plots")]
pub use figures::{COLOURS, bars_svg, share_svg};
pub use jit::{Compiled, Jit, JitError, jit, jit_with};
pub use kingpost_runtime::{DeviceModel, Occupancy};
pub use mapping::Mapping;
#[cfg(feature = "plots")]
pub use plot::{FONT, PlotError, Point, roofline_svg};
pub use record::{
    Candidate, Errors, Key, Measurement, Objective, Outcome, RECORD_VERSION, Record, Refusal, Setup, Stage,
    Workload, best_of_each,
};
pub use roofline::{Limit, Share, Shares, Work};
pub use work::kernel_work;
