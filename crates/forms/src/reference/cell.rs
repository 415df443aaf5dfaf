//! Geometry, fields and the element vector of one cell.

use super::evaluate::{CellValues, Evaluator, FieldValues, slot};
use super::facts::FactTable;
use super::number::Number;
use super::sum::Sum;
use super::tables::{FieldTable, Tables};
use crate::form::FormError;
use kingpost_fem::mesh::Mesh;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Position and shape of one affine cell.
pub(super) struct Geometry {
    dim: usize,
    /// Vertices, [vertices, dim].
    vertices: Vec<f64>,
    /// `|det J|`, `J` the derivative of position by reference coordinates.
    measure: f64,
    /// Inverse of `J`, [reference axis, physical axis].
    inverse: Vec<f64>,
}

impl Geometry {
    pub(super) fn new(mesh: &Mesh, cell: usize) -> Self {
        let dim = mesh.shape().dim();
        let vertices: Vec<f64> =
            mesh.cell(cell).iter().flat_map(|v| mesh.vertex(*v).iter().copied()).collect();
        // Row k: the edge from vertex 0 to vertex k + 1, that is column k of J.
        let mut rows: Vec<Vec<f64>> = (0..dim)
            .map(|k| {
                let edge = (0..dim).map(|i| vertices[(k + 1) * dim + i] - vertices[i]);
                edge.chain((0..dim).map(|i| if i == k { 1.0 } else { 0.0 })).collect()
            })
            .collect();
        let determinant = eliminate(&mut rows, dim);
        // The rows now hold the inverse of the transpose of J.
        let inverse = (0..dim * dim).map(|k| rows[k % dim][dim + k / dim]).collect();
        Self { dim, vertices, measure: determinant.abs(), inverse }
    }

    /// Physical coordinates of reference points, one list per axis.
    fn position(&self, points: &[f64]) -> Vec<Rc<[f64]>> {
        let axis = |i: usize| {
            let at = |p: &[f64]| {
                let steps = p
                    .iter()
                    .enumerate()
                    .map(|(k, x)| x * (self.vertices[(k + 1) * self.dim + i] - self.vertices[i]));
                self.vertices[i] + steps.sum::<f64>()
            };
            points.chunks(self.dim).map(at).collect()
        };
        (0..self.dim).map(axis).collect()
    }

    /// Values and physical derivatives of a function given by its degrees of freedom,
    /// [dofs, components].
    fn field(&self, table: &FieldTable, dofs: &[i32], values: &[f64], components: usize) -> FieldValues {
        let points = table.values.len() / dofs.len();
        let sums = |c: usize, basis: &[f64]| -> Vec<f64> {
            let row = |row: &[f64]| {
                let terms =
                    row.iter().zip(dofs).map(|(phi, dof)| phi * values[*dof as usize * components + c]);
                terms.collect::<Sum>().value()
            };
            basis.chunks(dofs.len()).map(row).collect()
        };
        let component = |c: usize| {
            let reference: Vec<Vec<f64>> = table.gradients.iter().map(|g| sums(c, g)).collect();
            let axis = |i: usize| -> Rc<[f64]> {
                let at = |q: usize| {
                    (0..self.dim).map(|k| self.inverse[k * self.dim + i] * reference[k][q]).sum::<f64>()
                };
                (0..points).map(at).collect()
            };
            std::iter::once(sums(c, &table.values).into()).chain((0..self.dim).map(axis)).collect()
        };
        (0..components).map(component).collect()
    }
}

/// Gauss–Jordan elimination with row pivoting on `[A | B]`; gives `det A` and leaves `A^-1 B` on
/// the right.
fn eliminate(rows: &mut [Vec<f64>], n: usize) -> f64 {
    let mut determinant = 1.0;
    for k in 0..n {
        let best = (k..n).fold(k, |best, i| if rows[i][k].abs() > rows[best][k].abs() { i } else { best });
        if best != k {
            rows.swap(k, best);
            determinant = -determinant;
        }
        let pivot = rows[k][k];
        determinant *= pivot;
        rows[k].iter_mut().for_each(|x| *x /= pivot);
        let row = rows[k].clone();
        for (_, other) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = other[k];
            other.iter_mut().zip(&row).for_each(|(x, y)| *x -= factor * y);
        }
    }
    determinant
}

/// The element vector of a cell, [dofs, components].
///
/// # Errors
/// A form that is not linear in the test function, or derivatives of too high an order.
pub(super) fn element_vector(
    tables: &Tables<'_>,
    facts: &mut FactTable,
    cell: usize,
) -> Result<Vec<f64>, FormError> {
    let geometry = Geometry::new(tables.mesh, cell);
    let n = tables.test_dofs(cell).len();
    let mut sums = vec![Sum::default(); n * tables.components];
    for rule in &tables.rules {
        let mut fields = BTreeMap::new();
        for (name, field) in &tables.fields {
            let dofs = field.numbering.cell(cell);
            let table = &rule.elements[&field.degree];
            fields.insert(name.clone(), geometry.field(table, dofs, field.values, field.components));
        }
        let position = geometry.position(&rule.points);
        let values = CellValues {
            n_points: rule.weights.len(),
            dim: geometry.dim,
            fields: &fields,
            constants: &tables.constants,
            position: &position,
        };
        let mut evaluator = Evaluator { cell: values, facts, missing: None };
        let integrand = evaluator.integrand(rule.integrand)?;
        let factors = reference_factors(&integrand, &geometry, tables.components, &rule.weights)?;
        if let Some(name) = evaluator.missing
            && factors.iter().flatten().flatten().any(|f| f.is_nan())
        {
            return Err(FormError::Missing { name, needed: "values of its degrees of freedom".into() });
        }
        accumulate(&mut sums, &factors, &rule.elements[&tables.degree], n, tables.components);
    }
    Ok(sums.iter().map(Sum::value).collect())
}

/// What stands before the values (first) and reference derivatives of each component of the test
/// function, times weight and measure: [components][1 + dim][points].
fn reference_factors(
    integrand: &Number,
    geometry: &Geometry,
    components: usize,
    weights: &[f64],
) -> Result<Vec<Vec<Vec<f64>>>, FormError> {
    let d = geometry.dim;
    let terms = match integrand {
        Number::Linear(terms) => terms.clone(),
        zero if zero.is_zero() => BTreeMap::new(),
        Number::Uniform(_) | Number::Points(_) => {
            return Err(FormError::NoTest { term: "the integrand".into() });
        }
    };
    let factor = |c: usize, axis: Option<usize>, q: usize| terms.get(&slot(c, axis, d)).map_or(0.0, |t| t[q]);
    let weighted = |c: usize, part: usize| {
        let at = |(q, w): (usize, &f64)| {
            let value = match part.checked_sub(1) {
                None => factor(c, None, q),
                Some(k) => (0..d).map(|i| geometry.inverse[k * d + i] * factor(c, Some(i), q)).sum::<f64>(),
            };
            value * w * geometry.measure
        };
        weights.iter().enumerate().map(at).collect::<Vec<f64>>()
    };
    Ok((0..components).map(|c| (0..=d).map(|part| weighted(c, part)).collect()).collect())
}

fn accumulate(sums: &mut [Sum], factors: &[Vec<Vec<f64>>], table: &FieldTable, n: usize, components: usize) {
    for (c, parts) in factors.iter().enumerate() {
        let bases = std::iter::once(&table.values).chain(&table.gradients);
        for (basis, factor) in bases.zip(parts).filter(|(_, f)| f.iter().any(|v| *v != 0.0)) {
            for (row, f) in basis.chunks(n).zip(factor) {
                for (i, phi) in row.iter().enumerate() {
                    sums[i * components + c].add(phi * f);
                }
            }
        }
    }
}
