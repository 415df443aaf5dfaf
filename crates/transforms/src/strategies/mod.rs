//! Strategies: ordinary functions that compose primitives.

mod multi_level_tiling;
mod single_cell;
mod staged_cells;
mod stages;
mod staging;

pub use multi_level_tiling::{MAX_KEPT, MultiLevelTiling, TilingError, multi_level_tiling};
pub use single_cell::{SingleCell, single_cell_per_work_item};
pub use staged_cells::{StagedCells, staged_cells};
pub use stages::{Field, NotAnAction, Stages};
