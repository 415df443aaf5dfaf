//! Tabulated forms: a form as tables of basis functions and a graph of scalar operations.
//!
//! After derivatives are carried out and pulled back to the reference cell, a form holds reference
//! values and derivatives of functions (the position is one of them), constants, quadrature
//! weights and scalar operations. A [`TabulatedForm`] writes that down as plain data, and names no
//! element family. It is what [`lowering`](crate::lowering) takes: the form language of this crate
//! and [`import`](crate::import) both produce it.
//!
//! Indices start at 0; a node's operands have smaller numbers than the node.

mod directions;
mod error;
mod node;
mod orbits;
mod product;
mod schema;
mod validate;
mod values;

pub use crate::side::Side;
pub use error::TabulatedError;
pub use node::{Arithmetic, Bessel, Function as MathFunction, Node, Relation};
pub use schema::json_schema;
pub use values::Values;

use kingpost_fem::element::CellShape;
use kingpost_ir::ScalarType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format that this crate reads and writes.
pub const VERSION: u32 = 1;

/// A form after its derivatives were carried out and pulled back to the reference cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TabulatedForm {
    /// Version of the format: [`VERSION`]. The alias is of exporters before 0.3.
    #[serde(alias = "purlin_form")]
    pub kingpost_form: u32,
    /// Name of the kernel.
    pub name: String,
    /// The reference cell.
    pub cell: CellShape,
    /// Dimension of space, at least that of the cell.
    pub gdim: usize,
    /// Number of arguments: 0 for a functional, 1 for a linear form, 2 for a bilinear form.
    pub rank: usize,
    /// Type of coefficients, constants and results.
    #[serde(default)]
    pub scalar: Precision,
    /// The numberings of degrees of freedom.
    pub spaces: Vec<Space>,
    /// The arrays that are read.
    pub functions: Vec<Function>,
    /// The numbers that are read.
    pub constants: Vec<Constant>,
    /// The results, one a residual.
    pub outputs: Vec<Output>,
    /// The integrals.
    pub integrals: Vec<Integral>,
}

/// Type of the numbers of a form. Positions, tables and weights have that of the parts of complex ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    F32,
    /// Double precision.
    #[default]
    F64,
    /// Complex numbers in single precision.
    C64,
    /// Complex numbers in double precision.
    C128,
}

impl Precision {
    /// The type of coefficients, constants and results.
    #[must_use]
    pub const fn ty(self) -> ScalarType {
        match self {
            Self::F32 => ScalarType::F32,
            Self::F64 => ScalarType::F64,
            Self::C64 => ScalarType::C64,
            Self::C128 => ScalarType::C128,
        }
    }
}

/// A numbering: an `i32` map `[n_cells, columns]` into arrays `[n, block]` (`[n]` if `block` is 1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// Its name; the map is `<name>_dofs` and the number of its entries `n_<name>`.
    pub name: String,
    /// Local degrees of freedom of a cell.
    pub columns: usize,
    /// Components of each degree of freedom.
    pub block: usize,
    /// The element, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Reference points, by column, of degrees of freedom that are point evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<Vec<f64>>>,
    /// What the degrees of freedom of a cell are multiplied by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<Transform>,
    /// Name of the map, instead of `<name>_dofs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub map: Option<String>,
    /// Name of the number of entries, instead of `n_<name>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<String>,
}

/// A transformation of the degrees of freedom of an entity of the cell by its orientation there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transform {
    /// Dimension of the entity and its number in the reference cell.
    pub entity: [usize; 2],
    /// The local degrees of freedom.
    pub dofs: Vec<usize>,
    /// A square matrix for each orientation.
    pub matrices: Values,
}

/// A function whose degrees of freedom are an array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Its name, which is that of the argument.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Place of its space.
    pub space: usize,
    /// Name of the argument, instead of that of the function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument: Option<String>,
}

/// What a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The position; at most one function is.
    Coordinates,
    /// Given by the user.
    Coefficient,
}

/// A constant of any shape; its components are numbered row-major.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its extents; none of a scalar.
    pub shape: Vec<usize>,
}

impl Constant {
    /// Number of components.
    #[must_use]
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Name of a component in the kernel.
    #[must_use]
    pub fn component_name(&self, component: usize) -> String {
        if self.shape.is_empty() { self.name.clone() } else { format!("{}_{component}", self.name) }
    }
}

/// A result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Its name, which is that of the argument.
    pub name: String,
    /// Places of the spaces of its arguments, the test function first.
    pub spaces: Vec<usize>,
}

/// Over which entities an integral is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IntegralType {
    /// Cells.
    Cell,
    /// Facets of one cell.
    ExteriorFacet,
    /// Facets between two cells.
    InteriorFacet,
}

impl IntegralType {
    /// Dimension of the points of a rule over the entities of a cell.
    #[must_use]
    pub const fn point_dim(self, cell: CellShape) -> usize {
        match self {
            Self::Cell => cell.dim(),
            Self::ExteriorFacet | Self::InteriorFacet => cell.dim() - 1,
        }
    }
}

/// An integral with its quadrature rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Integral {
    /// Over what.
    #[serde(rename = "type")]
    pub over: IntegralType,
    /// Ids of the parts of the mesh; none for all of it.
    #[serde(default)]
    pub subdomains: Vec<i64>,
    /// Degree of the rule, for people; -1 of a rule without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub degree: Option<i64>,
    /// Scheme of the rule, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    /// Points on the reference cell or the reference facet.
    #[serde(default)]
    pub points: Vec<Vec<f64>>,
    /// A weight for each point.
    pub weights: Vec<f64>,
    /// The tables, each once.
    pub tables: Vec<Table>,
    /// Functions at the points.
    pub evaluations: Vec<Evaluation>,
    /// Scalar operations, operands first.
    pub nodes: Vec<Node>,
    /// Names of some nodes in the kernel, by their number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<usize, String>,
    /// What is added to the results.
    pub terms: Vec<Term>,
}

/// A table: `[points, dofs]`, over facets `[facets, points, dofs]`, and with permutations
/// `[permutations, facets, points, dofs]`. One that is the same at all points has one row for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name in the kernel, as a hint.
    pub name: String,
    /// Number of orientations of a facet, if the table has an axis for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permutations: Option<usize>,
    /// Its entries.
    pub values: Values,
}

/// `sum over i of table[q, i] * local[offset + stride * i, component]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Place of the function.
    pub function: usize,
    /// Place of the table.
    pub table: usize,
    /// First column.
    #[serde(default)]
    pub offset: usize,
    /// Distance of columns.
    #[serde(default = "one")]
    pub stride: usize,
    /// Component of the degrees of freedom.
    #[serde(default)]
    pub component: usize,
    /// Its name in the kernel, as a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The cell, over interior facets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
}

/// `output[...] += sum over q of test[q, i] * trial[q, j] * factor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// Place of the output.
    pub output: usize,
    /// Place of the node.
    pub factor: usize,
    /// One for each argument of the form, the test function first.
    pub arguments: Vec<TermArgument>,
}

/// Basis functions of an argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TermArgument {
    /// Place of the table.
    pub table: usize,
    /// First column.
    #[serde(default)]
    pub offset: usize,
    /// Distance of columns.
    #[serde(default = "one")]
    pub stride: usize,
    /// Component of the degrees of freedom.
    #[serde(default)]
    pub component: usize,
    /// The cell, over interior facets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<Side>,
}

fn one() -> usize {
    1
}

impl TabulatedForm {
    /// The form in the JSON format.
    ///
    /// # Errors
    /// Numbers that JSON does not have.
    pub fn to_json(&self) -> Result<String, TabulatedError> {
        self.validate()?;
        serde_json::to_string(self).map_err(TabulatedError::of_json)
    }

    /// Reads the JSON format and [checks](Self::validate) what it says.
    ///
    /// # Errors
    /// [`TabulatedError::Json`] with line and column, or what [`Self::validate`] finds.
    pub fn from_json(text: &str) -> Result<Self, TabulatedError> {
        let form: Self = serde_json::from_str(text).map_err(TabulatedError::of_json)?;
        form.validate()?;
        Ok(form)
    }
}

impl Space {
    /// Name of the map.
    #[must_use]
    pub fn map_name(&self) -> String {
        self.map.clone().unwrap_or_else(|| format!("{}_dofs", self.name))
    }

    /// Name of the number of entries.
    #[must_use]
    pub fn count_name(&self) -> String {
        self.count.clone().unwrap_or_else(|| format!("n_{}", self.name))
    }

    /// Name of the states of its transforms.
    #[must_use]
    pub fn states_name(&self) -> String {
        format!("{}_states", self.name)
    }
}

impl Function {
    /// Name of its argument.
    #[must_use]
    pub fn argument_name(&self) -> &str {
        self.argument.as_deref().unwrap_or(&self.name)
    }
}

impl Table {
    /// Number of columns.
    #[must_use]
    pub fn dofs(&self) -> usize {
        self.values.shape().last().copied().unwrap_or(0)
    }

    /// Whether all rows are the same, of all points and facets.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let n = self.dofs();
        let rows = self.values.entries();
        n > 0 && rows.chunks_exact(n).all(|row| row == &rows[..n])
    }

    /// Its first row.
    #[must_use]
    pub fn first_row(&self) -> &[f64] {
        &self.values.entries()[..self.dofs()]
    }
}
