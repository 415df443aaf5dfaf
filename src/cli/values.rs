//! Values that the command line gives: parameters, meshes.

use super::failure::Failure;
use purlin::check_memory;
use purlin::forms::mesh::Mesh;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr;

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
    /// The values by name; the last of several counts.
    pub fn collect(args: &[Self]) -> BTreeMap<String, i64> {
        args.iter().map(|a| (a.name.clone(), a.value)).collect()
    }
}

/// The unit square or cube with `n` divisions a side.
pub fn unit_mesh(dim: usize, n: usize) -> Result<Mesh, Failure> {
    Mesh::check_divisions(dim, n).map_err(|error| Failure::Usage(error.to_string()))?;
    let n = n as u64;
    // coordinates in f64, vertices of triangles or tetrahedra in u32
    let bytes =
        if dim == 2 { 16 * (n + 1).pow(2) + 24 * n.pow(2) } else { 24 * (n + 1).pow(3) + 96 * n.pow(3) };
    check_memory("the mesh", bytes, "use fewer cells")?;
    let n = n as usize;
    let mesh = if dim == 2 { Mesh::unit_square(n) } else { Mesh::unit_cube(n) };
    mesh.map_err(|error| Failure::Usage(error.to_string()))
}

/// The mesh in a Gmsh file, its cells in a local order.
pub fn read_mesh(path: &Path) -> Result<Mesh, Failure> {
    let refused = |error: String| Failure::Usage(format!("mesh `{}`: {error}", path.display()));
    let mesh = Mesh::read_gmsh(path).map_err(|error| refused(error.to_string()))?;
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
