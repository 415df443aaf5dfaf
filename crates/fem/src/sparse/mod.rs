//! Sparse matrices of bilinear forms: their patterns, and where the entries of each entity stand.

mod colours;
mod error;
mod owned;
mod pattern;
mod sorted;
mod strips;
mod terms;
mod upper;

pub use colours::map_colours;
pub use error::PatternError;
pub use owned::{OwnedRows, SLICE, Slices, SlotPacking, longest_row};
pub use pattern::{BlockPattern, CsrPart, CsrPattern, EntryOrder};
pub use strips::Strips;
pub use terms::{EntryTerms, RowTerms};
