//! Mappings that lower the form again, and recipes that start from what they lower.

use super::{Mapping, MappingError};
use crate::lowering::LoweredForm;
use crate::program::CellKernel;
use crate::quadrature::QuadratureScheme;
use crate::strategies::StrategyError;
use purlin_ir::Kernel;
use purlin_primitives::{Lowering, Recipe};

/// What a mapping lowers a form with, so that its kernel has other tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relowering {
    /// Quadrature rules of a scheme ([`CellKernel::with_scheme`]).
    Rules(QuadratureScheme),
    /// Derivatives along symmetric directions ([`CellKernel::symmetric`]).
    SymmetricDirections,
    /// The same, and quadrature points in orbits ([`CellKernel::in_point_orbits`]).
    PointOrbits,
}

impl Relowering {
    const RULES: &str = "rules";
    const SYMMETRIC: &str = "symmetric_directions";
    const POINTS: &str = "point_orbits";

    const SCHEMES: [QuadratureScheme; 4] = [
        QuadratureScheme::Default,
        QuadratureScheme::XiaoGimbutas,
        QuadratureScheme::CollapsedGaussJacobi,
        QuadratureScheme::GaussLobatto,
    ];

    /// In the words of recipes.
    fn words(self) -> Lowering {
        match self {
            Self::Rules(scheme) => Lowering::new(Self::RULES, Some(scheme.to_string())),
            Self::SymmetricDirections => Lowering::new(Self::SYMMETRIC, None),
            Self::PointOrbits => Lowering::new(Self::POINTS, None),
        }
    }

    /// Of the words of a recipe.
    fn of(words: &Lowering) -> Result<Self, MappingError> {
        let scheme = |name| Self::SCHEMES.into_iter().find(|scheme| scheme.to_string() == name);
        let found = match (words.name(), words.argument()) {
            (Self::RULES, Some(name)) => scheme(name).map(Self::Rules),
            (Self::SYMMETRIC, None) => Some(Self::SymmetricDirections),
            (Self::POINTS, None) => Some(Self::PointOrbits),
            (_, Some(_) | None) => None,
        };
        found.ok_or_else(|| {
            let all = Self::SCHEMES.into_iter().map(Self::Rules);
            let all = all.chain([Self::SymmetricDirections, Self::PointOrbits]);
            let needed: Vec<String> = all.map(|known| format!("`{}`", known.words())).collect();
            MappingError::Lowering { found: words.clone(), needed: needed.join(", ") }
        })
    }

    /// The form, lowered so.
    fn lower(self, form: &impl CellKernel) -> Result<LoweredForm, MappingError> {
        Ok(match self {
            Self::Rules(scheme) => form.with_scheme(scheme)?,
            Self::SymmetricDirections => form.symmetric()?.0,
            Self::PointOrbits => form.in_point_orbits()?.0,
        })
    }
}

/// A form as a [recipe](Recipe::lowering) starts from it, if that is not as it is.
///
/// # Errors
/// What this Purlin does not know, a form that cannot be lowered so, a kernel that has no form.
pub fn relowered(form: &impl CellKernel, lowering: &[Lowering]) -> Result<Option<LoweredForm>, MappingError> {
    lower_with(form, lowering.iter().map(Relowering::of))
}

/// The form, lowered with one after the other.
fn lower_with(
    form: &impl CellKernel,
    all: impl Iterator<Item = Result<Relowering, MappingError>>,
) -> Result<Option<LoweredForm>, MappingError> {
    let mut lowered: Option<LoweredForm> = None;
    for how in all {
        lowered = Some(match &lowered {
            None => how?.lower(form)?,
            Some(lowered) => how?.lower(lowered)?,
        });
    }
    Ok(lowered)
}

impl Mapping {
    /// What it lowers a form with before its first step, in order.
    #[must_use]
    pub fn lowering(&self) -> Vec<Relowering> {
        match self {
            Self::DynamicLocal { then } => then.lowering(),
            Self::Rules { scheme, then } => {
                let mut first = vec![Relowering::Rules(*scheme)];
                first.extend(then.lowering());
                first
            }
            Self::Orbits { points: true, .. } => vec![Relowering::PointOrbits],
            Self::Orbits { points: false, .. } => vec![Relowering::SymmetricDirections],
            // of what is after steps there is no form
            Self::Modes { .. }
            | Self::StoredFactors { .. }
            | Self::FewestOperations { .. }
            | Self::SharingElimination { .. }
            | Self::Sequential
            | Self::SingleCell { .. }
            | Self::ConstantCells { .. }
            | Self::PointTiles { .. }
            | Self::StagedCells { .. }
            | Self::StraightCells { .. }
            | Self::ListedCells(_)
            | Self::LoopLanes { .. }
            | Self::OwnedRows { .. }
            | Self::SummedCells { .. }
            | Self::FactorisedCells { .. }
            | Self::FactorisedPlanes { .. }
            | Self::FactorisedLines { .. }
            | Self::MatrixCells { .. }
            | Self::MatrixGroups { .. }
            | Self::MatrixBasis { .. }
            | Self::Tiling(_)
            | Self::StagedTiling(_)
            | Self::Schedule { .. } => Vec::new(),
        }
    }

    /// The form with the quadrature rules or directions that the mapping asks for, if it asks for
    /// any: the steps of its recipe begin with that kernel.
    ///
    /// # Errors
    /// As [`CellKernel::with_scheme`] and [`CellKernel::symmetric`].
    pub fn ruled(&self, form: &impl CellKernel) -> Result<Option<LoweredForm>, MappingError> {
        lower_with(form, self.lowering().into_iter().map(Ok))
    }

    /// What it gave for a form, with a recipe that says what the form was lowered with.
    pub(super) fn starting(
        &self,
        mapped: Result<(Kernel, Recipe), MappingError>,
    ) -> Result<(Kernel, Recipe), MappingError> {
        let lowering = self.lowering().into_iter().map(Relowering::words).collect();
        match mapped {
            Ok((kernel, mut recipe)) => {
                recipe.lowering = lowering;
                Ok((kernel, recipe))
            }
            Err(MappingError::Strategy(StrategyError::Step(mut step))) => {
                step.recipe.lowering = lowering;
                Err(MappingError::Strategy(StrategyError::Step(step)))
            }
            Err(error) => Err(error),
        }
    }
}
