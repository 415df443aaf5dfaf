//! Kernels that were lowered from a form: found by the tags of lowering, and given a mesh.

use super::failure::Failure;
use super::values::evaluate;
use kingpost::forms::element::{CellShape, LagrangeElement};
use kingpost::forms::mesh::Mesh;
use kingpost::forms::numbering::{Numbering, NumberingOrder};
use kingpost::forms::program::stage;
use kingpost::interp::{Memory, Value};
use kingpost::ir::{Access, Atom, Direction, Expr, Insn, Kernel, VarId, VarKind};
use std::collections::BTreeMap;

/// The arrays of a lowered kernel that a mesh decides.
pub struct LoweredArrays {
    /// Dimension of the cells.
    pub dim: usize,
    coordinates: VarId,
    cell_vertices: VarId,
    /// Maps of degrees of freedom with their polynomial degrees and the arrays that they index.
    maps: Vec<(VarId, usize, Vec<VarId>)>,
}

impl LoweredArrays {
    /// The arrays of a kernel in which lowering's instructions still load the vertices of a cell through
    /// a map.
    pub fn of(kernel: &Kernel) -> Option<Self> {
        let loads_vertices = |insn: &&Insn| insn.tags.contains(stage::GATHER) && insn.tags.contains("of_x");
        let pairs = kernel.insns.values().filter(loads_vertices).flat_map(|insn| {
            let through = |access: &Access| Some((access.var, map_of(access)?));
            insn.reads().into_iter().filter_map(through).collect::<Vec<_>>()
        });
        // coordinates stand before the functions of a form, one of which may be called `x`
        let (coordinates, cell_vertices) = pairs.min()?;
        let dim = usize::try_from(last_extent(kernel, coordinates)?).ok().filter(|d| [2, 3].contains(d))?;
        if last_extent(kernel, cell_vertices)? != dim as i64 + 1 {
            return None;
        }
        let is_map = |v: &VarId| {
            let var = &kernel.vars[*v];
            var.kind == VarKind::Argument(Direction::In) && var.ty.is_exact() && var.shape.len() == 2
        };
        let mut maps = Vec::new();
        for map in kernel.vars.ids().filter(|v| is_map(v) && *v != cell_vertices) {
            if kernel.vars[map].shape[0] != kernel.vars[cell_vertices].shape[0] {
                return None;
            }
            maps.push((map, degree(dim, last_extent(kernel, map)?)?, indexed_by(kernel, map)));
        }
        Some(Self { dim, coordinates, cell_vertices, maps })
    }

    /// The arrays.
    pub fn arrays(&self) -> impl Iterator<Item = VarId> {
        [self.coordinates, self.cell_vertices].into_iter().chain(self.maps.iter().map(|(map, ..)| *map))
    }

    /// Cells of the mesh that the parameters are for; 0 if they have no value.
    pub fn cells(&self, kernel: &Kernel, params: &BTreeMap<String, i64>) -> u64 {
        let cells = evaluate(kernel, &kernel.vars[self.cell_vertices].shape[0], params);
        cells.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
    }

    /// Parameters that are extents of the arrays, with their values on a mesh.
    pub fn sizes(&self, kernel: &Kernel, mesh: &Mesh) -> Result<BTreeMap<String, i64>, Failure> {
        let mut sizes = BTreeMap::new();
        let mut set = |array: VarId, value: usize| {
            let extent = &kernel.vars[array].shape[0];
            if let ([(Atom::Var(param), 1)], 0) = (extent.terms(), extent.constant_term()) {
                sizes.insert(kernel.vars[*param].name.clone(), value as i64);
            }
        };
        set(self.coordinates, mesh.n_vertices());
        set(self.cell_vertices, mesh.n_cells());
        for (_, degree, arrays) in &self.maps {
            let n_dofs = numbering(mesh, *degree, NumberingOrder::OF_ACTIONS)?.n_dofs();
            arrays.iter().for_each(|array| set(*array, n_dofs));
        }
        Ok(sizes)
    }

    /// Puts the arrays of a mesh into the memory.
    pub fn fill(
        &self,
        kernel: &Kernel,
        mesh: &Mesh,
        order: NumberingOrder,
        params: &BTreeMap<String, i64>,
        memory: &mut Memory,
    ) -> Result<(), Failure> {
        let mut set = |array: VarId, value: Value| {
            let var = &kernel.vars[array];
            let extents = var.shape.iter().map(|e| evaluate(kernel, e, params));
            let needed = extents.collect::<Option<Vec<i64>>>().map(|all| all.iter().product::<i64>());
            if needed != i64::try_from(value.len()).ok() {
                return Err(Failure::Usage(format!(
                    "`{}` has {} entries on this mesh, and the kernel is for others; give another mesh",
                    var.name,
                    value.len()
                )));
            }
            memory.set(&var.name, value);
            Ok(())
        };
        set(self.coordinates, mesh.coordinates().to_vec().into())?;
        let vertices = mesh.cells().iter().map(|v| i32::try_from(*v)).collect::<Result<Vec<_>, _>>();
        let vertices = vertices.map_err(|e| Failure::Usage(format!("vertices of the mesh: {e}")))?;
        set(self.cell_vertices, vertices.into())?;
        for (map, degree, _) in &self.maps {
            set(*map, numbering(mesh, *degree, order)?.dofs().to_vec().into())?;
        }
        Ok(())
    }
}

/// The unit mesh whose sizes are those of the kernel with these parameters, if there is one.
pub fn unit_mesh_of(
    kernel: &Kernel,
    lowered: &LoweredArrays,
    params: &BTreeMap<String, i64>,
) -> Option<Mesh> {
    let cells = evaluate(kernel, &kernel.vars[lowered.cell_vertices].shape[0], params)?;
    let of = |n: i64| if lowered.dim == 2 { 2 * n * n } else { 6 * n * n * n };
    // 10^4 divisions are more cells than an interpreter can do
    let n = (1..10_000).take_while(|n| of(*n) <= cells).find(|n| of(*n) == cells)?;
    let n = usize::try_from(n).ok()?;
    let mesh = if lowered.dim == 2 { Mesh::unit_square(n) } else { Mesh::unit_cube(n) }.ok()?;
    let fits = |(name, value): (&String, &i64)| params.get(name) == Some(value);
    lowered.sizes(kernel, &mesh).ok()?.iter().all(fits).then_some(mesh)
}

fn numbering(mesh: &Mesh, degree: usize, order: NumberingOrder) -> Result<Numbering, Failure> {
    Numbering::new_in_order(mesh, degree, order).map_err(|e| Failure::Usage(e.to_string()))
}

/// The array through which the first index of an access goes.
fn map_of(access: &Access) -> Option<VarId> {
    match access.index.first()? {
        Expr::Load(map) => Some(map.var),
        Expr::Int(_)
        | Expr::Real(_)
        | Expr::Iname(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Call(..)
        | Expr::Cast(..)
        | Expr::Select(..)
        | Expr::Reduce(_)
        | Expr::Rule(..)
        | Expr::RuleParam(_) => None,
    }
}

/// The arguments that are indexed through a map.
fn indexed_by(kernel: &Kernel, map: VarId) -> Vec<VarId> {
    let mut arrays = Vec::new();
    for insn in kernel.insns.values() {
        let accesses = insn.reads().into_iter().chain([&insn.lhs]);
        arrays.extend(accesses.filter(|a| map_of(a) == Some(map)).map(|a| a.var));
    }
    arrays.sort_unstable();
    arrays.dedup();
    arrays
}

fn last_extent(kernel: &Kernel, array: VarId) -> Option<i64> {
    kernel.vars[array].shape.last()?.as_constant()
}

/// The degree of the Lagrange element with a given number of functions on a simplex.
fn degree(dim: usize, functions: i64) -> Option<usize> {
    let count = |p: i64| if dim == 2 { (p + 1) * (p + 2) / 2 } else { (p + 1) * (p + 2) * (p + 3) / 6 };
    let shape = if dim == 2 { CellShape::Triangle } else { CellShape::Tetrahedron };
    let max = LagrangeElement::max_degree(shape);
    (1..=max).find(|p| count(*p as i64) == functions)
}
