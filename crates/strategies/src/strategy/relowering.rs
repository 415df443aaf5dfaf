//! Mappings that lower the form again, and recipes that start from what they lower.

use super::error::MappingError;
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::lowering::Orbits;
use kingpost_forms::{CellKernel, Relowered};
use kingpost_primitives::Lowering;

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
    pub(super) fn words(self) -> Lowering {
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

    /// The form, lowered so, and the orbits of the nodes of its elements along symmetric directions.
    pub(super) fn lower(self, form: &dyn CellKernel) -> Result<(Relowered, Vec<Orbits>), MappingError> {
        Ok(match self {
            Self::Rules(scheme) => (form.with_scheme(scheme)?, Vec::new()),
            Self::SymmetricDirections => form.symmetric()?,
            Self::PointOrbits => form.in_point_orbits()?,
        })
    }
}

/// A form as a [recipe](kingpost_primitives::Recipe::lowering) starts from it, if that is not as it is.
///
/// # Errors
/// What this Kingpost does not know, a form that cannot be lowered so, a kernel that has no form.
pub fn relowered(form: &dyn CellKernel, lowering: &[Lowering]) -> Result<Option<Relowered>, MappingError> {
    let mut lowered: Option<Relowered> = None;
    for words in lowering {
        let how = Relowering::of(words)?;
        let start = lowered.as_ref().map_or(form, |lowered| &**lowered);
        lowered = Some(how.lower(start)?.0);
    }
    Ok(lowered)
}
