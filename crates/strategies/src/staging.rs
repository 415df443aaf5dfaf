//! Gather and scatter of a group's cells through local memory, along consecutive work-items.

use super::blocks::loops_in;
use super::{StrategyError, length};
use kingpost_forms::program::{CellProgram, Gather};
use kingpost_ir::AddressSpace;
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::primitives::{
    ExpandArray, JoinArrayAxes, JoinArrays, MoveInsns, PadArray, PeelIname, SetAddressSpace, ShiftIname,
};
use kingpost_primitives::schedule::{Array, Loop, Statement};
use kingpost_primitives::{Schedule, TransformError};

/// Most rounds of a gather that are written out.
const MAX_ROUNDS: i64 = 64;

/// What the scatter adds, stored before a loop of its own commits it.
pub(super) struct Staged {
    /// The array of what is added.
    pub(super) array: Array,
    /// The loop of the commits over the rows.
    pub(super) rows: Loop,
    /// The loop inside it over the components, if there are several, or over columns.
    pub(super) component: Option<Loop>,
    /// Number of components, or of columns.
    pub(super) components: i64,
    /// The instruction that commits.
    pub(super) commit: Statement,
}

/// The loop `scatter` stores what it adds, and a loop after it commits that: all components of a
/// degree of freedom in a loop, or all columns of a row.
pub(super) fn stage_results(
    s: &mut Schedule,
    commits: &[Statement],
    scatter: &Loop,
    columns: Option<(&Loop, i64)>,
    rows: &str,
) -> Result<Staged, TransformError> {
    let stems: Vec<String> = match commits.len() {
        1 => vec!["staged".into()],
        n => (0..n).map(|k| format!("staged_{k}")).collect(),
    };
    let mut parts = Vec::new();
    let mut sets = Vec::new();
    for (insn, stem) in commits.iter().zip(&stems) {
        let (part, set) = s.stage(insn, stem)?;
        parts.push(part);
        sets.push(set);
    }
    let commit = commits[0].clone();
    let (mut array, mut component, mut first) = (parts[0].clone(), None, String::from(&commit));
    if parts.len() > 1 {
        s.apply(MoveInsns::before(&sets[1..], &commit))?;
        array = Array::named(s.fresh("staged"));
        s.apply(JoinArrays::new(&parts, &array, 0))?;
        let rolled = s.roll(commits, "commit_component")?;
        first = String::from(&rolled);
        component = Some(rolled);
    }
    let Some((columns, n)) = columns else {
        s.apply(ExpandArray::new(&array, [scatter]))?;
        let rows = s.distribute_one(scatter, first, rows)?;
        return Ok(Staged { array, rows, component, components: commits.len() as i64, commit });
    };
    s.apply(ExpandArray::new(&array, [scatter, columns]))?;
    let column = s.distribute_one(columns, first, "commit_column")?;
    let rows = s.distribute_one(scatter, &column, rows)?;
    Ok(Staged { array, rows, component: Some(column), components: n, commit })
}

impl Staged {
    /// The commit of `rows` rows in a loop over cells.
    pub(super) fn nest<'a>(&'a self, cells: &'a Loop, rows: i64) -> CellNest<'a> {
        let shape = [rows, self.components];
        CellNest { array: &self.array, cells, rows: &self.rows, component: self.component.as_ref(), shape }
    }
}

/// The components of each function are gathered in a loop; returns it, where there are several.
pub(super) fn roll_gathers(
    s: &mut Schedule,
    program: &CellProgram,
) -> Result<Vec<Option<Loop>>, TransformError> {
    let roll = |g: &Gather| match g.insns.len() {
        ..=1 => Ok(None),
        _ => s.roll(&g.insns, &format!("{}_component", g.dofs)).map(Some),
    };
    program.gathers.iter().map(roll).collect()
}

/// A nest over cells and the elements of an array of a cell.
pub(super) struct CellNest<'a> {
    pub(super) array: &'a Array,
    pub(super) cells: &'a Loop,
    pub(super) rows: &'a Loop,
    pub(super) component: Option<&'a Loop>,
    /// Number of rows and of components.
    pub(super) shape: [i64; 2],
}

/// Loops of a nest that was dealt out to the work-items of a group in rounds.
pub(super) struct Flat {
    pub(super) round: Loop,
    /// The work-items along `l.0`, and along `l.1` if the group has two axes.
    pub(super) items: Vec<Loop>,
    /// Number of elements of a cell.
    words: i64,
}

/// Deals a nest over cells out to the work-items of a group `[l.0, l.1]`, one element after the
/// other, its rows in [`parts`](deal_parts), and keeps its array in local memory. Names begin with
/// `stem`.
pub(super) fn flat(
    s: &mut Schedule,
    nest: &CellNest<'_>,
    stem: &str,
    items: [i64; 2],
    parts: &[u64],
) -> Result<Vec<Flat>, TransformError> {
    let [rows, components] = nest.shape;
    to_local(s, nest.array, rows, components)?;
    deal_parts(s, nest, stem, items, parts)
}

/// As [`deal`], the first rows, those that follow them and so on each separately: `parts` says how many,
/// and the last part is what is left. Rows of the first part are dealt out cell by cell, those of
/// the others row by row. Without parts, all rows are dealt out row by row.
///
/// Degrees of freedom of entities of one dimension are such a part. If they are numbered one after
/// the other, consecutive work-items then update whole sectors of memory, where a cell's vertices,
/// edges and interior begin one each. Cells that follow each other share vertices: cell by cell, no
/// two of a round update the same one.
pub(super) fn deal_parts(
    s: &mut Schedule,
    nest: &CellNest<'_>,
    stem: &str,
    items: [i64; 2],
    parts: &[u64],
) -> Result<Vec<Flat>, TransformError> {
    let Some((_, first)) = parts.split_last() else { return Ok(vec![deal(s, nest, stem, items)?]) };
    let [all, components] = nest.shape;
    let (mut rows, rest, mut left) = (Vec::new(), nest.rows.clone(), all);
    for part in first {
        let count = length(*part);
        rows.push((s.make(PeelIname::first(&rest, count))?, count));
        s.apply(ShiftIname::new(&rest, -count))?;
        left -= count;
    }
    rows.push((rest, left));
    let behind: Vec<String> = rows.iter().skip(1).map(|(row, _)| String::from(row)).collect();
    let stems: Vec<&str> = behind.iter().map(|_| nest.cells.name()).collect();
    let mut cells = vec![nest.cells.clone()];
    if !behind.is_empty() {
        cells.extend(s.distribute_as(nest.cells, behind, &stems)?);
    }
    let mut dealt = Vec::new();
    for (k, ((row, count), cell)) in rows.iter().zip(&cells).enumerate() {
        let component = nest.component.and_then(|_| loops_in(s.kernel(), row).into_iter().next());
        let component = component.as_ref();
        let stem = format!("{stem}_{k}");
        if k == 0 {
            s.interchange(cell, row)?;
            let inner = component.map(|component| s.join(cell, component)).transpose()?;
            let joined = s.join(row, inner.as_ref().unwrap_or(cell))?;
            dealt.push(deal_loop(s, &joined, count * components, &stem, items)?);
        } else {
            let (array, shape) = (nest.array, [*count, components]);
            let part = CellNest { array, cells: cell, rows: row, component, shape };
            dealt.push(deal(s, &part, &stem, items)?);
        }
    }
    Ok(dealt)
}

/// Refuses parts that are not all of the rows.
pub(super) fn check_parts(parts: &[u64], rows: impl IntoIterator<Item = i64>) -> Result<(), StrategyError> {
    if parts.is_empty() {
        return Ok(());
    }
    if parts.contains(&0) {
        return Err(StrategyError::Parameter {
            symbol: "a part of the degrees of freedom".into(),
            found: 0,
            needed: "at least one".into(),
        });
    }
    let sum = parts.iter().fold(0_u64, |sum, part| sum.saturating_add(*part));
    match rows.into_iter().find(|rows| u64::try_from(*rows) != Ok(sum)) {
        None => Ok(()),
        Some(rows) => Err(StrategyError::Parameter {
            symbol: "the sum of the parts of the degrees of freedom".into(),
            found: sum,
            needed: format!("{rows}, those of a component in a cell"),
        }),
    }
}

/// As [`flat`], of an array wherever it is.
pub(super) fn deal(
    s: &mut Schedule,
    nest: &CellNest<'_>,
    stem: &str,
    items: [i64; 2],
) -> Result<Flat, TransformError> {
    let [rows, components] = nest.shape;
    let mut row = nest.rows.clone();
    if let Some(component) = nest.component {
        row = s.join(&row, component)?;
    }
    let joined = s.join(nest.cells, &row)?;
    deal_loop(s, &joined, rows * components, stem, items)
}

/// Deals a loop over all elements out, of which a cell has `words`.
fn deal_loop(
    s: &mut Schedule,
    joined: &Loop,
    words: i64,
    stem: &str,
    [l0, l1]: [i64; 2],
) -> Result<Flat, TransformError> {
    let [round, name0, name1] = ["round", "l0", "l1"].map(|end| format!("{stem}_{end}"));
    if l1 == 1 {
        let [round, item] = s.split_as(joined, l0, [&round, &name0])?;
        return Ok(Flat { round, items: vec![item], words });
    }
    let [round, group] = s.split_as(joined, l0 * l1, [&round, &format!("{stem}_flat")])?;
    let [outer, inner] = s.split_as(group, l0, [&name1, &name0])?;
    Ok(Flat { round, items: vec![inner, outer], words })
}

impl Flat {
    /// Whether the rounds of `cells` cells are few enough to be written out, so that the reads of a
    /// round need not wait for those of the one before.
    pub(super) fn has_few_rounds(&self, cells: i64, group: [i64; 2]) -> bool {
        let items = group[0] * group[1];
        (cells * self.words + items - 1) / items <= MAX_ROUNDS
    }
}

/// An array of cells, each a row, to local memory. Work-items that read neighbouring cells would
/// meet in the same banks if a row had an even number of words.
pub(super) fn to_local(
    s: &mut Schedule,
    array: &Array,
    rows: i64,
    components: i64,
) -> Result<(), TransformError> {
    s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
    if components > 1 {
        s.apply(JoinArrayAxes { var: array.into(), axis: 1 })?;
    }
    if (rows * components) % 2 == 0 {
        s.apply(PadArray { var: array.into(), axis: 1, by: 1 })?;
    }
    Ok(())
}
