//! Reference cells of tabulated forms.

use kingpost_fem::element::CellShape;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// The reference cell of a form: one that elements and meshes of this library have, or one of which
/// tables are all that is needed, such as a prism whose elements another library tabulated.
///
/// # Source
/// The reference cells and numbering of basix (Scroggs et al. 2022).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FormCell {
    /// A cell of meshes.
    Shape(CellShape),
    /// The unit triangle times the unit interval: three quadrilaterals between two triangles.
    Prism,
    /// The unit square with an apex over the origin: a quadrilateral and four triangles.
    Pyramid,
}

impl FormCell {
    /// All cells.
    pub fn all() -> impl Iterator<Item = Self> {
        CellShape::ALL.into_iter().map(Self::Shape).chain([Self::Prism, Self::Pyramid])
    }

    /// The shape that elements and meshes know it by; none of cells that have none.
    #[must_use]
    pub const fn shape(self) -> Option<CellShape> {
        match self {
            Self::Shape(shape) => Some(shape),
            Self::Prism | Self::Pyramid => None,
        }
    }

    /// The dimension of the cell.
    #[must_use]
    pub const fn dim(self) -> usize {
        match self {
            Self::Shape(shape) => shape.dim(),
            Self::Prism | Self::Pyramid => 3,
        }
    }

    /// The number of vertices.
    #[must_use]
    pub const fn n_vertices(self) -> usize {
        match self {
            Self::Shape(shape) => shape.n_vertices(),
            Self::Prism => 6,
            Self::Pyramid => 5,
        }
    }

    /// The number of facets, of all kinds.
    #[must_use]
    pub const fn n_facets(self) -> usize {
        match self {
            Self::Shape(shape) => shape.facets().len(),
            Self::Prism | Self::Pyramid => 5,
        }
    }

    /// Whether the cell is a simplex, so that a first-order map of it is affine.
    #[must_use]
    pub const fn is_simplex(self) -> bool {
        match self {
            Self::Shape(shape) => shape.is_simplex(),
            Self::Prism | Self::Pyramid => false,
        }
    }

    /// The name used in messages and files, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shape(shape) => shape.name(),
            Self::Prism => "prism",
            Self::Pyramid => "pyramid",
        }
    }
}

impl fmt::Display for FormCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<CellShape> for FormCell {
    fn from(shape: CellShape) -> Self {
        Self::Shape(shape)
    }
}

impl From<FormCell> for String {
    fn from(cell: FormCell) -> Self {
        cell.name().to_owned()
    }
}

impl TryFrom<String> for FormCell {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::all().find(|cell| cell.name() == name).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|cell| format!("`{cell}`")).collect();
            format!("unknown cell `{name}`, expected one of {}", names.join(", "))
        })
    }
}

impl JsonSchema for FormCell {
    fn schema_name() -> Cow<'static, str> {
        "FormCell".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Self::all().map(Self::name).collect();
        json_schema!({ "type": "string", "description": "the reference cell", "enum": names })
    }
}
