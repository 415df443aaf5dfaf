//! Strategies by name.

use purlin_ir::Kernel;
use purlin_transforms::strategies::{SingleCell, single_cell_per_work_item};
use purlin_transforms::{Recipe, RecipeError};
use std::fmt;
use std::str::FromStr;

/// How a kernel is mapped onto a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// As it is written: everything in order, on one work-item.
    None,
    /// One cell a work-item, 32 cells a work-group (Kulkarni & Klöckner 2025, section 4.1).
    SingleCell,
}

/// No strategy has the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no strategy `{0}`; there are `none`, `single-cell`")]
pub struct UnknownStrategy(String);

impl Strategy {
    /// Every strategy.
    pub const ALL: [Self; 2] = [Self::None, Self::SingleCell];

    /// Its name on the command line and in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SingleCell => "single-cell",
        }
    }

    /// Applies the strategy; returns the kernel and the recipe that made it.
    ///
    /// # Errors
    /// The step that was refused.
    pub fn apply(self, kernel: &Kernel) -> Result<(Kernel, Recipe), RecipeError> {
        match self {
            Self::None => Ok((kernel.clone(), Recipe::default())),
            Self::SingleCell => single_cell_per_work_item(kernel, &SingleCell::default()),
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| UnknownStrategy(name.into()))
    }
}
