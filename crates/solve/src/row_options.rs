//! How rows that are owned are assembled.

use kingpost_forms::form::FormError;
use kingpost_forms::lowering::{
    LoweringOptions, MatrixResult, MeshForm, NumberedMesh, OwnerCells, RowOwners,
};
use std::fmt;
use std::str::FromStr;

/// How rows that are owned are assembled: `turned`, or `strips:packed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowOptions {
    /// How cells come to the owners of rows.
    pub cells: OwnerCells,
    /// Whether the rows of a group lie together, as in [`RowOwners::packed`].
    pub packed: bool,
}

const PACKED: &str = "packed";

impl RowOptions {
    /// The fastest of what a form on a mesh takes and the device finds lists for, as measured for
    /// scalars on an H200 (`results/h200/trotter_2023.md`): cells turned, and rows packed at degree
    /// 1; cells as they are where these are not turned, or of several components.
    ///
    /// # Errors
    /// A form that is not lowered for another reason than that its cells are not turned.
    pub fn of(form: &MeshForm, on: &NumberedMesh<'_>) -> Result<Self, FormError> {
        let turned = || -> Result<bool, FormError> {
            let turned = MatrixResult::OwnedRows(RowOwners::new(OwnerCells::Turned, 1));
            let options = LoweringOptions::new("turned").with_matrix(turned);
            MeshForm::new(form.form(), &options.with_geometry_degree(on.mesh().geometry_degree()))?;
            form.owners(on)?;
            Ok(form.turns()?.dims.iter().all(|dim| *dim == 0))
        };
        match (form.components(), turned()) {
            (Some([1, 1]), Ok(packed)) => Ok(Self { cells: OwnerCells::Turned, packed }),
            (_, Ok(_) | Err(FormError::Discretisation(_))) => {
                Ok(Self { cells: OwnerCells::Mapped, packed: false })
            }
            (_, Err(e)) => Err(e),
        }
    }
}

impl fmt::Display for RowOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cells)?;
        if self.packed { write!(f, ":{PACKED}") } else { Ok(()) }
    }
}

impl FromStr for RowOptions {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (cells, packed) = match text.split_once(':') {
            Some((cells, PACKED)) => (cells, true),
            _ => (text, false),
        };
        let found = OwnerCells::ALL.into_iter().find(|of| of.to_string() == cells);
        let needed = "owned-rows, or owned-rows:mapped, owned-rows:turned or owned-rows:strips, and :packed";
        found.map(|cells| Self { cells, packed }).ok_or(needed)
    }
}
