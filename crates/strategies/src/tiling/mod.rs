//! The parametric multi-level tiling of Kulkarni & Klöckner 2025 in numbers: what it does with a
//! problem's sizes.
//!
//! ```
//! use kingpost_strategies::tiling::{SpaceSizes, Tiling, TilingParameters, TilingSizes};
//!
//! // Laplace on tetrahedra, P4, 24 quadrature points; the parameters of Kulkarni & Klöckner 2025, Table 7.
//! let sizes = TilingSizes {
//!     quadrature_points: 24,
//!     trial: vec![SpaceSizes::scalar("u", 35, 3)],
//!     test: SpaceSizes::scalar("y", 35, 3),
//!     word_bytes: 8,
//! };
//! let parameters = TilingParameters {
//!     cells: 64,
//!     work_items_per_cell: 4,
//!     quad_tile: 24,
//!     eval_rows: 24,
//!     eval_cols: vec![7],
//!     quad_rows: 35,
//!     quad_cols: 5,
//! };
//! let tiling = Tiling::new(&sizes, &parameters)?;
//! assert_eq!(tiling.local_words(), 3 * 35 * 5 + 64 * 24 * 3);
//! assert_eq!(tiling.barriers(), 2 * 5 + 2 * 5 + 2);
//! # Ok::<(), kingpost_strategies::tiling::TilingError>(())
//! ```

mod of_program;
mod parameters;
mod quantities;
mod sizes;

pub use of_program::{staged_tiling_sizes, tiling_sizes};
pub use parameters::{MAX_WORK_GROUP, TilingError, TilingParameters};
pub use quantities::Tiling;
pub use sizes::{SpaceSizes, TilingSizes};
