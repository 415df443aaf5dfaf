//! Contractions axis by axis, the work-items of a group sharing a cell.

use super::blocks::statements;
use super::factorised_cells::tensor_dimension;
use super::single_cell::make_atomic;
use super::sum_factorise::{
    Factorised, check_factorable, factorise_all, tensor_contractions, with_split_sums,
};
use super::summed_cells::is_functional;
use super::{is_gathered, length, operands};
use crate::strategy::{Arguments, Question, Stopped, Strategy, Work};
use kingpost_ir::{AddressSpace, AxisTag, Kernel, VarKind, Variable};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::draw::loops_of;
use kingpost_primitives::primitives::{
    BufferWrites, ContractArray, PrefetchArray, SetAddressSpace, SplitArrayAxis, Tag,
};
use kingpost_primitives::{Schedule, TransformError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Columns along an axis up to which every work-item computes all sums alone: those of the
/// vertices of a cell.
pub(super) const OWN_SUMS: u32 = 2;

/// Most work-items that a cell takes in [`FactorisedPlanes`]; none for a kernel without
/// contractions with tensor products.
#[must_use]
pub fn work_items_of_planes(kernel: &Kernel) -> Option<u64> {
    let all = tensor_contractions(&with_split_sums(kernel));
    let width = all.iter().flat_map(|c| c.sizes).max()?;
    Some(u64::from(width).pow(2))
}

/// Computes contractions with tensor products axis by axis
/// ([`sum_factorise`](super::sum_factorise)), a few cells a work-group. A work-item computes what
/// belongs to a row of points across the layers of a cube, or to a point of a square.
///
/// Sums and what they are taken of are in local memory, as are the tables. Sums over the vertices of
/// a cell are computed by every work-item for itself. Evaluations and the functions of a point are
/// computed layer by layer, so that a work-item holds values of one point at a time.
///
/// # Errors
/// A kernel without such a contraction, or a step that was refused: the mapping of one cell to a
/// work-item takes the others.
///
/// # Source
/// Świrydowicz et al. 2019, §6, with the sums of a layer in local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactorisedPlanes {
    /// Cells of a group.
    pub cells: u64,
}

impl fmt::Display for FactorisedPlanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "factorised sums by layers, {} cells a group", self.cells)
    }
}

impl Arguments for FactorisedPlanes {
    const NAME: &'static str = "factorised_planes";
    const SUMMARY: &'static str =
        "Sums of tensor products axis by axis, a work-item for each point of a layer.";
}

impl Strategy for FactorisedPlanes {
    fn apply(&self, on: &mut Work<'_>) -> Result<(), Stopped> {
        let form = on.form();
        check_factorable(form.kernel())?;
        let (cells, s) = (form.cell_loop()?, on.schedule());
        let nests = factorise_all(s, form.kernel())?;
        let mut planes = Planes::of(s, &nests, cells.cell.name());
        for nest in &nests {
            planes.share(s, nest)?;
        }
        planes.split_points(s)?;
        planes.fuse_layers(s)?;
        make_atomic(s, &cells.commits)?;
        Ok(planes.place(s, length(self.cells))?)
    }

    fn candidates(question: &Question<'_>) -> Vec<Self> {
        let suits = tensor_dimension(question.form.kernel()).is_some() && !is_functional(question.form);
        let cells: &[u64] = if suits { &[1, 2, 4, 8] } else { &[] };
        cells.iter().map(|cells| Self { cells: *cells }).collect()
    }
}

/// What becomes of the loops of a cell.
struct Planes<'a> {
    cell: &'a str,
    /// Arrays over the points or nodes of a cell, with their number along an axis.
    arrays: BTreeMap<String, i64>,
    /// Of these, those that work-items share.
    shared: BTreeSet<String>,
    /// Updates of the contractions that every work-item computes for itself.
    own: BTreeSet<String>,
    dim: u32,
    /// Whether the first axis of a loop over points is the outermost one of the nests.
    in_order: bool,
    /// Loops along `l.1` and `l.0`.
    axes: [Vec<String>; 2],
    unrolled: Vec<String>,
    /// Most work-items along an axis.
    width: u32,
}

impl<'a> Planes<'a> {
    fn of(s: &Schedule, nests: &[Factorised], cell: &'a str) -> Self {
        let kernel = s.kernel();
        let (mut arrays, mut shared, mut own) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let (mut dim, mut in_order, mut width) = (2, true, 1);
        for Factorised { contraction: c, updates, .. } in nests {
            (dim, in_order) = (c.dim, c.reversed);
            width = width.max(c.sizes[0]).max(c.sizes[1]);
            let insn = |name: &String| kernel.insn(name).map(|id| &kernel.insns[id]);
            if let Some(last) = updates.last().and_then(insn) {
                arrays.insert(kernel.vars[last.lhs.var].name.clone(), i64::from(c.sizes[0]));
            }
            let first = updates.first().and_then(insn);
            let is_own = c.sizes[1] <= OWN_SUMS;
            for var in first.into_iter().flat_map(|first| operands(kernel, first)) {
                if is_own && is_gathered(kernel, var) {
                    own.insert(c.update.clone());
                    continue;
                }
                let name = kernel.vars[var].name.clone();
                arrays.insert(name.clone(), i64::from(c.sizes[1]));
                shared.insert(name);
            }
        }
        let axes = [Vec::new(), Vec::new()];
        Self { cell, arrays, shared, own, dim, in_order, axes, unrolled: Vec::new(), width }
    }

    fn tag(&mut self, rows: &str, columns: &str) {
        self.axes[0].push(rows.to_owned());
        self.axes[1].push(columns.to_owned());
    }

    /// Gives the sums of a contraction to work-items.
    fn share(&mut self, s: &mut Schedule, nest: &Factorised) -> Result<(), TransformError> {
        let inside = |s: &Schedule, k: usize| -> Vec<String> {
            let loops = loops_of(s.kernel(), &nest.updates[k]);
            loops.into_iter().skip_while(|l| l != self.cell).skip(1).collect()
        };
        let all: Vec<Vec<String>> = (0..nest.updates.len()).map(|k| inside(s, k)).collect();
        let own = self.own.contains(&nest.contraction.update);
        match &all[..] {
            [first, last] => {
                let ([rows, sums, term], [_, columns, other]) = (&first[..], &last[..]) else {
                    return Ok(());
                };
                self.unrolled.extend([term.clone(), other.clone()]);
                if own {
                    self.unrolled.push(sums.clone());
                    self.tag(rows, columns);
                    return Ok(());
                }
                s.expand(&nest.sums[0], [rows])?;
                let parts = s.distribute(rows, [columns])?;
                share_sums(s, nest.sums[0].name(), sums)?;
                self.tag(rows, sums);
                parts.iter().for_each(|rows| self.tag(rows.name(), columns));
            }
            [first, second, last] => {
                let ([_, a, b, term], [_, rows, sums, other], [_, _, columns, third]) =
                    (&first[..], &second[..], &last[..])
                else {
                    return Ok(());
                };
                self.unrolled.extend([term.clone(), other.clone(), third.clone()]);
                if own {
                    self.unrolled.extend([a.clone(), b.clone(), sums.clone()]);
                    self.tag(rows, columns);
                    return Ok(());
                }
                s.expand(&nest.sums[1], [rows])?;
                let parts = s.distribute(rows, [columns])?;
                share_sums(s, nest.sums[0].name(), b)?;
                share_sums(s, nest.sums[1].name(), sums)?;
                self.tag(a, b);
                self.tag(rows, sums);
                parts.iter().for_each(|rows| self.tag(rows.name(), columns));
            }
            _ => {}
        }
        Ok(())
    }

    /// Splits the loops over all points or nodes of a cell, and the axes of what they access, by
    /// axes of the cell.
    fn split_points(&mut self, s: &mut Schedule) -> Result<(), TransformError> {
        for name in statements(s.kernel(), self.cell) {
            let Some(size) = self.points(s.kernel(), &name) else { continue };
            let (mut digits, mut rest) = (Vec::new(), name);
            for k in (1..self.dim).rev() {
                let [outer, inner] = s.split(&rest, size.pow(k))?;
                digits.push(outer.to_string());
                rest = inner.to_string();
            }
            digits.push(rest);
            if !self.in_order {
                digits.reverse();
            }
            let [.., rows, columns] = &digits[..] else { continue };
            self.tag(rows, columns);
        }
        let is_temporary = |s: &Schedule, array: &str| {
            let kernel = s.kernel();
            kernel.var(array).is_some_and(|v| kernel.vars[v].kind == VarKind::Temporary)
        };
        for (array, size) in &self.arrays {
            if !is_temporary(s, array) {
                continue;
            }
            for k in 0..self.dim - 1 {
                s.apply(SplitArrayAxis::new(array, k, size.pow(self.dim - 1 - k)))?;
            }
            if self.shared.contains(array) {
                s.apply(SetAddressSpace::new(array, AddressSpace::Local))?;
            }
        }
        Ok(())
    }

    /// The number along an axis of what a loop runs over, if it runs over all points or nodes.
    fn points(&self, kernel: &Kernel, iname: &str) -> Option<i64> {
        let id = kernel.iname(iname)?;
        let around = kernel.schedule().into_iter().filter(|(_, loops)| loops.last() == Some(&id));
        let accessed = around.flat_map(|(insn, _)| {
            let insn = &kernel.insns[insn];
            insn.reads().into_iter().chain([&insn.lhs]).map(|a| a.var).collect::<Vec<_>>()
        });
        let mut sizes = accessed.filter_map(|v| self.arrays.get(&kernel.vars[v].name).copied());
        sizes.next()
    }

    /// Fuses the loops over layers of evaluations and of the functions of points, and those of the
    /// products with the scatter; what then lives in one layer loses its axis.
    fn fuse_layers(&self, s: &mut Schedule) -> Result<(), TransformError> {
        if self.dim < 3 || !self.in_order {
            return Ok(());
        }
        let mut first: Option<String> = None;
        for name in statements(s.kernel(), self.cell) {
            let fused = first.as_ref().is_some_and(|first| s.fuse(first, &name).is_ok());
            if !fused {
                first = Some(name);
            }
        }
        for array in self.arrays.keys().filter(|array| !self.shared.contains(*array)) {
            // one that several layers need keeps its axis
            let _kept = s.apply(ContractArray::new(array, 0));
        }
        Ok(())
    }

    /// Places cells and work-items, with tables in local memory.
    fn place(&self, s: &mut Schedule, cells: i64) -> Result<(), TransformError> {
        let names = ["group", "item"].map(|end| format!("{}_{end}", self.cell));
        let [group, item] = s.split_as(self.cell, cells, [&names[0], &names[1]])?;
        let is_local = |v: &&Variable| v.kind == VarKind::Temporary && v.space == AddressSpace::Local;
        let local: Vec<String> = s.kernel().vars.values().filter(is_local).map(|v| v.name.clone()).collect();
        local.iter().try_for_each(|array| s.expand(array, [&item]))?;
        let width = i64::from(self.width);
        for table in matrices(s.kernel()) {
            let fetch = PrefetchArray::new(table, group.name(), AddressSpace::Local);
            s.apply(fetch.by_work_items([width, width, cells]))?;
        }
        s.tag(&group, AxisTag::Group(0))?;
        s.tag(&item, AxisTag::Local(2))?;
        for (axis, loops) in [(1, &self.axes[0]), (0, &self.axes[1])] {
            s.apply(Tag::all(loops, AxisTag::Local(axis)))?;
        }
        s.apply(Tag::all(&self.unrolled, AxisTag::Unrolled)).map(drop)
    }
}

/// Adds up in a register what then goes to local memory; `at` is the loop around a sum.
fn share_sums(s: &mut Schedule, array: &str, at: &str) -> Result<(), TransformError> {
    s.apply(BufferWrites::new(array, at, AddressSpace::Private))?;
    s.apply(SetAddressSpace::new(array, AddressSpace::Local)).map(drop)
}

/// Tables with rows and columns of an axis.
fn matrices(kernel: &Kernel) -> Vec<String> {
    let is_matrix = |v: &&Variable| matches!(v.kind, VarKind::Table(_)) && v.shape.len() == 2;
    kernel.vars.values().filter(is_matrix).map(|v| v.name.clone()).collect()
}
