//! Contractions axis by axis, a work-item for each line of points.

use super::blocks::statements;
use super::factorised_cells::tensor_dimension;
use super::factorised_planes::OWN_SUMS;
use super::line_tables::place_tables;
use super::single_cell::make_atomic;
use super::sum_factorise::{
    Factorised, TensorContraction, check_factorable, factorise_in, tensor_contractions, with_split_sums,
};
use super::summed_cells::is_functional;
use super::{is_gathered, length, operands};
use crate::strategy::{Arguments, Question, Stopped, Strategy, StrategyError, Work};
use kingpost_forms::program::stage;
use kingpost_ir::{AddressSpace, Affine, AxisTag, Direction, Kernel, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::draw::loops_of;
use kingpost_primitives::primitives::{
    AliasStorage, BufferWrites, MoveInsns, PadArray, PrefetchArray, SetAddressSpace, SplitArrayAxis, Tag,
    TransposeArrayAxes,
};
use kingpost_primitives::schedule::{Array, Loop};
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Where a work-group copies to what it reads of the mesh at points, so that it is there when it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactorCopy {
    /// Registers of the work-item that reads it.
    Private,
    /// Local memory.
    Local,
}

/// What a kernel needs in [`FactorisedLines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineSizes {
    /// Most work-items that a cell takes.
    pub work_items: u64,
    /// Evaluations whose lines are in registers, at other points than nodes.
    pub evaluations: usize,
}

/// What a kernel needs in [`FactorisedLines`]; none for one without contractions with tensor
/// products.
#[must_use]
pub fn line_sizes(kernel: &Kernel) -> Option<LineSizes> {
    let all = tensor_contractions(&with_split_sums(kernel));
    let width = all.iter().flat_map(|c| c.sizes).max()?;
    let evaluates = |c: &&TensorContraction| {
        let [points, nodes] = c.sizes;
        c.rows_first && nodes > OWN_SUMS && points != nodes
    };
    let evaluations = all.iter().filter(evaluates).count();
    Some(LineSizes { work_items: u64::from(width).pow(all[0].dim - 1), evaluations })
}

/// Computes contractions with tensor products axis by axis
/// ([`sum_factorise`](super::sum_factorise)), a few cells a work-group. A work-item contracts a line
/// of points along one axis after the other: it holds the line in registers, and the entries of the
/// matrix are literals or operands of constant memory.
///
/// Between two axes the sums of a cell are in local memory. What is gathered, computed at points and
/// scattered stays with the work-item of its line. Sums over the vertices of a cell are computed by
/// every work-item for itself.
///
/// # Errors
/// A kernel without such a contraction, or with some of two axes and some of three, or a step that
/// was refused: the mapping of one cell to a work-item takes the others.
///
/// # Source
/// Świrydowicz et al. 2019, §6, with lines instead of layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorisedLines {
    /// Cells of a group.
    pub cells: u64,
    /// Whether entries of matrices are literals, or else operands of constant memory.
    pub literal_tables: bool,
    /// Where factors at points are copied to before anything else; none reads them where they are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factors: Option<FactorCopy>,
}

impl fmt::Display for FactorisedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = if self.literal_tables { ", literal tables" } else { "" };
        let copied = match self.factors {
            None => "",
            Some(FactorCopy::Private) => ", factors in registers",
            Some(FactorCopy::Local) => ", factors in local memory",
        };
        write!(f, "factorised sums by lines, {} cells a group{tables}{copied}", self.cells)
    }
}

impl Arguments for FactorisedLines {
    const NAME: &'static str = "factorised_lines";
    const SUMMARY: &'static str =
        "Sums of tensor products axis by axis, a work-item for each line of points.";
}

/// Most work-items of a group that share lines; one cell may take more.
const MAX_OF_LINES: u64 = 256;

impl Strategy for FactorisedLines {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        check_factorable(form.kernel())?;
        let all = tensor_contractions(&with_split_sums(form.kernel()));
        if all.iter().any(|c| c.dim != all[0].dim) {
            return Err(StrategyError::MixedTensors.into());
        }
        let (cells, s) = (form.cell_loop()?, on.schedule());
        let nests = factorise_in(s, form.kernel(), slowest_first)?;
        let mut lines = Lines::of(s, &nests, cells.cell.name());
        for nest in &nests {
            lines.cut(s, nest)?;
        }
        lines.stages_together(s)?;
        lines.split_points(s)?;
        lines.fuse_points(s)?;
        lines.share(s)?;
        make_atomic(s, &cells.commits)?;
        Ok(lines.place(s, self)?)
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let kernel = question.form.kernel();
        if tensor_dimension(kernel).is_none() || is_functional(question.form) {
            return Vec::new();
        }
        let items = line_sizes(kernel).map_or(1, |lines| lines.work_items);
        let of_group = [1, 2, 3, 4, 5, 8, 16].into_iter().filter(|cells| cells * items <= MAX_OF_LINES);
        let with = |cells| [false, true].map(|literal_tables| Self { cells, literal_tables, factors: None });
        of_group.flat_map(with).collect()
    }
}

/// Whether the outermost axis of the columns is contracted first. Work-items then gather and scatter
/// neighbours, and a line of points is one for evaluations and for products alike.
fn slowest_first(c: &TensorContraction) -> bool {
    c.rows_first || c.reversed
}

/// A nest over lines: the sums along one axis of a contraction, or what is done at all points.
#[derive(Clone)]
struct Stage {
    /// The loops of the work-items, `l.0` first; the last one is the outermost.
    items: Vec<String>,
    /// The loops that a work-item writes out.
    line: Vec<String>,
    /// What is computed, unless it is the contraction's result.
    sums: Option<String>,
    /// The loops of the work-items that read lines, likewise.
    reads: Vec<String>,
}

impl Stage {
    /// The loops of the nest, outermost first.
    fn loops(&self) -> impl Iterator<Item = &String> {
        self.items.iter().rev().chain(&self.line)
    }

    /// The loop that holds all of it.
    fn nest(&self) -> &str {
        self.loops().next().map_or("", String::as_str)
    }

    /// Gives the loops that read a line a nest of their own before it.
    fn read_first(&mut self, s: &mut Schedule, line: &Array) -> Result<(), TransformError> {
        let Some(mut rest) = self.line.first().cloned() else { return Ok(()) };
        self.reads = self.items.clone();
        for item in &mut self.items {
            s.expand(line, [&*item])?;
            let parts = s.distribute(&*item, [&rest])?;
            rest = parts[0].to_string();
            item.clone_from(&rest);
        }
        Ok(())
    }
}

/// A contraction as stages.
struct Staged {
    stages: Vec<Stage>,
    /// Whether it evaluates a function at points.
    evaluates: bool,
    /// Whether every work-item computes its sums for itself.
    own: bool,
}

/// An array over all points or nodes of a cell.
#[derive(Clone, Copy)]
struct Extent {
    /// Their number along an axis.
    along: i64,
    /// Whether a line runs along the innermost axis.
    line_inside: bool,
}

/// What becomes of the loops of a cell.
struct Lines<'a> {
    cell: &'a str,
    dim: u32,
    arrays: BTreeMap<String, Extent>,
    own: BTreeSet<String>,
    contractions: Vec<Staged>,
    /// Loops over all points or nodes of a cell.
    points: Vec<Stage>,
    /// Inputs over points that they read.
    factors: Vec<(String, Extent)>,
    /// Loops that a work-item writes out.
    unrolled: Vec<String>,
}

impl<'a> Lines<'a> {
    fn of(s: &Schedule, nests: &[Factorised], cell: &'a str) -> Self {
        let kernel = s.kernel();
        let (mut arrays, mut own, mut dim) = (BTreeMap::new(), BTreeSet::new(), 2);
        for Factorised { contraction: c, updates, .. } in nests {
            dim = c.dim;
            let insn = |name: &String| kernel.insn(name).map(|id| &kernel.insns[id]);
            // points are ordered against nodes, or else lines of points run along their last axis
            let extent = |along: u32, points: bool| Extent {
                along: i64::from(along),
                line_inside: points && !c.reversed,
            };
            if let Some(last) = updates.last().and_then(insn) {
                arrays.insert(kernel.vars[last.lhs.var].name.clone(), extent(c.sizes[0], c.rows_first));
            }
            let first = updates.first().and_then(insn);
            for var in first.into_iter().flat_map(|first| operands(kernel, first)) {
                if c.sizes[1] <= OWN_SUMS && is_gathered(kernel, var) {
                    own.insert(c.update.clone());
                    continue;
                }
                arrays.insert(kernel.vars[var].name.clone(), extent(c.sizes[1], !c.rows_first));
            }
        }
        Self {
            cell,
            dim,
            arrays,
            own,
            contractions: Vec::new(),
            points: Vec::new(),
            factors: Vec::new(),
            unrolled: Vec::new(),
        }
    }

    /// Gives the sums along each axis a nest of their own.
    fn cut(&mut self, s: &mut Schedule, nest: &Factorised) -> Result<(), TransformError> {
        let c = &nest.contraction;
        let own = self.own.contains(&c.update);
        // from the inside out: a loop over rows holds the sums of its axis and all later ones
        for depth in (0..nest.sums.len()).rev() {
            let Some(rows) = self.inside(s, &nest.updates[depth]).get(depth).cloned() else { continue };
            for sums in &nest.sums[depth..] {
                s.expand(sums, [&rows])?;
            }
            s.distribute(&rows, statements(s.kernel(), &rows).into_iter().skip(1))?;
        }
        let mut stages = Vec::with_capacity(nest.updates.len());
        for (k, update) in nest.updates.iter().enumerate() {
            // rows of earlier axes, the line, columns that are left, and the column that is contracted
            let loops = self.inside(s, update);
            let [.., _, term] = &loops[..] else { continue };
            let last = k + 1 == nest.updates.len();
            let at_line = loops.iter().enumerate().filter(|(i, _)| *i != k && i + 1 != loops.len());
            let mut items: Vec<String> = at_line.map(|(_, l)| l.clone()).collect();
            let mut line = vec![loops[k].clone()];
            if own && !last {
                items = loops[..=k].to_vec();
                line = loops[k + 1..loops.len() - 1].to_vec();
            } else if k > 0 && !last {
                // neighbours go along the axis that is contracted last, or was
                items.reverse();
            }
            self.unrolled.extend(line.iter().chain([term]).cloned());
            let order: Vec<&String> = items.iter().rev().chain(&line).collect();
            s.reorder(order.iter().map(|l| l.as_str()))?;
            let sums = nest.sums.get(k).map(|array| array.name().to_owned());
            stages.push(Stage { items, line, sums, reads: Vec::new() });
        }
        self.contractions.push(Staged { stages, evaluates: c.rows_first, own });
        Ok(())
    }

    /// The loops around an instruction inside that over cells.
    fn inside(&self, s: &Schedule, insn: &str) -> Vec<String> {
        let loops = loops_of(s.kernel(), insn);
        loops.into_iter().skip_while(|l| l != self.cell).skip(1).collect()
    }

    /// Moves the sums of an axis of all evaluations, or of all products, together.
    fn stages_together(&self, s: &mut Schedule) -> Result<(), TransformError> {
        for group in self.contractions.chunk_by(|a, b| a.evaluates == b.evaluates) {
            let [first, others @ ..] = group else { continue };
            for k in 1..first.stages.len() {
                let same = others.iter().filter_map(|c| Some(c.stages.get(k - 1)?.nest()));
                let same: Vec<&str> = same.collect();
                if !same.is_empty() {
                    s.apply(MoveInsns::before(same, first.stages[k].nest()))?;
                }
            }
        }
        Ok(())
    }

    /// Splits the loops over all points or nodes of a cell, and the axes of what they access, by
    /// axes of the cell.
    fn split_points(&mut self, s: &mut Schedule) -> Result<(), TransformError> {
        for name in statements(s.kernel(), self.cell) {
            let Some(extent) = self.points_of(s.kernel(), &name) else { continue };
            self.note_factors(s.kernel(), &name, extent);
            let stage = self.split_by_axes(s, name, extent)?;
            self.points.push(stage);
        }
        for (array, extent) in &self.arrays {
            let kernel = s.kernel();
            if !kernel.var(array).is_some_and(|v| kernel.vars[v].kind == VarKind::Temporary) {
                continue;
            }
            for k in 0..self.dim - 1 {
                s.apply(SplitArrayAxis::new(array, k, extent.along.pow(self.dim - 1 - k)))?;
            }
        }
        Ok(())
    }

    /// Splits a loop over all points or nodes of a cell by the axes of the cell.
    fn split_by_axes(&self, s: &mut Schedule, name: String, extent: Extent) -> Result<Stage, TransformError> {
        let (mut digits, mut rest) = (Vec::new(), name);
        for k in (1..self.dim).rev() {
            let [outer, inner] = s.split(&rest, extent.along.pow(k))?;
            digits.push(outer.to_string());
            rest = inner.to_string();
        }
        digits.push(rest);
        if !extent.line_inside {
            digits.reverse();
        }
        let line = digits.split_off(digits.len() - 1);
        s.reorder(digits.iter().rev().chain(&line))?;
        Ok(Stage { items: digits, line, sums: None, reads: Vec::new() })
    }

    /// Copies the factors of a cell to other memory before anything else, each by the work-item of its
    /// line.
    fn copy_factors(&mut self, s: &mut Schedule, item: &Loop, to: FactorCopy) -> Result<(), TransformError> {
        let space = match to {
            FactorCopy::Private => AddressSpace::Private,
            FactorCopy::Local => AddressSpace::Local,
        };
        let first = statements(s.kernel(), item.name()).into_iter().next();
        for (array, extent) in std::mem::take(&mut self.factors) {
            let fetch = PrefetchArray::new(&array, item, space);
            let (copy, loops) = s.prefetch_as(fetch, &format!("{array}_copy"))?;
            let [points] = &loops[..] else { continue };
            if let Some(first) = &first {
                s.apply(MoveInsns::before([points.name()], first))?;
            }
            let stage = self.split_by_axes(s, points.to_string(), extent)?;
            for k in 0..self.dim - 1 {
                s.apply(SplitArrayAxis::new(&copy, k, extent.along.pow(self.dim - 1 - k)))?;
            }
            self.points.push(stage);
        }
        Ok(())
    }

    /// Notes the inputs `[cells, points]` that a loop over points reads.
    fn note_factors(&mut self, kernel: &Kernel, iname: &str, extent: Extent) {
        let Some(id) = kernel.iname(iname) else { return };
        let is_factor = |v: &Variable| {
            let n = v.shape.last().and_then(Affine::as_constant);
            let given = matches!(v.kind, VarKind::Argument(Direction::In)) && v.ty.is_real();
            given && v.shape.len() == 2 && n == Some(extent.along.pow(self.dim))
        };
        for (insn, loops) in kernel.schedule() {
            let insn = &kernel.insns[insn];
            if !loops.contains(&id) || insn.tags.iter().any(|tag| tag == stage::GATHER) {
                continue;
            }
            for access in insn.reads() {
                let var = &kernel.vars[access.var];
                if is_factor(var) && !self.factors.iter().any(|(name, _)| *name == var.name) {
                    self.factors.push((var.name.clone(), extent));
                }
            }
        }
    }

    /// The array over points or nodes whose elements a loop runs over.
    fn points_of(&self, kernel: &Kernel, iname: &str) -> Option<Extent> {
        let id = kernel.iname(iname)?;
        let around = kernel.schedule().into_iter().filter(|(_, loops)| loops.last() == Some(&id));
        let accessed = around.flat_map(|(insn, _)| {
            let insn = &kernel.insns[insn];
            insn.reads().into_iter().chain([&insn.lhs]).map(|a| a.var).collect::<Vec<_>>()
        });
        let mut extents = accessed.filter_map(|v| self.arrays.get(&kernel.vars[v].name).copied());
        extents.next()
    }

    /// Fuses neighbouring nests over points, so that a point is done before the next one.
    fn fuse_points(&mut self, s: &mut Schedule) -> Result<(), TransformError> {
        let own = self.contractions.iter().filter(|c| c.own).filter_map(|c| c.stages.last());
        let all: Vec<Stage> = self.points.drain(..).chain(own.cloned()).collect();
        let mut kept: Option<Stage> = None;
        for name in statements(s.kernel(), self.cell) {
            let next = all.iter().find(|stage| stage.nest() == name);
            if let (Some(first), Some(next)) = (&kept, next) {
                let mut fused = s.clone();
                let mut levels = first.loops().zip(next.loops());
                if levels.all(|(a, b)| fused.fuse(a, b).is_ok()) {
                    *s = fused;
                    continue;
                }
            }
            self.points.extend(kept.take());
            kept = next.cloned();
        }
        self.points.extend(kept);
        Ok(())
    }

    /// Puts the sums between two axes into local memory; a line is written once, and read once.
    fn share(&mut self, s: &mut Schedule) -> Result<(), TransformError> {
        for staged in self.contractions.iter_mut().filter(|c| !c.own) {
            for k in 1..staged.stages.len() {
                let Some([written, stage]) = staged.stages.get_disjoint_mut([k - 1, k]).ok() else {
                    continue;
                };
                let (Some(sums), Some(line)) = (&written.sums, written.line.first()) else { continue };
                s.apply(BufferWrites::new(sums, line, AddressSpace::Private))?;
                s.apply(SetAddressSpace::new(sums, AddressSpace::Local))?;
                // the axis of neighbours goes inside
                match (self.dim, k) {
                    (3, 1) => s.apply(TransposeArrayAxes::new(sums, [0, 2, 1])).map(drop)?,
                    (3, _) => s.apply(TransposeArrayAxes::new(sums, [1, 2, 0])).map(drop)?,
                    _ => {}
                }
                let fetch = PrefetchArray::new(sums, &stage.items[0], AddressSpace::Private);
                let (line, loops) = s.prefetch_as(fetch, &format!("{sums}_line"))?;
                self.unrolled.extend(loops.iter().map(Loop::to_string));
                stage.read_first(s, &line)?;
            }
        }
        // all work-items have read before sums take the place of what was read
        for group in self.contractions.chunk_by(|a, b| a.evaluates == b.evaluates) {
            let mut reading = group.iter().filter(|c| !c.own);
            let Some(first) = reading.next() else { continue };
            for k in 1..first.stages.len() {
                let read = |c: &Staged| c.stages.get(k)?.reads.last().cloned();
                let others: Vec<String> = reading.clone().filter_map(read).collect();
                if !others.is_empty() {
                    s.apply(MoveInsns::before(others, first.stages[k].nest()))?;
                }
            }
        }
        Ok(())
    }

    /// Places cells, lines and matrices.
    fn place(&mut self, s: &mut Schedule, args: &FactorisedLines) -> Result<(), TransformError> {
        let names = ["group", "item"].map(|end| format!("{}_{end}", self.cell));
        let [group, item] = s.split_as(self.cell, length(args.cells), [&names[0], &names[1]])?;
        if let Some(to) = args.factors {
            self.copy_factors(s, &item, to)?;
        }
        let is_local = |v: &&Variable| v.kind == VarKind::Temporary && v.space == AddressSpace::Local;
        let local: Vec<String> = s.kernel().vars.values().filter(is_local).map(|v| v.name.clone()).collect();
        for array in &local {
            s.expand(array, [&item])?;
            let inner = s.kernel().var(array).and_then(|v| s.kernel().vars[v].shape.last()?.as_constant());
            if inner.is_some_and(|n| n % 2 == 0) {
                s.apply(PadArray::new(array, self.dim, 1))?;
            }
        }
        s.tag(&group, AxisTag::Group(0))?;
        s.tag(&item, AxisTag::Local(u8::try_from(self.dim - 1).unwrap_or(2)))?;
        let mut axes = [Vec::new(), Vec::new()];
        let mut unrolled = std::mem::take(&mut self.unrolled);
        // the last nest of a sum of a work-item's own is one of the nests over points
        let shared = |c: &Staged| c.stages.len().saturating_sub(usize::from(c.own));
        let all = self.contractions.iter().flat_map(|c| &c.stages[..shared(c)]);
        for stage in all.chain(&self.points) {
            for items in [&stage.items, &stage.reads] {
                items.iter().enumerate().for_each(|(axis, l)| axes[axis].push(l.clone()));
            }
            unrolled.extend(stage.line.iter().cloned());
        }
        for (axis, loops) in (0..).zip(&axes) {
            if !loops.is_empty() {
                s.apply(Tag::all(loops, AxisTag::Local(axis)))?;
            }
        }
        let there: BTreeSet<String> =
            unrolled.into_iter().filter(|l| s.kernel().iname(l).is_some()).collect();
        s.apply(Tag::all(there, AxisTag::Unrolled))?;
        place_tables(s, self.points.iter().map(Stage::nest), args.literal_tables)?;
        self.share_storage(s);
        Ok(())
    }

    /// Lets the sums of a contraction take the place of those before them, and the sums of products
    /// that of sums of evaluations.
    fn share_storage(&self, s: &mut Schedule) {
        let of = |evaluates: bool| {
            let shared = self.contractions.iter().filter(move |c| !c.own && c.evaluates == evaluates);
            shared.map(|c| c.stages.iter().filter_map(|stage| stage.sums.as_ref()).collect::<Vec<_>>())
        };
        let (mut evaluations, mut products) = (of(true), of(false));
        for number in 0.. {
            let next = [evaluations.next(), products.next()];
            let arrays: Vec<&String> = next.iter().flatten().flatten().copied().collect();
            if arrays.is_empty() {
                return;
            }
            let name = s.fresh(&format!("sums_{number}"));
            if arrays.len() > 1 {
                // lives that meet keep arrays of their own
                let _kept = s.apply(AliasStorage::new(arrays, name));
            }
        }
    }
}
