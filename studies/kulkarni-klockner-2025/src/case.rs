//! The 70 operator actions of Kulkarni & Klöckner 2025, and what was published about them.

use kingpost::ProblemError;
use kingpost::forms::lowering::{LoweringOptions, lower};
use kingpost::forms::quadrature::QuadratureScheme;
use kingpost::kernels::Operator;
use kingpost::tuning::{CaseError, CaseMesh, FormCase};
use kingpost_cli::is_part;
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
        f.write_str(&self.operator.action_name(self.dim, self.degree))
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

    /// The case on the unit square or cube with `n` subdivisions per side, lowered.
    ///
    /// # Errors
    /// A form that cannot be lowered, a number of subdivisions that no mesh has.
    pub fn lowered(&self, scheme: QuadratureScheme, n: usize) -> Result<FormCase, CaseError> {
        let Self { operator, dim, degree } = *self;
        let form = operator.form(dim, degree).map_err(ProblemError::from)?;
        let options = LoweringOptions::new(operator.kernel_name(dim, degree)).with_scheme(scheme);
        let lowered = lower(&form, &options).map_err(ProblemError::from)?;
        FormCase::new(self.to_string(), lowered, CaseMesh::Unit(n))
    }

    /// The cases that any of `parts` stands in as whole components of their names; `published`
    /// stands for all.
    ///
    /// # Errors
    /// A part that stands in none.
    pub fn named(parts: &[impl AsRef<str>]) -> Result<Vec<Self>, NoCase> {
        let is_meant = |part: &str, case: &Self| part == "published" || is_part(part, &case.to_string());
        let all = Self::all();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        match parts.iter().find(|part| !all.iter().any(|case| is_meant(part, case))) {
            None => {
                Ok(all.into_iter().filter(|case| parts.iter().any(|part| is_meant(part, case))).collect())
            }
            Some(part) => Err(NoCase((*part).into())),
        }
    }
}

/// A part of no case's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no case is called `{0}`; cases are called like laplace.3D.P4, and parts such as laplace, 3D.P4 or laplace.3D name \
     all that have them"
)]
pub struct NoCase(String);

/// The table of published figures has a row that is not of its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bug of the study: the published figures cannot be read in line {line}: {text}")]
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
    let text = include_str!("../data/published_actions.csv");
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

    fn names(parts: &[&str]) -> Result<Vec<String>, String> {
        let cases = Case::named(parts).map_err(|error| error.to_string())?;
        Ok(cases.iter().map(Case::to_string).collect())
    }

    #[test]
    fn a_part_is_whole_components() {
        for name in ["mass.2D.P1", "elasticity.2D.P5"] {
            assert_eq!(names(&[name]), Ok(vec![name.to_string()]));
        }
        assert_eq!(names(&["laplace.3d", "elasticity.3D.p2"]).map(|n| n.len()), Ok(7));
        let counts =
            ["laplace", "3D.P4", "P4", "2D", "published"].map(|part| names(&[part]).map(|n| n.len()));
        assert_eq!(counts, [14, 5, 10, 40, 70].map(Ok));
    }

    #[test]
    fn a_part_of_no_case_is_refused() {
        for part in ["", ".", "place", "3D.P", "laplace.P4", "laplace.3D.P4.", "laplace.3D.P7", "stokes"] {
            assert!(names(&["mass", part]).is_err_and(|e| e.contains(&format!("`{part}`"))), "{part}");
        }
    }
}
