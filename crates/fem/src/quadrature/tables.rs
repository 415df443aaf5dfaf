//! The tabulated rules, embedded as text written by `scripts/quadrature_tables.py`.

use std::sync::OnceLock;

use super::{QuadratureError, Rule};
use crate::cell::CellShape;

/// A family of rules: for each degree a line `degree count`, then `count` lines of coordinates and
/// weight.
pub(super) struct Table {
    family: &'static str,
    text: &'static str,
    /// For each rule its degree, its number of points and the place in the text of its first point.
    index: OnceLock<Vec<(usize, usize, usize)>>,
}

/// Degrees 1 to 30.
pub(super) static XIAO_GIMBUTAS_TRIANGLE: Table =
    Table::new("Xiao–Gimbutas", include_str!("data/xiao_gimbutas_triangle.txt"));
/// Degrees 1 to 15.
pub(super) static XIAO_GIMBUTAS_TETRAHEDRON: Table =
    Table::new("Xiao–Gimbutas", include_str!("data/xiao_gimbutas_tetrahedron.txt"));
/// Degrees 2 to 20.
pub(super) static JASKOWIEC_SUKUMAR: Table =
    Table::new("Jaśkowiec–Sukumar", include_str!("data/jaskowiec_sukumar_tetrahedron.txt"));

impl Table {
    const fn new(family: &'static str, text: &'static str) -> Self {
        Self { family, text, index: OnceLock::new() }
    }

    /// Degree and number of points of each rule.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, usize)> {
        self.index().iter().map(|(degree, points, _)| (*degree, *points))
    }

    fn index(&self) -> &[(usize, usize, usize)] {
        self.index.get_or_init(|| {
            let mut index = Vec::new();
            let mut place = 0;
            for line in self.text.split_inclusive('\n') {
                place += line.len();
                let mut words = line.split_ascii_whitespace().map(str::parse);
                // A line of coordinates fails at its first word, which has a decimal point.
                if let (Some(Ok(degree)), Some(Ok(points)), None) = (words.next(), words.next(), words.next())
                {
                    index.push((degree, points, place));
                }
            }
            index
        })
    }

    /// The rule of exactly `degree`.
    pub(super) fn rule(&self, shape: CellShape, degree: usize) -> Result<Rule, QuadratureError> {
        let broken = || QuadratureError::Table { family: self.family, degree };
        let (_, count, place) = *self.index().iter().find(|(d, _, _)| *d == degree).ok_or_else(broken)?;
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        for line in self.text[place..].lines().take(count) {
            let row: Result<Vec<f64>, _> = line.split_ascii_whitespace().map(str::parse).collect();
            let row = row.map_err(|_| broken())?;
            let (weight, point) = row.split_last().ok_or_else(broken)?;
            points.extend_from_slice(point);
            weights.push(*weight);
        }
        if weights.len() != count || points.len() != count * shape.dim() {
            return Err(broken());
        }
        Ok(Rule { shape, points, weights, degree, name: format!("{} degree {degree}", self.family) })
    }
}
