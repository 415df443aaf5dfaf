//! Degrees of freedom of a cell in the order of the axes of the reference cell.

use crate::element::CellShape;
use crate::form::{FormError, FunctionSpace};
use crate::tabulated::{Integral, TabulatedForm, Values};

/// For each new column, the old one.
pub(super) type Order = Vec<usize>;

/// The order in which the nodes of a space count along the first axis first, then along the second:
/// that of the vertices of squares and cubes. `None` where degrees of freedom are not values at
/// nodes of a square or cube.
///
/// # Errors
/// An element that there is not.
pub(super) fn order(space: &FunctionSpace) -> Result<Option<Order>, FormError> {
    let cell = space.cell();
    let is_product = match cell {
        CellShape::Quadrilateral | CellShape::Hexahedron => true,
        CellShape::Interval | CellShape::Triangle | CellShape::Tetrahedron => false,
    };
    let element = space.base().0.element().map_err(|e| FormError::Discretisation(e.to_string()))?;
    let parts = element.parts();
    let [part] = parts.as_slice() else { return Ok(None) };
    let Some(points) = part.element.points().filter(|_| is_product) else { return Ok(None) };
    // nodes of one line differ by rounding
    let key = |dof: &usize| {
        let point = &points[dof * cell.dim()..(dof + 1) * cell.dim()];
        point.iter().rev().map(|x| (x * 1e9).round() as i64).collect::<Vec<_>>()
    };
    let mut order: Order = (0..part.element.n_dofs()).collect();
    order.sort_by_cached_key(key);
    Ok(Some(order))
}

/// Reorders the columns of the tables of a form with an order for each of its spaces; a space whose
/// degrees of freedom cells transform, or that shares a table with one in another order, loses its
/// order.
pub(super) fn reorder(form: &mut TabulatedForm, orders: &mut [Option<Order>]) {
    for (order, space) in orders.iter_mut().zip(&form.spaces) {
        if !space.transforms.is_empty() || order.as_ref().is_some_and(|order| order.len() != space.columns) {
            *order = None;
        }
    }
    // until no table has users in different orders
    while let Some(space) = form.integrals.iter().find_map(|integral| clash(form, integral, orders)) {
        orders[space] = None;
    }
    let users: Vec<Vec<Vec<usize>>> = form.integrals.iter().map(|i| users(form, i)).collect();
    for (integral, users) in form.integrals.iter_mut().zip(&users) {
        for (table, users) in integral.tables.iter_mut().zip(users) {
            let order = users.first().and_then(|space| orders[*space].as_ref());
            if let Some(order) = order.filter(|order| order.len() == table.dofs()) {
                let rows = table.values.entries().chunks_exact(order.len());
                let entries = rows.flat_map(|row| order.iter().map(|k| row[*k])).collect();
                if let Some(values) = Values::new(table.values.shape().to_vec(), entries) {
                    table.values = values;
                }
            }
        }
    }
}

/// A space with an order that shares a table with one in another.
fn clash(form: &TabulatedForm, integral: &Integral, orders: &[Option<Order>]) -> Option<usize> {
    users(form, integral).into_iter().find_map(|users| {
        let first = &orders[*users.first()?];
        let differs = users.iter().any(|space| orders[*space] != *first);
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
