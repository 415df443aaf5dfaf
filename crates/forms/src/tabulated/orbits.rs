//! Points of quadrature rules in orbits of symmetric vertices.

use super::{TabulatedForm, Values};
use kingpost_fem::cell::orbits_of_points;

impl TabulatedForm {
    /// The form with the points of each rule in orbits, one after the other: a point that an orbit has
    /// several times stands there as often, with parts of its weight.
    ///
    /// # Errors
    /// In words, what was found: a rule without points, or one whose points a permutation of the
    /// vertices moves to where there are none.
    pub(crate) fn in_point_orbits(&self) -> Result<Self, String> {
        let mut form = self.clone();
        for integral in &mut form.integrals {
            let n = integral.weights.len();
            if integral.points.len() != n {
                return Err("a rule without its points".into());
            }
            let orbits = orbits_of_points(form.cell, &integral.points.concat());
            let orbits = orbits.ok_or_else(|| {
                format!("a rule of {n} points with no point where a permutation of the vertices moves one")
            })?;
            let times = |orbit: &[u32], at: u32| orbit.iter().filter(|other| **other == at).count() as f64;
            let order: Vec<(usize, f64)> =
                orbits.iter().flat_map(|o| o.iter().map(|at| (*at as usize, times(o, *at)))).collect();
            integral.points = order.iter().map(|(at, _)| integral.points[*at].clone()).collect();
            integral.weights = order.iter().map(|(at, times)| integral.weights[*at] / times).collect();
            for table in &mut integral.tables {
                let columns = table.dofs();
                if table.values.entries().len() != n * columns {
                    continue; // one row for all points
                }
                let row = |at: usize| &table.values.entries()[at * columns..(at + 1) * columns];
                let entries = order.iter().flat_map(|(at, _)| row(*at)).copied().collect();
                let gaps = || format!("the table `{}`, which has gaps", table.name);
                table.values = Values::new(vec![order.len(), columns], entries).ok_or_else(gaps)?;
            }
        }
        Ok(form)
    }
}
