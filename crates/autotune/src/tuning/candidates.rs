//! Which mappings to try.

use super::Candidate;
use super::processors::compute_units;
use super::search::{CostModel, NoOccupancy, Ranked, SearchBounds, SearchSpace, staged_tilings};
use crate::DeviceModel;
use kingpost_fem::quadrature::QuadratureScheme;
use kingpost_forms::CellKernel;
use kingpost_forms::Relowered;
use kingpost_forms::program::{CellProgram, NotAnAction};
use kingpost_ir::Kernel;
use kingpost_run::Random;
use kingpost_strategies::strategy::{Arguments, Question};
use kingpost_strategies::tiling::{Tiling, TilingError, TilingParameters, staged_tiling_sizes, tiling_sizes};
use kingpost_strategies::{
    ConstantCells, FactorisedCells, FactorisedLines, FactorisedPlanes, MAX_KEPT, MatrixInstruction,
    MultiLevelTiling, STAGED_WORDS, StagedTiling, StoredFactors, StraightCells, strategies, with_modes,
    words_in_registers,
};
use kingpost_strategies::{Mapping, StrategySet};

/// Most sums of a work-item: 72 of the 127 that its registers hold, besides geometry, addresses and
/// a column of degrees of freedom. Beyond, ptxas spills (3-D P3 hyperelasticity, 144 sums: 768
/// bytes of stack and 1.7 times the time of the published kernel; H200, 2026-11-21).
const ACCUMULATORS: u64 = 72;

/// Best ranked tilings looked at for each one that is tried.
const DEPTH: usize = 4000;

/// Tilings of one quadrature tile that are tried.
const SAME_QUAD_TILE: usize = 4;

/// Why there are no candidates.
#[derive(Debug, thiserror::Error)]
pub enum CandidatesError {
    /// The kernel is no operator action.
    #[error(transparent)]
    Sizes(#[from] NotAnAction),
    /// Its sizes have no tiling.
    #[error(transparent)]
    Tiling(#[from] TilingError),
    /// The device has no cost model.
    #[error(transparent)]
    Model(#[from] NoOccupancy),
}

/// The tilings of a case on a device, ranked by the cost model of Kulkarni & Klöckner 2025.
pub struct Choice<'m> {
    space: SearchSpace,
    model: CostModel<'m>,
    cells: f64,
}

impl<'m> Choice<'m> {
    /// The space of an action on a given number of cells within the constraints of its cost model, with at
    /// most `local_bytes` of local memory.
    ///
    /// # Errors
    /// A kernel without the stages of an action, a device of which is not known what bounds the
    /// work in flight.
    pub fn new(
        form: &dyn CellKernel,
        cells: u64,
        model: &'m DeviceModel,
        local_bytes: u64,
    ) -> Result<Self, CandidatesError> {
        let own = model.occupancy.as_ref().map(SearchBounds::of).unwrap_or_default();
        let accumulators = Some(ACCUMULATORS);
        let bounds = SearchBounds { local_bytes: own.local_bytes.min(local_bytes), accumulators, ..own };
        let space = SearchSpace::new(tiling_sizes(form)?, bounds)?;
        Ok(Self { space, model: CostModel::new(model)?, cells: cells as f64 })
    }

    /// The `budget` best ranked tilings that differ in more than the sizes of tiles: the model has
    /// no cost for barriers, so that the first ones of all are the same mapping with tiles of all
    /// sizes. No two of them share work-items of a cell, quadrature tile and rows, and at most four
    /// of them a quadrature tile; their ranks are those among all.
    ///
    /// Where the columns of the best ranked one are too many for registers, the best ranked one of
    /// the same mapping that keeps them there is tried, too.
    #[must_use]
    pub fn ranked(&self, budget: usize) -> Vec<Candidate> {
        let survey = self.space.survey(&self.model, budget.saturating_mul(DEPTH), |_, _| {});
        // mappings that are tried, and whether one of them keeps its columns in registers
        let mut seen: Vec<([u64; 3], bool)> = Vec::new();
        let mut is_new = |p: &TilingParameters| {
            let mapping = [p.quad_tile, p.work_items_per_cell, p.eval_rows];
            let keeps = self.keeps_columns(p);
            if let Some((_, kept)) = seen.iter_mut().find(|(m, _)| *m == mapping) {
                let better = keeps && !*kept;
                *kept |= keeps;
                return better;
            }
            let same_tile = seen.iter().filter(|(m, _)| m[0] == p.quad_tile).count();
            let new = same_tile < SAME_QUAD_TILE;
            if new {
                seen.push((mapping, keeps));
            }
            new
        };
        let candidate = |(k, ranked): (u64, Ranked)| Candidate {
            parameters: MultiLevelTiling(ranked.parameters).into(),
            rank: Some(k),
            predicted_s: Some(ranked.seconds_per_cell * self.cells),
        };
        let different = (1..).zip(survey.best).filter(|(_, ranked)| is_new(&ranked.parameters));
        different.map(candidate).take(budget).collect()
    }

    /// Whether a work-item has registers for its sums and the columns of every function together.
    fn keeps_columns(&self, p: &TilingParameters) -> bool {
        let trial = &self.space.sizes().trial;
        let rounds = p.eval_rows.div_ceil(p.work_items_per_cell.max(1));
        let sums: u64 = trial.iter().map(|s| s.derivatives * rounds).sum();
        let columns =
            trial.iter().zip(&p.eval_cols).map(|(s, cols)| cols * s.derivatives / s.matrices.max(1));
        sums + columns.max().unwrap_or(0) <= MAX_KEPT.unsigned_abs()
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
        Some(Candidate { parameters: MultiLevelTiling(parameters).into(), rank: None, predicted_s })
    }
}

/// What to try on an action on a given number of cells: [`candidates_of`] Kingpost's [`strategies`].
///
/// # Errors
/// As [`Choice::new`].
pub fn candidates(
    form: &dyn CellKernel,
    cells: u64,
    model: &DeviceModel,
    local_bytes: u64,
    budget: usize,
) -> Result<Vec<Candidate>, CandidatesError> {
    candidates_of(strategies(), form, cells, model, local_bytes, budget)
}

/// What to try on an action on a given number of cells: what [the strategies](StrategySet::candidates) of a set
/// say, the `budget` best ranked tilings, and half as many staged ones; tilings only of what
/// [can be tiled](CellProgram::tiled). Where quadrature points can become fewer modes, the same of the
/// action with modes. Where it is nonlinear, and other rules are exact with fewer points, the same with
/// these. For cards, each that gathers and scatters along work-items also with degrees of freedom of
/// vertices, edges, faces and the interior separately.
///
/// # Errors
/// As [`Choice::new`].
pub fn candidates_of(
    set: &StrategySet,
    form: &dyn CellKernel,
    cells: u64,
    model: &DeviceModel,
    local_bytes: u64,
    budget: usize,
) -> Result<Vec<Candidate>, CandidatesError> {
    if budget == 0 {
        return Ok(vec![Candidate::unranked(Mapping::single_cell())]);
    }
    let of_device = question(form, model, local_bytes);
    let found = |question: Question<'_>| at_points(set, question, cells, model, budget);
    let mut all = found(of_device)?;
    if let Some(kernel) = with_fewer_modes(form) {
        // by matrix instructions, in orbits and with stored factors the form itself is mapped
        let with_modes =
            found(Question { form: &kernel, is_card: false, matrix_instruction: None, ..of_device })?
                .into_iter();
        all.extend(with_modes.map(|c| Candidate { parameters: c.parameters.with_modes(), ..c }));
    }
    if let Some(ruled) = with_fewer_points(form) {
        let with_rules = found(Question { form: &*ruled, ..of_device })?.into_iter();
        all.extend(with_rules.map(|c| Candidate { parameters: c.parameters.with_rules(FEWEST), ..c }));
    }
    if of_device.is_card {
        all.extend(in_parts(form, &all));
    }
    Ok(all)
}

/// What strategies are asked of a form on a device.
pub fn question<'q>(form: &'q dyn CellKernel, model: &DeviceModel, local_bytes: u64) -> Question<'q> {
    let matrix_instruction = model.occupancy.and_then(|o| MatrixInstruction::of_width(o.sub_group));
    let local_bytes = match (matrix_instruction, &model.occupancy) {
        // there no group is given more than it declares
        (Some(MatrixInstruction::Mfma16x16x4), Some(o)) => local_bytes.min(o.local_bytes_per_group),
        (Some(MatrixInstruction::Mfma16x16x4 | MatrixInstruction::MmaM16n8k8) | None, _) => local_bytes,
    };
    let of_any = Question::of(form);
    let compute_units = compute_units(&model.name).unwrap_or(of_any.compute_units); // as its field says
    Question { is_card: model.is_card(), matrix_instruction, compute_units, local_bytes, ..of_any }
}

/// The scheme with the fewest points of each degree.
const FEWEST: QuadratureScheme = QuadratureScheme::Default;

/// What is found that gathers and scatters degrees of freedom along work-items, with those of
/// vertices, edges, faces and the interior separately.
fn in_parts(form: &dyn CellKernel, found: &[Candidate]) -> Vec<Candidate> {
    let parts = form.entity_parts().unwrap_or_default();
    let with = |c: &Candidate| c.parameters.with_parts(&parts).map(Candidate::unranked);
    if parts.is_empty() { Vec::new() } else { found.iter().filter_map(with).collect() }
}

/// The form with rules of fewer points, where these are exact and no modes replace them.
fn with_fewer_points(form: &dyn CellKernel) -> Option<Relowered> {
    let points = |program: &CellProgram| program.blocks.iter().map(|b| b.points).sum::<i64>();
    let own = points(&*form.program().ok()?);
    let ruled = form.with_scheme(FEWEST).ok()?;
    (points(&*ruled.program().ok()?) < own && with_modes(form).is_none()).then_some(ruled)
}

/// The kernel with modes, where a cell takes fewer products with entries of tables over modes than
/// over points.
pub(super) fn with_fewer_modes(form: &dyn CellKernel) -> Option<Kernel> {
    with_modes(form).filter(|(_, products)| products.is_lt()).map(|(kernel, _)| kernel)
}

/// The same with the loops that the form has.
fn at_points(
    set: &StrategySet,
    question: Question<'_>,
    cells: u64,
    model: &DeviceModel,
    budget: usize,
) -> Result<Vec<Candidate>, CandidatesError> {
    let Question { form, local_bytes, .. } = question;
    let mut found: Vec<Candidate> = set.candidates(&question).into_iter().map(Candidate::unranked).collect();
    if form.program()?.tiled(form.kernel()).is_err() {
        return Ok(found);
    }
    found.extend(Choice::new(form, cells, model, local_bytes)?.ranked(budget));
    let largest = model.occupancy.as_ref().map_or(u64::MAX, |o| o.local_bytes_per_group);
    let sizes = staged_tiling_sizes(form)?;
    let staged = staged_tilings(&sizes, local_bytes.min(largest));
    let staged = staged.take(budget.div_ceil(2)).map(|p| Candidate::unranked(StagedTiling(p).into()));
    found.extend(staged);
    Ok(found)
}

/// One cell a work-item on a card without a trial, where that is the best known: in straight-line
/// code, or with few degrees of freedom.
pub(super) fn usual_cells(form: &dyn CellKernel) -> Option<Mapping> {
    Some(match words_in_registers(form)? {
        ..STAGED_WORDS => ConstantCells { cells: 128 }.into(),
        _ => StraightCells::new(64).into(),
    })
}

/// Sums axis by axis, for kernels with tables of tensor products: what is tried of them, also with stored
/// factors.
#[must_use]
pub fn factorised(form: &dyn CellKernel) -> Vec<Candidate> {
    let question = Question::of(form);
    let names = [FactorisedCells::NAME, FactorisedPlanes::NAME, FactorisedLines::NAME, StoredFactors::NAME];
    let rows = strategies().rows().filter(|row| names.contains(&row.name));
    rows.flat_map(|row| row.candidates(&question)).map(Candidate::unranked).collect()
}
