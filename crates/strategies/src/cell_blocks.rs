//! Cells of a block by one work-item: the triangles of a square, the tetrahedra of a cube.

use super::length;
use super::listed_cells::vertices;
use super::orbit_basis::orbit_basis;
use super::single_cell::make_atomic;
use super::staged_cells::straight_line;
use crate::strategy::{Arguments, CombinedOrbits, Needs, Stopped, Strategy, StrategyError, Work};
use kingpost_fem::element::CellShape;
use kingpost_fem::mesh::Mesh;
use kingpost_fem::numbering::Numbering;
use kingpost_forms::lowering::Orbits;
use kingpost_forms::program::CellProgram;
use kingpost_ir::{Affine, AxisTag, Direction, Expr, InameId, Kernel, VarId, VarKind};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::block_numbers::BlockPattern;
use kingpost_primitives::primitives::{
    Assume, CutIname, LaunchHint, PassBlocks, PassStarts, ReorderRows, ShareElements, SplitIname, Tail,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroUsize;

/// Maps a block of cells to each work-item, in straight-line code: the numbers of its degrees of freedom
/// and vertices are read once a block, and so are these; what its cells add to a degree of freedom is
/// summed in a register, and added to the result by one atomic update.
///
/// Blocks are alike: each repeats the numbers of its cells in one pattern, a table of the code. That is the
/// one of the cells of a square or a cube of a unit mesh
/// [numbered by block](kingpost_fem::numbering::NumberingOrder::ByBlock), or what `places` says. Cells are brought into the order of blocks for a mesh, and each block is
/// compared with the pattern there.
///
/// # Rewrite
/// ```text
/// for cell in 0..n_cells              =>  for block {g.0, l.0}
///   u_cell[i] = u[dofs[cell, i]]            u_items[k] = u[dofs_blocks[k, block]]
///   ...                                     for cell_of_block in 0..6
///   y[dofs[cell, i]] += y_cell[i]             u_cell[i] = u_items[dofs_places[cell_of_block, i]]
///                                             ...
///                                             y_items[dofs_places[cell_of_block, i]] += y_cell[i]
///                                           y[dofs_blocks[k, block]] += y_items[k]
/// ```
///
/// # Errors
/// A group of no or more than 1024 work-items, functionals, a kernel that reads no vertices, no places
/// for the columns of a map; with orbits, an integrand without modes. Setup refuses a mesh without such
/// blocks.
///
/// # Source
/// Bergen et al. 2006 for blocks of alike elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CellBlocks {
    /// Blocks, and so work-items, of a group.
    pub blocks: u64,
    /// Cells of a block, the first ones of a square or a cube of a unit mesh; all of them unless it is
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<u64>,
    /// The place of each degree of freedom, or vertex, among the numbers of a block, cell by cell: one such
    /// table for each number of columns that maps have. None are those of a unit mesh.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Vec<Vec<u32>>>,
    /// Whether degrees of freedom of vertices have the numbers of these and a constant, so that they need
    /// no numbers of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_vertices: bool,
}

impl CellBlocks {
    /// A square or a cube a work-item, and a group of this number of work-items.
    #[must_use]
    pub const fn new(blocks: u64) -> Self {
        Self { blocks, cells: None, places: Vec::new(), by_vertices: false }
    }
}

impl fmt::Display for CellBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, cells, places, by_vertices } = self;
        write!(f, "blocks of cells, {blocks} a group")?;
        cells.iter().try_for_each(|cells| write!(f, ", {cells} cells each"))?;
        places.first().iter().try_for_each(|places| write!(f, ", {} cells by a pattern", places.len()))?;
        f.write_str(if *by_vertices { ", by vertices" } else { "" })
    }
}

impl Arguments for CellBlocks {
    const NAME: &'static str = "cell_blocks";
    const SUMMARY: &'static str = "A block of alike cells a work-item, in straight-line code.";
}

impl Strategy for CellBlocks {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        self.map(on, &[], CombinedOrbits::default())
    }

    fn needs(&self) -> Needs {
        Needs { cell_in_registers: true, setup: true, ..Needs::default() }
    }

    fn in_orbits(&self, on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        if how.points {
            return Err(how.refused(self));
        }
        let orbits = how.lower(on)?;
        self.map(on, &orbits, how)
    }
}

impl CellBlocks {
    /// Applies the steps; with the orbits of the nodes of each element, degrees of freedom are combined
    /// by them.
    fn map(&self, on: &mut Work<'_>, orbits: &[Orbits], how: CombinedOrbits) -> Result<(), Stopped> {
        let form = on.form();
        let (kernel, program) = (form.kernel(), form.program()?);
        let vertices = self.check(kernel, &program)?;
        let s = on.schedule();
        let cells = Blocked { program: &program, vertices, by: self };
        cells.map(s, orbits)?;
        let groups = how.resident_groups;
        Ok(groups.map_or(Ok(()), |groups| s.apply(LaunchHint::resident_groups(groups)).map(drop))?)
    }

    /// The map of the vertices of cells and their coordinates.
    fn check(&self, kernel: &Kernel, program: &CellProgram) -> Result<[String; 2], StrategyError> {
        let refused = |symbol: &str, found, needed: &str| StrategyError::Parameter {
            symbol: symbol.into(),
            found,
            needed: needed.into(),
        };
        if !(1..=1024).contains(&self.blocks) {
            let needed = "1 to 1024, the work-items of a group on any device";
            return Err(refused("the number of blocks of a group", self.blocks, needed));
        }
        if program.results.is_empty() {
            let needed = "at least one; sums of functionals are mapped by `summed_cells`";
            return Err(refused("the number of results with degrees of freedom", 0, needed));
        }
        vertices(kernel).ok_or_else(|| {
            refused("the number of gathers of vertices", 0, "at least one, by which cells are put in blocks")
        })
    }

    /// The places of the numbers of a block, of a map with this number of columns in some dimension.
    fn places(&self, dim: i64, columns: i64) -> Result<Vec<Vec<u32>>, StrategyError> {
        let refused = |symbol: &str, found: u64, needed: String| StrategyError::Parameter {
            symbol: symbol.into(),
            found,
            needed,
        };
        if !self.places.is_empty() {
            let cells = self.places[0].len();
            let own = |places: &&Vec<Vec<u32>>| {
                places.len() == cells && places.iter().all(|row| row.len() as i64 == columns)
            };
            return self.places.iter().find(own).cloned().ok_or_else(|| {
                let needed = format!("one of {cells} cells for a map of {columns} columns");
                refused("the number of tables of places", self.places.len() as u64, needed)
            });
        }
        let unknown = || {
            let needed = format!(
                "those of Lagrange elements on triangles or tetrahedra, found {columns} in {dim} dimensions; give \
                 the places of a block"
            );
            refused("the columns of a map", columns.unsigned_abs(), needed)
        };
        let (numbers, columns) = of_unit_mesh(dim, columns).ok_or_else(unknown)?;
        let all = numbers.len() / columns;
        let cells = self.cells.map_or(all, |cells| usize::try_from(cells).unwrap_or(usize::MAX));
        if cells == 0 || all % cells != 0 {
            let needed = format!("a divisor of {all}, the cells of a square or a cube");
            return Err(refused("the number of cells of a block", cells as u64, needed));
        }
        let numbers: Vec<i64> = numbers[..cells * columns.get()].iter().map(|n| i64::from(*n)).collect();
        let pattern = BlockPattern::of(&numbers, columns);
        Ok(pattern.rows().iter().map(|row| row.iter().map(|place| *place as u32).collect()).collect())
    }
}

/// The numbers of Lagrange nodes in the cells of a square or a cube, and how many a cell has.
fn of_unit_mesh(dim: i64, columns: i64) -> Option<(Vec<i32>, NonZeroUsize)> {
    let shape = match dim {
        2 => CellShape::Triangle,
        3 => CellShape::Tetrahedron,
        _ => return None,
    };
    let nodes = |p: i64| (1..=dim).fold(1, |nodes, k| nodes * (p + k) / k);
    let degree = (1..=columns).take_while(|p| nodes(*p) <= columns).find(|p| nodes(*p) == columns)?;
    // as numberings by block have it
    let mesh = Mesh::unit(shape, 1).ok()?.with_vertices_as_numbered();
    let numbering = Numbering::new(&mesh, usize::try_from(degree).ok()?).ok()?;
    Some((numbering.dofs().to_vec(), NonZeroUsize::new(numbering.dofs_per_cell())?))
}

/// Cells that come in blocks.
struct Blocked<'a> {
    program: &'a CellProgram,
    /// The map of the vertices of cells, and their coordinates.
    vertices: [String; 2],
    by: &'a CellBlocks,
}

impl Blocked<'_> {
    fn map(&self, s: &mut Schedule, orbits: &[Orbits]) -> Result<(), Stopped> {
        let [map, points] = &self.vertices;
        let dim = s.expected(extent(s.kernel(), points), "dimension of points")?;
        let columns = s.expected(extent(s.kernel(), map), "vertices of a cell")?;
        let places = self.by.places(dim, columns)?;
        let (cell, cells_of_block) = (self.program.cells.cell.name(), places.len() as i64);
        let cells = s.expected(count_of(s.kernel(), cell), "number of cells")?;
        make_atomic(s, &self.program.cells.commits)?;
        s.apply(Assume::multiple_of(cells, cells_of_block))?;
        s.make(ReorderRows::new(cell, map, points, cells_of_block).in_pattern(places))?;
        let [block, _]: [Loop; 2] = s.make(SplitIname {
            outer: Some(s.fresh("cell_block")),
            inner: Some(s.fresh("cell_of_block")),
            ..SplitIname::new(cell, cells_of_block).with_tail(Tail::Exact)
        })?;
        if self.by.by_vertices {
            self.pass_vertices(s, &block, columns)?;
        }
        for Mapped { map, extent, vars } in maps(s.kernel(), block.name()) {
            let places = self.by.places(dim, extent)?;
            let first = if self.by.by_vertices && extent > columns { columns } else { 0 };
            let [numbers, _] = s.make(PassBlocks::new(map, block.name(), first, after(&places, first)))?;
            for var in vars {
                s.make(ShareElements::new(var, block.name(), numbers.name()))?;
            }
        }
        Ok(self.place(s, &block, orbits)?)
    }

    /// Degrees of freedom of vertices by the numbers of these, in loops of their own.
    fn pass_vertices(&self, s: &mut Schedule, block: &Loop, count: i64) -> Result<(), TransformError> {
        // of rows in the order of blocks
        let [of_vertices, _] = s.expected(vertices(s.kernel()), "gather of vertices")?;
        let gathers = self.program.evaluated().into_iter().map(|k| &self.program.gathers[k]);
        let gathers = gathers.map(|g| (&g.dofs, g.count));
        let results = self.program.results.iter().map(|r| (&r.scatter, r.count));
        for (dofs, _) in gathers.chain(results).filter(|(_, dofs)| *dofs > count) {
            s.apply(CutIname::new(dofs, count.to_string()))?;
        }
        for Mapped { map, .. } in maps(s.kernel(), block.name()) {
            if map != of_vertices {
                s.make(PassStarts::new(map, 0, 1, count).above(&of_vertices))?;
            }
        }
        Ok(())
    }

    /// Code without loops, and blocks on work-items.
    fn place(&self, s: &mut Schedule, block: &Loop, orbits: &[Orbits]) -> Result<(), TransformError> {
        if !orbits.is_empty() {
            let gathers = self.program.evaluated().into_iter().map(|k| &self.program.gathers[k]);
            let tiles: Vec<Array> = gathers.map(|g| g.array.clone()).collect();
            orbit_basis(s, self.program, &tiles, orbits)?;
        }
        let [group, item] = s.split_as(block, length(self.by.blocks), ["block_group", "block_item"])?;
        straight_line(s, self.program, &item, None)?;
        s.tag(&group, AxisTag::Group(0))?;
        s.tag(&item, AxisTag::Local(0))
    }
}

/// The extent of an array along its second axis.
fn extent(kernel: &Kernel, array: &str) -> Option<i64> {
    kernel.vars[kernel.var(array)?].shape.get(1)?.as_constant()
}

/// The parameter that is the number of iterations of a loop.
fn count_of(kernel: &Kernel, iname: &str) -> Option<String> {
    let id = kernel.iname(iname)?;
    let range = kernel.inames[id].domain.as_guarded_range(id)?;
    let is_count = |v: &VarId| kernel.vars[*v].kind == VarKind::Param && Affine::var(*v) == range.hi;
    kernel.vars.ids().find(is_count).map(|v| kernel.vars[v].name.clone())
}

/// A map whose rows are those of a loop.
struct Mapped {
    map: String,
    /// Columns.
    extent: i64,
    /// The arrays that are accessed through it.
    vars: Vec<String>,
}

/// The maps whose rows are those of a loop, in textual order.
fn maps(kernel: &Kernel, iname: &str) -> Vec<Mapped> {
    let Some(iname) = kernel.iname(iname) else { return Vec::new() };
    let mut found: Vec<Mapped> = Vec::new();
    for (insn, _) in kernel.schedule() {
        let insn = &kernel.insns[insn];
        for access in insn.reads().into_iter().chain([&insn.lhs]) {
            let Some(index) = access.index.first() else { continue };
            let var = &kernel.vars[access.var].name;
            index.for_each(&mut |e| {
                let Some((map, extent)) = map_of(kernel, e, iname) else { return };
                match found.iter_mut().find(|known| known.map == map) {
                    Some(known) if known.vars.contains(var) => {}
                    Some(known) => known.vars.push(var.clone()),
                    None => found.push(Mapped { map, extent, vars: vec![var.clone()] }),
                }
            });
        }
    }
    found
}

/// The map that an expression is an entry of, in a row that a loop says, and its columns.
fn map_of(kernel: &Kernel, e: &Expr, iname: InameId) -> Option<(String, i64)> {
    let entry = e.as_load()?;
    let map = &kernel.vars[entry.var];
    let is_map = map.kind == VarKind::Argument(Direction::In) && map.ty.is_exact();
    let is_row = is_map && entry.index.first()?.mentions(iname);
    Some((map.name.clone(), map.shape.get(1).filter(|_| is_row)?.as_constant()?))
}

/// The places of the columns from one on, among the numbers of these.
fn after(places: &[Vec<u32>], first: i64) -> Vec<Vec<u32>> {
    let mut known: Vec<u32> = Vec::new();
    let mut place = |old: &u32| {
        let at = known.iter().position(|place| place == old).unwrap_or_else(|| {
            known.push(*old);
            known.len() - 1
        });
        at as u32
    };
    let first = usize::try_from(first).unwrap_or(0); // default: of all, as from column 0 on
    places.iter().map(|row| row[first..].iter().map(&mut place).collect()).collect()
}
