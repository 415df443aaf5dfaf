//! One cell a work-item, with the degrees of freedom of a group listed once.

use super::length;
use super::orbit_basis::orbit_basis;
use super::single_cell::make_atomic;
use super::staged_cells::straight_line;
use super::stored_factors::store_cell_values;
use crate::strategy::{Arguments, CombinedOrbits, Needs, Stopped, Strategy, StrategyError, Work};
use kingpost_forms::lowering::Orbits;
use kingpost_forms::program::CellProgram;
use kingpost_forms::program::stage::GATHER;
use kingpost_ir::{AxisTag, Expr, Insn, Kernel};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{LaunchHint, ListElements, ReorderRows};
use kingpost_primitives::schedule::{Array, Loop, Statement};
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// As [`StraightCells`](super::StraightCells), but each degree of freedom of a group is read once
/// and updated once: lists of them are computed for a mesh, cells read local memory by their
/// numbers in the list, and add to local memory by the same numbers. Groups of cells that are close
/// to each other have short lists; cells are put in such an order for a mesh, too. By `places`,
/// cells do not update elements that they share: each adds to its own, and the list of a degree of
/// freedom says which of them to sum. With `stored`, cells read what the integrand takes from their
/// geometry, and no vertices. With `short`, numbers and places have 16 bits, which halves what they
/// take of memory. With `exclusive`, degrees of freedom that no other group has are read and
/// stored.
///
/// # Rewrite
/// ```text
/// for cell in 0..n_cells               =>  for cell_group {g.0}
///   u_cell[i] = u[dofs[cell, i]]             u_items[k] = u[dofs_items[cell_group, k]]
///   ...                                      for cell_item {l.0}
///   y[dofs[cell, i]] += y_cell[i]              u_cell[i] = u_items[dofs_numbers[i, cell]]
///                                              ...
///                                              y_items[dofs_numbers[i, cell]] += y_cell[i]
///                                            y[dofs_items[cell_group, k]] += y_items[k]
/// ```
///
/// # Errors
/// A group of no or more than 1024 work-items, functionals, degrees of freedom that no map gives,
/// lists of vertices that nothing reads with stored geometry; with orbits, an integrand without
/// modes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedCells {
    /// Cells, and so work-items, of a group.
    pub cells: u64,
    /// Distinct degrees of freedom that a group has room for.
    pub items: u64,
    /// Whether groups take cells that are close to each other, instead of those with numbers in a
    /// row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact: bool,
    /// Whether what cells add to a degree of freedom is summed by lists of its places in them, in
    /// place of atomic updates of local memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub places: bool,
    /// Distinct vertices that a group has room for, where their coordinates are listed, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vertices: Option<u64>,
    /// Whether what the integrand takes from the geometry of a cell is an input, which is computed
    /// once for a mesh.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stored: bool,
    /// Whether numbers in lists and places have 16 bits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub short: bool,
    /// Room for degrees of freedom that no other group has, among `items`, if those are kept apart:
    /// they are added to without atomic updates of global memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<u64>,
}

impl fmt::Display for ListedCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cells, items, compact, places, vertices, stored, short, exclusive } = self;
        write!(f, "listed cells, {cells} a group, {items} degrees of freedom")?;
        if let Some(exclusive) = exclusive {
            write!(f, ", {exclusive} of them exclusive")?;
        }
        if let Some(vertices) = vertices {
            write!(f, ", {vertices} vertices")?;
        }
        let said = [
            (*compact, ", compact groups"),
            (*places, ", sums by places"),
            (*stored, ", stored geometry"),
            (*short, ", numbers of 16 bits"),
        ];
        said.iter().filter(|(is, _)| *is).try_for_each(|(_, text)| f.write_str(text))
    }
}

/// Most rounds of a transfer that are written out.
const MAX_ROUNDS: i64 = 32;

impl ListedCells {
    /// The map of the vertices of cells and their coordinates, if they are asked for; refuses arguments
    /// that make no sense together.
    fn check(&self, kernel: &Kernel, program: &CellProgram) -> Result<Option<[String; 2]>, StrategyError> {
        if !(1..=1024).contains(&self.cells) {
            return Err(StrategyError::Parameter {
                symbol: "the number of cells of a group".into(),
                found: self.cells,
                needed: "1 to 1024, the work-items of a group on any device".into(),
            });
        }
        if program.results.is_empty() {
            return Err(StrategyError::Parameter {
                symbol: "the number of results with degrees of freedom".into(),
                found: 0,
                needed: "at least one; sums of functionals are mapped by `summed_cells`".into(),
            });
        }
        let asked = self.compact || self.stored || self.vertices.is_some();
        let vertices = vertices(kernel).filter(|_| asked);
        if asked && vertices.is_none() {
            return Err(StrategyError::Parameter {
                symbol: "the number of gathers of vertices".into(),
                found: 0,
                needed: "at least one, for groups that are compact by vertices, list them or store geometry"
                    .into(),
            });
        }
        if let Some(found) = self.vertices.filter(|_| self.stored) {
            return Err(StrategyError::Parameter {
                symbol: "the number of vertices of a group".into(),
                found,
                needed: "none with stored geometry, which reads no coordinates".into(),
            });
        }
        Ok(vertices)
    }

    /// Applies the steps; with the orbits of the nodes of each element, degrees of freedom are combined
    /// by them.
    fn map(&self, on: &mut Work<'_>, orbits: &[Orbits], how: CombinedOrbits) -> Result<(), Stopped> {
        let form = on.form();
        let program = form.program()?;
        let vertices = self.check(form.kernel(), &program)?;
        let s = on.schedule();
        map_cells(s, &program, self, orbits, vertices)?;
        let groups = how.resident_groups;
        Ok(groups.map_or(Ok(()), |groups| s.apply(LaunchHint::resident_groups(groups)).map(drop))?)
    }
}

impl Arguments for ListedCells {
    const NAME: &'static str = "listed_cells";
    const SUMMARY: &'static str = "One cell a work-item, degrees of freedom of a group by lists for a mesh.";
}

impl Strategy for ListedCells {
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

fn map_cells(
    s: &mut Schedule,
    program: &CellProgram,
    lists: &ListedCells,
    orbits: &[Orbits],
    vertices: Option<[String; 2]>,
) -> Result<(), TransformError> {
    let cells_of_group = length(lists.cells);
    if let Some([map, points]) = vertices.as_ref().filter(|_| lists.compact) {
        s.make(ReorderRows::new(program.cells.cell.name(), map, points, cells_of_group))?;
    }
    if lists.stored {
        store_cell_values(s, program)?;
    }
    let [group, item] = s.split_as(&program.cells.cell, cells_of_group, ["cell_group", "cell_item"])?;
    let mut transfers = Transfers { cells_of_group, rounds: Vec::new(), items: vec![item.clone()] };
    if let (Some([_, points]), Some(room)) = (vertices, lists.vertices) {
        let list = ListElements::new(points, &group, cells_of_group, length(room));
        let made = s.make(if lists.short { list.with_short_numbers() } else { list })?;
        transfers.deal(s, &made.fill)?;
    }
    let list = |var: &str| {
        let made = ListElements::new(var, &group, cells_of_group, length(lists.items));
        let made = if lists.short { made.with_short_numbers() } else { made };
        let made = if lists.places { made.with_places() } else { made };
        lists.exclusive.map(length).into_iter().fold(made, ListElements::with_exclusive)
    };
    let gathers: Vec<_> = program.evaluated().into_iter().map(|k| &program.gathers[k]).collect();
    let mut listed: Vec<String> = Vec::new();
    for insn in gathers.iter().flat_map(|g| &g.insns) {
        let Some(var) = read_by(s.kernel(), insn).filter(|var| !listed.contains(var)) else { continue };
        let made = s.make(list(&var))?;
        transfers.deal(s, &made.fill)?;
        // components take one step, and then read its temporary
        listed.extend([var, String::from(&made.array)]);
    }
    make_atomic(s, &program.cells.commits)?;
    for commit in program.results.iter().flat_map(|r| &r.commits) {
        let Some(var) = written_by(s.kernel(), commit).filter(|var| !listed.contains(var)) else { continue };
        let made = s.make(list(&var))?;
        for nest in [&made.fill, &made.exclusive[0], &made.exclusive[1], &made.join] {
            transfers.deal(s, nest)?;
        }
        listed.extend([var, String::from(&made.array)]);
    }
    if !orbits.is_empty() {
        let tiles: Vec<Array> = gathers.iter().map(|g| g.array.clone()).collect();
        orbit_basis(s, program, &tiles, orbits)?;
    }
    straight_line(s, program, &item, None)?;
    s.tag_all(&transfers.rounds, AxisTag::Unrolled)?;
    s.tag(&group, AxisTag::Group(0))?;
    s.tag_all(&transfers.items, AxisTag::Local(0))
}

/// The map of the vertices of cells and their coordinates: what the gather of the points of a cell
/// reads.
pub(super) fn vertices(kernel: &Kernel) -> Option<[String; 2]> {
    let points = [GATHER, "of_x"];
    let of_points = |insn: &&Insn| points.iter().all(|tag| insn.tags.contains(*tag));
    kernel.insns.values().filter(of_points).find_map(|insn| {
        let Expr::Load(access) = &insn.rhs else { return None };
        let Some(Expr::Load(entry)) = access.index.first() else { return None };
        Some([entry.var, access.var].map(|var| kernel.vars[var].name.clone()))
    })
}

/// The loops of transfers between memories.
struct Transfers {
    cells_of_group: i64,
    /// Rounds that are written out.
    rounds: Vec<Loop>,
    /// Loops over the work-items of a group.
    items: Vec<Loop>,
}

impl Transfers {
    /// Deals the elements of a nest out to the work-items, neighbours to neighbours.
    fn deal(&mut self, s: &mut Schedule, nest: &[Loop]) -> Result<(), TransformError> {
        let Some((first, rest)) = nest.split_first() else { return Ok(()) };
        let mut flat = first.clone();
        for inner in rest {
            flat = s.join(&flat, inner)?;
        }
        let [round, item] = s.split(&flat, self.cells_of_group)?;
        let extent = |name: &Loop| {
            let id = s.kernel().iname(name.name())?;
            let range = s.kernel().inames[id].domain.as_guarded_range(id)?;
            range.hi.minus(&range.lo).as_constant()
        };
        if extent(&round).is_some_and(|rounds| rounds <= MAX_ROUNDS) {
            self.rounds.push(round);
        }
        self.items.push(item);
        Ok(())
    }
}

/// The array that an instruction reads through a map.
fn read_by(kernel: &Kernel, insn: &Statement) -> Option<String> {
    let mut found = None;
    let insn = kernel.insns.values().find(|i| i.name == insn.name())?;
    insn.rhs.for_each(&mut |e| {
        if let Expr::Load(access) = e
            && let Some(Expr::Load(_)) = access.index.first()
        {
            found = Some(kernel.vars[access.var].name.clone());
        }
    });
    found
}

fn written_by(kernel: &Kernel, insn: &Statement) -> Option<String> {
    let insn = kernel.insns.values().find(|i| i.name == insn.name())?;
    Some(kernel.vars[insn.lhs.var].name.clone())
}
