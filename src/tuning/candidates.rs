//! Which mappings to try.

use super::LoweredCase;
use crate::{NoTilingSizes, Random, tiling_sizes};
use purlin_autotune::{
    Candidate, CostModel, DeviceModel, NoOccupancy, Parameters, SearchBounds, SearchSpace, Tiling,
    TilingError, TilingParameters,
};

/// Why there are no candidates.
#[derive(Debug, thiserror::Error)]
pub enum CandidatesError {
    /// The kernel is no operator action.
    #[error(transparent)]
    Sizes(#[from] NoTilingSizes),
    /// Its sizes have no tiling.
    #[error(transparent)]
    Tiling(#[from] TilingError),
    /// The device has no cost model.
    #[error(transparent)]
    Model(#[from] NoOccupancy),
}

/// The tilings of a case on a device, ranked by *document 000*'s cost model.
pub struct Choice<'m> {
    space: SearchSpace,
    model: CostModel<'m>,
    cells: f64,
}

impl<'m> Choice<'m> {
    /// The space of a case within the document's constraints, with at most `local_bytes` of local memory.
    ///
    /// # Errors
    /// A kernel without the stages of an action, a device of which is not known what bounds the work in flight.
    pub fn new(
        case: &LoweredCase,
        model: &'m DeviceModel,
        local_bytes: u64,
    ) -> Result<Self, CandidatesError> {
        let own = model.occupancy.as_ref().map(SearchBounds::of).unwrap_or_default();
        let bounds = SearchBounds { local_bytes: own.local_bytes.min(local_bytes), ..own };
        let space = SearchSpace::new(tiling_sizes(&case.lowered.kernel)?, bounds)?;
        Ok(Self { space, model: CostModel::new(model)?, cells: case.workload.cells as f64 })
    }

    /// The `budget` best ranked tilings.
    #[must_use]
    pub fn ranked(&self, budget: usize) -> Vec<Candidate> {
        let survey = self.space.survey(&self.model, budget, |_, _| {});
        let candidate = |(k, ranked): (u64, purlin_autotune::Ranked)| Candidate {
            parameters: Parameters::Tiling(ranked.parameters),
            rank: Some(k),
            predicted_s: Some(ranked.seconds_per_cell * self.cells),
        };
        (1..).zip(survey.best).map(candidate).collect()
    }

    /// `count` different tilings, each as likely as any other.
    #[must_use]
    pub fn drawn(&self, count: usize, seed: u64) -> Vec<Candidate> {
        let mut random = Random::new(seed);
        let drawn = self.space.sample(count, |n| random.below(n));
        drawn.into_iter().filter_map(|tiling| self.candidate(tiling)).collect()
    }

    /// A tiling with its predicted time; none if it is not in the space.
    fn candidate(&self, parameters: TilingParameters) -> Option<Candidate> {
        let seconds = self.model.seconds_per_cell(&Tiling::new(self.space.sizes(), &parameters).ok()?);
        let predicted_s = Some(seconds * self.cells);
        Some(Candidate { parameters: Parameters::Tiling(parameters), rank: None, predicted_s })
    }
}
