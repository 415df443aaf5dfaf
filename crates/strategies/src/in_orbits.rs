//! Degrees of freedom combined in orbits of symmetric vertices.

use super::matrix_cells::MatrixCells;
use super::matrix_groups::MatrixGroups;
use super::matrix_orbits::orbit_sizes_for;
use super::modes::{table_products, with_modes};
use super::staged_cells::{STRAIGHT_PRODUCTS, StraightCells};
use crate::strategy::mapping::Mapping;
use crate::strategy::{Arguments, Combinator, CombinedOrbits, MULTIPROCESSORS, Question, Stopped, Work};
use kingpost_forms::CellKernel;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Degrees of freedom combined in orbits of symmetric vertices, derivatives along symmetric
/// directions, sums over modes, in straight-line code or by matrix instructions: by the mapping that
/// follows.
///
/// # Errors
/// A mapping that combines nothing in orbits, a form without this symmetry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InOrbits {
    /// Work-groups that a compute unit should have registers for; none leaves it to the compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident_groups: Option<u32>,
    /// Whether quadrature points are combined in orbits, too, instead of modes: of integrands that
    /// have none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub points: bool,
}

impl fmt::Display for InOrbits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "orbits{}", if self.points { " of points" } else { "" })
    }
}

impl Arguments for InOrbits {
    const NAME: &'static str = "orbits";
    const SUMMARY: &'static str = "Degrees of freedom combined in orbits of symmetric vertices.";
}

impl Combinator for InOrbits {
    fn apply(&self, on: &mut Work<'_>, then: &Mapping) -> Result<(), Stopped> {
        then.in_orbits(on, CombinedOrbits { points: self.points, resident_groups: self.resident_groups })
    }

    fn is_over_modes(&self, _: &Mapping) -> bool {
        true
    }

    fn show(&self, then: &Mapping, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}, {then}")?;
        self.resident_groups.map_or(Ok(()), |groups| write!(f, ", {groups} at a time"))
    }

    /// Straight-line code, where what tables over modes have besides zeros is short, as many blocks as an
    /// orbit has entries; matrix instructions, with as many tables as fit with those of the other groups
    /// of a unit.
    fn candidates(question: &Question<'_>) -> Vec<Mapping> {
        if !question.is_card {
            return Vec::new();
        }
        let (Ok((symmetric, orbits)), Some((modes, _))) =
            (question.form.symmetric(), with_modes(question.form))
        else {
            return Vec::new();
        };
        let Some(orbit) = orbits.iter().flatten().next() else { return Vec::new() };
        let Ok(program) = symmetric.program() else { return Vec::new() };
        let products = modes.program().map_or(i64::MAX, |p| table_products(&p)) / orbit.len().max(1) as i64;
        let mut found = Vec::new();
        if program.shares_tables && products <= STRAIGHT_PRODUCTS {
            let of = |whole_groups| {
                move |(cells, resident_groups)| {
                    let straight = StraightCells { whole_groups, ..StraightCells::new(cells) };
                    Self { resident_groups, points: false }.before(straight)
                }
            };
            found.extend(GROUPS.map(of(false)));
            found.extend(WHOLE_GROUPS.map(of(true)));
        }
        let Some(instruction) = question.matrix_instruction else { return found };
        if program.evaluated().len() == 1 {
            let all =
                MatrixGroups::that_pay(symmetric.kernel(), &program, (instruction, question.local_bytes));
            let all = all.into_iter().filter(|m| !m.short_terms && m.shared_points.is_none());
            let kinds = MatrixGroups::of_kinds(&program, instruction);
            found.extend(all.chain(kinds).map(|m| Mapping::from(m).with_orbits()));
        }
        if let Some(sizes) = orbit_sizes_for(instruction, symmetric.kernel(), &program, &orbits) {
            let of_group = |groups: u64| question.local_bytes / (groups / MULTIPROCESSORS).max(1);
            let all = MatrixCells::that_fit(&sizes, question, of_group).into_iter();
            found.extend(all.map(|m| Mapping::from(m).with_orbits()));
        }
        found
    }
}

/// Cells of a group, and groups that a multiprocessor should have registers for.
const GROUPS: [(u64, Option<u32>); 6] =
    [(32, None), (64, None), (128, None), (64, Some(6)), (128, Some(3)), (128, Some(4))];

/// Those with which cells that fill no group are tried in groups of their own: 2-D P5 elasticity then
/// takes 850 µs instead of 989, 3-D P4 Helmholtz 312 instead of 334, but 3-D P4 Laplace 312 instead of
/// 299 (H200, 2026-11-26).
const WHOLE_GROUPS: [(u64, Option<u32>); 3] = [(32, None), (64, None), (128, Some(3))];

impl Mapping {
    /// The same with degrees of freedom combined in orbits.
    #[must_use]
    pub fn with_orbits(self) -> Self {
        InOrbits::default().before(self)
    }
}
