//! Device models, rooflines, the space of tilings and its cost model, the tuner and its database.
//!
//! ```
//! use purlin_autotune::{DeviceModel, Work, known_devices};
//!
//! let models = known_devices()?;
//! let card = models.iter().find(|m| m.name == "H200 NVL").ok_or("no such model")?;
//! // 2-D P2 elasticity of Kulkarni & Klöckner 2025: 440 FLOP and 140.2 bytes a cell, 576 bytes of local memory.
//! let work = Work { flops: 440.0, dram_bytes: 140.2189, local_bytes: Some(576.0) };
//! assert_eq!((card.true_roofline(&work) / 1e9).round(), 15062.0);
//! assert_eq!(card.table_roofline(&work), card.true_roofline(&work));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod database;
mod device_model;
mod figures;
mod plot;
mod ranking;
mod record;
mod roofline;
mod search;
mod tiling;
pub mod tuner;

pub use database::{Contents, Damaged, Database, DatabaseError};
pub use device_model::{DeviceModel, DeviceModelError, Occupancy, known_devices};
pub use figures::{bars_svg, share_svg};
pub use plot::{PlotError, Point, roofline_svg};
pub use ranking::rank_correlation;
pub use record::{
    Candidate, Errors, Key, Machine, Measurement, Outcome, Parameters, Record, Refusal, Stage, Workload,
    best_of_each,
};
pub use roofline::{Limit, Work};
pub use search::{
    CostModel, Cut, NoOccupancy, Ranked, SearchBounds, SearchSpace, Standing, Survey, staged_tilings,
    tile_options,
};
pub use tiling::{SpaceSizes, Tiling, TilingError, TilingParameters, TilingSizes};
