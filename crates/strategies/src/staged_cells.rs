//! One cell a work-item, with gather and scatter by consecutive work-items along the degrees of
//! freedom.

use super::blocks::{REST, behind, gathers_first};
use super::cell_groups::{Lanes, cell_groups};
use super::modes::table_products;
use super::orbit_basis::orbit_basis;
use super::point_orbits::point_orbits;
use super::single_cell::make_atomic;
use super::staging::{CellNest, Flat, Staged, check_parts, flat, roll_gathers, stage_results};
use super::summed_cells::is_functional;
use super::{constant_tables, length, show_parts};
use crate::strategy::{Arguments, CombinedOrbits, Needs, Question, Stopped, Strategy, StrategyError, Work};
use kingpost_forms::CellKernel;
use kingpost_forms::lowering::Orbits;
use kingpost_forms::program::CellProgram;
use kingpost_ir::{AddressSpace, Affine, AxisTag, Kernel, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    AliasStorage, CopyTable, LaunchHint, MoveInsns, PrefetchArray, ReduceInTree, SetAddressSpace,
    SkipZeroTerms, SplitIname, SplitLives, Tail,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, Selection, TransformError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maps every cell to one work-item, but gathers and scatters all degrees of freedom of the group's
/// cells through local memory, one after the other along the work-items.
///
/// The single-cell strategy (Kulkarni & Klöckner 2025, §4.1) reads and updates with a stride of one
/// cell between work-items, so that every work-item touches a memory segment of its own; here
/// neighbours touch neighbours, as far as the numbering has them together. Arithmetic is the same.
/// What a group adds to a functional is summed in a tree.
///
/// # Errors
/// A group of no or more than 1024 work-items, or a step that was refused.
///
/// # Source
/// Kulkarni & Klöckner 2025, §6.3.1 names the layout of the degrees of freedom as what bounds low
/// orders.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StagedCells {
    /// Cells, and so work-items, of a group.
    pub cells: u64,
    /// Whether the tables are in constant memory.
    pub constant_tables: bool,
}

impl fmt::Display for StagedCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = if self.constant_tables { ", constant tables" } else { "" };
        write!(f, "staged cells, {} a group{tables}", self.cells)
    }
}

impl Arguments for StagedCells {
    const NAME: &'static str = "staged_cells";
    const SUMMARY: &'static str = "One cell a work-item, gather and scatter through local memory.";
}

impl Strategy for StagedCells {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        let program = form.program()?;
        let args = Transfers { cells: self.cells, parts: &[] };
        args.check(&program)?;
        let s = on.schedule();
        stage(s, &program, args, None)?;
        if self.constant_tables {
            constant_tables(s, form.kernel())?;
        }
        Ok(())
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let cells: &[u64] = if question.tables_fit_constant_cache() { &[32, 64] } else { &[] };
        cells.iter().map(|cells| Self { cells: *cells, constant_tables: true }).collect()
    }
}

/// How gather and scatter are dealt to the work-items of a group.
#[derive(Clone, Copy)]
struct Transfers<'a> {
    /// Cells, and so work-items, of a group.
    cells: u64,
    /// Degrees of freedom that are gathered and scattered separately; none does all together.
    parts: &'a [u64],
}

impl Transfers<'_> {
    fn check(self, program: &CellProgram) -> Result<(), StrategyError> {
        let results = program.results.iter().map(|result| result.count);
        let gathered = program.evaluated().into_iter().map(|k| program.gathers[k].count);
        check_parts(self.parts, gathered.chain(results))?;
        if (1..=1024).contains(&self.cells) {
            return Ok(());
        }
        Err(StrategyError::Parameter {
            symbol: "the number of cells of a group".into(),
            found: self.cells,
            needed: "1 to 1024, the work-items of a group on any device".into(),
        })
    }
}

/// As [`StagedCells`], with the work of a cell in straight-line code: every loop of it written out,
/// degrees of freedom and results in registers, entries of tables as numbers in the code, and terms
/// that they make zero left out. With orbits, degrees of freedom are combined in them and points
/// become modes, so that most entries are zero; or points are combined in orbits, too, of rules that
/// have them so
/// ([`LoweringOptions::point_orbits`](kingpost_forms::lowering::LoweringOptions::point_orbits)).
///
/// With whole groups, the loop over cells is split with its remainder peeled. Cells of a full group
/// then have code without conditions, which stands there once. The cells after them are mapped to a
/// group each, in loops that are short to write: the first groups do both. There is no such code where
/// the kernel assumes that groups divide the cells.
///
/// # Rewrite
/// ```text
/// for q in 0..2                 =>   for q in 0..2 {unroll}
///   for j in 0..3                      for j in 0..3 {unroll}
///     u_q += phi[q, j]*u[j]              u_q += phi[q, j]*u[j] if phi[q, j] != 0.0
/// ```
///
/// # Errors
/// As [`StagedCells`]; with orbits, an integrand without modes, or points that are in no orbits; with
/// whole groups, a kernel that is no action. Code generation refuses loops that are too long to be
/// written out.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StraightCells {
    /// Cells, and so work-items, of a group.
    pub cells: u64,
    /// Whether cells that fill no group are mapped to a group each, so that nothing in the code of the
    /// others is conditional.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_groups: bool,
    /// Degrees of freedom that are gathered and scattered separately, in their order in a cell: those
    /// of vertices, edges, faces and the interior. None does all together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<u64>,
}

impl StraightCells {
    /// A group of this number of cells, their degrees of freedom together.
    #[must_use]
    pub const fn new(cells: u64) -> Self {
        Self { cells, whole_groups: false, parts: Vec::new() }
    }

    /// Applies the steps; with the orbits of the nodes of each element, degrees of freedom are combined
    /// by them.
    fn map(&self, on: &mut Work<'_>, orbits: &[Orbits], how: CombinedOrbits) -> Result<(), Stopped> {
        let form = on.form();
        let program = &*form.program()?;
        let staged = Transfers { cells: self.cells, parts: &self.parts };
        staged.check(program)?;
        if self.whole_groups {
            program.tiled(form.kernel())?;
        }
        let s = on.schedule();
        let whole = self.whole_groups.then(|| whole_groups(s, program, length(self.cells)));
        let whole = whole.transpose()?;
        let Ends { compute, tiles, results } = stage(s, program, staged, whole.as_ref())?;
        if !orbits.is_empty() {
            match how.points {
                true => point_orbits(s, program, &tiles, orbits)?,
                false => drop(orbit_basis(s, program, &tiles, orbits)?),
            }
            // a row of results takes the place of a row of degrees of freedom that its work-item has read
            let read: Vec<&Array> = program.evaluated().iter().map(|k| &program.gathers[*k].array).collect();
            if let ([values], [results]) = (&read[..], &results[..])
                && shape_of(s.kernel(), values) == shape_of(s.kernel(), results)
            {
                let vars = vec![String::from(*values), String::from(results)];
                s.apply(AliasStorage { vars, storage: s.fresh("cell_values") })?;
            }
        }
        straight_line(s, program, &compute, whole.as_ref().and_then(|whole| whole.rest.as_ref()))?;
        let groups = how.resident_groups;
        Ok(groups.map_or(Ok(()), |groups| s.apply(LaunchHint::resident_groups(groups)).map(drop))?)
    }
}

impl fmt::Display for StraightCells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = if self.whole_groups { ", whole groups" } else { "" };
        write!(f, "straight cells, {} a group{whole}", self.cells)?;
        show_parts(f, &self.parts)
    }
}

impl Arguments for StraightCells {
    const NAME: &'static str = "straight_cells";
    const SUMMARY: &'static str = "One cell a work-item in straight-line code.";
}

impl Strategy for StraightCells {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        self.map(on, &[], CombinedOrbits::default())
    }

    fn needs(&self) -> Needs {
        Needs { cell_in_registers: true, ..Needs::default() }
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let cells: &[u64] = if is_short(question.form) { &[32, 64, 128] } else { &[] };
        cells.iter().map(|cells| Self::new(*cells)).collect()
    }

    fn with_parts(&self, parts: &[u64]) -> Option<Self> {
        Some(Self { parts: parts.to_vec(), ..self.clone() })
    }

    fn in_orbits(&self, on: &mut Work<'_>, how: CombinedOrbits) -> Result<(), Stopped> {
        let orbits = how.lower(on)?;
        self.map(on, &orbits, how)
    }
}

/// Most products with entries of tables that are written out in one kernel. 3-D P4 Helmholtz has
/// 6,650 and gains 1.46 times; 3-D P5 Laplace, 11,760, spills and is three times slower than a
/// tiling (H200, 2026-11-23).
pub(super) const STRAIGHT_PRODUCTS: i64 = 9_000;

/// Most degrees of freedom of a cell, read and added to, for which straight-line code is the best
/// known: 255 registers hold them, and what is computed from them. Elasticity on 3-D P3 has 120 and
/// is three times slower than in tiles, on 2-D P5 84 and is 1.4 times faster (H200, 2026-11-23).
const STRAIGHT_WORDS: i64 = 84;

/// Whether the work of a cell is short as straight-line code, in which entries of tables are
/// numbers: not those of facets, each of which reads its own.
fn is_short(form: &dyn CellKernel) -> bool {
    form.program().is_ok_and(|p| p.shares_tables && table_products(&p) <= STRAIGHT_PRODUCTS)
}

/// Degrees of freedom of a cell, read and added to, where straight-line code has registers for
/// them.
#[must_use]
pub fn words_in_registers(form: &dyn CellKernel) -> Option<i64> {
    let words = values_of_cell(&*form.program().ok()?);
    (words <= STRAIGHT_WORDS && !is_functional(form) && is_short(form)).then_some(words)
}

/// Degrees of freedom of a cell, read and added to.
#[must_use]
pub fn values_of_cell(program: &CellProgram) -> i64 {
    let read = program.evaluated().into_iter().map(|k| &program.gathers[k]);
    let read: i64 = read.map(|g| g.count * g.insns.len() as i64).sum();
    let written = program.results.iter().map(|r| r.count * r.columns.unwrap_or(r.components));
    read + written.sum::<i64>()
}

/// Full groups of cells, and what is after them.
struct WholeGroups {
    group: Loop,
    cell: Loop,
    rest: Option<Rest>,
}

/// Cells that fill no group.
pub(super) struct Rest {
    cell: Loop,
    /// Tables of their own.
    tables: Vec<Array>,
}

/// Peels the cells that fill no group, with arrays and tables of their own.
fn whole_groups(
    s: &mut Schedule,
    program: &CellProgram,
    cells_of_group: i64,
) -> Result<WholeGroups, TransformError> {
    let [group, cell] = s.make(SplitIname {
        outer: Some(s.fresh("cell_group")),
        inner: Some(s.fresh("cells_of_group")),
        ..SplitIname::new(&program.cells.cell, cells_of_group).with_tail(Tail::Peel)
    })?;
    let Some(rest) = behind(s.kernel(), group.name()) else {
        return Ok(WholeGroups { group, cell, rest: None });
    };
    s.apply(SplitLives::new(&rest, REST))?;
    let mut tables = Vec::new();
    let all: Vec<String> = s.kernel().vars.values().filter(is_table).map(|v| v.name.clone()).collect();
    for table in all {
        let loads = Selection::All(vec![Selection::Inside((&rest).into()), Selection::Reads(table.clone())]);
        if loads.resolve(s.kernel()).is_ok() {
            let copy = s.fresh(&format!("{table}_{REST}"));
            tables.push(s.make(CopyTable::new(table, loads, copy))?);
        }
    }
    Ok(WholeGroups { group, cell, rest: Some(Rest { cell: rest, tables }) })
}

fn is_table(variable: &&Variable) -> bool {
    matches!(variable.kind, VarKind::Table(_))
}

/// Tables as numbers in the code, terms that they make zero left out, and every loop inside `compute`
/// written out; the cells of `rest` stay as they are.
pub(super) fn straight_line(
    s: &mut Schedule,
    program: &CellProgram,
    compute: &Loop,
    rest: Option<&Rest>,
) -> Result<(), TransformError> {
    let is_own = |v: &&Variable| rest.is_some_and(|rest| rest.tables.iter().any(|t| t.name() == v.name));
    let kernel = s.kernel().clone();
    let tables = kernel.vars.values().filter(is_table).filter(|v| v.space == AddressSpace::Global);
    for table in tables.filter(|v| !is_own(v)) {
        s.apply(SetAddressSpace::new(&table.name, AddressSpace::Literal))?;
    }
    let loops = loops_in(s.kernel(), compute.name());
    // of tables whose entries are numbers in the code; others would be compared at run time
    if program.shares_tables {
        let of_rest = rest.and_then(|rest| s.kernel().iname(rest.cell.name()));
        let schedule = s.kernel().schedule().into_iter();
        let own = schedule.filter(|(_, loops)| of_rest.is_none_or(|rest| !loops.contains(&rest)));
        let insns: Vec<String> = own.map(|(i, _)| s.kernel().insns[i].name.clone()).collect();
        for insn in insns {
            s.attempt(SkipZeroTerms::insn(insn))?; // refused where there is no product with a table that has zeros
        }
    }
    s.tag_all(&loops, AxisTag::Unrolled)
}

fn shape_of<'k>(kernel: &'k Kernel, array: &Array) -> Option<&'k [Affine]> {
    Some(&kernel.vars[kernel.var(array.name())?].shape)
}

/// The loops inside a loop, in textual order.
fn loops_in(kernel: &Kernel, iname: &str) -> Vec<Loop> {
    let mut found: Vec<Loop> = Vec::new();
    for (_, loops) in kernel.schedule() {
        let names = loops.iter().map(|l| kernel.inames[*l].name.as_str());
        for name in names.skip_while(|name| *name != iname).skip(1) {
            if found.iter().all(|l| l.name() != name) {
                found.push(Loop::named(name));
            }
        }
    }
    found
}

/// What is between gather and scatter.
struct Ends {
    /// The loop over the cells of a group that computes.
    compute: Loop,
    /// The degrees of freedom that a work-item takes.
    tiles: Vec<Array>,
    /// What a scatter adds, which work-items share.
    results: Vec<Array>,
}

/// All commits after what is computed.
fn commits_last(s: &mut Schedule, staged: &[Staged]) -> Result<(), TransformError> {
    if let [others @ .., last] = staged
        && !others.is_empty()
    {
        s.apply(MoveInsns::before(others.iter().map(|staged| &staged.rows), &last.rows))?;
    }
    Ok(())
}

/// Loops to groups and work-items, `rounds` written out; with whole groups, what is after them to a
/// group a cell.
fn place(
    s: &mut Schedule,
    program: &CellProgram,
    whole: Option<&WholeGroups>,
    group: &Loop,
    rounds: &[Loop],
    mut items: Vec<Loop>,
) -> Result<(), TransformError> {
    let rest = whole.and_then(|whole| whole.rest.as_ref());
    let lanes = rest.map(|rest| cell_groups(s, program, &rest.cell, REST, 1)).transpose()?;
    let Lanes { items: of_rest, sub_groups, .. } = lanes.unwrap_or_default(); // default: groups are whole
    items.extend(of_rest);
    s.tag_all(rounds, AxisTag::Unrolled)?;
    s.tag(group, AxisTag::Group(0))?;
    s.tag_all(&items, AxisTag::Local(0))?;
    s.tag_all(&sub_groups, AxisTag::Local(1))
}

/// Gather and scatter along work-items.
fn stage(
    s: &mut Schedule,
    program: &CellProgram,
    args: Transfers<'_>,
    whole: Option<&WholeGroups>,
) -> Result<Ends, TransformError> {
    let cells_of_group = length(args.cells);
    let mut staged: Vec<Staged> = Vec::new();
    for result in &program.results {
        let columns = result.scatter_columns.as_ref().zip(result.columns);
        staged.push(stage_results(s, &result.commits, &result.scatter, columns, "commit_dof")?);
    }
    commits_last(s, &staged)?;
    let components = roll_gathers(s, program)?;
    // a loop over the cells of a group for each gather, for the transforms, for the computation and
    // for each commit
    let order = gathers_first(s, whole.map_or(&program.cells.cell, |whole| &whole.cell), program)?;
    let stem = |k: &usize| format!("cells_{}", program.function(*k));
    let mut stems: Vec<String> = order.gathers.iter().map(stem).collect();
    let transform = order.transform.as_ref().map(|_| stems.len());
    stems.extend(transform.map(|_| "cell_transform".into()));
    let compute = stems.len();
    stems.push("cell_compute".into());
    stems.extend(staged.iter().map(|_| "cell_commit".into()));
    stems.extend(program.sums.iter().map(|sum| format!("{}_sum", sum.scalar)));
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    let [group, first] = match whole {
        Some(whole) => [whole.group.clone(), whole.cell.clone()],
        None => s.split_as(&program.cells.cell, cells_of_group, ["cell_group", stems[0]])?,
    };
    let evaluated = program.evaluated();
    let own = staged.iter().map(|staged| &staged.array).chain(program.sums.iter().map(|sum| &sum.scalar));
    for array in evaluated.iter().map(|k| &program.gathers[*k].array).chain(own) {
        s.expand(array, [&first])?;
    }
    let parts = order.gathers.iter().map(|k| String::from(&program.gathers[*k].dofs));
    let parts = parts.chain(order.transform).chain([order.first]);
    let parts = parts.skip(1).chain(staged.iter().map(|staged| String::from(&staged.rows)));
    let parts = parts.chain(program.sums.iter().map(|sum| String::from(&sum.commit)));
    let mut cells = vec![first.clone()];
    cells.extend(s.distribute_as(&first, parts, &stems[1..])?);

    // both ends by all work-items, one degree of freedom after the other
    let work_group = [cells_of_group, 1];
    let (mut flats, mut tiles): (Vec<Flat>, Vec<Array>) = (Vec::new(), Vec::new());
    for k in program.evaluated() {
        let g = &program.gathers[k];
        let fetch = PrefetchArray::new(&g.array, &cells[compute], AddressSpace::Private);
        tiles.push(s.prefetch_as(fetch, &format!("{}_tile", g.array))?.0);
        let place = s.expected(order.gathers.iter().position(|o| *o == k), "gather of a function")?;
        let nest = CellNest {
            array: &g.array,
            cells: &cells[place],
            rows: &g.dofs,
            component: components[k].as_ref(),
            shape: [g.count, g.insns.len() as i64],
        };
        flats.extend(flat(s, &nest, g.dofs.name(), work_group, args.parts)?);
    }
    for (k, (staged, result)) in staged.iter().zip(&program.results).enumerate() {
        let commit = &cells[compute + 1 + k];
        if program.cells.commits.contains(&staged.commit) {
            make_atomic(s, std::slice::from_ref(&staged.commit))?;
        }
        let nest = staged.nest(commit, result.count);
        flats.extend(flat(s, &nest, "commit", work_group, args.parts)?);
    }
    // a functional: one update of it a group
    for terms in cells.iter().skip(compute + 1 + staged.len()) {
        s.make(ReduceInTree::new(terms.name()).by_work_items(AxisTag::Local(0)))?;
    }
    make_atomic(s, &program.sums.iter().map(|sum| sum.commit.clone()).collect::<Vec<_>>())?;
    let few = |f: &Flat| f.has_few_rounds(cells_of_group, work_group).then(|| f.round.clone());
    let rounds: Vec<Loop> = flats.iter().filter_map(few).collect();
    let own = transform.into_iter().chain([compute]).map(|k| cells[k].clone());
    let items = flats.iter().map(|f| f.items[0].clone()).chain(own).collect();
    place(s, program, whole, &group, &rounds, items)?;
    let results = staged.into_iter().map(|s| s.array).collect();
    Ok(Ends { compute: cells[compute].clone(), tiles, results })
}
