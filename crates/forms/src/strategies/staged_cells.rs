//! One cell a work-item, with gather and scatter by consecutive work-items along the degrees of
//! freedom.

use super::blocks::gathers_first;
use super::orbit_basis::{Orbits, orbit_basis};
use super::single_cell::make_atomic;
use super::staging::{CellNest, Flat, Staged, flat, roll_gathers, stage_results};
use super::{StrategyError, applied, constant_tables, length, tables_to};
use crate::program::CellProgram;
use purlin_ir::{AddressSpace, Affine, AxisTag, Kernel};
use purlin_transforms::primitives::{
    AliasStorage, MoveInsns, PrefetchArray, ReduceInTree, SetResidentGroups, SkipZeroTerms,
};
use purlin_transforms::schedule::{Array, Loop, Statement};
use purlin_transforms::{Recipe, Schedule, TransformError};

/// Arguments of [`staged_cells`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StagedCells {
    /// Cells, and so work-items, of a group.
    pub work_group: u64,
    /// Whether the tables go to constant memory.
    pub constant_tables: bool,
}

impl StagedCells {
    fn check(&self) -> Result<(), StrategyError> {
        if (1..=1024).contains(&self.work_group) {
            return Ok(());
        }
        Err(StrategyError::Parameter {
            symbol: "the number of cells of a group".into(),
            found: self.work_group,
            needed: "1 to 1024, the work-items of a group on any device".into(),
        })
    }
}

/// Arguments of [`straight_cells`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StraightCells {
    /// Cells, and so work-items, of a group.
    pub work_group: u64,
    /// The orbits of the nodes of each element, if degrees of freedom are combined by them.
    pub orbits: Vec<Orbits>,
    /// Groups that a compute unit shall have registers for; none leaves it to the compiler.
    pub resident_groups: Option<u32>,
}

/// As [`staged_cells`], with the work of a cell in straight-line code: every loop of it written out,
/// degrees of freedom and results in registers, entries of tables as numbers in the code, and terms
/// that they make zero left out. With orbits, degrees of freedom are combined in them and points
/// become modes, so that most entries are zero.
///
/// # Rewrite
/// ```text
/// for q in 0..2                 =>   for q in 0..2 {unroll}
///   for j in 0..3                      for j in 0..3 {unroll}
///     u_q += phi[q, j]*u[j]              u_q += phi[q, j]*u[j] if phi[q, j] != 0.0
/// ```
///
/// # Errors
/// As [`staged_cells`]; with orbits, an integrand without modes. Code generation refuses loops that
/// are too long to be written out.
pub fn straight_cells(
    kernel: &Kernel,
    program: &CellProgram,
    args: &StraightCells,
) -> Result<(Kernel, Recipe), StrategyError> {
    let staged = StagedCells { work_group: args.work_group, constant_tables: true };
    staged.check()?;
    applied(kernel, |s| {
        let Ends { compute, tiles, results } = stage(s, program, &staged)?;
        if !args.orbits.is_empty() {
            orbit_basis(s, program, &tiles, &args.orbits)?;
            // a row of results takes the place of a row of degrees of freedom that its work-item has read
            let read: Vec<&Array> = program.evaluated().iter().map(|k| &program.gathers[*k].array).collect();
            if let ([values], [results]) = (&read[..], &results[..])
                && shape_of(s.kernel(), values) == shape_of(s.kernel(), results)
            {
                let vars = vec![String::from(*values), String::from(results)];
                s.apply(AliasStorage { vars, storage: s.fresh("cell_values") })?;
            }
        }
        straight_line(s, program, &compute)?;
        args.resident_groups.map_or(Ok(()), |groups| s.apply(SetResidentGroups::new(groups)).map(drop))
    })
}

/// Tables as numbers in the code, terms that they make zero left out, and every loop inside `compute`
/// written out.
pub(super) fn straight_line(
    s: &mut Schedule,
    program: &CellProgram,
    compute: &Loop,
) -> Result<(), TransformError> {
    let kernel = s.kernel().clone();
    tables_to(s, &kernel, AddressSpace::Literal)?;
    let loops = loops_in(s.kernel(), compute.name());
    // of tables whose entries are numbers in the code; others would be compared at run time
    if program.shares_tables {
        let insns: Vec<String> = s.kernel().insns.values().map(|i| i.name.clone()).collect();
        for insn in insns {
            // refused where there is no product with a table that has zeros
            let _ = s.apply(SkipZeroTerms::insn(insn));
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
pub fn staged_cells(
    kernel: &Kernel,
    program: &CellProgram,
    args: &StagedCells,
) -> Result<(Kernel, Recipe), StrategyError> {
    args.check()?;
    applied(kernel, |s| {
        stage(s, program, args)?;
        if args.constant_tables {
            constant_tables(s, kernel)?;
        }
        Ok(())
    })
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

/// Gather and scatter along work-items.
fn stage(s: &mut Schedule, program: &CellProgram, args: &StagedCells) -> Result<Ends, TransformError> {
    let cells_of_group = length(args.work_group);
    let mut staged: Vec<Staged> = Vec::new();
    for result in &program.results {
        let columns = result.scatter_columns.as_ref().zip(result.columns);
        staged.push(stage_results(s, &result.commits, &result.scatter, columns, "commit_dof")?);
    }
    // all commits behind what is computed
    if let [others @ .., last] = &staged[..]
        && !others.is_empty()
    {
        s.apply(MoveInsns::before(others.iter().map(|staged| &staged.rows), &last.rows))?;
    }
    let components = roll_gathers(s, program)?;
    // a loop over the cells of a group for each gather, for the transforms, for the computation and
    // for each commit
    let order = gathers_first(s, &program.cells.cell, program)?;
    let gathers = &program.gathers;
    let stem = |k: &usize| format!("cells_{}", program.function(*k));
    let mut stems: Vec<String> = order.gathers.iter().map(stem).collect();
    let transform = order.transform.as_ref().map(|_| stems.len());
    stems.extend(transform.map(|_| "cell_transform".into()));
    let compute = stems.len();
    stems.push("cell_compute".into());
    stems.extend(staged.iter().map(|_| "cell_commit".into()));
    stems.extend(program.sums.iter().map(|sum| format!("{}_sum", sum.scalar)));
    let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
    let [group, first] = s.split_as(&program.cells.cell, cells_of_group, ["cell_group", stems[0]])?;
    for k in program.evaluated() {
        s.expand(&gathers[k].array, [&first])?;
    }
    for array in staged.iter().map(|staged| &staged.array).chain(program.sums.iter().map(|sum| &sum.scalar)) {
        s.expand(array, [&first])?;
    }
    let parts = order.gathers.iter().map(|k| String::from(&gathers[*k].dofs));
    let parts = parts.chain(order.transform).chain([order.first]);
    let parts = parts.skip(1).chain(staged.iter().map(|staged| String::from(&staged.rows)));
    let parts = parts.chain(program.sums.iter().map(|sum| String::from(&sum.commit)));
    let mut cells = vec![first.clone()];
    cells.extend(s.distribute_as(&first, parts, &stems[1..])?);

    // both ends by all work-items, one degree of freedom after the other
    let work_group = [cells_of_group, 1];
    let (mut flats, mut tiles): (Vec<Flat>, Vec<Array>) = (Vec::new(), Vec::new());
    for k in program.evaluated() {
        let g = &gathers[k];
        let fetch = PrefetchArray::new(&g.array, &cells[compute], AddressSpace::Private);
        tiles.push(s.prefetch_as(fetch, &format!("{}_tile", g.array))?.0);
        let place = order.gathers.iter().position(|o| *o == k).unwrap_or(0);
        let nest = CellNest {
            array: &g.array,
            cells: &cells[place],
            rows: &g.dofs,
            component: components[k].as_ref(),
            shape: [g.count, g.insns.len() as i64],
        };
        flats.push(flat(s, &nest, g.dofs.name(), work_group)?);
    }
    for (k, (staged, result)) in staged.iter().zip(&program.results).enumerate() {
        let commit = &cells[compute + 1 + k];
        flats.push(flat(s, &staged.nest(commit, result.count), "commit", work_group)?);
        if program.cells.commits.contains(&staged.commit) {
            make_atomic(s, std::slice::from_ref(&staged.commit))?;
        }
    }
    // a functional: one update of it a group
    for terms in cells.iter().skip(compute + 1 + staged.len()) {
        s.make(ReduceInTree::new(terms.name()).by_work_items(AxisTag::Local(0)))?;
    }
    let sums: Vec<Statement> = program.sums.iter().map(|sum| sum.commit.clone()).collect();
    make_atomic(s, &sums)?;
    let few = |f: &Flat| f.has_few_rounds(cells_of_group, work_group).then(|| f.round.clone());
    s.tag_all(&flats.iter().filter_map(few).collect::<Vec<_>>(), AxisTag::Unrolled)?;
    s.tag(&group, AxisTag::Group(0))?;
    let own = transform.into_iter().chain([compute]).map(|k| cells[k].clone());
    let items: Vec<Loop> = flats.iter().map(|f| f.items[0].clone()).chain(own).collect();
    s.tag_all(&items, AxisTag::Local(0))?;
    let results = staged.into_iter().map(|s| s.array).collect();
    Ok(Ends { compute: cells[compute].clone(), tiles, results })
}
