//! Degrees of freedom of a cell in the order of the axes of the reference cell.
//!
//! Elements list the nodes of squares and cubes by sub-entities: vertices, edges, faces, interior.
//! Their tables are tensor products only if nodes count along the first axis first. A kernel
//! therefore numbers what it gathers in that order, and finds the columns of maps by a table. The
//! degrees of freedom of each part of a mixed element stay among its own columns.

use super::{MatrixResult, TabulatedOptions};
use crate::tabulated::{Integral, Space, TabulatedForm, Values};
use kingpost_fem::element::CellShape;
use std::collections::BTreeSet;

/// For each new column, the old one.
pub(super) type Order = Vec<usize>;

/// The columns of a space that a table is of: `offset + stride * i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Columns {
    space: usize,
    offset: usize,
    stride: usize,
    count: usize,
}

impl Columns {
    fn places(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |i| self.offset + self.stride * i)
    }

    /// The order of the columns of a table, in a space of an order that keeps these columns
    /// together.
    fn of_table(self, order: Option<&Order>) -> Order {
        let old = |place: usize| order.map_or(place, |order| order[place]);
        self.places().map(|place| (old(place) - self.offset) / self.stride).collect()
    }
}

/// The order of each space that has another one than its map.
///
/// The entries of element matrices stay in the order of the map, because callers see them.
pub(super) fn orders(form: &TabulatedForm, options: &TabulatedOptions) -> Vec<Option<Order>> {
    let is_matrix = form.rank == 2 && options.matrix != MatrixResult::Diagonal;
    let used: BTreeSet<Columns> = form.integrals.iter().flat_map(|i| users(form, i)).flatten().collect();
    let orders = form.spaces.iter().enumerate().map(|(place, space)| {
        let own: Vec<Columns> = used.iter().copied().filter(|columns| columns.space == place).collect();
        let order = order(form.cell, space, &own).filter(|_| !is_matrix);
        order.filter(|order| space.transforms.is_empty() && !order.is_sorted())
    });
    let mut orders: Vec<Option<Order>> = orders.collect();
    // until no table has users in different orders
    while let Some(space) = form.integrals.iter().find_map(|integral| clash(form, integral, &orders)) {
        orders[space] = None;
    }
    orders
}

/// The order in which the nodes of each of some lists of columns count along the first axis first,
/// then along the second: that of the vertices of squares and cubes. `None` where degrees of
/// freedom are not values at nodes of a square or cube, or where a column is in several lists.
fn order(cell: CellShape, space: &Space, lists: &[Columns]) -> Option<Order> {
    if !cell.is_product() || cell.is_simplex() {
        return None;
    }
    let nodes = space.nodes.as_ref().filter(|nodes| nodes.len() == space.columns)?;
    // nodes of one line differ by rounding
    let key = |dof: &usize| nodes[*dof].iter().rev().map(|x| (x * 1e9).round() as i64).collect::<Vec<_>>();
    let (mut order, mut is_listed): (Order, _) = ((0..space.columns).collect(), vec![false; space.columns]);
    for list in lists {
        let mut sorted: Vec<usize> = list.places().collect();
        if sorted.iter().any(|place| std::mem::replace(&mut is_listed[*place], true)) {
            return None;
        }
        sorted.sort_by_cached_key(key);
        list.places().zip(sorted).for_each(|(place, old)| order[place] = old);
    }
    Some(order)
}

/// The form with the columns of its tables in these orders.
pub(super) fn reordered(form: &TabulatedForm, orders: &[Option<Order>]) -> TabulatedForm {
    let mut form = form.clone();
    let users: Vec<Vec<Vec<Columns>>> = form.integrals.iter().map(|i| users(&form, i)).collect();
    for (integral, users) in form.integrals.iter_mut().zip(&users) {
        for (table, users) in integral.tables.iter_mut().zip(users) {
            let Some(columns) = users.first().filter(|columns| orders[columns.space].is_some()) else {
                continue;
            };
            let order = columns.of_table(orders[columns.space].as_ref());
            let rows = table.values.entries().chunks_exact(order.len());
            let entries = rows.flat_map(|row| order.iter().map(|k| row[*k])).collect();
            if let Some(values) = Values::new(table.values.shape().to_vec(), entries) {
                table.values = values;
            }
        }
    }
    form
}

/// A space with an order that shares a table with one in another.
fn clash(form: &TabulatedForm, integral: &Integral, orders: &[Option<Order>]) -> Option<usize> {
    users(form, integral).into_iter().find_map(|users| {
        let of = |columns: &Columns| columns.of_table(orders[columns.space].as_ref());
        let first = of(users.first()?);
        let differs = users.iter().any(|columns| of(columns) != first);
        users.into_iter().map(|columns| columns.space).find(|space| differs && orders[*space].is_some())
    })
}

/// The columns whose basis functions each table of an integral holds.
fn users(form: &TabulatedForm, integral: &Integral) -> Vec<Vec<Columns>> {
    let mut users = vec![Vec::new(); integral.tables.len()];
    let of = |space, table: usize, offset, stride| {
        let count = integral.tables[table].dofs();
        Columns { space, offset, stride, count }
    };
    for e in &integral.evaluations {
        users[e.table].push(of(form.functions[e.function].space, e.table, e.offset, e.stride));
    }
    for term in &integral.terms {
        for (argument, space) in term.arguments.iter().zip(&form.outputs[term.output].spaces) {
            let columns = of(*space, argument.table, argument.offset, argument.stride);
            users[argument.table].push(columns);
        }
    }
    users
}
