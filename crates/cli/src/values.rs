//! Values that the command line gives: parameters, meshes.

use super::failure::Failure;
use clap::ValueEnum;
use kingpost::forms::element::CellShape;
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::NumberingOrder;
use kingpost::ir::text::suggestion;
use kingpost::ir::{Affine, Atom, Kernel, VarId, VarKind};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

/// The order in which degrees of freedom are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// As cells first touch them
    FirstTouch,
    /// First edges, then faces, cells, and vertices last
    ByDimension,
    /// As by dimension, one edge or face of each of 128 cells at a time
    ByEntity,
    /// As by entity, squares and cubes of unit meshes alike
    ByBlock,
}

/// The order that was asked for, else that of actions.
#[must_use]
pub fn order_of(asked: Option<Order>) -> NumberingOrder {
    match asked {
        None => NumberingOrder::OF_ACTIONS,
        Some(Order::FirstTouch) => NumberingOrder::FirstTouch,
        Some(Order::ByDimension) => NumberingOrder::ByDimension,
        Some(Order::ByEntity) => NumberingOrder::ByEntity,
        Some(Order::ByBlock) => NumberingOrder::ByBlock,
    }
}

/// `name=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamArg {
    name: String,
    value: i64,
}

impl FromStr for ParamArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once('=').ok_or("needed NAME=VALUE, such as n=1000")?;
        let value = value.trim().parse().map_err(|e| format!("`{value}` is no integer: {e}"))?;
        Ok(Self { name: name.trim().into(), value })
    }
}

impl std::fmt::Display for ParamArg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl ParamArg {
    /// Values that have names already.
    pub fn of(values: &BTreeMap<String, i64>) -> Vec<Self> {
        values.iter().map(|(name, value)| Self { name: name.clone(), value: *value }).collect()
    }

    /// The values by name.
    ///
    /// # Errors
    /// A name that has two.
    pub fn collect(args: &[Self]) -> Result<BTreeMap<String, i64>, Failure> {
        let mut values = BTreeMap::new();
        for Self { name, value } in args {
            if let Some(other) = values.insert(name.clone(), *value) {
                let message =
                    format!("--param {name}: given twice, as {other} and as {value}; leave one out");
                return Err(Failure::Usage(message));
            }
        }
        Ok(values)
    }

    /// The values by name, each of a parameter of the kernel, with those that steps have `fixed`.
    ///
    /// # Errors
    /// A name that has two values, or that no parameter has; another value than the fixed one.
    pub fn of_kernel(
        args: &[Self],
        fixed: &BTreeMap<String, i64>,
        kernel: &Kernel,
    ) -> Result<BTreeMap<String, i64>, Failure> {
        let mut params = Self::collect(args)?;
        let is_param = |v: &VarId| kernel.vars[*v].kind == VarKind::Param;
        let known: Vec<&str> = kernel.vars.ids().filter(is_param).map(|v| &*kernel.vars[v].name).collect();
        if let Some(name) = params.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(unknown(kernel, "parameter", name, &known));
        }
        // what the kernel does not have is refused by the step
        for (name, value) in fixed.iter().filter(|(name, _)| known.contains(&name.as_str())) {
            if let Some(given) = params.insert(name.clone(), *value).filter(|given| given != value) {
                let message =
                    format!("--param {name}={given}: the steps fix `{name}` to {value}; leave it out");
                return Err(Failure::Usage(message));
            }
        }
        let params = kernel.with_defined(&params).map(Cow::into_owned);
        params.map_err(|error| Failure::Usage(error.to_string()))
    }
}

/// A parameter without a value.
pub fn missing(name: &str) -> Failure {
    Failure::Usage(format!("parameter `{name}` has no value; give it one with --param {name}=1000"))
}

/// A name that stands for nothing.
pub fn unknown(kernel: &Kernel, what: &str, name: &str, known: &[&str]) -> Failure {
    let hint = suggestion(name, known.iter().copied()).map(|s| format!("{s} ")).unwrap_or_default();
    let list = match known.is_empty() {
        true => "none".to_owned(),
        false => known.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", "),
    };
    Failure::Usage(format!("`{}` has no {what} `{name}`; {hint}there is {list}", kernel.name))
}

/// The cells of a form in a given number of dimensions.
pub const fn simplex(dim: usize) -> CellShape {
    if dim == 2 { CellShape::Triangle } else { CellShape::Tetrahedron }
}

/// The unit square or cube with `n` divisions a side.
pub fn unit_mesh(dim: usize, n: usize) -> Result<Mesh, Failure> {
    Mesh::unit(simplex(dim), n).map_err(|error| Failure::Usage(error.to_string()))
}

/// The mesh in a Gmsh file, its cells in a local order.
pub fn read_mesh(path: &Path) -> Result<Mesh, Failure> {
    let refused = |error: String| Failure::Usage(format!("mesh `{}`: {error}", path.display()));
    let mesh = Mesh::read_gmsh(path).map_err(|error| refused(error.to_string()))?;
    if let Some(placement) = mesh.placement() {
        eprintln!("note: mesh `{}`: lies in {placement}", path.display());
    }
    Ok(mesh.reorder_for_locality())
}

/// The mesh in a Gmsh file, for a form of a dimension.
pub fn file_mesh(path: &Path, dim: usize) -> Result<Mesh, Failure> {
    let mesh = read_mesh(path)?;
    let found = mesh.shape().dim();
    if found != dim {
        let message =
            format!("mesh `{}`: its cells are {found}-dimensional; give `--dim {found}`", path.display());
        return Err(Failure::Usage(message));
    }
    Ok(mesh)
}

/// An affine expression of parameters.
pub fn evaluate(kernel: &Kernel, e: &Affine, params: &BTreeMap<String, i64>) -> Option<i64> {
    let fixed = e.substitute(&|atom: &Atom| match atom {
        Atom::Var(v) => params.get(&kernel.vars[*v].name).map(|value| Affine::constant(*value)),
        Atom::Iname(_) | Atom::Floor(..) => None,
    });
    fixed.as_constant()
}
