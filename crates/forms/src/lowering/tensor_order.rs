//! Degrees of freedom of a cell in the order of the axes of the reference cell.
//!
//! Elements list the nodes of squares and cubes by sub-entities: vertices, edges, faces, interior.
//! Their tables are tensor products only if nodes count along the first axis first. A kernel
//! therefore numbers what it gathers in that order, and finds the columns of maps by a table.

use super::{MatrixResult, TabulatedOptions};
use crate::tabulated::{FormCell, Integral, Precision, Space, TabulatedForm, Values};
use kingpost_fem::element::CellShape;

/// For each new column, the old one.
pub(super) type Order = Vec<usize>;

/// The order of each space that has another one than its map.
///
/// The entries of element matrices stay in the order of the map, because callers see them.
pub(super) fn orders(form: &TabulatedForm, options: &TabulatedOptions) -> Vec<Option<Order>> {
    let is_matrix = form.rank == 2 && options.matrix != MatrixResult::Diagonal;
    let orders = form.spaces.iter().map(|space| {
        let order = order(form.cell, space).filter(|_| !is_matrix && form.scalar == Precision::F64);
        order.filter(|order| space.transforms.is_empty() && !order.is_sorted())
    });
    let mut orders: Vec<Option<Order>> = orders.collect();
    // until no table has users in different orders
    while let Some(space) = form.integrals.iter().find_map(|integral| clash(form, integral, &orders)) {
        orders[space] = None;
    }
    orders
}

/// The order in which the nodes of a space count along the first axis first, then along the second:
/// that of the vertices of squares and cubes. `None` where degrees of freedom are not values at
/// nodes of a square or cube.
fn order(cell: FormCell, space: &Space) -> Option<Order> {
    match cell.shape()? {
        CellShape::Quadrilateral | CellShape::Hexahedron => {}
        CellShape::Interval | CellShape::Triangle | CellShape::Tetrahedron => return None,
    }
    let nodes = space.nodes.as_ref().filter(|nodes| nodes.len() == space.columns)?;
    // nodes of one line differ by rounding
    let key = |dof: &usize| nodes[*dof].iter().rev().map(|x| (x * 1e9).round() as i64).collect::<Vec<_>>();
    let mut order: Order = (0..space.columns).collect();
    order.sort_by_cached_key(key);
    Some(order)
}

/// The form with the columns of its tables in these orders.
pub(super) fn reordered(form: &TabulatedForm, orders: &[Option<Order>]) -> TabulatedForm {
    let mut form = form.clone();
    let users: Vec<Vec<Vec<usize>>> = form.integrals.iter().map(|i| users(&form, i)).collect();
    for (integral, users) in form.integrals.iter_mut().zip(&users) {
        for (table, users) in integral.tables.iter_mut().zip(users) {
            let order = users.first().and_then(|space| orders[*space].as_ref());
            if let Some(order) = order {
                let rows = table.values.entries().chunks_exact(order.len());
                let entries = rows.flat_map(|row| order.iter().map(|k| row[*k])).collect();
                if let Some(values) = Values::new(table.values.shape().to_vec(), entries) {
                    table.values = values;
                }
            }
        }
    }
    form
}

/// A space with an order that shares a table with one in another, or has a table of some of its
/// columns.
fn clash(form: &TabulatedForm, integral: &Integral, orders: &[Option<Order>]) -> Option<usize> {
    users(form, integral).into_iter().zip(&integral.tables).find_map(|(users, table)| {
        let first = &orders[*users.first()?];
        let is_part = first.as_ref().is_some_and(|order| order.len() != table.dofs());
        let differs = is_part || users.iter().any(|space| orders[*space] != *first);
        users.into_iter().find(|space| differs && orders[*space].is_some())
    })
}

/// The spaces whose basis functions each table of an integral holds.
fn users(form: &TabulatedForm, integral: &Integral) -> Vec<Vec<usize>> {
    let mut users = vec![Vec::new(); integral.tables.len()];
    for e in &integral.evaluations {
        users[e.table].push(form.functions[e.function].space);
    }
    for term in &integral.terms {
        for (argument, space) in term.arguments.iter().zip(&form.outputs[term.output].spaces) {
            users[argument.table].push(*space);
        }
    }
    users
}
