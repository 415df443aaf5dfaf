//! The sides of an interior facet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A side of an interior facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Side {
    /// The first cell.
    #[serde(rename = "+")]
    Plus,
    /// The second cell.
    #[serde(rename = "-")]
    Minus,
}
