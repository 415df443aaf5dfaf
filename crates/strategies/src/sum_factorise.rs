//! Sum factorisation: contractions with tables of tensor products, one axis after the other.

use super::blocks::statements;
use super::decided;
use crate::strategy::{MappingError, StrategyError};
use kingpost_ir::{Access, BinaryOp, Expr, InameId, Insn, Kernel, ScalarType, UpdateOp, VarKind};
use kingpost_primitives::ScheduleSteps;
use kingpost_primitives::draw::loops_of;
use kingpost_primitives::primitives::{
    FactorOut, FactorTable, Hoist, InterchangeInames, MoveInsns, RemoveUnusedVars, SplitSum,
};
use kingpost_primitives::schedule::{Array, Loop, Statement};
use kingpost_primitives::{Primitive, Recipe, Schedule, TransformError};
use std::collections::BTreeSet;

/// A contraction with a table that is a tensor product: an update `v[i] += T[i, j]*x[j]` in the
/// loops `i` and `j`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorContraction {
    /// The update.
    pub update: String,
    /// The loop over what it computes.
    pub rows: String,
    /// The loop that it sums over.
    pub columns: String,
    /// The table.
    pub table: String,
    /// Whether the rows are the first axis of the table.
    pub rows_first: bool,
    /// Whether the columns count along the axes in the opposite order of the rows.
    pub reversed: bool,
    /// Number of axes of the tensor product: 2 or 3.
    pub dim: u32,
    /// Rows and columns along each of these axes.
    pub sizes: [u32; 2],
}

impl TensorContraction {
    /// The step that replaces its table.
    fn factor_table(&self) -> FactorTable {
        let axis = |n: u32| vec![n; self.dim as usize];
        let [rows, columns] = self.sizes.map(axis);
        let sizes = if self.rows_first { [rows, columns] } else { [columns, rows] };
        let step = FactorTable::new(&self.table, sizes);
        let order: Vec<u32> = (0..self.dim).collect();
        let opposite: Vec<u32> = (0..self.dim).rev().collect();
        match (self.reversed, self.rows_first) {
            (false, _) => step,
            (true, true) => step.with_factors([order, opposite]),
            (true, false) => step.with_factors([opposite, order]),
        }
    }
}

/// The contractions of a kernel whose tables are tensor products of two or three factors of one
/// size, every entry to 1e-14 of the largest one, or 1e-6 in `f32`; in textual order.
pub fn tensor_contractions(kernel: &Kernel) -> Vec<TensorContraction> {
    let inames = |id| kernel.schedule().into_iter().find(|(i, _)| *i == id).map(|(_, loops)| loops);
    let insns = kernel.schedule().into_iter().map(|(id, _)| id);
    let found = insns.filter_map(|id| contraction(kernel, &kernel.insns[id], &inames(id)?));
    let certified = |c: &TensorContraction| c.factor_table().apply(kernel).is_ok();
    let ordered = |c: TensorContraction| {
        [false, true].into_iter().map(|reversed| TensorContraction { reversed, ..c.clone() }).find(certified)
    };
    found.filter_map(ordered).collect()
}

fn contraction(kernel: &Kernel, insn: &Insn, loops: &[InameId]) -> Option<TensorContraction> {
    if insn.update_op() != Some(UpdateOp::Add) || insn.predicate.is_some() {
        return None;
    }
    let of_table = |a: &&Access| {
        let var = &kernel.vars[a.var];
        matches!(var.kind, VarKind::Table(_)) && [ScalarType::F64, ScalarType::F32].contains(&var.ty)
    };
    let mut tables = insn.rhs.loaded_factors().filter(of_table).filter_map(|a| match a.index.as_slice() {
        [Expr::Iname(first), Expr::Iname(second)] => Some((a, *first, *second)),
        _ => None,
    });
    let (access, first, second) = tables.next().filter(|_| tables.next().is_none())?;
    let written = |l: InameId| insn.lhs.index.iter().any(|e| e.mentions(l));
    // what the table's rows are, the update writes; or it accumulates in a scalar of their loop
    let outside = |a, b| loops.iter().position(|l| *l == a) < loops.iter().position(|l| *l == b);
    let rows_first = match (written(first), written(second)) {
        (true, false) => true,
        (false, true) => false,
        (false, false) => outside(first, second),
        (true, true) => return None,
    };
    if first == second || !loops.contains(&first) || !loops.contains(&second) {
        return None;
    }
    let extents: Vec<i64> =
        kernel.vars[access.var].shape.iter().map(|e| e.as_constant()).collect::<Option<_>>()?;
    let [a, b] = extents[..] else { return None };
    let [rows, columns] = if rows_first { [a, b] } else { [b, a] };
    let (dim, sizes) =
        [3, 2].into_iter().find_map(|dim| Some((dim, [root(rows, dim)?, root(columns, dim)?])))?;
    let name = |l: InameId| kernel.inames[l].name.clone();
    let [of_rows, of_columns] = if rows_first { [first, second] } else { [second, first] };
    Some(TensorContraction {
        update: insn.name.clone(),
        rows: name(of_rows),
        columns: name(of_columns),
        table: kernel.vars[access.var].name.clone(),
        rows_first,
        reversed: false,
        dim,
        sizes,
    })
}

/// The whole root of a number, if it is at least 2.
fn root(n: i64, dim: u32) -> Option<u32> {
    (2..=64_u32).find(|r| i64::from(*r).pow(dim) == n)
}

/// Computes every contraction with the table of a tensor product one axis after the other.
///
/// With `p` columns and `q` rows along each of three axes, a contraction needs `2(qp³ + q²p² +
/// q³p)` operations instead of `2q³p³` (Orszag 1980). The tables are certified by their values,
/// whatever they stand for; contractions with other tables stay as they are.
///
/// # Rewrite
/// ```text
/// for i in 0..q^2                       =>   for i2 in 0..q
///   for j in 0..p^2                            for j1 in 0..p
///     v[i] += T[i, j]*x[j]                       t[j1] = 0
///                                                for j2 in 0..p: t[j1] += A[i2, j2]*x[p*j1 + j2]
///                                              for i1 in 0..q
///                                                for j1 in 0..p: v[q*i1 + i2] += A[i1, j1]*t[j1]
/// ```
/// What the loop over rows, or over columns, shares with other statements is taken apart first:
/// scalars get an axis, loops are distributed, sums of products are split.
///
/// # Errors
/// A kernel without such a contraction, or a step that was refused.
pub fn sum_factorise(kernel: &Kernel) -> Result<(Kernel, Recipe), MappingError> {
    check_factorable(kernel)?;
    let (_, kernel, recipe) = decided(kernel, |s| Ok(factorise_all(s, kernel)?))?;
    Ok((kernel, recipe))
}

/// Refuses a kernel with nothing to factorise.
pub(super) fn check_factorable(kernel: &Kernel) -> Result<(), StrategyError> {
    if tensor_contractions(&with_split_sums(kernel)).is_empty() {
        return Err(StrategyError::NoTensorTable);
    }
    Ok(())
}

/// A contraction that is computed axis by axis.
pub(super) struct Factorised {
    pub(super) contraction: TensorContraction,
    /// The updates of each axis: of the first sums, of the sums of those, and of the result.
    pub(super) updates: Vec<String>,
    /// The arrays of the sums, one fewer.
    pub(super) sums: Vec<Array>,
}

/// The steps of the strategy; `kernel` is the one before all steps of the schedule.
pub(super) fn factorise_all(s: &mut Schedule, kernel: &Kernel) -> Result<Vec<Factorised>, TransformError> {
    factorise_in(s, kernel, |_| false)
}

/// The same; where `outermost_first` holds, the outermost axis of the columns is contracted first,
/// else the innermost one.
pub(super) fn factorise_in(
    s: &mut Schedule,
    kernel: &Kernel,
    outermost_first: impl Fn(&TensorContraction) -> bool,
) -> Result<Vec<Factorised>, TransformError> {
    for name in sums(kernel) {
        s.apply(SplitSum::new(name))?;
    }
    let all = tensor_contractions(s.kernel());
    for c in &all {
        expand_shared(s, c)?;
    }
    let mut nests = Vec::with_capacity(all.len());
    // distributed loops have other names
    let outside: Vec<bool> = all.iter().map(|c| outer_loop(s, c).as_ref() == Some(&c.rows)).collect();
    for (c, rows_outside) in all.iter().zip(outside) {
        let [rows, columns] = isolate(s, c, rows_outside)?;
        let mut rows = digits(s, rows, c.sizes[0], c.dim)?;
        if c.reversed {
            rows.reverse();
        }
        nests.push([rows, digits(s, columns, c.sizes[1], c.dim)?]);
    }
    // once the loops of all loads of a table have its digits
    let mut done = BTreeSet::new();
    for c in all.iter().filter(|c| done.insert(c.table.clone())) {
        s.apply(c.factor_table())?;
    }
    let mut done = Vec::with_capacity(all.len());
    for (c, [mut rows, mut columns]) in all.into_iter().zip(nests) {
        if outermost_first(&c) {
            rows.reverse();
            columns.reverse();
            s.reorder(&columns)?;
        }
        let sums = factorise(s, &c, &rows, &columns)?;
        let updates = std::iter::once(c.update.clone()).chain(sums.iter().map(|sum| sum.total.to_string()));
        let updates = updates.collect();
        done.push(Factorised { contraction: c, updates, sums: sums.into_iter().map(|s| s.array).collect() });
    }
    s.apply(RemoveUnusedVars {})?;
    Ok(done)
}

/// Updates by a sum of products with tables.
fn sums(kernel: &Kernel) -> Vec<String> {
    let is_sum = |i: &Insn| {
        let sum = matches!(i.rhs, Expr::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
        let tables = i.reads().into_iter().filter(|a| matches!(kernel.vars[a.var].kind, VarKind::Table(_)));
        sum && i.update_op() == Some(UpdateOp::Add) && tables.count() > 1
    };
    kernel.insns.values().filter(|i| is_sum(i)).map(|i| i.name.clone()).collect()
}

/// The kernel with those split, as far as they can be.
pub(super) fn with_split_sums(kernel: &Kernel) -> Kernel {
    sums(kernel).into_iter().fold(kernel.clone(), |kernel, name| match SplitSum::new(name).apply(&kernel) {
        Ok(split) => split,
        Err(_) => kernel,
    })
}

/// Gives what an iteration of the outer loop keeps in scalars for the contraction, or from it, an
/// axis over that loop.
fn expand_shared(s: &mut Schedule, c: &TensorContraction) -> Result<(), TransformError> {
    let Some(outer) = outer_loop(s, c) else { return Ok(()) };
    let kernel = s.kernel();
    let (Some(insn), Some(iname)) = (kernel.insn(&c.update), kernel.iname(&outer)) else { return Ok(()) };
    let insn = &kernel.insns[insn];
    let inside: Vec<_> = kernel.schedule().into_iter().filter(|(_, l)| l.contains(&iname)).collect();
    let shared = |a: &&Access| {
        let written = |(id, _): &(_, _)| kernel.insns[*id].lhs.var == a.var;
        kernel.vars[a.var].kind == VarKind::Temporary
            && inside.iter().any(written)
            && !a.index.iter().any(|e| e.mentions(iname))
    };
    let all = insn.reads().into_iter().chain([&insn.lhs]).filter(shared);
    let names: BTreeSet<String> = all.map(|a| kernel.vars[a.var].name.clone()).collect();
    // an element that all iterations of the loop add to is no value of one of them
    let accumulates = |name: &String| outer == c.columns && kernel.vars[insn.lhs.var].name == *name;
    let names: Vec<String> = names.into_iter().filter(|name| !accumulates(name)).collect();
    for name in names {
        s.expand(name, [&outer])?;
    }
    Ok(())
}

/// The outer one of the two loops of a contraction, as they stand around its update now.
fn outer_loop(s: &Schedule, c: &TensorContraction) -> Option<String> {
    loops_of(s.kernel(), &c.update).into_iter().find(|l| [&c.rows, &c.columns].contains(&l))
}

/// Lets the loops over rows and columns hold the update and nothing else; returns them, rows first
/// and outside.
fn isolate(s: &mut Schedule, c: &TensorContraction, rows_outside: bool) -> Result<[Loop; 2], TransformError> {
    let around = |s: &Schedule, of: usize| {
        let found = loops_of(s.kernel(), &c.update).into_iter().nth_back(of);
        s.expected(found, "loop around a contraction")
    };
    let inner = around(s, 0)?;
    alone(s, &inner, &c.update)?;
    let (outer, inner) = (around(s, 1)?, around(s, 0)?);
    alone(s, &outer, &inner)?;
    let [outer, inner] = [around(s, 1)?, around(s, 0)?];
    if rows_outside {
        return Ok([Loop::named(outer), Loop::named(inner)]);
    }
    s.make(InterchangeInames::new(&outer, &inner))?;
    Ok([Loop::named(inner), Loop::named(outer)])
}

/// Distributes a loop so that a statement of its body is all of its body.
fn alone(s: &mut Schedule, of: &str, statement: &str) -> Result<(), TransformError> {
    let body = statements(s.kernel(), of);
    let at = s.expected(body.iter().position(|name| name == statement), "statement in its loop")?;
    let cuts: Vec<&String> = [at, at + 1].iter().filter(|k| **k > 0).filter_map(|k| body.get(*k)).collect();
    if !cuts.is_empty() {
        s.distribute(of, cuts)?;
    }
    Ok(())
}

/// Splits a loop of `size^dim` iterations into its digits, outermost first.
fn digits(s: &mut Schedule, of: Loop, size: u32, dim: u32) -> Result<Vec<Loop>, TransformError> {
    let (mut found, mut rest) = (Vec::new(), of);
    for k in (1..dim).rev() {
        let (name, size) = (String::from(&rest), i64::from(size).pow(k));
        let derived = ["o", "i"].map(|end| format!("{name}_{end}"));
        // a loop that was distributed may have the name of another one with a number
        let [outer, inner] = if derived.iter().all(|name| s.fresh(name) == *name) {
            s.split(name, size)?
        } else {
            s.split_as(name, size, derived.each_ref().map(String::as_str))?
        };
        found.push(outer);
        rest = inner;
    }
    found.push(rest);
    Ok(found)
}

/// A sum over the columns along one axis.
struct PartialSum {
    array: Array,
    start: Statement,
    total: Statement,
}

/// Takes the factors of a nest of `rows` and `columns`, in the order of the columns' axes, out of
/// the sums that they do not change in, gives each sum a nest, and moves it out of the rows that it
/// does not depend on.
fn factorise(
    s: &mut Schedule,
    c: &TensorContraction,
    rows: &[Loop],
    columns: &[Loop],
) -> Result<Vec<PartialSum>, TransformError> {
    let mut sums: Vec<PartialSum> = Vec::new();
    let mut update = c.update.clone();
    for column in columns.iter().skip(1).rev() {
        let name = s.fresh(&format!("{}_sum", c.update));
        s.make(FactorOut::of_update(&update, column).into_temporary(&name))?;
        let [start, total] = ["init", "sum"].map(|part| Statement::named(format!("{name}_{part}")));
        update = total.name().to_owned();
        sums.push(PartialSum { array: Array::named(name), start, total });
    }
    s.reorder(rows.iter().rev())?;
    for (k, sum) in sums.iter().enumerate() {
        s.expand(&sum.array, &columns[..columns.len() - 1 - k])?;
    }
    let nests = nests(s, &sums, columns)?;
    for (k, nest) in nests.iter().enumerate() {
        for _ in k + 1..rows.len() {
            s.apply(Hoist::new([nest]))?;
        }
    }
    Ok(sums)
}

/// Distributes the loops over columns, from inside out; returns the nest of each sum.
fn nests(s: &mut Schedule, sums: &[PartialSum], columns: &[Loop]) -> Result<Vec<Loop>, TransformError> {
    let mut nests: Vec<Loop> = columns.last().cloned().into_iter().collect();
    for (k, (sum, column)) in sums.iter().zip(columns.iter().rev().skip(1)).enumerate() {
        let mut cuts: Vec<String> = nests.iter().skip(1).map(String::from).collect();
        if k > 0 {
            // it starts the sum of the last nest, and stands before all
            let last = s.expected(cuts.pop(), "nest of the last sum")?;
            s.apply(MoveInsns::before([&sum.start], last))?;
            cuts.push(sum.start.name().to_owned());
        }
        cuts.push(sum.total.name().to_owned());
        let new = s.distribute(column, cuts)?;
        nests = std::iter::once(column.clone()).chain(new).collect();
    }
    Ok(nests)
}
