//! The 70 operator actions of Kulkarni & Klöckner 2025, and what was published about them.

use purlin_forms::mesh::{Mesh, MeshError};
use purlin_kernels::Operator;
use std::fmt;
use std::str::FromStr;

/// One operator action: an operator on Lagrange elements of a degree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// The operator.
    pub operator: Operator,
    /// 2 or 3.
    pub dim: usize,
    /// Polynomial degree.
    pub degree: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}D.P{}", self.operator, self.dim, self.degree)
    }
}

/// A name that is no case's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no case `{0}`; cases are called like `laplace.3D.P4`")]
pub struct UnknownCase(String);

impl FromStr for Case {
    type Err = UnknownCase;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownCase(name.into());
        let parts: Vec<_> = name.split('.').collect();
        let [operator, dim, degree] = parts[..] else { return Err(unknown()) };
        let number = |text: Option<&str>| text.and_then(|t| t.parse().ok()).ok_or_else(unknown);
        Ok(Self {
            operator: operator.parse().map_err(|_| unknown())?,
            dim: number(dim.strip_suffix(['D', 'd']))?,
            degree: number(degree.strip_prefix(['P', 'p']))?,
        })
    }
}

impl Case {
    /// The 70 actions of Kulkarni & Klöckner 2025, section 6.2: five operators, triangles P1 to P8,
    /// tetrahedra P1 to P6.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let sizes = (1..=8).map(|p| (2, p)).chain((1..=6).map(|p| (3, p)));
        let cases = sizes.flat_map(|(dim, degree)| {
            Operator::ALL.into_iter().map(move |operator| Self { operator, dim, degree })
        });
        cases.collect()
    }

    /// Subdivisions per side of the meshes on which the times for the H200 NVL were published.
    #[must_use]
    pub fn published_subdivisions(&self) -> usize {
        if self.dim == 2 { 1280 } else { 56 }
    }

    /// Cells of the unit square or cube with `n` subdivisions per side.
    #[must_use]
    pub fn cells(&self, n: usize) -> u64 {
        let n = n as u64;
        if self.dim == 2 { 2 * n * n } else { 6 * n * n * n }
    }

    /// Cells of the published mesh.
    #[must_use]
    pub fn published_cells(&self) -> u64 {
        self.cells(self.published_subdivisions())
    }

    /// The unit square or cube with `n` subdivisions per side.
    ///
    /// # Errors
    /// Too many vertices for 32 bits.
    pub fn mesh(&self, n: usize) -> Result<Mesh, MeshError> {
        if self.dim == 2 { Mesh::unit_square(n) } else { Mesh::unit_cube(n) }
    }
}

/// The table of published figures has a row that is not of its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bug of purlin: the published figures cannot be read in line {line}: {text}")]
pub struct MalformedTable {
    /// Line, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

/// What was published about a case on an H200 NVL at 1785 MHz.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedTime {
    /// Cells of the mesh.
    pub cells: u64,
    /// Seconds of the published tuned kernel.
    pub seconds: f64,
}

/// Clock of the H200 NVL of the published times, MHz.
pub const PUBLISHED_MHZ: f64 = 1785.0;

/// The published figures of a case.
///
/// # Errors
/// A row that is not of the table's form.
pub fn published_time(case: Case) -> Result<Option<PublishedTime>, MalformedTable> {
    let text = include_str!("../results/published_actions.csv");
    let wanted = [case.operator.to_string(), case.dim.to_string(), case.degree.to_string()];
    for (k, row) in text.lines().enumerate().filter(|(_, row)| !row.starts_with('#')) {
        let malformed = || MalformedTable { line: k + 1, text: row.into() };
        let fields: Vec<_> = row.split(',').collect();
        let [operator, dim, degree, _, _, _, cells, micros, ..] = fields[..] else { return Err(malformed()) };
        if [operator, dim, degree].iter().zip(&wanted).all(|(a, b)| a.eq_ignore_ascii_case(b)) {
            let cells = cells.parse().map_err(|_| malformed())?;
            let micros: f64 = micros.parse().map_err(|_| malformed())?;
            return Ok(Some(PublishedTime { cells, seconds: micros * 1e-6 }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_published_time_on_its_mesh() {
        let cases = Case::all();
        assert_eq!(cases.len(), 70);
        for case in cases {
            let found = published_time(case).ok().flatten();
            assert!(found.is_some_and(|p| p.seconds > 1e-6 && p.cells == case.published_cells()), "{case}");
            assert_eq!(case.to_string().parse(), Ok(case));
        }
        for name in ["laplace", "laplace.3D", "laplace.3D.P", "stokes.3D.P1", "laplace.3.P1", "mass.2D.P1.x"]
        {
            assert!(name.parse::<Case>().is_err(), "{name}");
        }
    }
}
