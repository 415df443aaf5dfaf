//! Strategies: ordinary functions that compose primitives.

mod single_cell;

pub use single_cell::{SingleCell, single_cell_per_work_item};
